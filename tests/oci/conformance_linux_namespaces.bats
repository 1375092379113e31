#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "Default Filesystems", "Namespaces", "User namespace mappings" and "Offset for Time Namespace" of the runtime-spec's
# config-linux.md.

load linux

# ---- Default Filesystems ----

@test "linux:filesystems-1 proc, sysfs, devpts and tmpfs are made available where mounts say so" {
	use_podman_config
	script_runs 'while read -r source where type rest; do
		case $where in /proc|/sys|/dev/pts|/dev/shm) echo $where $type;; esac
	done </proc/self/mounts | sort'
	says $'/dev/pts devpts\n/dev/shm tmpfs\n/proc proc\n/sys sysfs'
}

# ---- Namespaces: type ----

# makes_new TYPE FILE: the container has a namespace of its own
makes_new() {
	needs_namespace "$2"
	no_new "$1"
	# shellcheck disable=SC2016 # jq's
	edit '.linux.namespaces += [{"type": $ARGS.positional[0]}]' --args -- "$1"
	script_runs "readlink /proc/self/ns/$2"
	[[ $output == "$2":\[*\] ]]
	[ "$output" != "$(readlink "/proc/self/ns/$2")" ]
}

@test "linux:namespaces-1 without path a new namespace must be made: pid" {
	makes_new pid pid
}

@test "linux:namespaces-2 without path a new namespace must be made: network" {
	makes_new network net
}

@test "linux:namespaces-3 without path a new namespace must be made: mount" {
	makes_new mount mnt
}

@test "linux:namespaces-4 without path a new namespace must be made: ipc" {
	makes_new ipc ipc
}

@test "linux:namespaces-5 without path a new namespace must be made: uts" {
	makes_new uts uts
}

@test "linux:namespaces-6 without path a new namespace must be made: user" {
	use_user_namespace
	makes_new user user
}

@test "linux:namespaces-7 without path a new namespace must be made: cgroup" {
	makes_new cgroup cgroup
}

@test "linux:namespaces-8 without path a new namespace must be made: time" {
	makes_new time time
}

@test "linux:namespaces-9 pid: processes see those of their own namespace alone" {
	script_runs 'echo $$; set -- /proc/[0-9]*; echo $#'
	says $'1\n1'
}

@test "linux:namespaces-10 network: it has a network stack of its own" {
	edit '.linux.namespaces += [{"type": "network"}]'
	script_runs 'while IFS=: read -r name rest; do echo $name; done </proc/net/dev'
	[[ $output != *eth* && $output == *lo* ]]
}

@test "linux:namespaces-11 mount: the mount table is isolated" {
	script 'mount -t tmpfs tmpfs /mnt && echo mounted >/mnt/file && echo up >/ready; read -r line </wait'
	oci_up
	[ "$(heard)" = up ]
	[ ! -e "$rootfs/mnt/file" ]
	run grep "$here" /proc/self/mountinfo
	[ "$status" -ne 0 ] || show
	tell
}

