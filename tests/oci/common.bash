# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of OCI runtimes share: a root filesystem, bundles, one function for each operation on a container, and
# the removal of whatever a test left. $RUNTIME is the runtime, by default the one that is built; no test knows which.
# Every function whose name begins with "oci_" acts on the container $id, in the store $store, of the bundle $bundle.
bats_require_minimum_version 1.5.0

# Sets $root (the repository), $here (short, and the test's own), $store, $bundle, $rootfs, $id and $group (the cgroupsPath
# of the configurations below); makes a minimal bundle. What a file needs besides goes into its own setup, after this.
setup() {
	root=${BATS_TEST_DIRNAME%/*/*}
	build=${AGENTDOCK_BUILD:-build}
	[[ $build == /* ]] || build=$root/$build
	runtime=${RUNTIME:-$build/agentdock-runtime}
	id=oci-test-$BASHPID-$BATS_TEST_NUMBER
	group=/$id
	here=${BATS_RUN_TMPDIR%/*}/$id
	mkdir -m 0755 "$here"
	mkfifo "$here/never"
	store=$here/store
	make_bundle "$here/bundle"
	cd "$here" || return
}

# What is left of a test: containers, whoever is in its groups, groups, mounts, files.
teardown() {
	local entry dir line
	cd /
	for entry in "$store"/*/; do
		[ -d "$entry" ] || continue
		entry=${entry%/}
		oci delete --force "${entry##*/}" >/dev/null 2>&1 </dev/null || true
	done
	# who is frozen there does not die
	for dir in /sys/fs/cgroup/freezer/"$id"*; do
		[ -d "$dir" ] && find "$dir" -depth -name freezer.state -exec sh -c 'echo THAWED >"$1"' sh {} \;
	done
	for dir in /sys/fs/cgroup{,/*}/"$id"*; do
		[ -d "$dir" ] && remove_group "$dir"
	done
	while read -r _ _ _ _ line _; do
		[[ $line == "$here"/* ]] && umount -l "$line"
	done </proc/self/mountinfo
	rm -rf --one-file-system "$here"
}

remove_group() {
	local dir pid
	while read -r dir; do
		while read -r pid; do kill -KILL "$pid" 2>/dev/null; done <"$dir/cgroup.procs"
		until_true rmdir "$dir" 2>/dev/null
	done < <(find "$1" -depth -type d)
}

# ---- the runtime ----

# runtime_is NAME: crun, runc, agentdock-runtime
runtime_is() {
	[ "${runtime##*/}" = "$1" ]
}

# The host's control groups as the runtime is shown them: v1, v2 or hybrid. crun and runc know no hybrid hosts, so theirs
# are without the second version.
cgroup_view() {
	if [ ! -d /sys/fs/cgroup/unified ]; then
		if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo v2; else echo v1; fi
	elif [ "${CGROUP_VIEW-}" = v1 ] || ! runtime_is agentdock-runtime; then
		echo v1
	else
		echo hybrid
	fi
}

# oci VERB ARGUMENT...: the runtime itself. A runtime that hangs is a runtime that fails.
oci() {
	local wrap=()
	if [ -d /sys/fs/cgroup/unified ] && [ "$(cgroup_view)" = v1 ]; then
		# what a test made shared is so in there as well
		# shellcheck disable=SC2016 # the inner shell expands it
		wrap=(unshare -m --propagation private sh -c 'umount /sys/fs/cgroup/unified
			[ -z "$0" ] || mount --make-shared "$0"
			exec "$@"' "${shared_source-}")
	fi
	timeout --foreground -k 5 "${OCI_TIMEOUT:-20}" "${wrap[@]}" "$runtime" --root "$store" "$@" 3>&- 4>&-
}

# The container's own output goes to $here/out and $here/err. What the runtime said is there too, and printed on failure.
oci_create() {
	local status=0
	oci create --bundle "$bundle" "$@" "$id" </dev/null >"$here/out" 2>"$here/err" || status=$?
	[ $status -eq 0 ] || cat "$here/err" >&2
	return $status
}

oci_start() {
	oci start "$id"
}

# create and start
oci_up() {
	oci_create && oci_start
}

# Waits for the end of the container's program and gives its exit status.
oci_run() {
	oci run --bundle "$bundle" "$@" "$id" </dev/null
}

# oci_exec COMMAND...
oci_exec() {
	oci exec "$id" "$@"
}

# oci_state [JQ-FILTER]
oci_state() {
	if [ $# -eq 0 ]; then oci state "$id"; else oci state "$id" | jq -r "$1"; fi
}

oci_kill() {
	oci kill "$id" "${1:-KILL}"
}

oci_delete() {
	oci delete "$@" "$id"
}

# ---- bundles ----

# The root filesystem of every bundle is of hard links to this one, which is made once in a run of bats. Its programs are
# busybox's; its /ready and /wait are FIFOs, see below.
common_root() {
	local tree=$BATS_RUN_TMPDIR/rootfs part link
	if ! [ -d "$tree" ]; then
		part=$(mktemp -d "$BATS_RUN_TMPDIR/rootfs.XXXXXX")
		chmod 0755 "$part"
		mkdir -p "$part"/{bin,dev,etc,home,mnt,proc,root,run,sys,usr,var}
		mkdir -m 1777 "$part/tmp"
		cp /bin/busybox "$part/bin/busybox"
		# the shell has all of them by itself, while there is a /proc
		for link in sh true cat env id ls mkdir mknod mount pwd readlink sleep stty; do
			ln -s busybox "$part/bin/$link"
		done
		ln -s bin "$part/sbin"
		printf 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home:/bin/sh\n' >"$part/etc/passwd"
		printf 'root:x:0:\nuser:x:1000:\n' >"$part/etc/group"
		# of two that are made at the same time one wins
		mv -T "$part" "$tree" 2>/dev/null || rm -rf "$part"
	fi
	echo "$tree"
}

# make_bundle DIRECTORY: with a configuration that is as small as it can be. Sets $bundle, $rootfs and $config.
make_bundle() {
	bundle=$1 rootfs=$1/rootfs config=$1/config.json
	mkdir -m 0755 "$bundle"
	cp -al "$(common_root)" "$rootfs"
	mkfifo -m 0666 "$rootfs/ready" "$rootfs/wait"
	minimal_config >"$config"
}

minimal_config() {
	cat <<-END
		{
			"ociVersion": "1.0.2",
			"process": {
				"user": {"uid": 0, "gid": 0},
				"args": ["true"],
				"env": ["PATH=/bin"],
				"cwd": "/",
				"capabilities": {
					"bounding": ["CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"],
					"effective": ["CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"],
					"permitted": ["CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"]
				}
			},
			"root": {"path": "rootfs"},
			"mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
			"linux": {
				"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}],
				"cgroupsPath": "$group"
			}
		}
	END
}

# What podman writes for a container that was asked for nothing.
use_podman_config() {
	cat >"$config" <<-END
		{
			"ociVersion": "1.0.2-dev",
			"process": {
				"user": {"uid": 0, "gid": 0, "umask": 18, "additionalGids": [0]},
				"args": ["true"],
				"env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm",
					"container=podman", "HOME=/root", "HOSTNAME=$id"],
				"cwd": "/",
				"capabilities": {
					"bounding": $podman_capabilities,
					"effective": $podman_capabilities,
					"permitted": $podman_capabilities
				},
				"rlimits": [
					{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024},
					{"type": "RLIMIT_NPROC", "hard": 1024, "soft": 1024}
				],
				"oomScoreAdj": 0
			},
			"root": {"path": "rootfs"},
			"hostname": "$id",
			"mounts": [
				{"destination": "/proc", "type": "proc", "source": "proc",
					"options": ["nosuid", "noexec", "nodev"]},
				{"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
					"options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
				{"destination": "/sys", "type": "sysfs", "source": "sysfs",
					"options": ["nosuid", "noexec", "nodev", "ro"]},
				{"destination": "/dev/pts", "type": "devpts", "source": "devpts",
					"options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
				{"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue",
					"options": ["nosuid", "noexec", "nodev"]},
				{"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
					"options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
				{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
					"options": ["rprivate", "nosuid", "noexec", "nodev", "relatime", "ro"]}
			],
			"annotations": {"io.container.manager": "libpod", "org.opencontainers.image.stopSignal": "15"},
			"linux": {
				"resources": {"devices": [{"allow": false, "access": "rwm"}], "pids": {"limit": 2048}},
				"cgroupsPath": "$group",
				"namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"},
					{"type": "mount"}, {"type": "cgroup"}],
				"maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
					"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
					"/sys/firmware", "/sys/fs/selinux", "/sys/dev/block"],
				"readonlyPaths": ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
					"/proc/sysrq-trigger"]
			}
		}
	END
}

podman_capabilities='["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE",
	"CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT"]'

