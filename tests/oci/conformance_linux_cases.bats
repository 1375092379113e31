#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What other runtimes were seen to get wrong, beside the words of the runtime-spec: limits that cannot be set, mounts with
# locked flags, roots full of links, users that are no numbers, a runtime that is interrupted.

load linux

# ---- What other runtimes got wrong ----

@test "case:R2 a limit whose controller is missing is an error that names the key" {
	! has_controller rdma || skip "every controller is there"
	refuses '.linux.resources.rdma = {"mlx5_1": {"hcaHandles": 3}}' linux.resources.rdma rdma
}

# locked OPTIONS: a bind mount with these, in a user namespace, of a mount whose nosuid, nodev and noexec are locked there
locked() {
	use_user_namespace
	mkdir "$here/source"
	# shellcheck disable=SC2016 # the inner shell's
	on_another_host 'mount -t tmpfs -o nosuid,nodev,noexec,mode=755 tmpfs "$here/source" && exec "$@"'
	edit ".mounts += [{\"destination\": \"/mnt\", \"type\": \"bind\", \"source\": \"$here/source\", \"options\": $1}]"
	script_runs 'while read -r id parent dev root where options rest; do
		[ $where != /mnt ] || echo ",$options,"
	done </proc/self/mountinfo'
	[[ $output == *,nosuid,* && $output == *,nodev,* && $output == *,noexec,* ]] || show
}

@test "case:R10 a bind mount in a user namespace keeps locked flags: bind" {
	locked '["bind"]'
}

@test "case:R10 a bind mount in a user namespace keeps locked flags: ro" {
	locked '["bind", "ro"]'
	[[ $output == *,ro,* ]] || show
}

@test "case:R10 a bind mount in a user namespace keeps locked flags: rbind and rprivate" {
	locked '["rbind", "rprivate", "rw"]'
}

# through_link DIRECTORY: the root's DIRECTORY is a link to one of the host's, and nothing comes of it there
through_link() {
	mkdir "$here/outside"
	rm -rf "${rootfs:?}$1"
	ln -s "$(printf '../%.0s' {1..12})$here/outside" "$rootfs$1"
	run oci_run
	[ -z "$(ls -A "$here/outside")" ]
	! grep -q " $here/outside " /proc/self/mountinfo
}

@test "case:R11 a root whose /dev is a link to outside" {
	use_podman_config
	through_link /dev
}

@test "case:R11 a root whose /proc is a link to outside" {
	through_link /proc
}

@test "case:R11 a root whose mount target is a link to outside" {
	edit '.mounts += [{"destination": "/mnt/new", "type": "tmpfs", "source": "tmpfs"}]'
	through_link /mnt
}

@test "case:R11 a root whose device's directory is a link to outside" {
	edit '.linux.devices = [{"type": "c", "path": "/home/new", "major": 1, "minor": 3}]'
	through_link /home
}

@test "case:R11 a root whose working directory is a link to outside" {
	edit '.process.cwd = "/home/new"'
	through_link /home
}

# as USER: what exec --user makes of it
as() {
	run oci exec --user "$1" "$id" sh -c 'echo $(id -u):$(id -g)'
}

@test "case:R12 exec --user takes numbers, and is an error with what is none and no name, or too great" {
	up_until_told
	as 1000:1000
	says 1000:1000
	for user in 1000x 1000:10x 4294967296 -1 ' 1000' 1000: :1000 nobody-has-this-name; do
		as "$user"
		[[ $status -ne 0 || $output != *:* || $output == 1000:* ]] || show
		if [[ $user != *: && $user != :* ]]; then [ "$status" -ne 0 ] || show; fi
	done
	tell
}

@test "case:R13 a run that is interrupted leaves nothing" {
	mkfifo "$rootfs/home/never"
	script 'echo up >/ready; read -r line </home/never'
	oci run --bundle "$bundle" "$id" </dev/null >/dev/null 2>&1 &
	[ "$(heard)" = up ]
	pid=$(oci_pid)
	kill -TERM $!
	oci_kill KILL || true
	wait $! || true
	until_true gone "$pid"
	oci_delete --force || true
	[ ! -d "$(group_dir memory)" ]
}
