# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the command tests share: where the program is, places of its own for each test, sandboxes in the background, and
# the proof, after each test, that nothing is left of them. Loaded by each *.bats; its setup calls common_setup.
# What runs for every test forks as little as it can: in a test kernel a fork of bash costs 20 ms, see tests/vm.
bats_require_minimum_version 1.5.0

# Sets $root (the repository) and $agentdock; gives the test an image store, a RUN directory and a control group that
# nobody else has. A test whose sandboxes stand on the default image calls use_default_image as well.
common_setup() {
	root=${BATS_TEST_DIRNAME%/*/*}
	build=${AGENTDOCK_BUILD:-build}
	[[ $build == /* ]] || build=$root/$build
	agentdock=${AGENTDOCK:-$build/agentdock}
	common_store=${AGENTDOCK_STATE_DIR:-/var/lib/agentdock}
	common_file=${BATS_TEST_FILENAME##*/}
	common_file=${common_file%.bats}
	export AGENTDOCK_STATE_DIR=$BATS_TEST_TMPDIR/state
	export AGENTDOCK_RUN_DIR=$BATS_TEST_TMPDIR/run
	export AGENTDOCK_CGROUP_PARENT=agentdock-test-$common_file-$BATS_TEST_NUMBER-$$
	unset "${!SANDBOX_@}" AGENTDOCK_DEBUG
	declare -gA started=() feeds=() outs=()
	cd "$BATS_TEST_TMPDIR" || return
}

# For a run with a workspace: agentdock-archive is executed on the sandbox's root, where there is no sanitizer's library.
use_static_archiver() {
	[ "${build##*/}" != build-asan ] || export AGENTDOCK_LIBEXEC=$root/build
}

# The default image, seen through a store whose disks are the test's own. A test that removes images or layers must not
# call this: the links lead to the host's.
use_default_image() {
	if [ ! -e "$common_store/images/names" ]; then
		echo "no image in $common_store; make it with: make image" >&2
		return 1
	fi
	mkdir -p "$AGENTDOCK_STATE_DIR"
	ln -s "$common_store/images" "$common_store/layers" "$AGENTDOCK_STATE_DIR"
	use_static_archiver
}

# ---- what is left ----

cgroup_mounts() {
	awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/self/mounts
}

# What the report has to say of them: v2 when no controller is on the first version, else hybrid.
cgroup_kind() {
	awk '$3 == "cgroup" && $4 !~ /(^|,)name=/ { old = 1 } END { print old ? "hybrid" : "v2" }' /proc/self/mounts
}

cgroup2_mount() {
	awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts
}

# Sets the array $groups: this test's control group in each hierarchy where it is there.
find_groups() {
	local path type
	groups=()
	while read -r _ path type _; do
		case $type in cgroup | cgroup2) ;; *) continue ;; esac
		[ ! -d "$path/$AGENTDOCK_CGROUP_PARENT" ] || groups+=("$path/$AGENTDOCK_CGROUP_PARENT")
	done </proc/self/mounts
}

