#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# containerd with our runtime beneath its shim, by what a user of ctr sees.
# shellcheck disable=SC2154 # what engines.bash sets
load engines

setup_file() {
	if ! engine_setup_file containerd containerd ctr containerd-shim-runc-v2 python3 busybox jq; then
		[ -n "${missing:-}" ]
		return
	fi
	cat >containerd.toml <<-EOF
		version = 2
		root = "$engine/root"
		state = "$engine/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs",
			"io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper",
			"io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
		[grpc]
		address = "$engine/socket"
	EOF
	mkdir bin
	ln -s "$runtime" bin/runc
	PATH=$PWD/bin:$PATH within containerd --config "$PWD/containerd.toml" >containerd.log 2>&1 3>&- &
	until_so ctr version
	ctr images import "$image" >/dev/null
	ctr run --rm --cgroup "/$group/first" --runc-binary "$runtime" "$reference" first true
	note_rest
}

teardown_file() {
	engine_teardown_file
}

export reference=localhost/small:latest

setup() {
	[ -z "${missing:-}" ] || skip "$missing"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	[ -z "${missing:-}" ] || return 0
	local name left
	left=$(ctr containers list --quiet)
	for name in $left; do
		ctr task delete --force "$name" >/dev/null 2>&1 || true
		ctr container delete "$name" || true
	done
	if [ -n "$left" ] && [ -n "$BATS_TEST_COMPLETED" ]; then
		echo "left behind: $left" >&2
		return 1
	fi
	nothing_is_left
}

ctr() {
	within ctr --address "$engine/socket" "$@"
}

# runs NAME [OPTION... --] COMMAND...: in the foreground, removed afterwards
runs() {
	local name=$1 options=(--rm)
	shift
	take_options "$@"
	ctr run "${options[@]}" "$reference" "$name" "${command[@]}"
}

# up NAME [OPTION... --] COMMAND...: in the background
up() {
	local name=$1 options=(--detach)
	shift
	take_options "$@"
	# what it prints goes nowhere: a FIFO without a reader would hold it
	ctr run --null-io "${options[@]}" "$reference" "$name" "${command[@]}"
}

# Sets $command, and adds to $options of runs and up.
take_options() {
	options+=(--runc-binary "$runtime" --cgroup "/$group/$name")
	command=("$@")
	[[ " $* " == *" -- "* ]] || return 0
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	command=("${@:2}")
}

down() {
	ctr task delete --force "$1" >/dev/null 2>&1 || true
	ctr container delete "$1"
}

# is NAME STATUS
is() {
	[ "$(ctr task list | awk -v name="$1" '$1 == name { print $3 }')" = "$2" ]
}

@test "run: streams, exit codes, what cannot run" {
	ends 0 runs one sh -c 'echo out; echo err >&2'
	equal stdout "$output" out
	equal stderr "$stderr" err
	ends 7 runs one sh -c 'exit 7'
	# ctr tells nobody that its own input has ended
	seq 100000 >numbers
	runs one head -n 100000 <numbers >back
	cmp numbers back
	ends 1 runs one no-such-program
	has "$stderr" no-such-program 'not found in $PATH'
	ends 1 runs one /etc/passwd
	has "$stderr" 'ermission denied'
	ends 1 runs one --mount type=bind,src=/no/such/source,dst=/mnt,options=rbind -- true
	has "$stderr" /no/such/source 'o such file or directory'
}

