#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is left of the runtime-spec's config-linux.md: network devices, sysctl, the root's propagation, masked and read-only
# paths, the mount label, the personality, the memory policy and Intel RDT.

load linux

# ---- Network Devices ----

# with_veth: the runtime is in a network namespace of its own, with one end of a pair of interfaces, named given0, with
# addresses
with_veth() {
	needs "interfaces of type veth" veth_works
	edit '.linux.namespaces += [{"type": "network"}]'
	cat >"$here/veth" <<-'END'
		ip link set lo up
		ip link add given0 type veth peer name other0
		ip link set other0 up
		ip address add 10.9.8.7/24 dev given0
		ip address add fd09::7/64 dev given0 nodad
		ip link set given0 mtu 1400
		exec "$@"
	END
	# shellcheck disable=SC2016 # the inner shell's
	on_another_host 'exec unshare -n sh "$here/veth" "$@"'
}

veth_works() {
	unshare -n ip link add given0 type veth peer name other0 2>/dev/null
}

# interfaces: of the container, one a line: its name, flags, mtu
interfaces='for dir in /sys/class/net/*; do echo ${dir##*/} $(cat $dir/mtu); done'

with_sys() {
	edit '.mounts += [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]}]'
}

@test "key:linux.netDevices: the device is in the container, under its own name" {
	with_veth
	with_sys
	edit '.linux.netDevices = {"given0": {}}'
	script_runs "$interfaces"
	[[ $output == *'given0 1400'* ]] || show
}

@test "key:linux.netDevices.name: the device is in the container, under this name" {
	with_veth
	with_sys
	edit '.linux.netDevices = {"given0": {"name": "eth7"}}'
	script_runs "$interfaces"
	[[ $output == *'eth7 1400'* && $output != *given0* ]] || show
}

@test "linux:netDevices-1 permanent addresses of global scope must be preserved" {
	with_veth
	edit '.linux.netDevices = {"given0": {"name": "eth7"}}'
	script_runs 'ip -4 -o address show eth7; ip -6 -o address show eth7'
	[[ $output == *10.9.8.7/24* && $output == *fd09::7/64* ]] || show
}

@test "linux:netDevices-2 the device must be up" {
	with_veth
	edit '.linux.netDevices = {"given0": {}}'
	script_runs 'ip -o link show given0'
	[[ $output == *[\<,]UP[,\>]* ]] || show
}

@test "linux:netDevices-3 a name that the container has already must be an error" {
	with_veth
	refuses '.linux.netDevices = {"given0": {"name": "lo"}}' linux.netDevices given0
}

@test "linux:netDevices-4 a name with %d must be given a number" {
	with_veth
	with_sys
	edit '.linux.netDevices = {"given0": {"name": "eth%d"}}'
	script_runs "$interfaces"
	[[ $output == *'eth0 1400'* ]] || show
}

@test "linux:netDevices-7 the number that %d is given must be free" {
	with_veth
	with_sys
	printf 'ip link add eth0 type veth peer name other1\nip link set eth0 mtu 1410\n' >"$here/more"
	sed -i "/mtu 1400/r $here/more" "$here/veth"
	edit '.linux.netDevices = {"eth0": {}, "given0": {"name": "eth%d"}}'
	script_runs "$interfaces"
	[[ $output == *'eth0 1410'* && $output == *'eth1 1400'* ]] || show
}

@test "linux:netDevices-5 a device that is not there is an error" {
	edit '.linux.namespaces += [{"type": "network"}]'
	refuses '.linux.netDevices = {"none0": {}}' linux.netDevices none0
}

@test "linux:netDevices-6 without a network namespace of the container's it is an error" {
	refuses '.linux.netDevices = {"lo": {}}' linux.netDevices
}

# ---- Sysctl ----

