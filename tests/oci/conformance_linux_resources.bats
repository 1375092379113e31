#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# linux.resources of the runtime-spec's config-linux.md but its devices: each key, as the files of the container's group
# say it, with control groups of the first version and of the second.

load linux

# ---- memory ----

@test "key:linux.resources.memory.limit" {
	needs_controller memory
	given '{"memory": {"limit": 33554432}}'
	holds memory memory.limit_in_bytes=33554432 memory.max=33554432
}

@test "key:linux.resources.memory.limit: whoever takes more is killed" {
	needs_controller memory
	edit '.linux.resources.memory = {"limit": 16777216, "swap": 16777216}'
	script 'dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null'
	run oci_run
	[ "$status" -eq 137 ] || show
}

@test "key:linux.resources.memory.limit: -1 is unlimited" {
	needs_controller memory
	given '{"memory": {"limit": -1}}'
	holds memory memory.limit_in_bytes=9223372036854771712 memory.max=max
}

@test "key:linux.resources.memory.reservation" {
	needs_controller memory
	given '{"memory": {"reservation": 16777216}}'
	holds memory memory.soft_limit_in_bytes=16777216 memory.low=16777216
}

@test "key:linux.resources.memory.swap" {
	needs_controller memory
	given '{"memory": {"limit": 33554432, "swap": 67108864}}'
	holds memory memory.memsw.limit_in_bytes=67108864 memory.swap.max=33554432
}

@test "key:linux.resources.memory.swap: -1 is unlimited" {
	needs_controller memory
	given '{"memory": {"limit": 33554432, "swap": -1}}'
	holds memory memory.memsw.limit_in_bytes=9223372036854771712 memory.swap.max=max
}

@test "key:linux.resources.memory.swap: as much as the limit is no swap" {
	needs_controller memory
	given '{"memory": {"limit": 33554432, "swap": 33554432}}'
	holds memory memory.memsw.limit_in_bytes=33554432 memory.swap.max=0
}

# A limit of the kernel's memory is no more to be had: Linux 5.16 dropped it.
@test "key:linux.resources.memory.kernel: unlimited, or refused" {
	needs_controller memory
	edit '.linux.resources.memory.kernel = 16777216'
	run oci_create
	if runtime_is agentdock-runtime; then refused linux.resources.memory.kernel; fi
}

@test "key:linux.resources.memory.kernel: -1 asks for nothing" {
	needs_controller memory
	given '{"memory": {"kernel": -1}}'
	[ "$(oci_state .status)" = created ]
}

@test "key:linux.resources.memory.kernelTCP" {
	needs_controller memory
	needs_cgroup v1 hybrid
	given '{"memory": {"kernelTCP": 16777216}}'
	holds memory memory.kmem.tcp.limit_in_bytes=16777216 none=
}

@test "key:linux.resources.memory.kernelTCP: refused where there is no such limit" {
	needs_cgroup v2
	refuses '.linux.resources.memory.kernelTCP = 16777216' linux.resources.memory.kernelTCP
}

@test "key:linux.resources.memory.swappiness" {
	needs_controller memory
	needs_cgroup v1 hybrid
	given '{"memory": {"swappiness": 23}}'
	holds memory memory.swappiness=23 none=
}

@test "key:linux.resources.memory.swappiness: refused where there is no such setting" {
	needs_cgroup v2
	refuses '.linux.resources.memory.swappiness = 23' linux.resources.memory.swappiness
}

@test "key:linux.resources.memory.swappiness: from 0 to 100" {
	refuses '.linux.resources.memory.swappiness = 101' linux.resources.memory.swappiness
}

@test "key:linux.resources.memory.disableOOMKiller" {
	needs_controller memory
	needs_cgroup v1 hybrid
	given '{"memory": {"limit": 33554432, "disableOOMKiller": true}}'
	holds memory memory.oom_control='oom_kill_disable 1*' none=
}

@test "key:linux.resources.memory.disableOOMKiller: false leaves it" {
	needs_controller memory
	needs_cgroup v1 hybrid
	given '{"memory": {"limit": 33554432, "disableOOMKiller": false}}'
	holds memory memory.oom_control='oom_kill_disable 0*' none=
}

