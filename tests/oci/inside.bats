#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What who is inside can try against the host or against its own end: nodes of the host that it is given open, groups that it
# freezes, names that it exchanges in a root that it shares, processes of the host that it sees.
# shellcheck disable=SC2016 # the inner shells expand what is theirs
load common
load linux

owner_capabilities() {
	edit '.process.capabilities[] += ["CAP_FOWNER", "CAP_DAC_OVERRIDE"]
		| .mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]'
}

# kept_by SCRIPT: whatever it does to its descriptors, the host's null device is as it was
kept_by() {
	script_runs "$1"
	run stat -c '%a %u' "$here/dev/null"
	says '666 0'
}

change='for fd in 0 1 2; do chmod 640 /proc/self/fd/$fd; chown 7 /proc/self/fd/$fd; done'

@test "descriptors that are the host's null device become the container's" {
	copied_dev '</dev/null >/dev/null 2>/dev/null'
	owner_capabilities
	kept_by "$change"
}

@test "descriptors of create that are the host's null device become the container's" {
	copied_dev '</dev/null >/dev/null 2>/dev/null'
	owner_capabilities
	up_until_told "$change"
	tell
	[ "$(stat -c '%a %u' "$here/dev/null")" = '666 0' ]
}

@test "descriptors of exec that are the host's null device become the container's" {
	copied_dev '</dev/null >/dev/null 2>/dev/null'
	owner_capabilities
	up_until_told
	oci_exec sh -c "$change"
	[ "$(stat -c '%a %u' "$here/dev/null")" = '666 0' ]
	tell
}

@test "a null device that is replaced stays open for what it was open for" {
	copied_dev '0<>/dev/null >"$here/flags"'
	owner_capabilities
	script_runs 'grep flags /proc/self/fdinfo/0; stat -L -c %t:%T /proc/self/fd/0
		[ "$(stat -L -c %d:%i /proc/self/fd/0)" = "$(stat -c %d:%i /dev/null)" ] && echo own'
	[[ $(xargs <"$here/flags") =~ ^"flags: 0"[0-9]*"2 1:3 own"$ ]] || { cat "$here/flags"; false; }
}

@test "where the container has no null device the host's stays" {
	copied_dev '</dev/null >"$here/seen"'
	rmdir "$rootfs/dev"
	mkdir "$here/empty"
	edit '.mounts += [{"destination": "/dev", "type": "bind", "source": $source, "options": ["bind"]}]' \
		--arg source "$here/empty"
	script_runs 'stat -L -c %t:%T /proc/self/fd/0'
	[ "$(cat "$here/seen")" = 1:3 ]
}

# ---- what it freezes ----

