#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The life of a container beyond the spec's sentences (conformance_runtime.bats): what is left when something fails or
# is killed, what is inherited and what never is, which error is told, which namespaces are joined and in what order.
load common

# nothing_is_left: neither of the container nor of processes that were made for it
nothing_is_left() {
	[ ! -e "$store/$id" ]
	[ ! -e "$(group_dir pids)" ]
	run ! pgrep -f -- "$id"
}

# ---- errors ----

@test "R9 the first cause is told, not what a clean-up after it meets" {
	edit '.mounts += [{"destination": "/here", "type": "bind", "source": "/nowhere/at/all", "options": ["bind"]}]'
	hook poststop 'exit 7'
	run oci_create
	refused /nowhere/at/all
	nothing_is_left
}

@test "R9 an error of the process inside comes with its own words, and create undoes all" {
	program no-such-program
	run oci_create
	refused 'exec: "no-such-program": executable file not found in $PATH'
	nothing_is_left
}

@test "run: exit codes of programs that cannot run are 126 and 127" {
	program /nope
	run oci_run
	[ "$status" -eq 127 ]
	[[ $output == *'exec: "/nope": stat /nope: no such file or directory'* ]]
	program /etc/passwd
	run oci_run
	[ "$status" -eq 126 ]
	[[ $output == *'exec: "/etc/passwd": permission denied'* ]]
	program /etc
	run oci_run
	[ "$status" -eq 126 ]
	printf '#!/no/interpreter\n' >"$rootfs/tool"
	chmod 0755 "$rootfs/tool"
	program /tool
	run oci_run
	[ "$status" -eq 127 ]
	nothing_is_left
}

@test "run: the exit code is the program's, or 128 and its signal" {
	script 'exit 42'
	run oci_run
	[ "$status" -eq 42 ]
	edit '.linux.namespaces -= [{"type": "pid"}]'
	script 'kill -TERM $$'
	run oci_run
	[ "$status" -eq 143 ]
	nothing_is_left
}

@test "a program that its user cannot reach is refused at create, one that a capability reaches is not" {
	mkdir -m 0700 "$rootfs/closed"
	cp -l "$rootfs/bin/busybox" "$rootfs/closed/true"
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	program /closed/true
	run oci_create
	refused 'permission denied'
	edit '["CAP_DAC_OVERRIDE"] as $c | .process.capabilities =
		{"bounding": $c, "effective": $c, "permitted": $c, "inheritable": $c, "ambient": $c}'
	run oci_run
	says ''
}

# ---- killed ----

# killed_after MILLISECONDS VERB...: the runtime, with SIGKILL, then delete --force
killed_after() {
	local delay=$1
	shift
	"$runtime" --root "$store" "$@" --bundle "$bundle" "$id" </dev/null >/dev/null 2>&1 3>&- 4>&- &
	read -r -t "0.$delay" <>"$here/never" || true
	kill -KILL $! 2>/dev/null || true
	wait $! 2>/dev/null || true
	if [ -d "$store/$id" ]; then oci_delete --force; fi
	until_true nothing_is_left || { ls "$store/$id"; pgrep -af -- "$id"; return 1; }
}

@test "R13 create, killed at any moment, leaves what delete --force removes" {
	runtime_is agentdock-runtime || skip 'of our own runtime'
	script "read -r line </wait; : $id"
	for delay in 000 001 002 003 004 005 006 008 010 015; do
		killed_after "$delay" create
	done
}

@test "R13 run, killed at any moment, leaves what delete --force removes" {
	runtime_is agentdock-runtime || skip 'of our own runtime'
	script "read -r line </wait; : $id"
	for delay in 000 001 002 003 004 005 006 008 010 050; do
		killed_after "$delay" run
	done
}

@test "R13 create that is killed in a hook takes the process inside along" {
	hook createRuntime "echo \${state#*pid} >$here/hooked; sleep 30"
	"$runtime" --root "$store" create --bundle "$bundle" "$id" </dev/null >/dev/null 2>&1 3>&- 4>&- &
	until_true [ -s "$here/hooked" ]
	pid=$(tr -dc '0-9,' <"$here/hooked")
	pid=${pid%%,*}
	kill -KILL $!
	wait $! || true
	until_true gone "$pid"
	oci_delete --force
	[ ! -e "$store/$id" ]
}