@test "key:linux.resources.memory.disableOOMKiller: refused where there is no such setting" {
	needs_cgroup v2
	refuses '.linux.resources.memory.disableOOMKiller = true' linux.resources.memory.disableOOMKiller
}

@test "key:linux.resources.memory.useHierarchy" {
	needs_controller memory
	needs_cgroup v1 hybrid
	given '{"memory": {"useHierarchy": true}}'
	holds memory memory.use_hierarchy=1 none=
}

@test "key:linux.resources.memory.useHierarchy: false is refused where a hierarchy is all there is" {
	runtime_is agentdock-runtime || skip "what others do with it cannot be seen"
	refuses '.linux.resources.memory.useHierarchy = false' linux.resources.memory.useHierarchy
}

@test "key:linux.resources.memory.checkBeforeUpdate: a limit below what is used must be rejected" {
	needs_controller memory
	edit '.mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "tmpfs"}]'
	up_until_told 'dd if=/dev/zero of=/mnt/used bs=1M count=24 2>/dev/null'
	run update '{"memory": {"limit": 8388608, "checkBeforeUpdate": true}}'
	refused
	[ "$(oci_state .status)" = running ]
	tell
}

# update JSON
update() {
	echo "$1" >"$here/resources"
	oci update --resources "$here/resources" "$id"
}

# ---- cpu ----

@test "key:linux.resources.cpu.shares" {
	needs_controller cpu
	given '{"cpu": {"shares": 512}}'
	# two formulas are in use
	holds cpu cpu.shares=512 cpu.weight='@(20|59)'
}

@test "key:linux.resources.cpu.quota" {
	needs_controller cpu
	given '{"cpu": {"quota": 50000}}'
	holds cpu cpu.cfs_quota_us=50000 cpu.max='50000 100000'
}

@test "key:linux.resources.cpu.quota: -1 is unlimited" {
	needs_controller cpu
	given '{"cpu": {"quota": -1, "period": 50000}}'
	holds cpu cpu.cfs_quota_us=-1 cpu.max='max 50000'
}

@test "key:linux.resources.cpu.period" {
	needs_controller cpu
	given '{"cpu": {"quota": 50000, "period": 200000}}'
	holds cpu cpu.cfs_period_us=200000 cpu.max='50000 200000'
}

@test "key:linux.resources.cpu.burst" {
	needs_controller cpu
	given '{"cpu": {"quota": 50000, "period": 100000, "burst": 20000}}'
	holds cpu cpu.cfs_burst_us=20000 cpu.max.burst=20000
}

@test "linux:cpu-1 burst must be no larger than a positive quota, or may be an error" {
	refuses '.linux.resources.cpu = {"quota": 50000, "period": 100000, "burst": 60000}' linux.resources.cpu.burst
}

@test "key:linux.resources.cpu.realtimePeriod" {
	needs "cpu.rt_period_us" test -e /sys/fs/cgroup/cpu/cpu.rt_period_us
	given '{"cpu": {"realtimePeriod": 500000}}'
	holds cpu cpu.rt_period_us=500000 none=
}

@test "key:linux.resources.cpu.realtimeRuntime" {
	needs "cpu.rt_runtime_us" test -e /sys/fs/cgroup/cpu/cpu.rt_runtime_us
	given '{"cpu": {"realtimePeriod": 1000000, "realtimeRuntime": 1000}}'
	holds cpu cpu.rt_runtime_us=1000 none=
}

@test "key:linux.resources.cpu.realtimeRuntime: refused where there is no such setting" {
	needs_cgroup v2
	refuses '.linux.resources.cpu.realtimeRuntime = 1000' linux.resources.cpu.realtimeRuntime
}

@test "key:linux.resources.cpu.cpus" {
	needs_controller cpuset
	given '{"cpu": {"cpus": "0"}}'
	holds cpuset cpuset.cpus=0 cpuset.cpus=0
	[ "$(awk '$1 == "Cpus_allowed_list:" { print $2 }' "/proc/$(oci_pid)/status")" = 0 ]
}

@test "key:linux.resources.cpu.mems" {
	needs_controller cpuset
	given '{"cpu": {"cpus": "0", "mems": "0"}}'
	holds cpuset cpuset.mems=0 cpuset.mems=0
}

