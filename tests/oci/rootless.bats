#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A user without privileges: user namespaces of one id and of subordinate ones (newuidmap), and no control group.
# shellcheck disable=SC2154 # what common.bash sets
load common

# Its subordinate ids come and go with it.
setup_file() {
	export account=agentdock-test-user
	[ -w /etc/passwd ] && type -P newuidmap useradd >/dev/null || return 0
	useradd --no-create-home "$account"
}

teardown_file() {
	! id -u "$account" >/dev/null 2>&1 || userdel "$account"
}

eval "common_$(declare -f setup)"
setup() {
	# first: teardown needs its names
	common_setup
	id -u "$account" >/dev/null 2>&1 || skip "no user can be made here, or uidmap is missing"
	edit '.linux.namespaces += [{"type": "user"}] | del(.linux.cgroupsPath)'
	chown -R "$account:" "$here"
	map
}

# map [WORD]: the user is root inside; with WORD 1 to 65536 are subordinate ids
map() {
	local kind id first line
	for kind in uid gid; do
		id=$(id "-${kind:0:1}" "$account")
		line="[{\"containerID\": 0, \"hostID\": $id, \"size\": 1}"
		first=$(awk -F: -v name="$account" '$1 == name { print $2; exit }' "/etc/sub$kind")
		[ -z "${1-}" ] || line+=", {\"containerID\": 1, \"hostID\": $first, \"size\": 65536}"
		edit ".linux.${kind}Mappings = $line]"
	done
}

# as_user VERB ARGUMENT...
as_user() {
	timeout 20 setpriv --reuid "$account" --regid "$account" --clear-groups env -u XDG_RUNTIME_DIR \
		"$runtime" --root "$store" "$@" 3>&- 4>&-
}

is_stopped() {
	[ "$(as_user state "$id" | jq -r .status)" = stopped ]
}

@test "rootless: one id, and no group" {
	script 'id -u; cat /proc/self/uid_map'
	run as_user run --bundle "$bundle" "$id"
	[ "$status" -eq 0 ] || show
	[[ $output == 0*0*$(id -u "$account")*1 ]] || show
}

@test "rootless: subordinate ids" {
	map more
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	program id -u
	run as_user run --bundle "$bundle" "$id"
	says 1000
}

@test "rootless: ids that are not the user's are refused" {
	edit '.linux.uidMappings[0].hostID = 0'
	run as_user create --bundle "$bundle" "$id"
	refused
}

@test "rootless: create, start, exec, and delete --force of one that runs" {
	map more
	program sleep 100
	as_user create --bundle "$bundle" "$id" </dev/null >/dev/null 2>&1
	as_user start "$id"
	local pid
	pid=$(as_user state "$id" | jq .pid)
	run as_user exec "$id" id -u
	says 0
	run as_user exec --user 5:5 "$id" id -u
	says 5
	run as_user delete --force "$id"
	says ""
	gone "$pid"
	run as_user state "$id"
	refused
}

@test "rootless: kill, then delete" {
	program sleep 100
	as_user create --bundle "$bundle" "$id" </dev/null >/dev/null 2>&1
	as_user start "$id"
	as_user kill "$id" KILL
	until_true is_stopped
	run as_user delete "$id"
	says ""
}

@test "rootless: limits and systemd are refused with the way out" {
	runtime_is agentdock-runtime || skip "others have words of their own"
	edit '.linux.resources = {"pids": {"limit": 10}}'
	run as_user create --bundle "$bundle" "$id"
	refused linux.resources.pids.limit --systemd-cgroup
	run as_user --systemd-cgroup create --bundle "$bundle" "$id"
	refused XDG_RUNTIME_DIR --systemd-cgroup
}
