#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# podman with our runtime, by what its user sees.
# shellcheck disable=SC2154 # what engines.bash sets
load engines

setup_file() {
	if ! engine_setup_file podman podman conmon catatonit python3 busybox jq; then
		[ -n "${missing:-}" ]
		return
	fi
	make_networks
	podman load --quiet --input "$image" >/dev/null
	# what stays of the first container: mounts of the storage, a bridge
	podman run --rm small true
	note_rest
}

# podman's networks as podman has them, but for masquerading and the firewall, which not every kernel has: nobody is
# reached beyond the host.
make_networks() {
	local number=88 name
	mkdir "$BATS_FILE_TMPDIR/networks"
	for name in podman podman-default-kube-network; do
		jq -n --arg name "$name" --arg number "$number" '{cniVersion: "0.4.0", name: $name, plugins: [
			{type: "bridge", bridge: "cni-test\($number)", isGateway: true, hairpinMode: true,
				ipam: {type: "host-local", ranges: [[{subnet: "10.\($number).0.0/16"}]]}}]}' \
			>"$BATS_FILE_TMPDIR/networks/$name.conflist"
		number=$((number + 1))
	done
}

teardown_file() {
	engine_teardown_file
}

setup() {
	[ -z "${missing:-}" ] || skip "$missing"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	[ -z "${missing:-}" ] || return 0
	local left
	left=$(podman ps --all --format 'container: {{.Names}} {{.Status}}' && podman pod ps --format 'pod: {{.Name}}')
	[ -z "$left" ] || podman rm --all --force --time 0 >/dev/null || podman pod rm --all --force >/dev/null || true
	podman volume prune --force >/dev/null
	[ -z "$left" ] || [ -z "$BATS_TEST_COMPLETED" ] || {
		echo "left behind: $left" >&2
		return 1
	}
	nothing_is_left
}

# podman WORD...: containers and pods belong to the file's control group
podman() {
	local words=("$@") parent=(--cgroup-parent "/$group")
	case "$1 $2" in
	"run "* | "create "*) words=("$1" "${parent[@]}" --pull never "${@:2}") ;;
	"pod create") words=("$1" "$2" "${parent[@]}" "${@:3}") ;;
	esac
	within podman --runtime "$runtime" --cgroup-manager cgroupfs --events-backend file \
		--log-level error --root "$engine/root" --runroot "$engine/run" --tmpdir "$engine/tmp" \
		--network-config-dir "$BATS_FILE_TMPDIR/networks" "${words[@]}"
}

# up NAME [OPTION...]: a container that stays until it is told to end
up() {
	podman run --detach --name "$1" --stop-signal KILL "${@:2}" small sleep 1000 >/dev/null
}

# podman before 4.4 sometimes removes a container's files while its own clean-up still has one of them mounted
# (containers/podman issues 11594, 17216)
down() {
	podman rm --force --time 0 "$@" >/dev/null 2>"$BATS_TEST_TMPDIR/down" && return
	grep -q 'device or resource busy' "$BATS_TEST_TMPDIR/down" || { cat "$BATS_TEST_TMPDIR/down" && return 1; }
	podman rm --force --time 0 "$@" >/dev/null
}

# inspects NAME FORMAT WANTED
inspects() {
	equal "$2 of $1" "$(podman inspect --format "$2" "$1")" "$3"
}

# ---- how it ends ----

@test "run exits as the program does, 127 and 126 for what cannot run, 125 for our own failures" {
	ends 0 podman run --rm small true
	ends 7 podman run --rm small sh -c 'exit 7'
	ends 127 podman run --rm small no-such-program
	has "$stderr" no-such-program 'not found'
	ends 127 podman run --rm small /no/such/file
	ends 126 podman run --rm small /etc/passwd
	has "$stderr" 'ermission denied'
	ends 126 podman run --rm small /etc
	ends 125 podman run --rm --mount type=bind,source=/no/such/source,target=/x small true
}

@test "standard streams arrive whole and apart" {
	ends 3 podman run --rm small sh -c 'echo out; echo err >&2; exit 3'
	equal stdout "$output" out
	equal stderr "$stderr" err
	seq 100000 >numbers
	podman run --rm --interactive small cat <numbers >back
	cmp numbers back
}

@test "a container stays, with its log and its exit code, and starts again" {
	ends 4 podman run --name stays small sh -c 'echo again; exit 4'
	inspects stays '{{.State.Status}} {{.State.ExitCode}}' 'exited 4'
	equal "the log" "$(podman logs stays)" again
	ends 4 podman start --attach stays
	equal "the log" "$(podman logs stays)" $'again\nagain'
	podman rm stays
}

