#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The keys of process and mounts in the schema of config.json that conformance_config.bats has one word of: each of the
# others, as a program sees it.

load linux

# ---- process.scheduler ----

# scheduled JSON PATTERN: what sched_getattr says
scheduled() {
	edit ".process.scheduler = $1"
	probes scheduler
	# shellcheck disable=SC2053 # a pattern it is
	[[ $output == $2 ]] || show
}

# may_be_real_time: with a controller for it, a group has no time of that kind unless it is given some, which v2 cannot do
may_be_real_time() {
	if [ -e /sys/fs/cgroup/cpu/cpu.rt_runtime_us ]; then
		edit '.linux.resources.cpu = {"realtimePeriod": 1000000, "realtimeRuntime": 10000}'
	elif [ "$(cgroup_view)" = v2 ]; then
		mkdir "$(group_dir cpu "$group-real-time")"
		# shellcheck disable=SC2016 # the inner shell's
		needs "real-time scheduling in groups" sh -c 'echo $$ >"$0/cgroup.procs" && exec chrt -f 1 true 2>/dev/null' \
			"$(group_dir cpu "$group-real-time")"
	fi
}

@test "key:process.scheduler.policy: SCHED_OTHER" {
	scheduled '{"policy": "SCHED_OTHER"}' 'policy=0 nice=0 *'
}

@test "key:process.scheduler.policy: SCHED_FIFO" {
	may_be_real_time
	scheduled '{"policy": "SCHED_FIFO", "priority": 3}' 'policy=1 * priority=3 *'
}

@test "key:process.scheduler.policy: SCHED_RR" {
	may_be_real_time
	scheduled '{"policy": "SCHED_RR", "priority": 4}' 'policy=2 * priority=4 *'
}

@test "key:process.scheduler.policy: SCHED_BATCH" {
	scheduled '{"policy": "SCHED_BATCH"}' 'policy=3 *'
}

@test "key:process.scheduler.policy: SCHED_IDLE" {
	scheduled '{"policy": "SCHED_IDLE"}' 'policy=5 *'
}

@test "key:process.scheduler.policy: SCHED_DEADLINE, with runtime, deadline and period" {
	scheduled '{"policy": "SCHED_DEADLINE", "runtime": 1000000, "deadline": 20000000, "period": 40000000}' \
		'policy=6 * runtime=1000000 deadline=20000000 period=40000000 *'
}

@test "key:process.scheduler.policy: SCHED_ISO, which Linux does not have, is an error" {
	refuses '.process.scheduler = {"policy": "SCHED_ISO"}' process.scheduler
}

@test "key:process.scheduler.nice" {
	scheduled '{"policy": "SCHED_OTHER", "nice": -7}' 'policy=0 nice=-7 *'
}

@test "key:process.scheduler.priority: out of its range is an error" {
	may_be_real_time
	refuses '.process.scheduler = {"policy": "SCHED_FIFO", "priority": 100}' process.scheduler
}

@test "key:process.scheduler.flags: SCHED_FLAG_RESET_ON_FORK" {
	scheduled '{"policy": "SCHED_BATCH", "flags": ["SCHED_FLAG_RESET_ON_FORK"]}' 'policy=3 * flags=1 *'
}

@test "key:process.scheduler.flags: SCHED_FLAG_RECLAIM and SCHED_FLAG_DL_OVERRUN" {
	scheduled '{"policy": "SCHED_DEADLINE", "runtime": 1000000, "deadline": 20000000, "period": 40000000,
		"flags": ["SCHED_FLAG_RECLAIM", "SCHED_FLAG_DL_OVERRUN"]}' 'policy=6 * flags=6 *'
}

@test "key:process.scheduler.flags: SCHED_FLAG_KEEP_POLICY" {
	scheduled '{"policy": "SCHED_BATCH", "nice": 3, "flags": ["SCHED_FLAG_KEEP_POLICY"]}' 'policy=0 nice=3 *'
}

