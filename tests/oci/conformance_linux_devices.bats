#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "Devices", "Default Devices" and "Allowed Device list" of the runtime-spec's config-linux.md.

load linux

# with_device JSON [SCRIPT]: a container with this in linux.devices; what stat says of /dev/thing unless there is a SCRIPT
with_device() {
	edit ".linux.devices += [$1]"
	script_runs "${2-stat -c '%F %t:%T %a %u:%g' /dev/thing}"
}

# ---- Devices ----

@test "linux:devices-1 what is listed must be available: type c" {
	with_device '{"type": "c", "path": "/dev/thing", "major": 1, "minor": 3, "fileMode": 438, "uid": 0, "gid": 0}'
	says 'character special file 1:3 666 0:0'
}

@test "linux:devices-2 what is listed must be available: type b" {
	with_device '{"type": "b", "path": "/dev/thing", "major": 7, "minor": 200, "fileMode": 384}'
	says 'block special file 7:c8 600 0:0'
}

@test "linux:devices-3 what is listed must be available: type u" {
	with_device '{"type": "u", "path": "/dev/thing", "major": 1, "minor": 5, "fileMode": 420}'
	says 'character special file 1:5 644 0:0'
}

@test "linux:devices-4 what is listed must be available: type p" {
	with_device '{"type": "p", "path": "/dev/thing", "fileMode": 384}' 'stat -c "%F %a" /dev/thing'
	says 'fifo 600'
}

@test "linux:devices-5 a device works" {
	edit '.linux.devices += [{"type": "c", "path": "/dev/thing", "major": 1, "minor": 5}]'
	script_runs 'head -c 3 /dev/thing | od -An -tx1'
	says ' 00 00 00'
}

@test "linux:devices-6 path may be anywhere, notably outside of /dev" {
	with_device '{"type": "c", "path": "/home/deep/er/thing", "major": 1, "minor": 3}' \
		'stat -c "%F %t:%T" /home/deep/er/thing'
	says 'character special file 1:3'
}

@test "linux:devices-7 type is required" {
	refuses '.linux.devices = [{"path": "/dev/thing", "major": 1, "minor": 3}]' 'linux.devices[0].type'
}

@test "linux:devices-8 path is required" {
	refuses '.linux.devices = [{"type": "c", "major": 1, "minor": 3}]' 'linux.devices[0].path'
}

@test "linux:devices-9 major is required" {
	refuses '.linux.devices = [{"type": "c", "path": "/dev/thing", "minor": 3}]' 'linux.devices[0].major'
}

@test "linux:devices-10 minor is required" {
	refuses '.linux.devices = [{"type": "c", "path": "/dev/thing", "major": 1}]' 'linux.devices[0].minor'
}

@test "linux:devices-11 a type that is none of the four is an error" {
	refuses '.linux.devices = [{"type": "s", "path": "/dev/thing", "major": 1, "minor": 3}]' 'linux.devices[0].type'
}

@test "linux:devices-12 a file at path that does not match must be an error: a regular file" {
	: >"$rootfs/home/thing"
	refuses '.linux.devices = [{"type": "c", "path": "/home/thing", "major": 1, "minor": 3}]' /home/thing
	[ -f "$rootfs/home/thing" ]
}

@test "linux:devices-13 a file at path that does not match must be an error: a directory" {
	mkdir "$rootfs/home/thing"
	refuses '.linux.devices = [{"type": "c", "path": "/home/thing", "major": 1, "minor": 3}]' /home/thing
}

@test "linux:devices-14 a file at path that does not match must be an error: other numbers" {
	mknod "$rootfs/home/thing" c 1 5
	refuses '.linux.devices = [{"type": "c", "path": "/home/thing", "major": 1, "minor": 3}]' /home/thing
}

@test "linux:devices-15 a file at path that does not match must be an error: another type" {
	mknod "$rootfs/home/thing" b 1 3
	refuses '.linux.devices = [{"type": "c", "path": "/home/thing", "major": 1, "minor": 3}]' /home/thing
}

@test "linux:devices-16 a file at path that does not match must be an error: a symbolic link" {
	ln -s /etc/passwd "$rootfs/home/thing"
	refuses '.linux.devices = [{"type": "c", "path": "/home/thing", "major": 1, "minor": 3}]' /home/thing
	[ -f "$rootfs/etc/passwd" ]
}