@test "key:linux.sysctl: of the network namespace" {
	edit '.linux.namespaces += [{"type": "network"}] | .linux.sysctl = {"net.ipv4.ip_forward": "1", "net.core.somaxconn": "256"}'
	script_runs 'cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/core/somaxconn'
	says $'1\n256'
}

@test "key:linux.sysctl: of the ipc namespace" {
	edit '.linux.sysctl = {"kernel.msgmax": "4242", "fs.mqueue.msg_max": "9"}'
	script_runs 'cat /proc/sys/kernel/msgmax /proc/sys/fs/mqueue/msg_max'
	says $'4242\n9'
}

@test "linux:sysctl-1 what is the whole host's is an error, and is left as it is" {
	local before
	before=$(</proc/sys/vm/swappiness)
	refuses '.linux.sysctl = {"vm.swappiness": "1"}' linux.sysctl vm.swappiness
	[ "$(</proc/sys/vm/swappiness)" = "$before" ]
}

@test "linux:sysctl-2 what is of the network is an error without a namespace of that type" {
	local before
	before=$(</proc/sys/net/core/somaxconn)
	refuses '.linux.sysctl = {"net.core.somaxconn": "255"}' linux.sysctl net.core.somaxconn
	[ "$(</proc/sys/net/core/somaxconn)" = "$before" ]
}

@test "linux:sysctl-3 what is of ipc is an error without a namespace of that type" {
	no_new ipc
	refuses '.linux.sysctl = {"kernel.msgmax": "4242"}' linux.sysctl kernel.msgmax
}

@test "linux:sysctl-4 a value that the kernel does not take is an error" {
	refuses '.linux.sysctl = {"kernel.msgmax": "many"}' kernel.msgmax
}

@test "linux:sysctl-5 a name that the kernel does not have is an error" {
	edit '.linux.namespaces += [{"type": "network"}]'
	refuses '.linux.sysctl = {"net.ipv4.nothing": "1"}' net.ipv4.nothing
}

@test "linux:sysctl-6 a name that leads elsewhere is an error" {
	edit '.linux.namespaces += [{"type": "network"}]'
	refuses '.linux.sysctl = {"net/../vm/swappiness": "1"}' linux.sysctl
}

# ---- Rootfs Mount Propagation ----

# shared_bundle: the root is of a mount that is shared
shared_bundle() {
	shared_source=$bundle
	mount --bind "$bundle" "$bundle"
	mount --make-private "$bundle"
	mount --make-shared "$bundle"
}

# root_is PROPAGATION PATTERN: what mountinfo says of the container's root
root_is() {
	shared_bundle
	edit ".linux.rootfsPropagation = \"$1\""
	script_runs 'while read -r id parent dev root where options rest; do
		[ $where != / ] || echo "${rest%%- *}"
	done </proc/self/mountinfo'
	# shellcheck disable=SC2053 # a pattern it is
	[[ $output == $2 ]] || show
}

@test "key:linux.rootfsPropagation: shared" {
	root_is shared 'shared:*'
}

@test "key:linux.rootfsPropagation: slave" {
	root_is slave 'master:*'
}

@test "key:linux.rootfsPropagation: private" {
	root_is private ''
}

@test "key:linux.rootfsPropagation: unbindable" {
	root_is unbindable 'unbindable*'
}

@test "linux:propagation-1 a word that is none is an error" {
	refuses '.linux.rootfsPropagation = "public"' linux.rootfsPropagation
}

@test "linux:propagation-2 private: what the container mounts stays in it" {
	shared_bundle
	edit '.linux.rootfsPropagation = "private"'
	script_runs 'mount -t tmpfs tmpfs /mnt && echo x >/mnt/file && echo mounted'
	says mounted
	[ ! -e "$rootfs/mnt/file" ]
	! grep -q " $rootfs" /proc/self/mountinfo
}

# ---- Masked Paths ----

@test "key:linux.maskedPaths: a file cannot be read" {
	echo secret >"$rootfs/home/file"
	edit '.linux.maskedPaths = ["/home/file"]'
	script_runs 'cat /home/file 2>/dev/null; echo end'
	says end
}

