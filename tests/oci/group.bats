#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The control group of a container: linux.cgroupsPath, linux.resources and their device rules, on whatever hierarchies
# there are. What needs no container is in tests/unit/test_group.c.
# shellcheck disable=SC2016,SC2154 # what a container's shell or jq expands; what setup and run assign
load common

# file_of CONTROLLER V1-FILE [V2-FILE]: a control file of the group; "-" is none
file_of() {
	local dir
	dir=$(group_dir "$1")
	if [ -e "$dir/$2" ]; then cat "$dir/$2"; else cat "$dir/${3:-$2}"; fi
}

# on_v1 CONTROLLER
on_v1() {
	[ "$(cgroup_view)" != v2 ] && [ -d "/sys/fs/cgroup/$1" ]
}

# groups_left: directories of the group in any hierarchy
groups_left() {
	find /sys/fs/cgroup -maxdepth 4 -type d -path "*$group*" 2>/dev/null || true
}

@test "group: every process is in it, in each hierarchy, and it goes with the container" {
	up_until_told 'sleep 1000 & true'
	local line pid
	pid=$(oci_pid)
	while IFS=: read -r _ line path; do
		[ "$(cgroup_view)" != v1 ] || [ -n "$line" ] || continue
		[ "$path" = "$group" ] || show
	done <"/proc/$pid/cgroup"
	[ "$(wc -l <"$(group_dir pids)/cgroup.procs")" -eq 2 ]
	oci_delete --force
	[ -z "$(groups_left)" ]
}

@test "group: limits stand in its files" {
	edit '.linux.resources = {"memory": {"limit": 67108864, "reservation": 33554432, "swap": 67108864},
		"cpu": {"shares": 1024, "quota": 50000, "period": 100000}, "pids": {"limit": 32}}'
	up_until_told
	[ "$(file_of memory memory.limit_in_bytes memory.max)" = 67108864 ]
	[ "$(file_of memory memory.soft_limit_in_bytes memory.low)" = 33554432 ]
	[ "$(file_of pids pids.max)" = 32 ]
	if on_v1 cpu; then
		[ "$(file_of cpu cpu.shares) $(file_of cpu cpu.cfs_quota_us) $(file_of cpu cpu.cfs_period_us)" = "1024 50000 100000" ]
	else
		[ "$(file_of cpu - cpu.max)" = "50000 100000" ]
	fi
}

@test "group: the limit of pids is felt" {
	edit '.linux.resources = {"pids": {"limit": 3}}'
	script_runs 'sleep 1 & sleep 1 & sleep 1 & sleep 1 & echo all' || true
	[[ $stderr == *fork* ]]
	[[ $output != *all* ]]
}

@test "group: a memory limit of 512 KiB is enough for true (R1)" {
	edit '.linux.resources = {"memory": {"limit": 524288}}'
	run oci_run
	[ "$status" -eq 0 ] || show
}

@test "group: a memory limit that is too low for anything says so (R1)" {
	edit '.linux.resources = {"memory": {"limit": 4096, "swap": 4096}}'
	run oci_run
	[ "$status" -ne 0 ]
	! runtime_is agentdock-runtime || refused memory limit
	[ -z "$(groups_left)" ]
}

@test "group: a controller that lacks is named, with the key, not as ENOENT (R2)" {
	! [ -d /sys/fs/cgroup/rdma ] || skip "this host has rdma"
	refuses '.linux.resources = {"rdma": {"mlx5_1": {"hcaHandles": 3}}}' linux.resources.rdma.mlx5_1 "rdma controller"
	[ -z "$(groups_left)" ]
}

@test "group: a value that the kernel refuses names key, file and group" {
	refuses '.linux.resources = {"cpu": {"quota": 10}}' linux.resources.cpu.quota "$id" cpu
	[ -z "$(groups_left)" ]
}

@test "group: unified is written to the v2 tree, or refused by its key" {
	if [ "$(cgroup_view)" = v2 ]; then
		edit '.linux.resources = {"unified": {"memory.high": "33554432"}}'
		up_until_told
		[ "$(<"$(group_dir memory)/memory.high")" = 33554432 ]
	else
		refuses '.linux.resources = {"unified": {"memory.high": "33554432"}}' linux.resources.unified.memory.high
	fi
}

@test "group: one that has processes, or is frozen, is not taken (R4)" {
	local dir
	dir=$(group_dir freezer)
	mkdir -p "$dir"
	sleep 1000 3>&- &
	local pid=$!
	echo $pid >"$dir/cgroup.procs"
	run oci_create
	kill $pid
	wait $pid || true
	refused "$(runtime_is agentdock-runtime && echo 'has processes')"
	! runtime_is crun || skip "crun takes one that is frozen"
	if [ -e "$dir/freezer.state" ]; then echo FROZEN >"$dir/freezer.state"; else echo 1 >"$dir/cgroup.freeze"; fi
	run oci_create
	if [ -e "$dir/freezer.state" ]; then echo THAWED >"$dir/freezer.state"; else echo 0 >"$dir/cgroup.freeze"; fi
	refused "$(runtime_is agentdock-runtime && echo frozen)"
}

