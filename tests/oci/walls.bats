#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What was once asked for and not had: a cover over the root that hides nothing, a number that becomes another, a file that
# is not read, a directory of the host that could be written to. Each is refused by name, or done.
load common
load linux

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

# ---- what an attacker from inside found ----

@test "a startContainer hook, whose program is the image's, is behind every wall of the process" {
	use_podman_config
	hook startContainer 'grep -E "^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status >/mark'
	edit '.process.user.uid = 1000 | .process.user.additionalGids = [] | .process.noNewPrivileges = true | .process.capabilities = {}
		| .linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["kcmp"], "action": "SCMP_ACT_ERRNO"}]}'
	touch "$rootfs/mark"
	chmod 0666 "$rootfs/mark"
	script_runs true
	grep -qP '^Uid:\t1000\t1000\t1000\t1000$' "$rootfs/mark"
	grep -qP '^CapEff:\t0+$' "$rootfs/mark"
	grep -qP '^CapBnd:\t0+$' "$rootfs/mark"
	grep -qP '^NoNewPrivs:\t1$' "$rootfs/mark"
	grep -qP '^Seccomp:\t2$' "$rootfs/mark"
}

@test "what covers a masked file cannot change the host's null device" {
	copied_dev '</dev/zero'
	use_podman_config
	edit '.linux.maskedPaths = ["/proc/version"]'
	script_runs 'test -c /proc/version && ! chmod 0600 /proc/version && ! chown 7:7 /proc/version && echo held'
	[ "${lines[-1]}" = held ] || show
	[ "$(stat -c '%u:%g %a' "$here/dev/null")" = '0:0 666' ]
}

# A container that shares the host's pids, root without a capability: does it get hold of a process that enters a new user
# namespace, which the host's root owns? By its namespaces it would be its root.
@test "who builds a container in a user namespace lets no other process of root's near" {
	use_user_namespace
	cat >"$here/attack.py" <<-'END'
		import os, sys
		own, seen, stop = os.readlink("/proc/self/ns/user"), set(), sys.argv[1]
		print("looking", flush=True)
		tries = 0
		while not os.path.exists(stop):
		    for pid in [name for name in os.listdir("/proc") if name.isdigit() and name not in seen]:
		        try:
		            if open(f"/proc/{pid}/comm").read().strip() != "agentdock-runti":
		                continue
		            tries += 1
		            if os.readlink(f"/proc/{pid}/ns/user") != own:
		                print("got", pid)
		                sys.exit()
		        except OSError:
		            pass
		print("looked" if tries else "saw nobody")
	END
	setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all python3 "$here/attack.py" "$here/stop" >"$here/attack.out" &
	until_true grep -qs looking "$here/attack.out"
	for ((round = 0; round < 20; round++)); do
		oci_create && oci_delete --force || break
	done
	touch "$here/stop"
	wait
	[ "$(tail -n 1 "$here/attack.out")" = looked ] || cat "$here/attack.out"
	[ "$(tail -n 1 "$here/attack.out")" = looked ]
}