@test "key:linux.maskedPaths: a directory cannot be read" {
	mkdir "$rootfs/home/dir"
	echo secret >"$rootfs/home/dir/file"
	edit '.linux.maskedPaths = ["/home/dir"]'
	script_runs 'ls -A /home/dir; echo x 2>/dev/null >/home/dir/new && echo written; echo end'
	says end
}

@test "key:linux.maskedPaths: what is in procfs" {
	edit '.linux.maskedPaths = ["/proc/uptime"]'
	script_runs 'cat /proc/uptime; echo end'
	says end
}

@test "key:linux.maskedPaths: what is not there needs no mask" {
	edit '.linux.maskedPaths = ["/proc/nothing", "/home/none/at/all"]'
	script_runs '[ ! -e /home/none ] && echo ran'
	says ran
}

@test "linux:maskedPaths-1 values must be absolute paths" {
	refuses '.linux.maskedPaths = ["proc/kcore"]' 'linux.maskedPaths[0]'
}

@test "linux:maskedPaths-2 a link is followed inside, never outside" {
	echo secret >"$rootfs/home/file"
	echo outside >"$here/outside"
	ln -s /home/file "$rootfs/home/link"
	ln -s "../../../../../..$here/outside" "$rootfs/home/out"
	edit '.linux.maskedPaths = ["/home/link", "/home/out"]'
	run oci_run
	[ "$(<"$here/outside")" = outside ]
	if [ "$status" -eq 0 ]; then
		script_runs 'cat /home/link 2>/dev/null; echo end'
		says end
	fi
}

# ---- Readonly Paths ----

@test "key:linux.readonlyPaths: a directory cannot be written to" {
	edit '.linux.readonlyPaths = ["/home"]'
	script_runs '(echo x >/home/new) 2>&1; echo end'
	[[ $output == *Read-only*end ]] || show
}

@test "key:linux.readonlyPaths: a file cannot be written to" {
	echo before >"$rootfs/home/file"
	edit '.linux.readonlyPaths = ["/home/file"]'
	script_runs '(echo x >/home/file) 2>/dev/null; cat /home/file'
	says before
}

@test "key:linux.readonlyPaths: what is in procfs" {
	edit '.linux.readonlyPaths = ["/proc/sys"]'
	script_runs '(echo 4242 >/proc/sys/kernel/msgmax) 2>&1; echo end'
	[[ $output == *Read-only*end ]] || show
}

@test "key:linux.readonlyPaths: what is not there needs none" {
	edit '.linux.readonlyPaths = ["/proc/nothing", "/home/none/at/all"]'
	script_runs '[ ! -e /home/none ] && echo ran'
	says ran
}

@test "linux:readonlyPaths-1 values must be absolute paths" {
	refuses '.linux.readonlyPaths = ["proc/sys"]' 'linux.readonlyPaths[0]'
}

@test "linux:readonlyPaths-2 a mount keeps what it was mounted with" {
	edit '.linux.readonlyPaths = ["/mnt"] | .mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "tmpfs",
		"options": ["nosuid", "nodev", "noexec"]}]'
	script_runs 'grep " /mnt " /proc/self/mounts | tail -n 1'
	[[ $output == *ro,*nosuid* && $output == *nodev* && $output == *noexec* ]] || show
}

# ---- Mount Label ----

@test "key:linux.mountLabel: an error where there is no SELinux" {
	[ ! -d /sys/fs/selinux ] || skip "there is SELinux"
	refuses '.linux.mountLabel = "system_u:object_r:svirt_sandbox_file_t:s0:c715,c811"' linux.mountLabel SELinux
}

# ---- Personality ----

@test "key:linux.personality.domain: LINUX32" {
	edit '.linux.personality = {"domain": "LINUX32"}'
	script_runs 'uname -m'
	says "$(setarch linux32 uname -m 2>/dev/null || uname -m)"
}

