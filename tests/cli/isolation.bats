#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a sandbox is and what it can reach: as it looks from inside (fixtures/hostile/probe.py), and from the host's
# /proc while it runs. Requirements IS1 to IS15, N1, U1.
load common

setup() {
	common_setup
	use_default_image
	probes=$root/fixtures/hostile
}

# probe OPTION...: what probe.py sees, in probe.json
probe() {
	"$agentdock" run --workspace "$probes" "$@" -- python3 /workspace/probe.py >probe.json
}

# probed FILTER [JQ-OPTION...]
probed() {
	holds probe.json "$@"
}

status_of() {
	awk -v name="$2:" '$1 == name { $1 = ""; print substr($0, 2) }' "/proc/$1/status"
}

@test "ids: 10001:10001 and no other group, whatever groups the caller is in" {
	probe
	probed '.ids == {uid: [10001,10001,10001,10001], gid: [10001,10001,10001,10001], groups: []}'
	run -0 setpriv --groups 4,27,10001 "$agentdock" run -- id -G
	equal "the groups" "$output" 10001
	probe --user 0:0
	probed '.ids == {uid: [0,0,0,0], gid: [0,0,0,0], groups: []}'
	probe --user 1000:1001
	probed '.ids == {uid: [1000,1000,1000,1000], gid: [1001,1001,1001,1001], groups: []}'
}

@test "capabilities: none in all five sets, and locked out, for root inside as well" {
	local user
	for user in 10001:10001 0:0; do
		probe --user "$user"
		probed '.capabilities | keys == ["CapAmb","CapBnd","CapEff","CapInh","CapPrm"]'
		probed '[.capabilities[]] | unique == ["0000000000000000"]'
		# noroot, no setuid fixup, no ambient raise, and the locks of all four: linux/securebits.h
		probed '.securebits == 239 and .securebits_cleared == {errno: 1}'
		probed '.no_new_privs == 1 and .seccomp == 2'
	done
}

@test "the host sees the same: of pid 1 and of the command" {
	local pids pid base
	start one
	pids=$(host_pids one)
	for pid in $pids; do
		base=$(awk '{ print $2 }' "/proc/$pid/uid_map")
		equal "uid_map" "$(xargs <"/proc/$pid/uid_map")" "0 $base 65536"
		equal "gid_map" "$(xargs <"/proc/$pid/gid_map")" "0 $base 65536"
		[ "$base" -ge 65536 ]
		equal Uid "$(status_of "$pid" Uid)" "$(yes $((base + 10001)) | head -4 | xargs)"
		equal Gid "$(status_of "$pid" Gid)" "$(yes $((base + 10001)) | head -4 | xargs)"
		equal Groups "$(status_of "$pid" Groups)" ""
		for set in CapInh CapPrm CapEff CapBnd CapAmb; do
			equal "$set" "$(status_of "$pid" $set)" 0000000000000000
		done
		equal NoNewPrivs "$(status_of "$pid" NoNewPrivs)" 1
		equal Seccomp "$(status_of "$pid" Seccomp)" 2
		equal SigIgn "$(status_of "$pid" SigIgn)" 0000000000000000
		equal SigBlk "$(status_of "$pid" SigBlk)" 0000000000000000
	done
	finish one
	[ "$status" = 0 ]
}

@test "two sandboxes at a time share no id and no namespace with each other or with the host" {
	local a b name base_a base_b
	start a
	start b
	read -r _ a <<<"$(host_pids a)"
	read -r _ b <<<"$(host_pids b)"
	base_a=$(awk '{ print $2 }' "/proc/$a/uid_map")
	base_b=$(awk '{ print $2 }' "/proc/$b/uid_map")
	[ $((base_a + 65536)) -le "$base_b" ] || [ $((base_b + 65536)) -le "$base_a" ]
	for name in mnt pid net ipc uts cgroup user; do
		run -0 stat -Lc %i "/proc/self/ns/$name" "/proc/$a/ns/$name" "/proc/$b/ns/$name"
		[ "$(sort -u <<<"$output" | wc -l)" = 3 ]
	done
	finish a
	finish b
}

@test "from inside, each namespace is another than the host's" {
	local name
	probe
	for name in mnt pid net ipc uts cgroup user; do
		probed '.namespaces[$name] | test("^" + $name + ":\\[[0-9]+\\]$")' --arg name $name
		probed '.namespaces[$name] != $host' --arg name $name \
			--arg host "$(readlink /proc/self/ns/$name)"
	done
}