@test "a detached container: ps, wait, stop, kill, restart" {
	up one
	equal ps "$(podman ps --format json | jq -r '.[] | "\(.Names[0]) \(.State)"')" "one running"
	podman kill --signal TERM one # which a pid 1 without a handler does not hear
	inspects one '{{.State.Running}}' true
	local first
	first=$(podman inspect --format '{{.State.Pid}}' one)
	podman restart --time 0 one
	[ "$(podman inspect --format '{{.State.Pid}}' one)" != "$first" ]
	podman kill one
	equal "the exit code" "$(podman wait one)" 137
	podman rm one
}

@test "stop lets a program end by itself, and kills it after its time" {
	podman run --detach --name polite small sh -c 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.1; done'
	until_so log_has polite up
	podman stop polite
	inspects polite '{{.State.ExitCode}}' 7
	has "$(podman logs polite)" bye
	podman run --detach --name stubborn small sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'
	until_so log_has stubborn up
	podman stop --time 1 stubborn
	inspects stubborn '{{.State.ExitCode}}' 137
	podman rm polite stubborn
}

log_has() {
	podman logs "$1" | grep -q "$2"
}

@test "kill sends any signal" {
	podman run --detach --name hears small sh -c 'trap "echo usr1" USR1; trap "exit 9" HUP; echo up
		while :; do sleep 0.1; done'
	until_so log_has hears up
	podman kill --signal USR1 hears
	until_so log_has hears usr1
	podman kill --signal 1 hears
	equal "the exit code" "$(podman wait hears)" 9
	podman rm hears
}

@test "--rm of a detached container, --timeout, and create before start" {
	podman run --detach --rm --name brief small true
	podman wait --ignore brief 2>/dev/null || true
	until_so lacks brief
	podman run --detach --timeout 1 --name late small sleep 1000
	podman wait late
	inspects late '{{.State.Status}}' exited
	podman create --name made small echo hello
	podman init made
	inspects made '{{.State.Status}}' initialized
	equal "the output" "$(podman start --attach made)" hello
	podman create --name never small true
	podman init never
	podman rm --force never late made
}

lacks() {
	! podman container exists "$1"
}

@test "a container is restarted when it fails" {
	podman run --name again --restart on-failure:2 --volume "$PWD:/mnt" small sh -c 'echo x >>/mnt/runs; exit 1' || true
	until_so lines 3 runs
	podman rm --force again
}

lines() {
	[ "$(wc -l <"$2")" = "$1" ]
}

@test "pause holds every process, unpause lets them go on; a paused container can be killed and removed" {
	podman run --detach --name counts --volume "$PWD:/mnt" small sh -c 'while :; do echo x >>/mnt/ticks; sleep 0.01; done'
	until_so test -s ticks
	podman pause counts
	inspects counts '{{.State.Status}}' paused
	local before
	before=$(stat -c %s ticks)
	ends 255 podman exec counts true
	equal "what was counted while it was paused" "$(stat -c %s ticks)" "$before"
	podman unpause counts
	until_so larger ticks "$before"
	podman pause counts
	down counts
}

larger() {
	[ "$(stat -c %s "$1")" -gt "$2" ]
}

# ---- exec ----

@test "exec: exit codes, streams, and what it refuses" {
	up host
	ends 0 podman exec host true
	ends 5 podman exec host sh -c 'echo out; echo err >&2; exit 5'
	equal stdout "$output" out
	has "$stderr" err
	ends 127 podman exec host no-such-program
	ends 126 podman exec host /etc/passwd
	equal "what it read" "$(echo typed | podman exec --interactive host cat)" typed
	podman exec --detach host sh -c 'echo done >/tmp/detached'
	until_so podman exec host test -s /tmp/detached
	podman stop --time 0 host
	ends 255 podman exec host true
	podman rm host
}

@test "exec: user, directory, environment, privileges" {
	up host --env FIRST=1 --workdir /tmp
	equal id "$(podman exec --user worker host id)" \
		"uid=1000(worker) gid=1000(worker) groups=2000(team)"
	equal id "$(podman exec --user 7:8 host sh -c 'id -u; id -g')" $'7\n8'
	ends 255 podman exec --user nobody-here host true
	equal "the directory" "$(podman exec host pwd)" /tmp
	equal "the directory" "$(podman exec --workdir /usr/bin host pwd)" /usr/bin
	# shellcheck disable=SC2016
	equal "the environment" "$(podman exec --env SECOND=2 host sh -c 'echo $FIRST $SECOND')" "1 2"
	equal "capabilities" "$(podman exec --user worker host grep CapEff /proc/self/status)" $'CapEff:\t0000000000000000'
	equal "capabilities" "$(podman exec host grep CapEff /proc/self/status)" \
		"$(podman exec host grep CapEff /proc/1/status)"
	[ "$(capabilities podman exec --privileged host)" -gt 25 ]
	has "$(podman exec host cat /proc/self/cgroup)" "$(podman exec host cat /proc/1/cgroup)"
	equal "processes" "$(podman exec host sh -c 'readlink /proc/self/ns/net /proc/self/ns/mnt /proc/self/ns/uts')" \
		"$(podman exec host readlink /proc/1/ns/net /proc/1/ns/mnt /proc/1/ns/uts)"
	down host
}

