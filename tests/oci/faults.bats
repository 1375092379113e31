#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Each system call of each verb, outside and inside, fails or is the last before SIGKILL (fault.c). Whatever it was: a
# program that runs has all its walls, a failure has its message, and after `delete --force` nothing is left.
#
# FAULTS is how many calls of each process are tried, evenly spread, or "all" (some minutes for each error); FAULT_ERRNO is
# the one error to fail with, where these are tried in turn: EPERM, EINVAL, ENOSYS, ENOENT.
load common

errors=(1 22 38 2)

# What a program can see of its walls, in an order and with numbers that are the same each time. The container's id makes
# its processes known to pgrep.
# shellcheck disable=SC2016 # the container's shell expands it
walls='exec 2>&1
grep -E "^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|Umask)" /proc/self/status
set -- $(grep NSpid /proc/self/status)
echo "$#"
sed -E "s/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/(shared|master):[0-9]+//" /proc/self/mountinfo
cat /proc/self/limits /proc/self/oom_score_adj /proc/self/cgroup
cat /proc/sys/kernel/hostname /proc/sys/kernel/msgmax
for f in pids/pids.max memory/memory.limit_in_bytes devices/devices.list pids.max memory.max; do
	[ ! -e "/sys/fs/cgroup/$f" ] || cat "/sys/fs/cgroup/$f"
done
mknod /tmp/mem c 1 1
head -c 1 /tmp/mem
rm -f /tmp/mem
for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12; do [ ! -e "/proc/$$/fd/$fd" ] || echo "fd $fd"; done
ls /dev
pwd
env'

# A container whose program shows its walls and ends; what it shows is in $here/right from here on.
use_walls() {
	runtime_is agentdock-runtime || skip "it is about our own calls"
	! grep -q __asan_init "$runtime" || skip "a sanitizer's own calls fail, and it looks for no leaks where it is traced"
	[ "$(cgroup_view)" != v1 ] || [ ! -d /sys/fs/cgroup/unified ] || skip "it needs no mount namespace around it"
	fault=$BATS_RUN_TMPDIR/fault
	if [ ! -x "$fault" ]; then
		"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -o "$fault.$BASHPID" "$root/tests/oci/fault.c" -lseccomp
		mv "$fault.$BASHPID" "$fault"
	fi
	use_podman_config
	program sh -c "$walls" "$id"
	edit '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW",
			"syscalls": [{"names": ["swapon"], "action": "SCMP_ACT_ERRNO"}]}
		| .process.noNewPrivileges = true | .process.oomScoreAdj = 321 | .process.user.uid = 1000
		| .process.capabilities[] += ["CAP_MKNOD"] | .process.capabilities.inheritable = ["CAP_MKNOD"]
		| .process.capabilities.ambient = ["CAP_MKNOD"]
		| .linux.resources.memory.limit = 268435456 | .linux.sysctl = {"kernel.msgmax": "8000"}'
	chmod 1777 "$rootfs/tmp"
}

# ---- the verbs that are tried: what is there before, and the call ----

before_run() { :; }
call_run() {
	call run --bundle "$bundle" "$id"
}

before_create() { :; }
call_create() {
	call create --bundle "$bundle" "$id" && with_fault= call start "$id" && until_true oci_status_is stopped
}

before_start() {
	with_fault='' call create --bundle "$bundle" "$id"
}
call_start() {
	call start "$id" && until_true oci_status_is stopped
}

before_exec() {
	[ -e "$store/$id" ] || up_until_told >/dev/null
}
call_exec() {
	call exec --user 1000 "$id" sh -c "$walls" "$id-exec"
}

before_delete() {
	with_fault='' call create --bundle "$bundle" "$id"
}
call_delete() {
	call delete --force "$id"
}

# call VERB ARGUMENT...: with the fault that $with_fault says; what it and the container print is added to $here/out
call() {
	local wrap=()
	# shellcheck disable=SC2206 # words
	[ -z "$with_fault" ] || wrap=("$fault" "$here/calls" $with_fault)
	timeout --foreground -k 5 20 "${wrap[@]}" "$runtime" --root "$store" "$@" \
		</dev/null >>"$here/out" 2>>"$here/err" 3>&- 4>&-
}

# ---- one fault ----

wrong() {
	printf '%s %s: %s\n' "$verb" "$(cat "$here/calls")" "$*"
	tail -n 2 "$here/err"
	failures=$((failures + 1))
}