@test "key:linux.resources.cpu.cpus: of a group that is deeper" {
	needs_controller cpuset
	edit ".linux.cgroupsPath = \"/$id/deep/er\" | .linux.resources.cpu.cpus = \"0\""
	oci_create
	[ "$(cat "$(group_dir cpuset "/$id/deep/er")/cpuset.cpus")" = 0 ]
}

@test "key:linux.resources.cpu.cpus: one that is not there is an error" {
	needs_controller cpuset
	refuses '.linux.resources.cpu.cpus = "4000"' linux.resources.cpu.cpus
}

@test "key:linux.resources.cpu.idle" {
	needs_controller cpu
	given '{"cpu": {"idle": 1}}'
	holds cpu cpu.idle=1 cpu.idle=1
}

# ---- blockIO ----

# throttled KEY V1-FILE V2-KEY: a rate, for a disk
throttled() {
	needs_controller "$([ "$(cgroup_view)" = v2 ] && echo io || echo blkio)"
	a_disk
	given "{\"blockIO\": {\"$1\": [{\"major\": $major, \"minor\": $minor, \"rate\": 1048576}]}}"
	holds blkio "blkio.throttle.$2=$disk 1048576" "io.max=$disk *$3=1048576*"
}

@test "key:linux.resources.blockIO.throttleReadBpsDevice" {
	throttled throttleReadBpsDevice read_bps_device rbps
}

@test "key:linux.resources.blockIO.throttleWriteBpsDevice" {
	throttled throttleWriteBpsDevice write_bps_device wbps
}

@test "key:linux.resources.blockIO.throttleReadIOPSDevice" {
	throttled throttleReadIOPSDevice read_iops_device riops
}

@test "key:linux.resources.blockIO.throttleWriteIOPSDevice" {
	throttled throttleWriteIOPSDevice write_iops_device wiops
}

@test "key:linux.resources.blockIO.throttleReadBpsDevice: a device that is not there is an error" {
	refuses '.linux.resources.blockIO.throttleReadBpsDevice = [{"major": 4000, "minor": 1, "rate": 1}]' \
		linux.resources.blockIO.throttleReadBpsDevice
}

# has_weights: of the schedulers that know them, bfq alone is there in today's kernels
has_weights() {
	local dir
	dir=$(group_dir blkio "/$id-look")
	mkdir "$dir"
	ls "$dir" | grep -qE "^(blkio|io)(\.bfq)?\.weight$"
	set -- $?
	rmdir "$dir"
	return "$1"
}

@test "key:linux.resources.blockIO.weight" {
	needs "weights of block devices" has_weights
	given '{"blockIO": {"weight": 500}}'
	if has_file blkio blkio.weight || has_file blkio io.weight; then
		holds blkio blkio.weight=500 'io.weight=default *'
	else
		holds blkio blkio.bfq.weight=500 'io.bfq.weight=*500*'
	fi
}

@test "key:linux.resources.blockIO.weightDevice.weight" {
	needs "weights of block devices" has_weights
	a_disk
	needs "the scheduler bfq for $disk" grep -q '\[bfq\]' "/sys/dev/block/$disk/queue/scheduler"
	given "{\"blockIO\": {\"weightDevice\": [{\"major\": $major, \"minor\": $minor, \"weight\": 500}]}}"
	holds blkio "blkio.bfq.weight_device=*$disk 500*" "io.bfq.weight=*$disk 500*"
}

@test "key:linux.resources.blockIO.weightDevice.weight: an error where the disk's scheduler knows none" {
	a_disk
	! grep -q '\[bfq\]' "/sys/dev/block/$disk/queue/scheduler" || skip "it knows them"
	refuses ".linux.resources.blockIO.weightDevice = [{\"major\": $major, \"minor\": $minor, \"weight\": 500}]" \
		linux.resources.blockIO.weightDevice
}

@test "linux:blockIO-1 weightDevice: at least one of weight and leafWeight must be there" {
	a_disk
	refuses ".linux.resources.blockIO.weightDevice = [{\"major\": $major, \"minor\": $minor}]" \
		'linux.resources.blockIO.weightDevice[0]'
}

# CFQ and its leaf weights left Linux with 5.0.
@test "key:linux.resources.blockIO.leafWeight: refused where there is no such setting" {
	refuses '.linux.resources.blockIO.leafWeight = 300' linux.resources.blockIO.leafWeight
}