# capabilities COMMAND...: how many are effective in what COMMAND starts
capabilities() {
	local set count=0
	set=$((0x$("$@" awk '$1 == "CapEff:" { print $2 }' /proc/self/status)))
	for ((; set; set >>= 1)); do count=$((count + (set & 1))); done
	echo $count
}

# ---- terminals ----

@test "run and exec on a terminal: its size, what is typed, the exit code" {
	ends 6 on_terminal 31x97 'ready' $'word\r' -- podman run --rm -it small \
		sh -c 'tty; stty size; echo ready; read -r line; echo "got $line"; exit 6'
	has "$output" /dev/ '31 97' 'got word'
	up host
	# podman tells the size when the program runs already
	ends 4 on_terminal 13x57 'ready' $'word\r' -- podman exec -it host \
		sh -c 'tty; until [ "$(stty size)" = "13 57" ]; do sleep 0.05; done; echo ready; read -r line; echo "got $line"; exit 4'
	has "$output" /dev/pts/ 'got word'
	ends 130 on_terminal 24x80 'ready' $'\x03' -- podman exec -it host sh -c 'trap "exit 130" INT; echo ready; cat'
	equal "the owner of a user's terminal" "$(podman exec -t --user worker host sh -c 'stat -c %u $(tty); echo x >$(tty)')" \
		$'1000\r\nx\r'
	down host
}

@test "a terminal has a size before the program starts" {
	up host
	[[ $(on_terminal 24x80 -- podman exec -it host stty size) =~ ^[1-9][0-9]*\ [1-9] ]]
	down host
}

@test "attach to what runs, and detach from it" {
	podman run --detach --interactive --tty --name reads small sh -c 'while read -r line; do echo "got $line"; done; exit 8' \
		>/dev/null
	ends 0 on_terminal 24x80 '' $'one\r' 'got one' $'\x18' -- podman attach --detach-keys ctrl-x reads
	inspects reads '{{.State.Running}}' true
	on_terminal 24x80 '' $'two\r' 'got two' $'\x04' -- podman attach reads
	equal "the exit code" "$(podman wait reads)" 8
	has "$(podman logs reads)" 'got one' 'got two'
	podman rm reads
}

# ---- what is around it ----

@test "volumes: bind mounts to write and to read, named ones, tmpfs, those of another container" {
	mkdir shared
	echo given >shared/file
	equal "the file" "$(podman run --rm --volume "$PWD/shared:/mnt" small sh -c 'cat /mnt/file; echo made >/mnt/new')" given
	equal "the file outside" "$(<shared/new)" made
	ends 1 podman run --rm --volume "$PWD/shared:/mnt:ro" small sh -c 'echo no >/mnt/other'
	has "$stderr" 'Read-only file system'
	ends 126 podman run --rm --volume "$PWD/shared:/mnt:noexec" --volume "$PWD/shared:/x" small \
		sh -c 'cp /bin/busybox /x/true; exec /mnt/true'
	podman volume create kept
	podman run --rm --volume kept:/data small sh -c 'echo first >/data/file'
	equal "the volume" "$(podman run --rm --volume kept:/data:ro small cat /data/file)" first
	podman run --rm --tmpfs /scratch:size=1m,mode=1770 small sh -c '[ "$(stat -c %a /scratch)" = 1770 ] &&
		! dd if=/dev/zero of=/scratch/x bs=1M count=2 2>/dev/null && [ "$(stat -c %s /scratch/x)" = 1048576 ]'
	up from --volume kept:/data
	equal "the volume" "$(podman run --rm --volumes-from from small cat /data/file)" first
	down from
	# a file on a file
	equal "the file" "$(podman run --rm --volume "$PWD/shared/file:/etc/passwd:ro" small cat /etc/passwd)" given
	podman run --rm --mount type=bind,source="$PWD/shared",target=/a/b/c,readonly small test -e /a/b/c/file
	equal "the owner" "$(podman run --rm --volume "$PWD/shared:/mnt:U" --user 1000 small stat -c %u /mnt/file)" 1000
}