@test "the process at the gate does not need who made it" {
	script 'echo started >/mark'
	oci_create
	oci_status_is created
	oci_start
	until_true oci_status_is stopped
	[ "$(<"$rootfs/mark")" = started ]
}

@test "start: who connects to the gate and goes away again starts nothing" {
	program true
	oci_create
	python3 -c 'import socket, sys
for text in (b"", b"junk"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    if text: s.send(text)
    s.close()' "$store/$id/start"
	oci_status_is created
	oci_start
	until_true oci_status_is stopped
}

@test "start: once only" {
	script 'read -r line </wait'
	oci_up
	run oci_start
	refused running
	oci_status_is running
}

# ---- what the program has ----

@test "no descriptor but 0, 1, 2 is open in the program, and none of the caller's" {
	exec 7</etc/passwd
	run oci_run 8<"$root/Makefile"
	script 'ls /proc/self/fd'
	run oci_run 8<"$root/Makefile"
	exec 7<&-
	# the last one is the directory that ls reads
	says $'0\n1\n2\n3'
}

@test "--preserve-fds: exactly so many, which must be open" {
	echo three >"$here/three"
	echo four >"$here/four"
	script 'cat <&3; cat <&4; ls /proc/self/fd'
	# bats has 3 and 4 itself, which the functions close
	run sh -c '"$0" --root "$1" run --bundle "$2" --preserve-fds 2 "$3" 3<three 4<four 5<three </dev/null' \
		"$runtime" "$store" "$bundle" "$id"
	says $'three\nfour\n0\n1\n2\n3\n4\n5'
	run oci_run --preserve-fds 3
	refused preserve
}

@test "no descriptor of the runtime's own leads out of the root by /proc/self/fd in cwd (CVE-2024-21626)" {
	for n in 3 4 5 6 7 8 9 10; do
		edit '.process.cwd = $cwd' --arg cwd "/proc/self/fd/$n"
		script 'ls ../../../etc/debian_version; pwd'
		run oci_run
		[ "$status" -ne 0 ] || show
		ln -sfn "/proc/self/fd/$n" "$rootfs/leak"
		edit '.process.cwd = "/leak"'
		run oci_run
		[ "$status" -ne 0 ] || show
	done
}

@test "signals: nothing that the caller ignores or blocks is inherited" {
	program busybox grep -E '^Sig(Blk|Ign)' /proc/self/status
	run env -u X python3 -c 'import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
os.execv(sys.argv[1], sys.argv[1:])' "$runtime" --root "$store" run --bundle "$bundle" "$id"
	says $'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000'
}

@test "run passes signals on" {
	script 'trap "echo caught; exit 9" TERM; echo >/ready; while :; do read -r -t 1 line <>/wait; done'
	"$runtime" --root "$store" run --bundle "$bundle" "$id" </dev/null >"$here/out" 2>&1 3>&- 4>&- &
	heard
	kill -TERM $!
	wait $! || [ $? -eq 9 ]
	[ "$(<"$here/out")" = caught ]
	nothing_is_left
}

@test "the caller's table of descriptors and its children are as they were" {
	program true
	run python3 -c 'import os, subprocess, sys
before = set(os.listdir("/proc/self/fd"))
for i in range(5):
    subprocess.run(sys.argv[1:], check=True, stdin=subprocess.DEVNULL)
assert before == set(os.listdir("/proc/self/fd"))
try:
    os.waitpid(-1, os.WNOHANG)
    sys.exit("a child is left")
except ChildProcessError:
    pass' "$runtime" --root "$store" run --bundle "$bundle" "$id"
	says ''
}

@test "--pid-file is whole, of mode 0644, and the pid that state says" {
	script 'read -r line </wait'
	oci_create --pid-file "$here/pid"
	[ "$(<"$here/pid")" = "$(oci_pid)" ]
	[ "$(stat -c %a "$here/pid")" = 644 ]
	[ "$(find "$here" -maxdepth 1 -name 'pid*' | wc -l)" -eq 1 ]
}

@test "a --root of more than 108 bytes" {
	local old=$store
	store=$here/$(printf 'd%.0s' {1..120})
	program true
	oci_create
	oci_start
	until_true oci_status_is stopped
	oci_delete
	store=$old
}

@test "HOME is looked up in the image, and is / where it is not there" {
	edit 'del(.process.env) | .process.user = {"uid": 1000, "gid": 1000}'
	script_runs 'echo $HOME'
	[ "$output" = /home ]
	edit '.process.user = {"uid": 77, "gid": 77}'
	script_runs 'echo $HOME'
	[ "$output" = / ]
	rm "$rootfs/etc/passwd"
	mkfifo "$rootfs/etc/passwd"
	script_runs 'echo $HOME'
	[ "$output" = / ]
}

# ---- namespaces ----

asleep() {
	grep -q sleep "/proc/$other/comm" || pgrep -x -P "$other" sleep >/dev/null
}

# other_namespaces FLAG...: of a process that sleeps, whose pid is in $other
other_namespaces() {
	unshare "$@" sleep 60 3>&- 4>&- &
	other=$!
	until_true asleep
}

@test "namespaces that are joined: a pod's network, ipc and uts" {
	other_namespaces --net --ipc --uts
	edit '.linux.namespaces -= [{"type": "network"}, {"type": "ipc"}, {"type": "uts"}]
		| .linux.namespaces += [{"type": "network", "path": "/proc/\($pid)/ns/net"},
			{"type": "ipc", "path": "/proc/\($pid)/ns/ipc"}, {"type": "uts", "path": "/proc/\($pid)/ns/uts"}]
		| del(.hostname)' --arg pid "$other"
	script_runs 'readlink /proc/self/ns/net; readlink /proc/self/ns/ipc; readlink /proc/self/ns/uts'
	[ "$output" = "$(readlink "/proc/$other/ns/net" "/proc/$other/ns/ipc" "/proc/$other/ns/uts")" ]
	kill "$other"
}

@test "namespaces that are joined, beneath a user namespace of the container's own" {
	other_namespaces --net --ipc
	use_user_namespace
	edit '.linux.namespaces -= [{"type": "network"}, {"type": "ipc"}]
		| .linux.namespaces += [{"type": "network", "path": "/proc/\($pid)/ns/net"},
			{"type": "ipc", "path": "/proc/\($pid)/ns/ipc"}]' --arg pid "$other"
	script_runs 'readlink /proc/self/ns/net; readlink /proc/self/ns/ipc; cat /proc/self/uid_map'
	[[ $output == "$(readlink "/proc/$other/ns/net" "/proc/$other/ns/ipc")"*100000*65536* ]]
	kill "$other"
}

@test "a pid namespace that is joined: the container's process is in it, and is still ours" {
	other_namespaces --pid --fork --kill-child
	local first
	first=$(pgrep -P "$other")
	edit '.linux.namespaces -= [{"type": "pid"}]
		| .linux.namespaces += [{"type": "pid", "path": "/proc/\($pid)/ns/pid"}]' --arg pid "$first"
	script 'readlink /proc/self/ns/pid; exit 5'
	run oci_run
	[ "$status" -eq 5 ]
	[ "$output" = "$(readlink "/proc/$first/ns/pid")" ]
	kill "$other"
}

@test "a user namespace that is joined, with others that it owns" {
	other_namespaces --user --map-root-user --net --ipc
	edit '.linux.namespaces -= [{"type": "network"}, {"type": "ipc"}, {"type": "cgroup"}]
		| .linux.namespaces += [{"type": "user", "path": "/proc/\($pid)/ns/user"},
			{"type": "network", "path": "/proc/\($pid)/ns/net"}, {"type": "ipc", "path": "/proc/\($pid)/ns/ipc"}]' \
		--arg pid "$other"
	script_runs 'readlink /proc/self/ns/user; readlink /proc/self/ns/net; id -u'
	[ "$output" = "$(readlink "/proc/$other/ns/user" "/proc/$other/ns/net")"$'\n0' ]
	kill "$other"
}

@test "a path that is no namespace, or of another type, is refused by its key" {
	for path in /proc/self/ns/net /etc/passwd /proc/self/fd; do
		edit '.linux.namespaces = [{"type": "mount"}, {"type": "ipc", "path": $path}]' --arg path "$path"
		run oci_create
		refused 'linux.namespaces[1].path' "$path"
	done
	mkfifo "$here/fifo"
	edit '.linux.namespaces[1].path = $path' --arg path "$here/fifo"
	run oci_create
	refused 'linux.namespaces[1].path'
}

@test "a time namespace with offsets, also in a user namespace" {
	[ -e /proc/self/ns/time ] || skip "this kernel lacks time namespaces"
	[ -e /proc/self/ns/time ] || skip 'this kernel has none'
	edit '.linux.namespaces += [{"type": "time"}] | .linux.timeOffsets = {"boottime": {"secs": 8640000, "nanosecs": 1}}'
	script_runs 'read -r up rest </proc/uptime; [ ${up%.*} -ge 8640000 ] && echo later'
	[ "$output" = later ]
	use_user_namespace
	script_runs 'read -r up rest </proc/uptime; [ ${up%.*} -ge 8640000 ] && echo later'
	[ "$output" = later ]
}

@test "a user namespace: its root owns what is new" {
	use_user_namespace
	edit '.mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
		{"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue"}]'
	script_runs 'stat -c %u /dev/mqueue; id -u'
	[ "$output" = $'0\n0' ] || show
}

