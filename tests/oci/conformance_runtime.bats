#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# runtime.md and runtime-linux.md of the runtime-spec: a test for each sentence that binds a runtime on Linux.
# docs/oci-conformance.md lists them.

load common

# created_waiting: a container that was created, whose program would write /ran
created_waiting() {
	script 'echo >/ran; echo up >/ready; read -r line </wait'
	oci_create
}

# ended: one whose program has ended, and that is not deleted yet
ended() {
	oci_up
	until_true oci_status_is stopped
}

# nothing_left: of the container $id, whose process was $pid where the test knows it
nothing_left() {
	local dir
	run oci_state
	refused
	for dir in /sys/fs/cgroup{,/*}/"$id"*; do
		[ ! -d "$dir" ] || {
			echo "$dir is left"
			return 1
		}
	done
	[ -z "${pid-}" ] || until_true gone "$pid"
	! grep -q " $here/" /proc/self/mountinfo
}

# ---- Scope, operations ----

@test "runtime:scope-1 who created a container must be able to use the operations on it" {
	up_until_told
	oci_state
	oci_kill KILL
	until_true oci_status_is stopped
	oci_delete
}

@test "runtime:operations-1 state, create, start, kill and delete must be supported" {
	created_waiting
	[ "$(oci_state .id)" = "$id" ]
	oci_start
	[ "$(heard)" = up ]
	oci_kill TERM || oci_kill KILL
	oci_kill KILL
	until_true oci_status_is stopped
	oci_delete
	nothing_left
}

# ---- State ----

@test "runtime:state-1 ociVersion is required" {
	created_waiting
	[[ $(oci_state .ociVersion) =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]]
}

@test "runtime:state-2 id is required" {
	created_waiting
	[ "$(oci_state .id)" = "$id" ]
}

@test "runtime:state-3 the id must be unique" {
	created_waiting
	pid=$(oci_pid)
	run oci_create
	refused
	[ "$(oci_pid)" = "$pid" ]
}

@test "runtime:state-4 status is required: created, running, stopped" {
	created_waiting
	[ "$(oci_state .status)" = created ]
	oci_start
	[ "$(oci_state .status)" = running ]
	[ "$(heard)" = up ]
	tell
	until_true oci_status_is stopped
}

@test "runtime:state-5 other values of status must be for other states: paused" {
	up_until_told
	oci pause "$id"
	status=$(oci_state .status)
	oci resume "$id"
	[[ $status != created && $status != creating && $status != stopped ]]
	[ "$(oci_state .status)" = running ]
	[ "$status" != running ]
}

@test "runtime:state-6 pid is required when created, as the host sees it" {
	created_waiting
	pid=$(oci_pid)
	[ "$(readlink "/proc/$pid/ns/pid")" != "$(readlink /proc/self/ns/pid)" ]
	grep -q "^NSpid:.*[^0-9]1\$" "/proc/$pid/status"
}

@test "runtime:state-7 pid is required when running, as the host sees it" {
	up_until_told ': mark'
	pid=$(oci_pid)
	[ "$(tr '\0' ' ' <"/proc/$pid/cmdline")" = "sh -c : mark; echo up >/ready; read -r line </wait; exit \${line:-0} " ]
}

@test "runtime:state-8 bundle is required, and absolute" {
	cd "$here"
	bundle=./bundle created_waiting
	[ "$(oci_state .bundle)" = "$here/bundle" ]
}

@test "runtime:state-9 annotations are the container's" {
	edit '.annotations = {"com.example.a": "one", "b": ""}'
	created_waiting
	[ "$(oci_state '.annotations["com.example.a"] + .annotations.b')" = one ]
}

@test "runtime:state-10 without annotations it is absent or an empty map" {
	created_waiting
	oci_state 'if .annotations == null or .annotations == {} then empty else error("not empty") end'
}

@test "runtime:state-11 the JSON must have the pattern's keys and types" {
	edit '.annotations = {"a": "b"}'
	created_waiting
	oci_state | jq -e '(.ociVersion | type == "string") and (.id | type == "string")
		and (.status | IN("creating", "created", "running", "stopped")) and (.pid | type == "number" and . > 0 and floor == .)
		and (.bundle | type == "string" and startswith("/")) and (.annotations | to_entries | all(.value | type == "string"))'
}

# ---- Lifecycle ----

@test "runtime:lifecycle-1 the environment must be created as config.json says" {
	edit '.hostname = "made" | .mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "mark"}]'
	created_waiting
	pid=$(oci_pid)
	for ns in pid mnt ipc uts; do
		[ "$(readlink "/proc/$pid/ns/$ns")" != "$(readlink "/proc/self/ns/$ns")" ]
	done
	grep -q ' /mnt .* mark ' "/proc/$pid/mountinfo"
	grep -qx "$pid" "$(group_dir pids)/cgroup.procs"
}

@test "runtime:lifecycle-2 an environment that cannot be created must be an error" {
	refuses '.linux.namespaces += [{"type": "network", "path": "/nowhere"}]' linux.namespaces
}

@test "runtime:lifecycle-3 the program must not run at create" {
	created_waiting
	# what would run now has no other way than by the FIFO
	[ ! -e "$rootfs/ran" ]
	[ "$(oci_state .status)" = created ]
	oci_start
	[ "$(heard)" = up ]
	[ -e "$rootfs/ran" ]
}

@test "runtime:lifecycle-4 updates of config.json after create must not affect the container" {
	edit '.process.env += ["MARK=before"] | .annotations = {"mark": "before"}'
	script 'echo $MARK >/mark; echo up >/ready; read -r line </wait'
	oci_create
	sed -i 's/before/after/' "$config"
	edit '.process.args = ["true"] | .process.cwd = "/nowhere"'
	oci_start
	[ "$(heard)" = up ]
	[ "$(<"$rootfs/mark")" = before ]
	[ "$(oci_state .annotations.mark)" = before ]
	rm "$config"
	tell
	until_true oci_status_is stopped
	oci_delete
}

# hook_is_invoked KIND
hook_is_invoked() {
	local log=$here/log
	[ "$1" != startContainer ] || log=$rootfs/log
	hook "$1" "echo called >>${log#"$rootfs"}"
	up_until_told
	tell
	until_true oci_status_is stopped
	oci_delete
	[ "$(<"$log")" = called ]
}

# failing_create_hook KIND: create is an error, the next hook and the program do not run, the container is destroyed, and
# the poststop hooks are called
failing_create_hook() {
	hook "$1" "pid=\${state#*\\\"pid\\\":}; pid=\${pid# }; echo \${pid%%[!0-9]*} >$here/pid; exit 3"
	hook "$1" "echo second >>$here/log"
	hook poststop "echo poststop >>$here/log"
	script 'echo >/ran'
	run oci_create
	refused
	pid=$(<"$here/pid")
	# in the container's pid namespace it is 1
	[ "$pid" != 1 ] || pid=
	nothing_left
	[ ! -e "$rootfs/ran" ]
	[ "$(<"$here/log")" = poststop ]
}

@test "runtime:lifecycle-5 the prestart hooks must be invoked" {
	hook_is_invoked prestart
}

@test "runtime:lifecycle-6 prestart fails: an error, the container stopped and destroyed, poststop hooks called" {
	failing_create_hook prestart
}

@test "runtime:lifecycle-7 the createRuntime hooks must be invoked" {
	hook_is_invoked createRuntime
}

@test "runtime:lifecycle-8 createRuntime fails: an error, the container stopped and destroyed, poststop hooks called" {
	failing_create_hook createRuntime
}

@test "runtime:lifecycle-9 the createContainer hooks must be invoked" {
	hook_is_invoked createContainer
}

@test "runtime:lifecycle-10 createContainer fails: an error, the container stopped and destroyed, poststop hooks called" {
	failing_create_hook createContainer
}

@test "runtime:lifecycle-11 the startContainer hooks must be invoked" {
	hook_is_invoked startContainer
}

# failing_start_hook KIND: start is an error, the container is stopped and destroyed, and the poststop hooks are called
failing_start_hook() {
	hook "$1" 'exit 3'
	hook poststop "echo poststop >>$here/log"
	script 'echo >/ran; echo up >/ready; read -r line </wait'
	oci_create
	pid=$(oci_pid)
	run oci_start
	refused
	until_true gone "$pid"
	nothing_left
	[ "$(<"$here/log")" = poststop ]
}

@test "runtime:lifecycle-12 startContainer fails: an error, the container stopped and destroyed, poststop hooks called" {
	failing_start_hook startContainer
	[ ! -e "$rootfs/ran" ]
}

@test "runtime:lifecycle-13 start must run the program, as process says" {
	edit '.process.env += ["MARK=x"] | .process.cwd = "/home"'
	up_until_told 'echo $MARK $PWD >/mark'
	[ "$(<"$rootfs/mark")" = 'x /home' ]
}

@test "runtime:lifecycle-14 the poststart hooks must be invoked" {
	hook_is_invoked poststart
}

@test "runtime:lifecycle-15 poststart fails: an error, the container stopped and destroyed, poststop hooks called" {
	failing_start_hook poststart
}

@test "runtime:lifecycle-16 delete must undo what create did" {
	edit '.mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "mark"}]'
	created_waiting
	pid=$(oci_pid)
	oci_start
	[ "$(heard)" = up ]
	tell
	until_true oci_status_is stopped
	oci_delete
	nothing_left
	[[ $(</proc/self/mountinfo) != *"$here"* ]]
	[ ! -e "$store/$id" ]
}

@test "runtime:lifecycle-17 the poststop hooks must be invoked" {
	hook_is_invoked poststop
}

@test "runtime:lifecycle-18 poststop fails: a warning, and the remaining hooks and the lifecycle continue" {
	hook poststop 'exit 3'
	hook poststop "echo second >>$here/log"
	ended
	run --separate-stderr oci_delete
	[ "$status" -eq 0 ] || show
	[ -n "$stderr$output" ]
	[ "$(<"$here/log")" = second ]
	nothing_left
}

# ---- Errors, warnings ----

@test "runtime:errors-1 an error must leave all as if nothing had been tried: create" {
	edit '.mounts += [{"destination": "/mnt", "source": "nowhere", "options": ["bind"]}]'
	run oci_create
	refused
	nothing_left
	[[ $(</proc/self/mountinfo) != *"$here"* ]]
	[ ! -e "$store/$id" ]
	# and the same id can be had at once
	edit 'del(.mounts[-1])'
	oci_create
}

@test "runtime:errors-2 an error must leave all as if nothing had been tried: kill with a signal that is none" {
	up_until_told
	run oci_kill FROB
	refused
	[ "$(oci_state .status)" = running ]
}

@test "runtime:warnings-1 after a warning the operation must continue as if it had not been logged" {
	hook poststop 'exit 3'
	ended
	oci_delete
	nothing_left
	oci_create
}

# ---- Query state ----

@test "runtime:query-1 without an id it must be an error" {
	run oci state
	refused
}

@test "runtime:query-2 of a container that does not exist it must be an error" {
	run oci state nobody
	refused
}

@test "runtime:query-3 it must return the state" {
	created_waiting
	[ "$(oci_state '.id + " " + .status + " " + .bundle')" = "$id created $bundle" ]
}

# ---- Create ----

@test "runtime:create-1 without an id it must be an error" {
	run oci create --bundle "$bundle"
	refused
}

@test "runtime:create-2 without a bundle it must be an error" {
	mkdir "$here/empty"
	cd "$here/empty"
	run oci create "$id"
	refused
	run oci_state
	refused
}

@test "runtime:create-3 an id that is not unique must be an error, and no new container be made" {
	created_waiting
	pid=$(oci_pid)
	make_bundle "$here/second"
	script 'echo >/ran'
	run oci_create
	refused
	[ "$(oci_state '.bundle + " " + .status')" = "$here/bundle created" ]
	[ "$(oci_pid)" = "$pid" ]
}

# id_is_refused ID: and nothing is made, neither in the store nor beside it
id_is_refused() {
	run oci create --bundle "$bundle" "$1"
	refused
	[ -z "$(ls "$store" 2>/dev/null)" ]
	[ ! -e "$here/evil" ]
}

@test "runtime:create-4 an id that is not valid must be an error: empty" {
	id_is_refused ''
}

@test "runtime:create-5 an id that is not valid must be an error: it leads out of the store" {
	id_is_refused ../evil
}

@test "runtime:create-6 an id that is not valid must be an error: a path" {
	id_is_refused a/b
}

@test "runtime:create-7 an id that is not valid must be an error: dots" {
	id_is_refused ..
}

@test "runtime:create-8 a new container must be made by config.json" {
	created_waiting
	[ "$(oci_state .id)" = "$id" ]
	[ -d "/proc/$(oci_pid)" ]
}

# which is of the namespaces, mounts, and process; linux.* is in conformance_linux*.bats
@test "runtime:create-9 all properties but process must be applied" {
	edit '.hostname = "made" | .root.readonly = true
		| .mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "mark", "options": ["nosuid"]}]'
	created_waiting
	pid=$(oci_pid)
	[ "$(nsenter -u -t "$pid" hostname)" = made ]
	[[ $(awk '$5 == "/" { print $6 }' "/proc/$pid/mountinfo") == ro* ]]
	[[ $(awk '$5 == "/mnt" { print $6 }' "/proc/$pid/mountinfo") == *nosuid* ]]
}

@test "runtime:create-10 process.args must not be applied until start" {
	created_waiting
	pid=$(oci_pid)
	[[ $(tr '\0' ' ' <"/proc/$pid/cmdline") != 'sh -c '* ]]
	[ ! -e "$rootfs/ran" ]
	oci_start
	[ "$(heard)" = up ]
	[[ $(tr '\0' ' ' <"/proc/$pid/cmdline") == 'sh -c '* ]]
}

@test "runtime:create-11 a property that cannot be applied must be an error, and no new container be made" {
	refuses '.linux.sysctl = {"net.ipv4.no_such_thing": "1"} | .linux.namespaces += [{"type": "network"}]' linux.sysctl
	nothing_left
}

@test "runtime:create-12 upon success the status must be created" {
	created_waiting
	[ "$(oci_state .status)" = created ]
}

# ---- Start ----

@test "runtime:start-1 without an id it must be an error" {
	run oci start
	refused
}

@test "runtime:start-2 of a container that does not exist it must be an error" {
	run oci start nobody
	refused
}

@test "runtime:start-3 of a container that runs it must be an error, and have no effect" {
	script 'echo again >>/ran; echo up >/ready; read -r line </wait'
	oci_up
	[ "$(heard)" = up ]
	pid=$(oci_pid)
	run oci_start
	refused
	[ "$(<"$rootfs/ran")" = again ]
	[ "$(oci_state '.status')" = running ]
	[ "$(oci_pid)" = "$pid" ]
}

@test "runtime:start-4 of a container that has stopped it must be an error, and have no effect" {
	script 'echo again >>/ran'
	ended
	run oci_start
	refused
	[ "$(<"$rootfs/ran")" = again ]
	[ "$(oci_state .status)" = stopped ]
}

@test "runtime:start-5 it must run the program" {
	created_waiting
	[ ! -e "$rootfs/ran" ]
	oci_start
	[ "$(heard)" = up ]
	[ -e "$rootfs/ran" ]
}

@test "runtime:start-6 upon success the status must be running" {
	created_waiting
	oci_start
	[ "$(oci_state .status)" = running ]
}

@test "runtime:start-7 where process was not set it must be an error" {
	# a runtime may say so at create
	never_runs 'del(.process)'
}

# ---- Kill ----

@test "runtime:kill-1 without an id it must be an error" {
	run oci kill
	refused
}

@test "runtime:kill-2 of a container that does not exist it must be an error" {
	run oci kill nobody KILL
	refused
}

@test "runtime:kill-3 of a container that has stopped it must be an error, and have no effect" {
	ended
	run oci_kill KILL
	refused
	[ "$(oci_state .status)" = stopped ]
	oci_delete
}

# signal_arrives NAME ARGUMENT
signal_arrives() {
	script "trap 'echo $1 >/ready' $1; echo up >/ready; while :; do read -r line <>/wait; done"
	oci_up
	[ "$(heard)" = up ]
	oci_kill "$2"
	[ "$(heard)" = "$1" ]
}

@test "runtime:kill-4 it must send the signal: TERM" {
	signal_arrives TERM TERM
}

@test "runtime:kill-5 it must send the signal: SIGUSR1" {
	signal_arrives USR1 SIGUSR1
}

@test "runtime:kill-6 it must send the signal: 12" {
	signal_arrives USR2 12
}

@test "runtime:kill-7 it must send the signal to a container that is created" {
	created_waiting
	oci_kill KILL
	until_true oci_status_is stopped
	[ ! -e "$rootfs/ran" ]
}

@test "runtime:kill-8 once the process is stopped by a kill the status must be stopped" {
	up_until_told
	oci_kill KILL
	until_true oci_status_is stopped
}

@test "runtime:kill-9 once the process is stopped by itself the status must be stopped" {
	up_until_told
	tell 3
	until_true oci_status_is stopped
}

# ---- Delete ----

@test "runtime:delete-1 without an id it must be an error" {
	run oci delete
	refused
}

@test "runtime:delete-2 of a container that does not exist it must be an error" {
	run oci delete nobody
	refused
}

@test "runtime:delete-3 of a container that runs it must be an error, and have no effect" {
	up_until_told
	pid=$(oci_pid)
	run oci_delete
	refused
	[ "$(oci_state .status)" = running ]
	[ "$(oci_pid)" = "$pid" ]
	tell
	until_true oci_status_is stopped
	oci_delete
}

@test "runtime:delete-4 of a container that is created it must be an error, and have no effect" {
	created_waiting
	run oci_delete
	refused
	oci_start
	[ "$(heard)" = up ]
}

@test "runtime:delete-5 it must delete the resources that create made" {
	ended
	pid=
	oci_delete
	nothing_left
}

@test "runtime:delete-6 what create did not make must not be deleted" {
	mkdir "$bundle/data"
	echo kept >"$bundle/data/file"
	shared_directory "$here/other"
	echo kept >"$here/other/file"
	edit '.mounts += [{"destination": "/mnt", "source": "data", "options": ["bind"]},
		{"destination": "/home", "source": $other, "options": ["rbind"]}]' --arg other "$here/other"
	script 'echo kept >/file'
	ended
	oci_delete
	[ "$(<"$bundle/data/file")" = kept ]
	[ "$(<"$here/other/file")" = kept ]
	[ "$(<"$rootfs/file")" = kept ]
	[ -f "$config" ]
	grep -q " $here/other " /proc/self/mountinfo
}

@test "runtime:delete-7 what create did not make must not be deleted: a namespace that was joined" {
	unshare -u --propagation private sh -c 'hostname outer; echo up >"$1"; read -r line <"$2"' sh \
		"$here/bundle/rootfs/ready" "$rootfs/wait" 3>&- &
	keeper=$!
	[ "$(heard)" = up ]
	edit '(.linux.namespaces[] | select(.type == "uts")).path = $path' --arg path "/proc/$keeper/ns/uts"
	script 'hostname >/name'
	ended
	oci_delete
	[ "$(<"$rootfs/name")" = outer ]
	[ "$(nsenter -u -t "$keeper" hostname)" = outer ]
	tell
	wait "$keeper"
}

@test "runtime:delete-8 the id may be used again" {
	ended
	oci_delete
	created_waiting
	[ "$(oci_state .status)" = created ]
}

# ---- runtime-linux.md ----

@test "runtime-linux:descriptors-1 only standard input, output and error are open" {
	script 'echo /proc/self/fd/*'
	run with_a_descriptor
	# the shell's own, for what it lists, is closed by then
	[[ $output == '/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2'* ]] || show
	[[ $output != *fd/7* ]] || show
}

with_a_descriptor() {
	oci_run 7</etc/passwd
}

# link_is PATH TARGET
link_is() {
	use_podman_config
	script_runs "readlink $1"
	says "$2"
}

@test "runtime-linux:links-1 /dev/fd must be a link to /proc/self/fd" {
	link_is /dev/fd /proc/self/fd
}

@test "runtime-linux:links-2 /dev/stdin must be a link to /proc/self/fd/0" {
	link_is /dev/stdin /proc/self/fd/0
}

@test "runtime-linux:links-3 /dev/stdout must be a link to /proc/self/fd/1" {
	link_is /dev/stdout /proc/self/fd/1
}

@test "runtime-linux:links-4 /dev/stderr must be a link to /proc/self/fd/2" {
	link_is /dev/stderr /proc/self/fd/2
}
