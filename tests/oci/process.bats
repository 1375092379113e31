#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the container's process is: capabilities, user, limits, priorities, labels; and sysctls and devices of its network.
load common

capabilities() {
	edit ".process.capabilities = $1"
}

sets() {
	script_runs 'while read -r key set; do case $key in Cap*) echo -n "$key$set ";; esac; done </proc/self/status'
}

@test "process: five sets, of root" {
	capabilities '{"bounding": ["CAP_CHOWN", "CAP_KILL"], "permitted": ["CAP_CHOWN", "CAP_KILL"],
		"effective": ["CAP_CHOWN"], "inheritable": ["CAP_KILL"], "ambient": []}'
	sets
	# to root, exec gives all of the bounding set
	[ "$output" = "CapInh:0000000000000020 CapPrm:0000000000000021 CapEff:0000000000000021 CapBnd:0000000000000021 CapAmb:0000000000000000 " ]
}

@test "process: ambient capabilities, of another user, in a user namespace too" {
	local all='["CAP_KILL"]' user
	for user in no yes; do
		[ $user = no ] || use_user_namespace
		edit '.process.user = {"uid": 1000, "gid": 1000}'
		capabilities "{\"bounding\": [\"CAP_KILL\", \"CAP_CHOWN\"], \"permitted\": $all, \"effective\": $all,
			\"inheritable\": $all, \"ambient\": $all}"
		sets
		[ "$output" = "CapInh:0000000000000020 CapPrm:0000000000000020 CapEff:0000000000000020 CapBnd:0000000000000021 CapAmb:0000000000000020 " ]
	done
}

@test "process: no capabilities where none are named" {
	edit 'del(.process.capabilities)'
	sets
	[[ ! $output =~ [1-9a-f]\  ]]
}

@test "process: a name that is no capability is warned of, one that contradicts another set is refused" {
	runtime_is agentdock-runtime || skip "our own words"
	capabilities '{"bounding": ["CAP_NO_SUCH"]}'
	script_runs true
	[[ $stderr == *process.capabilities.bounding*CAP_NO_SUCH* ]]
	capabilities '{"permitted": ["CAP_KILL"], "effective": ["CAP_KILL", "CAP_CHOWN"]}'
	run oci_run
	refused process.capabilities.effective CAP_CHOWN
	capabilities '{"permitted": ["CAP_KILL"], "ambient": ["CAP_KILL"]}'
	script_runs true
	[[ $stderr == *process.capabilities.ambient*CAP_KILL* ]]
}

@test "process: user, groups, umask" {
	script_runs 'umask'
	[ "$output" = 0022 ]
	edit '.process.user = {"uid": 1000, "gid": 7, "additionalGids": [5, 6], "umask": 63}'
	script_runs 'id -u; id -g; id -G; umask'
	[ "$output" = $'1000\n7\n7 5 6\n0077' ]
}

@test "process: limits, priorities, personality" {
	edit '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 64, "hard": 128}]
		| .process.oomScoreAdj = 500
		| .process.scheduler = {"policy": "SCHED_BATCH", "nice": 5}
		| .linux.personality = {"domain": "LINUX32"}'
	script_runs 'ulimit -Sn; ulimit -Hn; cat /proc/self/oom_score_adj; set -- $(cat /proc/self/stat); echo ${19} ${41}
		busybox uname -m'
	says "$(printf '%s\n' 64 128 500 '5 3' "$(setarch linux32 uname -m 2>/dev/null || uname -m)")"
}

@test "process: a limit above what the runtime may set, and priorities that cannot be" {
	runtime_is agentdock-runtime || skip "our own words"
	edit '.process.scheduler = {"policy": "SCHED_FIFO", "priority": 1000}'
	run oci_run
	refused process.scheduler priority
	edit 'del(.process.scheduler) | .linux.memoryPolicy = {"mode": "MPOL_BIND", "nodes": "1000"}'
	run oci_run
	if [ -e /proc/self/numa_maps ]; then refused linux.memoryPolicy nodes; else refused linux.memoryPolicy CONFIG_NUMA; fi
}

@test "process: what this host lacks is refused by name" {
	runtime_is agentdock-runtime || skip "our own words"
	local key
	if [ ! -e /sys/module/apparmor ]; then
		edit '.process.apparmorProfile = "unconfined"'
		script_runs true
		edit '.process.apparmorProfile = "some"'
		run oci_run
		refused process.apparmorProfile
	fi
	if [ ! -e /sys/fs/selinux/enforce ]; then
		edit 'del(.process.apparmorProfile) | .process.selinuxLabel = "a:b:c:d"'
		run oci_run
		refused process.selinuxLabel
	fi
	if [ ! -e /sys/fs/resctrl/schemata ]; then
		edit 'del(.process.selinuxLabel) | .linux.intelRdt = {"closID": "some"}'
		run oci_run
		refused linux.intelRdt resctrl
	fi
	[ ! -e "$store/$id" ]
}

# ---- namespaces ----

@test "sysctl: those of the container's own namespaces, with both separators" {
	edit '.linux.namespaces += [{"type": "network"}]
		| .linux.sysctl = {"net.ipv4.ip_forward": "1", "net/ipv4/conf/lo/forwarding": "0", "kernel.shmmax": "12345",
			"fs.mqueue.msg_max": "7"}'
	script_runs 'cat /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/shmmax /proc/sys/fs/mqueue/msg_max'
	[ "$output" = $'1\n12345\n7' ]
}

@test "sysctl: none of the host's" {
	local name
	for name in kernel.pid_max kernel/pid_max vm.swappiness fs.file-max net.ipv4.ip_forward kernel.hostname; do
		edit ".linux.sysctl = {\"$name\": \"1\"}"
		run oci_run
		refused "$name"
	done
}

@test "network devices: moved, renamed, with their addresses, up" {
	runtime_is agentdock-runtime || skip "newer than the others"
	local name=oci$BASHPID
	ip link add "$name" type veth peer name "$name.p" 2>/dev/null || skip "no devices of veth"
	ip addr add 192.0.2.7/24 dev "$name"
	edit ".linux.namespaces += [{\"type\": \"network\"}] | .linux.netDevices = {\"$name\": {\"name\": \"inside0\"}}"
	script_runs 'busybox ip addr show inside0' || {
		ip link del "$name"
		return 1
	}
	[[ $output == *UP*"192.0.2.7/24"* ]]
	run ip link show "$name"
	[ "$status" -ne 0 ]
	run oci_run
	refused "linux.netDevices[\"$name\"]"
}
