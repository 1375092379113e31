#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a container sees: "Mounts" and "Linux mount options" in config.md, "Default Filesystems", "Devices", "Default
# Devices", "Rootfs Mount Propagation", "Masked Paths", "Readonly Paths" in config-linux.md.
load common

# mount_it DESTINATION TYPE SOURCE [OPTION...]: adds a mount to the configuration
mount_it() {
	# shellcheck disable=SC2016 # jq's
	edit '.mounts += [{destination: $ARGS.positional[0], type: $ARGS.positional[1], source: $ARGS.positional[2],
		options: $ARGS.positional[3:]}]' --args -- "$@"
}

# tree DIRECTORY: a directory with a file, and another file system below it that has one too
tree() {
	mkdir -p "$1/sub"
	mount -t tmpfs tmpfs "$1/sub"
	echo above >"$1/file"
	echo below >"$1/sub/file"
}

# options_of PLACE: as the container's mountinfo has them
options_of() {
	awk -v place="$1" '$5 == place { print $6 }' <<<"$output"
}

# The optional fields: shared:N, master:N, unbindable
propagation_of() {
	awk -v place="$1" '$5 == place { for (i = 7; $i != "-"; i++) printf "%s ", $i; print "." }' <<<"$output"
}

has() {
	[[ ,$(options_of "$1"), == *,$2,* ]] || { echo "$1 has no $2: $(options_of "$1")"; return 1; }
}

has_not() {
	[[ ,$(options_of "$1"), != *,$2,* ]] || { echo "$1 has $2: $(options_of "$1")"; return 1; }
}

mounts_are_shown() {
	script_runs 'cat /proc/self/mountinfo'
}

@test "what engines ask for is there, in its order, with its options" {
	use_podman_config
	mounts_are_shown
	[ "$(awk '{ print $5 }' <<<"$output" | grep -v '^/sys/fs/cgroup/\|^/proc/.\|^/sys/[^f]\|^/sys/f.*[xe]$' | xargs)" = \
		"/ /proc /dev /sys /dev/pts /dev/mqueue /dev/shm /sys/fs/cgroup" ]
	has /proc noexec
	has /dev nosuid
	has_not /dev relatime
	has /sys ro
	has /dev/pts nosuid
	has /dev/shm nodev
	has /sys/fs/cgroup ro
}

@test "default devices and links" {
	use_podman_config
	script_runs 'cd /dev; stat -c "%n %F %t:%T %a %u" null zero full random urandom tty; for l in fd stdin stdout stderr ptmx; do
		echo "$l $(readlink $l)"; done; [ -e console ] || echo no console; echo x >null; head -c 2 zero | wc -c; ls /dev/fd/'
	says "$(cat <<-END
		null character special file 1:3 666 0
		zero character special file 1:5 666 0
		full character special file 1:7 666 0
		random character special file 1:8 666 0
		urandom character special file 1:9 666 0
		tty character special file 5:0 666 0
		fd /proc/self/fd
		stdin /proc/self/fd/0
		stdout /proc/self/fd/1
		stderr /proc/self/fd/2
		ptmx pts/ptmx
		no console
		2
		0
		1
		2
		3
	END
	)"
}

@test "devices with mode and owner, outside of /dev too" {
	use_podman_config
	edit '.linux.devices = [
		{path: "/dev/net/fuse", type: "c", major: 10, minor: 229, fileMode: 8624, uid: 7, gid: 8},
		{path: "/opt/fifo", type: "p"},
		{path: "/dev/null", type: "u", major: 1, minor: 3, fileMode: 384}]'
	script_runs 'stat -c "%F %t:%T %a %u %g" /dev/net/fuse /opt/fifo /dev/null'
	says "$(printf '%s\n' 'character special file a:e5 660 7 8' 'fifo 0:0 666 0 0' 'character special file 1:3 600 0 0')"
}

@test "a device's place that is taken by another file is an error that names it" {
	touch "$rootfs/dev/zero"
	run oci_run
	refused /dev/zero "not this device"
	rm "$rootfs/dev/zero"
	mknod "$rootfs/dev/zero" c 1 5
	chmod 0600 "$rootfs/dev/zero"
	script_runs 'stat -c %a /dev/zero'
	says 600
}