# freezes_itself TREE CONTROL WORD NAMESPACE...: a process of it is in a group below that is frozen from inside
freezes_itself() {
	local tree=$1 file=$2 word=$3
	[ -e "/sys/fs/cgroup/$tree/cgroup.procs" ] || skip "needs a hierarchy $tree"
	edit '.linux.namespaces += [{"type": "cgroup"}]
		| .mounts += [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
			{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"}]'
	script "trap '' TERM
		mkdir /sys/fs/cgroup/$tree/a /sys/fs/cgroup/$tree/a/b
		sh -c 'echo \$\$ >/sys/fs/cgroup/$tree/a/b/cgroup.procs; echo up >/ready; exec sleep 1000' &
		read -r line </wait
		echo \$\$ >/sys/fs/cgroup/$tree/a/b/cgroup.procs
		(echo $word >/sys/fs/cgroup/$tree/a/$file)
		exec sleep 1000"
	oci_up
	[ "$(heard)" = up ]
	tell
	until_true is_frozen "/sys/fs/cgroup/$tree$group/a"
	pid=$(oci_pid)
}

is_frozen() {
	grep -q FROZEN "$1/freezer.state" 2>/dev/null || grep -q 'frozen 1' "$1/cgroup.events" 2>/dev/null
}

@test "a container that froze itself in a v1 freezer dies of kill" {
	freezes_itself freezer freezer.state FROZEN
	oci_kill KILL
	until_true gone "$pid"
	oci_delete
}

@test "a container that froze itself in a v1 freezer is deleted by force" {
	freezes_itself freezer freezer.state FROZEN
	oci_delete --force
	gone "$pid"
	[ ! -e "/sys/fs/cgroup/freezer$group" ]
}

@test "a container without a pid namespace that froze itself in a v1 freezer dies of kill" {
	edit '.linux.namespaces -= [{"type": "pid"}]'
	freezes_itself freezer freezer.state FROZEN
	oci_kill KILL
	until_true gone "$pid"
	oci_delete
}

@test "a container that froze itself in a v2 tree dies of kill, and is deleted by force" {
	local tree=unified
	[ "$(cgroup_view)" != v1 ] || skip "needs a v2 tree"
	[ "$(cgroup_view)" != v2 ] || tree=.
	freezes_itself "$tree" cgroup.freeze 1
	oci_kill KILL
	until_true gone "$pid"
	oci_delete --force
	[ ! -e "/sys/fs/cgroup/$tree$group" ]
}

@test "a container that freezes itself again and again is deleted by force" {
	[ -e /sys/fs/cgroup/freezer/cgroup.procs ] || skip "needs a hierarchy freezer"
	edit '.linux.namespaces += [{"type": "cgroup"}]
		| .mounts += [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
			{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"}]'
	up_until_told 'cd /sys/fs/cgroup/freezer; mkdir a; for i in 1 2 3; do
			(while :; do echo FROZEN >a/freezer.state; echo THAWED >a/freezer.state; echo FROZEN >a/freezer.state; done) &
		done
		echo $$ >a/cgroup.procs'
	pid=$(oci_pid)
	oci_delete --force
	gone "$pid"
	[ ! -e "/sys/fs/cgroup/freezer$group" ]
}

# ---- names that are exchanged ----

@test "masked paths of /sys are looked for in the sysfs that was mounted there, not by a name that is exchanged" {
	use_podman_config
	mkdir "$rootfs/other"
	# between the mounts and the masks
	hook createRuntime "mv '$rootfs/sys' '$rootfs/sys.away'; mv '$rootfs/other' '$rootfs/sys'"
	run oci_create
	refused 'linux.maskedPaths' '/sys is not the sysfs that was mounted there'
}

@test "masked and read-only paths of /sys hold, however many slashes they have" {
	use_podman_config
	edit '.linux.maskedPaths = ["//sys//kernel", "/sys/fs/"] | .linux.readonlyPaths += ["/sys/devices"]'
	script_runs 'ls /sys/kernel /sys/fs; grep -c " /sys/devices " /proc/self/mountinfo'
	says $'/sys/fs:\n\n/sys/kernel:\n1'
}

@test "a sysfs that a later mount covers is not what is looked for" {
	edit '.mounts += [{"destination": "/sys", "type": "sysfs", "source": "sysfs"},
			{"destination": "/sys/", "type": "tmpfs", "source": "tmpfs"}]
		| .linux.maskedPaths = ["/sys/firmware"]'
	script_runs 'ls /sys; echo end'
	says end
}

# ---- what is put into a container unasked ----

@test "the notify socket goes neither into a procfs nor over the root" {
	mkdir "$rootfs/run.real"
	for place in proc/sys /; do
		rm -rf "$rootfs/run"
		mkdir "$rootfs/run"
		ln -s "/${place#/}" "$rootfs/run/notify"
		NOTIFY_SOCKET=$here/supervisor run oci_create
		refused 'notify socket: /run/notify leads to'
	done
}

@test "the terminal goes not into a procfs" {
	edit '.process.terminal = true | .mounts += [{"destination": "/dev/pts", "type": "devpts", "source": "devpts",
		"options": ["newinstance", "ptmxmode=0666"]}]'
	ln -s /proc/version "$rootfs/dev/console"
	run oci_run
	refused 'terminal: /dev/console leads to a procfs'
}

@test "who sends messages to the notify socket without end does not keep run from seeing the end" {
	cat >"$here/flood" <<-'END'
		import os, socket, sys, time
		for _ in range(3): os.fork()
		end = time.time() + 8
		sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		while time.time() < end:
		    try: sender.sendto(b"STATUS=x", sys.argv[1])
		    except FileNotFoundError: time.sleep(0.01)
		    except OSError: pass
	END
	python3 "$here/flood" "$store/$id/notify/notify" 3>&- 4>&- &
	flooder=$!
	script 'sleep 1; exit 37'
	NOTIFY_SOCKET=$here/supervisor OCI_TIMEOUT=6 run oci_run
	[ "$status" -eq 37 ] || show
	wait "$flooder"
}

# ---- what it sees of the host's processes ----

@test "the process that lends a user namespace to idmapped mounts cannot be looked into" {
	cat >"$here/look" <<-'END'
		import os, sys
		while not os.path.exists(sys.argv[1]):
		    last = int(open("/proc/loadavg").read().split()[-1])
		    for pid in range(last - 2, last + 2):
		        try:
		            link = os.readlink("/proc/%d/root" % pid)
		            name = open("/proc/%d/comm" % pid).read()
		        except OSError: continue
		        if name.startswith("agentdock-runti"): print(pid, link)
	END
	mkdir "$here/source"
	edit '.mounts += [range(200) | {"destination": "/mnt/\(.)", "type": "bind", "source": $source, "options": ["bind", "idmap"],
		"uidMappings": [{"containerID": 0, "hostID": 200000, "size": 65536}],
		"gidMappings": [{"containerID": 0, "hostID": 200000, "size": 65536}]}]' --arg source "$here/source"
	setpriv --bounding-set=-all --inh-caps=-all python3 "$here/look" "$here/over" >"$here/seen" 3>&- 4>&- &
	looker=$!
	oci_run
	oci_run
	: >"$here/over"
	wait "$looker"
	[ ! -s "$here/seen" ] || { head -3 "$here/seen"; false; }
}