@test "mounts reach into a container as the volume says, and not else" {
	mkdir slave private
	within mount --bind slave slave
	within mount --make-shared slave
	up sees --volume "$PWD/slave:/slave:rslave" --volume "$PWD/private:/private"
	mkdir slave/new private/new
	within mount -t tmpfs -o size=12k tmpfs slave/new
	within mount -t tmpfs -o size=12k tmpfs private/new
	has "$(podman exec sees cat /proc/self/mounts)" ' /slave/new tmpfs '
	[[ $(podman exec sees cat /proc/self/mounts) != *' /private/new '* ]]
	podman exec sees sh -c '! umount /slave/new 2>/dev/null'
	down sees
	within umount slave/new private/new slave
}

@test "a read-only root, and what is to be written beneath it" {
	ends 1 podman run --rm --read-only small touch /file
	has "$stderr" 'Read-only file system'
	podman run --rm --read-only small touch /tmp/file /run/file /var/tmp/file /dev/shm/file
	ends 1 podman run --rm --read-only --read-only-tmpfs=false small touch /tmp/file
	podman run --rm --read-only --volume "$PWD:/mnt" small touch /mnt/file
	[ -e file ]
}

@test "names, hosts, environment, entry point, user, umask, groups" {
	equal names "$(podman run --rm --hostname here --add-host there:10.1.2.3 small sh -c 'hostname; uname -n
		grep there /etc/hosts')" $'here\nhere\n10.1.2.3\tthere'
	# shellcheck disable=SC2016
	equal environment "$(podman run --rm --env A='b c' --env-host=false --entrypoint '["sh","-c"]' small \
		'echo "$A|$HOME|$container"')" 'b c|/root|podman'
	equal user "$(podman run --rm --user worker --group-add 3000 --umask 0027 --workdir /var/tmp small \
		sh -c 'id -u; id -g; id -G; umask; pwd; echo $HOME')" $'1000\n1000\n1000 2000 3000\n0027\n/var/tmp\n/home/worker'
	equal "oom score" "$(podman run --rm --oom-score-adj 321 small cat /proc/self/oom_score_adj)" 321
}

@test "namespaces of the host, of another container, and of its own" {
	up first --hostname shared-name
	local own=(net ipc uts pid mnt) kind
	for kind in net ipc uts pid; do
		equal "$kind of another" "$(podman run --rm "--$kind=container:first" small readlink /proc/self/ns/$kind)" \
			"$(podman exec first readlink /proc/self/ns/$kind)"
		equal "$kind of the host" "$(podman run --rm "--$kind=host" small readlink /proc/self/ns/$kind)" \
			"$(within readlink /proc/self/ns/$kind)"
	done
	equal "the name" "$(podman run --rm --uts container:first small hostname)" shared-name
	has "$(podman run --rm --pid container:first small ps)" 'sleep 1000'
	for kind in "${own[@]}" cgroup; do
		[ "$(podman run --rm --network none --cgroupns private small readlink "/proc/self/ns/$kind")" != \
			"$(within readlink "/proc/self/ns/$kind")" ]
	done
	equal "cgroup of the host" "$(podman run --rm --cgroupns host small readlink /proc/self/ns/cgroup)" \
		"$(within readlink /proc/self/ns/cgroup)"
	has "$(podman run --rm --cgroupns host small cat /proc/self/cgroup)" ":/$group/libpod-"
	has "$(podman run --rm --cgroupns private small cat /proc/self/cgroup)" ':/'
	[[ $(podman run --rm --cgroupns private small cat /proc/self/cgroup) != *":/$group"* ]]
	down first
}

@test "the default network: an address, the neighbour, the host" {
	podman run --detach --name serves small sh -c 'while :; do echo hello | nc -l -p 80; done'
	local address
	address=$(podman inspect --format '{{.NetworkSettings.IPAddress}}' serves)
	[[ $address == 10.88.* ]]
	until_so podman exec serves sh -c 'netstat -ltn | grep -q :80'
	equal "what a neighbour hears" "$(podman run --rm small nc "$address" 80 </dev/null)" hello
	equal "what the host hears" "$(within nc "$address" 80 </dev/null 2>/dev/null || within busybox nc "$address" 80 \
		</dev/null)" hello
	equal "interfaces" "$(podman run --rm --network none small ls /sys/class/net)" lo
	down serves
}

