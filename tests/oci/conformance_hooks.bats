#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "POSIX-platform Hooks" of the runtime-spec's config.md: what a hook is, where it runs and when. What happens when one
# fails is of runtime.md, and in conformance_runtime.bats. Hooks write into $here/log; those of startContainer into the
# container's /log.

load common

# the hook's own namespaces, then the container's, one line each; $pid is the container's first process
readonly namespaces_script='pid=${state#*\"pid\":}; pid=${pid# }; pid=${pid%%[!0-9]*}
own=; its=
for ns in uts ipc mnt; do
	own="$own $(readlink /proc/self/ns/$ns)"
	its="$its $(readlink /proc/$pid/ns/$ns)"
done'

# the uts namespace of the container, while it is created or running
container_uts() {
	readlink "/proc/$(oci_pid)/ns/uts"
}

# in_runtime_namespace KIND: its hook sees other namespaces than the container's, and the test's own uts namespace
in_runtime_namespace() {
	hook "$1" "$namespaces_script; echo \"\$own\" >$here/own; echo \"\$its\" >$here/its"
	up_until_told
	[ -s "$here/own" ]
	read -r -a own <"$here/own"
	read -r -a its <"$here/its"
	[ "${own[0]}" = "$(readlink /proc/self/ns/uts)" ]
	[ "${own[1]}" = "$(readlink /proc/self/ns/ipc)" ]
	[ "${#its[@]}" = 3 ]
	[ "${own[0]}" != "${its[0]}" ] && [ "${own[1]}" != "${its[1]}" ] && [ "${own[2]}" != "${its[2]}" ]
	[ "${its[0]}" = "$(container_uts)" ]
}

# path_is_the_hosts KIND: a file that is the host's only, and one that is elsewhere in the container
path_is_the_hosts() {
	hook "$1" "echo host >$here/log"
	# what a runtime that looks into the container would find
	mkdir -p "$rootfs$here"
	printf '#!/bin/sh\necho container >%s\n' "$here/log" >"$rootfs$here/hook.1"
	chmod 0755 "$rootfs$here/hook.1"
	up_until_told
	tell
	until_true oci_status_is stopped
	oci_delete
	[ "$(<"$here/log")" = host ]
}

# log_of KIND...: adds to $here/log, by a hook of each
log_of() {
	local kind
	for kind; do hook "$kind" "echo $kind >>$here/log"; done
}

log_is() {
	[ "$(cat "$here/log" 2>/dev/null)" = "$1" ] || {
		cat "$here/log"
		return 1
	}
}

# state_given KIND STATUS...: the state that its hook was given is the container's, with one of these
state_given() {
	local kind=$1 file=$here/state status
	shift
	if [ "$kind" = startContainer ]; then
		file=$rootfs/state
		hook "$kind" 'echo "$state" >/state'
	else
		hook "$kind" "echo \"\$state\" >$file"
	fi
	edit '.annotations = {"com.example.mark": "4711"}'
	script 'echo up >/ready; read -r line </wait'
	oci_create
	created_pid=$(oci_pid)
	oci_start
	[ "$(heard)" = up ]
	tell
	until_true oci_status_is stopped
	oci_delete
	jq -e --arg id "$id" --arg bundle "$bundle" \
		'.id == $id and .bundle == $bundle and .annotations["com.example.mark"] == "4711" and (.ociVersion | type) == "string"' \
		"$file"
	status=$(jq -r .status "$file")
	[[ " $* " == *" $status "* ]]
	[ "$kind" = poststop ] || [ "$kind" = startContainer ] || [ "$kind" = createContainer ] ||
		[ "$(jq .pid "$file")" = "$created_pid" ]
}

# ---- what a hook is ----

@test "config:hooks-1 path is required" {
	refuses '.hooks.createRuntime = [{"args": ["x"]}]' 'hooks.createRuntime[0].path'
}

@test "config:hooks-2 path must be absolute" {
	refuses '.hooks.createRuntime = [{"path": "bin/true"}]' 'hooks.createRuntime[0].path'
}

