#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "Seccomp" of the runtime-spec's config-linux.md: what a filter does to a call of the probe's, getpriority (140) where
# no other is named, which nothing on the way to the program needs.

load linux

call=140 # getpriority, of x86_64

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "the numbers of system calls are those of x86_64"
}

# filter JSON: the container's; all that it does not name is allowed
filter() {
	edit ".linux.seccomp = {\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"SCMP_ARCH_X86_64\"]} + $1"
}

# nothing_but JSON: filter, of a default action that is not to allow; what a static program needs, and what runtimes do after
# they have installed it, is allowed
nothing_but() {
	edit ".linux.seccomp = {\"architectures\": [\"SCMP_ARCH_X86_64\"], \"syscalls\": [{\"action\": \"SCMP_ACT_ALLOW\",
		\"names\": $needed}]} + $1"
}

needed='["execve", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64", "mprotect", "readlink",
		"readlinkat", "getrandom", "newfstatat", "fstat", "write", "exit_group", "mmap", "munmap", "ioctl", "close", "futex",
		"prctl", "setuid", "setgid", "setgroups", "capset", "capget", "fcntl", "read", "epoll_pwait", "nanosleep",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "gettid", "getpid", "clone", "sched_yield", "openat",
		"getdents64", "fstatfs", "close_range", "chdir", "getcwd", "statfs", "lseek", "faccessat2", "faccessat", "stat",
		"sendmsg", "sendto", "recvmsg", "dup3", "dup2", "open", "umask", "seccomp", "setresuid", "setresgid", "access",
		"geteuid", "getuid", "pread64", "poll", "epoll_ctl", "tgkill", "madvise", "execveat", "fchdir", "getresuid",
		"getresgid", "getgroups", "setfsuid", "setfsgid"]'

# rule JSON: filter, with this rule for getpriority
rule() {
	filter "{\"syscalls\": [{\"names\": [\"getpriority\"]} + $1]}"
}

# ends_with STATUS: the probe's call does so
ends_with() {
	use_probe
	program probe call $call 0 0
	run oci_run
	[ "$status" -eq "$1" ] || show
}

# ---- actions ----

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_KILL" {
	rule '{"action": "SCMP_ACT_KILL"}'
	ends_with 159
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_KILL_PROCESS" {
	rule '{"action": "SCMP_ACT_KILL_PROCESS"}'
	use_probe
	program probe thread $call 0 0
	run oci_run
	[ "$status" -eq 159 ] || show
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_KILL_THREAD" {
	rule '{"action": "SCMP_ACT_KILL_THREAD"}'
	probes thread $call 0 0
	says survived
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_TRAP" {
	rule '{"action": "SCMP_ACT_TRAP"}'
	probes trap $call 0 0
	[[ $output == "signal 31 code 1 call $call"* ]] || show
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_ERRNO" {
	rule '{"action": "SCMP_ACT_ERRNO"}'
	probes call $call 0 0
	says -1
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_TRACE" {
	rule '{"action": "SCMP_ACT_TRACE", "errnoRet": 77}'
	probes trace $call 0 0
	says 'traced 77'
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_TRACE without a tracer is ENOSYS" {
	rule '{"action": "SCMP_ACT_TRACE"}'
	probes call $call 0 0
	says -38
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_ALLOW" {
	nothing_but '{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 77}'
	edit '.linux.seccomp.syscalls += [{"names": ["getpriority"], "action": "SCMP_ACT_ALLOW"}]'
	probes call $call 0 0
	says 20
	program probe call 63 0
	run oci_run
	says -77
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_LOG" {
	rule '{"action": "SCMP_ACT_LOG"}'
	probes call $call 0 0
	says 20
}

@test "linux:seccomp-1 an action that is none must be an error" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_SHRUG"}]}' 'linux.seccomp.syscalls[0].action'
}

@test "linux:seccomp-2 action is required" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["getpriority"]}]}' \
		'linux.seccomp.syscalls[0].action'
}

@test "linux:seccomp-3 names is required" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_ERRNO"}]}' \
		'linux.seccomp.syscalls[0].names'
}

@test "linux:seccomp-4 names must contain at least one entry" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": [], "action": "SCMP_ACT_ERRNO"}]}' \
		'linux.seccomp.syscalls[0].names'
}

@test "key:linux.seccomp.syscalls.names: each of them" {
	filter '{"syscalls": [{"names": ["uname", "getpriority"], "action": "SCMP_ACT_ERRNO", "errnoRet": 77}]}'
	probes call 63 0
	says -77
	program probe call $call 0 0
	run oci_run
	says -77
}

@test "linux:seccomp-5 a name that this architecture does not have is passed over" {
	filter '{"syscalls": [{"names": ["arm_fadvise64_64", "getpriority"], "action": "SCMP_ACT_ERRNO", "errnoRet": 77}]}'
	probes call $call 0 0
	says -77
}

