#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The cases that broke other people's sandboxes, as far as a single run can show them, and what is of
# their kind. The first word of a test's name is the case's id.
load common
load report

setup() {
	common_setup
	[[ $BATS_TEST_DESCRIPTION == *"(own image)" ]] || use_default_image
}

# The cases' own defaults.
case_report() {
	report --memory 256m --timeout 20 --grace 1 "$@"
}

# ---- output ----

@test "O1 what a command leaves in the background ends soon after it" {
	case_report -- sh -c '(sleep 300; echo late) & echo done'
	is .reason exited .exit_code 0 .stdout.data.text $'done\n'
	so '.usage.wall_ms + .phases_ms.collect < 6000'
	nothing_runs
}

# bats test_tags=any_kernel
@test "O2 a megabyte on each stream in turn: no deadlock, no byte lost in the count" {
	case_report -- python3 -c "import os;[os.write(f,b'x'*10**6) for f in (2,1,2,1)]"
	is .reason exited .exit_code 0 .stdout.total_bytes 2000000 .stderr.total_bytes 2000000
}

# bats test_tags=any_kernel
@test "O2 both streams flooding at once, live and to their last byte" {
	"$agentdock" run --timeout 60 --meta meta.json -- python3 -c '
import os, threading
def flood(f, c):
    for _ in range(200): os.write(f, c * 50000)
    os.write(f, b"END")
t = [threading.Thread(target=flood, args=a) for a in ((1, b"o"), (2, b"e"))]
[x.start() for x in t]; [x.join() for x in t]' >out 2>err
	[ "$(wc -c <out) $(wc -c <err)" = "10000003 10000003" ]
	[ "$(tail -c 4 out) $(tail -c 4 err)" = "oEND eEND" ]
	[ "$(tr -d oEND <out | wc -c) $(tr -d eEND <err | wc -c)" = "0 0" ]
	json=meta.json
	is .stdout.total_bytes 10000003 .stderr.total_bytes 10000003
}

# bats test_tags=any_kernel
@test "O4 bytes come back as they were: live, in the report, in --meta" {
	printf 'a\0b\377' >want
	case_report -- printf 'a\0b\377'
	is .stdout.data.base64 "$(base64 <want)" .stdout.total_bytes 4
	"$agentdock" run --meta meta.json -- printf 'a\0b\377' >live
	cmp want live
	jq -r .stdout.data.base64 meta.json | base64 -d | cmp - want
}

# bats test_tags=any_kernel
@test "O4 every byte value there is, and UTF-8 that is cut in two at the cap" {
	python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 300)' >want
	"$agentdock" run --meta meta.json --stdin want -- cat >live
	cmp want live
	jq -r .stdout.data.base64 meta.json | base64 -d | cmp - want
	case_report --max-output 10 -- python3 -c 'print("\u20ac" * 100, end="")'
	is .stdout.truncated true .stdout.total_bytes 300
	# what is kept, what is between and the total are one sum
	jq -r '.stdout.head, .stdout.tail | if has("base64") then .base64 else (.text | @base64) end' \
		"$json" | while read -r part; do base64 -d <<<"$part"; done >kept
	jq -e --argjson kept "$(wc -c <kept)" '.stdout | .dropped_bytes + $kept == .total_bytes' "$json"
}

# bats test_tags=any_kernel
@test "O6 fifty megabytes, then an error: it is there, and what is missing is counted" {
	case_report -- sh -c "yes | head -c 50000000; echo THE-ERROR >&2; exit 3"
	is .reason exited .exit_code 3 .stderr.data.text $'THE-ERROR\n' .stderr.truncated false \
		.stdout.truncated true .stdout.total_bytes 50000000 \
		.stdout.dropped_bytes $((50000000 - 256000))
	so '.stdout | (.head.text | length) == 128000 and (.tail.text | length) == 128000'
}