@test "a /dev that is the host's is left alone" {
	mount_it /dev bind /dev rbind
	local before
	before=$(ls /dev)
	script_runs 'ls /dev'
	[ "$output" = "$before" ]
	[ "$(ls /dev)" = "$before" ]
}

@test "options of a file system" {
	local option
	for option in ro nosuid nodev noexec noatime nodiratime sync dirsync nosymfollow lazytime; do
		mount_it "/mnt/$option" tmpfs tmpfs "$option"
	done
	mount_it /mnt/strictatime tmpfs tmpfs nosuid strictatime
	mount_it /mnt/last tmpfs tmpfs ro noexec nosuid rw exec
	mount_it /mnt/tree tmpfs tmpfs rro rnoexec
	mount_it /mnt/data tmpfs tmpfs size=64k mode=0711 uid=5
	mount_it /mnt/ignored tmpfs tmpfs defaults async atime diratime suid dev loud norelatime nostrictatime symfollow \
		nolazytime nomand noiversion silent
	mounts_are_shown
	for option in ro nosuid nodev noexec noatime nodiratime nosymfollow; do
		has "/mnt/$option" "$option"
	done
	has_not /mnt/strictatime relatime
	has /mnt/last rw
	has /mnt/last nosuid
	has_not /mnt/last noexec
	has /mnt/tree ro
	has /mnt/tree noexec
	[ "$(options_of /mnt/ignored)" = rw,relatime ]
	[[ $(awk '$5 == "/mnt/sync"' <<<"$output") == *rw,sync* ]]
	[[ $(awk '$5 == "/mnt/data"' <<<"$output") == *size=64k,mode=711,uid=5* ]]
}

@test "options that a file system does not know are refused" {
	mount_it /mnt tmpfs tmpfs size=64k nonsense=1
	run oci_run
	refused "mounts[1] (/mnt)" nonsense=1
	edit '.mounts[1].options = [] | .mounts[1].type = "nosuchfs"'
	run oci_run
	refused "mounts[1] (/mnt)" nosuchfs
}

@test "bind: a file, a directory, what is below it or not, and where the target lacks" {
	tree "$here/source"
	echo file >"$here/single"
	mount_it /made/by/us bind "$here/source" bind
	mount_it /made/tree none "$here/source" rbind
	mount_it /made/file bind "$here/single" bind
	mount_it relative/place bind "$here/source" bind
	cp "$here/single" "$bundle/beside"
	mount_it /made/beside bind beside bind
	script_runs 'cat /made/by/us/file /made/tree/sub/file /made/file /relative/place/file /made/beside
		[ -e /made/by/us/sub/file ] || echo not below; stat -c %a /made /made/by'
	says "$(printf '%s\n' above below file above file 'not below' 755 755)"
}

@test "bind: options of the mount, and of all below it" {
	tree "$here/source"
	mount_it /mnt/one bind "$here/source" rbind ro nosuid
	mount_it /mnt/all bind "$here/source" rbind rro rnodev
	mount_it /mnt/but bind "$here/source" rbind rro rw
	mount_it /mnt/atime bind "$here/source" rbind rnoatime
	mounts_are_shown
	has /mnt/one ro
	has /mnt/one nosuid
	has /mnt/one/sub rw
	has_not /mnt/one/sub nosuid
	has /mnt/all ro
	has /mnt/all/sub ro
	has /mnt/all/sub nodev
	has /mnt/but rw
	has /mnt/but/sub ro
	has /mnt/atime/sub noatime
	[ "$(awk -v place="$here/source/sub" '$5 == place { print $6 }' /proc/self/mountinfo)" = rw,relatime ]
}

@test "bind: the source is missing, or is of another kind than the target" {
	mount_it /mnt bind "$here/nothing" bind
	run oci_run
	refused "mounts[1] (/mnt)" "$here/nothing"
	edit '.mounts[1].source = "/etc/hostname" | .mounts[1].destination = "/etc"'
	run oci_run
	refused "mounts[1] (/etc)" directory
	edit '.mounts[1].options = ["bind", "size=1k"]'
	run oci_run
	refused "mounts[1] (/etc)" size=1k
}

