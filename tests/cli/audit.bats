#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# agentdock audit: what it prints, its exit status, what it leaves. What became of each attack is tested by the file that
# tests/escape/generate writes.
load common.bash

setup() {
	common_setup
	use_static_archiver
	unsafe=${AGENTDOCK_UNSAFE_BUILD:-$root/build-unsafe}
}

# fake NAME: a "runtime" for bundles, out of the script on standard input; $bundle and $id are set in it.
fake() {
	cat - >"$1" <<-'END'
		#!/bin/bash
		[ "$1" = run ] || exit 0
		bundle=$3 id=$4
	END
	cat >>"$1"
	chmod +x "$1"
}

# One that is no sandbox: the command has the root to itself, and all else is the host's.
fake_chroot() {
	fake chrooted <<-'END'
		mapfile -t words < <(jq -r '.process.args[]' "$bundle/config.json")
		exec chroot "$bundle/rootfs" "${words[@]}"
	END
}

@test "the table: attack, outcome, wall and what was seen, on 80 columns; then the sum" {
	"$agentdock" audit --attack leaked_descriptors --attack leaked_cwd >table 2>stderr
	equal "the table" "$(cat table)" "$(
		cat <<-'END'
			ATTACK                  OUTCOME  WALL; WHAT WAS SEEN
			leaked_cwd              held     no descriptor of the host inside; the working
			                                 directory must have a path inside; Landlock
			                                 beneath the root
			                                 the sandbox refuses to start (exit status 125):
			                                 agentdock: working directory
			                                 '/proc/self/fd/42': No such file or directory
			leaked_descriptors      held     close_range of all descriptors, Landlock
			                                 beneath the root
			                                 3 descriptors are open, and none leads out

			2 attacks: 2 held, 0 broken, 0 absent on this host, 0 could not be tried
		END
	)"
	equal "standard error" "$(cat stderr)" ""
}

@test "at a terminal the progress is shown, and gone in the end" {
	script -qec "'$agentdock' audit --attack leaked_cwd" /dev/null >terminal
	grep -qE '[0-9]+ of [0-9]+: leaked_cwd' terminal
	grep -q $'\033\[32mheld' terminal
	[ "$(tail -n 1 terminal | tr -d '\r')" = "1 attack: 1 held, 0 broken, 0 absent on this host, 0 could not be tried" ]
}

@test "the progress counts what was chosen, and leaves a dumb terminal alone" {
	TERM=xterm script -qec "'$agentdock' audit --attack leaked_cwd --attack leaked_descriptors" /dev/null >terminal
	grep -q '1 of 2: leaked_cwd' terminal
	grep -q '2 of 2: leaked_descriptors' terminal
	TERM=dumb script -qec "'$agentdock' audit --attack leaked_cwd" /dev/null >terminal
	grep -q 'leaked_cwd *held' terminal
	run -1 grep -e ' of 1:' -e $'\033' terminal
}

@test "--json: one object, with each verdict" {
	"$agentdock" audit --json --attack leaked_cwd >audit.json
	equal "the object" "$(jq -c 'del(.attacks[0].evidence, .attacks[0].what)' audit.json)" \
		"$(jq -nc --arg version "$("$agentdock" version)" '{runtime: $version, held: 1, broken: 0, absent: 0, error: 0,
			attacks: [{attack: "leaked_cwd", seen: "CVE-2024-21626 (runc)",
			wall: "no descriptor of the host inside; the working directory must have a path inside; Landlock beneath the root", outcome: "held"}]}')"
	holds audit.json '.attacks[0].evidence | contains("No such file or directory")'
}

@test "--list: every attack with what it wants and where it was seen; none is made" {
	"$agentdock" audit --list >list
	"$agentdock" audit --list --json >list.json
	holds list.json 'length > 30 and all(.[]; (.what | length) > 10 and (.seen | length) > 2 and (.wall | length) > 2)'
	equal "the names" "$(awk '/^[a-z]/ { print $1 }' list)" "$(jq -r '.[].attack' list.json)"
	[ ! -e "$AGENTDOCK_STATE_DIR" ]
}