# bats test_tags=any_kernel
@test "O6 head and tail are the first and the last bytes; one byte over the cap drops one" {
	case_report --max-output 100 -- sh -c 'seq -w 1 1000'
	seq -w 1 1000 >want
	[ "$(jq -j .stdout.head.text "$json")" = "$(head -c 50 want)" ]
	[ "$(jq -j .stdout.tail.text "$json"; echo .)" = "$(tail -c 50 want; echo .)" ]
	case_report --max-output 100 -- printf '%0101d' 0
	is .stdout.truncated true .stdout.dropped_bytes 1
	case_report --max-output 100 -- printf '%0100d' 0
	is .stdout.truncated false .stdout.dropped_bytes 0
}

# bats test_tags=any_kernel
@test "O9 a command that reads its input gets an end of file at once" {
	case_report -- cat
	is .reason exited .exit_code 0 .stdout.total_bytes 0
}

# bats test_tags=any_kernel
@test "O9 input is handed over whole, and may be left unread" {
	head -c 3000000 /dev/urandom >input
	"$agentdock" run --stdin input -- cat | cmp - input
	# who closes it early, or never reads it, ends all the same
	"$agentdock" run --stdin input -- head -c 5 | cmp - <(head -c 5 input)
	case_report --stdin input -- sh -c 'exec <&-; sleep 0.3; echo closed'
	is .reason exited .exit_code 0 .stdout.data.text $'closed\n'
	case_report --stdin input -- true
	is .reason exited .exit_code 0
}

# bats test_tags=any_kernel
@test "O11 the end of the output is not the end of the process" {
	case_report -- sh -c 'exec >&- 2>&-; sleep 3; exit 5'
	is .reason exited .exit_code 5
	so '.usage.wall_ms > 2500'
}

# ---- time and process trees ----

@test "T1 setsid and double forks do not outlive the time-out" {
	case_report --timeout 2 -- sh -c 'setsid sleep 999 & wait'
	is .reason timeout .exit_status 124
	nothing_runs
	# long enough for all of them to be there, in a slow kernel too
	case_report --timeout 4 -- python3 -c '
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        for s in range(1, 32):
            if s not in (9, 19): signal.signal(s, signal.SIG_IGN)
        time.sleep(999)
time.sleep(999)'
	is .reason timeout .exit_status 124
	so '.usage.pids_peak >= 21'
	nothing_runs
}

@test "T1 a time-out while it forks as fast as it can leaves nothing" {
	case_report --timeout 1 --pids-limit 64 --workspace "$root/fixtures/hostile" -- sh forkbomb.sh
	is .reason timeout .exit_status 124
	nothing_runs
}

@test "T3 who ignores SIGTERM is killed after the grace; the report says what was sent and when" {
	case_report --timeout 2 -- sh -c 'trap "" TERM; while :; do sleep 1; done'
	is .reason timeout .exit_status 124 .signal SIGKILL \
		'[.evidence.signals_sent[].signal] | join(" ")' "SIGTERM SIGKILL"
	so '.evidence.signals_sent | .[0].at_ms >= 2000 and .[1].at_ms - .[0].at_ms >= 1000'
	nothing_runs
}

@test "T3 who hears SIGTERM may end by itself, with its own last words" {
	case_report --timeout 1 --grace 10 -- sh -c 'trap "echo last words; exit 7" TERM; while :; do sleep 0.1; done'
	is .reason timeout .exit_status 124 .exit_code 7 .stdout.data.text $'last words\n'
	so '.evidence.signals_sent[0].signal == "SIGTERM" and .usage.wall_ms < 8000'
	case_report --timeout 1 --grace 0 -- sh -c 'trap "echo heard" TERM; while :; do sleep 0.1; done'
	is .reason timeout .stdout.total_bytes 0 '[.evidence.signals_sent[].signal] | join(" ")' SIGKILL
}

@test "T3 a command that stopped itself is ended by the time-out" {
	case_report --timeout 1 -- sh -c 'kill -STOP $$'
	is .reason timeout .exit_status 124
	nothing_runs
}