@test "bind over the root" {
	mkdir "$here/other"
	cp -a "$rootfs/." "$here/other"
	touch "$here/other/here"
	edit '.mounts = []'
	mount_it / bind "$here/other" rbind
	mount_it /proc proc proc
	script_runs 'ls /here; ls -d /proc/1'
	says "$(printf '%s\n' /here /proc/1)"
	[ -z "$(ls "$here/other/proc")" ]
}

@test "remount of what is mounted" {
	mount_it /mnt tmpfs tmpfs size=64k
	mount_it /mnt none none remount ro
	mount_it /tmp tmpfs tmpfs size=64k
	mount_it /tmp tmpfs tmpfs remount size=128k sync
	mount_it /var bind "$here" bind
	mount_it /var none none bind remount ro noexec
	mounts_are_shown
	has /mnt ro
	has /var ro
	has /var noexec
	[[ $(awk '$5 == "/tmp"' <<<"$output") == *size=128k* ]]
	edit '.mounts = .mounts[:1]'
	mount_it /mnt none none remount ro
	run oci_run
	refused "mounts[1] (/mnt)" "mounted there"
}

# Where the runtime is shown cgroup v1 alone, that is done by a mount namespace of private mounts.
needs_the_hosts_mounts() {
	[ "$(cgroup_view)" != v1 ] || [ ! -d /sys/fs/cgroup/unified ] || skip "the runtime's own mounts are private"
}

@test "propagation of bind mounts" {
	needs_the_hosts_mounts
	tree "$here/source"
	mount --make-rshared "$here/source/sub"
	mount_it /mnt/none bind "$here/source" rbind
	mount_it /mnt/private bind "$here/source" rbind rprivate
	mount_it /mnt/slave bind "$here/source" rbind rslave
	mount_it /mnt/shared bind "$here/source" rbind rshared
	mount_it /mnt/unbindable bind "$here/source" rbind runbindable
	mount_it /mnt/tmp tmpfs tmpfs shared
	mount_it /mnt/tmp/of/it none none private
	edit 'del(.mounts[-1])'
	mounts_are_shown
	[[ $(propagation_of /mnt/none/sub) == "master:"* ]]
	[ "$(propagation_of /mnt/private/sub)" = . ]
	[[ $(propagation_of /mnt/slave/sub) == "master:"* ]]
	[[ $(propagation_of /mnt/shared/sub) == shared:*master:* ]]
	[[ $(propagation_of /mnt/unbindable/sub) == "unbindable"* ]]
	[[ $(propagation_of /mnt/tmp) == shared:* ]]
}

@test "what is mounted below a slave on the host is seen, below a private one not" {
	needs_the_hosts_mounts
	tree "$here/source"
	mount --make-rshared "$here/source/sub"
	mkdir "$here/source/sub/later"
	mount_it /mnt bind "$here/source" rbind rslave
	mount_it /var bind "$here/source" rbind rprivate
	up_until_told
	mount -t tmpfs tmpfs "$here/source/sub/later"
	touch "$here/source/sub/later/mounted"
	oci_exec ls /mnt/sub/later/mounted
	run ! oci_exec ls /var/sub/later/mounted
	tell
	umount "$here/source/sub/later"
}

@test "only a container whose root is shared hands mounts back" {
	needs_the_hosts_mounts
	tree "$here/source"
	mount --make-rshared "$here/source/sub"
	mkdir "$here/source/sub/inside"
	mount_it /mnt bind "$here/source" rbind rshared
	up_until_told 'mount -t tmpfs tmpfs /mnt/sub/inside; touch /mnt/sub/inside/mounted'
	[ ! -e "$here/source/sub/inside/mounted" ]
	tell
	until_true oci_status_is stopped
	oci_delete
	edit '.linux.rootfsPropagation = "shared"'
	up_until_told 'mount -t tmpfs tmpfs /mnt/sub/inside; touch /mnt/sub/inside/mounted'
	[ -e "$here/source/sub/inside/mounted" ]
	tell
}

@test "propagation of the root; the host sees nothing of what is mounted in it" {
	local word
	for word in private slave shared unbindable rslave; do
		edit ".linux.rootfsPropagation = \"$word\""
		mounts_are_shown
		case $word in
		private) [ "$(propagation_of /)" = . ] ;;
		shared) [[ $(propagation_of /) == shared:* ]] ;;
		unbindable) [[ $(propagation_of /) == unbindable* ]] ;;
		esac
		run ! grep -F "$rootfs" /proc/self/mountinfo
	done
}

