#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Bad surroundings: a killed program, a full or read-only host, a kernel that lacks something, workspaces and arguments
# that nobody would write by hand. Each gets its result or its one line, and leaves nothing.
bats_require_minimum_version 1.5.0

load common
load report

setup() {
	common_setup
	[[ $BATS_TEST_DESCRIPTION == *"(own image)" ]] || use_default_image
}

# in_namespace SCRIPT WORD...: sh -e SCRIPT in a mount namespace of its own; AGENTDOCK is the program.
in_namespace() {
	AGENTDOCK=$agentdock run --separate-stderr timeout 120 unshare -m --propagation private sh -eu -c "$@"
}

# one_line PATTERN: status 125 and one line that matches.
one_line() {
	# shellcheck disable=SC2053
	if [ "$status" != 125 ] || [ "${#stderr_lines[@]}" != 1 ] || [[ $stderr != $1 ]]; then
		printf 'status %s, stderr:\n%s\nwanted: %s\n' "$status" "$stderr" "$1" >&2
		return 1
	fi
}

# ---- the program itself ----

@test "killed at any moment, thirty times: nothing runs on, and one more run leaves nothing at all" {
	local i
	mkdir ws
	seq 300 | (cd ws && xargs touch)
	for i in {1..30}; do
		"$agentdock" run --workspace ws -- sh -c 'setsid sleep 300 & sleep 300' >/dev/null 2>&1 3>&- &
		started[kill]=$!
		sleep "0.$(printf %03d $((RANDOM % 120)))"
		kill -KILL "${started[kill]}"
		reap kill
		[ "$status" = 137 ]
		wait_for no_process
	done
	report -- sleep 1
	is .reason exited
	"$agentdock" gc
	nothing_runs
}

no_process() {
	[ -z "$(cat "$(cgroup2_mount)/$AGENTDOCK_CGROUP_PARENT"/*/cgroup.procs 2>/dev/null)" ]
}

@test "killed: what it left is reaped by the next run while that one's command still runs" {
	start dead
	kill -KILL "${started[dead]}"
	reap dead
	[ "$(find "$AGENTDOCK_RUN_DIR" -name 's*' | wc -l)" = 1 ]
	dead=$(find "$AGENTDOCK_RUN_DIR" -name 's*' -exec cat {} +)
	start alive
	wait_for only_alive "${dead% *}"
	finish alive
	nothing_runs
}

only_label_left() {
	[ "$(find "$AGENTDOCK_RUN_DIR" -name 's*' | wc -l)" = 1 ]
}

only_alive() {
	! grep -qs "$1" "$AGENTDOCK_RUN_DIR"/s*
}

@test "stopped: the command goes on, and both end well after it continues" {
	start stopped
	kill -STOP "${started[stopped]}"
	# another one neither waits for it nor takes it for dead
	report -- true
	is .reason exited
	wait_for only_label_left
	kill -CONT "${started[stopped]}"
	finish stopped
	[ "$status" = 0 ]
	nothing_runs
}

@test "as pid 1 of a container, which nobody outlives, it tears down before it ends" {
	unshare --pid --fork --mount-proc "$agentdock" run -- true
	[ -z "$(ls "$AGENTDOCK_RUN_DIR")" ]
	nothing_runs
}

@test "who tears down is killed with its container: the next one reaps the rest" {
	for _ in {1..10}; do
		# shellcheck disable=SC2016 # the inner shell's
		unshare --pid --fork --mount-proc sh -c '"$0" run -- true; exit $?' "$agentdock"
	done
	"$agentdock" gc
	nothing_runs
}

@test "twenty at once: every one is right" {
	local i
	for i in {1..20}; do
		background "n$i" "$agentdock" run --memory 64m --disk 32m -- sh -c "echo $i >f; cat f; exit $i"
	done
	for i in {1..20}; do
		reap "n$i"
		[ "$status" = "$i" ] && [ "$(cat "n$i.out")" = "$i" ] && [ ! -s "n$i.err" ]
	done
	nothing_runs
}

# ---- the host's files ----

@test "a state directory without space for the disk: one line, before anything runs (own image)" {
	use_small_image sh
	mkdir full
	# shellcheck disable=SC2016
	in_namespace '
		mount -t tmpfs -o size=40m full full
		cp -a "$AGENTDOCK_STATE_DIR/." full
		export AGENTDOCK_STATE_DIR=$PWD/full
		"$AGENTDOCK" run --image small --disk 1m --inodes 1000 -- sh -c "echo fits"
		dd if=/dev/zero of=full/filler 2>/dev/null || true
		"$AGENTDOCK" run --image small -- sh -c "echo ran"'
	[ "$output" = fits ]
	one_line "agentdock: disk: the sandbox's disk may grow to 1.0 GiB, but the state directory has *free some space*"
	nothing_runs
}

