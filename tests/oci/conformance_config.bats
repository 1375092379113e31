#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# config.md of the runtime-spec but its hooks and mount options: a test for each sentence that binds a runtime on Linux.
# docs/oci-conformance.md lists them.

load common

# ---- Specification version ----

@test "config:version-1 ociVersion is required" {
	refuses 'del(.ociVersion)' ociVersion
}

@test "config:version-2 ociVersion must be SemVer" {
	refuses '.ociVersion = "one"' ociVersion
}

@test "config:version-3 what complies with an earlier version of the same major one is taken" {
	edit '.ociVersion = "1.0.0"'
	script_runs 'echo ran'
	says ran
}

# ---- Root ----

@test "config:root-1 root is required" {
	refuses 'del(.root)' root
}

@test "config:root-2 root.path is required" {
	refuses 'del(.root.path)' root.path
}

@test "config:root-3 a directory must exist at root.path: there is nothing" {
	refuses '.root.path = "nowhere"' root.path
}

@test "config:root-4 a directory must exist at root.path: there is a file" {
	echo >"$bundle/file"
	refuses '.root.path = "file"' root.path
}

@test "config:root-5 root.path is relative to the bundle" {
	mv "$rootfs" "$bundle/elsewhere"
	edit '.root.path = "elsewhere"'
	echo here >"$bundle/elsewhere/mark"
	script_runs 'cat /mark'
	says here
}

@test "config:root-6 root.path is absolute" {
	mv "$rootfs" "$here/elsewhere"
	edit '.root.path = $path' --arg path "$here/elsewhere"
	echo here >"$here/elsewhere/mark"
	script_runs 'cat /mark'
	says here
}

@test "config:root-7 with root.readonly the root filesystem must be read-only inside" {
	edit '.root.readonly = true'
	script_runs 'echo x >/file || echo refused'
	[[ $output == *refused ]]
	[ ! -e "$rootfs/file" ]
}

@test "config:root-8 root.readonly defaults to false" {
	script_runs 'echo written >/file'
	[ "$(<"$rootfs/file")" = written ]
}

# ---- Mounts ----

@test "config:mounts-1 mounts must be made in the listed order" {
	edit '.mounts += [
		{"destination": "/mnt", "type": "tmpfs", "source": "first"},
		{"destination": "/mnt/sub", "type": "tmpfs", "source": "second"},
		{"destination": "/mnt", "type": "tmpfs", "source": "third"}]'
	# what the third one covers is still in the list, and its order is that in which they were made
	script_runs 'while read -r id parent dev root where line; do
		case $where in /mnt*) line=${line#* - tmpfs }; echo "$where ${line%% *}";; esac
	done </proc/self/mountinfo; ls /mnt'
	says $'/mnt first\n/mnt/sub second\n/mnt third'
}

@test "config:mounts-2 destination is required" {
	refuses '.mounts += [{"type": "tmpfs", "source": "tmpfs"}]' 'mounts[1].destination'
}

@test "config:mounts-3 a relative destination must be taken as relative to /" {
	edit '.process.cwd = "/tmp" | .mounts += [{"destination": "mnt/sub", "type": "tmpfs", "source": "tmpfs"}]'
	script_runs 'grep -c " /mnt/sub " /proc/self/mountinfo'
	says 1
}

@test "config:mounts-4 the source of a bind mount is relative to the bundle" {
	mkdir "$bundle/data"
	echo here >"$bundle/data/mark"
	edit '.mounts += [{"destination": "/mnt", "source": "data", "options": ["bind"]}]'
	script_runs 'cat /mnt/mark'
	says here
}

@test "config:mounts-5 a mount that cannot be made is an error" {
	refuses '.mounts += [{"destination": "/mnt", "type": "no-such-type", "source": "x"}]' 'mounts[1]'
}

@test "config:mounts-6 uidMappings must come along with gidMappings" {
	refuses '.mounts += [{"destination": "/mnt", "source": "/tmp", "options": ["bind", "idmap"],
		"uidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}]}]' 'mounts[1]' gidMappings
}

@test "config:mounts-7 gidMappings must come along with uidMappings" {
	refuses '.mounts += [{"destination": "/mnt", "source": "/tmp", "options": ["bind", "idmap"],
		"gidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}]}]' 'mounts[1]' uidMappings
}

# ---- Process ----

