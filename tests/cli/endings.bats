#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# How a run ends: the reasons that one run can have, each with its exit status and its evidence; what the report says
# besides; what is shown while it runs.
bats_require_minimum_version 1.5.0

load common
load report

setup() {
	common_setup
	[[ $BATS_TEST_DESCRIPTION == *"(own image)" ]] || use_default_image
}

# ---- exited, signaled ----

# bats test_tags=any_kernel
@test "exited: every status is the command's own, also those that have a meaning of ours" {
	local code
	for code in 0 1 124 125 126 127 130 137 255; do
		report -- sh -c "exit $code"
		is .reason exited .exit_code "$code" .exit_status "$code" .signal null .error null
	done
}

@test "signaled: 128 and the signal; no core is dumped" {
	local signo name
	while read -r signo name; do
		report -- sh -c "kill -s $name \$\$"
		is .reason signaled .signal "SIG$name" .exit_status $((128 + signo)) .exit_code null .error null
	done < <(printf '%s\n' '11 SEGV' '6 ABRT' '15 TERM' '9 KILL' '1 HUP' '13 PIPE' '8 FPE')
	# a real fault is the same, and where the host's cores go none arrives
	report -- sh -c 'ulimit -c; ls -A; exec python3 -c "import ctypes; ctypes.string_at(0)"'
	is .reason signaled .signal SIGSEGV .exit_status 139 .stdout.data.text $'0\n'
	report --keep -- sh -c 'touch witness; exec python3 -c "import ctypes; ctypes.string_at(0)"'
	is .reason signaled
	debugfs -R 'ls -p /upper/workspace' "$(jq -r .host.kept "$json")" 2>/dev/null >kept.list
	grep -q /witness/ kept.list
	run -1 grep core kept.list
}

# ---- timeout: cases.bats, T* ----

@test "timeout: 124, and none is needed when the command is faster" {
	report --timeout 1 -- sleep 60
	is .reason timeout .exit_status 124 .usage.timeout_ms 1000
	report --timeout 200ms --grace 0 -- sleep 60
	is .reason timeout .exit_status 124 .usage.timeout_ms 200
	report --timeout 0 -- true
	is .reason exited .exit_status 0 .usage.timeout_ms null
}

# ---- canceled ----

@test "canceled: SIGINT, SIGTERM and SIGHUP end the command as the time-out does" {
	local name number
	while read -r name number; do
		background "$name" env --default-signal=INT "$agentdock" run --meta "$name.json" -- \
			sh -c 'trap "echo got TERM; exit 3" TERM; echo up; while :; do sleep 0.1; done'
		wait_for says "$name" up
		kill -s "$name" "${started[$name]}"
		reap "$name"
		[ "$status" = $((128 + number)) ]
		says "$name" "got TERM"
		json=$name.json
		is .reason canceled .exit_status $((128 + number)) .exit_code 3 .evidence.cancel_signal "SIG$name" \
			'[.evidence.signals_sent[].signal] | first' SIGTERM
	done < <(printf '%s\n' 'INT 2' 'TERM 15' 'HUP 1')
	nothing_runs
}

@test "canceled: a second signal kills at once, whatever the grace" {
	background two "$agentdock" run --grace 1h --meta two.json -- \
		sh -c 'trap "echo ignored" TERM; echo up; while :; do sleep 0.1; done'
	wait_for says two up
	kill -TERM "${started[two]}"
	wait_for says two ignored
	kill -TERM "${started[two]}"
	reap two
	[ "$status" = 143 ]
	json=two.json
	is .reason canceled '[.evidence.signals_sent[].signal] | join(" ")' "SIGTERM SIGKILL"
	nothing_runs
}

@test "canceled: while the workspace is copied in; nothing of it stays" {
	mkdir ws
	python3 -c '
for i in range(8000): open(f"ws/{i}", "w").write("x" * 2000)'
	background unpack "$agentdock" run --json --workspace ws -- true
	wait_for unpacks
	kill -TERM "${started[unpack]}"
	reap unpack
	json=unpack.out
	is .reason canceled .exit_status 143 .evidence.cancel_signal SIGTERM
	[ "$status" = 143 ]
	nothing_runs
}

