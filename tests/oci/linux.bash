# shellcheck shell=bash disable=SC2034,SC2154 # common.bash and bats set what the tests use
# SPDX-License-Identifier: Apache-2.0
# What the conformance_linux_*.bats share beside common.bash: the probe, hosts that lack something, namespaces that are
# there already, and the files of control groups.

load common

# ---- looking ----

# use_probe: puts tests/oci/probe.c, compiled once in a run of bats, into the container as /bin/probe; $probe is it outside
use_probe() {
	probe=$BATS_RUN_TMPDIR/probe
	if [ ! -x "$probe" ]; then
		"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -static -pthread -o "$probe.$BASHPID" "$root/tests/oci/probe.c"
		mv "$probe.$BASHPID" "$probe"
	fi
	cp "$probe" "$rootfs/bin/probe"
}

# probes WHAT [ARGUMENT...]: runs the container with the probe as its program; $output is what it printed
probes() {
	[ -e "$rootfs/bin/probe" ] || use_probe
	program probe "$@"
	run --separate-stderr oci_run
	[ "$status" -eq 0 ] || show
}

# capable CAP...: the program has these as well
capable() {
	# shellcheck disable=SC2016 # jq's
	edit '.process.capabilities |= map_values(. + $ARGS.positional)' --args -- "$@"
}

# no_new NAMESPACE...: types that the container does not make
no_new() {
	# shellcheck disable=SC2016 # jq's
	edit '.linux.namespaces |= map(select(.type as $t | $ARGS.positional | index($t) | not))' --args -- "$@"
}

# ---- hosts ----

# needs WHAT CONDITION...: skips the test where the host lacks WHAT
needs() {
	local what=$1
	shift
	"$@" || skip "this host lacks $what"
}

# needs_cgroup VIEW...: v1, hybrid, v2
needs_cgroup() {
	local view
	view=$(cgroup_view)
	[[ " $* " == *" $view "* ]] || skip "control groups are $view here, not $*"
}

# has_controller NAME: in one of the trees that the runtime sees
has_controller() {
	local list
	case $(cgroup_view) in
	v2) list=/sys/fs/cgroup/cgroup.controllers ;;
	v1) [ -d "/sys/fs/cgroup/$1" ] && return ;;
	hybrid)
		[ -d "/sys/fs/cgroup/$1" ] && return
		list=/sys/fs/cgroup/unified/cgroup.controllers
		;;
	esac
	[ -n "${list-}" ] && [[ " $(<"$list") " == *" $1 "* ]]
}

needs_controller() {
	needs "the controller $1" has_controller "$1"
}

# on_another_host SCRIPT: from now on the runtime is in a mount namespace of its own, where SCRIPT comes before it and
# executes "$@"; $here is what it is here
on_another_host() {
	mkdir "$here/host"
	printf 'here=%s\n%s\n' "$here" "$1" >"$here/host/script"
	printf '#!/bin/sh\nexec unshare -m --propagation private sh %s/host/script %s "$@"\n' "$here" "$runtime" \
		>"$here/host/${runtime##*/}"
	chmod +x "$here/host/${runtime##*/}"
	runtime=$here/host/${runtime##*/}
}

# copied_dev REDIRECTION: on another host, whose device nodes are copies, for what fails here is the mode or the owner of the
# host's own; the runtime is executed with REDIRECTION
copied_dev() {
	local name
	mkdir "$here/dev"
	for name in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
		read -r name major minor <<<"$name"
		mknod -m 666 "$here/dev/$name" c "$major" "$minor"
	done
	ln -s /proc/self/fd "$here/dev/fd"
	# shellcheck disable=SC2016 # the inner shell's
	on_another_host 'mount --bind "$here/dev" /dev && exec "$@" '"$1"
}

# needs_namespace FILE: of /proc/self/ns
needs_namespace() {
	needs "namespaces of the kind $1" [ -e "/proc/self/ns/$1" ]
}

# a_disk: sets $disk to the numbers of a block device of this host
a_disk() {
	local dir
	for dir in /sys/block/*; do
		[[ ${dir##*/} != @(loop|ram)* && $(<"$dir/size") -gt 0 ]] || continue
		disk=$(<"$dir/dev") major=${disk%:*} minor=${disk#*:}
		return
	done
	skip "this host lacks a disk"
}

# ---- namespaces that are there ----

# hold TYPE: someone is in a new namespace of TYPE (a word of unshare) until the test ends; $held is its file
hold() {
	local file=$1 options=()
	case $1 in
	mount) file=mnt options=(--propagation private) ;;
	pid) file=pid_for_children options=(--fork) ;;
	time) file=time_for_children ;;
	user) options=(--map-root-user) ;;
	esac
	mkfifo "$here/hold"
	exec {hold}<>"$here/hold"
	unshare "--$1" "${options[@]}" cat <"$here/hold" >/dev/null 3>&- {hold}>&- &
	file=${file/#network/net}
	held=/proc/$!/ns/$file
	until_true other_namespace "$held" "/proc/self/ns/$file"
}

other_namespace() {
	local there
	there=$(readlink "$1") && [ "$there" != "$(readlink "$2")" ]
}

# ---- control groups ----

# given JSON: the container is created with these linux.resources
given() {
	edit ".linux.resources = $1"
	oci_create
}

# has_file CONTROLLER FILE
has_file() {
	[ -e "$(group_dir "$1")/$2" ]
}

# holds CONTROLLER FILE=PATTERN FILE=PATTERN: what the container's group has to say, in a v1 tree and in a v2 tree
holds() {
	local word=$2 content dir
	dir=$(group_dir "$1")
	[[ $(cgroup_view) != v2 && $dir != /sys/fs/cgroup/unified/* ]] || word=$3
	content=$(<"$dir/${word%%=*}")
	# shellcheck disable=SC2053 # a pattern it is
	[[ $content == ${word#*=} ]] || {
		echo "$dir/${word%%=*}: $content"
		return 1
	}
}

# first_pid_in CONTROLLER [PATH]: the container's first process is in that group
first_pid_in() {
	grep -qx "$(oci_pid)" "$(group_dir "$@")/cgroup.procs"
}