@test "linux:namespaces-12 cgroup: its own group is the root of what it sees" {
	edit '.linux.namespaces += [{"type": "cgroup"}]'
	script_runs 'while IFS=: read -r number name path; do echo $path; done </proc/self/cgroup | sort -u'
	if [ "$(cgroup_view)" = v2 ]; then says /; else [[ $output == /* && $output != *"$id"* ]]; fi
}

@test "linux:namespaces-13 type is required" {
	refuses '.linux.namespaces += [{}]' linux.namespaces type
}

# ---- Namespaces: path ----

# joins TYPE WORD FILE: the process is in the namespace at path
joins() {
	needs_namespace "$3"
	hold "$2"
	# shellcheck disable=SC2016 # jq's
	edit '.linux.namespaces |= map(select(.type != $ARGS.positional[0])) + [{"type": $ARGS.positional[0],
		"path": $ARGS.positional[1]}]' --args -- "$1" "$held"
	script_runs "readlink /proc/self/ns/$3"
	says "$(readlink "$held")"
}

@test "linux:namespaces-path-1 the process must be placed in the namespace at path: pid" {
	joins pid pid pid
}

@test "linux:namespaces-path-2 the process must be placed in the namespace at path: network" {
	hold net
	edit '.linux.namespaces += [{"type": "network", "path": $ARGS.positional[0]}]' --args -- "$held"
	script_runs 'readlink /proc/self/ns/net'
	says "$(readlink "$held")"
}

@test "linux:namespaces-path-3 the process must be placed in the namespace at path: mount" {
	joins mount mount mnt
}

@test "linux:namespaces-path-4 the process must be placed in the namespace at path: ipc" {
	joins ipc ipc ipc
}

@test "linux:namespaces-path-5 the process must be placed in the namespace at path: uts" {
	joins uts uts uts
}

@test "linux:namespaces-path-6 the process must be placed in the namespace at path: user" {
	joins user user user
}

@test "linux:namespaces-path-7 the process must be placed in the namespace at path: cgroup" {
	joins cgroup cgroup cgroup
}

@test "linux:namespaces-path-8 the process must be placed in the namespace at path: time" {
	joins time time time
}

@test "linux:namespaces-path-9 path must be absolute" {
	hold uts
	ln -s "$held" "$here/held"
	refuses '.linux.namespaces |= map(if .type == "uts" then . + {"path": "held"} else . end)' linux.namespaces path
}

@test "linux:namespaces-path-10 a path to a namespace of another type must be an error" {
	hold net
	refuses ".linux.namespaces |= map(if .type == \"uts\" then . + {\"path\": \"$held\"} else . end)" "$held"
}

@test "linux:namespaces-path-11 a path to no namespace at all must be an error" {
	: >"$here/file"
	refuses ".linux.namespaces |= map(if .type == \"uts\" then . + {\"path\": \"$here/file\"} else . end)" "$here/file"
}

@test "linux:namespaces-path-12 a path to nothing must be an error" {
	refuses ".linux.namespaces |= map(if .type == \"uts\" then . + {\"path\": \"$here/none\"} else . end)" "$here/none"
}

# ---- Namespaces: none, or twice ----

# inherits TYPE FILE: the container is in the runtime's own namespace
inherits() {
	needs_namespace "$2"
	no_new "$1"
	script_runs "readlink /proc/self/ns/$2"
	says "$(readlink "/proc/self/ns/$2")"
}

@test "linux:namespaces-none-1 what is not named must be inherited: pid" {
	inherits pid pid
}

@test "linux:namespaces-none-2 what is not named must be inherited: network" {
	inherits network net
}

@test "linux:namespaces-none-3 what is not named must be inherited: ipc" {
	inherits ipc ipc
}

@test "linux:namespaces-none-4 what is not named must be inherited: uts" {
	inherits uts uts
}

@test "linux:namespaces-none-5 what is not named must be inherited: user" {
	inherits user user
}

@test "linux:namespaces-none-6 what is not named must be inherited: cgroup" {
	inherits cgroup cgroup
}

@test "linux:namespaces-none-7 what is not named must be inherited: time" {
	inherits time time
}

@test "linux:namespaces-none-8 what is not named must be inherited, or be refused: mount" {
	no_new mount
	script 'readlink /proc/self/ns/mnt'
	# not in the host's own, where the container's mounts would be the host's
	# shellcheck disable=SC2016 # the inner shell's
	on_another_host 'exec "$@"'
	run oci_run
	if runtime_is agentdock-runtime; then
		refused linux.namespaces mount
	else
		[[ $status -ne 0 || $output == mnt:\[*\] ]] || show
	fi
}

# twice TYPE
twice() {
	no_new "$1"
	refuses ".linux.namespaces += [{\"type\": \"$1\"}, {\"type\": \"$1\"}]" linux.namespaces
}

@test "linux:namespaces-twice-1 a type twice must be an error: pid" {
	twice pid
}

@test "linux:namespaces-twice-2 a type twice must be an error: network" {
	twice network
}

@test "linux:namespaces-twice-3 a type twice must be an error: mount" {
	twice mount
}

@test "linux:namespaces-twice-4 a type twice must be an error: ipc" {
	twice ipc
}

@test "linux:namespaces-twice-5 a type twice must be an error: uts" {
	twice uts
}

@test "linux:namespaces-twice-6 a type twice must be an error: user" {
	use_user_namespace
	refuses '.linux.namespaces += [{"type": "user"}]' linux.namespaces
}

@test "linux:namespaces-twice-7 a type twice must be an error: cgroup" {
	twice cgroup
}

@test "linux:namespaces-twice-8 a type twice must be an error: time" {
	twice time
}

# ---- User namespace mappings ----

@test "linux:mappings-1 uidMappings are those of the namespace" {
	use_user_namespace
	edit '.linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 1000},
		{"containerID": 5000, "hostID": 200000, "size": 7}]'
	script_runs 'while read -r line; do echo $line; done </proc/self/uid_map'
	says $'0 100000 1000\n5000 200000 7'
}

@test "linux:mappings-2 gidMappings are those of the namespace" {
	use_user_namespace
	edit '.linux.gidMappings = [{"containerID": 0, "hostID": 100000, "size": 1000},
		{"containerID": 5000, "hostID": 200000, "size": 7}]'
	script_runs 'while read -r line; do echo $line; done </proc/self/gid_map'
	says $'0 100000 1000\n5000 200000 7'
}

@test "linux:mappings-3 uidMappings: containerID is required" {
	use_user_namespace
	refuses 'del(.linux.uidMappings[0].containerID)' 'linux.uidMappings[0].containerID'
}

@test "linux:mappings-4 uidMappings: hostID is required" {
	use_user_namespace
	refuses 'del(.linux.uidMappings[0].hostID)' 'linux.uidMappings[0].hostID'
}

@test "linux:mappings-5 uidMappings: size is required" {
	use_user_namespace
	refuses 'del(.linux.uidMappings[0].size)' 'linux.uidMappings[0].size'
}

@test "linux:mappings-6 gidMappings: containerID is required" {
	use_user_namespace
	refuses 'del(.linux.gidMappings[0].containerID)' 'linux.gidMappings[0].containerID'
}

@test "linux:mappings-7 gidMappings: hostID is required" {
	use_user_namespace
	refuses 'del(.linux.gidMappings[0].hostID)' 'linux.gidMappings[0].hostID'
}

@test "linux:mappings-8 gidMappings: size is required" {
	use_user_namespace
	refuses 'del(.linux.gidMappings[0].size)' 'linux.gidMappings[0].size'
}

@test "linux:mappings-9 the ownership of referenced filesystems should not be modified" {
	use_user_namespace
	: >"$rootfs/home/file"
	chown 100007:100008 "$rootfs/home/file"
	script_runs 'stat -c %u:%g /home/file'
	says 7:8
	[ "$(stat -c %u:%g "$rootfs/home/file")" = 100007:100008 ]
}

# ---- Offset for Time Namespace ----

# offset JSON
offset() {
	needs_namespace time
	edit ".linux.namespaces += [{\"type\": \"time\"}] | .linux.timeOffsets = $1"
	script_runs 'while read -r clock secs nanosecs; do echo $clock $secs $nanosecs; done </proc/self/timens_offsets'
}

@test "key:linux.timeOffsets.monotonic.secs" {
	offset '{"monotonic": {"secs": 86400}}'
	says $'monotonic 86400 0\nboottime 0 0'
}

@test "key:linux.timeOffsets.monotonic.nanosecs" {
	offset '{"monotonic": {"secs": 1, "nanosecs": 5}}'
	says $'monotonic 1 5\nboottime 0 0'
}

@test "key:linux.timeOffsets.boottime.secs" {
	offset '{"boottime": {"secs": 86400}}'
	says $'monotonic 0 0\nboottime 86400 0'
}

@test "key:linux.timeOffsets.boottime.nanosecs" {
	offset '{"boottime": {"nanosecs": 999999999}}'
	says $'monotonic 0 0\nboottime 0 999999999'
}

@test "linux:time-1 the program's own clocks have the offsets" {
	local monotonic boottime
	needs_namespace time
	edit '.linux.namespaces += [{"type": "time"}]
		| .linux.timeOffsets = {"monotonic": {"secs": 1000000}, "boottime": {"secs": 2000000}}'
	probes clocks
	read -r monotonic boottime <<<"$output"
	[[ ${monotonic%.*} -ge 1000000 && ${monotonic%.*} -lt 2000000 && ${boottime%.*} -ge 2000000 ]]
}

@test "linux:time-2 an offset that the kernel refuses is an error" {
	needs_namespace time
	refuses '.linux.namespaces += [{"type": "time"}]
		| .linux.timeOffsets = {"monotonic": {"secs": -9000000000000}}' linux.timeOffsets
}
