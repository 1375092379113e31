# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests with podman and containerd share: a place of their own for an engine, an image, a terminal, and the
# proof, after each test, that nothing is left.
#
# An engine, its daemons and its containers live in namespaces that the file's first process holds: mounts, processes,
# network, IPC, host name. With that process all of them end, whatever a test did. In there /run, /var/lib and $engine,
# where storage is, are empty; root and the user `worker` have subordinate ids. Where this host has control groups of the
# first version with a v2 tree beside them, that tree is hidden: no other runtime or engine knows what to do with both.
#
# $RUNTIME is the runtime, by default the one that is built; no test knows which.
bats_require_minimum_version 1.5.0

# engine_setup_file PACKAGE PROGRAM...: fails where a program is missing, and sets $missing. Sets and exports $root, $build, $runtime,
# $image (an OCI archive of localhost/small:latest), $engine, $group (its control group), $holder and $engine_pid.
engine_setup_file() {
	local package=$1 program
	shift
	for program; do
		type -P "$program" >/dev/null || {
			export missing="no $program; packaging/debian-packages engines installs $package"
			return 1
		}
	done
	export root=${BATS_TEST_DIRNAME%/*/*}
	export build=${AGENTDOCK_BUILD:-build}
	[[ $build == /* ]] || build=$root/$build
	export runtime=${RUNTIME:-$build/agentdock-runtime}
	export engine=$BATS_FILE_TMPDIR/engine image=$BATS_FILE_TMPDIR/small.tar
	export group=agentdock-test-$package-$$
	cd "$BATS_FILE_TMPDIR" || return
	make_image
	make_accounts
	start_holder
}

# A root file system with one program, busybox, and the image that it becomes.
make_image() {
	local tree=$BATS_FILE_TMPDIR/small
	mkdir -p "$tree"/{bin,usr/bin,etc,tmp,var/tmp,proc,sys,dev,root,run,home/worker}
	cp "$(command -v busybox)" "$tree/usr/bin/busybox"
	busybox --install -s "$tree/bin"
	# as seen from inside
	ln -sfn /usr/bin/busybox "$tree/bin/sh"
	chmod 1777 "$tree/tmp" "$tree/var/tmp"
	chown 1000:1000 "$tree/home/worker"
	printf '%s\n' root:x:0:0:root:/root:/bin/sh worker:x:1000:1000::/home/worker:/bin/sh >"$tree/etc/passwd"
	printf '%s\n' root:x:0: worker:x:1000: team:x:2000:worker >"$tree/etc/group"
	AGENTDOCK_STATE_DIR=$BATS_FILE_TMPDIR/state "$build/agentdock" image import "$tree" localhost/small >/dev/null
	AGENTDOCK_STATE_DIR=$BATS_FILE_TMPDIR/state "$build/agentdock" image export localhost/small "$image"
	# for who can follow it outside as well
	chmod -R go+rX "$tree"
}

# What the holder sees in place of the host's files.
make_accounts() {
	mkdir accounts
	{ grep -v '^worker:' /etc/passwd && echo "worker:x:4321:4321::/var/lib/worker:/bin/bash"; } >accounts/passwd
	{ grep -v '^worker:' /etc/group && echo worker:x:4321:; } >accounts/group
	printf '%s\n' containers:200000:262144 worker:600000:65536 >accounts/subuid
	cp accounts/subuid accounts/subgid
}

start_holder() {
	local line _
	mkdir "$engine"
	# shellcheck disable=SC2016 # for the inner shell
	exec {line}< <(exec unshare --mount --pid --fork --kill-child --net --ipc --uts --mount-proc --propagation private \
		bash -euc '
		if mountpoint -q /sys/fs/cgroup/unified && ! mountpoint -q /sys/fs/cgroup/cgroup.procs &&
			[ -n "$(awk "\$3 == \"cgroup\"" /proc/self/mounts)" ]; then
			umount /sys/fs/cgroup/unified
		fi
		mount -t tmpfs -o mode=755 tmpfs /run
		mount -t tmpfs -o mode=755 tmpfs /var/lib
		mount -t tmpfs -o mode=711 tmpfs "$engine"
		mkdir -m 1777 /run/lock
		for dir in /var/tmp /var/cache; do
			[ -w "$dir" ] || mount -t tmpfs tmpfs "$dir"
		done
		for file in passwd group subuid subgid; do
			[ ! -e "/etc/$file" ] || mount --bind "accounts/$file" "/etc/$file"
		done
		ip link set lo up
		echo ready
		# its children, and whom they leave to it, are to leave no zombies
		exec env --ignore-signal=CHLD sleep infinity >/dev/null' 2>"$BATS_FILE_TMPDIR/holder" 3>&-)
	export holder=$!
	read -r -u "$line" _ || {
		cat "$BATS_FILE_TMPDIR/holder" >&2
		return 1
	}
	read -rd ' ' engine_pid <"/proc/$holder/task/$holder/children"
	export engine_pid
	exec {line}<&-
}

# engine_teardown_file: all of it ends. Its control groups are removed when they are empty.
engine_teardown_file() {
	if [ -z "${holder:-}" ]; then
		return
	fi
	kill -KILL "$holder" 2>/dev/null || true
	timeout 10 tail --pid="$engine_pid" -f /dev/null
	find_groups
	if [ ${#groups[@]} -gt 0 ]; then
		find "${groups[@]}" -depth -type d -exec rmdir {} +
	fi
}

# within COMMAND...: beside the engine, in the present directory
within() {
	nsenter --target "$engine_pid" --wdns="$PWD" --mount --pid --net --ipc --uts "$@"
}

# Sets $groups: the file's control group in each hierarchy where it is there.
find_groups() {
	local path type
	groups=()
	: "${group:?}"
	while read -r _ path type _; do
		case $type in cgroup | cgroup2) ;; *) continue ;; esac
		[ ! -d "$path/$group" ] || groups+=("$path/$group")
	done </proc/self/mounts
}

# by_version V1 V2: prints what is right for the control groups that the engine sees
by_version() {
	if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then echo "$2"; else echo "$1"; fi
}

# ---- what is left ----

# What there is that a container makes; that of an engine without containers is what `note_rest` writes down.
traces() {
	local groups
	find_groups
	# what podman itself leaves: its own group, and a pod's in the hierarchy that it does not know
	[ ${#groups[@]} -eq 0 ] || find "${groups[@]}" -mindepth 1 -type d ! -name conmon \
		! -regex '/sys/fs/cgroup/systemd/[^/]*/[0-9a-f]*' -printf 'control group: %p\n'
	# shellcheck disable=SC2016 # for the inner shell
	within bash -c '
		awk "{ print \"mount: \" \$5 }" /proc/self/mountinfo
		for name in "${1##*/}" crun runc; do
			[ ! -d "/run/$name" ] || find "/run/$name" -mindepth 1 -maxdepth 1 -printf "container of the runtime: %p\n"
		done
		for process in /proc/[0-9]*; do
			[ "$process" = "/proc/$$" ] || ! read -r -d "" line <"$process/cmdline" || echo "process: $line"
		done' - "$runtime" 2>/dev/null
}

note_rest() {
	traces | sort >"$BATS_FILE_TMPDIR/rest"
}

# Fails when there is more than at note_rest. An engine cleans up after who ended in its own time, which may last.
nothing_is_left() {
	local left end=$((SECONDS + 10))
	while :; do
		left=$(traces | sort | comm -13 "$BATS_FILE_TMPDIR/rest" -)
		[ -n "$left" ] || return 0
		[ $SECONDS -lt $end ] || break
		sleep 0.05
	done
	printf 'left behind:\n%s\n' "$left" >&2
	# the next test is not to blame
	note_rest
	return 1
}

# ---- what is said ----

# equal WHAT GOT WANTED
equal() {
	if [ "$2" != "$3" ]; then
		printf '%s is not as wanted:\n' "$1" >&2
		diff -u --label wanted --label got <(printf '%s\n' "$3") <(printf '%s\n' "$2") >&2 || true
		return 1
	fi
}

# has TEXT PART...: each part is in the text
has() {
	local text=$1 part
	shift
	for part; do
		if [[ $text != *"$part"* ]]; then
			printf 'wanted: %s\ngot: %s\n' "$part" "$text" >&2
			return 1
		fi
	done
}

# ends STATUS COMMAND...: it exits with just this status; what it printed is in $output and $stderr
ends() {
	local wanted=$1 status=0
	shift
	output=$("$@" 2>"$BATS_TEST_TMPDIR/stderr") || status=$?
	stderr=$(<"$BATS_TEST_TMPDIR/stderr")
	if [ "$status" != "$wanted" ]; then
		printf 'command: %s\nstatus: %s, wanted: %s\nstdout: %s\nstderr: %s\n' "$*" "$status" "$wanted" "$output" \
			"$stderr" >&2
		return 1
	fi
}

# until_so COMMAND...: waits for it to succeed, ten seconds at most
until_so() {
	local end=$((SECONDS + 10))
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			echo "this did not come true in ten seconds: $*" >&2
			return 1
		fi
		sleep 0.05
	done
}

# on_terminal ROWSxCOLUMNS [EXPECTED TEXT]... -- COMMAND...: on a terminal of that size. Types each TEXT when EXPECTED was
# read after what was expected before; the command may be a function of ours. Prints all that came back, and exits as the command does; 99 when something
# expected did not come within 20 seconds.
on_terminal() {
	local functions
	mapfile -t functions < <(compgen -A function | grep -E '^(podman|ctr|within|runs|take_options)$')
	export -f "${functions[@]?}"
	python3 - "$@" <<-'EOF'
		import fcntl, os, pty, select, struct, sys, termios, time

		cut = sys.argv.index("--")
		rows, columns = map(int, sys.argv[1].split("x"))
		steps = list(zip(sys.argv[2:cut:2], sys.argv[3:cut:2]))
		pid, master = pty.fork()
		if pid == 0:
		    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
		    os.execvp("bash", ["bash", "-c", '"$@"', "-"] + sys.argv[cut + 1:])
		seen, read, end = b"", 0, time.monotonic() + 20
		while True:
		    if steps:
		        at = seen.find(steps[0][0].encode(), read)
		        if at >= 0:
		            read = at + len(steps[0][0])
		            os.write(master, steps.pop(0)[1].encode())
		            continue
		    if not select.select([master], [], [], max(0, end - time.monotonic()))[0]:
		        print("not seen:", steps[:1], "in:", seen, file=sys.stderr)
		        os.close(master)
		        sys.exit(99)
		    try:
		        data = os.read(master, 4096)
		    except OSError:
		        data = b""
		    if not data:
		        break
		    seen += data
		sys.stdout.buffer.write(seen)
		sys.stdout.flush()
		sys.exit(99 if steps else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	EOF
}