@test "linux:seccomp-6 defaultAction is required" {
	refuses '.linux.seccomp = {"syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_ERRNO"}]}' \
		linux.seccomp.defaultAction
}

@test "key:linux.seccomp.defaultAction: SCMP_ACT_KILL with no rule kills the program at once" {
	edit '.linux.seccomp = {"defaultAction": "SCMP_ACT_KILL"}'
	run oci_run
	[ "$status" -ne 0 ] || show
}

@test "key:linux.seccomp.defaultAction: SCMP_ACT_LOG lets it run" {
	edit '.linux.seccomp = {"defaultAction": "SCMP_ACT_LOG"}'
	script_runs 'grep Seccomp: /proc/self/status'
	says $'Seccomp:\t2'
}

# ---- errno ----

@test "key:linux.seccomp.syscalls.errnoRet" {
	rule '{"action": "SCMP_ACT_ERRNO", "errnoRet": 77}'
	probes call $call 0 0
	says -77
}

@test "linux:errno-1 errnoRet defaults to EPERM" {
	rule '{"action": "SCMP_ACT_ERRNO"}'
	probes call $call 0 0
	says -1
}

@test "key:linux.seccomp.syscalls.errnoRet: 0 is no error" {
	rule '{"action": "SCMP_ACT_ERRNO", "errnoRet": 0}'
	probes call $call 0 0
	says 0
}

@test "linux:errno-2 errnoRet with an action that has none must be an error: SCMP_ACT_KILL" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_KILL", "errnoRet": 1}]}' 'linux.seccomp.syscalls[0].errnoRet'
}

@test "linux:errno-3 errnoRet with an action that has none must be an error: SCMP_ACT_ALLOW" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_ALLOW", "errnoRet": 1}]}' 'linux.seccomp.syscalls[0].errnoRet'
}

@test "linux:errno-4 defaultErrnoRet with an action that has none must be an error" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "defaultErrnoRet": 1}' linux.seccomp.defaultErrnoRet
}

@test "key:linux.seccomp.defaultErrnoRet" {
	nothing_but '{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 77}'
	probes call $call 0 0
	says -77
}

@test "linux:errno-5 defaultErrnoRet defaults to EPERM" {
	nothing_but '{"defaultAction": "SCMP_ACT_ERRNO"}'
	probes call $call 0 0
	says -1
}

@test "case:R5 calls that the profile cannot know are ENOSYS, so that libc falls back" {
	nothing_but '{"defaultAction": "SCMP_ACT_ERRNO"}'
	probes call 999
	says -38
}

# ---- arguments ----

# matches JSON: rule with one more argument to match; the probe calls with the words that follow. $output is its answer
matches() {
	rule "{\"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 77, \"args\": $1}"
	shift
	probes call $call "$@"
}

# compared OP LESS EQUAL GREATER: what becomes of a first argument of 1, 2 and 3 where 2 is what it is compared with; y: it
# matches
compared() {
	local value answer
	use_probe
	rule "{\"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 77,
		\"args\": [{\"index\": 1, \"value\": 4294967298, \"op\": \"$1\"}]}"
	script "for value in 4294967297 4294967298 4294967299; do probe call $call 0 \$value; done"
	run --separate-stderr oci_run
	[ "$status" -eq 0 ] || show
	answer=
	for value in "${lines[@]}"; do
		if [ "$value" = -77 ]; then answer+=y; else answer+=n; fi
	done
	[ "$answer" = "$2" ] || show
}

@test "key:linux.seccomp.syscalls.args.op: SCMP_CMP_NE" {
	compared SCMP_CMP_NE yny
}

@test "key:linux.seccomp.syscalls.args.op: SCMP_CMP_LT" {
	compared SCMP_CMP_LT ynn
}

@test "key:linux.seccomp.syscalls.args.op: SCMP_CMP_LE" {
	compared SCMP_CMP_LE yyn
}

@test "key:linux.seccomp.syscalls.args.op: SCMP_CMP_EQ" {
	compared SCMP_CMP_EQ nyn
}

@test "key:linux.seccomp.syscalls.args.op: SCMP_CMP_GE" {
	compared SCMP_CMP_GE nyy
}

@test "key:linux.seccomp.syscalls.args.op: SCMP_CMP_GT" {
	compared SCMP_CMP_GT nny
}

@test "key:linux.seccomp.syscalls.args.op: SCMP_CMP_MASKED_EQ, with valueTwo" {
	matches '[{"index": 1, "value": 240, "valueTwo": 80, "op": "SCMP_CMP_MASKED_EQ"}]' 0 0x5f
	says -77
	program probe call $call 0 0x6f
	run oci_run
	[[ $output != -77 ]] || show
}