@test "the root's own mount may be shared on the host" {
	mount --bind "$rootfs" "$rootfs"
	mount --make-shared "$rootfs"
	up_until_told
	[ "$(grep -c -F "$rootfs" /proc/self/mountinfo)" = 1 ]
	[ -z "$(ls "$rootfs/proc")" ]
	tell
}

@test "tmpcopyup" {
	mkdir -p "$rootfs/data/deep"
	echo text >"$rootfs/data/deep/file"
	chown 3:4 "$rootfs/data/deep/file"
	chmod 4755 "$rootfs/data/deep/file"
	touch -d 2001-01-01 "$rootfs/data/deep/file"
	ln -s /etc/passwd "$rootfs/data/link"
	mkfifo "$rootfs/data/fifo"
	chmod 0710 "$rootfs/data"
	setfattr -n user.note -v here "$rootfs/data/deep/file" 2>/dev/null || true
	mount_it /data tmpfs tmpfs tmpcopyup ro
	script_runs 'cd /data; cat deep/file; stat -c "%a %u %g %Y" deep/file; readlink link; stat -c "%F %a" fifo .
		touch new 2>/dev/null || echo read-only'
	says "$(printf '%s\n' text '4755 3 4 978307200' /etc/passwd 'fifo 644' 'directory 710' read-only)"
	[ "$(ls "$rootfs/data")" = "$(printf '%s\n' deep fifo link)" ]
}

@test "links of the image on the way to a target lead to places in the image" {
	mkdir "$here/outside"
	ln -s "$here/outside" "$rootfs/absolute"
	ln -s ../../../../../../../../tmp "$rootfs/var/up"
	ln -s /nowhere/yet "$rootfs/dangling"
	ln -s not/there "$rootfs/mnt/relative"
	ln -s loop "$rootfs/loop"
	touch "$here/single"
	mount_it /absolute/made tmpfs tmpfs
	mount_it /var/up/made tmpfs tmpfs
	mount_it /dangling/made tmpfs tmpfs
	mount_it /mnt/relative bind "$here/single" bind
	mount_it ../../../../escape tmpfs tmpfs
	mounts_are_shown
	[ -n "$(options_of "$here/outside/made")" ]
	[ -n "$(options_of /tmp/made)" ]
	[ -n "$(options_of /nowhere/yet/made)" ]
	[ -n "$(options_of /mnt/not/there)" ]
	[ -n "$(options_of /escape)" ]
	[ -z "$(ls "$here/outside")" ]
	[ ! -e /tmp/made ] && [ ! -e /nowhere ] && [ ! -e "$here/escape" ]
	mount_it /loop tmpfs tmpfs
	run oci_run
	refused "mounts[6] (/loop)"
}

@test "procfs and sysfs are mounted where their names say, or not at all" {
	rmdir "$rootfs/proc"
	ln -s tmp "$rootfs/proc"
	run oci_run
	refused "mounts[0] (/proc)" link
	rm "$rootfs/proc"
	ln -s /proc "$rootfs/sys"
	rmdir "$rootfs/sys" 2>/dev/null || true
	mkdir "$rootfs/proc"
	rm -rf "$rootfs/sys"
	ln -s tmp "$rootfs/sys"
	mount_it /sys sysfs sysfs
	run oci_run
	refused "mounts[1] (/sys)" link
}

@test "nothing but known files of procfs is covered" {
	local place
	echo mine >"$here/file"
	mkdir "$here/dir"
	mount_it /proc/meminfo bind "$here/file" bind
	script_runs 'cat /proc/meminfo'
	says mine
	for place in /proc/self/attr/current /proc/1/status /proc/sys/kernel/hostname /link/uptime; do
		edit ".mounts = .mounts[:1]"
		ln -sfn /proc "$rootfs/link"
		mount_it "$place" bind "$here/file" bind
		run oci_run
		refused "mounts[1] ($place)" procfs
	done
	for place in /proc /proc/self /proc/sys/net; do
		edit ".mounts = .mounts[:1]"
		mount_it "$place" tmpfs tmpfs
		run oci_run
		refused "mounts[1] ($place)" procfs
		edit ".mounts = .mounts[:1]"
		mount_it "$place" bind "$here/dir" bind
		run oci_run
		refused "mounts[1] ($place)" procfs
	done
}