@test "a host that runs full under a sandbox: what was lost is told, not passed over (own image)" {
	use_small_image sh dd
	mkdir full
	# shellcheck disable=SC2016
	in_namespace '
		mount -t tmpfs -o size=80m full full
		cp -a "$AGENTDOCK_STATE_DIR/." full
		export AGENTDOCK_STATE_DIR=$PWD/full
		mkfifo go said
		exec 3<>go 4<>said
		"$AGENTDOCK" run --image small --disk 50m --inodes 1000 --stdin go -- \
			sh -c "echo ready; read -r line; dd if=/dev/zero of=x bs=1M count=40; exit 0" >said &
		read -r line <&4
		dd if=/dev/zero of=full/filler 2>/dev/null || true
		echo now >&3
		wait $!'
	[ "$status" = 125 ]
	[[ ${stderr_lines[-1]} == "agentdock: the state directory's file system ran full under the sandbox, and what the command wrote is lost; free some space, or lower the disk limits" ]]
	nothing_runs
}

@test "a run directory that is missing is made; one that cannot be is named" {
	export AGENTDOCK_RUN_DIR=$BATS_TEST_TMPDIR/a/b/run
	report -- true
	is .reason exited
	[ "$(stat -c %a a/b/run)" = 700 ]
	# shellcheck disable=SC2016
	in_namespace 'mount -t tmpfs -o ro,mode=700 none "$AGENTDOCK_RUN_DIR"; "$AGENTDOCK" run -- true'
	one_line "agentdock: *Read-only file system*"
	touch file
	AGENTDOCK_RUN_DIR=$BATS_TEST_TMPDIR/file/run run --separate-stderr "$agentdock" run -- true
	one_line "agentdock: *$BATS_TEST_TMPDIR/file*Not a directory*"
	nothing_runs
}

@test "an image that is removed while a sandbox stands on it stays whole to the end (own image)" {
	use_small_image sh cat
	start standing --image small -- sh -c 'echo ready; read -r line; cat /etc/passwd >/dev/null && echo whole'
	"$agentdock" image rm small >/dev/null
	"$agentdock" gc >/dev/null
	"$agentdock" image gc >/dev/null
	finish standing
	[ "$status" = 0 ] && [[ $(cat standing.stdout) == *whole ]]
	run --separate-stderr "$agentdock" run --image small -- sh
	one_line "agentdock: image small: not in *"
	"$agentdock" image gc >/dev/null
	[ -z "$(ls -A "$AGENTDOCK_STATE_DIR/layers/sha256")" ]
}

@test "an image for another machine is refused by name (own image)" {
	root_of small sh
	local other=s390x
	"$agentdock" image import --arch "$other" small alien >/dev/null
	run --separate-stderr "$agentdock" run --image alien -- sh
	one_line "agentdock: *$other*"
	nothing_runs
}

# ---- the host's kernel ----

@test "a controller that is missing: its name, and the way on; --allow-missing goes on and says so" {
	local controller
	for controller in memory pids cpu; do
		grep -q " cgroup .*\b$controller\b" /proc/self/mounts || skip "no $controller controller on cgroup v1 here to hide"
		# shellcheck disable=SC2016
		in_namespace 'mount -t tmpfs none "/sys/fs/cgroup/$0"; "$AGENTDOCK" run -- true' "$controller"
		one_line "agentdock: *$controller limit of cgroup *no $controller controller; *--allow-missing $controller*"
		# shellcheck disable=SC2016
		in_namespace 'mount -t tmpfs none "/sys/fs/cgroup/$0"
			"$AGENTDOCK" run --json --allow-missing "$0" -- echo ran' "$controller"
		[ "$status" = 0 ]
		printf '%s\n' "$output" >missing.json
		json=missing.json
		is .reason exited .stdout.data.text $'ran\n' .host.missing "$controller"
		# a limit that is not in force is not reported as one
		so '.usage | {cpu: .cpu_limit, memory: .memory_limit_bytes, pids: .pids_limit}.'"$controller"' == null'
	done
	nothing_runs
}

@test "no loop devices: a disk in memory, and the report says so; who insists is told the way out" {
	# shellcheck disable=SC2016
	in_namespace 'mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3
		"$AGENTDOCK" run --json --disk 16m -- sh -c "echo x >f; cat f"'
	[ "$status" = 0 ]
	printf '%s\n' "$output" >tmpfs.json
	json=tmpfs.json
	is .reason exited .host.disk_backing tmpfs .stdout.data.text $'x\n'
	# shellcheck disable=SC2016
	in_namespace 'mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3
		"$AGENTDOCK" run --disk-backing image -- true'
	one_line "agentdock: disk: /dev/loop-control: No such file or directory; *--disk-backing tmpfs*"
	nothing_runs
}