@test "key:linux.seccomp.syscalls.args.index" {
	matches '[{"index": 5, "value": 9, "op": "SCMP_CMP_EQ"}]' 0 0 0 0 0 9
	says -77
	program probe call $call 0 9
	run oci_run
	[[ $output != -77 ]] || show
}

@test "key:linux.seccomp.syscalls.args: all of them must match" {
	matches '[{"index": 1, "value": 9, "op": "SCMP_CMP_EQ"}, {"index": 2, "value": 8, "op": "SCMP_CMP_EQ"}]' 0 9 8
	says -77
	program probe call $call 0 9 7
	run oci_run
	[[ $output != -77 ]] || show
}

# lacks_member NAME: of an argument
lacks_member() {
	refuses ".linux.seccomp = {\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"getpriority\"],
		\"action\": \"SCMP_ACT_ERRNO\", \"args\": [{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"} | del(.$1)]}]}" \
		"linux.seccomp.syscalls[0].args[0].$1"
}

@test "linux:args-1 index is required" {
	lacks_member index
}

@test "linux:args-2 value is required" {
	lacks_member value
}

@test "linux:args-3 op is required" {
	lacks_member op
}

@test "linux:args-4 an index beyond the last argument is an error" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["getpriority"],
		"action": "SCMP_ACT_ERRNO", "args": [{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}]}]}' \
		'linux.seccomp.syscalls[0].args[0].index'
}

# ---- architectures ----

@test "key:linux.seccomp.architectures: calls of one that is not named are refused" {
	rule '{"action": "SCMP_ACT_ERRNO"}'
	use_probe
	program probe call32 20
	run oci_run
	[[ $status -ne 0 || $output == -* ]] || show
}

@test "key:linux.seccomp.architectures: rules hold for each that is named" {
	use_probe
	needs "system calls of i386" [ "$("$probe" call32 20)" -gt 0 ]
	filter '{"architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
		"syscalls": [{"names": ["getpid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 77}]}'
	probes call32 20
	says -77
	program probe call 39
	run oci_run
	says -77
}

@test "key:linux.seccomp.architectures: each word of the spec is taken" {
	filter '{"architectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X86_64", "SCMP_ARCH_X32", "SCMP_ARCH_ARM", "SCMP_ARCH_AARCH64",
		"SCMP_ARCH_MIPS", "SCMP_ARCH_MIPS64", "SCMP_ARCH_MIPS64N32", "SCMP_ARCH_MIPSEL", "SCMP_ARCH_MIPSEL64",
		"SCMP_ARCH_MIPSEL64N32", "SCMP_ARCH_PPC", "SCMP_ARCH_PPC64", "SCMP_ARCH_PPC64LE", "SCMP_ARCH_S390",
		"SCMP_ARCH_S390X", "SCMP_ARCH_PARISC", "SCMP_ARCH_PARISC64", "SCMP_ARCH_RISCV64"]}'
	script_runs 'echo ran'
	says ran
}

@test "linux:architectures-1 a word that is none is an error" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_VAX"]}' \
		linux.seccomp.architectures
}

# ---- flags ----

# flag NAME: it is taken, and there is a filter
flag() {
	filter "{\"flags\": [\"$1\"], \"syscalls\": [{\"names\": [\"getpriority\"], \"action\": \"SCMP_ACT_ERRNO\"}]}"
	script_runs 'grep Seccomp: /proc/self/status'
	says $'Seccomp:\t2'
}

@test "key:linux.seccomp.flags: SECCOMP_FILTER_FLAG_TSYNC" {
	flag SECCOMP_FILTER_FLAG_TSYNC
}

@test "key:linux.seccomp.flags: SECCOMP_FILTER_FLAG_LOG" {
	flag SECCOMP_FILTER_FLAG_LOG
}

@test "key:linux.seccomp.flags: SECCOMP_FILTER_FLAG_SPEC_ALLOW" {
	flag SECCOMP_FILTER_FLAG_SPEC_ALLOW
}

@test "key:linux.seccomp.flags: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, with a listener" {
	start_agent
	filter "{\"flags\": [\"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV\"], \"listenerPath\": \"$here/agent\",
		\"syscalls\": [{\"names\": [\"getpriority\"], \"action\": \"SCMP_ACT_NOTIFY\"}]}"
	probes call $call 0 0
	says -77
}

@test "linux:flags-1 a word that is none is an error" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_NONE"]}' linux.seccomp.flags
}

# ---- SCMP_ACT_NOTIFY and the container process state ----

# start_agent: a seccomp agent at $here/agent, which answers each question with 77; what it heard goes to $here/heard
start_agent() {
	use_probe
	"$probe" agent "$here/agent" >"$here/heard" 3>&- &
	agent=$!
	until_true test -S "$here/agent"
}

