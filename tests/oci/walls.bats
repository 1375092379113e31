#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What was once asked for and not had: a cover over the root that hides nothing, a number that becomes another, a file that
# is not read, a directory of the host that could be written to. Each is refused by name, or done.
load common

@test "the root cannot be masked, by whatever path it is named" {
	for path in / /.. /tmp/.. //; do
		mkdir -p "$rootfs/tmp"
		refuses ".linux.maskedPaths = [\"$path\"]" 'linux.maskedPaths[0]: is the root of the container'
	done
}

@test "a read-only path that is the root is refused, and the way out told" {
	refuses '.linux.readonlyPaths = ["/"]' 'linux.readonlyPaths[0]: is the root of the container; root.readonly protects it'
}

@test "a file system over the root is refused, by whatever path the root is named" {
	for path in / /.. /tmp/.. /link; do
		mkdir -p "$rootfs/tmp"
		ln -sfn / "$rootfs/link"
		refuses ".mounts = [{destination: \"$path\", type: \"tmpfs\", source: \"tmpfs\"}]" \
			'destination: only a bind mount can cover the root'
	done
}

@test "a masked path with more slashes than it needs is masked" {
	use_podman_config
	edit '.linux.maskedPaths = ["/proc//version"]'
	script_runs 'cat /proc/version; echo end'
	[ "$output" = end ]
}

@test "a device's number that the kernel does not have is refused" {
	refuses '.linux.devices = [{path: "/dev/x", type: "c", major: 4294967297, minor: 3}]' \
		'linux.devices[0]: Linux has no device 4294967297:3'
}

@test "--config names another file of the bundle, or one anywhere, and one that is not there is an error" {
	script 'echo from config.json'
	jq '.process.args[2] = "echo from other.json"' "$bundle/config.json" >"$bundle/other.json"
	run oci run --bundle "$bundle" --config other.json "$id"
	says 'from other.json'
	mv "$bundle/other.json" "$here/third.json"
	run oci run --bundle "$bundle" --config "$here/third.json" "$id"
	says 'from other.json'
	run oci run --bundle "$bundle" --config gone.json "$id"
	[ "$status" -eq 125 ]
	refused 'gone.json'
}

@test "a store of another user is not believed" {
	oci_create
	chown 12345 "$store"
	run oci delete --force "$id"
	refused 'belongs to user 12345'
	run oci state "$id"
	refused 'belongs to user 12345'
	chown 0 "$store"
	chown 12345 "$store/$id"
	run oci start "$id"
	refused 'belongs to user 12345'
	chown 0 "$store/$id"
}

@test "nothing can be written to the directory of the notify socket" {
	script 'echo x >/run/notify/file; grep " /run/notify " /proc/self/mountinfo | cut -d " " -f 6 >/mark; read -r line </wait'
	NOTIFY_SOCKET=$here/nobody oci_create
	(NOTIFY_SOCKET='' oci_start)
	until_true test -s "$rootfs/mark"
	[ ! -e "$store/$id/notify/file" ]
	for option in ro nosuid nodev noexec; do
		grep -qw "$option" "$rootfs/mark"
	done
}

@test "so many descriptors to keep that no process has them are refused" {
	run oci run --preserve-fds 2147483647 --bundle "$bundle" "$id"
	[ "$status" -eq 125 ]
	refused 'preserve-fds'
}