@test "no mkfs.ext4: the package that has it is named, unless a template is there" {
	mkdir empty
	# shellcheck disable=SC2016
	in_namespace 'for d in /sbin /usr/sbin /usr/local/sbin; do
			for f in "$d/mkfs.ext4" "$d/mke2fs"; do [ ! -e "$f" ] || mount --bind /dev/null "$f"; done
		done
		PATH=$PWD/empty "$AGENTDOCK" run --disk 33m -- true'
	one_line "agentdock: disk: *mkfs.ext4 is in Debian's package e2fsprogs"
	"$agentdock" run --disk 33m -- true
	PATH=$PWD/empty "$agentdock" run --disk 33m -- true
}

# ---- workspaces ----

@test "a workspace of sockets, FIFOs, odd names, deep paths and 5000 files goes in and is all there" {
	mkdir ws
	python3 - <<-'END'
		import os, socket
		socket.socket(socket.AF_UNIX).bind("ws/socket")
		os.mkfifo("ws/fifo")
		for i in range(5000): open(f"ws/f{i}", "w").close()
		for name in (b"new\nline", b"caf\xe9", b"-rf", b" ", b"\\", b"*", "\u20ac".encode(), b"n" * 255):
		    open(b"ws/odd" + name[:252], "wb").write(name)
		os.chdir("ws")
		for i in range(100):
		    os.mkdir("d" * 100); os.chdir("d" * 100)
		open("bottom", "w").write("deep")
	END
	report --workspace ws -- python3 -c '
import os, hashlib
names = [n for n in os.listdir(b".") if n.startswith(b"odd")]
print(len(names), all(open(n, "rb").read()[:252] == n[3:] for n in names))
print(sum(n.startswith(b"f") and n != b"fifo" for n in os.listdir(b".")))
print(os.path.lexists("socket"), os.path.lexists("fifo"))
for i in range(100): os.chdir("d" * 100)
print(open("bottom").read())'
	is .reason exited .stdout.data.text $'8 True\n5000\nFalse False\ndeep\n'
}

@test "a workspace with files that nobody may read is read as root reads it, and keeps its modes" {
	mkdir -p ws/closed
	echo secret >ws/closed/file
	chmod 000 ws/closed/file ws/closed
	report --workspace ws -- sh -c 'stat -c %a closed; chmod 700 closed; stat -c %a closed/file'
	is .reason exited
	so '.stdout.data.text | test("^[0-7]+\n[0-7]+\n$")'
	chmod 700 ws/closed
}

@test "a workspace that is none" {
	touch file
	local path text
	while IFS='|' read -r path text; do
		run --separate-stderr "$agentdock" run --workspace "$path" -- true
		one_line "agentdock: *$path*$text*"
	done <<-'END'
		file|not a directory
		absent|No such file or directory
		/dev/null|not a directory
	END
	nothing_runs
}

# ---- arguments and descriptors ----

@test "ten thousand arguments arrive; too many are E2BIG, by name" {
	local words
	mapfile -t words < <(seq 10000)
	report -- python3 -c 'import sys; print(len(sys.argv), sys.argv[-1])' "${words[@]}"
	is .stdout.data.text $'10001 10000\n'
	# an environment that the stack limit inside leaves no place for
	report --ulimit stack=65536:65536 -- /bin/true "${words[@]}" "${words[@]}" "${words[@]}"
	so '.reason == "start_failed" and (.error | test("Argument list too long"))'
	nothing_runs
}

@test "input that never ends does not keep a command that has" {
	mkfifo endless
	exec {hold}<>endless
	report --stdin endless -- sh -c 'echo done'
	is .reason exited .stdout.data.text $'done\n'
	run -0 bash -c 'yes | "$1" run --stdin - -- head -n 1' - "$agentdock"
	[ "$output" = y ]
	exec {hold}>&-
}

@test "no terminal, no standard streams: the run is the same" {
	run -0 --separate-stderr setsid "$agentdock" run -- sh -c 'tty; test -t 0 || echo none'
	[ "$output" = $'not a tty\nnone' ] && [ -z "$stderr" ]
	# a descriptor of ours that took a closed one's number is neither the command's nor in its output's way
	"$agentdock" run --meta meta.json -- sh -c 'ls /proc/self/fd; echo out' <&- >&- 2>&-
	json=meta.json
	is .reason exited .stdout.data.text $'0\n1\n2\n3\nout\n' .stderr.data.text ""
	nothing_runs
}

# ---- what others left in RUN ----