# notified [JSON]: the container runs with a listener
notified() {
	start_agent
	filter "{\"listenerPath\": \"$here/agent\",
		\"syscalls\": [{\"names\": [\"getpriority\"], \"action\": \"SCMP_ACT_NOTIFY\"}]} + ${1-{\}}"
	probes call $call 0 0
	wait "$agent"
}

@test "key:linux.seccomp.syscalls.action: SCMP_ACT_NOTIFY" {
	notified
	says -77
}

@test "key:linux.seccomp.listenerPath: a UNIX stream socket is connected to" {
	notified
	[ "$(state .pid)" -gt 0 ]
}

@test "linux:listener-1 exactly one container process state must be sent on a connection" {
	notified
	[ "$(sed '/^descriptors/,$d' "$here/heard" | jq -s length)" = 1 ]
}

@test "linux:listener-2 the connection must be closed after that" {
	start_agent
	filter "{\"listenerPath\": \"$here/agent\",
		\"syscalls\": [{\"names\": [\"getpriority\"], \"action\": \"SCMP_ACT_NOTIFY\"}]}"
	up_until_told
	wait "$agent"
	grep -qx closed "$here/heard"
	[ "$(oci_state .status)" = running ]
	tell
}

@test "linux:listener-3 if sending fails, an error must be generated" {
	filter "{\"listenerPath\": \"$here/nobody\",
		\"syscalls\": [{\"names\": [\"getpriority\"], \"action\": \"SCMP_ACT_NOTIFY\"}]}"
	run oci_run
	refused "$here/nobody"
}

@test "linux:listener-4 without SCMP_ACT_NOTIFY listenerPath is ignored" {
	filter "{\"listenerPath\": \"$here/nobody\",
		\"syscalls\": [{\"names\": [\"getpriority\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 77}]}"
	probes call $call 0 0
	says -77
}

@test "linux:listener-5 listenerMetadata must not be set without listenerPath" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "listenerMetadata": "text"}' linux.seccomp.listenerMetadata
}

@test "linux:listener-6 SCMP_ACT_NOTIFY without listenerPath is an error" {
	refuses '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_NOTIFY"}]}' linux.seccomp
}

@test "key:linux.seccomp.listenerMetadata" {
	notified '{"listenerMetadata": "a=b,c"}'
	[ "$(sed '/^descriptors/,$d' "$here/heard" | jq -r .metadata)" = a=b,c ]
}

# state JQ-FILTER: of what the agent was sent
state() {
	sed '/^descriptors/,$d' "$here/heard" | jq -r "$1"
}

@test "linux:process-state-1 ociVersion is required" {
	notified
	[[ $(state .ociVersion) == 1.* ]]
}

@test "linux:process-state-2 descriptors must be sent by SCM_RIGHTS, seccompFd is one of them and fds names it" {
	notified
	[ "$(state '.fds | join(" ")')" = seccompFd ]
	grep -qx 'descriptors 1' "$here/heard"
}

@test "linux:process-state-3 pid is required: as the runtime sees it" {
	start_agent
	filter "{\"listenerPath\": \"$here/agent\",
		\"syscalls\": [{\"names\": [\"getpriority\"], \"action\": \"SCMP_ACT_NOTIFY\"}]}"
	up_until_told
	wait "$agent"
	[ "$(state .pid)" = "$(oci_pid)" ]
	tell
}

@test "linux:process-state-4 state is required: that of the container" {
	edit '.annotations = {"some.key": "its value"}'
	notified
	[ "$(state .state.id)" = "$id" ]
	[ "$(state .state.bundle)" = "$bundle" ]
	[ "$(state '.state.annotations["some.key"]')" = "its value" ]
	[[ $(state .state.status) == @(creating|created|running) ]]
	[ "$(state '.state.pid == .pid')" = true ]
}

# ---- whom a filter is for ----

@test "linux:seccomp-7 a process that exec adds has the filter too" {
	rule '{"action": "SCMP_ACT_ERRNO", "errnoRet": 77}'
	use_probe
	up_until_told
	[ "$(oci_exec probe call $call 0 0)" = -77 ]
	tell
}

@test "linux:seccomp-8 it holds with noNewPrivileges, and for a user with no capability" {
	rule '{"action": "SCMP_ACT_ERRNO", "errnoRet": 77}'
	edit '.process.noNewPrivileges = true | .process.user = {"uid": 1000, "gid": 1000} | del(.process.capabilities)'
	probes call $call 0 0
	says -77
}

@test "linux:seccomp-9 it holds without noNewPrivileges, for a user with no capability" {
	rule '{"action": "SCMP_ACT_ERRNO", "errnoRet": 77}'
	edit '.process.user = {"uid": 1000, "gid": 1000} | del(.process.capabilities)'
	probes call $call 0 0
	says -77
}