@test "config:process-1 process is required when start is called" {
	never_runs 'del(.process)'
}

@test "config:process-2 with terminal, a terminal is attached to the process" {
	use_podman_config
	edit '.process.terminal = true'
	script 'tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all'
	on_a_terminal
	[[ $output == /dev/pts/*all* ]] || show
}

@test "config:process-3 without terminal, none is attached" {
	script_runs 'tty; :'
	says 'not a tty'
}

@test "config:process-4 consoleSize is the size of the terminal" {
	use_podman_config
	edit '.process |= (.terminal = true | .consoleSize = {"height": 31, "width": 77})'
	script 'stty size'
	on_a_terminal
	[[ $output == *"31 77"* ]] || show
}

@test "config:process-5 consoleSize must be ignored if terminal is false" {
	edit '.process |= (.terminal = false | .consoleSize = {"height": 31, "width": 77})'
	script_runs 'tty; stty size 2>&1; echo ran'
	[[ $output == *ran && $output != *77* ]]
}

@test "config:process-6 consoleSize must be ignored if terminal is unset" {
	edit '.process.consoleSize = {"height": 31, "width": 77}'
	script_runs 'tty; stty size 2>&1; echo ran'
	[[ $output == *ran && $output != *77* ]]
}

@test "config:process-7 consoleSize.height is required" {
	refuses '.process |= (.terminal = true | .consoleSize = {"width": 77})' process.consoleSize.height
}

@test "config:process-8 consoleSize.width is required" {
	refuses '.process |= (.terminal = true | .consoleSize = {"height": 77})' process.consoleSize.width
}

@test "config:process-9 cwd is required" {
	refuses 'del(.process.cwd)' process.cwd
}

@test "config:process-10 cwd must be absolute" {
	refuses '.process.cwd = "home"' process.cwd
}

@test "config:process-11 cwd is the working directory" {
	edit '.process.cwd = "/home"'
	script_runs 'pwd'
	says /home
}

@test "config:process-12 env is the environment, and nothing of the caller's is" {
	edit '.process.env = ["A=1", "PATH=/bin", "B=two words", "A_B=", "HOME=/"]'
	program env
	FROM_OUTSIDE=1 run oci_run
	says $'A=1\nPATH=/bin\nB=two words\nA_B=\nHOME=/'
}

@test "config:process-13 args is required" {
	never_runs 'del(.process.args)'
}

@test "config:process-14 at least one entry of args is required" {
	never_runs '.process.args = []'
}

@test "config:process-15 args[0] is searched in PATH, as execvp does" {
	mkdir "$rootfs/opt" "$rootfs/opt/bin"
	printf '#!/bin/sh\necho "$0 $*"\n' >"$rootfs/opt/bin/tool"
	chmod 0755 "$rootfs/opt/bin/tool"
	edit '.process.env = ["PATH=/nowhere:/opt/bin:/bin"]'
	program tool a 'b c'
	run oci_run
	says '/opt/bin/tool a b c'
}

ended_badly() {
	oci_run || return 1
}

@test "config:process-16 args[0] with a slash is not searched" {
	cp -l "$rootfs/bin/busybox" "$rootfs/home/true"
	edit '.process.cwd = "/home" | .process.env = ["PATH=/home"]'
	program ./nowhere
	# the status is the runtime's own
	run ended_badly
	refused
	oci_delete --force || true
	program ./true
	run oci_run
	says ''
}

# ---- POSIX process ----

@test "config:rlimits-1 a type without a kernel interface must be an error" {
	refuses '.process.rlimits = [{"type": "RLIMIT_FROBS", "soft": 1, "hard": 1}]' 'process.rlimits[0].type'
}

# limits_are ROW-OF-/proc/self/limits TYPE SOFT HARD ...
limits_are() {
	local name
	while [ $# -gt 0 ]; do
		name=$1
		edit '.process.rlimits += [{"type": $type, "soft": ($soft | tonumber), "hard": ($hard | tonumber)}]' \
			--arg type "$2" --arg soft "$3" --arg hard "$4"
		want+=("$name|$3|$4")
		shift 4
	done
	script_runs "sed -E 's/  +/|/g' /proc/self/limits"
	for name in "${want[@]}"; do
		[[ $'\n'$output == *$'\n'"$name|"* ]] || show || return
	done
}

@test "config:rlimits-2 getrlimit of each type must succeed" {
	limits_are 'Max cpu time' RLIMIT_CPU 1000 1000 'Max file size' RLIMIT_FSIZE 100001 100002 \
		'Max data size' RLIMIT_DATA 100000003 100000004 'Max stack size' RLIMIT_STACK 8000001 8000002 \
		'Max core file size' RLIMIT_CORE 0 0 'Max resident set' RLIMIT_RSS 100000005 100000006 \
		'Max processes' RLIMIT_NPROC 901 902 'Max open files' RLIMIT_NOFILE 101 102 \
		'Max locked memory' RLIMIT_MEMLOCK 10001 10002 'Max address space' RLIMIT_AS 900000001 900000002 \
		'Max file locks' RLIMIT_LOCKS 103 104 'Max pending signals' RLIMIT_SIGPENDING 105 106 \
		'Max msgqueue size' RLIMIT_MSGQUEUE 107 108 'Max nice priority' RLIMIT_NICE 0 0 \
		'Max realtime priority' RLIMIT_RTPRIO 0 0 'Max realtime timeout' RLIMIT_RTTIME 1000001 1000002
}

@test "config:rlimits-3 rlim_cur must match soft" {
	edit '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 77, "hard": 99}]'
	script_runs 'ulimit -Sn'
	says 77
}

@test "config:rlimits-4 rlim_max must match hard" {
	edit '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 77, "hard": 99}]'
	script_runs 'ulimit -Hn'
	says 99
}

@test "config:rlimits-5 a type twice must be an error" {
	refuses '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 77, "hard": 99},
		{"type": "RLIMIT_NOFILE", "soft": 78, "hard": 99}]' process.rlimits
}

@test "config:rlimits-6 type is required" {
	refuses '.process.rlimits = [{"soft": 77, "hard": 99}]' 'process.rlimits[0].type'
}

@test "config:rlimits-7 soft is required" {
	refuses '.process.rlimits = [{"type": "RLIMIT_NOFILE", "hard": 99}]' 'process.rlimits[0].soft'
}

@test "config:rlimits-8 hard is required" {
	refuses '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 0}]' 'process.rlimits[0].hard'
}

@test "config:rlimits-9 a limit that cannot be set is an error" {
	refuses '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 99, "hard": 77}]' 'process.rlimits[0]'
}

# ---- Linux process ----

@test "config:capabilities-1 what the kernel has no interface for must be logged as a warning" {
	edit '.process.capabilities.bounding += ["CAP_FROB"]'
	script_runs 'echo ran'
	[[ $stderr == *CAP_FROB* && $output == ran ]] || show
}

@test "config:capabilities-2 what cannot be granted must be logged as a warning" {
	edit '.process.capabilities |= (.bounding += ["CAP_SYS_BOOT"] | .permitted += ["CAP_SYS_BOOT"]
		| .effective += ["CAP_SYS_BOOT"])'
	script 'echo ran'
	run without_sys_boot
	[ "$status" -eq 0 ] || show
	[[ $output == *CAP_SYS_BOOT* && $output == *ran ]] || show
}

without_sys_boot() {
	setpriv --bounding-set -sys_boot --inh-caps -sys_boot "$BASH" -c \
		"$(declare -f oci oci_run cgroup_view runtime_is); $(declare -p runtime store bundle id); oci_run"
}

@test "config:capabilities-3 bounding is the bounding set" {
	edit '.process.capabilities = {"bounding": ["CAP_CHOWN", "CAP_KILL", "CAP_SETUID"]}'
	script_runs 'while read -r name set; do [ $name != CapBnd: ] || echo $set; done </proc/self/status'
	says 00000000000000a1
}

# a program of a user other than root gets what is ambient by its exec, so the others are seen as root
@test "config:capabilities-4 effective, permitted and inheritable are kept for the process" {
	edit '.process.capabilities = {"bounding": ["CAP_CHOWN", "CAP_KILL", "CAP_SETUID"],
		"permitted": ["CAP_CHOWN", "CAP_KILL", "CAP_SETUID"], "inheritable": ["CAP_CHOWN", "CAP_KILL"],
		"effective": ["CAP_CHOWN", "CAP_KILL", "CAP_SETUID"]}'
	script_runs 'while read -r name set; do case $name in CapInh:|CapPrm:|CapEff:) echo $name $set;; esac; done </proc/self/status'
	says $'CapInh: 0000000000000021\nCapPrm: 00000000000000a1\nCapEff: 00000000000000a1'
}

@test "config:capabilities-5 ambient is the ambient set, and what a user's program has" {
	edit '.process.capabilities = {"bounding": ["CAP_CHOWN", "CAP_KILL"], "permitted": ["CAP_CHOWN", "CAP_KILL"],
		"inheritable": ["CAP_CHOWN"], "effective": ["CAP_CHOWN", "CAP_KILL"], "ambient": ["CAP_CHOWN"]}
		| .process.user.uid = 1000'
	script_runs 'while read -r name set; do case $name in CapEff:|CapAmb:) echo $name $set;; esac; done </proc/self/status'
	says $'CapEff: 0000000000000001\nCapAmb: 0000000000000001'
}

@test "config:capabilities-6 with no capabilities at all there are none" {
	edit 'del(.process.capabilities)'
	script_runs 'while read -r name set; do case $name in CapEff:|CapBnd:) echo $name $set;; esac; done </proc/self/status'
	says $'CapEff: 0000000000000000\nCapBnd: 0000000000000000'
}

@test "config:linux-process-1 noNewPrivileges keeps the process from gaining privileges" {
	edit '.process.noNewPrivileges = true'
	script_runs 'grep NoNewPrivs /proc/self/status'
	says $'NoNewPrivs:\t1'
}

@test "config:linux-process-2 oomScoreAdj must be set to the given value" {
	edit '.process.oomScoreAdj = 432'
	script_runs 'cat /proc/self/oom_score_adj'
	says 432
}

@test "config:linux-process-3 without oomScoreAdj it must not be changed" {
	script 'cat /proc/self/oom_score_adj'
	run with_oom_score_adj 321
	says 321
}

with_oom_score_adj() (
	echo "$1" >/proc/self/oom_score_adj
	oci_run
)

@test "config:linux-process-4 scheduler.policy is required" {
	refuses '.process.scheduler = {"nice": 1}' process.scheduler.policy
}

@test "config:linux-process-5 scheduler: the policy and nice value of the process" {
	edit '.process.scheduler = {"policy": "SCHED_BATCH", "nice": 7}'
	script_runs 'read -r line </proc/self/stat; set -- ${line##*) }; echo ${17} ${39}'
	says '7 3'
}

@test "config:linux-process-6 scheduler: an unset nice value must be 0" {
	edit '.process.scheduler = {"policy": "SCHED_OTHER"}'
	script 'read -r line </proc/self/stat; set -- ${line##*) }; echo ${17}'
	run with_nice 5
	says 0
}

with_nice() (
	renice -n "$1" "$BASHPID" >/dev/null
	oci_run
)

@test "config:linux-process-7 ioPriority.class is required" {
	refuses '.process.ioPriority = {"priority": 1}' process.ioPriority.class
}

@test "config:linux-process-8 ioPriority.priority is required" {
	refuses '.process.ioPriority = {"class": "IOPRIO_CLASS_BE"}' process.ioPriority.priority
}

@test "config:linux-process-9 ioPriority is the process's" {
	edit '.process.ioPriority = {"class": "IOPRIO_CLASS_BE", "priority": 6}'
	script_runs 'ionice -p $$'
	says 'best-effort: prio 6'
}

# ---- User ----

@test "config:user-1 uid is required" {
	refuses 'del(.process.user.uid)' process.user.uid
}

@test "config:user-2 gid is required" {
	refuses 'del(.process.user.gid)' process.user.gid
}

@test "config:user-3 uid, gid and additionalGids are those of the process" {
	edit '.process.user = {"uid": 1000, "gid": 1001, "additionalGids": [7, 8]}'
	script_runs 'id -u; id -g; id -G'
	says $'1000\n1001\n1001 7 8'
}

@test "config:user-4 uid and gid are of the container's user namespace" {
	use_user_namespace
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	up_until_told 'id -u >/tmp/uid'
	[ "$(<"$rootfs/tmp/uid")" = 1000 ]
	[ "$(stat -c %u "/proc/$(oci_pid)")" = 101000 ]
}

@test "config:user-5 umask is that of the process" {
	edit '.process.user.umask = 63'
	script_runs umask
	says 0077
}

# ---- Names ----

@test "config:hostname-1 hostname is seen by processes inside" {
	edit '.hostname = "mrsdalloway"'
	before=$(hostname)
	script_runs hostname
	says mrsdalloway
	[ "$(hostname)" = "$before" ]
}

@test "config:domainname-1 domainname is seen by processes inside" {
	edit '.domainname = "foobarbaz.test"'
	script_runs 'cat /proc/sys/kernel/domainname'
	says foobarbaz.test
}

# ---- Annotations ----

@test "config:annotations-1 annotations must be a map" {
	refuses '.annotations = ["a"]' annotations
}

@test "config:annotations-2 keys must not be empty" {
	refuses '.annotations = {"": "a"}' annotations
}

@test "config:annotations-3 values must be strings" {
	refuses '.annotations = {"a": 1}' 'annotations["a"]'
}

@test "config:annotations-4 values may be empty" {
	edit '.annotations = {"a": ""}'
	script_runs 'echo ran'
	says ran
}

@test "config:annotations-5 unknown keys must be handled as unknown properties are" {
	edit '.annotations = {"com.example.unknown": "x", "org.opencontainers.unknown": "y"}'
	script_runs 'echo ran'
	says ran
}

@test "config:annotations-6 no annotations, or none in it" {
	edit '.annotations = {}'
	script_runs 'echo ran'
	says ran
}

# ---- Extensibility, valid values ----

@test "config:extensibility-1 unknown properties must be ignored, and are no error" {
	edit '.unknown = {"a": [1]} | .process.unknown = 1 | .process.user.unknown = "x" | .root.unknown = true
		| .mounts[0].unknown = [] | .linux.unknown = {} | .linux.namespaces[0].unknown = null
		| .linux.resources.unknown = {} | .process.capabilities.unknown = ["CAP_SYS_ADMIN"]'
	script_runs 'echo ran'
	says ran
}

@test "config:valid-values-1 a value of the wrong type must be an error: a number for a string" {
	refuses '.hostname = 1' hostname
}

@test "config:valid-values-2 a value of the wrong type must be an error: a string for a bool" {
	refuses '.root.readonly = "yes"' root.readonly
}

@test "config:valid-values-3 a value of the wrong type must be an error: an object for an array" {
	refuses '.mounts = {}' mounts
}

@test "config:valid-values-4 an unknown word must be an error: linux.namespaces.type" {
	refuses '.linux.namespaces += [{"type": "galaxy"}]' 'linux.namespaces[4].type'
}

@test "config:valid-values-5 an unknown word must be an error: process.scheduler.policy" {
	refuses '.process.scheduler = {"policy": "SCHED_FROB"}' process.scheduler.policy
}

@test "config:valid-values-6 an unknown word must be an error: process.ioPriority.class" {
	refuses '.process.ioPriority = {"class": "IOPRIO_CLASS_FROB", "priority": 1}' process.ioPriority.class
}

@test "config:valid-values-7 a value out of range must be an error: process.oomScoreAdj" {
	refuses '.process.oomScoreAdj = 1001' process.oomScoreAdj
}

@test "config:valid-values-8 a value out of range must be an error: process.user.uid" {
	refuses '.process.user.uid = 4294967296' process.user.uid
}

@test "config:valid-values-9 an unsupported value must be an error: process.apparmorProfile without AppArmor" {
	[ ! -d /sys/module/apparmor ] || skip "the host has AppArmor"
	refuses '.process.apparmorProfile = "acme_secure_profile"' process.apparmorProfile
}

@test "config:valid-values-10 an unsupported value must be an error: process.selinuxLabel without SELinux" {
	[ ! -d /sys/fs/selinux/class ] || skip "the host has SELinux"
	refuses '.process.selinuxLabel = "system_u:system_r:svirt_lxc_net_t:s0"' process.selinuxLabel
}

@test "config:valid-values-11 an invalid id mapping must be an error" {
	refuses '.linux |= (.namespaces += [{"type": "user"}]
		| .uidMappings = [{"containerID": 0, "hostID": 1000, "size": 10}, {"containerID": 5, "hostID": 2000, "size": 10}]
		| .gidMappings = [{"containerID": 0, "hostID": 1000, "size": 10}])' linux.uidMappings
}

@test "config:valid-values-12 a document that is no JSON must be an error" {
	echo '{"ociVersion": "1.0.0",' >"$config"
	run oci_create
	refused
}