@test "key:linux.personality.domain: LINUX" {
	edit '.linux.personality = {"domain": "LINUX"}'
	probes personality
	says 0
}

@test "linux:personality-1 domain is required" {
	refuses '.linux.personality = {"flags": []}' linux.personality.domain
}

@test "linux:personality-2 a word that is none is an error" {
	refuses '.linux.personality = {"domain": "BSD"}' linux.personality.domain
}

@test "key:linux.personality.flags: no value is known" {
	refuses '.linux.personality = {"domain": "LINUX", "flags": ["ADDR_NO_RANDOMIZE"]}' linux.personality.flags
}

# ---- Memory Policy ----

# policy JSON EXPECTED
policy() {
	needs "memory policies" [ -e /proc/self/numa_maps ]
	edit ".linux.memoryPolicy = $1"
	probes mempolicy
	says "$2"
}

@test "key:linux.memoryPolicy.mode: MPOL_DEFAULT" {
	policy '{"mode": "MPOL_DEFAULT"}' 'mode=0 flags=0 nodes=0'
}

@test "key:linux.memoryPolicy.mode: MPOL_PREFERRED" {
	policy '{"mode": "MPOL_PREFERRED", "nodes": "0"}' 'mode=1 flags=0 nodes=1'
}

@test "key:linux.memoryPolicy.mode: MPOL_BIND" {
	policy '{"mode": "MPOL_BIND", "nodes": "0"}' 'mode=2 flags=0 nodes=1'
}

@test "key:linux.memoryPolicy.mode: MPOL_INTERLEAVE" {
	policy '{"mode": "MPOL_INTERLEAVE", "nodes": "0"}' 'mode=3 flags=0 nodes=1'
}

@test "key:linux.memoryPolicy.mode: MPOL_LOCAL" {
	policy '{"mode": "MPOL_LOCAL"}' 'mode=4 flags=0 nodes=0'
}

@test "key:linux.memoryPolicy.mode: MPOL_PREFERRED_MANY" {
	policy '{"mode": "MPOL_PREFERRED_MANY", "nodes": "0"}' 'mode=5 flags=0 nodes=1'
}

# Linux 6.9 and later
@test "key:linux.memoryPolicy.mode: MPOL_WEIGHTED_INTERLEAVE" {
	needs "MPOL_WEIGHTED_INTERLEAVE" test -d /sys/kernel/mm/mempolicy/weighted_interleave
	policy '{"mode": "MPOL_WEIGHTED_INTERLEAVE", "nodes": "0"}' 'mode=6 flags=0 nodes=1'
}

@test "key:linux.memoryPolicy.flags: MPOL_F_STATIC_NODES" {
	policy '{"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_STATIC_NODES"]}' 'mode=2 flags=32768 nodes=1'
}

@test "key:linux.memoryPolicy.flags: MPOL_F_RELATIVE_NODES" {
	policy '{"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_RELATIVE_NODES"]}' 'mode=2 flags=16384 nodes=1'
}

@test "key:linux.memoryPolicy.flags: MPOL_F_NUMA_BALANCING" {
	needs "NUMA balancing" test -e /proc/sys/kernel/numa_balancing
	policy '{"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_NUMA_BALANCING"]}' 'mode=2 flags=8192 nodes=1'
}

@test "key:linux.memoryPolicy.nodes: one that is not there is an error" {
	refuses '.linux.memoryPolicy = {"mode": "MPOL_BIND", "nodes": "900"}' linux.memoryPolicy
}

@test "linux:memoryPolicy-1 a mode that is none is an error" {
	refuses '.linux.memoryPolicy = {"mode": "MPOL_NONE"}' linux.memoryPolicy.mode
}

@test "linux:memoryPolicy-2 a flag that is none is an error" {
	refuses '.linux.memoryPolicy = {"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_NONE"]}' linux.memoryPolicy.flags
}

