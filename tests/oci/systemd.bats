#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Control groups that systemd makes (--systemd-cgroup), under a real one: tests/vm/systemd runs these in a test kernel.
# shellcheck disable=SC2154 # what common.bash sets
load common

eval "common_$(declare -f setup)"
setup() {
	# first: teardown needs its names
	common_setup
	[ -S /run/systemd/private ] || skip "systemd does not run here"
	[ -e /sys/fs/cgroup/cgroup.controllers ] || skip "on v1 systemd takes the devices for its own"
}

tree=/sys/fs/cgroup

# The scope is "test-$id.scope" in $outer/$slice; $dir is its group.
use_scope() {
	local stem=t${id//-/_}
	outer=$stem.slice slice=$stem-in.slice scope=test-$id.scope
	dir=$tree/$outer/$slice/$scope
	edit ".linux.cgroupsPath = \"$slice:test:$id\""
}

systemd_create() {
	timeout 20 "$runtime" --root "$store" --systemd-cgroup create --bundle "$bundle" "$id" </dev/null >"$here/out" 2>"$here/err" ||
		{ cat "$here/err" && return 1; }
}

# systemd_up [SCRIPT]: as up_until_told
systemd_up() {
	script "${1:-:}; echo up >/ready; read -r line </wait; exit \${line:-0}"
	systemd_create && oci_start && [ "$(heard)" = up ]
}

# systemd_run PATH: what a container sees of its group, as it is from the host's cgroup namespace
systemd_run() {
	edit ".linux.cgroupsPath = \"$1\""
	script 'cat /proc/self/cgroup'
	run timeout 20 "$runtime" --root "$store" --systemd-cgroup run --bundle "$bundle" "$id"
}

# unit_is PROPERTY=VALUE...
unit_is() {
	local line shown
	shown=$(systemctl show "$scope")
	for line; do
		grep -qxF -- "$line" <<<"$shown" || { echo "no $line, but $(grep "^${line%%=*}=" <<<"$shown")" && return 1; }
	done
}

# file_is FILE VALUE
file_is() {
	[ "$(<"$dir/$1")" = "$2" ] || { echo "$1: $(<"$dir/$1"), not $2" && return 1; }
}

# no_unit PATTERN
no_unit() {
	local left
	left=$(systemctl list-units --all --plain --no-legend "$1")
	[ -z "$left" ] || { echo "left: $left" && return 1; }
}

@test "systemd: a scope is where slice:prefix:name says, a slice with dashes below those of its begin" {
	systemd_run "a-b.slice:test:$id"
	says "0::/a.slice/a-b.slice/test-$id.scope"
	systemd_run "user-1000.slice::$id"
	says "0::/user.slice/user-1000.slice/$id.scope"
	systemd_run ":test:"
	says "0::/system.slice/test-$id.scope"
	systemd_run "-.slice:test:$id"
	says "0::/test-$id.scope"
	no_unit "*$id*"
}

@test "systemd: without a path the scope is system.slice's, of the runtime's name" {
	systemd_run ""
	says "0::/system.slice/agentdock-$id.scope"
	edit 'del(.linux.cgroupsPath)'
	run timeout 20 "$runtime" --root "$store" --systemd-cgroup run --bundle "$bundle" "$id"
	says "0::/system.slice/agentdock-$id.scope"
	no_unit "*$id*"
}

@test "systemd: what is no slice and no name is refused" {
	runtime_is agentdock-runtime || skip "others take some of them"
	local path
	for path in /a/b a:b:c a.scope:b:c "a--b.slice:b:$id" "../x.slice:b:$id" "a.slice:b:../$id" a.slice:b a.slice:b:c:d; do
		systemd_run "$path"
		refused linux.cgroupsPath
	done
	# systemd puts it at _memory.slice
	systemd_run "memory.slice:b:$id"
	refused "not at" linux.cgroupsPath
	no_unit "*$id*"
}

@test "systemd: the scope has the limits, and so have its files" {
	use_scope
	edit '.linux.resources = {"memory": {"limit": 67108864, "reservation": 33554432, "swap": 67108864},
		"cpu": {"shares": 512, "quota": 33333, "period": 100000}, "pids": {"limit": 20}}'
	systemd_up
	unit_is Slice="$slice" Delegate=yes MemoryMax=67108864 MemoryLow=33554432 MemorySwapMax=0 CPUWeight=59 \
		CPUQuotaPerSecUSec=340ms CPUQuotaPeriodUSec=100ms TasksMax=20 DevicePolicy=auto ActiveState=active
	file_is memory.max 67108864
	file_is memory.low 33554432
	file_is memory.swap.max 0
	file_is cpu.weight 59
	file_is cpu.max "33333 100000"
	file_is pids.max 20
	[ "$(<"$dir/cgroup.procs")" = "$(oci_pid)" ]
}

