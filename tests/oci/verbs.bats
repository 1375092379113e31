#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The program: options, what it prints, what engines look for in its words; the store under those who act at the same time
# or are killed; the program's own file.

load common

ours_only() {
	runtime_is agentdock-runtime || skip "our own words"
}

# ---- options ----

@test "verbs: the version is what engines parse" {
	ours_only
	run -0 oci --version
	[[ ${lines[0]} =~ ^"agentdock-runtime version "[0-9]+\.[0-9]+\.[0-9]+$ ]]
	[ "${lines[1]}" = "spec: 1.3.0" ]
	[ "$(oci -v)" = "$output" ]
}

@test "verbs: each explains itself" {
	ours_only
	run -0 oci --help
	for verb in create start run exec state list ps kill pause resume update delete events spec features; do
		[[ $output == *"  $verb "* ]] || show
		[[ $(oci "$verb" --help) == "usage: agentdock-runtime $verb "* ]]
		[ "$(oci help "$verb")" = "$(oci "$verb" -h)" ]
	done
}

@test "verbs: the manual has each option, and no other" {
	ours_only
	local manual=$root/docs/man/agentdock-runtime.8 name
	for name in $(oci --help | grep -oE -- '--[a-z-]+' | sort -u); do
		[[ $name == --bundle ]] || grep -q "Fl ${name#--}" "$manual" || { echo "$name" && false; }
	done
	for verb in $(oci --help | sed -n '/^verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
		grep -q "Cm $verb\b" "$manual" || { echo "$verb" && false; }
	done
}

@test "verbs: what is unknown, missing or too much is refused by name" {
	ours_only
	run oci delete --fast x
	refused --fast
	run oci --colour list
	refused --colour
	run oci start
	refused "ID is missing"
	run oci start a b
	refused "too many arguments"
	run oci dance x
	refused dance
	run oci
	refused "no command"
	run oci update x --memory
	refused "--memory needs an argument"
	run oci update x --memory=lots
	refused "--memory" lots
	run oci update x
	refused "nothing to change"
	run oci list --format yaml
	refused "--format" yaml "table|json"
	run oci --cgroup-manager disabled list
	refused "--cgroup-manager" disabled
	run oci --criu "$here/criu" exec x
	refused "does not exist"
	run oci --log "$here/none/log" list
	refused "$here/none/log"
	run oci state ../x
	refused "invalid container ID"
}

@test "verbs: options stand before and after the id, with both spellings" {
	up_until_told
	oci kill "$id" 0
	oci kill --all "$id" SIGCONT
	oci kill "$id" CONT
	if runtime_is agentdock-runtime; then oci delete "$id" --force; else oci delete --force "$id"; fi
	run oci state "$id"
	refused
}

# ---- what engines look for ----

@test "verbs: no such container" {
	local verb
	for verb in state start kill delete pause resume ps exec; do
		run oci "$verb" "$id" true
		[ "$verb" = exec ] || [ "$verb" = kill ] || [ "$verb" = ps ] || run oci "$verb" "$id"
		if runtime_is agentdock-runtime && [ "$verb" != kill ]; then refused "does not exist"; else refused; fi
	done
	oci delete --force "$id"
}

@test "verbs: the words for an id that is taken, a container that has ended or runs" {
	ours_only
	up_until_told
	run oci_create
	refused "already exists"
	run oci_delete
	refused "cannot delete container $id that is not stopped"
	oci_kill KILL
	until_true oci_status_is stopped
	run oci_kill TERM
	refused "container not running"
	run oci_exec true
	refused "$id"
	oci_delete
}

@test "verbs: a program that lacks, or can't be executed, with the words and the code of it" {
	ours_only
	program /none
	run -127 oci_run
	program none
	run -127 oci_run
	[[ $output == *'executable file not found in $PATH'* ]] || show
	program /etc/passwd
	run -126 oci_run
	[[ ${output,,} == *"permission denied"* ]] || show
}

@test "verbs: an error is a line of the log, as JSON and as text" {
	run oci --log "$here/log" --log-format json state "$id"
	refused
	[ "$(jq -r .level "$here/log")" = error ]
	[[ $(jq -r .msg "$here/log") == *"${id}"* || $(jq -r .msg "$here/log") == *exist* ]]
	[[ $(jq -r .time "$here/log") == 20??-??-??T??:??:??* ]]
	ours_only
	run oci --log "$here/text" state 'a"'
	[[ $(<"$here/text") == 'time="20'*'" level=error msg="'*'\"a\"\": it is'* ]] || { cat "$here/text" && false; }
	run oci --log "$here/quiet" list
	[ ! -s "$here/quiet" ]
}

# ---- state, list, ps ----

@test "verbs: state and list say the same" {
	edit '.annotations = {"a.b": "c"}'
	up_until_told
	[ "$(oci_state '[.id, .status, .bundle, .annotations["a.b"]] | join(" ")')" = "$id running $bundle c" ]
	! runtime_is agentdock-runtime || [ "$(oci_state '.rootfs + " " + .owner')" = "$rootfs root" ]
	[[ $(oci_state .created) == 20??-??-??T??:??:??* ]]
	[ "$(oci list -q)" = "$id" ]
	oci list | grep -q "^$id *$(oci_pid) *running *$bundle"
	[ "$(oci list --format json | jq -r '.[0] | [.id, .pid, .status] | join(" ")')" = "$id $(oci_pid) running" ]
}

@test "verbs: ps lists processes of the container and no others" {
	up_until_told '(sleep 1000 &)'
	[ "$(oci ps --format json "$id" | jq length)" = 2 ]
	oci ps --format json "$id" | jq -e "index($(oci_pid))"
	ps -ef >/dev/null 2>&1 || skip "ps itself fails in this kernel"
	run -0 oci ps "$id"
	[ "${#lines[@]}" -eq 3 ] || show
	ours_only
	run -0 oci ps "$id" -eo pid,args
	[[ ${#lines[@]} -eq 3 && $output == *"sleep 1000"* ]] || show
}

# ---- exec ----

@test "verbs: exec as numbers only, and never as another user (R12)" {
	ours_only
	up_until_told
	[ "$(oci exec --user 7:8 "$id" sh -c 'id -u; id -g; id -G' | tr '\n' ' ')" = "7 8 8 " ]
	[ "$(oci exec -u 7 -g 9 -g 10 "$id" id -G)" = "0 9 10" ]
	local user
	for user in root user 1000x 0x0 -1 '' ' 7' +7 7: :7 7:8:9 7:x 4294967295 4294967296 18446744073709551616; do
		run oci exec --user "$user" "$id" id
		[ "$status" -eq 125 ] || show
		[[ $output == *--user* ]] || show
	done
}

@test "verbs: exec changes what options say and keeps the rest" {
	! runtime_is crun || skip "crun's --env takes away all others"
	edit '.process.env += ["A=old", "B=kept"] | .process.cwd = "/home"'
	up_until_told
	# shellcheck disable=SC2016 # the container's
	[ "$(oci exec -e A=new "$id" sh -c 'echo $A $B; pwd')" = "$(printf 'new kept\n/home')" ]
	[ "$(oci exec --cwd /tmp "$id" pwd)" = /tmp ]
	[ "$(oci exec -e A=new "$id" env | grep -c ^A=)" = 1 ] || ! runtime_is agentdock-runtime
	echo '{"args": ["sh", "-c", "pwd; echo $C"], "cwd": "/etc", "env": ["PATH=/bin", "C=d"], "user": {"uid": 0, "gid": 0}}' \
		>"$here/process.json"
	[ "$(oci exec --process "$here/process.json" "$id")" = "$(printf '/etc\nd')" ]
}

@test "verbs: exec gives the command's exit code, 126 and 127" {
	ours_only
	up_until_told
	run oci_exec sh -c 'exit 7'
	[ "$status" -eq 7 ] || show
	run oci_exec sh -c 'kill -TERM $$'
	[ "$status" -eq 143 ] || show
	run -127 oci_exec none
	run -126 oci_exec /etc/passwd
}

# ---- limits, figures ----

@test "verbs: update sets what is named and leaves the rest" {
	edit '.linux.resources = {"pids": {"limit": 50}, "memory": {"limit": 104857600}}'
	up_until_told
	local pids memory
	oci update --pids-limit 60 "$id"
	pids=$(group_dir pids)/pids.max
	memory=$(group_dir memory)/memory.limit_in_bytes
	[ -e "$memory" ] || memory=$(group_dir memory)/memory.max
	[ "$(<"$pids")" = 60 ]
	[ "$(<"$memory")" = 104857600 ]
	echo '{"pids": {"limit": 70}, "memory": {"limit": 209715200}}' | oci update --resources - "$id"
	[ "$(<"$pids") $(<"$memory")" = "70 209715200" ]
	ours_only
	echo '{"pids": {"limit": 80}}' | oci update -r - --memory 100m "$id"
	[ "$(<"$pids") $(<"$memory")" = "80 104857600" ]
	run oci update --pids-limit x "$id"
	refused --pids-limit
	run oci update --cpu-idle 2 "$id"
	refused cpu.idle
}

@test "verbs: events prints figures in runc's shape" {
	! runtime_is crun || skip "crun has none"
	edit '.linux.resources = {"pids": {"limit": 50}, "memory": {"limit": 104857600}}'
	up_until_told
	oci events --stats "$id" >"$here/stats"
	[ "$(jq -r '[.type, .id] | join(" ")' "$here/stats")" = "stats $id" ]
	jq -e '.data.pids.current >= 1 and .data.pids.limit == 50' "$here/stats"
	jq -e '.data.memory.usage | .limit == 104857600 and .usage > 0' "$here/stats"
	jq -e '.data.cpu.usage.total > 0' "$here/stats"
}

@test "verbs: events ends with the container" {
	ours_only
	up_until_told
	oci events --interval 100s "$id" >"$here/events" &
	until_true test -s "$here/events"
	oci_kill KILL
	wait $!
}

# ---- spec ----

@test "verbs: spec writes a config.json that runs, and replaces none" {
	mkdir -p "$here/new"
	cp -al "$(common_root)" "$here/new/rootfs"
	(cd "$here/new" && oci spec)
	bundle=$here/new config=$here/new/config.json
	edit '.process.terminal = false | .process.args = ["sh", "-c", "echo ran"] | .linux.cgroupsPath = $group' --arg group "$group"
	[ "$(oci_run)" = ran ]
	run oci spec --bundle "$here/new"
	refused exist
	ours_only
	oci spec --bundle "$here/new" --rootless -f other.json
	jq -e '.linux.uidMappings[0].size == 1 and ([.linux.namespaces[].type] | index("network") == null)' \
		"$here/new/other.json"
}

# ---- kill, delete: several, paused, without a pid namespace ----

# in_under_a_second SINCE: nothing is measured in the guests of tests/vm
in_under_a_second() {
	[ -n "${AGENTDOCK_WANT_CGROUP-}" ] || [ $(($(date +%s%N) - $1)) -lt 1000000000 ]
}

@test "verbs: a paused container is killed and deleted in under a second (R4)" {
	! runtime_is crun || skip "crun leaves it frozen"
	local before
	up_until_told
	oci pause "$id"
	oci_status_is paused
	before=$(date +%s%N)
	oci_kill KILL
	until_true oci_status_is stopped
	oci_delete
	in_under_a_second "$before"
	rm "$rootfs"/{ready,wait} && mkfifo "$rootfs"/{ready,wait}
	up_until_told
	oci pause "$id"
	before=$(date +%s%N)
	oci_delete --force
	in_under_a_second "$before"
}

@test "verbs: in the host's pid namespace KILL takes all, also those whose parent has gone" {
	ours_only
	edit '.linux.namespaces |= map(select(.type != "pid"))'
	up_until_told '(sleep 1000 & echo $! >/child)'
	local child
	read -r child <"$rootfs/child"
	oci_kill KILL
	until_true gone "$child"
}

@test "verbs: delete takes what the first process left in its group" {
	edit '.linux.namespaces |= map(select(.type != "pid"))'
	up_until_told '(sleep 1000 & echo $! >/child)'
	local child
	read -r child <"$rootfs/child"
	tell
	until_true oci_status_is stopped
	! gone "$child"
	oci_delete
	until_true gone "$child"
}

@test "verbs: by a regular expression" {
	! runtime_is runc || skip "crun's"
	oci_create
	run oci delete --force --regex "$id.+"
	oci state "$id"
	oci delete --force --regex "oci-test-.*-$BATS_TEST_NUMBER"
	run oci state "$id"
	refused
}

# ---- the store: who acts at the same time, who is killed ----

@test "verbs: of many creates at once one wins" {
	local i won=0
	for i in {1..8}; do
		oci create --bundle "$bundle" "$id" >/dev/null 2>"$here/said.$i" </dev/null && : >"$here/won.$i" &
	done
	wait
	for i in {1..8}; do
		[ ! -e "$here/won.$i" ] || won=$((won + 1))
	done
	[ $won -eq 1 ]
	oci_status_is created
	oci_delete --force
}

@test "verbs: of many starts at once one wins, and many deletes leave nothing" {
	local i won=0
	script 'echo ran >>/ran'
	oci_create
	for i in {1..6}; do
		oci start "$id" >/dev/null 2>&1 && : >"$here/won.$i" &
	done
	wait
	for i in {1..6}; do
		[ ! -e "$here/won.$i" ] || won=$((won + 1))
	done
	[ $won -eq 1 ]
	until_true oci_status_is stopped
	[ "$(<"$rootfs/ran")" = ran ]
	for i in {1..6}; do
		oci delete --force "$id" >"$here/said.$i" 2>&1 || : >"$here/failed.$i" &
	done
	wait
	[ -z "$(compgen -G "$here/failed.*")" ] || { cat "$here"/said.* && false; }
	[ ! -e "$store/$id" ]
}

@test "verbs: create and delete in turns, each by several, leave nothing" {
	local i
	for i in {1..4}; do
		for _ in {1..5}; do oci create --bundle "$bundle" "$id" >/dev/null 2>&1 </dev/null; done &
		for _ in {1..5}; do oci delete --force "$id" >/dev/null 2>>"$here/said"; done &
	done
	wait
	[ ! -s "$here/said" ] || { cat "$here/said" && false; }
	oci delete --force "$id"
	[ ! -e "$store/$id" ]
	[ ! -d "$(group_dir pids)" ]
	! grep -q " $here/" /proc/self/mountinfo
}

@test "verbs: a create that is killed at any moment is deleted like any other" {
	ours_only
	local us pid
	for us in {1..20}; do
		script 'sleep 1000'
		timeout -s KILL "0.00$(printf %02d "$us")" "$runtime" --root "$store" create --bundle "$bundle" \
			--pid-file "$here/pid" "$id" >/dev/null 2>&1 </dev/null || true
		if [ -e "$store/$id" ]; then
			[[ $(oci_state .status) =~ ^(stopped|created)$ ]]
			run oci_create
			refused "already exists"
		fi
		oci_delete --force
		[ ! -e "$store/$id" ]
		[ ! -d "$(group_dir pids)" ]
		if [ -e "$here/pid" ]; then
			read -r pid <"$here/pid"
			until_true gone "$pid"
		fi
	done
}

@test "verbs: a delete that is killed at any moment is done by the next" {
	ours_only
	local us
	for us in {1..15}; do
		oci_create
		timeout -s KILL "0.00$(printf %02d "$us")" "$runtime" --root "$store" delete --force "$id" >/dev/null 2>&1 || true
		oci_delete --force
		[ ! -e "$store/$id" ]
		[ ! -d "$(group_dir pids)" ]
	done
}

@test "verbs: a directory without a record is a leftover, and deleted" {
	ours_only
	mkdir -p "$store/$id"
	oci_status_is stopped
	[ "$(oci list -q)" = "$id" ]
	run oci_create
	refused "already exists"
	oci_delete
	[ ! -e "$store/$id" ]
}

# A create that is killed between the record and the making of its group, where others sit in a group of that name.
@test "verbs: a record without a process ends nobody in the group that it names" {
	ours_only
	local dir pid
	oci_create
	cp -a "$store/$id" "$here/kept"
	oci_delete --force
	cp -a "$here/kept" "$store/$id"
	jq -c '.pid = 0 | .pidStart = 0' "$here/kept/state.json" >"$store/$id/state.json"
	sleep 100 3>&- 4>&- &
	pid=$!
	for dir in /sys/fs/cgroup/{unified,pids,freezer,.}; do
		[ -e "$dir/cgroup.procs" ] || continue
		[ "$(cgroup_view)" != v1 ] || [ "$dir" != /sys/fs/cgroup/unified ] || continue
		mkdir -p "$dir$group"
		echo "$pid" >"$dir$group/cgroup.procs"
	done
	run oci kill --all "$id" KILL
	refused "container not running"
	run oci ps "$id"
	refused "container not running"
	oci_delete --force
	[ ! -e "$store/$id" ]
	! gone "$pid"
	grep -qx "$pid" "$(group_dir pids)/cgroup.procs"
	kill -KILL "$pid"
}

@test "verbs: a reused pid is nobody's container" {
	ours_only
	oci_create
	local pid
	pid=$(oci_pid)
	jq -c ".pid = $$" "$store/$id/state.json" >"$here/record" && mv "$here/record" "$store/$id/state.json"
	oci_status_is stopped
	run oci_kill KILL
	refused "container not running"
	jq -c ".pid = $pid" "$store/$id/state.json" >"$here/record" && mv "$here/record" "$store/$id/state.json"
	oci_status_is created
	oci_delete --force
}

# ---- the program's file ----

# Root of a container, in no user namespace, keeps a descriptor of the runtime's file that a process of it executes, and
# writes to it when nobody does so any more (CVE-2019-5736): $output says whether it could.
attack_runtime() {
	# shellcheck disable=SC2016 # the container's
	script '
		echo up >/ready
		while ! [ -e /held ]; do
			for exe in /proc/[0-9]*/exe; do
				case $(readlink $exe 2>/dev/null) in */busybox|"") continue;; esac
				exec 5<$exe && : >/held && break
			done
		done
		read -r line </wait
		echo evil >/proc/self/fd/5 && echo wrote >/ready || echo held >/ready
		sleep 1000'
	oci_up
	[ "$(heard)" = up ]
	# it reads its standard input, and so stays
	(until_true test -e "$rootfs/held") | oci exec "$id" /proc/self/exe update --resources - x || true
	[ -e "$rootfs/held" ]
	tell
	output=$(heard)
}

@test "verbs: a container's root can't write to the runtime's file" {
	ours_only
	[[ $build != *asan* ]] || skip "a sanitizer's build starts with libc"
	local was
	cp "$runtime" "$here/agentdock-runtime"
	runtime=$here/agentdock-runtime
	was=$(sha256sum <"$runtime")
	attack_runtime
	[ "$output" = held ]
	[ "$(sha256sum <"$runtime")" = "$was" ]
}

@test "verbs: it could, if the program began where libc does" {
	ours_only
	[[ $build != *asan* ]] || skip "a sanitizer's build starts with libc"
	local entry
	entry=$(nm "$runtime" | awk '$3 == "_start" { print $1 }')
	cp "$runtime" "$here/agentdock-runtime"
	runtime=$here/agentdock-runtime
	python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.pwrite(fd, int(sys.argv[2], 16).to_bytes(8, "little"), 24)' "$runtime" "$entry"
	attack_runtime
	[ "$output" = wrote ]
	cp "$build/agentdock-runtime" "$here/new" && mv "$here/new" "$runtime"
}

# exe_while_waiting COMMAND...: what file it executes, while it waits for its standard input
exe_while_waiting() {
	mkfifo "$here/input"
	"$@" exec --process - x <"$here/input" >/dev/null 2>&1 &
	exec 5>"$here/input"
	until_true is_launched $!
	readlink "/proc/$!/exe"
	cat "/proc/$!/comm"
	exec 5>&-
	wait $! || true
}

is_launched() {
	[ "$(readlink "/proc/$1/exe")" != "$(readlink "/proc/$$/exe")" ] && grep -q '^agentdock' "/proc/$1/comm" &&
		[ "$(readlink "/proc/$1/exe")" != "$runtime" ] && [[ $(readlink "/proc/$1/exe") != */setpriv ]]
}

@test "verbs: the program runs from a mount that is nowhere, or without the right to mount as a sealed copy" {
	ours_only
	[[ $build != *asan* ]] || skip "a sanitizer's build starts with libc"
	cp "$runtime" "$here/agentdock-runtime"
	runtime=$here/agentdock-runtime
	[ "$(exe_while_waiting "$runtime")" = "$(printf '/\nagentdock-runti')" ]
	rm "$here/input"
	[ "$(exe_while_waiting setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set -all --inh-caps -all \
		"$runtime")" = "$(printf '/memfd:agentdock-runtime (deleted)\nagentdock-runti')" ]
}

@test "verbs: executed by descriptor it refuses to go on" {
	ours_only
	[[ $build != *asan* ]] || skip "a sanitizer's build starts with libc"
	# from a mount that can be written to: a guest's root is read-only
	cp "$runtime" "$here/agentdock-runtime"
	run python3 -c 'import os, sys; os.execve(os.open(sys.argv[1], os.O_RDONLY), ["x", "run", "x"], {})' \
		"$here/agentdock-runtime"
	[ "$status" -eq 125 ] || show
	refused "executed by descriptor"
}