@test "procfs takes its own options" {
	edit '.mounts[0].options = ["hidepid=2", "nosuid"]'
	mounts_are_shown
	[[ $output == *hidepid=invisible* ]]
}

@test "masked paths are empty and stay so; paths that are missing are skipped" {
	echo secret >"$rootfs/etc/secret"
	ln -s secret "$rootfs/etc/link"
	mkdir "$rootfs/private"
	touch "$rootfs/private/file"
	edit '.linux.maskedPaths = ["/proc/keys", "/proc/acpi", "/proc/nothing", "/proc/keys/below", "/etc/link", "/private",
		"/proc/timer_list", "/proc/irq"]'
	script_runs 'cat /proc/keys /etc/secret /proc/timer_list; ls -A /private /proc/irq; stat -c %t:%T /etc/secret
		touch /private/new 2>/dev/null || echo read-only'
	says "$(printf '%s\n' /private: '' /proc/irq: 1:3 read-only)"
	[ "$(cat "$rootfs/etc/secret")" = secret ]
}

@test "the null device that masks files is the host's, whatever the image has" {
	rm -rf "$rootfs/dev"
	mkdir "$rootfs/dev"
	echo fake >"$here/fake"
	edit '.linux.maskedPaths = ["/proc/keys"]'
	mount_it /dev bind "$here/dev" bind
	mkdir "$here/dev"
	ln -s /proc/sys/kernel/core_pattern "$here/dev/null"
	script_runs 'stat -c %t:%T /proc/keys; cat /proc/keys'
	says 1:3
}

@test "read-only paths, and what is mounted below them" {
	mkdir -p "$rootfs/data"
	mount_it /data/sub tmpfs tmpfs
	edit '.linux.readonlyPaths = ["/proc/sys", "/data", "/nothing"]'
	script_runs 'for f in /proc/sys/kernel/domainname /data/file /data/sub/file; do
		{ echo x >$f; } 2>/dev/null || echo "$f is read-only"; done'
	says "$(printf '%s is read-only\n' /proc/sys/kernel/domainname /data/file /data/sub/file)"
}

@test "a read-only root" {
	edit '.root.readonly = true'
	mount_it /tmp tmpfs tmpfs
	script_runs 'touch /file 2>/dev/null || echo read-only; touch /tmp/file && echo writable'
	says "$(printf '%s\n' read-only writable)"
}

@test "nothing of the host is left in the mount table" {
	local args
	for args in "" --no-pivot; do
		# shellcheck disable=SC2086 # none or one
		script_runs 'awk "{ print \$5 }" /proc/self/mountinfo; ls /' $args
		[[ $output != *vda* ]]
		[ "$(sed -n 1p <<<"$output")" = / ] || [ -n "$args" ]
		[[ $output == *ready* ]]
	done
}

@test "--no-pivot: no procfs of the host is in reach" {
	edit '.process.capabilities[] += ["CAP_SYS_CHROOT"]'
	script_runs 'ls -d /proc/1 >/dev/null; cd /..; ls -d ready; chroot / sh -c "cd ../../..; ls -d ready"' --no-pivot
	says "$(printf '%s\n' ready ready)"
	script_runs 'cat /proc/self/mountinfo' --no-pivot
	[ "$(grep -c ' - proc ' <<<"$output")" = 1 ]
}

@test "a mount namespace of others: only the root's own place in it changes, and no other namespace" {
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare --mount --propagation private sh -c 'echo $$ >"$1/pid"; exec sleep 60' sh "$here" 3>&- &
	until_true [ -s "$here/pid" ]
	local pid
	pid=$(cat "$here/pid")
	edit "(.linux.namespaces[] | select(.type == \"mount\")).path = \"/proc/$pid/ns/mnt\""
	mount_it /mnt tmpfs tmpfs
	script_runs 'ls -d /ready /proc/1'
	says "$(printf '%s\n' /proc/1 /ready)"
	[ "$(nsenter -t "$pid" -m ls -d "$root/README.md")" = "$root/README.md" ]
	run ! grep -F "$here" /proc/self/mountinfo
	nsenter -t "$pid" -m umount -R "$rootfs"
	nsenter -t "$pid" -m mount --bind "$here" "$here"
	nsenter -t "$pid" -m mount --make-shared "$here"
	run oci_run
	refused linux.namespaces shared
	kill "$pid"
}