@test "group: one that an engine has made and left empty is taken" {
	mkdir -p "$(group_dir pids)"
	run oci_run
	[ "$status" -eq 0 ] || show
}

@test "group: groups below it are removed with it (R3)" {
	up_until_told
	mkdir -p "$(group_dir pids)"/{a/b/c,d}
	oci_delete --force
	[ -z "$(groups_left)" ]
}

@test "group: who outlives the first process is ended at once by delete" {
	edit '.linux.namespaces |= map(select(.type != "pid"))'
	up_until_told 'sleep 1000 & true'
	tell
	until_true oci_status_is stopped
	local from=${EPOCHREALTIME/[.,]/}
	oci_delete
	[ $((${EPOCHREALTIME/[.,]/} - from)) -lt 1000000 ]
	[ -z "$(groups_left)" ]
}

@test "group: a cgroupsPath that leads elsewhere is refused" {
	refuses ".linux.cgroupsPath = \"/$id/../other\"" linux.cgroupsPath
	refuses '.linux.cgroupsPath = "/"' linux.cgroupsPath
}

@test "group: a relative cgroupsPath is below our own group" {
	runtime_is agentdock-runtime || skip "each runtime has its own place for it"
	local dir outer
	dir=$(group_dir pids "/$id-outer")
	mkdir "$dir"
	edit '.linux.cgroupsPath = "below"'
	script 'cat /proc/self/cgroup'
	outer="oci() { timeout 20 '$runtime' --root '$store' \"\$@\"; }; echo \$\$ >'$dir/cgroup.procs'; oci run --bundle '$bundle' '$id'"
	run bash -c "$outer"
	[[ $output == *"/$id-outer/below"* ]] || show
	rmdir "$dir"
}

@test "group: only what is allowed of devices can be opened, and a node can be made" {
	edit '.linux.resources = {"devices": [{"allow": false, "access": "rwm"}]}
		| .process.capabilities |= map_values(. + ["CAP_MKNOD"])
		| .mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]'
	script_runs 'mknod /dev/kmsg c 1 11 && echo made; cat /dev/kmsg; echo >/dev/null && echo null'
	[[ $output == $'made\nnull' ]] || show
	[[ $stderr == *"not permitted"* ]] || show
}

@test "group: the last rule that matches a device counts" {
	edit '.linux.resources = {"devices": [{"allow": false, "access": "rwm"},
			{"allow": true, "type": "c", "major": 1, "minor": 11, "access": "rwm"},
			{"allow": false, "type": "c", "major": 1, "minor": 11, "access": "w"}]}
		| .process.capabilities |= map_values(. + ["CAP_MKNOD", "CAP_SYSLOG"])
		| .mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]'
	script_runs 'mknod /dev/kmsg c 1 11; : </dev/kmsg && echo read; (: >/dev/kmsg) || echo not written'
	[[ $output == $'read\nnot written' ]] || show
}

@test "group: exec is in it, and its limits hold for it" {
	edit '.linux.resources = {"pids": {"limit": 20}}'
	up_until_told
	run oci_exec cat /proc/self/cgroup
	[[ $output == *"$group"* ]] || show
	[[ $output != *pids:/$'\n'* ]] || show
}

# writable_group: the container has a cgroup namespace, and its group to write to
writable_group() {
	edit '.linux.namespaces += [{"type": "cgroup"}]
		| .mounts += [{"destination": "/sys", "type": "tmpfs", "source": "tmpfs"},
			{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "nodev"]}]'
}

@test "group: root of a user namespace makes groups below it, and raises no limit of its own" {
	[ "$(cgroup_view)" = v2 ] || skip "no group is given away on v1"
	use_user_namespace
	writable_group
	edit '.linux.resources = {"pids": {"limit": 20}}'
	script_runs 'cd /sys/fs/cgroup && mkdir below && echo $$ >below/cgroup.procs && echo +pids >cgroup.subtree_control &&
		cat below/pids.max; echo max >pids.max || cat pids.max'
	says "max
20"
}

@test "group: it is given to the user of the process, and to nobody where it cannot be written to" {
	writable_group
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	oci_create
	if [ "$(cgroup_view)" = v2 ]; then
		[ "$(stat -c %u:%g "$(group_dir pids)")" = 1000:0 ]
	else
		[ "$(stat -c %u:%g "$(group_dir pids)")" = 0:0 ]
	fi
	oci_delete --force
	edit '.linux.namespaces |= map(select(.type != "cgroup"))'
	oci_create
	[ "$(stat -c %u "$(group_dir pids)")" = 0 ]
}

@test "group: systemd is refused where it does not run, with the way out" {
	runtime_is agentdock-runtime || skip "others have words of their own"
	! [ -d /run/systemd/system ] || skip "systemd runs"
	edit ".linux.cgroupsPath = \"system.slice:test:$id\""
	run oci --systemd-cgroup create --bundle "$bundle" "$id"
	refused systemd --systemd-cgroup
	edit '.linux.cgroupsPath = "/a/b"'
	run oci --systemd-cgroup create --bundle "$bundle" "$id"
	refused linux.cgroupsPath slice:prefix:name
}