@test "T5 pid 1 reaps what is left to it" {
	# more than may be there at a time
	# shellcheck disable=SC2016
	case_report --timeout 60 -- sh -c 'for i in $(seq 300); do (true &); done; sleep 1; ps -e | grep -c defunct'
	is .stdout.data.text $'0\n' .evidence.pids_refused 0
}

# ---- endings that look alike ----

@test "M1 out of memory is a reason, not a bare 137" {
	case_report -- python3 -c "b=b'x'*10**9"
	is .reason oom .exit_status 137 .evidence.oom_kills 1 .usage.memory_limit_bytes $((256 << 20))
	so '.usage | .memory_peak_bytes > 200000000 and .memory_peak_bytes <= .memory_limit_bytes'
}

@test "M1 137 and SIGKILL without a lack of memory are what they are" {
	case_report -- sh -c 'exit 137'
	is .reason exited .exit_code 137 .exit_status 137 .evidence.oom_kills 0
	case_report -- sh -c 'kill -KILL $$'
	is .reason signaled .signal SIGKILL .exit_status 137 .evidence.oom_kills 0
	case_report -- sh -c 'sh -c "kill -KILL \$\$"; exit $?'
	is .reason exited .exit_code 137 .evidence.oom_kills 0
}

@test "M1 files in memory count as memory" {
	case_report --tmpfs /scratch:size=1g -- dd if=/dev/zero of=/scratch/x bs=1M count=600
	is .reason oom .exit_status 137
}

@test "M2 a child that ran out of memory does not make the command fail, and is told" {
	case_report --memory 64m -- sh -c 'python3 -c "b=b\"x\"*10**9"; exit 0'
	is .reason exited .exit_code 0 .evidence.oom_kills 1
	# the shell hands on its child's 137: that is for want of memory
	case_report --memory 64m -- sh -c 'python3 -c "b=b\"x\"*10**9"; exit $?'
	is .reason oom .exit_status 137 .evidence.oom_kills 1
	# and another status is the command's own
	case_report --memory 64m -- sh -c 'python3 -c "b=b\"x\"*10**9"; exit 4'
	is .reason exited .exit_status 4 .evidence.oom_kills 1
}

@test "M4 /dev/shm is full before the memory is" {
	case_report -- sh -c 'dd if=/dev/zero of=/dev/shm/x bs=1M count=1000; echo $?; rm /dev/shm/x; true'
	is .reason exited .exit_code 0 .stdout.data.text $'1\n' .evidence.oom_kills 0
	[[ $(jq -r .stderr.data.text "$json") == *"No space left on device"* ]]
}

@test "P1 a fork bomb is contained, counted, and lets its neighbour finish" {
	# shellcheck disable=SC2016
	background bomb "$agentdock" run --json --grace 0 --pids-limit 100 -- \
		bash -c ':(){ :|:& };:; sleep 60'
	wait_for refused_pids
	report -- python3 -c 'print(sum(range(10**6)))'
	kill -0 "${started[bomb]}"
	is .reason exited .stdout.data.text $'499999500000\n'
	kill -TERM "${started[bomb]}"
	reap bomb
	json=bomb.out
	is .reason canceled .usage.pids_limit 100
	so '.evidence.pids_refused > 0 and .usage.pids_peak <= 100 and .usage.pids_peak > 50'
	nothing_runs
}

