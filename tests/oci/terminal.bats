#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Terminals: whose they are, how large, where they go, and what is left of them.
load common

setup_file() {
	python3 -c 'import pty' || skip 'python3 is needed'
}

# A terminal needs devices.
with_devices() {
	edit '.process.terminal = true | .mounts += [
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
		{"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance", "ptmxmode=0666", "mode=0620"]}]'
}

# at_terminal ROWS COLUMNS INPUT COMMAND...: it has a terminal of this size, gets INPUT once it wrote "ready", and its
# output, with what its terminal was left as, is $output
at_terminal() {
	run timeout 15 python3 -c 'import fcntl, os, pty, struct, sys, termios
rows, columns, text = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode().decode("unicode_escape").encode()
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
before = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    os.close(master)
    os.execv(sys.argv[4], sys.argv[4:])
seen, sent = b"", False
import select
while True:
    if not select.select([master], [], [], 0.2)[0]:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        continue
    seen += os.read(master, 65536)
    if not sent and b"ready" in seen:
        sent = True
        if text == b"resize":
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 11, 22, 0, 0))
        elif text == b"kill":
            os.kill(pid, 15)
        else:
            os.write(master, text)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(seen.decode().replace("\r", ""), end="")
print("restored" if termios.tcgetattr(slave) == before else "NOT RESTORED", status)' "$@"
}

@test "R8 the first size is the document's" {
	with_devices
	edit '.process.consoleSize = {"height": 31, "width": 77}'
	script 'stty size'
	on_a_terminal
	[ "$output" = '31 77' ]
}

@test "R8 without one it is the caller's, and never 0 x 0" {
	with_devices
	script 'stty size'
	on_a_terminal
	[ "$output" = '24 80' ]
	oci_delete --force
	rm "$here/listening" "$here/console"
	edit '.process.consoleSize = {"height": 0, "width": 0}'
	on_a_terminal
	[ "$output" = '24 80' ]
	oci_delete --force
	at_terminal 33 99 '' "$runtime" --root "$store" run --bundle "$bundle" "$id"
	[ "$output" = $'33 99\nrestored 0' ] || show
}

@test "it is the controlling terminal, the user's own, and all three descriptors" {
	with_devices
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	script 'tty; stat -c %u /dev/pts/0; ls -1 /proc/self/fd; echo written >/dev/tty; : >/dev/console && echo console'
	on_a_terminal
	[ "$output" = $'/dev/pts/0\n1000\n0\n1\n2\n3\nwritten\nconsole' ] || show
}

@test "run: our terminal is raw, what is typed goes in, and the modes are given back" {
	with_devices
	script 'echo ready; read -r line; echo "got $line"; exit 4'
	at_terminal 24 80 'hello\r' "$runtime" --root "$store" run --bundle "$bundle" "$id"
	[[ $output == $'ready\nhello\ngot hello\nrestored 4' ]] || show
}

@test "run: ^C is the container's" {
	with_devices
	script 'trap "echo interrupted; exit 3" INT; echo ready; while :; do sleep 0.05; done'
	at_terminal 24 80 '\x03' "$runtime" --root "$store" run --bundle "$bundle" "$id"
	[[ $output == *interrupted*$'\nrestored 3' ]] || show
}

@test "run: a new size is passed on" {
	with_devices
	script 'trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.05; done'
	at_terminal 24 80 resize "$runtime" --root "$store" run --bundle "$bundle" "$id"
	[ "$output" = $'ready\n11 22\nrestored 0' ] || show
}

@test "run: the modes are given back when a signal ends it" {
	with_devices
	script 'echo ready; while :; do sleep 0.05; done'
	edit '.linux.namespaces -= [{"type": "pid"}]'
	at_terminal 24 80 kill "$runtime" --root "$store" run --bundle "$bundle" "$id"
	[ "$output" = $'ready\nrestored 143' ] || show
}

@test "run: much output arrives whole" {
	with_devices
	script 'i=0; while [ $i -lt 3000 ]; do echo "line $i of many"; i=$((i + 1)); done'
	at_terminal 24 80 '' "$runtime" --root "$store" run --bundle "$bundle" "$id"
	[ "$(grep -c 'of many' <<<"$output")" -eq 3000 ]
	[[ $output == *$'\nline 2999 of many\nrestored 0' ]]
}

@test "exec: with a terminal of its own" {
	edit '.mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
		{"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance", "ptmxmode=0666"]}]'
	up_until_told
	at_terminal 44 55 'x\r' "$runtime" --root "$store" exec --tty "$id" sh -c 'tty; stty size; echo ready; read -r line; exit 8'
	[ "$output" = $'/dev/pts/0\n44 55\nready\nx\nrestored 8' ] || show
	tell
}

@test "create without --console-socket is refused, and so is a socket that is none" {
	with_devices
	program true
	run oci_create
	refused --console-socket
	run oci_create --console-socket /nowhere
	refused --console-socket /nowhere
	run oci_create --console-socket /etc/passwd
	refused --console-socket
}

@test "a /dev/pts that is no devpts makes no terminal" {
	edit '.process.terminal = true'
	mkdir -p "$rootfs/dev/pts"
	mkfifo "$rootfs/dev/pts/ptmx"
	script true
	run oci_run
	refused /dev/pts
}

@test "/dev/console that is a link leads nowhere outside of the root" {
	with_devices
	touch "$here/outside"
	edit '.mounts |= map(select(.destination != "/dev"))'
	mkdir -p "$rootfs/dev/pts"
	ln -s "../../../../../../../..$here/outside" "$rootfs/dev/console"
	script 'echo >/dev/console'
	at_terminal 24 80 '' "$runtime" --root "$store" run --bundle "$bundle" "$id"
	[ ! -s "$here/outside" ]
	[ "$(stat -c %F "$here/outside")" = 'regular empty file' ]
}