@test "linux:devices-17 a file at path that matches is used" {
	mknod "$rootfs/home/thing" c 1 3
	with_device '{"type": "c", "path": "/home/thing", "major": 1, "minor": 3}' 'echo lost >/home/thing && echo ok'
	says ok
}

@test "linux:devices-18 inside a user namespace devices are available as well" {
	use_user_namespace
	with_device '{"type": "c", "path": "/dev/kmsg", "major": 1, "minor": 11}' 'stat -c "%F %t:%T" /dev/kmsg'
	says 'character special file 1:b'
}

@test "key:linux.devices.fileMode" {
	edit '.process.user.umask = 63'
	with_device '{"type": "c", "path": "/dev/thing", "major": 1, "minor": 3, "fileMode": 326}'
	says 'character special file 1:3 506 0:0'
}

@test "key:linux.devices.uid" {
	with_device '{"type": "c", "path": "/dev/thing", "major": 1, "minor": 3, "fileMode": 438, "uid": 1234}'
	says 'character special file 1:3 666 1234:0'
}

@test "key:linux.devices.gid" {
	with_device '{"type": "c", "path": "/dev/thing", "major": 1, "minor": 3, "fileMode": 438, "gid": 4321}'
	says 'character special file 1:3 666 0:4321'
}

# ---- Default Devices ----

# by_default NAME NUMBERS: available though nobody listed it, on a fresh /dev
by_default() {
	edit '.mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
		"options": ["nosuid", "mode=755", "size=65536k"]}]'
	script_runs "stat -c '%F %t:%T' /dev/$1"
	says "character special file $2"
}

@test "linux:default-devices-1 /dev/null must be supplied" {
	by_default null 1:3
}

@test "linux:default-devices-2 /dev/zero must be supplied" {
	by_default zero 1:5
}

@test "linux:default-devices-3 /dev/full must be supplied" {
	by_default full 1:7
}

@test "linux:default-devices-4 /dev/random must be supplied" {
	by_default random 1:8
}

@test "linux:default-devices-5 /dev/urandom must be supplied" {
	by_default urandom 1:9
}

@test "linux:default-devices-6 /dev/tty must be supplied" {
	by_default tty 5:0
}

@test "linux:default-devices-7 /dev/console is set up if terminal is enabled" {
	use_podman_config
	edit '.process.terminal = true'
	script '[ -c /dev/console ] && echo written >/dev/console; grep -c " /dev/console " /proc/self/mountinfo'
	on_a_terminal
	[ "$output" = $'written\n1' ] || show
}

@test "linux:default-devices-8 /dev/ptmx must be of the container's /dev/pts" {
	use_podman_config
	script_runs 'readlink /dev/ptmx || grep " /dev/ptmx " /proc/self/mountinfo'
	[[ $output == @(pts/ptmx|/dev/pts/ptmx) || $output == *"/ptmx /dev/ptmx "*devpts* ]] || show
}

@test "linux:default-devices-9 they are usable by every user" {
	use_podman_config
	edit '.process.user = {"uid": 1000, "gid": 1000} | .process.capabilities = {}'
	script_runs 'echo x >/dev/null && head -c 2 /dev/zero | od -An -tx1 && head -c 1 /dev/urandom | wc -c &&
		{ echo x >/dev/full; } 2>/dev/null || echo full'
	says $' 00 00\n1\nfull'
}

# keeps_nodes: the host's nodes are as they were, whatever the program did to them. The host's are copies of them here, for
# there are runtimes that fail.
keeps_nodes() {
	copied_dev '</dev/null'
	script_runs 'for name in null zero full random urandom tty; do
			chmod 600 /dev/$name; chown 7:7 /dev/$name
		done 2>/dev/null; echo ok'
	says ok
	run stat -c '%u:%g %a' "$here"/dev/{null,zero,full,random,urandom,tty}
	[ "$(printf '%s\n' "${lines[@]}" | uniq)" = '0:0 666' ] || show
}

@test "case:R7 the host's nodes keep their owner and mode, whatever the container's user" {
	edit '.process.user = {"uid": 1000, "gid": 1000}'
	keeps_nodes
}

@test "case:R7 in a user namespace the host's nodes keep their owner and mode" {
	use_user_namespace
	keeps_nodes
}

# ---- Allowed Device list ----