@test "linux:memoryPolicy-3 mode is required" {
	refuses '.linux.memoryPolicy = {"nodes": "0"}' linux.memoryPolicy.mode
}

# ---- IntelRdt ----

resctrl=/sys/fs/resctrl

no_resctrl() {
	[ ! -e $resctrl/schemata ] || skip "resctrl is mounted"
}

needs_resctrl() {
	needs "a mounted resctrl file system" test -e $resctrl/schemata
}

# in_clos NAME: the container's first process is in that class
in_clos() {
	grep -qx "$(oci_pid)" "$resctrl/$1/tasks"
}

teardown_file() {
	rmdir $resctrl/oci-test-* 2>/dev/null || true
}

@test "linux:intelRdt-1 without a mounted resctrl it must be an error" {
	no_resctrl
	refuses '.linux.intelRdt = {"closID": "some"}' linux.intelRdt resctrl
}

@test "key:linux.intelRdt.l3CacheSchema: an error without a mounted resctrl" {
	no_resctrl
	refuses '.linux.intelRdt = {"l3CacheSchema": "L3:0=1"}' linux.intelRdt resctrl
}

@test "key:linux.intelRdt.memBwSchema: an error without a mounted resctrl" {
	no_resctrl
	refuses '.linux.intelRdt = {"memBwSchema": "MB:0=50"}' linux.intelRdt resctrl
}

@test "key:linux.intelRdt.schemata: an error without a mounted resctrl" {
	no_resctrl
	refuses '.linux.intelRdt = {"schemata": ["L3:0=1"]}' linux.intelRdt resctrl
}

@test "key:linux.intelRdt.enableMonitoring: an error without a mounted resctrl" {
	no_resctrl
	refuses '.linux.intelRdt = {"enableMonitoring": true}' linux.intelRdt resctrl
}

@test "linux:intelRdt-2 memBwSchema must start with MB:" {
	refuses '.linux.intelRdt = {"memBwSchema": "L3:0=1"}' linux.intelRdt.memBwSchema
}

@test "linux:intelRdt-3 memBwSchema must not contain newlines" {
	refuses '.linux.intelRdt = {"memBwSchema": "MB:0=50\nMB:1=50"}' linux.intelRdt.memBwSchema
}

@test "key:linux.intelRdt.closID: the process must be in that class, which must be there already" {
	needs_resctrl
	mkdir "$resctrl/$id-clos"
	edit ".linux.intelRdt = {\"closID\": \"$id-clos\"}"
	oci_create
	in_clos "$id-clos"
}

@test "linux:intelRdt-4 with closID alone, a class that is not there must be an error" {
	needs_resctrl
	refuses ".linux.intelRdt = {\"closID\": \"$id-none\"}" linux.intelRdt.closID
	[ ! -d "$resctrl/$id-none" ]
}

@test "linux:intelRdt-5 without closID the class must be the container's, and be made" {
	needs_resctrl
	edit '.linux.intelRdt = {"l3CacheSchema": $ARGS.positional[0]}' --args -- "$(grep -m 1 L3: $resctrl/schemata)"
	oci_create
	in_clos "$id"
}

@test "linux:intelRdt-6 schemata must be written to the class" {
	needs_resctrl
	edit '.linux.intelRdt = {"closID": $ARGS.positional[0], "schemata": [$ARGS.positional[1]]}' \
		--args -- "$id-clos" "$(grep -m 1 L3: $resctrl/schemata | sed 's/=[0-9a-f]*/=1/g')"
	oci_create
	in_clos "$id-clos"
	grep -q 'L3:0=0*1\b' "$resctrl/$id-clos/schemata"
}

@test "linux:intelRdt-7 without intelRdt no resctrl must be manipulated" {
	needs_resctrl
	local before
	before=$(ls $resctrl && cat $resctrl/schemata)
	oci_create
	[ "$(ls $resctrl && cat $resctrl/schemata)" = "$before" ]
}