@test "the container's own groups, and nothing above them" {
	use_podman_config
	if [ "$(cgroup_view)" = v2 ]; then
		script_runs 'cd /sys/fs/cgroup; grep -x 1 cgroup.procs; cat pids.max; mkdir x 2>/dev/null || echo read-only'
		says "$(printf '%s\n' 1 2048 read-only)"
		return
	fi
	script_runs 'cd /sys/fs/cgroup; grep -x 1 pids/cgroup.procs; cat pids/pids.max
		mkdir pids/x 2>/dev/null || echo read-only; ls -d memory cpu systemd'
	says "$(printf '%s\n' 1 2048 read-only cpu memory systemd)"
}

@test "cgroup2 where there is no such tree is refused" {
	[ "$(cgroup_view)" = v1 ] || skip "a host without cgroup v2"
	mount_it /sys/fs/cgroup cgroup2 cgroup
	run oci_run
	refused "mounts[1]" "cgroup v2"
}

@test "mountLabel without SELinux is refused" {
	[ ! -d /sys/fs/selinux ] || skip "SELinux is here"
	mount_it /mnt tmpfs tmpfs
	edit '.linux.mountLabel = "system_u:object_r:container_file_t:s0"'
	run oci_run
	refused linux.mountLabel SELinux
}

# ---- user namespaces ----

@test "user namespace: devices are the host's own, which keep owner and mode" {
	local before
	before=$(stat -c '%a %u %g' /dev/null /dev/tty)
	use_podman_config
	use_user_namespace
	edit '.linux.devices = [{path: "/dev/fuse", type: "c", major: 10, minor: 229, fileMode: 511, uid: 5}]'
	[ -e /dev/fuse ] || edit 'del(.linux.devices)'
	script_runs 'stat -c %t:%T /dev/null; echo x >/dev/null; head -c 3 /dev/zero | wc -c'
	says "$(printf '%s\n' 1:3 3)"
	[ "$(stat -c '%a %u %g' /dev/null /dev/tty)" = "$before" ]
}

@test "user namespace: a device that the host lacks is refused by its name" {
	use_user_namespace
	edit '.linux.devices = [{path: "/dev/null2", type: "c", major: 1, minor: 3}]'
	run oci_run
	refused "linux.devices[0]" /dev/null2
	edit '.linux.devices = [{path: "/dev/zero", type: "c", major: 1, minor: 3}]'
	run oci_run
	refused "linux.devices[0]" /dev/zero
}

@test "user namespace: a source that its root could not reach" {
	mkdir -p "$here/closed/source"
	echo text >"$here/closed/source/file"
	chmod 0700 "$here/closed"
	use_user_namespace
	mount_it /mnt bind "$here/closed/source" rbind ro
	script_runs 'cat /mnt/file; touch /mnt/new 2>/dev/null || echo read-only'
	says "$(printf '%s\n' text read-only)"
}

@test "user namespace: a bundle that its root could not reach" {
	use_user_namespace
	chmod 0700 "$bundle"
	script_runs 'ls -d /ready'
	says /ready
}

@test "user namespace: sysfs and procfs of the host where the namespace is the host's" {
	use_user_namespace
	mount_it /sys sysfs sysfs nosuid noexec nodev ro
	mounts_are_shown
	has /sys ro
	has /sys nosuid
	edit 'del(.linux.namespaces[] | select(.type == "pid"))'
	script_runs 'ls -d /proc/self /sys/class'
	says "$(printf '%s\n' /proc/self /sys/class)"
}

