#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The environment of a command is built from nothing, and nothing of the caller's shows inside: no variable, no
# descriptor, no path. Requirements CO4, CO5, IS8, IS14, TR3.
load common

setup() {
	common_setup
	use_default_image
}

standard="CI=true
AGENTDOCK_SANDBOX=true
HOME=/workspace
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LANG=C.UTF-8"

# environ OPTION...: the environment as the kernel has it, one assignment a line, in $output
environ() {
	"$agentdock" run "$@" -- cat /proc/self/environ >environ
	output=$(tr '\0' '\n' <environ)
}

# bats test_tags=any_kernel
@test "the environment is exactly the standard one, to the byte" {
	environ
	equal "the environment" "$output" "$standard"
	printf '%s\n' "$standard" | tr '\n' '\0' | cmp - environ
}

# bats test_tags=any_kernel
@test "and so it is whatever the caller's is" {
	run -0 env -i "AGENTDOCK_STATE_DIR=$AGENTDOCK_STATE_DIR" "AGENTDOCK_RUN_DIR=$AGENTDOCK_RUN_DIR" \
		"AGENTDOCK_CGROUP_PARENT=$AGENTDOCK_CGROUP_PARENT" "$agentdock" run -- env
	equal "from an empty one" "$output" "$standard"
	run -0 env PATH=/nowhere HOME=/root LANG=de_DE.UTF-8 CI=false LD_PRELOAD= PYTHONPATH=/tmp IFS=x TERM=vt100 \
		"$agentdock" run -- env
	equal "from another" "$output" "$standard"
}

@test "as the host sees it: the command has the same, and pid 1 none" {
	local init command
	start one
	read -r init command <<<"$(host_pids one)"
	tr '\0' '\n' <"/proc/$command/environ" >environ
	equal "the environment of the command" "$(<environ)" "$standard"
	equal "the bytes of that of pid 1" "$(wc -c <"/proc/$init/environ")" 0
	finish one
}

# bats test_tags=any_kernel
@test "--env adds, replaces, takes from the caller; the last one counts" {
	environ -e NODE_ENV=test -e EMPTY= -e HOME=/tmp -e NODE_ENV=ci --env=WORDS="a  b=c"
	equal "the environment" "$output" "CI=true
AGENTDOCK_SANDBOX=true
HOME=/tmp
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LANG=C.UTF-8
NODE_ENV=ci
EMPTY=
WORDS=a  b=c"
	BUILD_NUMBER=17 environ -e BUILD_NUMBER
	equal "the environment" "$output" "$standard
BUILD_NUMBER=17"
	"$agentdock" run -e $'LINES_=one\ntwo\t\xff' -- printenv LINES_ >printed
	printf 'one\ntwo\t\xff\n' | cmp - printed
}

# bats test_tags=any_kernel
@test "PATH, when it is set, is where the command is looked up" {
	run -127 --separate-stderr "$agentdock" run -e PATH=/nowhere -- true
	[[ $stderr == *"its PATH is /nowhere"* ]]
	mkdir -p work/tools
	printf '#!/bin/sh\necho mine\n' >work/tools/true
	chmod 755 work/tools/true
	inside --workspace work -e PATH=/workspace/tools:/usr/bin:/bin -- true
	equal output "$output" mine
}

# bats test_tags=any_kernel
@test "--env-file: comments, empty lines, CR LF, a last line without an end" {
	printf '# a comment\n\nA=1\r\nB=two words # no comment\nC="kept as it is"\nHOST_VALUE\nA=3\nD=' >job.env
	HOST_VALUE=taken environ --env-file job.env
	equal "the environment" "$output" "$standard
A=3
B=two words # no comment
C=\"kept as it is\"
HOST_VALUE=taken
D="
	printf 'A=file\n' >a.env
	environ -e A=before --env-file a.env
	[[ $output == *$'\nA=file' ]]
	environ --env-file a.env -e A=after
	[[ $output == *$'\nA=after' ]]
}

# Reads every file that can be read, follows every link that /proc shows, and prints where the word on its standard
# input shows. The word comes reversed, so that it is nowhere in what the searcher itself was given.
search='
import os, sys
word = sys.stdin.buffer.read().strip()[::-1]
assert len(word) > 8
read, found, mine = 0, [], f"/proc/{os.getpid()}/"
def look(path, data):
    if word in data:
        found.append(path)
for top in "/", "/proc", "/dev":
    for directory, below, files in os.walk(top):
        if top == "/":
            below[:] = [name for name in below if os.path.join(directory, name) not in ("/proc", "/dev", "/sys")]
        for name in below + files:
            path = os.path.join(directory, name)
            look("name of " + path, os.fsencode(name))
            try:
                if os.path.islink(path):
                    look("link " + path, os.fsencode(os.readlink(path)))
                # the memory of the searcher has the word
                elif name in files and top != "/dev" and not (path.startswith(mine) and name in ("mem", "pagemap")):
                    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    with open(fd, "rb") as file:
                        look(path, file.read(1 << 26))
                    read += 1
            except OSError:
                pass
