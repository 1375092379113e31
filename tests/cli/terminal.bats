#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a person sees of a run: the summary below the output, colours, the keys of the terminal, debug lines.
bats_require_minimum_version 1.5.0

load common
load report

setup() {
	common_setup
	use_default_image
	export TERM=xterm
	unset NO_COLOR
}

# on_terminal WORD...: `agentdock run WORD...` with a terminal for standard output and standard error; what it shows is
# in the file shown and in $output, with lines that end as on a pipe.
on_terminal() {
	local command
	printf -v command '%q ' "$agentdock" run "$@"
	status=0
	script -qec "$command" /dev/null </dev/null >raw || status=$?
	tr -d '\r' <raw >shown
	output=$(<shown)
}

@test "the summary fits 80 columns, whatever the numbers are" {
	on_terminal --memory 1023m --disk 1023m --pids-limit 4000 -- \
		python3 -c 'import sys; b = b"x" * (500 << 20); open("f", "wb").write(b); sys.exit(255)'
	[ "$status" = 255 ] && [ "$(wc -l <shown)" = 2 ]
	sed 's/\x1b\[[0-9;]*m//g' shown >plain
	grep -qxE 'exited 255 in [0-9.]+ m?s · cpu [0-9.]+ m?s' plain
	grep -qxE '  memory [0-9.]+ MiB of 1023 MiB · pids [0-9]+ of 4000 · disk 500 MiB of 1023 MiB' plain
	python3 -c 'assert all(len(line) <= 81 for line in open("plain", encoding="utf-8"))'
}

@test "a last line without an end does not run into the summary, nor do its colours" {
	on_terminal -- printf 'half a line'
	[[ $output == $'half a line\e[0m\n\e[32mexited 0\e[0m in '* ]]
	on_terminal -- echo whole
	[[ $output == $'whole\n\e[0m\e[32mexited 0\e[0m in '* ]]
	on_terminal -- sh -c 'printf error >&2; exit 3'
	[[ $output == $'error\e[0m\n\e[31mexited 3\e[0m in '* ]]
	on_terminal -- true
	[[ $output == $'\e[0m\e[32mexited 0\e[0m in '* ]]
}

@test "no colours where they are not wanted, or not known" {
	TERM=dumb on_terminal -- printf x
	[[ $output == $'x\nexited 0 in '* && $output != *$'\e'* ]]
	NO_COLOR=1 on_terminal -- true
	[[ $output != *$'\e'* ]]
	run -0 script -qec "TERM=dumb '$agentdock' doctor" /dev/null
	[[ $output != *$'\e'* ]]
	run -0 script -qec "'$agentdock' doctor" /dev/null
	[[ $output == *$'kernel                \e[32mok\e[0m     Linux '* ]]
}

@test "a disk without an inode is told in inodes" {
	# shellcheck disable=SC2016
	on_terminal --inodes 100 -- sh -c 'while :; do i=$((i + 1)); : >f$i || exit; done'
	[[ $output == *"exited 2 with no inode left"*" · inodes 100 of 100"* ]]
	on_terminal --disk 2m -- sh -c 'dd if=/dev/zero of=x'
	[[ $output == *"exited 1 with its disk full"*" · disk "*" of 2.0 MiB"* ]]
}

@test "background processes that are ended are called that" {
	on_terminal --drain 200ms -- sh -c 'sleep 100 & true'
	[[ $output == *$'\n  '*" ms after the command its background processes were killed (--drain)"* ]]
	[[ $output != *"signal"* ]]
	on_terminal --timeout 200ms --grace 0 -- sleep 100
	[[ $output == *$'\n  signal sent: SIGKILL at 2'* ]]
}

@test "a reader of ours that leaves is worth no line; a SIGPIPE of the command's own is" {
	run bash -c '"$1" run -- yes | head -n 1' - "$agentdock"
	[ "$output" = y ]
	run -141 "$agentdock" run -- sh -c 'kill -PIPE $$'
	[[ $output == "killed by SIGPIPE in "* ]]
}

@test "Ctrl-Z stops nothing: the time-out comes all the same" {
	background stopped env --default-signal=TSTP "$agentdock" run --timeout 2 --grace 0 -- \
		sh -c 'grep SigIgn /proc/self/status; exec sleep 100'
	wait_for says stopped SigIgn
	kill -TSTP "${started[stopped]}"
	kill -TTIN "${started[stopped]}"
	kill -TTOU "${started[stopped]}"
	reap stopped
	[ "$status" = 124 ]
	# and the command has not inherited it
	[ "$(<stopped.out)" = $'SigIgn:\t0000000000000000' ]
	nothing_runs
}

@test "Ctrl-\\ cancels as Ctrl-C does" {
	background quit env --default-signal=QUIT "$agentdock" run --meta quit.json -- \
		sh -c 'trap "echo got TERM; exit 3" TERM; echo up; while :; do sleep 0.1; done'
	wait_for says quit up
	kill -QUIT "${started[quit]}"
	reap quit
	[ "$status" = 131 ]
	says quit "got TERM"
	json=quit.json
	is .reason canceled .exit_status 131 .evidence.cancel_signal SIGQUIT
	nothing_runs
}

@test "AGENTDOCK_DEBUG=1 tells where things are, each row and each phase, and how it ended" {
	AGENTDOCK_DEBUG=1 run -0 --separate-stderr "$agentdock" run -- echo out
	[ "$output" = out ]
	[[ $stderr == *": state $AGENTDOCK_STATE_DIR, run $AGENTDOCK_RUN_DIR, groups below $AGENTDOCK_CGROUP_PARENT, archives by "* ]]
	[[ $stderr == *"image default is sha256:"* ]]
	[[ $stderr == *": seccomp: 0 us outside, "*" us inside"*": phase run: "*": exited, disk "* ]]
	for line in "${stderr_lines[@]}"; do
		[[ $line == "agentdock["*"]: "* ]]
	done
}