# Whether an unpacker of ours is there.
unpacks() {
	local pid
	for pid in $(cat "$(cgroup2_mount)/$AGENTDOCK_CGROUP_PARENT"/*/cgroup.procs 2>/dev/null); do
		grep -qsz '^unpack$' "/proc/$pid/cmdline" && return 0
	done
	return 1
}

# bats test_tags=any_kernel
@test "canceled: a signal that was ignored when we were started stays ignored (nohup)" {
	trap '' HUP
	start nohup -- sh -c 'grep SigIgn /proc/self/status; echo ready; read -r line; echo "got $line"'
	trap - HUP
	kill -HUP "${started[nohup]}"
	echo word >&"${feeds[nohup]}"
	finish nohup
	[ "$status" = 0 ]
	# and what we were started with is not the command's business
	[ "$(cat nohup.stdout)" = $'SigIgn:\t0000000000000000\nready\ngot word' ]
}

# ---- disk_full ----

@test "disk_full: only of a command that failed with a full disk" {
	report --disk 8m -- sh -c 'dd if=/dev/zero of=x bs=64k 2>/dev/null; exit 0'
	is .reason exited .exit_code 0
	report --disk 8m -- sh -c 'dd if=/dev/zero of=x bs=64k 2>/dev/null; exit 9'
	is .reason disk_full .exit_code 9 .exit_status 9
	report --disk 8m -- sh -c 'dd if=/dev/zero of=x bs=64k 2>/dev/null; rm x; exit 9'
	is .reason exited .exit_code 9
}

# ---- start_failed ----

# bats test_tags=any_kernel
@test "start_failed: what is not there is 127, what cannot be executed 126, each with its why" {
	mkdir -p ws/dir
	printf 'not a program\n' >ws/plain
	printf '#!/nowhere/interpreter\n' >ws/interpreter
	printf 'echo no first line\n' >ws/script
	printf '\177ELF' >ws/elf
	head -c 400 /dev/urandom >>ws/elf
	printf '#!/workspace/loop\n' >ws/loop
	ln -s self ws/self
	: >ws/empty
	chmod +x ws/interpreter ws/script ws/elf ws/loop ws/empty
	chmod -x ws/plain
	local code word text
	while IFS='|' read -r code word text; do
		report --workspace ws -- "$word"
		is .reason start_failed .exit_status "$code" .exit_code null .signal null
		if [[ $(jq -r .error "$json") != *"$text"* ]]; then
			printf '%s: %s\n' "$word" "$(jq -r .error "$json")" >&2
			return 1
		fi
		run "-$code" --separate-stderr "$agentdock" run --workspace ws -- "$word"
		[ "${#stderr_lines[@]}" = 1 ] && [[ $stderr == "agentdock: $word: "* ]]
	done <<-'END'
		127|no-such-program|not found
		127|./absent|
		127|/absent/dir/program|
		126|./dir|directory
		126|/|directory
		126|./plain|
		127|./plain/below|
		126|./interpreter|interpreter
		126|./script|#! line
		126|./elf|
		126|./empty|#! line
		126|./self|
	END
	nothing_runs
}

# bats test_tags=any_kernel
@test "start_failed: an ELF file of another machine" {
	mkdir ws
	cp /bin/true ws/alien
	# e_machine: s390
	printf '\026' | dd of=ws/alien bs=1 seek=18 conv=notrunc status=none
	report --workspace ws -- ./alien
	is .reason start_failed .exit_status 126
	[[ $(jq -r .error "$json") == *"neither a program for this machine"* ]]
}

@test "start_failed: a memory limit that nothing can start in" {
	report --memory 256k -- python3 -c pass
	so '.reason == "start_failed" or .reason == "oom"'
	so '.reason != "start_failed" or (.error | test("memory limit"))'
	nothing_runs
}

@test "start_failed: a start that takes too long" {
	mkdir ws
	python3 -c '
for i in range(2000): open(f"ws/{i}", "w").write("x" * 2000)'
	report --workspace ws --start-timeout 10ms -- true
	so '.reason != "exited" and (.error | test("--start-timeout"))'
	is .exit_status 125
	nothing_runs
}

# ---- the report ----

@test "the report: every field of a run that did a little of everything" {
	mkdir ws
	echo content >ws/file
	# few CPUs: beside busy neighbours half of one may be all that it gets, and nothing is left to throttle
	report --workspace ws --label job=17 --label b= --cpus 0.2 --memory 128m --pids-limit 20 --disk 16m --inodes 1000 \
		--timeout 30 -- python3 -c '
import ctypes, os, sys, time
ctypes.CDLL(None).syscall(321, 0, 0, 0)
open("made", "wb").write(b"x" * 3000000)
block = b"m" * (40 << 20)
if os.fork() == 0: time.sleep(0.2); os._exit(0)
os.wait()
end = time.process_time() + 0.3
while time.process_time() < end: pass
print("out"); print("err", file=sys.stderr)'
	is .reason exited .exit_code 0 .exit_status 0 .signal null .error null '.labels | tojson' '{"job":"17","b":""}' \
		.stdout.data.text $'out\n' .stderr.data.text $'err\n' .evidence.cancel_signal null \
		'.evidence.denied_calls | tojson' '[{"name":"bpf","count":1}]' .evidence.denied_total 1 \
		'.evidence | [.oom_kills, .pids_refused, (.signals_sent | length)] | tojson' '[0,0,0]' \
		.host.kept null .host.missing null .usage.cpu_limit 0.2 .usage.timeout_ms 30000 .usage.pids_limit 20 \
		.usage.memory_limit_bytes $((128 << 20)) .usage.disk_limit_bytes $((16 << 20)) .usage.inodes_limit 1000
	so '.id | test("^[0-9a-f]{12}$")'
	so '.usage | .wall_ms >= 700 and .wall_ms < 30000'
	so '.usage | .cpu_user_ms + .cpu_system_ms >= 300 and .cpu_user_ms + .cpu_system_ms < 20000'
	so '.usage.throttled_ms > 0'
	so '.usage | .memory_peak_bytes > 40000000 and .memory_peak_bytes <= .memory_limit_bytes'
	so '.usage | .pids_peak >= 3 and .pids_peak <= 20'
	so '.usage | .disk_used_bytes >= 3000000 and .disk_used_bytes < 6000000'
	so '.usage | .inodes_used >= 2 and .inodes_used < 50'
	so '.phases_ms | keys == ["checkout", "collect", "queue", "run", "start", "unpack"]'
	so '.phases_ms | .queue > 0 and .checkout == 0 and .unpack > 0 and .start > 0 and .run > 0 and .collect > 0'
	so '.phases_ms.run == .usage.wall_ms'
	so '.score | length > 30 and all(.outside_us >= 0 and .inside_us >= 0)'
	so '[.score[].name] | (index("unpack workspace") != null) and (unique | length) == length'
	so '.host.image | test("^sha256:[0-9a-f]{64}$")'
	is .host.cgroup "$(cgroup_kind)"
	so '.host | (.disk_backing == "image" or .disk_backing == "tmpfs")'
}

# bats test_tags=any_kernel
@test "the report: --meta is --json, also when the command did not start, and replaces what was there" {
	echo old >meta.json
	"$agentdock" run --json --meta meta.json --label a=b -- sh -c 'printf "a\377"; exit 3' >out.json || [ $? = 3 ]
	cmp out.json meta.json
	"$agentdock" run --json --meta meta.json -- absent >out.json 2>/dev/null || [ $? = 127 ]
	cmp out.json meta.json
	"$agentdock" run --json --meta meta.json --timeout 1 -- sleep 9 >out.json || [ $? = 124 ]
	cmp out.json meta.json
	[ "$(find . -name '*meta*' | wc -l)" = 1 ]
}

# bats test_tags=any_kernel
@test "the report: a --meta that cannot be written is an error by name, before anything runs" {
	run -125 --separate-stderr "$agentdock" run --meta absent/meta.json -- echo ran
	[ -z "$output" ] && [ ! -e "$AGENTDOCK_RUN_DIR" ]
	[[ $stderr == "agentdock: --meta: "*"absent/meta.json"*"No such file or directory"* ]]
	nothing_runs
}

@test "the report: --keep says where the disk is, and what the command wrote is on it" {
	report --keep -- sh -c 'echo kept >file; exit 1'
	is .reason exited
	kept=$(jq -r .host.kept "$json")
	[[ $kept == "$AGENTDOCK_STATE_DIR/kept/"*.ext4 ]]
	[ "$(debugfs -R 'cat /upper/workspace/file' "$kept" 2>/dev/null)" = kept ]
}

# ---- what is shown while it runs ----

# bats test_tags=any_kernel
@test "live: a line is there while the command waits for our answer to it" {
	start live -- sh -c 'echo question; echo ready; read -r line; echo "got $line"; echo last >&2'
	# it has not ended: it waits for what we only now say
	kill -0 "${started[live]}"
	[ "$(cat live.stdout)" = $'question\nready' ]
	echo word >&"${feeds[live]}"
	finish live
	[ "$status" = 0 ]
	[ "$(cat live.stdout)" = $'question\nready\ngot word' ] && [ "$(cat live.stderr)" = last ]
}

@test "live: a reader that takes nothing delays neither the time-out nor the other stream" {
	mkfifo stuck
	exec {hold}<>stuck
	"$agentdock" run --timeout 2 --grace 1 --meta meta.json -- sh -c 'yes & echo other >&2; wait' \
		>stuck 2>err 3>&- {hold}>&- &
	started[stuck]=$!
	reap stuck
	exec {hold}>&-
	[ "$status" = 124 ] && grep -qx other err
	json=meta.json
	is .reason timeout .stderr.data.text $'other\n'
	so '.usage.wall_ms < 20000 and .phases_ms.collect < 20000'
	nothing_runs
}

# bats test_tags=any_kernel
@test "live: a reader that leaves ends the command as in a shell's pipe" {
	run bash -c '"$1" run --timeout 60 --meta meta.json -- yes 2>err | head -n 1' - "$agentdock"
	[ "$output" = y ]
	json=meta.json
	is .reason signaled .signal SIGPIPE
}

# bats test_tags=any_kernel
@test "live: with --json nothing but the report is on standard output, nothing on standard error" {
	run -0 --separate-stderr "$agentdock" run --json -- sh -c 'echo out; echo err >&2'
	[ "${#lines[@]}" = 1 ] && [ -z "$stderr" ]
	jq -e '.stdout.data.text == "out\n" and .stderr.data.text == "err\n"' <<<"$output"
}

# bats test_tags=any_kernel
@test "internal: output that cannot be written is our failure, never silence" {
	run -125 bash -c '"$1" run -- sh -c "echo lost" >/dev/full' - "$agentdock"
	[[ $output == "agentdock: "*"No space left on device"* ]]
	run -125 bash -c '"$1" run --json -- true >/dev/full' - "$agentdock"
	[[ $output == "agentdock: "*"No space left on device"* ]]
	nothing_runs
}