look("environ", b"\0".join(k + b"=" + v for k, v in os.environb.items()))
look("cwd", os.fsencode(os.getcwd()))
for fd in range(3, 1024):
    try:
        os.fstat(fd)
        found.append(f"descriptor {fd}")
    except OSError:
        pass
print(*sorted(found), "searched" if read > 2000 else f"only {read} files", sep="\n")
'

@test "a caller full of secrets: nothing of it shows in any file that can be read inside" {
	local word secret
	word=hush$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
	# where one stands, what is open, what is copied in, where our own things are: each has the word in its name
	mkdir -p "at-$word/work-$word" "run-$word"
	mv state "state-$word"
	export AGENTDOCK_STATE_DIR=$PWD/state-$word AGENTDOCK_RUN_DIR=$PWD/run-$word
	echo "$word" >"secret-$word"
	printf '%s' "$search" >"at-$word/work-$word/search.py"
	rev <<<"$word" >reversed
	(
		for secret in DATABASE_URL REDIS_URL SESSION_SECRET GITHUB_APP_ID GITHUB_APP_PRIVATE_KEY WEBHOOK_SECRET \
			OPENAI_API_KEY ANTHROPIC_API_KEY DOCKER_HOST AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN \
			SSH_AUTH_SOCK XDG_SECRET "$word" "RANDOM_$RANDOM" LD_LIBRARY_PATH PYTHONSTARTUP TMPDIR; do
			export "$secret=x-$word"
		done
		exec 7<"secret-$word" 8<"at-$word" 9>>"secret-$word"
		cd "at-$word"
		"$agentdock" run --workspace "work-$word" --label "label=$word" --meta "meta-$word" --timeout 300 \
			--stdin ../reversed -- python3 search.py >../found
	)
	equal "where the secret shows" "$(<found)" searched
	# the search does find what is there
	echo "$word" >"at-$word/work-$word/planted"
	"$agentdock" run --workspace "at-$word/work-$word" -e "HARMLESS=$word" --timeout 300 --stdin reversed \
		-- python3 search.py >found
	run -0 cat found
	[ "${lines[-1]}" = searched ]
	[[ $'\n'$output$'\n' == *$'\n/workspace/planted\n'* ]]
	[[ $output =~ /proc/[0-9]+/environ ]]
	[[ $'\n'$output$'\n' == *$'\nenviron\n'* ]]
}

@test "a thief's first looks find nothing: environment, descriptors, mounts, other processes" {
	local word
	word=hush$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
	mkdir work
	cp "$root/fixtures/hostile/secrets.py" work
	echo "$word" >secret
	run -0 env "DATABASE_URL=postgres://u:$word@db/x" "OPENAI_API_KEY=$word" "$agentdock" run --workspace work \
		-- python3 secrets.py 7<secret
	echo "$output" >thief.json
	run -1 grep -F "$word" thief.json
	# it looked: at itself, and at pid 1, which shows its command line alone
	holds thief.json '.environment.CI == "true" and (.processes | length == 2)'
	holds thief.json '.processes["1"] | .cmdline | startswith("agentdock-init")'
	holds thief.json '.processes["1"] | [.environ, .maps, .cwd, .exe, .root, .fd] | unique == [{errno: 13}]'
	holds thief.json '.kernel_command_line == "" and .keys == ""'
	holds thief.json '.descriptors | keys - ["3"] == ["0","1","2"]'
}

# bats test_tags=any_kernel
@test "the caller's directory is not where the command starts, and not to be reached from there" {
	mkdir -p here
	touch here/mark
	cd here
	inside -- sh -c 'pwd; ls -A; ls -A ..  | xargs; cd ..; pwd'
	equal output "$output" "/workspace
bin boot dev etc home lib lib64 media mnt opt proc root run sbin srv sys tmp usr var workspace
/"
	inside -- sh -c 'find / -name mark -path "*here*" 2>/dev/null; true'
	equal "the mark" "$output" ""
}

# bats test_tags=any_kernel
@test "stdin: nothing unless it is given; then the file's bytes, or the caller's" {
	inside -- sh -c 'readlink /proc/self/fd/0; wc -c' <<<"the caller's"
	equal "no stdin" "$output" $'/dev/null\n0'
	printf 'a\0b\377' >bytes
	"$agentdock" run --stdin bytes -- cat >copy
	cmp bytes copy
	"$agentdock" run --stdin - -- cat <bytes >copy
	cmp bytes copy
	# the file itself is not there: what is written to stdin, or its name, leads nowhere
	inside --stdin bytes -- sh -c 'readlink /proc/self/fd/0; (echo x >&0) 2>/dev/null || echo closed'
	[[ $output == pipe:*$'\nclosed' ]]
	head -c 1000000 /dev/urandom >large
	equal "a large one" "$("$agentdock" run --stdin large -- sha256sum)" "$(sha256sum <large)"
	# a command that does not read all of it, or none, is no trouble
	inside --stdin large -- head -c 0
	inside --stdin large -- true
}