@test "detached: list, ps, exec, kill, delete" {
	up host sleep 1000
	is host RUNNING
	equal pids "$(ctr task ps host | awk 'NR > 1 { print $1 }')" "$(ctr task list | awk '$1 == "host" { print $2 }')"
	equal "the output" "$(ctr task exec --exec-id e host sh -c 'echo hello; readlink /proc/self/ns/pid')" \
		"$(printf 'hello\n'; ctr task exec --exec-id e host readlink /proc/1/ns/pid)"
	ends 5 ctr task exec --exec-id e host sh -c 'echo err >&2; exit 5'
	has "$stderr" err
	ends 1 ctr task exec --exec-id e host no-such-program
	has "$stderr" no-such-program 'not found in $PATH'
	equal "what it read" "$(echo typed | ctr task exec --exec-id e host head -n 1)" typed
	equal "the user" "$(ctr task exec --exec-id e --user 1000:2000 host sh -c 'id -u; id -g')" $'1000\n2000'
	equal "the directory" "$(ctr task exec --exec-id e --cwd /usr host pwd)" /usr
	ctr task exec --detach --exec-id background host sh -c 'echo done >/tmp/file; sleep 1000'
	until_so ctr task exec --exec-id e host test -s /tmp/file
	equal processes "$(ctr task ps host | tail -n +2 | wc -l)" 2
	ctr task kill --exec-id background --signal KILL host
	until_so one_process host
	ctr task kill --signal SIGKILL host
	until_so is host STOPPED
	ends 1 ctr task exec --exec-id e host true
	ends 0 ctr task delete host
	has "$stderr" 'exit code 137'
	ctr container delete host
}

one_process() {
	[ "$(ctr task ps "$1" | tail -n +2 | wc -l)" = 1 ]
}

@test "signals: one that is heard, one to all processes" {
	up hears -- sh -c 'trap "exit 9" USR1; touch /tmp/up; while :; do sleep 0.1; done'
	until_so ctr task exec --exec-id e hears test -e /tmp/up
	ctr task kill --signal SIGUSR1 hears
	until_so is hears STOPPED
	ends 0 ctr task delete hears
	has "$stderr" 'exit code 9'
	ctr container delete hears
	up all -- sh -c 'sleep 1000 & sleep 1000'
	ctr task kill --all --signal SIGKILL all
	until_so is all STOPPED
	down all
}

@test "pause and resume; a paused task can be killed and deleted" {
	up counts --mount "type=bind,src=$PWD,dst=/mnt,options=rbind:rw" -- \
		sh -c 'while :; do echo x >>/mnt/ticks; sleep 0.01; done'
	until_so test -s ticks
	ctr task pause counts
	is counts PAUSED
	local before
	before=$(stat -c %s ticks)
	ctr task list >/dev/null
	equal "what was counted while it was paused" "$(stat -c %s ticks)" "$before"
	ctr task resume counts
	is counts RUNNING
	until_so larger ticks "$before"
	ctr task pause counts
	ctr task resume counts
	down counts
}

larger() {
	[ "$(stat -c %s "$1")" -gt "$2" ]
}

@test "terminals: run and exec" {
	ends 0 on_terminal 31x97 ready $'word\r' -- runs term --tty -- \
		sh -c 'tty; until [ "$(stty size)" = "31 97" ]; do sleep 0.05; done; echo ready; read -r line; echo "got $line"'
	has "$output" /dev/ 'got word'
	ends 6 on_terminal 24x80 -- runs term --tty -- sh -c 'exit 6'
	up host sleep 1000
	ends 4 on_terminal 13x57 ready $'word\r' -- ctr task exec --tty --exec-id e host \
		sh -c 'tty; until [ "$(stty size)" = "13 57" ]; do sleep 0.05; done; echo ready; read -r line; echo "got $line"; exit 4'
	has "$output" /dev/pts/ 'got word'
	down host
}

# setting V1 V2: what the file of the group of `limited` has
setting() {
	local file
	file=$(by_version "$@")
	cat "/sys/fs/cgroup/${file/\{\}/$group/limited}"
}

@test "limits and metrics" {
	up limited --memory-limit 67108864 --cpus 0.5 -- sleep 1000
	equal "the memory limit" "$(setting memory/{}/memory.limit_in_bytes {}/memory.max)" 67108864
	has "$(setting cpu/{}/cpu.cfs_quota_us {}/cpu.max)" 50000
	ctr task metrics --format json limited >metrics.json
	[ "$(stat -c %s metrics.json)" -gt 100 ]
	has "$(ctr task metrics limited)" limited "$(by_version memory.usage_in_bytes memory.usage)" 67108864
	down limited
	ends 137 runs hungry --memory-limit 33554432 -- sh -c 'x=x; while :; do x=$x$x; done'
}