@test "a run directory that others can write is refused; a label that is none of ours is named, and goes nowhere" {
	use_small_image sh
	mkdir -m 777 open
	AGENTDOCK_RUN_DIR=$PWD/open run --separate-stderr "$agentdock" run --image small -- true
	one_line "agentdock: run directory $PWD/open can be written by others than root; *"
	mkdir -m 700 planted
	echo "0123456789ab ../../elsewhere 000-1" >planted/s1
	mkfifo planted/s2
	AGENTDOCK_RUN_DIR=$PWD/planted run --separate-stderr "$agentdock" gc
	[ "$status" = 125 ]
	[[ $stderr == *"$PWD/planted/s"[12]": not a"*"remove it"* ]]
	[ -e planted/s1 ] && [ -p planted/s2 ]
	nothing_runs
}

@test "an orphan is reaped only where all of its cgroup trees are in sight" {
	use_small_image sh
	grep -q " cgroup .*\bmemory\b" /proc/self/mounts || skip "no memory controller on cgroup v1 here to hide"
	start doomed --image small -- sh -c 'echo ready; read -r line'
	kill -KILL "${started[doomed]}"
	wait "${started[doomed]}" || true
	unset "started[doomed]"
	# shellcheck disable=SC2016
	in_namespace 'mount -t tmpfs none /sys/fs/cgroup/memory; "$AGENTDOCK" gc'
	[ "$status" = 125 ]
	[[ $stderr == *"other cgroup trees are in sight"* ]]
	"$agentdock" gc
	nothing_runs
}

@test "an image cannot have its own code loaded by the unpacker: no file of it is in the unpacker's sight (own image)" {
	mkdir -p tree/bin "tree/usr/lib/$(uname -m)-linux-gnu/gconv" w
	cp /bin/busybox tree/bin/sh
	ln -s sh tree/bin/ls
	# whoever reads the list of converters waits here for ever
	mkfifo "tree/usr/lib/$(uname -m)-linux-gnu/gconv/gconv-modules"
	touch "w/$(printf 'caf\303\251')"
	use_small_image sh
	"$agentdock" image import tree converters >/dev/null
	use_static_archiver
	run --separate-stderr "$agentdock" run --image converters --start-timeout 20 --workspace w -- ls
	[ "$status" = 0 ]
	[ "$output" = "$(printf 'caf\303\251')" ]
	nothing_runs
}

# ---- the groups that it starts from and goes to ----

@test "started from a group that was killed once, which some kernels take out on who is cloned elsewhere" {
	local group
	group=$(cgroup2_mount)/$AGENTDOCK_CGROUP_PARENT-killed
	mkdir "$group"
	echo 1 >"$group/cgroup.kill"
	# shellcheck disable=SC2016 # the inner shell's
	run -7 --separate-stderr sh -c 'echo 0 >"$0/cgroup.procs"; "$1" run --image default -- sh -c "echo ran; exit 7"' \
		"$group" "$agentdock"
	[ "$output" = ran ]
	nothing_runs
	rmdir "$group"
}

@test "R4 below a frozen group nothing starts, and it says so at once" {
	local group
	group=$(cgroup2_mount)/$AGENTDOCK_CGROUP_PARENT
	mkdir -p "$group"
	echo 1 >"$group/cgroup.freeze"
	run --separate-stderr "$agentdock" run -- echo ran
	echo 0 >"$group/cgroup.freeze"
	[ "$status" = 125 ] && [ -z "$output" ]
	one_line "agentdock: cgroup: cgroup $AGENTDOCK_CGROUP_PARENT is frozen, and nothing can start in it: write 0 to its cgroup.freeze*"
	"$agentdock" run -- true
	nothing_runs
}

@test "R2 without cgroup v2 it says what is missing, and the way out" {
	# shellcheck disable=SC2016 # the inner shell's
	in_namespace 'umount -l "$0"; exec "$AGENTDOCK" run -- true' "$(cgroup2_mount)"
	[ "$status" = 125 ]
	one_line "agentdock: cgroup: no cgroup v2 hierarchy is mounted *; mount -t cgroup2 cgroup2 *"
	nothing_runs
}

@test "R7 the caller's standard input, output and error keep their owner and their mode" {
	mknod null c 1 3
	touch out err
	chmod 640 null out err
	stat -c '%n %u:%g %a' null out err >before
	"$agentdock" run -q -- sh -c 'echo out; echo err >&2' <null >>out 2>>err
	"$agentdock" run -q -- true <null >>null 2>>null
	stat -c '%n %u:%g %a' null out err >after
	equal owners "$(cat after)" "$(cat before)"
	[ "$(cat out err)" = $'out\nerr' ]
}