@test "config:hooks-3 timeout must be greater than zero" {
	refuses '.hooks.createRuntime = [{"path": "/bin/true", "timeout": 0}]' 'hooks.createRuntime[0].timeout'
}

@test "config:hooks-4 args are its argv, env is its environment" {
	hook createRuntime "echo \"\$1 \$2 \$A \$B \$FROM_OUTSIDE.\" >$here/log"
	edit '.hooks.createRuntime[0] |= (.args = ["zero", "one", "two words"] | .env = ["A=1", "B=2"])'
	FROM_OUTSIDE=1 oci_create
	log_is 'one two words 1 2 .'
}

@test "config:hooks-5 timeout is the seconds before it is aborted" {
	mkfifo "$here/never-written"
	hook createRuntime "read -r line <$here/never-written"
	edit '.hooks.createRuntime[0].timeout = 1'
	run oci_create
	refused
}

@test "config:hooks-6 hooks must be called in the listed order" {
	local kind
	for kind in prestart createRuntime createContainer poststart poststop; do
		hook $kind "echo $kind 1 >>$here/log"
		hook $kind "echo $kind 2 >>$here/log"
		hook $kind "echo $kind 3 >>$here/log"
	done
	hook startContainer 'echo 1 >>/log'
	hook startContainer 'echo 2 >>/log'
	up_until_told
	tell
	until_true oci_status_is stopped
	oci_delete
	for kind in prestart createRuntime createContainer poststart poststop; do
		[ "$(grep "^$kind " "$here/log" | tr '\n' ' ')" = "$kind 1 $kind 2 $kind 3 " ]
	done
	[ "$(tr '\n' ' ' <"$rootfs/log")" = '1 2 ' ]
}

@test "config:hooks-7 the state must be passed over stdin: prestart" {
	state_given prestart creating created
}

@test "config:hooks-8 the state must be passed over stdin: createRuntime" {
	state_given createRuntime creating created
}

@test "config:hooks-9 the state must be passed over stdin: createContainer" {
	state_given createContainer creating created
}

@test "config:hooks-10 the state must be passed over stdin: startContainer" {
	state_given startContainer created
}

@test "config:hooks-11 the state must be passed over stdin: poststart" {
	state_given poststart running
}

@test "config:hooks-12 the state must be passed over stdin: poststop" {
	state_given poststop stopped
}

# ---- prestart ----

