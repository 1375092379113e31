#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The table "Linux mount options" of the runtime-spec's config.md: a test for each option that a runtime must have, with
# what it changes. An option that the runtime does not know is passed on to tmpfs, which refuses it; so does each of these.

load common

# mounted OPTION...: a tmpfs at /mnt with these; $output is what mountinfo says of it: its own options, and the file system's
mounted() {
	# shellcheck disable=SC2016 # jq's
	edit '.mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "tmpfs", "options": $ARGS.positional}]' --args -- "$@"
	look
}

look() {
	script_runs 'while read -r id parent dev root where options rest; do
		[ $where != /mnt ] || echo ",$options,${rest##* },"
	done </proc/self/mountinfo'
}

has() {
	[[ $output == *,"$1",* ]] || show
}

lacks() {
	[ "$status" -eq 0 ] && [ -n "$output" ] && [[ $output != *,"$1",* ]] || show
}

@test "config:mount-option-async" {
	mounted sync async
	lacks sync
}

@test "config:mount-option-atime" {
	mounted noatime atime
	lacks noatime
}

@test "config:mount-option-bind: without what is mounted below" {
	with_a_mount_below
	edit '.mounts += [{"destination": "/mnt", "source": "data", "options": ["bind"]}]'
	script_runs 'echo /mnt/* /mnt/below/*'
	says '/mnt/below /mnt/below/*'
}

with_a_mount_below() {
	mkdir -p "$bundle/data/below"
	mount -t tmpfs below "$bundle/data/below"
	echo >"$bundle/data/below/mark"
}

@test "config:mount-option-defaults" {
	mounted defaults
	has rw
}

@test "config:mount-option-dev" {
	mounted nodev dev
	lacks nodev
}

@test "config:mount-option-diratime" {
	mounted nodiratime diratime
	lacks nodiratime
}

@test "config:mount-option-dirsync" {
	mounted dirsync
	has dirsync
}

@test "config:mount-option-exec" {
	mounted noexec exec
	lacks noexec
}

@test "config:mount-option-iversion" {
	mounted iversion
	has rw
}

@test "config:mount-option-lazytime" {
	mounted lazytime
	has lazytime
}

@test "config:mount-option-loud" {
	mounted silent loud
	has rw
}

@test "config:mount-option-noatime" {
	mounted noatime
	has noatime
}

@test "config:mount-option-nodev" {
	mounted nodev
	has nodev
}

@test "config:mount-option-nodiratime" {
	mounted nodiratime
	has nodiratime
}

@test "config:mount-option-noexec" {
	mounted noexec
	has noexec
}

@test "config:mount-option-noiversion" {
	mounted noiversion
	has rw
}

@test "config:mount-option-nolazytime" {
	mounted lazytime nolazytime
	lacks lazytime
}

@test "config:mount-option-norelatime" {
	mounted norelatime
	has rw
}

@test "config:mount-option-nostrictatime" {
	mounted strictatime nostrictatime
	has relatime
}

@test "config:mount-option-nosuid" {
	mounted nosuid
	has nosuid
}

# propagation SOURCE OPTION...: a bind mount with these; $output is how it propagates, and how what is below it does
propagation() {
	local source=$1
	shift
	# shellcheck disable=SC2016 # jq's
	edit '.mounts += [{"destination": "/mnt", "source": $source, "options": $ARGS.positional}]' \
		--arg source "$source" --args -- "$@"
	script_runs 'while read -r id parent dev root where options rest; do
		case $where in /mnt*) kind=${rest%%- *}; kind=${kind//[0-9: ]/}; echo $where ${kind:-private};; esac
	done </proc/self/mountinfo'
}

# a directory whose mount is shared, with another below, which is shared too
shared_with_one_below() {
	shared_directory "$here/data"
	mkdir "$here/data/below"
	mount -t tmpfs below "$here/data/below"
	shared_source=$here/data
}

@test "config:mount-option-private" {
	shared_directory "$here/data"
	propagation "$here/data" bind private
	says '/mnt private'
}

@test "config:mount-option-rbind: with what is mounted below" {
	with_a_mount_below
	edit '.mounts += [{"destination": "/mnt", "source": "data", "options": ["rbind"]}]'
	script_runs 'echo /mnt/* /mnt/below/*'
	says '/mnt/below /mnt/below/mark'
}

@test "config:mount-option-relatime" {
	mounted relatime
	has relatime
}

@test "config:mount-option-remount" {
	edit '.mounts += [{"destination": "/mnt", "type": "tmpfs", "source": "tmpfs"},
		{"destination": "/mnt", "type": "tmpfs", "source": "tmpfs", "options": ["remount", "ro"]}]'
	look
	has ro
	[ "${#lines[@]}" = 1 ] || show
}

@test "config:mount-option-ro" {
	mounted ro
	has ro
}