@test "descriptors: those that are preserved, and no others" {
	echo kept >file
	equal "what is read from 3" "$(podman run --rm --preserve-fds 1 small cat /dev/fd/3 3<file)" kept
	equal descriptors "$(podman run --rm small sh -c 'echo /proc/self/fd/*' 4<file)" \
		'/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3'
}

@test "secrets, as a file and in the environment" {
	printf hidden >secret
	podman secret create word secret >/dev/null
	# shellcheck disable=SC2016
	equal "the secret" "$(podman run --rm --secret word --secret word,type=env,target=WORD small \
		sh -c 'cat /run/secrets/word; echo " $WORD"')" 'hidden hidden'
	podman secret rm word >/dev/null
}

@test "--init reaps, and hands signals on" {
	podman run --rm --init small sh -c '(true &); sleep 0.1; ! ps | grep "\[true\]"'
	podman run --detach --name init --init small sleep 1000
	podman stop --time 10 init
	inspects init '{{.State.ExitCode}}' 143
	podman rm init
}

@test "top, stats, events, inspect: what is told of a container" {
	up told --memory 64m
	equal top "$(podman top told args | tail -n +2 | xargs)" 'sleep 1000'
	equal top "$(podman top told huser user | tail -n +2 | xargs)" 'root root'
	podman stats --no-stream --format json told | jq -e '.[0] | .name == "told" and .pids == "1" and
		(.mem_usage | endswith("/ 67.11MB"))' >/dev/null
	inspects told '{{.OCIRuntime}} {{.State.OciVersion}}' "$runtime 1.0.2-dev"
	kill -0 "$(outer_pid "$(podman inspect --format '{{.State.Pid}}' told)")"
	podman kill told
	podman wait told
	has "$(podman events --stream=false --filter container=told)" 'container init' 'container start' 'container died'
	podman rm told
}

# outer_pid PID: as this host sees the process that the engine calls so
outer_pid() {
	awk -v pid="$1" '$1 == "NSpid:" && NF > 2 && $3 == pid { print $2 }' /proc/[0-9]*/status 2>/dev/null
}

@test "health checks" {
	up checked --health-cmd 'test -e /tmp/ok' --health-interval disable --health-retries 1
	ends 1 podman healthcheck run checked
	podman exec checked touch /tmp/ok
	ends 0 podman healthcheck run checked
	inspects checked '{{.State.Health.Status}}' healthy
	down checked
}

# ---- limits ----

# setting V1 V2: the file of the container's own group, from inside
setting() {
	echo "/sys/fs/cgroup/$(by_version "$@")"
}