# The parts of /proc that are covered: those that this kernel has.
covered() {
	local path
	for path in kcore keys key-users latency_stats timer_list timer_stats sched_debug interrupts partitions diskstats softirqs \
		zoneinfo buddyinfo consoles misc config.gz kallsyms kmsg \
		kpagecount kpageflags kpagecgroup vmallocinfo slabinfo allocinfo pagetypeinfo iomem ioports modules mtrr \
		cmdline acpi asound scsi bus driver dynamic_debug fs irq pressure sys sysrq-trigger; do
		[ ! -e "/proc/$path" ] || echo "/proc/$path"
	done
}

@test "the mount table is exactly what a sandbox needs" {
	probe
	equal "the mount points" "$(jq -r '.mounts[].point' probe.json | sort)" \
		"$({ printf '%s\n' / /proc /dev /dev/pts /dev/shm /dev/mqueue && covered; } | sort)"
	# wherever it is mounted: a part of a mount is only its own null device or its own /proc/sys
	probed '[.mounts[] | select(.root != "/") | .type + " " + .root] | unique
		- ["tmpfs /null", "proc /sys", "proc /sysrq-trigger"] == []'
	probed '[.mounts[].propagation[]] == []'
	probed '[.mounts[].type] | unique == ["devpts","mqueue","overlay","proc","tmpfs"]'
	probed 'all(.mounts[]; .options | contains(["nosuid"]))'
	# device nodes work on our /dev and devpts alone
	probed 'all(.mounts[]; (.options | contains(["nodev"])) or .type == "devpts" or .source == "dev")'
	probed 'all(.mounts[] | select(.point != "/"); .options | contains(["noexec"]))'
	probed 'all(.mounts[] | select(.point == "/proc/sys"); .options | contains(["ro"]))'
	# --workspace is a copy: no mount for it
	"$agentdock" run -- cat /proc/self/mountinfo | awk '{ print $5 }' | sort >without
	equal "without a workspace" "$(cat without)" "$(jq -r '.mounts[].point' probe.json | sort)"
}

@test "the mount table tells nothing of the host: no path, no device, no place of ours" {
	local pids pid table
	# the devices and directories of the host's own mounts
	awk '{ print $1; if ($2 ~ "/.*/") print $2 }' /proc/self/mounts | grep / | grep -v '^/dev/' |
		grep -v '^/proc/' | sort -u >host.paths
	awk '$1 ~ "^/dev/" { print $1 }' /proc/self/mounts >>host.paths
	[ -s host.paths ]
	printf '%s\n' "$BATS_TEST_TMPDIR" "$common_store" "$AGENTDOCK_STATE_DIR" /var/lib /tmp /run sha256 loop /disks/ \
		>>host.paths
	start one
	pids=$(host_pids one)
	for pid in $pids; do
		# as the host sees it: root inside would not see more
		for table in mountinfo mounts mountstats; do
			cp "/proc/$pid/$table" "$table.$pid"
			[ -s "$table.$pid" ]
			run -1 grep -Ff host.paths "$table.$pid"
		done
	done
	finish one
}

@test "the network is lo, up with both of its addresses, and nothing else" {
	probe
	probed '.network.interfaces == {lo: {up: true, ipv4: "127.0.0.1"}}'
	probed '.network.routes_ipv4 == []'
	probed '.network.addresses_ipv6 | length == 1'
	probed '.network.addresses_ipv6[0] | startswith("00000000000000000000000000000001 ") and endswith(" lo")'
	probed 'all(.network.routes_ipv6[]; endswith(" lo"))'
	# and by rtnetlink, which tells all that there is
	inside -- python3 -c 'import socket; print(socket.if_nameindex())'
	equal "the interfaces" "$output" "[(1, 'lo')]"
}

@test "loopback works; everything else is out of reach at once" {
	inside --stdin - --timeout 60 -- python3 - <<'PY'
import errno, socket, time

for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    with socket.socket(family) as server, socket.socket(family) as client:
        server.bind((address, 0))
        server.listen()
        client.connect(server.getsockname())
        with server.accept()[0] as accepted:
            accepted.sendall(b"hello")
            print(address, client.recv(5).decode())
began = time.monotonic()
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET, "169.254.169.254"), (socket.AF_INET6, "2001:db8::1")):
    with socket.socket(family) as client:
        client.settimeout(30)
        try:
            client.connect((address, 80))
            print(address, "reached")
        except OSError as error:
            print(address, errno.errorcode.get(error.errno, error))