@test "config:mount-option-ro: of a bind mount" {
	mkdir "$bundle/data"
	edit '.mounts += [{"destination": "/mnt", "source": "data", "options": ["bind", "ro"]}]'
	script_runs 'echo x >/mnt/file || echo refused'
	says refused
	[ ! -e "$bundle/data/file" ]
}

@test "config:mount-option-rprivate" {
	shared_with_one_below
	propagation "$here/data" rbind rprivate
	says $'/mnt private\n/mnt/below private'
}

@test "config:mount-option-rshared" {
	shared_with_one_below
	propagation "$here/data" rbind rshared
	[[ ${lines[0]} == '/mnt shared'* && ${lines[1]} == '/mnt/below shared'* ]] || show
}

@test "config:mount-option-rslave" {
	shared_with_one_below
	propagation "$here/data" rbind rslave
	# what is below was not shared in the view that crun and runc are given
	[[ $output == $'/mnt master\n/mnt/below '* ]] || show
}

@test "config:mount-option-runbindable" {
	shared_with_one_below
	propagation "$here/data" rbind runbindable
	says $'/mnt unbindable\n/mnt/below unbindable'
}

@test "config:mount-option-rw" {
	mounted ro rw
	has rw
}

@test "config:mount-option-shared" {
	mkdir "$here/data"
	propagation "$here/data" bind shared
	[[ $output == '/mnt shared'* ]] || show
}

@test "config:mount-option-silent" {
	mounted silent
	has rw
}

@test "config:mount-option-slave" {
	shared_directory "$here/data"
	propagation "$here/data" bind slave
	says '/mnt master'
}

@test "config:mount-option-strictatime" {
	mounted strictatime
	lacks relatime
	lacks noatime
}

@test "config:mount-option-suid" {
	mounted nosuid suid
	lacks nosuid
}

@test "config:mount-option-sync" {
	mounted sync
	has sync
}

@test "config:mount-option-unbindable" {
	mkdir "$here/data"
	propagation "$here/data" bind unbindable
	says '/mnt unbindable'
}

# ---- what a runtime that has idmap and ridmap must do with them ----

# owner_seen CONFIG-FILTER: the owner that the container sees of a file of the host's user 1000
owner_seen() {
	mkdir "$here/data"
	chmod 0755 "$here/data"
	echo >"$here/data/file"
	chown 1000:1000 "$here/data/file"
	# shellcheck disable=SC2016 # jq's
	edit "$1" --arg source "$here/data"
	script_runs 'stat -c %u:%g /mnt/file'
}

@test "config:idmap-1 with idmap the mount's own mappings must be used" {
	owner_seen '.mounts += [{"destination": "/mnt", "source": $source, "options": ["bind", "idmap"],
		"uidMappings": [{"containerID": 1000, "hostID": 2000, "size": 1}],
		"gidMappings": [{"containerID": 1000, "hostID": 3000, "size": 1}]}]'
	says 2000:3000
}

@test "config:idmap-2 idmap with neither mappings nor a user namespace must be an error" {
	mkdir "$bundle/data"
	refuses '.mounts += [{"destination": "/mnt", "source": "data", "options": ["bind", "idmap"]}]' 'mounts[1]'
}

@test "config:idmap-3 idmap without mappings takes the user namespace's, or is an error" {
	use_user_namespace
	owner_seen '.mounts += [{"destination": "/mnt", "source": $source, "options": ["bind", "idmap"]}]' || true
	[ "$status" -ne 0 ] || says 1000:1000
}

@test "config:ridmap-1 with ridmap the mount's own mappings must be used, below it as well" {
	mkdir -p "$here/data/below" "$here/other"
	# of a file system that can do it: not each kernel's tmpfs can
	mount --bind "$here/other" "$here/data/below"
	chmod 0755 "$here/data" "$here/data/below"
	echo >"$here/data/below/file"
	chown 1000:1000 "$here/data/below/file"
	# shellcheck disable=SC2016 # jq's
	edit '.mounts += [{"destination": "/mnt", "source": $source, "options": ["rbind", "ridmap"],
		"uidMappings": [{"containerID": 1000, "hostID": 2000, "size": 1}],
		"gidMappings": [{"containerID": 1000, "hostID": 3000, "size": 1}]}]' --arg source "$here/data"
	script_runs 'stat -c %u:%g /mnt/below/file'
	says 2000:3000
}

@test "config:ridmap-2 ridmap with neither mappings nor a user namespace must be an error" {
	mkdir "$bundle/data"
	refuses '.mounts += [{"destination": "/mnt", "source": "data", "options": ["rbind", "ridmap"]}]' 'mounts[1]'
}

@test "config:ridmap-3 ridmap without mappings takes the user namespace's, or is an error" {
	use_user_namespace
	owner_seen '.mounts += [{"destination": "/mnt", "source": $source, "options": ["rbind", "ridmap"]}]' || true
	[ "$status" -ne 0 ] || says 1000:1000
}