# may RULES EXPECTED: with these in linux.resources.devices, what the container may do with /home/kmsg (c 1:11), which is
# none of the default devices: r and w. What mknod may make is another matter: runtimes allow all of it by default.
may() {
	edit ".linux.resources.devices = $1"
	mknod -m 666 "$rootfs/home/kmsg" c 1 11
	capable CAP_SYSLOG
	script_runs 'may=
		(: </home/kmsg) 2>/dev/null && may=r
		(: >/home/kmsg) 2>/dev/null && may=${may}w
		echo "${may:-nothing}"'
	says "$2"
}

@test "linux:allowed-devices-1 entries must be applied in the listed order: allowed after all were denied" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "rwm"}]' rw
}

@test "linux:allowed-devices-2 entries must be applied in the listed order: denied after all were allowed" {
	may '[{"allow": true, "access": "rwm"}, {"allow": false, "type": "c", "major": 1, "minor": 11, "access": "rwm"}]' nothing
}

@test "linux:allowed-devices-3 entries must be applied in the listed order: the last word counts" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "rwm"},
		{"allow": false, "type": "c", "major": 1, "minor": 11, "access": "rwm"}]' nothing
}

@test "linux:allowed-devices-4 a part of an access is taken back" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "rwm"},
		{"allow": false, "type": "c", "major": 1, "minor": 11, "access": "w"}]' r
}

@test "linux:allowed-devices-5 allow is required" {
	refuses '.linux.resources.devices = [{"access": "rwm"}]' 'linux.resources.devices[0].allow'
}

@test "linux:allowed-devices-6 with all denied the default devices are usable" {
	edit '.linux.resources.devices = [{"allow": false, "access": "rwm"}]'
	script_runs 'echo x >/dev/null && head -c 1 /dev/zero | od -An -tx1'
	says ' 00'
}

@test "linux:allowed-devices-7 with all denied a device of linux.devices is usable only if it is allowed as well" {
	capable CAP_SYSLOG
	edit '.linux.resources.devices = [{"allow": false, "access": "rwm"}]
		| .linux.devices = [{"type": "c", "path": "/dev/kmsg", "major": 1, "minor": 11, "fileMode": 438}]'
	script_runs '(: </dev/kmsg) 2>/dev/null && echo read || echo denied'
	says denied
}

@test "linux:allowed-devices-8 an entry without access allows nothing, or is an error" {
	edit '.linux.resources.devices = [{"allow": false, "access": "rwm"},
		{"allow": true, "type": "c", "major": 1, "minor": 11}]'
	mknod -m 666 "$rootfs/home/kmsg" c 1 11
	capable CAP_SYSLOG
	script '(: </home/kmsg) 2>/dev/null && echo read || echo denied'
	run oci_run
	if [ "$status" -eq 0 ]; then says denied; elif runtime_is agentdock-runtime; then refused access; fi
}

@test "key:linux.resources.devices.access: r" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "r"}]' r
}

@test "key:linux.resources.devices.access: w" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "w"}]' w
}

# may_make RULES EXPECTED
may_make() {
	edit ".linux.resources.devices = $1"
	capable CAP_MKNOD
	script_runs 'mknod /home/new c 1 11 2>/dev/null && echo made || echo denied'
	says "$2"
}

@test "key:linux.resources.devices.access: m" {
	may_make '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "m"}]' made
}

@test "key:linux.resources.devices.access: m, denied" {
	may_make '[{"allow": true, "access": "rwm"}, {"allow": false, "type": "c", "major": 1, "minor": 11, "access": "m"}]' denied
}

@test "key:linux.resources.devices.type: a" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "a", "access": "rwm"}]' rw
}

@test "key:linux.resources.devices.type: unset is all" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "access": "rwm"}]' rw
}

@test "key:linux.resources.devices.type: b is not c" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "b", "major": 1, "minor": 11, "access": "rw"}]' nothing
}

@test "key:linux.resources.devices.major: unset is all" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "minor": 11, "access": "rw"}]' rw
}

@test "key:linux.resources.devices.major: another one" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 2, "minor": 11, "access": "rw"}]' nothing
}

@test "key:linux.resources.devices.minor: unset is all" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "access": "rw"}]' rw
}

@test "key:linux.resources.devices.minor: another one" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 12, "access": "rw"}]' nothing
}

@test "key:linux.resources.devices.minor: -1 is all" {
	may '[{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": -1, "access": "rw"}]' rw
}

@test "key:linux.resources.devices.allow: false denies what nobody spoke of before" {
	may '[{"allow": false, "type": "c", "major": 1, "minor": 11, "access": "rwm"}]' nothing
}