@test "limits are set" {
	local all=(memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us cpu/cpu.shares pids/pids.max cpuset/cpuset.cpus)
	[ "$(by_version 1 2)" = 1 ] || all=(memory.max cpu.max cpu.weight pids.max cpuset.cpus)
	local options=(--memory 96m --cpus 0.5 --cpu-shares 512 --pids-limit 77) wanted
	wanted=$(by_version $'100663296\n50000\n512\n77' $'100663296\n50000 100000\n20\n77')
	# a kernel without this controller cannot
	if [ "$(by_version 1 2)" = 1 ] || grep -qw cpuset /sys/fs/cgroup/cgroup.controllers; then
		options+=(--cpuset-cpus 0) wanted+=$'\n0'
	else
		unset 'all[4]'
	fi
	equal limits "$(podman run --rm "${options[@]}" small cat "${all[@]/#//sys/fs/cgroup/}")" "$wanted"
}

@test "limits are changed while the container runs" {
	up grows --memory 64m --cpus 1
	podman update --memory 128m --cpus 0.25 grows
	equal "the limit" "$(podman exec grows cat "$(setting memory/memory.limit_in_bytes memory.max)")" 134217728
	has "$(podman exec grows cat "$(setting cpu/cpu.cfs_quota_us cpu.max)")" 25000
	down grows
}

@test "limits hold: memory, processes, files" {
	podman run --name hungry --memory 32m --memory-swap 32m small sh -c 'x=x; while :; do x=$x$x; done' || true
	# conmon does not see it on the first version
	inspects hungry '{{.State.OOMKilled}} {{.State.ExitCode}}' "$(by_version false true) 137"
	ends 2 podman run --rm --pids-limit 5 small sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 5 & done'
	has "$stderr" "can't fork"
	equal "limits" "$(podman run --rm --ulimit nofile=123:456 --ulimit core=0 --ulimit nproc=99 small \
		sh -c 'ulimit -n; ulimit -Hn; ulimit -c; grep processes /proc/self/limits' | xargs)" '123 456 0 Max processes 99 99 processes'
	podman rm hungry
}

@test "memory of /dev/shm" {
	equal "its size" "$(podman run --rm --shm-size 3m small df -k /dev/shm | awk 'NR == 2 { print $2 }')" 3072
}

# ---- walls ----

@test "capabilities: the default, fewer, more, all" {
	[ "$(capabilities podman run --rm small)" = 11 ]
	equal "none" "$(podman run --rm --cap-drop all small grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status | cut -f 2 | uniq)" \
		0000000000000000
	equal "two" "$(podman run --rm --cap-drop all --cap-add net_admin,sys_time small \
		awk '$1 == "CapEff:" { print $2 }' /proc/self/status)" 0000000002001000
	equal "a user has none" "$(podman run --rm --user 1000 small awk '$1 == "CapEff:" { print $2 }' /proc/self/status)" \
		0000000000000000
	equal "a user has what was asked for" "$(podman run --rm --user 1000 --cap-add net_admin small \
		awk '$1 == "CapEff:" { print $2 }' /proc/self/status)" 0000000000001000
	ends 2 podman run --rm small ip link add dummy0 type dummy
	podman run --rm --cap-add net_admin small ip link set lo down
}

@test "privileged: what the host has" {
	[ "$(capabilities podman run --rm --privileged small)" -gt 30 ]
	podman run --rm --privileged small sh -c 'mount -t tmpfs tmpfs /mnt 2>/dev/null || mount -t tmpfs tmpfs /tmp
		[ "$(awk "\$1 == \"Seccomp:\" { print \$2 }" /proc/self/status)" = 0 ]
		test -w /proc/sys/kernel/domainname && test -c /dev/zero'
}

@test "seccomp: the default profile, one of the user's, none" {
	equal default "$(podman run --rm small awk '/^Seccomp:|^NoNewPrivs:/ { print $2 }' /proc/self/status)" $'0\n2'
	cat >profile.json <<-'EOF'
		{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
			{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28},
			{"names": ["uname"], "action": "SCMP_ACT_KILL_PROCESS"}]}
	EOF
	ends 1 podman run --rm --security-opt "seccomp=$PWD/profile.json" small mkdir /tmp/x
	has "$stderr" 'No space left on device'
	ends 159 podman run --rm --security-opt "seccomp=$PWD/profile.json" small uname
	up filtered --security-opt "seccomp=$PWD/profile.json"
	ends 1 podman exec filtered mkdir /tmp/x
	down filtered
	equal none "$(podman run --rm --security-opt seccomp=unconfined small awk '/^Seccomp:/ { print $2 }' /proc/self/status)" 0
}

@test "no new privileges; paths that are masked, and those that are not" {
	equal "the flag" "$(podman run --rm --security-opt no-new-privileges small \
		awk '/^NoNewPrivs:/ { print $2 }' /proc/self/status)" 1
	equal "a masked file" "$(podman run --rm small sh -c 'wc -c </proc/kcore; ls /proc/acpi /sys/firmware 2>/dev/null | wc -w')" \
		"$(podman run --rm --security-opt mask=/proc/kcore small sh -c 'wc -c </proc/kcore; ls /proc/acpi /sys/firmware | wc -w')"
	equal "what is masked" "$(podman run --rm --security-opt mask=/bin:/etc/passwd small /usr/bin/busybox \
		sh -c 'cd /; busybox ls bin; busybox wc -c </etc/passwd')" 0
	ends 1 podman run --rm small sh -c 'echo 1 >/proc/sys/kernel/domainname'
	podman run --rm --security-opt unmask=ALL small grep ' /proc' /proc/self/mounts >mounts
	equal "mounts on /proc" "$(wc -l <mounts)" 1
}

@test "sysctls of the container, none of the host" {
	equal "the settings" "$(podman run --rm --sysctl net.ipv4.ip_unprivileged_port_start=77 --sysctl kernel.msgmax=4242 small \
		cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/msgmax)" $'77\n4242'
	ends 125 podman run --rm --net host --sysctl net.ipv4.ip_forward=1 small true
	ends 126 podman run --rm --ipc host --sysctl kernel.msgmax=1 small true
}

@test "devices: those that are there, one that is given, none that is made" {
	podman run --rm small sh -c 'for d in null zero full random urandom tty; do test -c /dev/$d || exit; done
		head -c 4 /dev/zero >/dev/null; ! echo x 2>/dev/null >/dev/full'
	podman run --rm --device /dev/null:/dev/given:rw --device /dev/zero:/dev/nothing:r small \
		sh -c 'echo x >/dev/given && head -c 1 /dev/nothing >/dev/null'
	# numbers that no driver has: who may open them hears of that
	ends 1 podman run --rm --cap-add mknod small sh -c 'mknod /tmp/disk b 240 77; head -c 1 /tmp/disk'
	has "$stderr" 'Operation not permitted'
	ends 1 podman run --rm --cap-add mknod small sh -c 'mknod /tmp/device c 240 77; head -c 1 /tmp/device'
	has "$stderr" 'Operation not permitted'
	ends 1 podman run --rm --cap-add mknod --device-cgroup-rule 'c 240:77 mr' small \
		sh -c 'mknod /tmp/device c 240 77; head -c 1 /tmp/device'
	has "$stderr" 'No such device or address'
	equal "the host's null" "$(stat -c '%a %u %g' /dev/null)" '666 0 0'
}