# edit JQ-FILTER [JQ-OPTION...]: changes the configuration
edit() {
	local filter=$1
	shift
	jq "$filter" "$@" <"$config" >"$config.new" && mv "$config.new" "$config"
}

# program ARG...: what the container executes
program() {
	# shellcheck disable=SC2016 # jq's
	edit '.process.args = $ARGS.positional' --args -- "$@"
}

# script TEXT: what the container's shell runs
script() {
	program sh -c "$1"
}

# script_runs TEXT [OPTION...]: runs the container with it, and puts what it printed into $output, and what the runtime
# and it said besides into $stderr
script_runs() {
	script "$1"
	shift
	run --separate-stderr oci_run "$@"
	[ "$status" -eq 0 ] || show
}

# Inside a user namespace: the container's ids 0 to 65535 are the host's from 100000 on.
use_user_namespace() {
	# shellcheck disable=SC2016 # jq's
	edit '.linux.namespaces += [{"type": "user"}]
		| [{"containerID": 0, "hostID": 100000, "size": 65536}] as $map
		| .linux.uidMappings = $map | .linux.gidMappings = $map'
	chmod 0755 "$here" "$bundle"
	chown -R 100000:100000 "$rootfs"
}

# shared_directory PATH: makes it, as a mount that is shared
shared_directory() {
	shared_source=$1
	mkdir "$1"
	mount --bind "$1" "$1"
	mount --make-private "$1"
	mount --make-shared "$1"
}

