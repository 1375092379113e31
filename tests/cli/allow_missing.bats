#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --allow-missing userns, on a file system whose layers cannot be idmapped: ramfs, in a mount
# namespace of the test's own.
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	cd "$root" || return
	build=$(realpath "${AGENTDOCK_BUILD:-build}")
	agentdock=$build/agentdock
	# what runs inside of a sandbox is static
	[ "${build##*/}" != build-asan ] || export AGENTDOCK_LIBEXEC=$root/build
	export AGENTDOCK_RUN_DIR=$BATS_TEST_TMPDIR/run
	export AGENTDOCK_CGROUP_PARENT=agentdock-bats-missing-$$
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -p tree/bin state
	cp /bin/busybox tree/bin/busybox
	ln -s busybox tree/bin/sh
}

# The label goes last; who tears a sandbox down holds it.
nothing_left() {
	for _ in {1..200}; do
		[ -n "$(ls "$AGENTDOCK_RUN_DIR")" ] || return 0
		sleep 0.05
	done
	return 1
}

teardown() {
	rmdir /sys/fs/cgroup{,/*}/"$AGENTDOCK_CGROUP_PARENT" 2>/dev/null || true
}

# on_ramfs WORD...: imports the image there, then `agentdock WORD...`
on_ramfs() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --propagation private sh -euc '
		mount -t ramfs state state
		mount --make-private state
		export AGENTDOCK_STATE_DIR=$PWD/state
		"$0" image import tree default >/dev/null
		exec "$0" "$@"' "$agentdock" "$@"
}

@test "without a user namespace nothing runs unless that is allowed by name" {
	run --separate-stderr on_ramfs run --disk-backing tmpfs -- sh -c :
	[ "$status" -eq 125 ]
	[[ $stderr == "agentdock: root: "*"allow the user namespace to be missing" ]]
	nothing_left
}

@test "allowed, it runs as the same user without a map, and the report says so" {
	on_ramfs run --disk-backing tmpfs --allow-missing userns --json -- \
		sh -c 'id -u; cat /proc/self/uid_map; grep ^Cap /proc/self/status' >report
	[ "$(jq -r .reason report)" = exited ]
	[ "$(jq -c '[.host.user_namespace, .host.host_uid_base, .host.missing]' report)" = '[false,0,"userns"]' ]
	run jq -r .stdout.data.text report
	[ "${lines[0]}" = 10001 ]
	[[ ${lines[1]} =~ ^\ *0\ +0\ +4294967295$ ]]
	[ "$(grep -c '^Cap.*0000000000000000$' <<<"$output")" -eq 5 ]
	nothing_left
}