# ---- user namespaces ----

@test "user namespaces: ids of one's own, automatic ones" {
	mkdir -m 777 shared
	equal "the map" "$(podman run --rm --uidmap 0:100000:5000 --gidmap 0:100000:5000 --volume "$PWD/shared:/mnt" small \
		sh -c 'id -u; touch /mnt/file; cat /proc/self/uid_map' | xargs)" '0 0 100000 5000'
	equal "the owner outside" "$(stat -c '%u:%g' shared/file)" 100000:100000
	up mapped --uidmap 0:100000:5000
	equal "exec" "$(podman exec --user worker mapped id -u)" 1000
	equal "the owner of a process outside" "$(podman top mapped huser | tail -n 1)" 100000
	equal "the owner of the root" "$(podman exec mapped stat -c %u /)" 0
	down mapped
	equal "the map" "$(podman run --rm --userns auto:size=2000 small cat /proc/self/uid_map | xargs)" '0 200000 2000'
	equal "the map" "$(podman run --rm --userns host small cat /proc/self/uid_map | xargs)" \
		"$(within cat /proc/self/uid_map | xargs)"
	up first --userns auto
	equal "the user namespace of another" "$(podman run --rm --userns container:first small readlink /proc/self/ns/user)" \
		"$(podman exec first readlink /proc/self/ns/user)"
	down first
}

# ---- pods ----

@test "a pod: what its containers share, and what they do not" {
	podman pod create --name pod --hostname together >/dev/null
	podman run --detach --pod pod --name serves small sh -c 'while :; do echo hello | nc -l -p 80; done'
	podman run --detach --pod pod --name beside small sleep 1000
	equal "the name" "$(podman exec beside hostname)" together
	until_so podman exec serves sh -c 'netstat -ltn | grep -q :80'
	equal "what is heard" "$(podman exec beside nc 127.0.0.1 80 </dev/null)" hello
	local kind
	for kind in net ipc uts; do
		equal "$kind" "$(podman exec beside readlink /proc/self/ns/$kind)" "$(podman exec serves readlink /proc/self/ns/$kind)"
	done
	for kind in pid mnt; do
		[ "$(podman exec beside readlink /proc/self/ns/$kind)" != "$(podman exec serves readlink /proc/self/ns/$kind)" ]
	done
	podman pod pause pod
	equal paused "$(podman pod ps --format '{{.Status}}')" Paused
	podman pod unpause pod
	podman pod stop --time 0 pod
	equal stopped "$(podman pod ps --format '{{.Status}}')" Exited
	podman pod start pod
	equal "the name" "$(podman exec beside hostname)" together
	podman pod rm --force --time 0 pod
}

@test "a pod with one pid namespace" {
	podman pod create --name pod --share pid,net >/dev/null
	podman run --detach --pod pod small sleep 1234
	has "$(podman run --rm --pod pod small ps)" 'sleep 1234' catatonit
	podman pod rm --force --time 0 pod
}

@test "play kube" {
	cat >pod.yaml <<-'EOF'
		apiVersion: v1
		kind: Pod
		metadata: {name: play}
		spec:
		  restartPolicy: Never
		  containers:
		  - name: says
		    image: localhost/small:latest
		    imagePullPolicy: Never
		    command: [/bin/sh, -c, "echo $WORD; read x </data/x; echo $x; exit 3"]
		    env: [{name: WORD, value: said}]
		    securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true, capabilities: {drop: [all]}}
		    volumeMounts: [{name: data, mountPath: /data}]
		  volumes:
		  - name: data
		    hostPath: {path: HERE, type: Directory}
	EOF
	sed -i "s|HERE|$PWD|" pod.yaml
	echo kept >x
	podman play kube pod.yaml
	equal "the exit code" "$(podman wait play-says)" 3
	equal "the log" "$(podman logs play-says)" $'said\nkept'
	podman play kube --down pod.yaml
}

# ---- images ----