@test "user namespace: what the host has set of a mount, the container's root cannot lift" {
	use_user_namespace
	mkdir -p "$here/source" "$here/tree/sub"
	mount -t tmpfs -o mode=755 tmpfs "$here/source"
	mount -o remount,bind,ro,nosuid,nodev,noexec "$here/source"
	echo hidden >"$here/tree/sub/file"
	mount -t tmpfs -o mode=755 tmpfs "$here/tree/sub"
	mount_it /mnt bind "$here/source" rbind rw
	mount_it /home bind "$here/tree" rbind
	edit '.process.capabilities |= map_values(. + ["CAP_SYS_ADMIN"])'
	script 'for option in rw suid dev exec; do mount -o remount,bind,ro,nosuid,nodev,noexec,$option /mnt && echo $option; done
		umount /home/sub && cat /home/sub/file
		umount -l /mnt && echo gone'
	run --separate-stderr oci_run
	says gone
}

@test "a bind mount is not made writable by rw where the host's is read-only" {
	mkdir -p "$here/source"
	mount -t tmpfs -o mode=755 tmpfs "$here/source"
	mkdir "$here/source/sub"
	mount -t tmpfs -o mode=755 tmpfs "$here/source/sub"
	mount -o remount,bind,ro,noexec "$here/source"
	mount -o remount,bind,ro,noexec "$here/source/sub"
	mount_it /mnt bind "$here/source" rbind rw exec
	mount_it /home bind "$here/source" rbind rrw rexec
	mount_it /var bind "$here/source" rbind rro rw
	mounts_are_shown
	local place
	for place in /mnt /mnt/sub /home /home/sub /var; do
		has "$place" ro
		has "$place" noexec
	done
}

# ---- without privileges on the host ----

# In a user namespace whose mounts are locked by the one above, as engines without root run a runtime.
@test "a runtime that is root of a user namespace only: flags that are locked stay" {
	mkdir "$here/source"
	mount -t tmpfs -o nosuid,nodev,ro tmpfs "$here/source"
	mount_it /mnt/plain bind "$here/source" rbind
	mount_it /mnt/noexec bind "$here/source" rbind noexec
	mount_it /mnt/wants bind "$here/source" rbind rw suid dev noatime
	mount_it /sys sysfs sysfs nosuid noexec nodev ro
	edit '.linux.cgroupsPath = null | del(.linux.cgroupsPath)'
	script 'cat /proc/self/mountinfo; stat -c "%t:%T" /dev/null'
	run unshare --user --map-root-user --mount "$runtime" --root "$store" run --bundle "$bundle" "$id" </dev/null
	[ "$status" -eq 0 ] || show
	local place
	for place in plain noexec wants; do
		has "/mnt/$place" nosuid
		has "/mnt/$place" nodev
		has "/mnt/$place" ro
	done
	has /mnt/noexec noexec
	has /sys ro
	[[ $output == *1:3* ]]
}

@test "a user without privileges: its own user namespace does it all" {
	mkdir -m 0755 "$here/source"
	echo text >"$here/source/file"
	chown -R 1000:1000 "$here"
	mount_it /mnt bind "$here/source" rbind ro
	mount_it /dev tmpfs tmpfs nosuid mode=755
	mount_it /dev/pts devpts devpts newinstance ptmxmode=0666
	mount_it /sys sysfs sysfs nosuid noexec nodev ro
	# shellcheck disable=SC2016 # jq's
	edit '.linux.namespaces += [{"type": "user"}] | [{"containerID": 0, "hostID": 1000, "size": 1}] as $map
		| .linux.uidMappings = $map | .linux.gidMappings = $map | del(.linux.cgroupsPath)
		| .linux.maskedPaths = ["/proc/keys", "/proc/acpi"] | .linux.readonlyPaths = ["/proc/sys"]'
	script 'cat /mnt/file; echo x >/dev/null; stat -c %t:%T /dev/zero; cat /proc/keys; ls -d /sys/class; id -u'
	run setpriv --reuid 1000 --regid 1000 --clear-groups "$runtime" --root "$store" run --bundle "$bundle" "$id" </dev/null
	says "$(printf '%s\n' text 1:5 /sys/class 0)"
}

@test "a user without privileges is refused an idmapped mount by name" {
	mkdir -m 0755 "$here/source"
	chown -R 1000:1000 "$here"
	mount_it /mnt bind "$here/source" bind idmap
	# shellcheck disable=SC2016 # jq's
	edit '.linux.namespaces += [{"type": "user"}] | [{"containerID": 0, "hostID": 1000, "size": 1}] as $map
		| .linux.uidMappings = $map | .linux.gidMappings = $map | del(.linux.cgroupsPath)'
	run setpriv --reuid 1000 --regid 1000 --clear-groups "$runtime" --root "$store" run --bundle "$bundle" "$id" </dev/null
	refused 'mounts[1] (/mnt): uidMappings: without privileges no mount of the host can be idmapped'
}