@test "key:process.scheduler.flags: SCHED_FLAG_KEEP_PARAMS" {
	scheduled '{"policy": "SCHED_BATCH", "nice": 3, "flags": ["SCHED_FLAG_KEEP_PARAMS"]}' '* nice=0 *'
}

@test "key:process.scheduler.flags: SCHED_FLAG_UTIL_CLAMP_MIN is set, or refused by name" {
	clamped SCHED_FLAG_UTIL_CLAMP_MIN
}

@test "key:process.scheduler.flags: SCHED_FLAG_UTIL_CLAMP_MAX is set, or refused by name" {
	clamped SCHED_FLAG_UTIL_CLAMP_MAX
}

# clamped FLAG: the spec has no key for the value, so there is nothing but 0
clamped() {
	edit ".process.scheduler = {\"policy\": \"SCHED_OTHER\", \"flags\": [\"$1\"]}"
	use_probe
	program probe scheduler
	run oci_run
	if [ "$status" -eq 0 ]; then
		[[ $output == *'min=0 max=0'* || $output == *' min=0 '* ]] || show
	elif runtime_is agentdock-runtime; then
		refused process.scheduler
	fi
}

# ---- process.ioPriority ----

# io_is JSON EXPECTED
io_is() {
	edit ".process.ioPriority = $1"
	probes ioprio
	says "$2"
}

@test "key:process.ioPriority.class: IOPRIO_CLASS_RT" {
	io_is '{"class": "IOPRIO_CLASS_RT", "priority": 1}' 'class=1 priority=1'
}

@test "key:process.ioPriority.class: IOPRIO_CLASS_BE" {
	io_is '{"class": "IOPRIO_CLASS_BE", "priority": 7}' 'class=2 priority=7'
}

@test "key:process.ioPriority.class: IOPRIO_CLASS_IDLE" {
	io_is '{"class": "IOPRIO_CLASS_IDLE", "priority": 0}' 'class=3 priority=0'
}

@test "key:process.ioPriority.priority: out of its range is an error" {
	refuses '.process.ioPriority = {"class": "IOPRIO_CLASS_BE", "priority": 8}' process.ioPriority.priority
}

# ---- process.execCPUAffinity ----

# added JSON: where a process may run that exec adds
added() {
	edit ".process.execCPUAffinity = $1"
	up_until_told
	run oci_exec sh -c 'while read -r key value; do [ $key != Cpus_allowed_list: ] || echo $value; done </proc/self/status'
	tell
}

@test "key:process.execCPUAffinity.final" {
	needs "a second CPU" test "$(nproc)" -gt 1
	added '{"final": "1"}'
	says 1
}

@test "key:process.execCPUAffinity.initial: final comes after it" {
	needs "a second CPU" test "$(nproc)" -gt 1
	added '{"initial": "0", "final": "1"}'
	says 1
}

@test "key:process.execCPUAffinity: the first process has none of it" {
	edit '.process.execCPUAffinity = {"initial": "0", "final": "0"}'
	script_runs 'while read -r key value; do [ $key != Cpus_allowed_list: ] || echo $value; done </proc/self/status'
	says "$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)"
}

@test "key:process.execCPUAffinity.final: a CPU that is not there is an error" {
	added '{"final": "4000"}'
	refused
}

# ---- what nobody asked for ----

@test "linux:process-1 the container has a session keyring of its own" {
	local ours
	use_probe
	ours=$("$probe" keyring) || skip "this host lacks keyrings"
	probes keyring
	[ "$output" != "$ours" ] && [[ $output == keyring\;* ]] || show
}

@test "linux:process-2 the program has no secure bits that keep capabilities across a change of user" {
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	probes securebits
	says 0
}

@test "linux:process-3 of the caller's descriptors none is the program's" {
	exec {extra}<"$config"
	script_runs 'ls /proc/self/fd | wc -l'
	exec {extra}<&-
	# 0, 1, 2 and that of the directory
	says 4
}

# ---- mounts[].options ----