@test "key:linux.resources.blockIO.weightDevice.leafWeight: refused where there is no such setting" {
	a_disk
	refuses ".linux.resources.blockIO.weightDevice = [{\"major\": $major, \"minor\": $minor, \"leafWeight\": 300}]" \
		linux.resources.blockIO.weightDevice
}

# required LIST MEMBER: an entry of this list of blockIO without it
required() {
	refuses ".linux.resources.blockIO = {} | .linux.resources.blockIO.$1 = [{\"major\": 8, \"minor\": 0, \"rate\": 1, \"weight\": 10} | del(.$2)]" \
		"linux.resources.blockIO.$1[0].$2"
}

@test "linux:blockIO-2 weightDevice: major is required" {
	required weightDevice major
}

@test "linux:blockIO-3 weightDevice: minor is required" {
	required weightDevice minor
}

@test "linux:blockIO-4 throttle devices: major is required" {
	required throttleReadBpsDevice major
	required throttleReadIOPSDevice major
}

@test "linux:blockIO-5 throttle devices: minor is required" {
	required throttleWriteBpsDevice minor
	required throttleWriteIOPSDevice minor
}

@test "linux:blockIO-6 throttle devices: rate is required" {
	required throttleReadBpsDevice rate
	required throttleReadIOPSDevice rate
}

# ---- hugepageLimits ----

