#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the kernel counts for a user, or apart from other memory: one sandbox must not use it up for the host or for another
# sandbox, and nothing that a command does to its own process may forge its ending.

load common

setup() {
	common_setup
	use_default_image
	mkdir w
	cat >w/quota.py <<'PY'
import ctypes, os, signal, sys

libc = ctypes.CDLL(None, use_errno=True)


def inotify():
    return libc.inotify_init1(0) >= 0


def queued_signal():
    return libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
take = {"inotify": inotify, "signal": queued_signal}[sys.argv[1]]
count = 0
while count < 100000 and take():
    count += 1
print(count)
print("ready", flush=True)
if len(sys.argv) > 2:
    sys.stdin.readline()
PY
}

@test "inotify instances and queued signals: who uses up all leaves the host's and another sandbox's as they were" {
	local kind alone
	for kind in inotify signal; do
		alone=$("$agentdock" run --workspace w -- python3 quota.py "$kind")
		[ "${alone%%$'\n'*}" -gt 10 ]
		start "$kind" --workspace w -- python3 quota.py "$kind" hold
		[ "$("$agentdock" run --workspace w -- python3 quota.py "$kind")" = "$alone" ]
		[ "$(python3 w/quota.py "$kind" | head -n 1)" -gt 10 ]
		finish "$kind"
	done
}

@test "network buffers are limited, also where the kernel counts them apart from other memory" {
	cat >w/buffers.py <<'PY'
import socket

sockets = []
for _ in range(200):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    receiver.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    sender.setblocking(False)
    sockets.append(receiver)
    try:
        for _ in range(150):  # what finds no room is dropped
            sender.send(bytes(32768))
    except OSError:
        pass
    sender.close()
print("ready", flush=True)
input()
PY
	# pages that UDP holds on the host now
	udp_pages() { awk '$1 == "UDP:" { print $5 }' /proc/net/sockstat; }
	local before held spare
	before=$(udp_pages)
	# each CPU keeps up to 1 MiB in reserve (net/sock.h SK_MEMORY_PCPU_RESERVE, Linux 6.0)
	spare=$((100 + 256 * $(nproc)))
	if [ "$(cgroup_kind)" = v2 ]; then
		# they are memory as any other
		run_json --memory 64m --stdin /dev/null --workspace w -- python3 buffers.py
		holds report.json '.reason == "oom" or (.reason == "exited" and .evidence.oom_kills == 0)'
		holds report.json '.usage | .memory_peak_bytes > 16777216 and .memory_peak_bytes <= .memory_limit_bytes + 8388608'
		# the kernel frees sockets a moment after their last user
		for _ in {1..100}; do
			[ "$(udp_pages)" -gt $((before + spare)) ] || break
			sleep 0.1
		done
		[ "$(udp_pages)" -le $((before + spare)) ]
		return
	fi
	start buffers --memory 64m --workspace w -- python3 buffers.py
	held=$(($(udp_pages) - before))
	echo "UDP holds $held pages" >&2
	# it took some, and no more than a quarter of the limit and what the kernel takes in one go
	[ "$held" -gt 100 ]
	[ "$held" -le $((64 * 1024 / 4 / 4 + 2048)) ]
	finish buffers
}

@test "a command that asks pid 1 to trace it, and stops, has not ended" {
	cat >w/traced.py <<'PY'
import ctypes, os, signal

ctypes.CDLL(None).ptrace(0, 0, 0, 0)  # PTRACE_TRACEME
signal.signal(signal.SIGUSR1, lambda *_: None)
os.kill(os.getpid(), signal.SIGUSR1)
print("still here", flush=True)
os._exit(7)
PY
	"$agentdock" run --json --workspace w -- python3 traced.py >report.json && status=0 || status=$?
	[ "$status" = 7 ]
	[ "$(jq -r '.reason + " " + .stdout.data.text' report.json)" = "exited still here" ]
}
