#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# linux.seccomp: filters, and the agents that they notify. That a filter says what its rules say is in test_profile.c.
load common

# profile JSON
profile() {
	edit ".linux.seccomp = $1"
}

no_new_privileges() {
	edit '.process.noNewPrivileges = true'
}

forbid_mkdir='{"defaultAction": "SCMP_ACT_ALLOW",
	"syscalls": [{"names": ["mkdir", "mkdirat", "no_such_call"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}'
notify_mkdir='{"defaultAction": "SCMP_ACT_ALLOW", "listenerMetadata": "words", "listenerPath": "/nowhere",
	"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY"}]}'

mkdir_is_forbidden() {
	script_runs 'mkdir /tmp/made 2>&1; cat /proc/self/status'
	[[ $output == *"No space left"*Seccomp:?2* ]]
}

@test "seccomp: a filter without no_new_privs" {
	profile "$forbid_mkdir"
	mkdir_is_forbidden
	[[ $output == *NoNewPrivs:?0* ]]
}

@test "seccomp: a filter with no_new_privs, for another user" {
	profile "$forbid_mkdir"
	no_new_privileges
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	mkdir_is_forbidden
	[[ $output == *NoNewPrivs:?1* ]]
}

@test "seccomp: another user, without no_new_privs" {
	profile "$forbid_mkdir"
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	mkdir_is_forbidden
}

@test "seccomp: in a user namespace" {
	use_user_namespace
	profile "$forbid_mkdir"
	mkdir_is_forbidden
}

@test "seccomp: exec is bound by the container's filter" {
	profile "$forbid_mkdir"
	up_until_told
	run oci_exec mkdir /tmp/made
	[[ $output == *"No space left"* ]]
}

@test "seccomp: every action and flag is taken" {
	local action
	for action in KILL KILL_THREAD KILL_PROCESS TRAP ERRNO TRACE LOG; do
		profile "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"flags\": [\"SECCOMP_FILTER_FLAG_TSYNC\",
			\"SECCOMP_FILTER_FLAG_LOG\", \"SECCOMP_FILTER_FLAG_SPEC_ALLOW\"],
			\"syscalls\": [{\"names\": [\"swapon\"], \"action\": \"SCMP_ACT_$action\"}]}"
		script_runs true
	done
}

@test "seccomp: a call that kills" {
	profile '{"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_KILL_PROCESS"}]}'
	script_runs 'mkdir /tmp/made; echo $?'
	[ "$output" = $((128 + 31)) ]
}

@test "seccomp: no action that a call cannot have" {
	runtime_is agentdock-runtime || skip "our own words"
	profile '{"defaultAction": "SCMP_ACT_NOTIFY"}'
	run oci_run
	refused linux.seccomp defaultAction
	profile "$notify_mkdir"
	edit 'del(.linux.seccomp.listenerPath, .linux.seccomp.listenerMetadata)'
	run oci_run
	refused linux.seccomp listenerPath
	profile '{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["execve"], "action": "SCMP_ACT_ALLOW"}]}'
	run oci_run
	refused linux.seccomp sendmsg noNewPrivileges
	profile "$forbid_mkdir"
	edit '.linux.seccomp.syscalls[0].errnoRet = 4096'
	run oci_run
	refused 'linux.seccomp: syscalls[0].errnoRet' 4095
	[ ! -e "$store/$id" ]
}

# ---- agents ----

agent_listens() {
	mkfifo "$here/listening"
	"$root/tests/oci/seccomp-agent" "$here/agent" "$here/told" 2>"$here/listening" 3>&- &
	read -r -t 10 _ <>"$here/listening"
	# shellcheck disable=SC2016 # jq's
	edit '.linux.seccomp.listenerPath = $path' --arg path "$here/agent"
}

told() {
	jq -r "$1" "$here/told"
}

@test "seccomp: an agent answers, with no_new_privs" {
	profile "$notify_mkdir"
	no_new_privileges
	agent_listens
	mkdir_is_forbidden
	[ "$(told '.fds | join(" ")')" = seccompFd ]
	[ "$(told .metadata)" = words ]
	[ "$(told .state.id)" = "$id" ]
	[ "$(told .state.bundle)" = "$bundle" ]
	[ "$(told .pid)" = "$(told .state.pid)" ]
}

@test "seccomp: an agent answers, without no_new_privs, for what the runtime itself calls too" {
	runtime_is agentdock-runtime || skip "others wait for ever"
	profile "$notify_mkdir"
	edit '.linux.seccomp.syscalls[0].names += ["setresuid", "capset", "prctl", "close_range", "execve"]'
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	agent_listens
	mkdir_is_forbidden
}

@test "seccomp: an agent is told at start, after the gate" {
	profile "$notify_mkdir"
	agent_listens
	script 'mkdir /tmp/made 2>/ready; read -r line </wait'
	oci_create
	[ ! -e "$here/told" ]
	oci_start
	[[ $(heard) == *"No space left"* ]]
	[ "$(told .state.pid)" = "$(oci_state .pid)" ]
}

@test "seccomp: without an agent there is no container" {
	profile "$notify_mkdir"
	script 'echo ran >/ready'
	run oci_run
	refused linux.seccomp.listenerPath /nowhere
}