# a_page_size: sets $size, of huge pages that this kernel has
a_page_size() {
	local dir kilobytes
	needs_controller hugetlb
	for dir in /sys/kernel/mm/hugepages/hugepages-*kB; do
		kilobytes=${dir##*-} kilobytes=${kilobytes%kB}
		size=${kilobytes}KB
		[ "$kilobytes" -lt 1024 ] || size=$((kilobytes / 1024))MB
		[ "$kilobytes" -lt 1048576 ] || size=$((kilobytes / 1048576))GB
		[ ! -d "$dir" ] || return 0
	done
	skip "this host lacks huge pages"
}

@test "key:linux.resources.hugepageLimits" {
	a_page_size
	given "{\"hugepageLimits\": [{\"pageSize\": \"$size\", \"limit\": 2147483648}]}"
	if has_file hugetlb "hugetlb.$size.rsvd.max" || has_file hugetlb "hugetlb.$size.rsvd.limit_in_bytes"; then
		holds hugetlb "hugetlb.$size.rsvd.limit_in_bytes=2147483648" "hugetlb.$size.rsvd.max=2147483648"
	else
		holds hugetlb "hugetlb.$size.limit_in_bytes=2147483648" "hugetlb.$size.max=2147483648"
	fi
}

@test "linux:hugepageLimits-1 pageSize is required" {
	refuses '.linux.resources.hugepageLimits = [{"limit": 0}]' 'linux.resources.hugepageLimits[0].pageSize'
}

@test "linux:hugepageLimits-2 limit is required" {
	refuses '.linux.resources.hugepageLimits = [{"pageSize": "2MB"}]' 'linux.resources.hugepageLimits[0].limit'
}

@test "linux:hugepageLimits-3 pageSize must be one of the kernel's" {
	refuses '.linux.resources.hugepageLimits = [{"pageSize": "3MB", "limit": 0}]' linux.resources.hugepageLimits
}

@test "linux:hugepageLimits-4 without the controller it is an error" {
	! has_controller hugetlb || skip "a host without the controller hugetlb"
	refuses '.linux.resources.hugepageLimits = [{"pageSize": "2MB", "limit": 0}]' linux.resources.hugepageLimits
}

# ---- network ----

@test "key:linux.resources.network.classID" {
	needs_controller net_cls
	given '{"network": {"classID": 1048577}}'
	holds net_cls net_cls.classid=1048577 none=
}

@test "key:linux.resources.network.classID: refused without the controller" {
	! has_controller net_cls || skip "a host without the controller net_cls"
	refuses '.linux.resources.network.classID = 1048577' linux.resources.network.classID
}

@test "key:linux.resources.network.priorities" {
	needs_controller net_prio
	given '{"network": {"priorities": [{"name": "lo", "priority": 5}]}}'
	holds net_prio net_prio.ifpriomap='*lo 5*' none=
}

@test "key:linux.resources.network.priorities: refused without the controller" {
	! has_controller net_prio || skip "a host without the controller net_prio"
	refuses '.linux.resources.network.priorities = [{"name": "lo", "priority": 5}]' linux.resources.network.priorities
}

@test "linux:network-1 priorities: name is required" {
	refuses '.linux.resources.network.priorities = [{"priority": 5}]' 'linux.resources.network.priorities[0].name'
}

@test "linux:network-2 priorities: priority is required" {
	refuses '.linux.resources.network.priorities = [{"name": "lo"}]' 'linux.resources.network.priorities[0].priority'
}

# ---- pids ----

@test "key:linux.resources.pids.limit" {
	needs_controller pids
	given '{"pids": {"limit": 37}}'
	holds pids pids.max=37 pids.max=37
}

@test "key:linux.resources.pids.limit: no more processes than that" {
	needs_controller pids
	edit '.linux.resources.pids.limit = 3'
	script '(:) && { sleep 0 | sleep 0 | sleep 0 | sleep 0; }'
	run oci_run
	[[ $output == *fork* ]] || show
}

@test "key:linux.resources.pids.limit: -1 is unlimited" {
	needs_controller pids
	given '{"pids": {"limit": -1}}'
	holds pids pids.max=max pids.max=max
}

# ---- rdma ----

@test "key:linux.resources.rdma.hcaHandles and hcaObjects" {
	needs_controller rdma
	given '{"rdma": {"mlx5_1": {"hcaHandles": 3, "hcaObjects": 10000}}}'
	holds rdma rdma.max='mlx5_1 hca_handle=3 hca_object=10000' rdma.max='mlx5_1 hca_handle=3 hca_object=10000'
}

@test "key:linux.resources.rdma: refused without the controller" {
	! has_controller rdma || skip "a host without the controller rdma"
	refuses '.linux.resources.rdma = {"mlx5_1": {"hcaHandles": 3}}' linux.resources.rdma
}

@test "linux:rdma-1 at least one of hcaHandles and hcaObjects must be there" {
	refuses '.linux.resources.rdma = {"mlx5_1": {}}' linux.resources.rdma
}

# ---- unified ----

@test "key:linux.resources.unified" {
	needs_cgroup v2
	given '{"unified": {"memory.high": "33554432", "pids.max": "77"}}'
	holds memory none= memory.high=33554432
	holds pids none= pids.max=77
}

@test "linux:unified-1 needed controllers must be enabled for the group" {
	needs_cgroup v2
	edit ".linux.cgroupsPath = \"/$id/deep/er\" | .linux.resources.unified = {\"pids.max\": \"77\"}"
	oci_create
	[ "$(cat "/sys/fs/cgroup/$id/deep/er/pids.max")" = 77 ]
}

@test "linux:unified-2 what is unknown to the runtime must still be written" {
	needs_cgroup v2 hybrid
	given '{"unified": {"cgroup.max.descendants": "19"}}'
	[ "$(cat "$(group_dir none)/cgroup.max.descendants")" = 19 ]
}

@test "linux:unified-3 a controller that is not there must be an error" {
	refuses '.linux.resources.unified = {"nothing.max": "1"}' linux.resources.unified nothing
}

@test "linux:unified-4 a file that is not there must be an error" {
	refuses '.linux.resources.unified = {"cgroup.nothing": "1"}' linux.resources.unified cgroup.nothing
}

@test "linux:unified-5 a value that the kernel does not take must be an error" {
	refuses '.linux.resources.unified = {"cgroup.max.descendants": "many"}' linux.resources.unified cgroup.max.descendants
}

@test "linux:unified-6 a key is a file's name and no path" {
	refuses '.linux.resources.unified = {"../cgroup.max.descendants": "1"}' linux.resources.unified
}

@test "linux:unified-7 without a v2 tree it is an error" {
	needs_cgroup v1
	refuses '.linux.resources.unified = {"memory.high": "33554432"}' linux.resources.unified
}

@test "linux:unified-8 a controller that is in a v1 tree must be an error" {
	needs_cgroup hybrid
	refuses '.linux.resources.unified = {"memory.high": "33554432"}' linux.resources.unified memory
}