# Whether a group of ours was refused a process.
refused_pids() {
	local mount
	for mount in $(cgroup_mounts); do
		grep -qs 'max [1-9]' "$mount/$AGENTDOCK_CGROUP_PARENT"/*/pids.events && return 0
	done
	return 1
}

# ---- disk ----

@test "D1 D3 the disk has a limit, for unlinked files too, and the host has its space back (own image)" {
	use_small_image sh dd rm
	cat >inside.sh <<-'END'
		truncate -s 400m big.ext4
		mkfs.ext4 -q big.ext4
		mount -o loop big.ext4 "$AGENTDOCK_STATE_DIR.big"
		cp -a "$AGENTDOCK_STATE_DIR/." "$AGENTDOCK_STATE_DIR.big"
		export AGENTDOCK_STATE_DIR=$AGENTDOCK_STATE_DIR.big
		"$AGENTDOCK" run --image small --disk 64m -- sh -c :
		room() { sync -f "$AGENTDOCK_STATE_DIR" && stat -f -c '%f %d' "$AGENTDOCK_STATE_DIR"; }
		before=$(room)
		"$AGENTDOCK" run --image small --disk 64m --json -- dd if=/dev/zero of=x bs=1M >d1.json
		"$AGENTDOCK" run --image small --disk 64m --json -- \
			sh -c 'exec 3>f; rm f; dd if=/dev/zero bs=1M >&3' >d3.json
		after=$(room)
		# a loop device lets go of its file a moment after its last user
		for i in $(seq 100); do
			[ "$before" = "$after" ] && break
			sleep 0.1
			after=$(room)
		done
		echo "$before = $after"
		[ "$before" = "$after" ]
	END
	mkdir "$AGENTDOCK_STATE_DIR.big"
	AGENTDOCK=$agentdock unshare -m sh -u inside.sh
	for json in d1.json d3.json; do
		is .exit_code 1 .usage.disk_limit_bytes $((64 << 20))
		[[ $(jq -r .stderr.data.text "$json") =~ "No space left on device".*[^0-9]([0-9]+)" bytes" ]]
		[ "${BASH_REMATCH[1]}" -gt 50000000 ]
		[ "${BASH_REMATCH[1]}" -le $((64 << 20)) ]
	done
	json=d1.json
	is .reason disk_full
	so '.usage | .disk_used_bytes > 50000000 and .disk_used_bytes <= .disk_limit_bytes'
}

@test "D1 the same on a disk in memory; inodes are limited as bytes are" {
	case_report --disk 16m --disk-backing tmpfs -- dd if=/dev/zero of=x bs=1M
	is .reason disk_full .exit_code 1 .host.disk_backing tmpfs
	for backing in image tmpfs; do
		case_report --disk 16m --inodes 1000 --disk-backing "$backing" -- sh -c "$(cat "$root/fixtures/hostile/inodes.sh")"
		is .reason disk_full .exit_code 1 .usage.inodes_limit 1000
		so '.usage.inodes_used <= 1000 and .usage.inodes_used > 950'
	done
}

@test "D1 a sparse file is as large as what was written to it; none is larger than the disk" {
	case_report --disk 64m -- sh -c 'truncate -s 60m sparse && echo sparse; truncate -s 2t huge || echo refused'
	is .reason exited .stdout.data.text $'sparse\nrefused\n'
	so '.usage.disk_used_bytes < 4000000'
}

# ---- archives ----

# unpack FILE: as a checkout, the way the workspace is, by a user of no rights; the tree is in ./tree.
unpack() {
	rm -rf tree
	mkdir tree
	chmod 711 . ..
	chown 10001:10001 tree
	(cd tree && setpriv --reuid 10001 --regid 10001 --clear-groups -- \
		"${AGENTDOCK_LIBEXEC:-$build}/agentdock-archive" unpack --mode checkout \
		--limit-bytes "$bytes" --limit-entries "$entries" \
		--result-fd 3 <"../$1" 3>../result 2>../unpack.err)
}

# Writes them, and sets what they expect to be allowed.
hostile_archives() {
	mkdir archives outside
	echo canary >outside/canary
	python3 "$root/tests/hostile_archives.py" archives "$PWD/outside"
	chmod 777 outside
	read -r bytes entries < <(PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests python3 -c \
		'import hostile_archives as h; print(h.BYTES, h.ENTRIES)')
}

# Those that the cases name; all the others are tested where archives are.
about_this() {
	[[ $1 =~ link|dotdot|absolute|flip|device|setuid|cap|white|sparse|bomb|many ]]
}

# bats test_tags=any_kernel
@test "F1 F2 F4 a hostile archive, as a checkout: it stays inside, and so does what it can make" {
	hostile_archives
	local count=0 file checkout
	while read -r file checkout _; do
		about_this "$file" || continue
		local status=0
		unpack "archives/$file" || status=$?
		case $checkout in
		ok) [ "$status" = 0 ] ;;
		*) [ "$status" = 1 ] ;;
		esac || { echo "$file: $status, wanted $checkout" >&2; return 1; }
		[ "$(ls outside) $(cat outside/canary)" = "canary canary" ]
		[ -z "$(find tree ! -type f ! -type d ! -type l)" ]
		[ -z "$(find tree ! -type l -perm /7000)" ]
		[ -z "$(getfattr -Rhd -m 'trusted|security|user.overlay' tree)" ]
		[ "$(du -sk tree | cut -f 1)" -lt $((2 * bytes / 1024 + 4 * entries)) ]
		# no name is listed that cannot be opened, links to nowhere apart
		python3 -c '
import os, sys
sys.setrecursionlimit(50000)
for _, _, names, fd in os.fwalk("tree"):
    for name in names: os.stat(name, dir_fd=fd, follow_symlinks=False)'
		count=$((count + 1))
	done <archives/expected
	[ "$count" -gt 10 ]
}

# bats test_tags=any_kernel
@test "F1 F2 F4 a hostile archive, as an image: nothing outside, one line, nothing half done (own image)" {
	hostile_archives
	local file image
	while read -r file _ image _; do
		about_this "$file" || continue
		run --separate-stderr "$agentdock" image import --arch "$(dpkg --print-architecture)" \
			"archives/$file" t:1
		if [ "$image" = ok ]; then
			[ "$status" = 0 ]
		elif [ "$image" = bad ]; then
			[ "$status" = 125 ] && [[ $stderr == "agentdock: "* && $stderr != *$'\n'* ]]
		fi || { echo "$file: $status, wanted $image: $stderr" >&2; return 1; }
		[ "$(ls outside) $(cat outside/canary)" = "canary canary" ]
		[ -z "$(ls -A state/tmp)" ]
	done <archives/expected
	# devices of an image are nobody's way to the host's: none is kept
	[ -z "$(find state/layers -type b)" ]
}

@test "F1 F2 a workspace of links, devices and setuid files: what goes in is harmless" {
	mkdir ws
	ln -s /etc/shadow ws/shadow
	ln -s ../../../../etc ws/up
	ln -s / ws/root
	echo x >ws/a
	ln ws/a ws/b
	printf '#!/bin/sh\nid -u\n' >ws/su
	chmod 6755 ws/su
	setcap cap_net_raw+ep ws/a
	mknod ws/null c 1 3
	mknod ws/disk b 7 0
	mknod ws/white c 0 0
	mkfifo ws/fifo
	report --workspace ws -- sh -c '
		readlink shadow up root
		cat shadow 2>/dev/null || echo unreadable
		./su
		find . ! -type f ! -type d ! -type l
		find . ! -type l -perm /7000
		find . -type f | sort | xargs cat >/dev/null && echo every file opens
		stat -c %u:%g su a'
	is .stdout.data.text $'/etc/shadow\n../../../../etc\n/\nunreadable\n10001\nevery file opens\n10001:10001\n10001:10001\n'
}

@test "F4 a workspace that does not fit is a full disk, by name, in bytes and in inodes" {
	mkdir bytes inodes
	truncate -s 1T bytes/sparse
	report --workspace bytes --disk 32m -- true
	is .reason disk_full .exit_status 125
	[[ $(jq -r .error "$json") == *"does not fit into the sandbox's disk"*"raise --disk or --inodes"* ]]
	(cd inodes && seq 500 | xargs touch)
	report --workspace inodes --inodes 300 -- true
	is .reason disk_full .exit_status 125
	nothing_runs
}

# ---- inside ----

@test "N1 a server on either loopback address can be reached" {
	report -- python3 -c '
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.socket(family); server.bind((host, 0)); server.listen()
    client = socket.create_connection(server.getsockname()[:2])
    peer = server.accept()[0]; client.sendall(b"hi"); print(host, peer.recv(2).decode())'
	is .exit_code 0 .stdout.data.text $'127.0.0.1 hi\n::1 hi\n' .evidence.denied_total 0
}

@test "N1 a name that cannot be looked up fails at once" {
	report --timeout 20 -- python3 -c '
import socket, time
began = time.monotonic()
try: socket.getaddrinfo("example.com", 80)
except socket.gaierror: print("fails", time.monotonic() - began < 5)
print(socket.gethostbyname("localhost"))'
	is .stdout.data.text $'fails True\n127.0.0.1\n' .stderr.data.text ""
}

@test "S1 a pool of processes works" {
	report -- python3 -c "import multiprocessing as m; print(m.Pool(2).map(abs,[-1]))"
	is .exit_code 0 .stdout.data.text $'[1]\n' .stderr.data.text ""
}

@test "U1 the user has a name and a home" {
	report -- whoami
	is .exit_code 0
	so '.stdout.data.text | length > 1'
	report -- sh -c 'cd; touch .x && pwd; id -gn >/dev/null && echo group; python3 -c "import pathlib; print(pathlib.Path.home())"'
	is .stdout.data.text $'/workspace\ngroup\n/workspace\n' .stderr.data.text ""
	report --user 4321:1234 -- sh -c 'whoami >/dev/null && cd && touch .x && id -u && id -g'
	is .stdout.data.text $'4321\n1234\n'
}

@test "C1 threads start: in Python" {
	report -- python3 -c '
import threading
t = [threading.Thread(target=print, args=(i,), kwargs={"flush": True}) for i in range(1)]
[x.start() for x in t]; [x.join() for x in t]'
	is .exit_code 0 .stdout.data.text $'0\n' .evidence.denied_total 0
}

@test "C1 threads start: in Node (own image)" {
	command -v node >/dev/null || skip "no node on this machine"
	use_small_image sh node
	report --image small -- node -e 0
	is .reason exited .exit_code 0 .stderr.data.text ""
	report --image small -- node -e '
const { Worker } = require("worker_threads");
new Worker("console.log(6 * 7)", { eval: true }).on("exit", code => process.exit(code));'
	is .reason exited .exit_code 0 .stdout.data.text $'42\n'
}

@test "C1 a system call that nobody knows is ENOSYS, one that is forbidden EPERM and counted" {
	report -- python3 -c '
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for number in (999, 435, 321, 101):
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0)
    print(number, errno.errorcode.get(ctypes.get_errno(), 0))'
	[[ $(jq -r .stdout.data.text "$json") == $'999 ENOSYS\n435 ENOSYS\n321 EPERM\n'* ]]
	so '.evidence.denied_calls | any(.name == "bpf" and .count == 1)'
	so '[.evidence.denied_calls[].name] | index("clone3") == null'
}

# ---- the end of a whole tree ----

@test "T1 T3 the grace is every process's: a child that cleans up after SIGTERM is let, though its shell is dead" {
	case_report --timeout 1 --grace 15 -- sh -c \
		'(trap "echo cleaned; exit" TERM; while :; do sleep 0.1; done) & wait; echo never'
	is .reason timeout .stdout.data.text $'cleaned\n'
	# nobody was left to kill
	so '[.evidence.signals_sent[].signal] == ["SIGTERM"]'
}

@test "U1 /workspace is the user's own and empty, whatever the image has there (own image)" {
	use_small_image sh
	root_of own sh ls touch wc
	mkdir own/workspace
	touch own/workspace/theirs
	chmod 0 own/workspace
	"$agentdock" image import own own >/dev/null
	run "$agentdock" run --image own -- sh -c 'ls -a | wc -l; touch here && ls'
	[ "$status" = 0 ]
	[ "$output" = $'2\nhere' ]
}

@test "N1 the name of the sandbox itself can be looked up" {
	run "$agentdock" run --hostname build-7 -- python3 -c \
		'import socket; print(socket.gethostbyname(socket.gethostname()))'
	[ "$status" = 0 ]
	[ "$output" = 127.0.1.1 ]
}
