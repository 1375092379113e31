#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "Control groups" of the runtime-spec's config-linux.md but its resources: where a container's group is, and whose.

load linux

# every_controller FUNCTION ARGUMENT...: for each that the runtime may use here
every_controller() {
	local name
	for name in cpu cpuset memory devices freezer blkio pids; do
		[ ! -d "/sys/fs/cgroup/$name" ] || "$1" "$name" "${@:2}"
	done
	[ "$(cgroup_view)" != v2 ] || "$1" memory "${@:2}"
}

# ---- Cgroups Path ----

@test "linux:cgroups-1 an absolute cgroupsPath must be relative to the cgroups mount point" {
	edit ".linux.cgroupsPath = \"/$id/deep/er\""
	oci_create
	every_controller first_pid_in "/$id/deep/er"
}

@test "linux:cgroups-2 a relative cgroupsPath must lead to the same place each time" {
	local first second
	edit ".linux.cgroupsPath = \"$id\""
	oci_create
	first=$(sed 's/^[0-9]*://' "/proc/$(oci_pid)/cgroup")
	oci_delete --force
	oci_create
	second=$(sed 's/^[0-9]*://' "/proc/$(oci_pid)/cgroup")
	[[ $first == *"$id"* && $first == "$second" ]]
}

@test "linux:cgroups-3 an absolute cgroupsPath must lead to the same place each time" {
	oci_create
	every_controller first_pid_in
	oci_delete --force
	oci_create
	every_controller first_pid_in
}

@test "linux:cgroups-4 without cgroupsPath a container runs" {
	edit 'del(.linux.cgroupsPath)'
	script_runs 'echo ran'
	says ran
}

@test "linux:cgroups-5 a cgroupsPath that leads out is an error, or leads nowhere else" {
	# from each tree's mount point this is the host's /
	edit ".linux.cgroupsPath = \"/$id/../../../../../../$id/escaped\""
	run oci_create
	if [ -e "/$id" ]; then
		rm -r "/${id:?}"
		show
	fi
	if runtime_is agentdock-runtime; then refused linux.cgroupsPath; fi
}

@test "linux:cgroups-6 the groups are made if they do not exist, and are gone after delete" {
	oci_create
	every_controller has_group
	oci_delete --force
	every_controller has_no_group
}

has_group() {
	[ -d "$(group_dir "$1")" ]
}

has_no_group() {
	[ ! -d "$(group_dir "$1")" ]
}

@test "linux:cgroups-7 all processes of the container are in its group" {
	mkfifo "$rootfs/home/never"
	up_until_told '{ read -r line </home/never & }'
	every_controller two_are_in
	[ "$(oci_exec cat /proc/self/cgroup | sort)" = "$(oci_exec cat /proc/1/cgroup | sort)" ]
	tell
}

two_are_in() {
	[ "$(wc -l <"$(group_dir "$1")/cgroup.procs")" -eq 2 ]
}

# ---- fit for purpose ----

# second_container: one whose group is that of the first
second_container() {
	id=$id-second
	make_bundle "$here/second"
}

@test "linux:cgroups-fit-1 create into a group that is not empty must be an error if that is checked" {
	local first=$id
	oci_create
	second_container
	run oci_create
	if runtime_is agentdock-runtime; then refused "$group"; fi
	id=$first
	[ "$(oci_state .status)" = created ]
}

@test "linux:cgroups-fit-2 create into a frozen group must be an error, at once" {
	local dir
	dir=$(group_dir freezer)
	mkdir "$dir"
	if [ "$(cgroup_view)" = v2 ]; then echo 1 >"$dir/cgroup.freeze"; else echo FROZEN >"$dir/freezer.state"; fi
	OCI_TIMEOUT=8 run oci_create
	if [ "$(cgroup_view)" = v2 ]; then echo 0 >"$dir/cgroup.freeze"; else echo THAWED >"$dir/freezer.state"; fi
	refused
}

@test "linux:cgroups-fit-3 exec into a paused container must be an error, at once" {
	up_until_told
	oci pause "$id"
	OCI_TIMEOUT=8 run oci_exec true
	oci resume "$id"
	refused
	tell
}

@test "case:R4 kill and delete of a paused container end" {
	up_until_told
	oci pause "$id"
	oci_delete --force
	run oci_state
	refused
}

@test "case:R1 a container with a limit of 512 KiB runs true, or is told that the limit is too low" {
	needs_controller memory
	edit '.linux.resources.memory.limit = 524288'
	run oci_run
	if runtime_is agentdock-runtime; then
		[ "$status" -eq 0 ] || show
	elif [ "$status" -ne 0 ]; then
		[[ $output == *memory* ]] || show
	fi
}

@test "case:R1 a limit too low for anything says so" {
	needs_controller memory
	edit '.linux.resources.memory.limit = 4096'
	OCI_TIMEOUT=10 run oci_run
	refused memory
}

@test "case:R3 a group with groups below it is removed with them" {
	oci_create
	mkdir -p "$(group_dir memory)/below/deep"
	oci_delete --force
	[ ! -d "$(group_dir memory)" ]
}

# ---- Cgroup ownership ----

# owned MOUNT-OPTIONS: a container of a user namespace and a cgroup namespace, created
owned() {
	use_podman_config
	use_user_namespace
	edit "(.mounts[] | select(.destination == \"/sys/fs/cgroup\") | .options) = $1"
	oci_create
}

@test "linux:ownership-1 with v1 the owner of the group should not be changed" {
	needs_cgroup v1 hybrid
	owned '["nosuid", "noexec", "nodev", "rw"]'
	[ "$(stat -c %u "$(group_dir memory)" "$(group_dir memory)/cgroup.procs" | uniq)" = 0 ]
}

@test "linux:ownership-2 with v2 and a writable mount the owner is changed, of what may be delegated alone" {
	needs_cgroup v2
	local dir file
	owned '["nosuid", "noexec", "nodev", "rw"]'
	dir=$(group_dir memory)
	[ "$(stat -c %u "$dir" "$dir/cgroup.procs" "$dir/cgroup.threads" | uniq)" = 100000 ]
	for file in "$dir"/*; do
		grep -qx "${file##*/}" /sys/kernel/cgroup/delegate || [ ! -f "$file" ] || [ "$(stat -c %u "$file")" = 0 ]
	done
}

@test "linux:ownership-3 with a read-only mount the owner should not be changed" {
	owned '["nosuid", "noexec", "nodev", "ro"]'
	[ "$(stat -c %u "$(group_dir memory)")" = 0 ]
}

@test "linux:ownership-4 files that may be delegated and do not exist must not be an error" {
	needs_cgroup v2
	[ -e /sys/kernel/cgroup/delegate ]
	owned '["nosuid", "noexec", "nodev", "rw"]'
	[ "$(oci_state .status)" = created ]
}

@test "linux:ownership-5 without a list of the kernel's, cgroup.procs, cgroup.subtree_control and cgroup.threads are it" {
	needs_cgroup v2
	local dir
	# shellcheck disable=SC2016 # the inner shell's
	on_another_host 'mount -t tmpfs tmpfs /sys/kernel/cgroup && exec "$@"'
	owned '["nosuid", "noexec", "nodev", "rw"]'
	dir=$(group_dir memory)
	[ "$(stat -c %u "$dir" "$dir"/cgroup.{procs,subtree_control,threads} | uniq)" = 100000 ]
	[ "$(stat -c %u "$dir/memory.max")" = 0 ]
}