@test "what is not there is named" {
	fails "audit: no attack leaked_cdw; did you mean leaked_cwd?" audit --attack leaked_cdw
	fails "audit: no attack nonsense; see agentdock audit --list" audit --attack nonsense
	fails "audit: takes only options, got now" audit now
	fails "audit: unknown or incomplete option --attack; see agentdock audit --help" audit --attack
	AGENTDOCK_PROBE_TIMEOUT=x fails \
		"${AGENTDOCK_LIBEXEC:-$build}/agentdock-probes failed with exit code 3: AGENTDOCK_PROBE_TIMEOUT: 'x' is not a whole number; write digits only" audit
	AGENTDOCK_LIBEXEC=$BATS_TEST_TMPDIR/nowhere fails \
		"$BATS_TEST_TMPDIR/nowhere/agentdock-archive: No such file or directory; make install, or set AGENTDOCK_LIBEXEC to the directory that has it" \
		audit
}

@test "an attack that works is told, and is exit status 1: without the wall" {
	run -1 --separate-stderr "$unsafe/agentdock" audit --control --attack leaked_descriptors
	[[ ${lines[1]} == "leaked_descriptors      broken   close_range of all descriptors"* ]]
	[[ $output == *"leads to the host's /"* ]]
	[ "${lines[-1]}" = "1 attack: 0 held, 1 broken, 0 absent on this host, 0 could not be tried" ]
}

@test "an attack that works is told, and is exit status 1: in what is no sandbox" {
	fake_chroot
	run -1 --separate-stderr "$agentdock" audit --json --runtime ./chrooted --attack leaked_descriptors \
		--attack host_abstract_socket --attack secrets_in_environment
	holds <(echo "$output") '.runtime == "./chrooted" and .broken == 3 and (.attacks | map(.outcome) | unique) == ["broken"]'
}

@test "a runtime that cannot start is an error by its first line, exit status 125, and never held" {
	fake failing <<-'END'
		printf 'no\033[2J such luck\nand more\n' >&2
		exit 1
	END
	run -125 --separate-stderr "$agentdock" audit --json --runtime ./failing --attack leaked_descriptors --attack leaked_cwd
	holds <(echo "$output") '.error == 2 and .held == 0 and (.attacks[0].evidence ==
		"the sandbox did not start (exit status 1): no\\x1b[2J such luck")'
	run -125 --separate-stderr "$agentdock" audit --json --runtime ./not-there --attack leaked_descriptors
	holds <(echo "$output") '.attacks[0].evidence | contains("./not-there: No such file or directory")'
}

@test "who only says that the attack is held, or dies of a fault of its own, is not believed" {
	fake lying <<-'END'
		echo 'held: believe me'
	END
	fake crashing <<-'END'
		echo trying
		kill -SEGV $$
	END
	fake silent <<-'END'
		echo trying
	END
	for runtime in lying crashing silent; do
		run -125 --separate-stderr "$agentdock" audit --json --runtime ./$runtime --attack leaked_descriptors
		holds <(echo "$output") '.error == 1 and .held == 0'
	done
}

@test "who is killed by a filter for what it tried is held" {
	fake killing <<-'END'
		echo trying
		kill -SYS $$
	END
	run -0 --separate-stderr "$agentdock" audit --json --runtime ./killing --attack leaked_descriptors
	holds <(echo "$output") '.attacks[0].evidence == "ended while it tried (exit status 159)"'
}

@test "who is killed by whomever is an error, also where the host looks at the rest" {
	fake killed <<-'END'
		echo trying
		kill -KILL $$
	END
	run -125 --separate-stderr "$agentdock" audit --json --runtime ./killed --attack leaked_descriptors --attack memory \
		--attack inode_exhaustion --attack pty_exhaustion --attack daemon_survives
	holds <(echo "$output") '.error == 5 and (.attacks[] | select(.attack == "pty_exhaustion").evidence) ==
		"ended while it tried (exit status 137)"'
}

@test "a launcher that is killed itself is an error, whatever was said before" {
	"$build/agentdock-probes" around leaked_descriptors -- sh -c 'echo trying; echo "held: so it says"; kill -KILL $$' >verdict
	holds verdict '.outcome == "error" and .evidence == "the launcher did not end by itself (ended by SIGKILL)"'
}

@test "what the host got no sight of is an error" {
	fake blind <<-'END'
		echo trying
	END
	run -125 --separate-stderr "$agentdock" audit --json --runtime ./blind --attack daemon_survives
	holds <(echo "$output") '.attacks[0] | .outcome == "error" and .evidence == "the host saw nothing of it"'
	fake blind <<-'END'
		echo trying
		echo 'held: 64 MiB of pipes'
	END
	run -125 --separate-stderr "$agentdock" audit --json --runtime ./blind --attack pipe_exhaustion
	holds <(echo "$output") '.attacks[0] | .outcome == "error" and .evidence == "the host did not get to look"'
}