@test "systemd: a reload leaves the limits and the devices as they are" {
	use_scope
	edit '.linux.resources = {"devices": [{"allow": false, "access": "rwm"}], "pids": {"limit": 20},
			"cpu": {"quota": 33333}, "unified": {"memory.high": "50331648", "memory.max": "67108864"}}
		| .process.capabilities |= map_values(. + ["CAP_MKNOD", "CAP_SYSLOG"])
		| .mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]'
	systemd_up 'mknod /dev/kmsg c 1 11'
	run oci_exec sh -c ': </dev/kmsg'
	refused "not permitted"
	systemctl daemon-reload
	systemctl daemon-reexec
	run oci_exec sh -c ': </dev/kmsg'
	refused "not permitted"
	run oci_exec sh -c ': </dev/null && echo null'
	says null
	file_is memory.high 50331648
	file_is memory.max 67108864
	# which is kept as a percentage
	file_is cpu.max "34000 100000"
	file_is pids.max 20
}

@test "systemd: an update is systemd's too, and leaves what it does not say" {
	use_scope
	edit '.linux.resources = {"memory": {"limit": 67108864, "swap": 67108864}, "pids": {"limit": 20},
		"cpu": {"quota": 50000}, "unified": {"memory.high": "50331648"}}'
	systemd_up
	run oci update --memory 100663296 --memory-swap 100663296 --cpu-quota 44444 --pids-limit 30 "$id"
	says ""
	unit_is MemoryMax=100663296 MemoryHigh=50331648 MemorySwapMax=0 CPUQuotaPerSecUSec=450ms TasksMax=30
	file_is memory.max 100663296
	file_is memory.high 50331648
	file_is cpu.max "44444 100000"
	file_is pids.max 30
	systemctl daemon-reload
	file_is memory.max 100663296
	file_is cpu.max "45000 100000"
}

@test "systemd: pause, exec, kill and delete, and the scope is gone" {
	use_scope
	systemd_up
	run oci_exec cat /proc/self/cgroup
	says "0::/$outer/$slice/$scope"
	oci pause "$id"
	file_is cgroup.freeze 1
	oci resume "$id"
	file_is cgroup.freeze 0
	oci_kill KILL
	until_true oci_status_is stopped
	oci_delete
	no_unit "$scope"
	[ ! -d "$dir" ]
}

@test "systemd: delete --force of one that runs, that is paused, or that was not started leaves no scope" {
	use_scope
	systemd_up
	oci_delete --force
	no_unit "$scope"
	systemd_create
	unit_is ActiveState=active
	oci_delete --force
	no_unit "$scope"
	systemd_up
	oci pause "$id"
	oci_delete --force
	no_unit "$scope"
	[ ! -d "$dir" ]
}

@test "systemd: a group that the container made below its own goes with the scope" {
	use_scope
	systemd_up
	mkdir -p "$dir/below/it"
	oci_kill KILL
	until_true oci_status_is stopped
	oci_delete
	no_unit "$scope"
	[ ! -d "$dir" ]
}

@test "systemd: one that fails to start leaves no scope" {
	use_scope
	edit '.linux.resources = {"unified": {"memory.high": "nonsense"}}'
	run systemd_create
	refused linux.resources.unified.memory.high
	no_unit "$scope"
	edit '.linux.resources = {} | .process.args = ["/nowhere"]'
	run -127 timeout 20 "$runtime" --root "$store" --systemd-cgroup run --bundle "$bundle" "$id"
	until_true no_unit "$scope"
}