# tree OPTION...: a bind mount of a directory at /mnt, with a mount on its "below"; $output is what mountinfo says of each
tree() {
	mkdir -p "$here/tree/below"
	# shellcheck disable=SC2016 # the inner shell's
	on_another_host 'mount --bind "$here/tree" "$here/tree" && mount -t tmpfs tmpfs "$here/tree/below" && exec "$@"'
	# shellcheck disable=SC2016 # jq's
	edit '.mounts += [{"destination": "/mnt", "type": "bind", "source": $ARGS.positional[0],
		"options": (["rbind"] + $ARGS.positional[1:])}]' --args -- "$here/tree" "$@"
	script_runs 'while read -r id parent dev root where options rest; do
		case $where in /mnt*) echo "$where,,$options,";; esac
	done </proc/self/mountinfo'
}

# both_have OPTION, one_has OPTION: the mount and what is mounted below it, or the mount alone
both_have() {
	[[ $output == /mnt,*,"$1",*$'\n'/mnt/below,*,"$1",* ]] || show
}

both_lack() {
	[[ $output == /mnt,*$'\n'/mnt/below,* && $output != *,"$1",* ]] || show
}

@test "key:mounts.options: ro is of the mount alone" {
	tree ro
	[[ $output == /mnt,*,ro,*$'\n'/mnt/below,,rw,* ]] || show
}

@test "key:mounts.options: rro" {
	tree rro
	both_have ro
}

@test "key:mounts.options: rrw" {
	tree rro rrw
	both_have rw
}

@test "key:mounts.options: rnosuid" {
	tree rnosuid
	both_have nosuid
}

@test "key:mounts.options: rsuid" {
	tree rnosuid rsuid
	both_lack nosuid
}

@test "key:mounts.options: rnodev" {
	tree rnodev
	both_have nodev
}

@test "key:mounts.options: rdev" {
	tree rnodev rdev
	both_lack nodev
}

@test "key:mounts.options: rnoexec" {
	tree rnoexec
	both_have noexec
}

@test "key:mounts.options: rexec" {
	tree rnoexec rexec
	both_lack noexec
}

@test "key:mounts.options: rnodiratime" {
	tree rnodiratime
	both_have nodiratime
}

@test "key:mounts.options: rdiratime" {
	tree rnodiratime rdiratime
	both_lack nodiratime
}

@test "key:mounts.options: rrelatime" {
	tree rrelatime
	both_have relatime
}

@test "key:mounts.options: rnorelatime" {
	tree rnoatime rnorelatime
	both_lack noatime
}

@test "key:mounts.options: rnoatime" {
	tree rnoatime
	both_have noatime
}

@test "key:mounts.options: ratime" {
	tree rnoatime ratime
	both_lack noatime
}

@test "key:mounts.options: rstrictatime" {
	tree rstrictatime
	both_lack relatime
}

@test "key:mounts.options: rnostrictatime" {
	tree rstrictatime rnostrictatime
	both_have relatime
}

@test "key:mounts.options: rnosymfollow" {
	tree rnosymfollow
	both_have nosymfollow
}

@test "key:mounts.options: rsymfollow" {
	tree rnosymfollow rsymfollow
	both_lack nosymfollow
}

@test "key:mounts.options: nosymfollow" {
	tree nosymfollow
	[[ $output == /mnt,*,nosymfollow,*$'\n'/mnt/below,* ]] || show
}

@test "key:mounts.options: tmpcopyup" {
	mkdir -p "$rootfs/home/full/er"
	echo content >"$rootfs/home/full/er/file"
	chmod 640 "$rootfs/home/full/er/file"
	edit '.mounts += [{"destination": "/home/full", "type": "tmpfs", "source": "tmpfs", "options": ["tmpcopyup"]}]'
	script_runs 'cat /home/full/er/file; stat -c %a /home/full/er/file; echo new >/home/full/er/file'
	says $'content\n640'
	[ "$(<"$rootfs/home/full/er/file")" = content ]
}

@test "key:mounts.options: what no one knows is an error" {
	refuses '.mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "tmpfs", "options": ["nothing-like-it"]}]' \
		nothing-like-it
}