# Kills what a failed test left in its control group, which nobody else uses.
end_leftovers() {
	local name pid group groups inner
	for name in "${!started[@]}"; do
		kill -KILL "${started[$name]}" 2>/dev/null || true
		wait "${started[$name]}" 2>/dev/null || true
	done
	find_groups
	for group in "${groups[@]}"; do
		[ ! -w "$group/cgroup.kill" ] || echo 1 >"$group/cgroup.kill"
	done
	for group in "${groups[@]}"; do
		inner=("$group"/*/)
		[ -d "${inner[0]}" ] || continue
		while read -r pid; do
			timeout 10 tail --pid="$pid" -f /dev/null
		done < <(find "$group" -name cgroup.procs -exec cat {} +)
		find "$group" -mindepth 1 -depth -type d -exec rmdir {} +
	done
	[ ${#groups[@]} -eq 0 ] || rmdir "${groups[@]}"
}

# Prints the loop devices whose file is in the test's directory; fails when there is none.
our_loops() {
	local path file found=1
	for path in /sys/block/loop*/loop/backing_file; do
		# a device that goes meanwhile is somebody else's
		{ IFS= read -r file <"$path"; } 2>/dev/null || continue
		if [[ $file == *"$BATS_TEST_TMPDIR/"* ]]; then
			echo "loop device: $path"
			found=0
		fi
	done
	return $found
}

# each_in DIRECTORY WHAT: prints what is there
each_in() {
	local path
	for path in "$1"/* "$1"/.[!.]*; do
		[ ! -e "$path" ] && [ ! -L "$path" ] || echo "$2: $path"
	done
}

# Is no sandbox torn down any more? Who does that holds its label, which goes last.
torn_down() {
	local label
	for label in "$AGENTDOCK_RUN_DIR"/s*; do
		# by descriptor: given a name, flock would make the file anew that went meanwhile
		[ ! -e "$label" ] || flock --nonblock 9 2>/dev/null 9<"$label" || return
	done
}

# Prints what is left of this test's sandboxes, when those that ended have had ten seconds to be torn down.
leftovers() {
	local name group groups path line
	for _ in {1..200}; do
		if torn_down; then
			break
		fi
		sleep 0.05
	done
	for name in "${!started[@]}"; do
		if kill -0 "${started[$name]}" 2>/dev/null; then
			echo "the sandbox $name still runs: finish it"
		fi
	done
	each_in "$AGENTDOCK_RUN_DIR" label
	find_groups
	for group in "${groups[@]}"; do
		for path in "$group"/*/; do
			[ ! -d "$path" ] || echo "control group: $path"
		done
	done
	# the kernel lets go of a device some time after its mount, and tells nobody
	for _ in {1..50}; do
		if ! our_loops >/dev/null; then
			break
		fi
		sleep 0.1
	done
	our_loops || true
	while IFS= read -r line; do
		[[ $line != *"$BATS_TEST_TMPDIR/"* ]] || echo "mount: $line"
	done </proc/self/mountinfo
	each_in "$AGENTDOCK_STATE_DIR/tmp" "half an import"
}

# Nothing is left, or the test fails; nothing is left afterwards either way.
common_teardown() {
	local left
	left=$(leftovers)
	end_leftovers
	if [ -n "$left" ]; then
		printf 'left behind:\n%s\n' "$left" >&2
		return 1
	fi
}

teardown() {
	common_teardown
}

# ---- what is refused ----

# fails TEXT WORD...: `agentdock WORD...` prints just "agentdock: TEXT" on stderr and exits 125.
fails() {
	local text=$1
	shift
	run --separate-stderr "$agentdock" "$@"
	if [ "$status" != 125 ] || [ "$stderr" != "agentdock: $text" ] || [ -n "$output" ]; then
		printf 'command: agentdock %s\nstatus: %s\nstdout: %s\nstderr: %s\nwanted: %s\n' \
			"$*" "$status" "$output" "$stderr" "agentdock: $text" >&2
		return 1
	fi
}

# refuses TEXT OPTION...: the same for `agentdock run OPTION... -- true`.
refuses() {
	local text=$1
	shift
	fails "$text" run "$@" -- true
}

# ---- what runs ----

# run_json WORD...: `agentdock run --json WORD...`; its report is in report.json, whatever the exit status, which is in
# $status.
run_json() {
	status=0
	"$agentdock" run --json "$@" >report.json || status=$?
	jq -e .reason report.json >/dev/null
}

# inside WORD...: runs `agentdock run WORD...`, which must succeed; what it printed is in $output, byte for byte but for
# the end of the last line. What it says on stderr is shown when the test fails.
inside() {
	output=$("$agentdock" run "$@")
}

# equal WHAT GOT WANTED
equal() {
	if [ "$2" != "$3" ]; then
		printf '%s is not as wanted:\n' "$1" >&2
		diff -u --label wanted --label got <(printf '%s\n' "$3") <(printf '%s\n' "$2") >&2 || true
		return 1
	fi
}

# holds FILE FILTER [JQ-OPTION...]: the filter is true of the JSON in FILE
holds() {
	local file=$1 filter=$2
	shift 2
	if ! jq -e "$@" "$filter" "$file" >/dev/null; then
		printf 'not so: %s\n' "$filter" >&2
		jq -c . "$file" >&2
		return 1
	fi
}

# ---- sandboxes in the background ----

# start NAME OPTION... [-- COMMAND...]: a sandbox that says "ready" and lives until `finish NAME`. A COMMAND of one's own
# has to do the same: print the line "ready", and end when it reads a line. On return it runs, and started[NAME] is the
# pid of `agentdock`. NAME.stdout has what it printed up to then, and after finish all of it; NAME.stderr the rest.
start() {
	local name=$1 word feed out line="" options=() command=(sh -c 'echo ready; read -r line')
	shift
	while [ $# -gt 0 ]; do
		word=$1
		shift
		if [ "$word" = -- ]; then
			command=("$@")
			break
		fi
		options+=("$word")
	done
	mkfifo "$name.stdin" "$name.fifo"
	exec {feed}<>"$name.stdin"
	"$agentdock" run "${options[@]}" --stdin "$name.stdin" -- "${command[@]}" \
		>"$name.fifo" 2>"$name.stderr" 3>&- {feed}>&- &
	started[$name]=$!
	exec {out}<"$name.fifo"
	feeds[$name]=$feed outs[$name]=$out
	: >"$name.stdout"
	while [ "$line" != ready ]; do
		if ! IFS= read -r line <&"$out"; then
			echo "the sandbox $name did not get ready:" >&2
			cat "$name.stdout" "$name.stderr" >&2
			return 1
		fi
		printf '%s\n' "$line" >>"$name.stdout"
	done
}

# finish NAME: lets it end; $status is that of `agentdock`.
finish() {
	local name=$1 feed=${feeds[$1]} out=${outs[$1]}
	echo >&"$feed"
	cat <&"$out" >>"$name.stdout"
	status=0
	wait "${started[$name]}" || status=$?
	unset "started[$name]"
	exec {feed}>&- {out}<&-
}

# host_pids NAME: the pids that this host gives to pid 1 and to the command of a sandbox that runs.
host_pids() {
	local group pid parent init="" command="" tries=0
	for group in "$(cgroup2_mount)/$AGENTDOCK_CGROUP_PARENT"/*/; do
		while read -r pid; do
			parent=$(awk '$1 == "PPid:" { print $2 }' "/proc/$pid/status")
			if [ "$parent" = "${started[$1]}" ]; then
				init=$pid
			elif [ -n "$init" ] && [ "$parent" = "$init" ]; then
				command=$pid
			fi
		done <"$group/cgroup.procs"
	done
	if [ -z "$init" ] || [ -z "$command" ]; then
		echo "no process of the sandbox $1 in $AGENTDOCK_CGROUP_PARENT" >&2
		return 1
	fi
	# pid 1 executes agentdock-init when the command has started
	until [[ $(readlink "/proc/$init/exe") == /memfd:* ]]; do
		if [ $((tries++)) = 2000 ]; then
			echo "pid 1 of the sandbox $1 is still $(readlink "/proc/$init/exe")" >&2
			return 1
		fi
	done
	echo "$init $command"
}