# ---- ids ----

# Linux 5.12 and a file system that takes part: tmpfs does from 6.3 on.
ids_can_be_mapped() {
	[[ $stderr != *"cannot do that: use ext4"* ]] || skip "this file system's ids cannot be mapped"
}

@test "idmap: with mappings of its own, and with the container's" {
	mkdir "$here/source"
	touch "$here/source/file"
	chown 1:2 "$here/source/file"
	mount_it /mnt bind "$here/source" bind idmap
	edit '.mounts[1].uidMappings = [{containerID: 0, hostID: 1000, size: 10}]
		| .mounts[1].gidMappings = [{containerID: 0, hostID: 2000, size: 10}]'
	script_runs 'stat -c "%u %g" /mnt/file; touch /mnt/new 2>/dev/null || echo unmapped' || ids_can_be_mapped
	says "$(printf '%s\n' '1001 2002' unmapped)"
	use_user_namespace
	edit 'del(.mounts[1].uidMappings, .mounts[1].gidMappings)'
	script_runs 'stat -c "%u %g" /mnt/file; touch /mnt/new'
	says "1 2"
	[ "$(stat -c '%u %g' "$here/source/new")" = "0 0" ]
}

@test "idmap: of a tree, and of its top alone" {
	mkdir -p "$here/other" "$here/source/sub"
	mount --bind "$here/other" "$here/source/sub"
	touch "$here/source/file" "$here/source/sub/file"
	chown 1:1 "$here/source/file" "$here/source/sub/file"
	mount_it /mnt/one bind "$here/source" rbind idmap
	mount_it /mnt/all bind "$here/source" rbind ridmap
	edit '.mounts[1,2] |= (.uidMappings = [{containerID: 0, hostID: 10, size: 10}] | .gidMappings = .uidMappings)'
	script_runs 'stat -c %u /mnt/one/file /mnt/one/sub/file /mnt/all/file /mnt/all/sub/file' || ids_can_be_mapped
	says "$(printf '%s\n' 11 1 11 11)"
}

@test "idmap: without any mapping, or of a file system that cannot, is refused" {
	mount_it /mnt bind "$here" bind idmap
	run oci_run
	refused "mounts[1]" uidMappings
	edit '.mounts[1].source = "/proc/sys" | .mounts[1].uidMappings = [{containerID: 0, hostID: 1, size: 1}]
		| .mounts[1].gidMappings = .mounts[1].uidMappings'
	run oci_run
	refused "mounts[1] (/mnt)" /proc/sys "ids"
	edit '.mounts[1].type = "tmpfs" | .mounts[1].options = ["idmap"]'
	run oci_run
	refused "mounts[1] (/mnt)" bind
}

# ---- somebody who rearranges it meanwhile ----

@test "a target that is exchanged with a link while it is mounted: nothing outside is touched" {
	local round
	mkdir -p "$here/volume/a/b" "$here/outside/b"
	ln -s "$here/outside" "$here/volume/link"
	mount_it /volume bind "$here/volume" bind
	for round in 1 2 3 4 5 6; do
		mount_it "/volume/a/b/made$round" tmpfs tmpfs
	done
	script_runs true
	python3 - "$here/volume/a" "$here/volume/link" "$here/never-ends" <<-'END' &
		import ctypes, os, sys
		libc = ctypes.CDLL(None)
		one, other = (os.fsencode(path) for path in sys.argv[1:3])
		for _ in range(2000000):
		    libc.renameat2(-100, one, -100, other, 2)
		    if os.path.exists(sys.argv[3]):
		        break
	END
	for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
		# it works or is refused, as the race goes
		oci_run >/dev/null 2>&1 || true
		[ -z "$(ls "$here/outside/b")" ]
		[ "$(ls "$here/outside")" = b ]
		run ! grep -F "$here/outside" /proc/self/mountinfo
	done
	touch "$here/never-ends"
	wait
}