# ---- NOTIFY_SOCKET ----

# notified VERB ARGUMENT...: what the one who supervises hears while it goes on, from a container that says more than
# that it is ready. Prints each message on a line.
notified() {
	timeout 20 python3 -c 'import os, socket, subprocess, sys, time
own, inside = sys.argv[1], sys.argv[2]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(own)
listener.settimeout(5)
process = subprocess.Popen(sys.argv[3:], env={**os.environ, "NOTIFY_SOCKET": own},
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=True)
speaker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for text in b"STATUS=evil\nMAINPID=1", b"STATUS=up\nREADY=1\nMAINPID=1":
    for attempt in range(200):
        try:
            speaker.sendto(text, inside)
            break
        except OSError:
            time.sleep(0.02)
print(listener.recv(4096))
listener.settimeout(0.2)
try:
    print(listener.recv(4096))
except TimeoutError:
    pass
if process.args[3] == "start": process.wait()' "$here/notify" "$store/$id/notify/notify" "$runtime" --root "$store" "$@" 3>&- 4>&-
}

@test "NOTIFY_SOCKET: run passes on that the container is ready, with its pid, and nothing else" {
	script 'echo $NOTIFY_SOCKET >/mark; test -S /run/notify/notify && read -r line </wait'
	run notified run --bundle "$bundle" "$id"
	says "b'READY=1\\nMAINPID=$(oci_pid)\\n'"
	[ "$(<"$rootfs/mark")" = /run/notify/notify ]
	oci_kill
	until_true nothing_is_left
}

@test "NOTIFY_SOCKET: start waits until the container is ready" {
	script 'read -r line </wait'
	NOTIFY_SOCKET=$here/notify oci_create
	run notified start "$id"
	says "b'READY=1\\nMAINPID=$(oci_pid)\\n'"
	oci_delete --force
}

@test "LISTEN_FDS: the descriptors of a socket unit, and whose they are" {
	script 'echo $LISTEN_FDS $LISTEN_PID $$; cat <&3; ls /proc/self/fd'
	echo three >"$here/three"
	run sh -c 'LISTEN_FDS=1 exec "$0" --root "$1" run --bundle "$2" "$3" 3<three 4<three </dev/null' \
		"$runtime" "$store" "$bundle" "$id"
	says $'1 1 1\nthree\n0\n1\n2\n3\n4'
}
