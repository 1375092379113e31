#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Processes that are added to a container that runs.
load common

@test "exec: in all the container's namespaces, in its group, with its exit code" {
	edit '.linux.namespaces = (["pid", "mount", "network", "ipc", "uts", "cgroup"] | map({type: .}))'
	up_until_told
	run oci_exec sh -c 'for n in cgroup ipc mnt net pid uts; do readlink /proc/self/ns/$n; done; exit 6'
	[ "$status" -eq 6 ]
	pid=$(oci_pid)
	[ "$output" = "$(for n in cgroup ipc mnt net pid uts; do readlink "/proc/$pid/ns/$n"; done)" ]
	tell
}

@test "exec: in a user namespace, with a time namespace" {
	[ -e /proc/self/ns/time ] || skip "this kernel lacks time namespaces"
	use_user_namespace
	edit '.linux.namespaces += [{"type": "time"}] | .linux.timeOffsets = {"boottime": {"secs": 8640000, "nanosecs": 0}}'
	up_until_told
	run oci_exec sh -c 'id -u; cat /proc/self/uid_map; readlink /proc/self/ns/time; read -r u r </proc/uptime; [ ${u%.*} -gt 8640000 ]'
	[ "$status" -eq 0 ] || show
	[[ $output == 0*100000*65536*"$(readlink "/proc/$(oci_pid)/ns/time")" ]]
	tell
}

@test "exec: its processes are in the container's groups" {
	up_until_told
	oci exec --detach --pid-file "$here/pid" "$id" sh -c 'echo in >/ready; read -r line </wait' </dev/null
	[ "$(heard)" = in ]
	grep -qx "$(<"$here/pid")" "$(group_dir pids)/cgroup.procs"
	grep -qx "$(<"$here/pid")" "$(group_dir memory)/cgroup.procs"
	oci_delete --force
	until_true gone "$(<"$here/pid")"
}

@test "exec: a program that is not there, or cannot run" {
	up_until_told
	run oci_exec nope
	[ "$status" -eq 127 ]
	[[ $output == *'exec: "nope": executable file not found in $PATH'* ]]
	run oci_exec /etc/passwd
	[ "$status" -eq 126 ]
	[[ $output == *'permission denied'* ]]
	run oci exec --cwd /nowhere "$id" true
	refused process.cwd
	[ ! -e "$rootfs/nowhere" ]
	tell
}

@test "exec: into a container that is stopped, not there, or paused is refused" {
	run oci_exec true
	refused 'does not exist'
	up_until_told
	oci pause "$id"
	run oci_exec true
	refused paused
	oci resume "$id"
	oci_exec true
	tell
	until_true oci_status_is stopped
	run oci_exec true
	refused stopped
}

@test "exec: no descriptor of ours, nor of the caller's, is in it or in reach" {
	up_until_told
	run oci exec "$id" ls /proc/self/fd 7<"$root/Makefile" </dev/null
	says $'0\n1\n2\n3'
	for n in 3 4 5 6 7 8 9 10 11 12; do
		run oci exec --cwd "/proc/self/fd/$n" "$id" sh -c 'ls ../../../etc/debian_version; pwd'
		[ "$status" -ne 0 ] || show
		run oci_exec "/proc/self/fd/$n/bin/busybox"
		[ "$status" -ne 0 ] || show
	done
	tell
}

@test "exec: signals are passed on, and kill of exec alone leaves the container" {
	up_until_told
	"$runtime" --root "$store" exec "$id" sh -c 'trap "exit 9" TERM; echo in >/ready; while :; do sleep 0.05; done' \
		</dev/null >/dev/null 2>&1 3>&- 4>&- &
	[ "$(heard)" = in ]
	kill -TERM $!
	wait $! || [ $? -eq 9 ]
	oci_status_is running
	tell
}

@test "exec: many at once, each with its own answer" {
	up_until_told
	for n in {1..12}; do
		oci exec "$id" sh -c "echo $n; exit $n" </dev/null >"$here/out.$n" &
		pids[n]=$!
	done
	for n in {1..12}; do
		wait "${pids[n]}" || [ $? -eq "$n" ]
		[ "$(<"$here/out.$n")" = "$n" ]
	done
	tell
}

@test "exec: while the container waits at its gate" {
	edit '["CAP_DAC_OVERRIDE", "CAP_KILL"] as $c | .process.capabilities = {"bounding": $c, "effective": $c, "permitted": $c}'
	program true
	oci_create
	run oci_exec sh -c 'echo in; cat /proc/1/environ /proc/1/maps; ls -l /proc/1/fd /proc/1/root/'
	[[ $output == in* ]]
	# what waits there is ours, with memory that is nobody's business
	[[ $output != *"$here"* ]]
	oci_start
}
