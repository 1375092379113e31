#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What `agentdock run` refuses before it touches anything: each with one exact line and status 125.
load common

setup() {
	common_setup
}

@test "unknown commands and options are told, with what was probably meant" {
	fails "unknown command rnu; did you mean run?" rnu
	fails "unknown command frobnicate; see agentdock --help" frobnicate
	fails "unknown command frobnicate; see agentdock --help" help frobnicate
	fails "gc takes only --json, got now" gc now
	refuses "unknown option --memroy; did you mean --memory?" --memroy 1g
	refuses "unknown option --memory-swap; see agentdock run --help" --memory-swap=1g
	refuses "unknown option -z; see agentdock run --help" -z
	refuses "--json takes no value" --json=yes
	fails "--memory needs a value: SIZE" run --memory
	fails "no command given; usage: agentdock run [options] -- COMMAND [ARG...]" run
	fails "no command given; usage: agentdock run [options] -- COMMAND [ARG...]" run -q --
	fails "the command is an empty word" run -- ""
}

@test "what people know from docker is answered with what there is instead" {
	local option hint
	while IFS='|' read -r option hint; do
		refuses "unknown option ${option%%=*}; $hint" "$option"
	done <<-'END'
		-i|a sandbox has no terminal; --stdin - hands standard input on
		-t|a sandbox has no terminal; --stdin - hands standard input on
		--interactive|a sandbox has no terminal; --stdin - hands standard input on
		--tty|a sandbox has no terminal; --stdin - hands standard input on
		--rm|leave it out: nothing stays of a sandbox
		-v|nothing of the host is mounted; --workspace DIR copies a directory in
		--volume=/:/host|nothing of the host is mounted; --workspace DIR copies a directory in
		--mount=type=bind|nothing of the host is mounted; --workspace DIR copies a directory in
		--name=x|sandboxes have no names; --label KEY=VALUE is carried into the report
		--privileged|no sandbox has a capability, nor can it be given one
		--cap-add=ALL|no sandbox has a capability, nor can it be given one
		-p|a sandbox has no network, so it has no ports
		--publish=80|a sandbox has no network, so it has no ports
		-d|leave it out: run waits for the command; the shell's & does not
		--detach|leave it out: run waits for the command; the shell's & does not
	END
	refuses "unknown option -i; a sandbox has no terminal; --stdin - hands standard input on" -it
	# these are taken as docker takes them, so that the next fault is told
	refuses "--label: 'x': want KEY=VALUE" -m=512m --cpus .5 -u=1000 --label x
	fails "image: unknown verb ls; did you mean list?" image ls
	fails "image: unknown verb remove; did you mean rm?" image remove x
	fails "image: unknown verb prune; did you mean gc?" image prune
}