for name in "example.com", "postgres", "redis", "host.docker.internal":
    try:
        print(name, socket.getaddrinfo(name, 443))
    except socket.gaierror:
        print(name, "unknown")
# a resolver that waits for an answer takes 10 s a name
print("at once" if time.monotonic() - began < 8 else "late")
PY
	equal output "$output" "127.0.0.1 hello
::1 hello
192.0.2.1 ENETUNREACH
169.254.169.254 ENETUNREACH
2001:db8::1 ENETUNREACH
example.com unknown
postgres unknown
redis unknown
host.docker.internal unknown
at once"
}

@test "sockets of the host, abstract ones too, are not there" {
	local name=agentdock-test-$$-$BATS_TEST_NUMBER listener line
	mkfifo said
	# a listener of the host, as an X server or a desktop bus has it
	python3 -c 'import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind("\0" + sys.argv[1])
server.listen()
print("listening", flush=True)
server.accept()' "$name" >said 3>&- &
	listener=$!
	read -r line <said
	[ "$line" = listening ]
	run -0 "$agentdock" run -- python3 -c 'import errno, socket, sys
client = socket.socket(socket.AF_UNIX)
print(errno.errorcode[client.connect_ex("\0" + sys.argv[1])])' "$name"
	kill "$listener"
	wait "$listener" || true
	equal output "$output" ECONNREFUSED
	inside -- wc -l /proc/net/unix
	equal "the sockets of the namespace" "$output" "1 /proc/net/unix" # the heading
	inside --user 0:0 -- sh -c 'find / -xdev -type s 2>/dev/null; true'
	equal "the sockets" "$output" ""
}

@test "/dev is exactly ours" {
	probe
	equal /dev "$(jq -r '.devices | to_entries[] | "\(.key) \(.value.kind) \(.value.mode) \(.value.device // .value.target // "")"' \
		probe.json | sed 's/ $//')" \
		"/dev/fd link 0777 /proc/self/fd
/dev/full character 0666 1:7
/dev/mqueue directory 1777
/dev/null character 0666 1:3
/dev/ptmx link 0777 pts/ptmx
/dev/pts directory 0755
/dev/pts/ptmx character 0666 5:2
/dev/random character 0666 1:8
/dev/shm directory 1777
/dev/stderr link 0777 /proc/self/fd/2
/dev/stdin link 0777 /proc/self/fd/0
/dev/stdout link 0777 /proc/self/fd/1
/dev/tty character 0666 5:0
/dev/urandom character 0666 1:9
/dev/zero character 0666 1:5"
	probed 'all(.devices[] | select(.kind == "character"); .uid == 0 and .gid == 0)'
}

@test "message queues work, and are the sandbox's own" {
	inside -- python3 -c 'import ctypes, os
c = ctypes.CDLL(None)
q = c.mq_open(b"/q", os.O_CREAT | os.O_RDWR, 0o600, None)
c.mq_send(q, b"word", 4, 0)
text = ctypes.create_string_buffer(65536)
print(c.mq_receive(q, text, 65536, None), text.value.decode(), os.listdir("/dev/mqueue"))'
	equal output "$output" "4 word ['q']"
	! grep -q mqueue /proc/self/mounts || [ -z "$(ls -A "$(awk '$3 == "mqueue" { print $2; exit }' /proc/self/mounts)")" ]
}

@test "devices work, and are the sandbox's own" {
	local before
	before=$(stat -c '%a %u %g %i' /dev/null /dev/zero /dev/full /dev/tty)
	inside -- sh -c 'head -c 3 /dev/zero | od -An -tx1; echo x >/dev/null && head -c 1 /dev/null | wc -c
		head -c 9 /dev/zero 2>&1 >/dev/full | grep -o "No space left on device"; head -c 8 /dev/urandom | wc -c
		python3 -c "import os; a, b = os.openpty(); print(os.ttyname(b))"; ls /dev/pts'
	equal output "$output" " 00 00 00
0
No space left on device
8
/dev/pts/0
ptmx"
	# whatever root inside does to its own nodes
	inside --user 0:0 -- sh -c 'chmod 600 /dev/null && stat -c %a /dev/null'
	equal "the mode inside" "$output" 600
	equal "the host's devices" "$(stat -c '%a %u %g %i' /dev/null /dev/zero /dev/full /dev/tty)" "$before"
	# no node can be made, by anybody
	run --separate-stderr "$agentdock" run --user 0:0 -- mknod /tmp/null c 1 3
	equal status "$status" 1
	[[ $stderr == *"Operation not permitted"* ]]
}