@test "diff, commit, cp, export, build" {
	podman run --name changes small sh -c 'echo new >/root/file; rm /etc/group'
	has "$(podman diff changes)" 'A /root/file' 'D /etc/group'
	podman cp changes:/root/file out
	equal "the file" "$(<out)" new
	podman commit --quiet changes changed >/dev/null
	equal "the file" "$(podman run --rm changed sh -c 'cat /root/file; test -e /etc/group || echo gone')" $'new\ngone'
	podman rm changes
	printf '%s\n' 'FROM localhost/small' 'RUN echo built >/built && id -u >>/built' 'USER worker' 'WORKDIR /home/worker' \
		'CMD ["sh", "-c", "cat /built; pwd; id -u"]' >Containerfile
	podman build --quiet --network none --tag built . >/dev/null
	equal "the image" "$(podman run --rm built)" $'built\n0\n/home/worker\n1000'
	podman rmi --force built changed >/dev/null
}

@test "cp and commit of a container that runs" {
	up works
	echo in >in
	podman cp in works:/root/in
	equal "the file" "$(podman exec works cat /root/in)" in
	podman commit --quiet works changed >/dev/null
	podman exec works true
	podman rmi changed >/dev/null
	down works
}

@test "a root directory without an image" {
	cp -a "$BATS_FILE_TMPDIR/small" tree
	equal "the output" "$(podman run --rm --rootfs "$PWD/tree" sh -c 'echo here; touch /made')" here
	[ -e tree/made ]
}

# ---- hooks ----

@test "hooks of the runtime-spec" {
	mkdir hooks
	local stage
	for stage in prestart createRuntime createContainer poststart poststop; do
		printf '%s\n' '#!/bin/bash' "jq -r '\"$stage \\(.status)\"' >>$PWD/ran" >"$stage"
		chmod +x "$stage"
		printf '{"version": "1.0.0", "hook": {"path": "%s"}, "when": {"always": true}, "stages": ["%s"]}\n' \
			"$PWD/$stage" "$stage" >"hooks/$stage.json"
	done
	# of the container: what it executes is inside
	printf '{"version": "1.0.0", "hook": {"path": "/bin/touch", "args": ["touch", "/tmp/startContainer"]},
		"when": {"always": true}, "stages": ["startContainer"]}' >hooks/startContainer.json
	within podman --runtime "$runtime" --cgroup-manager cgroupfs --events-backend file --root "$engine/root" \
		--runroot "$engine/run" --tmpdir "$engine/tmp" --hooks-dir "$PWD/hooks" run --cgroup-parent "/$group" --rm \
		small test -e /tmp/startContainer
	until_so grep -q poststop ran
	equal "what ran" "$(sort ran | cut -d ' ' -f 1 | xargs)" 'createContainer createRuntime poststart poststop prestart'
	has "$(<ran)" 'poststop stopped'
}

# ---- without root ----

# rootless WORD...: podman of the user `worker`, who may use no control group
rootless() {
	within env -i PATH="$PATH" HOME=/var/lib/worker XDG_RUNTIME_DIR=/run/worker LANG=C.UTF-8 \
		setpriv --reuid worker --regid worker --init-groups \
		podman --runtime "$runtime" --cgroup-manager cgroupfs --events-backend file --log-level error "$@"
}

@test "rootless: ids, files, exec, logs, a terminal, the end" {
	within install -d -o worker -g worker -m 700 /var/lib/worker /run/worker
	within install -o worker -g worker "$image" /var/lib/worker/small.tar
	cd /
	rootless load --quiet --input /var/lib/worker/small.tar >/dev/null
	equal "the map" "$(rootless run --rm --network none small sh -c 'id -u; cat /proc/self/uid_map' | xargs)" \
		'0 0 4321 1 1 600000 65536'
	equal "the map that keeps the id" "$(rootless run --rm --network none --userns keep-id small id -u)" 4321
	ends 7 rootless run --rm --network none small sh -c 'exit 7'
	ends 127 rootless run --rm --network none small no-such-program
	rootless run --detach --name host --network none --hostname there --volume /var/lib/worker:/mnt small \
		sh -c 'echo logged; touch /mnt/made; chown 1000 /mnt/made; exec sleep 1000' >/dev/null
	until_so rootless exec host test -e /mnt/made
	equal "the owner outside" "$(within stat -c %u /var/lib/worker/made)" 600999
	equal "the log" "$(rootless logs host)" logged
	equal "exec" "$(rootless exec --user worker host sh -c 'id -u; hostname' | xargs)" '1000 there'
	rootless kill host
	equal "the exit code" "$(rootless wait host)" 137
	rootless rm host
	# who holds the user's namespaces
	rootless system migrate
}