@test "a limit that was not reached, or another refusal than the limit's, is an error that the inside can say" {
	fake failing <<-'END'
		echo trying
		echo 'error: EACCES after 0 terminals'
	END
	run -125 --separate-stderr "$agentdock" audit --json --runtime ./failing --attack pty_exhaustion
	holds <(echo "$output") '.attacks[0] | .outcome == "error" and .evidence == "EACCES after 0 terminals"'
	# in what is no sandbox, with a limit that is none of memory
	fake small <<-'END'
		mapfile -t words < <(jq -r '.process.args[]' "$bundle/config.json")
		mkdir "$bundle/rootfs/dev/shm"
		ulimit -f 1 -n 16 -v 40000
		exec chroot "$bundle/rootfs" "${words[@]}"
	END
	run -125 --separate-stderr "$agentdock" audit --json --runtime ./small --attack memory
	holds <(echo "$output") '.attacks[0] | .outcome == "error" and (.evidence | startswith("not by the wall, "))'
}

@test "of a wall that is enough by itself: each is told, with the others away" {
	run -0 --separate-stderr "$unsafe/agentdock" audit --alone --json --attack keyring --attack leaked_descriptors
	equal "the walls" "$(jq -c '[.attacks[] | [.attack, .wall, .outcome]]' <<<"$output")" \
		'[["keyring","keyring","held"],["keyring","seccomp","held"]]'
}

@test "a flood of output is drained, and does not hide the verdict" {
	fake flooding <<-'END'
		echo trying
		head -c 200000000 /dev/zero | tr '\0' 'x'
		echo
		echo 'held: after all that'
	END
	run -0 --separate-stderr "$agentdock" audit --json --runtime ./flooding --attack leaked_descriptors
	holds <(echo "$output") '.attacks[0].evidence == "after all that"'
}

@test "--runtime: crun" {
	command -v crun >/dev/null || skip "crun is not installed"
	status=0
	"$agentdock" audit --json --runtime crun --attack leaked_descriptors --attack clone3_namespaces \
		--attack host_abstract_socket >audit.json || status=$?
	# a configuration as `runc spec` writes it has a network namespace, and no filter of system calls
	equal "the outcomes" "$(jq -c '[.attacks[] | [.attack, .outcome]]' audit.json)" \
		'[["clone3_namespaces","broken"],["host_abstract_socket","held"],["leaked_descriptors","held"]]'
	[ "$status" = 1 ]
}

@test "an attack that does not end is ended, and is an error" {
	fake endless <<-'END'
		trap '' TERM
		echo trying
		exec sleep 1000
	END
	AGENTDOCK_PROBE_TIMEOUT=1 run -125 --separate-stderr "$agentdock" audit --json --runtime ./endless \
		--attack leaked_descriptors
	holds <(echo "$output") '.attacks[0].evidence | startswith("the sandbox did not end in time")'
}

@test "the list takes no root" {
	setpriv --reuid=65534 --clear-groups "$agentdock" audit --list | grep -q ^leaked_cwd
	run -125 setpriv --reuid=65534 --clear-groups "$agentdock" audit
	[ "$output" = "agentdock: audit: building a sandbox takes root; run it as root (sudo)" ]
}

@test "images of the operator are left alone, and what an audit had is gone" {
	"$agentdock" image import --arch amd64 "$root/fixtures/sample-repo" mine >/dev/null
	"$agentdock" image list --json >before
	"$agentdock" audit --json --attack leaked_cwd >/dev/null
	equal "the images" "$("$agentdock" image list --json)" "$(cat before)"
	[ ! -e "$AGENTDOCK_STATE_DIR/audit/scratch" ]
}

# waiting_runtime: one that writes its pid to the fifo "begun", and then waits until it is killed
waiting_runtime() {
	mkfifo "$BATS_TEST_TMPDIR/begun"
	fake waiting <<-END
		echo \$\$ >"$BATS_TEST_TMPDIR/begun"
		exec sleep 1000
	END
}

@test "an audit that is killed leaves nothing that the next one does not clear" {
	waiting_runtime
	"$agentdock" audit --json --runtime ./waiting --attack leaked_cwd >/dev/null 2>&1 3>&- &
	audit=$!
	read -r runtime <begun
	[ -e "$AGENTDOCK_STATE_DIR/audit/scratch" ]
	kill -KILL $audit
	wait $audit || true
	"$agentdock" audit --json --attack leaked_cwd >audit.json
	holds audit.json '.held == 1'
	[ ! -e "$AGENTDOCK_STATE_DIR/audit/scratch" ]
	timeout 30 tail --pid="$runtime" -f /dev/null
}

