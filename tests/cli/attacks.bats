#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What an attacker inside has tried against the kernel's memory and the host's pools, tried again. Each is made by the
# system call itself; beside it stands what the same refusal must leave working.

load common

setup() {
	common_setup
	use_default_image
}

# attack OPTION...: runs the program on standard input as `python3 -` inside; what it printed is in $output, the report
# in report.json. It has: call(name, argument...), which gives the result or the name of the errno.
attack() {
	cat >attack.body
	cat - attack.body >attack.py <<'PY'
import ctypes, errno, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": dict(prctl=157, seccomp=317, io_setup=206, io_destroy=207, io_getevents=208, io_submit=209,
                   io_cancel=210, io_pgetevents=333, socket=41),
    "aarch64": dict(prctl=167, seccomp=277, io_setup=0, io_destroy=1, io_getevents=4, io_submit=2,
                    io_cancel=3, io_pgetevents=292, socket=198),
}[os.uname().machine]

def call(name, *args):
    ctypes.set_errno(0)
    value = libc.syscall(NUMBERS[name], *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return value if value >= 0 else errno.errorcode[ctypes.get_errno()]
PY
	run_json "$@" --stdin attack.py -- python3 -
	output=$(jq -r .stdout.data.text report.json)
	[ "$status" = 0 ] || { jq -r .stderr.data.text report.json >&2 && return 1; }
}

@test "sockets of rtnetlink, whose queues nobody pays for: a sandbox gets 64, however many processes ask" {
	attack <<'PY'
import multiprocessing
def ask(_):
    mine = [call("socket", 16, 3, 0) for _ in range(20)]
    return [fd if isinstance(fd, str) else "ok" for fd in mine]
with multiprocessing.get_context("fork").Pool(5) as pool:
    got = sum(pool.map(ask, range(10), 1), [])
for what in sorted(set(got)):
    print(what, got.count(what))
print(call("socket", 16 | 1 << 32, 3, 1 << 32))
PY
	equal output "$output" $'EPERM 136\nok 64\nEPERM'
	holds report.json '.evidence.denied_calls == [{name: "socket", count: 137}] and .evidence.denied_total == 137'
}

@test "the same sockets, all used for what they are for: interfaces and names, and nothing is counted" {
	attack <<'PY'
for _ in range(20):
    print(socket.if_nameindex(), len(socket.getaddrinfo("localhost", 80)) > 0)
class Ifaddrs(ctypes.Structure):
    pass
Ifaddrs._fields_ = [("next", ctypes.POINTER(Ifaddrs)), ("name", ctypes.c_char_p)]
first = ctypes.POINTER(Ifaddrs)()
assert libc.getifaddrs(ctypes.byref(first)) == 0
print(first.contents.name)
PY
	equal output "$(sort -u <<<"$output")" $'[(1, \'lo\')] True\nb\'lo\''
	holds report.json '.evidence.denied_total == 0'
}

@test "names are found also when there are no more sockets of rtnetlink" {
	attack <<'PY'
held = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) for _ in range(64)]
server = socket.create_server(("127.0.0.1", 0))
for _ in range(100):
    socket.create_connection(("localhost", server.getsockname()[1])).close()
print("connected")
PY
	equal output "$output" connected
}

@test "a profile that forbids sockets of rtnetlink has none" {
	jq 'del(.few)' "$root/seccomp/profiles/default.json" >profile.json
	attack --seccomp profile.json <<'PY'
print(call("socket", 16, 3, 0), call("socket", 16, 3, 12))
PY
	equal output "$output" "EPERM EPERM"
	holds report.json '.evidence.denied_total == 1'
}

@test "programs for sockets, out of the host's one budget for compiled filters, are forbidden and counted" {
	attack <<'PY'
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xffffffff))
program = struct.pack("HxxxxxxQ", 1, ctypes.addressof(code))
pair = socket.socketpair()
for sock in (socket.socket(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), *pair):
    for option, value in ((26, program), (50, struct.pack("i", 0)), (51, program), (52, struct.pack("i", 0))):
        try:
            sock.setsockopt(socket.SOL_SOCKET, option, value)
            print("attached", option)
        except OSError as e:
            print(errno.errorcode[e.errno])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