@test "descriptors are 0, 1 and 2, whatever the caller had open" {
	echo hush >secret
	exec 7<secret 8<"$BATS_TEST_TMPDIR" 200>>secret
	probe
	exec 7<&- 8<&- 200>&-
	probed '.descriptors | keys == ["0","1","2"]'
	probed '.descriptors["0"] == "/dev/null"'
	probed '.descriptors["1"], .descriptors["2"] | startswith("pipe:")'
	inside -- sh -c 'for fd in 3 4 5 7 8 200; do (: <&$fd) 2>/dev/null && echo "$fd is open"; done; ls /proc/self/fd'
	equal "the descriptors of ls" "$(xargs <<<"$output")" "0 1 2 3" # 3 is the directory that it lists
}

@test "of pid 1 and the command, the host sees no descriptor but pipes, the null device and the channel" {
	local init command
	echo hush >secret
	exec 7<secret
	start one
	exec 7<&-
	read -r init command <<<"$(host_pids one)"
	equal "the command's" "$(ls "/proc/$command/fd" | xargs)" "0 1 2"
	[ "$(ls "/proc/$init/fd" | wc -l)" -le 4 ]
	for fd in "/proc/$init/fd"/* "/proc/$command/fd"/*; do
		[[ $(readlink "$fd") =~ ^(pipe:.*|socket:.*|/dev/null)$ ]]
	done
	finish one
}

@test "keyrings: calls are closed, and the session's is new" {
	local outer inner
	probe
	probed '[.keyrings[]] | unique == [{errno: 1}]'
	probed '.keys == []'
	# with a profile that lets keyctl through, the caller's session keyring is not found either
	jq '(.. | objects | select(has("names")).names) -= ["add_key", "request_key", "keyctl"] | .allow += ["keyctl"]' \
		"$root/seccomp/profiles/default.json" >profile.json
	cat >session.py <<'PY'
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
KEYCTL, GET_KEYRING_ID, SEARCH = {"x86_64": 250, "aarch64": 219}[__import__("os").uname().machine], 0, 10
print("keyring", libc.syscall(KEYCTL, GET_KEYRING_ID, -3, 0))
print("key", "found" if libc.syscall(KEYCTL, SEARCH, -3, b"user", b"agentdock-test", 0) > 0 else "not found")
PY
	cat >both.sh <<'SH'
keyctl add user agentdock-test hush @s >/dev/null
python3 session.py
exec "$1" run --seccomp profile.json --stdin session.py -- python3 -
SH
	run -0 --separate-stderr keyctl session - sh both.sh "$agentdock"
	[[ ${lines[0]} == "keyring "[1-9]* && ${lines[1]} == "key found" ]]
	[[ ${lines[2]} == "keyring "[1-9]* && ${lines[3]} == "key not found" ]]
	[ "${lines[0]}" != "${lines[2]}" ]
}

@test "the parts of /proc that are about the host are empty, and stay so for root inside" {
	local user path
	for user in 10001 0; do
		for path in $(covered); do
			case $path in
			/proc/sys | /proc/sysrq-trigger) ;;
			*) echo "$path" ;;
			esac
		done >masked
		inside --user $user --stdin masked -- sh -c 'while read -r path; do
			if [ -d "$path" ]; then ls -A "$path"; else cat "$path"; fi
			if [ -d "$path" ]; then touch "$path/x" 2>/dev/null && echo "$path can be written"; fi
			umount "$path" 2>/dev/null && echo "$path can be uncovered"; done; echo end'
		equal "what they hold" "$output" end
	done
	[ "$(wc -l <masked)" -gt 5 ]
}

@test "the kernel's settings cannot be written, by root inside neither" {
	local user
	for user in 10001:10001 0:0; do
		inside --user "$user" --stdin - -- python3 - <<'PY'
import errno, os

for directory, _, files in os.walk("/proc/sys"):
    for name in files:
        path = os.path.join(directory, name)
        try:
            os.close(os.open(path, os.O_WRONLY))
            print(path, "can be written")
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                print(path, error)
for path in "/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/proc/1/comm", "/proc/self/uid_map", "/proc/sys/kernel/core_pattern":
    try:
        with open(path, "w") as file:
            file.write("x")
        print(path, "can be written")
    except OSError:
        pass
print("end")
PY
		equal "what can be written" "$output" end
	done
}

@test "/sys has nothing, and cannot be mounted" {
	local user
	for user in 10001 0; do
		inside --user $user -- sh -c 'ls -A /sys; for kind in sysfs cgroup2 proc tmpfs bpf debugfs; do
			mount -t $kind none /mnt 2>/dev/null && echo "$kind can be mounted"; done
			mount --bind / /mnt 2>/dev/null && echo bound; mount -o remount,rw /proc/sys 2>/dev/null && echo remounted
			umount /dev/shm 2>/dev/null && echo unmounted; unshare -Ur true 2>/dev/null && echo "new user namespace"
			unshare -m true 2>/dev/null && echo "new mount namespace"; echo end'
		equal output "$output" end
	done
}

@test "the system belongs to root inside: the user writes in scratch places alone" {
	inside -- sh -c 'find / -xdev ! -type l -writable 2>/dev/null | sort'
	equal "what the user can write" "$output" "/run/lock
/tmp
/var/tmp
/workspace"
	inside -- sh -c 'for path in /bin/sh /etc/passwd /usr/bin/python3; do
		test -w $path && echo "$path can be written"; rm -f $path 2>/dev/null && echo "$path can be removed"; done
		echo x >/etc/x || touch /usr/x || mkdir /x || true; ls /etc/x /usr/x /x 2>/dev/null; stat -c %u:%g / /etc /usr/bin' \
		2>/dev/null
	equal "owners" "$output" "0:0
0:0
0:0"
}

@test "the user has a name and a home that it can write" {
	inside -- sh -c 'whoami; id; cd; pwd; touch .x && ls -A; stat -c "%U:%G %a" .'
	equal output "$output" "sandbox
uid=10001(sandbox) gid=10001(sandbox) groups=10001(sandbox)
/workspace
.x
sandbox:sandbox 755"
	inside --user 4242 -- whoami # beside the image's own user of that name
	equal "another user" "$output" sandbox4242
	inside --user 0 -- whoami # the image's own entry stands
	equal root "$output" root
	inside --user 33:33 -- whoami
	equal "a user of the image" "$output" www-data
}

@test "hostname: sandbox, or what was asked for; the host's stays" {
	local before
	before=$(hostname)
	probe
	probed '.hostname == "sandbox"'
	inside --hostname ci-7.example -- hostname
	equal hostname "$output" ci-7.example
	run -1 --separate-stderr "$agentdock" run --user 0:0 -- hostname changed
	equal "the host's name" "$(hostname)" "$before"
}

@test "rlimits and umask are the sandbox's, not the caller's" {
	(
		umask 000
		ulimit -S -c unlimited
		ulimit -S -s 4096
		probe
	)
	probed '.rlimits.RLIMIT_CORE == [0,0] and .rlimits.RLIMIT_NOFILE == [4096,4096]'
	probed '.rlimits.RLIMIT_STACK == [8388608,8388608] and .rlimits.RLIMIT_FSIZE == [1099511627776,1099511627776]'
	probed '.umask == "0022"'
	# for the command, not for those who copy its workspace: the files in it are larger
	probe --ulimit nofile=64:128 --ulimit fsize=1000 --disk 100m
	probed '.rlimits.RLIMIT_NOFILE == [64,128] and .rlimits.RLIMIT_FSIZE == [1000,1000]'
}

@test "signals that the caller ignores are not ignored inside" {
	run -0 bash -c 'trap "" TERM HUP INT PIPE USR1; exec "$1" run -- cat /proc/self/status' - "$agentdock"
	equal SigIgn "$(awk '$1 == "SigIgn:" { print $2 }' <<<"$output")" 0000000000000000
	equal SigBlk "$(awk '$1 == "SigBlk:" { print $2 }' <<<"$output")" 0000000000000000
}

@test "a caller that comes before others does not hand that on" {
	local show='nice; chrt -p $$; ionice; cat /proc/self/personality; cat /proc/self/oom_score_adj'
	local before=(nice -n -5 ionice -c 1 setarch -R)
	if chrt -f 5 true; then # a control group without real-time budget refuses it to root too
		before+=(chrt -f 5)
	fi
	inside -- sh -c "$show"
	[[ $output == 0$'\n'*"SCHED_OTHER"*$'\n'00000000$'\n'* ]]
	equal "from a caller with priorities" "$("${before[@]}" \
		"$agentdock" run -- sh -c "$show")" "$output"
	# one that is humbler than others does
	run -0 nice -n 7 "$agentdock" run -- nice
	equal nice "$output" 7
}

@test "the control group looks like the root of all, and cannot be reached" {
	local init command group
	inside -- cat /proc/self/cgroup /proc/1/cgroup
	run -1 grep -v ':/$' <<<"$output"
	inside --user 0:0 -- sh -c 'ls -A /sys/fs/cgroup 2>/dev/null; find / -xdev -name cgroup.procs; echo end'
	equal "control files" "$output" end
	# from the host: in a group of its own, below the parent, wherever a limit is enforced
	start one
	read -r init command <<<"$(host_pids one)"
	for pid in $init $command; do
		group=$(awk -F: '$1 == 0 { print $3 }' "/proc/$pid/cgroup")
		[[ $group == "/$AGENTDOCK_CGROUP_PARENT/"* ]]
		while IFS=: read -r _ controllers path; do
			case ,$controllers, in
			*,memory,* | *,pids,* | *,cpu,*) equal "$controllers" "$path" "$group" ;;
			esac
		done <"/proc/$pid/cgroup"
	done
	finish one
}

@test "pid 1 is agentdock-init, and keeps to itself" {
	local user files
	# those that this kernel has
	files=$(cd /proc/1 && ls -Ud mem environ maps fd auxv stack syscall map_files 2>/dev/null | sort) || true
	for user in 10001:10001 0:0; do
		# shellcheck disable=SC2086 # a word each
		inside --user "$user" --stdin - -- python3 - $files <<'PY'
import ctypes, os, sys

print(open("/proc/1/cmdline", "rb").read().split(b"\0")[0].decode())
for name in "exe", "cwd", "root":
    try:
        print(name, os.readlink(f"/proc/1/{name}"))
    except PermissionError:
        print(name, "closed")
for name in sys.argv[1:]:
    path = f"/proc/1/{name}"
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
        print(name, "open")
    except PermissionError:
        print(name, "closed")
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
print("attach", libc.ptrace(PTRACE_ATTACH, 1, 0, 0), "seize", libc.ptrace(PTRACE_SEIZE, 1, 0, 0))
PY
		equal "pid 1" "$output" "agentdock-init
exe closed
cwd closed
root closed
${files//$'\n'/ closed$'\n'} closed
attach -1 seize -1"
		[[ $files == *environ*fd*maps*mem* ]]
	done
}

@test "pid 1 cannot be killed from inside, and what it executes is no file of the host" {
	local init
	# a child of the shell can be waited for only when pid 1 still lives and nobody was stopped
	inside --user 0:0 -- sh -c 'kill -KILL 1; kill -STOP 1; sh -c "echo alive"'
	equal output "$output" alive
	start one
	read -r init _ <<<"$(host_pids one)"
	[[ $(readlink "/proc/$init/exe") == /memfd:*"(deleted)" ]]
	finish one
}

@test "processes of the host are not visible" {
	start other # so that there is more to see on the host than ourselves
	probe
	probed '.processes == ([1, .pid] | sort)'
	finish other
}

@test "--workspace is a copy: nothing comes back, and the host's directory is as it was" {
	local before after
	mkdir -p work/sub
	printf 'one' >work/file
	printf '#!/bin/sh\n' >work/run.sh
	chmod 755 work/run.sh
	ln -s file work/link
	ln -s /etc/passwd work/absolute
	before=$(find work -printf '%p %y %m %U %T@ %l\n' | sort && cat work/file)
	inside --workspace work -- sh -c 'find . -printf "%p %y %m %u %l\n" | sort; cat file; echo two >file; rm -r sub link
		touch new; chmod 600 run.sh; echo; ls'
	after=$(find work -printf '%p %y %m %U %T@ %l\n' | sort && cat work/file)
	equal "the host's directory" "$after" "$before"
	equal "the copy" "$output" ". d 755 sandbox 
./absolute l 777 sandbox /etc/passwd
./file f 644 sandbox 
./link l 777 sandbox file
./run.sh f 755 sandbox 
./sub d 755 sandbox 
one
absolute
file
new
run.sh"
	# and the next run starts from the host's state again
	inside --workspace work -- cat file
	equal "the next copy" "$output" one
}

@test "--read-only: nothing can be written but /dev/shm, mqueue and what --tmpfs gives" {
	inside --read-only -- sh -c 'for dir in / /etc /tmp /var/tmp /run/lock /workspace "$HOME" /dev/shm; do
		if touch $dir/x 2>/dev/null; then echo $dir; fi; done'
	equal "what can be written" "$output" /dev/shm
	inside --read-only --user 0:0 -- sh -c 'for dir in / /etc /tmp /root /workspace; do
		if touch $dir/x 2>/dev/null; then echo $dir; fi; done; mount -o remount,rw / 2>/dev/null && echo remounted; true'
	equal "what root can write" "$output" ""
	inside --read-only --tmpfs /tmp --tmpfs /home/app:size=1m,exec -- sh -c 'touch /tmp/x /home/app/x && echo both'
	equal "the tmpfs mounts" "$output" both
}

@test "--tmpfs: its size, mode and flags are as asked, and it is made where the image has no such directory" {
	probe --tmpfs /tmp:size=1m,mode=755 --tmpfs /opt/deep/er:exec
	probed '.mounts[] | select(.point == "/tmp") | .type == "tmpfs" and (.super_options | contains(["size=1024k","mode=755"]))
		and (.options | contains(["nosuid","nodev","noexec"]))'
	probed '.mounts[] | select(.point == "/opt/deep/er") | .type == "tmpfs" and (.super_options | contains(["size=65536k"]))
		and (.options | contains(["nosuid","nodev"])) and (.options | contains(["noexec"]) | not)'
	inside --tmpfs /tmp:size=1m --tmpfs /opt/x:exec -- sh -c 'head -c 2000000 /dev/zero >/tmp/big; stat -c %s /tmp/big
		for dir in /tmp /opt/x; do cp /bin/true $dir/t 2>/dev/null || { rm /tmp/big; cp /bin/true $dir/t; }
			$dir/t 2>/dev/null && echo "$dir runs"; done; stat -c %a /tmp /opt/x' 2>/dev/null
	equal output "$output" "1048576
/opt/x runs
1777
1777"
}

@test "--workdir: below the workspace, or anywhere inside" {
	mkdir -p work/sub/deeper
	inside --workspace work -w sub/deeper -- pwd
	equal relative "$output" /workspace/sub/deeper
	inside --workspace work -w /etc -- pwd
	equal absolute "$output" /etc
	ln -s / work/out
	inside --workspace work -w out -- pwd # leads to the sandbox's own root
	equal "through a link" "$output" /
	run -125 --separate-stderr "$agentdock" run --workspace work -w none -- true
	equal stderr "$stderr" "agentdock: working directory '/workspace/none': No such file or directory"
	run -125 --separate-stderr "$agentdock" run -w /root -- true # as the user, not as root
	equal stderr "$stderr" "agentdock: working directory '/root': Permission denied"
}

@test "root inside is nobody in particular" {
	local path
	inside --user 0:0 --stdin - -- sh <<'SH'
try() {
	if "$@" >/dev/null 2>&1; then echo "could: $*"; fi
}
try chown 10001 /etc/passwd
try chroot / true
try mknod /tmp/x c 1 3
try mount -t tmpfs x /tmp
try umount /dev/shm
try hostname x
try date -s 2001-01-01
try nice -n -5 false -- || true
try dmesg
try sh -c 'echo 1 >/proc/sys/vm/drop_caches'
try sh -c 'echo 0 >/proc/self/oom_score_adj_none'
try setpriv --reuid 10001 true
try setpriv --bounding-set +all --inh-caps +sys_admin true
try swapoff -a x
echo end
SH
	equal output "$output" end
}

@test "labels are carried into the report, and into nothing else" {
	run_json --label job=17 --label team=blue=green --label empty= -- sh -c 'env; hostname; cat /proc/self/mountinfo'
	[ "$status" = 0 ]
	holds report.json '.labels == {job: "17", team: "blue=green", empty: ""}'
	holds report.json '.stdout.data.text | test("blue") | not'
	run_json -- true
	holds report.json '.labels == {}'
}