@test "Ctrl-C ends an audit with 130, its runtime, and what it had" {
	waiting_runtime
	# a process group of its own, in which the interrupt is not ignored
	python3 - "$agentdock" >signaled <<-'END' 3>&-
		import os, signal, subprocess, sys
		signal.signal(signal.SIGINT, signal.default_int_handler)
		audit = subprocess.Popen([sys.argv[1], "audit", "--runtime", "./waiting", "--attack", "leaked_cwd"],
		                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, text=True)
		print(open("begun").read().strip())
		os.killpg(audit.pid, signal.SIGINT)
		print(audit.communicate()[1].strip(), audit.returncode)
	END
	equal "how it ended" "$(tail -n 1 signaled)" "agentdock: audit: canceled 130"
	[ ! -e "$AGENTDOCK_STATE_DIR/audit/scratch" ]
	timeout 30 tail --pid="$(head -n 1 signaled)" -f /dev/null
}

@test "Ctrl-C while another audit is waited for: that, and 130" {
	mkdir -p "$AGENTDOCK_STATE_DIR/audit"
	python3 - "$agentdock" "$AGENTDOCK_STATE_DIR/audit/lock" >signaled <<-'END' 3>&-
		import fcntl, os, re, signal, subprocess, sys, time
		signal.signal(signal.SIGINT, signal.default_int_handler)
		lock = open(sys.argv[2], "w")
		fcntl.flock(lock, fcntl.LOCK_EX)
		audit = subprocess.Popen([sys.argv[1], "audit", "--attack", "leaked_cwd"], stdout=subprocess.DEVNULL,
		                         stderr=subprocess.PIPE, start_new_session=True, text=True)
		waits = re.compile(rf"-> FLOCK .* {audit.pid} ")
		while audit.poll() is None and not waits.search(open("/proc/locks").read()):
		    time.sleep(0.001)
		os.killpg(audit.pid, signal.SIGINT)
		print(audit.communicate()[1].strip(), audit.returncode)
	END
	equal "how it ended" "$(cat signaled)" "agentdock: audit: interrupted while another audit was waited for 130"
}

@test "a reader that leaves ends an audit, and a list, without a word" {
	for what in "--attack leaked_cwd" "--attack leaked_cwd --json" --list; do
		python3 - "$agentdock" audit $what >ended <<-'END'
			import os, subprocess, sys
			reader, writer = os.pipe()
			os.close(reader)
			audit = subprocess.run(sys.argv[1:], stdout=writer, stderr=subprocess.PIPE, text=True)
			print(audit.returncode, audit.stderr)
		END
		equal "the end of $what" "$(cat ended)" "141 "
	done
	[ ! -e "$AGENTDOCK_STATE_DIR/audit/scratch" ]
	run -125 --separate-stderr bash -c '"$1" audit --attack leaked_cwd >/dev/full' - "$agentdock"
	[ "$stderr" = "agentdock: writing to standard output: No space left on device" ]
}

@test "on another runtime no wall of ours is told" {
	fake saying <<-'END'
		echo trying
		echo 'held: by whatever'
	END
	"$agentdock" audit --runtime ./saying --attack leaked_cwd >table
	equal "the head" "$(head -n 1 table)" "ATTACK                  OUTCOME  WHAT IT WANTS; WHAT WAS SEEN"
	equal "what it wants" "$(sed -n '2s/ *$//p' table)" \
		"leaked_cwd              held     $("$agentdock" audit --list --json --attack leaked_cwd | jq -r '.[].what' | fold -sw 47 | head -n 1 | sed 's/ *$//')"
	"$agentdock" audit --json --runtime ./saying --attack leaked_cwd >audit.json
	holds audit.json '.attacks[0] | has("wall") | not'
}

@test "a runtime that is not there is told once, before any attack" {
	run --separate-stderr "$agentdock" audit --runtime no-such-runtime
	[ "$status" = 125 ]
	[ "$stderr" = "agentdock: --runtime: no-such-runtime is not in PATH; give its path, or install it" ]
	run --separate-stderr "$agentdock" audit --runtime /etc/passwd
	[ "$status" = 125 ]
	[ "$stderr" = "agentdock: --runtime: /etc/passwd: Permission denied" ]
}