@test "events tell of an end, and of no memory" {
	# shellcheck disable=SC2016 # for the inner shell
	within bash -c 'echo $$ >pid; exec ctr --address "$engine/socket" events' >events 2>&1 3>&- &
	local events=$!
	until_so events_come
	ends 137 runs hungry --memory-limit 33554432 -- sh -c 'x=x; while :; do x=$x$x; done'
	until_so grep -q '/tasks/exit.*"hungry"' events
	until_so grep -q '/tasks/oom.*"hungry"' events
	within kill "$(<pid)"
	wait "$events" || true
}

events_come() {
	ctr namespaces label default tick=$RANDOM && [ -s events ]
}

@test "the file system: read-only, mounts, owner" {
	ends 1 runs fixed --read-only -- touch /file
	has "$stderr" 'Read-only file system'
	mkdir shared
	echo given >shared/file
	equal "the file" "$(runs reads --mount "type=bind,src=$PWD/shared,dst=/mnt,options=rbind:ro" -- \
		sh -c 'cat /mnt/file; touch /mnt/new 2>/dev/null || echo refused')" $'given\nrefused'
	runs writes --mount "type=bind,src=$PWD/shared,dst=/mnt,options=rbind:rw" -- touch /mnt/new
	[ -e shared/new ]
	runs memory --mount type=tmpfs,src=tmpfs,dst=/scratch,options=size=1m:mode=1770 -- sh -c '[ "$(stat -c %a /scratch)" = 1770 ]'
}

@test "the process: environment, directory, user, names" {
	# shellcheck disable=SC2016
	equal "all of it" "$(runs told --env A=b --cwd /usr -- sh -c 'echo $A; pwd')" $'b\n/usr'
	# ctr forgets which runtime it was told
	equal "a user namespace" "$(runs mapped --uidmap 0:100000:5000 --gidmap 0:100000:5000 -- cat /proc/self/uid_map | xargs)" \
		'0 100000 5000'
	equal "the network" "$(runs hosts --net-host -- readlink /proc/self/ns/net)" "$(within readlink /proc/self/ns/net)"
	[ "$(runs own readlink /proc/self/ns/net)" != "$(within readlink /proc/self/ns/net)" ]
	up first sleep 1000
	local pid
	pid=$(ctr task list | awk '$1 == "first" { print $2 }')
	equal "the network of another" "$(runs second --with-ns "network:/proc/$pid/ns/net" -- readlink /proc/self/ns/net)" \
		"$(ctr task exec --exec-id e first readlink /proc/self/ns/net)"
	down first
}

@test "walls: capabilities, seccomp, no new privileges, devices" {
	equal "no new privileges" "$(runs walls awk '/^NoNewPrivs:/ { print $2 }' /proc/self/status)" 1
	equal "or with" "$(runs walls --allow-new-privs -- awk '/^NoNewPrivs:/ { print $2 }' /proc/self/status)" 0
	equal "the default filter" "$(runs walls --seccomp -- awk '/^Seccomp:/ { print $2 }' /proc/self/status)" 2
	equal "no filter" "$(runs walls awk '/^Seccomp:/ { print $2 }' /proc/self/status)" 0
	printf '%s\n' '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"],
		"action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}' >profile.json
	ends 1 runs walls --seccomp --seccomp-profile "$PWD/profile.json" -- mkdir /tmp/x
	has "$stderr" 'No space left on device'
	ends 1 runs walls --cap-drop CAP_CHOWN -- chown 1 /tmp
	runs walls chown 1 /tmp
	runs walls --cap-add CAP_NET_ADMIN -- ip link set lo down
	ends 2 runs walls ip link set lo down
	ends 1 runs walls sh -c 'mknod /tmp/disk b 240 77; head -c 1 /tmp/disk'
	has "$stderr" 'Operation not permitted'
	mknod device c 240 77
	runs walls --device "$PWD/device" -- test -c "$PWD/device"
	runs walls --privileged -- sh -c 'mount -t tmpfs tmpfs /tmp && test -w /proc/sys/kernel/domainname'
}

@test "a container whose task is over gets another" {
	up again sleep 1000
	ctr task kill --signal KILL again
	until_so is again STOPPED
	ctr task delete again
	ctr task start --null-io --detach again
	is again RUNNING
	down again
}
