#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The examples of the runtime-spec's schema (tests/data/oci), as bundles: those that are good are taken, those that are
# bad are refused by the name of the key.

load common

# example KIND/NAME
example() {
	cp "$root/tests/data/oci/config/$1.json" "$config"
}

# taken_but_for TEXT...: create succeeds, or is refused for what this host lacks or this runtime does not take, by its name
taken_but_for() {
	local text
	run oci_create
	[ "$status" -ne 0 ] || return 0
	for text; do [[ $output != *"$text"* ]] || return 0; done
	show
}

# of_another_platform EXAMPLE KEY...: ours says what it lacks for Linux. Others may run it, or refuse it in other words.
of_another_platform() {
	runtime_is agentdock-runtime || skip "the document is for no runtime of Linux"
	example "$1"
	shift
	run oci_create
	refused "$@"
}

# ours refuses what would share every namespace with the host
@test "schema:good-minimal" {
	example good/minimal
	taken_but_for linux process
}

@test "schema:good-minimal-for-start" {
	example good/minimal-for-start
	taken_but_for linux
}

@test "schema:good-minimal-for-start, with namespaces, runs" {
	example good/minimal-for-start
	edit '.linux = {"namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "uts"}, {"type": "ipc"}]}
		| .process.env = ["PATH=/bin"] | .process.args = ["sh", "-c", "echo ran"]'
	run oci_run
	says ran
}

@test "schema:good-linux-netdevice" {
	example good/linux-netdevice
	edit '.linux.namespaces = [{"type": "mount"}, {"type": "network"}]'
	taken_but_for eth0 ens4 ens5 process
}

@test "schema:good-linux-rdma" {
	example good/linux-rdma
	edit '.linux.namespaces = [{"type": "mount"}]'
	taken_but_for rdma process
}

@test "schema:good-spec-example" {
	example good/spec-example
	edit '.process.terminal = false | .linux.cgroupsPath = $group' --arg group "$group"
	taken_but_for apparmorProfile AppArmor apparmor mountLabel selinux linux.resources
}

@test "schema:good-spec-example, without what is this host's to have, runs" {
	example good/spec-example
	# the limits and devices that it has are of a machine of another kind
	edit 'del(.process.apparmorProfile, .process.selinuxLabel, .linux.mountLabel, .hooks)
		| .process |= (.terminal = false | .env = ["PATH=/bin"] | .args = ["sh", "-c", "hostname"] | .cwd = "/"
			| .user = {"uid": 0, "gid": 0})
		| .linux.resources = {"pids": .linux.resources.pids} | .linux.cgroupsPath = $group
		| .linux.sysctl = {"net.ipv4.ip_forward": "1"}
		| del(.linux.devices[] | select(.type == "b"))
		| .linux.seccomp.syscalls = [{"names": ["acct"], "action": "SCMP_ACT_ERRNO"}]' --arg group "$group"
	# the devices of a user namespace are the host's own
	[ -e /dev/fuse ] || edit 'del(.linux.devices[] | select(.path == "/dev/fuse"))'
	[ -e /proc/self/ns/time ] || edit 'del(.linux.timeOffsets, (.linux.namespaces[] | select(.type == "time")))'
	chown -R 1000:1000 "$rootfs"
	run --separate-stderr oci_run
	says slartibartfast
}

@test "schema:good-freebsd-minimal is of another platform" {
	of_another_platform good/freebsd-minimal linux
}

@test "schema:good-freebsd-example is of another platform" {
	of_another_platform good/freebsd-example linux
}

@test "schema:good-zos-minimal is of another platform" {
	of_another_platform good/zos-minimal linux
}

@test "schema:good-zos-example is of another platform" {
	of_another_platform good/zos-example linux
}

# bad NAME KEY...
bad() {
	example "bad/$1"
	shift
	refuses . "$@"
}

@test "schema:bad-linux-hugepage" {
	bad linux-hugepage 'linux.resources.hugepageLimits[0].pageSize'
}

@test "schema:bad-linux-netdevice" {
	bad linux-netdevice 'linux.netDevices["eth0"].name'
}

@test "schema:bad-linux-rdma" {
	bad linux-rdma 'linux.resources.rdma["mlx5_1"].hcaHandles'
}

@test "schema:bad-freebsd-vnet-disable" {
	bad freebsd-vnet-disable freebsd.jail.vnet
}

@test "schema:bad-invalid-json" {
	cp "$root/tests/data/oci/config/bad/invalid-json.json" "$config"
	run oci_create
	refused
	run oci_state
	refused
}