# hook KIND SCRIPT: adds a hook that runs it, with the state in $state. Those of startContainer are files of the
# container, as /hook.N.
hook() {
	local path
	hooks=$((${hooks:-0} + 1))
	path=$here/hook.$hooks
	[ "$1" != startContainer ] || path=$rootfs/hook.$hooks
	# shellcheck disable=SC2016 # the hook's
	printf '#!/bin/sh\nstate=$(cat)\n%s\n' "$2" >"$path"
	chmod 0755 "$path"
	# shellcheck disable=SC2016 # jq's
	edit '.hooks[$kind] += [{"path": $path}]' --arg kind "$1" --arg path "${path#"$rootfs"}"
}

# ---- meeting the container ----

# A container that is up until the test says so: it says that it runs on /ready, then waits for /wait.
# up_until_told [SCRIPT]: SCRIPT comes before that
up_until_told() {
	script "${1-:}; echo up >/ready; read -r line </wait; exit \${line:-0}"
	oci_up
	[ "$(heard)" = up ]
}

# The next line that the container writes to /ready.
heard() {
	local line
	read -r -t "${OCI_TIMEOUT:-10}" line <>"$rootfs/ready" || return
	echo "$line"
}

# tell [STATUS]: lets it go
tell() {
	# shellcheck disable=SC2016 # the inner shell expands it
	timeout "${OCI_TIMEOUT:-10}" sh -c 'echo "$1" >"$2"' sh "${1-}" "$rootfs/wait"
}

# on_a_terminal: creates and starts the container with a terminal; $output is what it wrote there, without returns
on_a_terminal() {
	mkfifo "$here/listening"
	"$root/tests/oci/console" "$here/console" >"$here/screen" 2>"$here/listening" 3>&- &
	local listener=$! line
	read -r -t 10 line <>"$here/listening"
	oci_create --console-socket "$here/console" || {
		kill "$listener"
		return 1
	}
	oci_start
	wait "$listener"
	output=$(tr -d '\r' <"$here/screen")
}

# The pid of the container's first process, as the host sees it.
oci_pid() {
	oci_state .pid
}

# gone PID: it is no more, or a zombie
gone() {
	local line
	read -r line 2>/dev/null <"/proc/$1/stat" || return 0
	line=${line##*) }
	[[ $line == [ZX]* ]]
}

# oci_status_is STATUS
oci_status_is() {
	[ "$(oci_state .status)" = "$1" ]
}

# until_true COMMAND...: for what has no event to wait on; at most five seconds, or $OCI_TIMEOUT
until_true() {
	local end=$((SECONDS + ${OCI_TIMEOUT:-5}))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		read -r -t 0.01 <>"$here/never" || true
	done
}

# ---- control groups ----

# group_dir CONTROLLER [PATH]: where the group $group, or PATH, is in the host's tree of that controller
group_dir() {
	local base=/sys/fs/cgroup
	if [ "$(cgroup_view)" != v2 ]; then
		base+=/$1
		[ -d "$base" ] || base=/sys/fs/cgroup/unified
	fi
	echo "$base${2:-$group}"
}

# ---- saying what is wrong ----

# What `run` saw, and fails.
show() {
	echo "status ${status-}: ${output-}${stderr:+ ($stderr)}"
	return 1
}

# refused KEY...: `run` saw a failure, whose message has each of the texts
refused() {
	local text
	[ "$status" -ne 0 ] || show || return
	[ "$status" -ne 124 ] || show || return
	for text; do
		[[ $output == *"$text"* ]] || show || return
	done
}

# refuses JQ-FILTER [KEY...]: with this in its configuration, no container is made. Our own message names each KEY;
# other runtimes have words of their own.
refuses() {
	edit "$1"
	shift
	run oci_create
	if runtime_is agentdock-runtime; then refused "$@"; else refused; fi
	run oci_state
	refused
}

# never_runs JQ-FILTER: with neither create nor start does the program run, which says so in /ran
never_runs() {
	edit "$1"
	run oci_create
	if [ "$status" -eq 0 ]; then
		run oci_start
		refused
	fi
	[ ! -e "$rootfs/ran" ]
}

# says TEXT: `run` saw success, and exactly this
says() {
	[ "$status" -eq 0 ] || show || return
	[ "$output" = "$1" ] || show
}