@test "help and version go to standard output" {
	run -0 --separate-stderr "$agentdock" --version
	[[ $output =~ ^agentdock\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	run -0 --separate-stderr "$agentdock" --help
	[[ $output == "usage: agentdock COMMAND"* ]] && [ -z "$stderr" ]
	run -0 --separate-stderr "$agentdock" run --help
	[[ $output == *"--memory SIZE"*"--allow-missing LIST"*"SANDBOX_MEMORY_LIMIT"* ]]
	run_help=$output
	run -0 "$agentdock" help run
	[ "$output" = "$run_help" ]
	run -0 "$agentdock" help image import
	[[ $output == "usage: agentdock image import "*"--arch MACHINE"*"--json"* ]]
	run -0 "$agentdock" help gc
	[[ $output == "usage: agentdock gc [--json]"* ]]
	run -125 --separate-stderr "$agentdock"
	[ -z "$output" ] && [[ $stderr == "usage: agentdock COMMAND"* ]]
}

@test "no help is wider than 80 columns" {
	local words
	while read -r -a words; do
		run -0 "$agentdock" "${words[@]}" --help
		[ -z "$(awk 'length > 80' <<<"$output")" ]
	done <<-'END'
		run
		image
		image import
		image list
		image inspect
		image rm
		image gc
		gc
		doctor
	END
	run -0 "$agentdock" --help
	[ -z "$(awk 'length > 80' <<<"$output")" ]
}

@test "limits that make no sense" {
	refuses "--memory: '1' is out of bounds: 256 KiB to 16 TiB" --memory 1
	refuses "--memory: '0' is out of bounds: 256 KiB to 16 TiB" -m 0
	refuses "--memory: 'much' is not a size such as 512m, 1.5g or 65536" --memory much
	refuses "--memory: '-1' is not a size such as 512m, 1.5g or 65536" --memory -1
	refuses "--cpus: '.' is not a number above zero with at most three decimals, such as 1.5" \
		--cpus .
	refuses "--cpus: '0' is not a number above zero with at most three decimals, such as 1.5" \
		--cpus 0
	refuses "--cpus: '0.001' is out of bounds: 0.01 to $(getconf _NPROCESSORS_ONLN), the CPUs of this host" \
		--cpus 0.001
	refuses "--cpus: '100000' is out of bounds: 0.01 to $(getconf _NPROCESSORS_ONLN), the CPUs of this host" \
		--cpus 100000
	refuses "--pids-limit: '1' is out of bounds: 2 to 4194304" --pids-limit 1
	refuses "--pids-limit: '0x10' is not a whole number; write digits only" --pids-limit 0x10
	refuses "--disk: '4k' is out of bounds: 1.0 MiB to 16 TiB" --disk 4k
	refuses "--inodes: '1' is out of bounds: 64 to 1073741824" --inodes 1
	refuses "--disk-backing: 'zfs': want auto, image or tmpfs" --disk-backing zfs
	refuses "--timeout: 'soon' is not a time span such as 90, 1.5s, 500ms, 2m or 1h" \
		--timeout soon
	refuses "--timeout: '9000h' is out of bounds: 0s to 8760h" --timeout 9000h
	refuses "--grace: '2h' is out of bounds: 0s to 1h" --grace 2h
	refuses "--start-timeout: '1ms' is out of bounds: 0.1s to 1h" --start-timeout 1ms
	refuses "--max-output: '2g' is out of bounds: 2 B to 1.0 GiB" --max-output 2g
	refuses "--ulimit: 'nofile': want nofile=SOFT[:HARD]" --ulimit nofile
	refuses "--ulimit: 'nofile=8:4': the soft limit is above the hard one" --ulimit nofile=8:4
	refuses "--ulimit: nofile: 'many' is not a whole number; write digits only" --ulimit nofile=many
	refuses "--allow-missing: 'cpu,disk': want a list of cpu, memory, pids, userns" \
		--allow-missing cpu,disk
	refuses "--allow-missing: '': want a list of cpu, memory, pids, userns" --allow-missing ""
}

@test "variables of the environment are held to the same rules, by their name" {
	SANDBOX_MEMORY_LIMIT=lots refuses \
		"SANDBOX_MEMORY_LIMIT: 'lots' is not a size such as 512m, 1.5g or 65536"
	SANDBOX_PIDS_LIMIT=1 refuses "SANDBOX_PIDS_LIMIT: '1' is out of bounds: 2 to 4194304"
	SANDBOX_INODES_LIMIT=1 refuses \
		"SANDBOX_INODES_LIMIT: '1' is out of bounds: 64 to 1073741824"
	SANDBOX_NETWORK_DISABLED=false refuses \
		"SANDBOX_NETWORK_DISABLED: 'false': only true is possible, a sandbox has no network; unset it"
	# an empty one is not set, and a good one passes: the next thing that is wrong is told
	SANDBOX_NETWORK_DISABLED="" SANDBOX_MEMORY_LIMIT="" SANDBOX_TIMEOUT_SECONDS="" refuses \
		"--label: 'x': want KEY=VALUE" --label x
	SANDBOX_MEMORY_LIMIT=1g SANDBOX_CPU_LIMIT=0.5 SANDBOX_TIMEOUT_SECONDS=60 \
		SANDBOX_DISK_LIMIT=64m SANDBOX_MAX_OUTPUT_BYTES=1000 SANDBOX_NETWORK_DISABLED=true \
		refuses "--hostname: 'a_b': want 1 to 63 letters, digits, '-' or '.', a letter or digit first" \
		--hostname a_b
}

@test "directories of ours are absolute, and named by their variables" {
	local command
	for command in "run -- true" gc "image list"; do
		# shellcheck disable=SC2086
		AGENTDOCK_STATE_DIR=state fails \
			"AGENTDOCK_STATE_DIR: 'state': want a path that begins with /" $command
		# shellcheck disable=SC2086
		AGENTDOCK_RUN_DIR=./run fails \
			"AGENTDOCK_RUN_DIR: './run': want a path that begins with /" $command
	done
	run -125 env AGENTDOCK_STATE_DIR=state "$agentdock" doctor
	[[ $output == *"AGENTDOCK_STATE_DIR: 'state': want a path that begins with /"* ]]
	AGENTDOCK_CGROUP_PARENT=/x refuses \
		"AGENTDOCK_CGROUP_PARENT: '/x': want a path below the cgroup mounts (no leading /, no ..), such as agentdock"
	run -125 env AGENTDOCK_CGROUP_PARENT="a b" "$agentdock" doctor
	[[ $output == *"AGENTDOCK_CGROUP_PARENT: 'a b-doctor-"*"': want a path below the cgroup mounts (no leading /, no ..), of letters, digits, '_', '-' and '.'"* ]]
	touch file
	AGENTDOCK_RUN_DIR=$PWD/file/run refuses \
		"run directory $PWD/file/run (AGENTDOCK_RUN_DIR): making the directory $PWD/file/run: Not a directory"
	AGENTDOCK_STATE_DIR=$PWD/file/state refuses \
		"state directory $PWD/file/state (AGENTDOCK_STATE_DIR): making the directory $PWD/file/state: Not a directory"
	[ ! -e state ]
}

@test "an installation without agentdock-archive says so, the same everywhere" {
	local text="/nowhere/agentdock-archive: No such file or directory; make install, or set AGENTDOCK_LIBEXEC to the directory that has it"
	mkdir dir
	export AGENTDOCK_LIBEXEC=/nowhere
	refuses "$text" --workspace dir
	fails "$text" image import dir x
	cp "$agentdock" .
	agentdock=./agentdock refuses "--fixture: no fixtures/sample-repo in $PWD/.. or /nowhere; make install, or set AGENTDOCK_LIBEXEC to the directory that has it" \
		--fixture
	run -125 "$agentdock" doctor
	[[ $output == *"$text"* ]]
}

@test "with --json the error is a report as well, wherever the option stands" {
	local options
	while read -r -a options; do
		run -125 --separate-stderr "$agentdock" run "${options[@]}" -- true
		[ "${#stderr_lines[@]}" = 1 ] && [ "${#lines[@]}" = 1 ]
		jq -e --arg line "$stderr" '.reason == "start_failed" and .exit_status == 125 and
			.exit_code == null and "agentdock: " + .error == $line' <<<"$output"
	done <<-'END'
		--json --frobnicate
		--frobnicate --json
		--memory lots --memory more --json
		--json --image nonesuch
		--json --workspace absent
	END
	AGENTDOCK_RUN_DIR=here run -125 --separate-stderr "$agentdock" run --json -- true
	jq -e '.reason == "internal" and (.error | startswith("AGENTDOCK_RUN_DIR"))' <<<"$output"
	# what belongs to the command is none of our options
	run -125 --separate-stderr "$agentdock" run --frobnicate -- true --json
	[ -z "$output" ]
}

@test "users are numbers, and nothing else becomes one" {
	local want="want UID or UID:GID in numbers, 0 to 65535; names are not looked up" user
	for user in root 65536 4294967296 -1 1:2:3 : :1 0x0 " 0" 1000abc 10001:staff ""; do
		refuses "--user: '$user': $want" --user "$user"
	done
	refuses "--user: '1000:': no GID behind the colon; want 1000 for both, or UID:GID" --user 1000:
}

@test "a secret is not given to a sandbox, however it is asked for" {
	local name
	for name in DATABASE_URL REDIS_URL SESSION_SECRET DOCKER_HOST GITHUB_APP_ID GITHUB_TOKEN \
		WEBHOOK_SECRET OPENAI_API_KEY ANTHROPIC_API_KEY AWS_SECRET_ACCESS_KEY npm_token \
		GITHUB_APP_PRIVATE_KEY DB_PASSWORD MYSQL_PWD SSH_AUTH_SOCK; do
		refuses "--env: $name looks like a secret, and a sandbox is given none; use another name if it is not one" \
			-e "$name=hush"
		export "$name=hush"
		refuses "--env: $name looks like a secret, and a sandbox is given none; use another name if it is not one" \
			-e "$name"
		unset "$name"
	done
	printf '# comment\n\nGOOD=1\nNPM_TOKEN=hush\n' >job.env
	refuses "--env-file: job.env:4: NPM_TOKEN looks like a secret, and a sandbox is given none; use another name if it is not one" \
		--env-file job.env
}

@test "variables that have no name or no value" {
	refuses "--env: NOT_SET_HERE is not set here; give a value: NOT_SET_HERE=VALUE" \
		-e NOT_SET_HERE
	refuses "--env: an assignment needs a name before the =" -e =x
	refuses "--env: 1ST: a name does not start with a digit" -e 1ST=x
	refuses "--env: A B: a name has letters, digits, '_', '.' and '-' only" -e "A B=x"
	refuses "--env-file: opening none.env: No such file or directory" --env-file none.env
	refuses "--env-file: '-': want a file; /dev/stdin is one where standard input is to be read" \
		--env-file -
	refuses "--env-file: /dev/stdin:1: 1ST: a name does not start with a digit" \
		--env-file /dev/stdin < <(echo 1ST=x)
	printf 'A=1\0B=2\n' >nul.env
	refuses "--env-file: nul.env: holds a NUL byte; it is to be text" --env-file nul.env
	# harmless names that look a little like secrets pass: the next fault is told
	refuses "--label: 'x': want KEY=VALUE" -e TOKENIZERS_PARALLELISM=false -e MONKEY=1 --label x
}

@test "places inside" {
	refuses "--workdir: '../x': a path with .. is refused; name it from /workspace" -w ../x
	refuses "--workdir: '/a/../b': a path with .. is refused; name it from /workspace" -w /a/../b
	refuses "--workdir: an empty value; want a directory inside" -w ""
	refuses "--tmpfs: 'tmp': want an absolute path inside, without . and .." --tmpfs tmp
	refuses "--tmpfs: '/a/../proc': want an absolute path inside, without . and .." \
		--tmpfs /a/../proc
	refuses "--tmpfs: '//proc': want an absolute path inside, without . and .." --tmpfs //proc
	refuses "--tmpfs: /proc/sys: /proc is the sandbox's own" --tmpfs /proc/sys
	refuses "--tmpfs: /workspace: it would hide the workspace" --tmpfs /workspace/
	refuses "--tmpfs: 'suid': want size=SIZE, mode=OCTAL, exec or noexec" --tmpfs /tmp:suid
	refuses "--tmpfs: 'mode=4755': want octal permissions, 1 to 1777" --tmpfs /tmp:mode=4755
	refuses "--tmpfs: 'size=1' is out of bounds: 4 KiB or more" --tmpfs /tmp:size=1
	refuses "--tmpfs: /tmp: given twice" --tmpfs /tmp --tmpfs /tmp/
	refuses "--network: 'host': only none is possible, a sandbox has no network" --network host
}

@test "files and directories of ours that are not what they should be" {
	touch file && mkdir dir && mkfifo pipe
	refuses "--workspace: file is not a directory" --workspace file
	refuses "--workspace: none: No such file or directory" --workspace none
	refuses "--fixture and --workspace exclude each other" --fixture --workspace dir
	refuses "--stdin: none: No such file or directory" --stdin none
	refuses "--stdin: dir is a directory" --stdin dir
	refuses "--meta: none/r.json: writing in none: No such file or directory" --meta none/r.json
	refuses "--meta: dir is not a regular file" --meta dir
	refuses "--meta: '-': want a file; --json prints the report on standard output" --meta -
	refuses "--meta: pipe is not a regular file" --meta pipe
	refuses "--seccomp: opening none.json: No such file or directory" --seccomp none.json
	[ ! -e "$AGENTDOCK_STATE_DIR" ] && [ ! -e "$AGENTDOCK_RUN_DIR" ] # nothing was begun
	refuses "--keep needs --disk-backing image: a tmpfs is gone with its sandbox" \
		--keep --disk-backing tmpfs
}

@test "a seccomp profile that is none is an error that names it" {
	echo '{"surprise": 1}' >profile.json
	run -125 --separate-stderr "$agentdock" run --seccomp profile.json -- true
	[[ $stderr == "agentdock: --seccomp: profile.json: "*surprise* ]]
	[ -z "$output" ]
}

@test "an image that is not there is named, and so is the way to get it" {
	run -125 --separate-stderr "$agentdock" run --image nonesuch -- true
	[[ $stderr == "agentdock: "*nonesuch*"agentdock image import"* ]]
	[ "${#stderr_lines[@]}" = 1 ] && [ -z "$output" ]
}

@test "gc of a store that holds nothing frees nothing" {
	run -0 --separate-stderr "$agentdock" gc
	[ "$output" = "freed 0 B in 0 unused layers; cleared away 0 dead sandboxes and 0 templates of disks" ]
	[ -z "$stderr" ]
	run -0 --separate-stderr "$agentdock" gc --json
	[ "$output" = '{"freed_bytes":0,"layers":0,"dead_sandboxes":0,"disk_templates":0}' ] && [ -z "$stderr" ]
}

@test "a name with an escape sequence does not reach the terminal" {
	run -125 --separate-stderr "$agentdock" $'\e[31mred'
	[ "$stderr" = 'agentdock: unknown command \x1b[31mred; see agentdock --help' ]
}

@test "closed descriptors 0 to 2 are no trap" {
	run -125 --separate-stderr bash -c '"$1" run --memory 1 -- true <&- >&-' - "$agentdock"
	[ "$stderr" = "agentdock: --memory: '1' is out of bounds: 256 KiB to 16 TiB" ]
	run -125 bash -c '"$1" run --memory 1 -- true <&- >&- 2>&-' - "$agentdock"
}

@test "without /dev/null what has its descriptors works, and what lacks one says so" {
	# shellcheck disable=SC2016
	run -0 unshare -m sh -c 'mount -t tmpfs none /dev; exec "$1" --version' - "$agentdock"
	# shellcheck disable=SC2016
	run -125 --separate-stderr unshare -m sh -c 'mount -t tmpfs none /dev; exec "$1" --version <&-' - "$agentdock"
	[ "$stderr" = "agentdock: descriptor 0 is closed, and opening /dev/null in its place: No such file or directory; mount /dev, or start agentdock with 0 to 2 open" ]
}

@test "doctor refuses the run directory that run refuses" {
	mkdir theirs
	chmod 777 theirs
	AGENTDOCK_RUN_DIR=$PWD/theirs run -125 "$agentdock" doctor
	[[ $output == *"run directory "*" missing  $PWD/theirs can be written by others than root; chown it to root "* ]]
	AGENTDOCK_RUN_DIR=$PWD/theirs run -125 --separate-stderr "$agentdock" run -- true
	[[ $stderr == "agentdock: run directory $PWD/theirs can be written by others than root; "* ]]
	chmod 700 theirs
	AGENTDOCK_RUN_DIR=$PWD/theirs "$agentdock" doctor --json >doctor.json || true
	[ "$(jq -r '.[] | select(.check == "run directory") | .state' doctor.json)" = ok ]
}

@test "doctor knows the sysctl that makes pid 1 of a sandbox readable" {
	local value
	for value in 0 1 2; do
		echo $value >value
		# shellcheck disable=SC2016 # the inner shell's
		unshare --mount sh -ec 'mount --bind value /proc/sys/fs/suid_dumpable
			"$0" doctor --json >doctor.json || true' "$agentdock"
		run -0 jq -r '.[] | select(.check == "agentdock-init") | .state' doctor.json
		[ "$output" = "$([ $value = 1 ] && echo degraded || echo ok)" ]
	done
}

@test "doctor tells whoever is not root that first, and claims nothing that it did not try" {
	# a program that nobody else may reach cannot be started by somebody else
	cp "$agentdock" "$(dirname "$agentdock")/agentdock-archive" "$BATS_TEST_TMPDIR"
	chmod 0755 "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_SUITE_TMPDIR" "$BATS_RUN_TMPDIR"
	run -125 --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups ./agentdock doctor
	[[ ${lines[0]} == "agentdock doctor was not started as root:"* ]]
	[[ $output == *"privileges "*"missing    user id 65534; run agentdock as root (sudo)"* ]]
	[[ $output == *$'\nnamespaces            not tried  needs root\n'* ]]
	run -125 setpriv --reuid=65534 --regid=65534 --clear-groups ./agentdock doctor --json
	[ "$(jq -r '.[] | select(.state == "missing") | .check' <<<"$output")" = privileges ]
	[ "$(jq '[.[] | select(.state == "not tried") | .way_out] | unique | tojson' <<<"$output")" = '"[\"\"]"' ]
}

@test "what cannot be printed is a failure" {
	run -125 --separate-stderr bash -c '"$1" --help >/dev/full' - "$agentdock"
	[ "$stderr" = "agentdock: writing to standard output: No space left on device" ]
}
