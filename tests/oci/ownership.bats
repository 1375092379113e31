#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Whose a group is, and who may wait for whom: a container is ended by who made it, together with nobody else, and
# whatever a container or its hooks do, `delete --force` ends.
load common

# other ARGUMENT...: the runtime, for a container of the same id in another store
other() {
	store=$here/other oci "$@"
}

run_other() {
	other run -d --bundle "$bundle" "$id" </dev/null >"$here/out.other" 2>&1
}

is_running() {
	[ "$("$@" state "$id" | jq -r .status)" = running ]
}

# one_that_stopped: $id has run and is not deleted
one_that_stopped() {
	program sleep 1000
	oci_create
	oci_start
	oci_kill KILL
	until_true eval '[ "$(oci_state .status)" = stopped ]'
}

@test "a group is of who made it: none other is made in it, whatever its store" {
	one_that_stopped
	run run_other
	[ "$status" -ne 0 ]
	grep -F "$id" "$here/out.other"
	grep -F "is another container's" "$here/out.other"
	oci_delete
	run_other
	is_running other
	other delete --force "$id"
}

@test "a group that was removed and made anew is another's: nobody in it is listed, signalled or killed" {
	local dir
	one_that_stopped
	for dir in /sys/fs/cgroup{,/*}/"$id"; do
		[ ! -d "$dir" ] || rmdir "$dir"
	done
	run_other
	run oci ps "$id"
	refused "another's"
	run oci kill --all "$id" KILL
	[ "$status" -ne 0 ]
	is_running other
	run oci_delete
	[ "$status" -eq 0 ]
	[[ $output == *"another's"* ]]
	[ ! -e "$store/$id" ]
	is_running other
	other delete --force "$id"
}

@test "no group is made below another container's, nor above one" {
	local dir
	program sleep 1000
	oci_create
	edit '.linux.cgroupsPath += "/below"'
	run run_other
	[ "$status" -ne 0 ]
	grep -F "is another container's" "$here/out.other"
	oci_delete --force
	run_other
	other kill "$id" KILL
	until_true eval '[ "$(other state "$id" | jq -r .status)" = stopped ]'
	edit '.linux.cgroupsPath |= sub("/below$"; "")'
	run oci_create
	refused "is another container's"
	other delete "$id"
	for dir in /sys/fs/cgroup{,/*}/"$id"; do
		[ ! -d "$dir" ] || rmdir "$dir"
	done
	oci_create
	oci_delete --force
}

@test "a group that an engine made is taken, and not marked where the container is not made" {
	local dir
	for dir in /sys/fs/cgroup{,/*}; do
		[ ! -e "$dir/cgroup.procs" ] || mkdir -p "$dir/$id"
	done
	program sleep 1000
	edit '.linux.resources.memory.limit = 1'
	run oci_create
	edit 'del(.linux.resources)'
	oci_create
	oci_delete --force
	[ ! -e "$(group_dir pids)" ]
}

@test "of two that are made in one group at once at most one is" {
	local try both=0 first second
	program sleep 1000
	for try in {1..12}; do
		run_other &
		first=$!
		oci run -d --bundle "$bundle" "$id" </dev/null >"$here/out" 2>&1 &
		second=$!
		if wait "$first" && wait "$second"; then both=$((both + 1)); fi
		wait
		oci_delete --force >/dev/null 2>&1
		other delete --force "$id" >/dev/null 2>&1
	done
	[ "$both" -eq 0 ]
}

@test "delete --force ends one whose startContainer hook hangs" {
	program sleep 1000
	hook startContainer 'exec sleep 1000'
	oci_create
	oci_start 3>&- &
	sleep 0.3
	OCI_TIMEOUT=8 oci_delete --force
	if wait $!; then false; fi
	[ ! -e "$store/$id" ]
}

@test "kill --all KILL ends one whose startContainer hook hangs" {
	program sleep 1000
	hook startContainer 'exec sleep 1000'
	oci_create
	oci_start 3>&- &
	sleep 0.3
	OCI_TIMEOUT=8 run oci kill --all "$id" KILL
	[ "$status" -ne 124 ]
	if wait $!; then false; fi
	oci_delete --force
}

@test "delete --force ends one that is being made, and its create" {
	hook createRuntime 'exec sleep 60 3>&- 4>&-'
	(oci_create 3>&- 4>&-) &
	until_true test -e "$store/$id/state.json"
	sleep 0.2
	run oci_kill
	refused "is being created"
	OCI_TIMEOUT=8 oci_delete --force
	if wait $!; then false; fi
	[ ! -e "$store/$id" ]
	[ ! -e "$(group_dir pids)" ]
}

@test "delete --force ends one whose createContainer hook hangs" {
	hook createContainer 'exec sleep 60 3>&- 4>&-'
	(oci_create 3>&- 4>&-) &
	until_true eval 'grep -q "\"pid\":[1-9]" "$store/$id/state.json"'
	OCI_TIMEOUT=8 oci_delete --force
	if wait $!; then false; fi
	sleep 0.2
	[ ! -e "$store/$id" ]
	[ ! -e "$(group_dir pids)" ]
}

@test "start of a paused container is refused, and nobody waits for it" {
	program sleep 1000
	oci_create
	oci pause "$id"
	OCI_TIMEOUT=5 run oci_start
	refused "is paused"
	oci resume "$id"
	oci_start
	is_running oci
}

@test "delete --regex: what failed for the first pattern is an error, whatever the second does" {
	program sleep 1000
	oci_up
	run oci delete --regex "$id" 'nobody.*'
	refused "not stopped"
}

@test "a state.json that is damaged stops delete, and not delete --force" {
	program sleep 1000
	oci_up
	local pid
	pid=$(oci_state .pid)
	printf 'x' >"$store/$id/state.json"
	run oci_delete
	refused state.json
	run oci_delete --force
	[ "$status" -eq 0 ]
	[[ $output == *state.json* ]]
	[ ! -e "$store/$id" ]
	kill -KILL "$pid"
}