# nothing_is_left: of the container, but for processes, which are looked for at the end
nothing_is_left() {
	[ ! -e "$store/$id" ] || wrong "($with_fault) the store has it"
	! compgen -G "/sys/fs/cgroup/$id*" && ! compgen -G "/sys/fs/cgroup/*/$id*" ||
		wrong "($with_fault) a group is left"
	[[ $(</proc/self/mountinfo) != *"$here"* ]] || wrong "($with_fault) a mount is left"
}

# no_process_of PATTERN: nor one whose command line has it
no_process_of() {
	local pid
	for pid in $(pgrep -f -- "$1"); do gone "$pid" || return 1; done
}

# Where the kernel says that it has no such capability or hierarchy, the program gets none: less, not more.
gives_less() {
	[[ $(cat "$here/calls") =~ ^1\ .*\ (prctl\ 23|statfs\ ) ]]
}

# try WHO INDEX FAULT
try() {
	local status=0 with_fault='' size
	: >"$here/out"
	: >"$here/err"
	: >"$here/calls"
	"before_$verb"
	with_fault=$*
	"call_$verb" || status=$?
	[ -s "$here/calls" ] || return 0
	size=$(stat -c %s "$here/out")
	[ $status -ne 124 ] || wrong "($with_fault) it hangs"
	# nor from libc before it has a heap, or that believes that there is no standard error
	[[ $status == @(0|137) || -s $here/err || $(cat "$here/calls") =~ (fcntl\ [012]$|\ brk\ ) ]] ||
		wrong "($with_fault) no message, status $status"
	# of one that was killed meanwhile, the beginning
	if [ $status -eq 0 ] && [ "$verb" != delete ]; then size=$(stat -c %s "$here/right"); fi
	gives_less || cmp -s -n "$size" "$here/out" "$here/right" ||
		wrong "($with_fault) a wall is missing, status $status: $(diff "$here/right" "$here/out" | head -n 5)"
	if [ "$verb" = exec ]; then
		until_true no_process_of "$id-exec" || wrong "($*) a process is left"
		return 0
	fi
	with_fault='' call delete --force "$id" || wrong "($*) not deleted"
	# who is told that a directory is gone believes it
	[[ "$3 $(cat "$here/calls")" == "2 "*" rmdir "* ]] || nothing_is_left
}

# calls_of WHO: the indexes of its calls that are tried
calls_of() {
	local total count=${FAULTS:-4}
	total=$(grep -c "^$1 " "$here/all")
	[ "$count" != all ] || count=$total
	seq 1 "$count" | awk -v total="$total" -v count="$count" '{ print int(($1 - 0.5) * total / count) + 1 }'
	# what makes a wall is tried each time, once for each name
	[ "$count" = "$total" ] || awk -v who="$1" '$1 == who && !seen[$3]++ &&
		$3 ~ /^(capset|seccomp|setresuid|setresgid|setgroups|close_range|pivot_root|unshare|clone3|bpf|setns|umount2)$/ {
			print $2 } $1 == who && $3 == "prctl" && $4 == 38 { print $2 } ' "$here/all"
}

# all_faults VERB [WHO...]
all_faults() {
	local who index error with_fault='0 0 none' failures=0 tried=0 pattern=$id
	verb=$1
	shift
	use_walls
	: >"$here/out"
	: >"$here/err"
	with_fault='' "before_$verb"
	"call_$verb"
	cp "$here/calls" "$here/all"
	cp "$here/out" "$here/right"
	[ "$verb" = exec ] || with_fault='' call delete --force "$id"
	for who; do
		for index in $(calls_of "$who"); do
			error=${FAULT_ERRNO:-${errors[index % 4]}}
			try "$who" "$index" "$error"
			try "$who" "$index" kill
			tried=$((tried + 2))
		done
	done
	[ "$verb" != exec ] || pattern=$id-exec
	until_true no_process_of "$pattern" || wrong "a process is left: $(pgrep -a -f -- "$pattern")"
	echo "$tried tried, $failures failures"
	[ "$tried" -gt 0 ]
	[ "$failures" -eq 0 ]
}

@test "faults of run: with all walls or not at all, and nothing is left" {
	all_faults run 1 2
}

@test "faults of create" {
	all_faults create 1
}

@test "faults of start" {
	all_faults start 1
}

@test "faults of exec" {
	all_faults exec 1 2
}

@test "faults of delete --force" {
	all_faults delete 1
}