@test "systemd: out of memory, and the scope that failed is gone" {
	use_scope
	edit '.linux.resources = {"memory": {"limit": 8388608, "swap": 8388608}}'
	# shellcheck disable=SC2016 # the container's
	script 'a=x; while :; do a=$a$a; done'
	run timeout 20 "$runtime" --root "$store" --systemd-cgroup run --bundle "$bundle" "$id"
	[ "$status" -eq 137 ] || show
	no_unit "$scope"
}

@test "systemd: a unit that is there is refused, and left alone" {
	use_scope
	systemd-run --scope --unit "$scope" sleep 100 3>&- 4>&- >/dev/null 2>&1 &
	until_true systemctl -q is-active "$scope"
	run systemd_create
	refused "$scope"
	! runtime_is agentdock-runtime || refused "systemctl stop $scope"
	unit_is ActiveState=active
	run oci_state
	refused
	systemctl stop "$scope"
	no_unit "$scope"
}

@test "systemd: systemctl kill ends the container" {
	use_scope
	systemd_up
	systemctl kill -s KILL "$scope"
	until_true oci_status_is stopped
	oci_delete
	no_unit "$scope"
}

@test "systemd: nobody at its socket is refused, with the way out" {
	runtime_is agentdock-runtime || skip "others have words of their own"
	use_scope
	run unshare -m --propagation private sh -c 'mount -t tmpfs none /run/systemd && exec "$@"' sh \
		"$runtime" --root "$store" --systemd-cgroup create --bundle "$bundle" "$id"
	refused "systemd does not run" --systemd-cgroup
}

@test "systemd: podman's container has its scope, its limits, and leaves nothing" {
	type -P podman >/dev/null || skip "no podman"
	podman_is() {
		timeout 60 podman --root "$here/images" --runroot "$here/run" --tmpdir "$here/tmp" --storage-driver vfs \
			--events-backend none --cgroup-manager systemd --runtime "$runtime" "$@" 3>&- 4>&-
	}
	# where it writes besides
	mount -t tmpfs tmpfs /var/lib
	mkdir -p "$rootfs"/{sys,run,etc,tmp}
	run --separate-stderr podman_is run --detach --name "$id" --network none --memory 64m --cpus 0.5 --pids-limit 33 \
		--rootfs "$rootfs" sleep 100
	[ "$status" -eq 0 ] || show
	scope=libpod-$output.scope dir=$tree/machine.slice/$scope
	unit_is Slice=machine.slice MemoryMax=67108864 CPUQuotaPerSecUSec=500ms TasksMax=33
	file_is cpu.max "50000 100000"
	run podman_is exec "$id" cat /proc/self/cgroup
	says "0::/"
	podman_is rm --force --time 0 "$id"
	no_unit "$scope"
	umount /var/lib
}

# ---- a user's own manager ----

# as_daemon COMMAND...: as that user, whose manager is its own: see SYSTEMD_USER in tests/vm/systemd
as_daemon() {
	timeout 20 setpriv --reuid daemon --regid daemon --clear-groups \
		env XDG_RUNTIME_DIR="/run/user/$(id -u daemon)" HOME=/tmp "$@"
}

@test "systemd: a user's own manager makes the scope below itself" {
	[ -S "/run/user/$(id -u daemon)/systemd/private" ] || skip "it has no manager"
	local uid gid
	uid=$(id -u daemon) gid=$(id -g daemon)
	edit ".linux.namespaces += [{\"type\": \"user\"}]
		| .linux.uidMappings = [{\"containerID\": 0, \"hostID\": $uid, \"size\": 1}]
		| .linux.gidMappings = [{\"containerID\": 0, \"hostID\": $gid, \"size\": 1}]
		| .linux.cgroupsPath = \"user.slice:test:$id\" | .linux.resources = {\"pids\": {\"limit\": 20}}"
	script 'cat /proc/self/cgroup'
	chown -R daemon: "$here"
	run as_daemon "$runtime" --root "$here/own" --systemd-cgroup run --bundle "$bundle" "$id"
	[ "$status" -eq 0 ] || show
	[[ $output == 0::*/user@$uid.service/user.slice/test-$id.scope ]] || show
	run as_daemon systemctl --user list-units --all --plain --no-legend "test-$id.scope"
	says ""
}