# environment_before_pivot KIND: at its hook the namespaces, the mounts and the group are there, and the host's tree still is
environment_before_pivot() {
	mkdir "$rootfs/mark"
	edit '.mounts += [{"destination": "/mark", "type": "tmpfs", "source": "mark-of-the-test"}]'
	hook "$1" "$namespaces_script
		[ \"\$own\" = \"\$its\" ] || echo namespaces >>$here/log
		grep -q mark-of-the-test /proc/\$pid/mountinfo && echo mounts >>$here/log
		[ -d /proc/\$pid/root$here ] && echo no pivot >>$here/log
		[ -e $rootfs/ran ] || echo no program >>$here/log"
	script 'echo >/ran'
	oci_create
	log_is $'namespaces\nmounts\nno pivot\nno program'
}

@test "config:prestart-1 must be called in create, after the environment is made and before pivot_root" {
	environment_before_pivot prestart
}

@test "config:prestart-2 must be called before the createRuntime hooks" {
	log_of createRuntime prestart
	oci_create
	log_is $'prestart\ncreateRuntime'
}

@test "config:prestart-3 the path must resolve in the runtime namespace" {
	path_is_the_hosts prestart
}

@test "config:prestart-4 must be executed in the runtime namespace" {
	in_runtime_namespace prestart
}

# ---- createRuntime ----

@test "config:createRuntime-1 must be called in create, after the environment is made and before pivot_root" {
	environment_before_pivot createRuntime
}

@test "config:createRuntime-2 the path must resolve in the runtime namespace" {
	path_is_the_hosts createRuntime
}

@test "config:createRuntime-3 must be executed in the runtime namespace" {
	in_runtime_namespace createRuntime
}

# ---- createContainer ----

@test "config:createContainer-1 must be called in create, after the environment is made and before pivot_root" {
	mkdir "$rootfs/mark"
	edit '.mounts += [{"destination": "/mark", "type": "tmpfs", "source": "mark-of-the-test"}]'
	hook createContainer "grep -q mark-of-the-test /proc/self/mountinfo && echo mounts >>$here/log
		[ -d $here ] && echo no pivot >>$here/log
		[ -e $rootfs/ran ] || echo no program >>$here/log"
	script 'echo >/ran'
	oci_create
	log_is $'mounts\nno pivot\nno program'
}

@test "config:createContainer-2 must be called after the createRuntime hooks" {
	log_of createContainer createRuntime
	oci_create
	log_is $'createRuntime\ncreateContainer'
}

@test "config:createContainer-3 the path must resolve in the runtime namespace" {
	path_is_the_hosts createContainer
}

@test "config:createContainer-4 must be executed in the container namespace" {
	hook createContainer "for ns in uts ipc mnt; do readlink /proc/self/ns/\$ns; done >$here/log"
	oci_create
	pid=$(oci_pid)
	log_is "$(readlink "/proc/$pid/ns/uts" "/proc/$pid/ns/ipc" "/proc/$pid/ns/mnt")"
}

# ---- startContainer ----

@test "config:startContainer-1 must be called in start, before the program is executed" {
	hook startContainer 'echo hook >>/log'
	script 'echo program >>/log; echo up >/ready; read -r line </wait'
	oci_create
	[ ! -e "$rootfs/log" ]
	oci_start
	[ "$(heard)" = up ]
	[ "$(<"$rootfs/log")" = $'hook\nprogram' ]
}

@test "config:startContainer-2 the path must resolve in the container namespace" {
	hook startContainer 'echo container >/log'
	up_until_told
	[ "$(<"$rootfs/log")" = container ]
}

@test "config:startContainer-3 must be executed in the container namespace" {
	hook startContainer 'for ns in uts ipc mnt; do readlink /proc/self/ns/$ns; done >/log'
	up_until_told
	pid=$(oci_pid)
	[ "$(<"$rootfs/log")" = "$(readlink "/proc/$pid/ns/uts" "/proc/$pid/ns/ipc" "/proc/$pid/ns/mnt")" ]
}

# ---- poststart ----

@test "config:poststart-1 must be called after the program is executed, before start returns" {
	# the hook looks whose the first process is
	hook poststart "$namespaces_script; read -r name </proc/\$pid/comm; echo \$name >>$here/log"
	script 'echo up >/ready; read -r line </wait'
	oci_create
	[ ! -e "$here/log" ]
	oci_start
	log_is sh
}

@test "config:poststart-2 the path must resolve in the runtime namespace" {
	path_is_the_hosts poststart
}

@test "config:poststart-3 must be executed in the runtime namespace" {
	in_runtime_namespace poststart
}

# ---- poststop ----

@test "config:poststop-1 must be called after the container is deleted, before delete returns" {
	hook poststop "[ -d $(group_dir pids) ] || echo no group >>$here/log"
	up_until_told
	tell
	until_true oci_status_is stopped
	[ ! -e "$here/log" ]
	oci_delete
	log_is 'no group'
}

@test "config:poststop-2 the path must resolve in the runtime namespace" {
	path_is_the_hosts poststop
}

@test "config:poststop-3 must be executed in the runtime namespace" {
	hook poststop "for ns in uts ipc pid; do readlink /proc/self/ns/\$ns; done >$here/log"
	up_until_told
	tell
	until_true oci_status_is stopped
	oci_delete
	log_is "$(readlink /proc/self/ns/uts /proc/self/ns/ipc /proc/self/ns/pid)"
}