PY
	equal output "$(uniq -c <<<"$output" | xargs)" "16 EPERM"
	holds report.json '.evidence.denied_calls == [{name: "setsockopt", count: 16}]'
}

@test "filters of system calls, out of the same budget: there are none inside, by either door" {
	attack <<'PY'
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
at = ctypes.c_void_p(ctypes.addressof(program))
print({call("seccomp", 1 | high, flags, at) for flags in range(64) for high in (0, 1 << 32)})
print({call("prctl", 22 | high, mode, at, 0, 0) for mode in (1, 2) for high in (0, 1 << 32)})
print(call("seccomp", 0, 0, 0), call("prctl", 21, 0, 0, 0, 0))
PY
	equal output "$output" $'{\'EINVAL\'}\n{\'EINVAL\'}\nEINVAL 2'
	holds report.json '.evidence.denied_total == 0'
}

@test "a workspace is unpacked by a program that can install no filter of its own" {
	mkdir -p work/sub
	echo hello >work/sub/file
	ln -s sub/file work/link
	inside --workspace work -- sh -c 'cat link; ls'
	equal output "$output" $'hello\nlink\nsub'
}

@test "asynchronous I/O, one pool for the host, is not there" {
	attack <<'PY'
context = ctypes.create_string_buffer(8)
print(call("io_setup", 65536, context))
print({call(name, 0, 0, 0, 0, 0, 0) for name in NUMBERS if name.startswith("io_")})
PY
	equal output "$output" $'ENOSYS\n{\'ENOSYS\'}'
	holds report.json '.evidence.denied_total == 0'
}

@test "where on the host's disk a file lies is not told" {
	attack <<'PY'
import fcntl
open("/tmp/own", "w").write("x" * 100000)
for path in ("/bin/sh", "/etc/passwd", "/tmp/own"):
    with open(path) as f:
        try:
            fcntl.ioctl(f, 0xC020660B, bytearray(struct.pack("QQIIII", 0, 1 << 62, 1, 0, 8, 0) + bytes(8 * 56)))
            print("told")
        except OSError as e:
            print(errno.errorcode[e.errno])
    assert os.lseek(os.open(path, os.O_RDONLY), 0, os.SEEK_HOLE) > 0
PY
	# the C library has two names for it
	equal output "$(sort -u <<<"${output//ENOTSUP/EOPNOTSUPP}")" EOPNOTSUPP
	holds report.json '.evidence.denied_total == 0'
}

@test "the limits of pid 1 cannot be lowered, whose end would look like a fault of ours; those of others can" {
	attack <<'PY'
import resource, subprocess, sys
other = subprocess.Popen(["sleep", "60"])
for pid in (1, other.pid, 0):
    try:
        resource.prlimit(pid, resource.RLIMIT_STACK, (1 << 20, 1 << 20))
        print("set")
    except PermissionError:
        print("EPERM")
other.kill()
PY
	equal output "$output" $'EPERM\nset\nset'
	holds report.json '.reason == "exited" and (.evidence.denied_calls == [{name: "prlimit64", count: 1}])'
}

@test "extended attributes, which old kernels keep in memory that nobody pays for, are not supported; reading them is" {
	attack <<'PY'
for path in ("/dev/shm/x", "/tmp/x", "x"):
    open(path, "w").close()
    for name in ("user.x", "security.x", "trusted.x"):
        try:
            os.setxattr(path, name, b"1")
            print("set", name, path)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                print(error)
    print(os.listxattr(path))
import shutil
shutil.copy2("x", "y")
PY
	equal output "$output" $'[]\n[]\n[]'
	holds report.json '.evidence.denied_total == 0'
}

@test "the host's pressure is not to be seen: triggers on it are memory that nobody pays for, and take long to go" {
	attack <<'PY'
print(os.listdir("/proc/pressure") if os.path.exists("/proc/pressure") else [])
for name in ("cpu", "io", "memory"):
    try:
        open("/proc/pressure/" + name, "r+").close()
        print("opened", name)
    except FileNotFoundError:
        pass
PY
	equal output "$output" "[]"
}
