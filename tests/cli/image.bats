#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `agentdock image`: what people and programs read, what is refused, what a broken import leaves.
load common

setup() {
	common_setup
	mkdir -p tree/bin
	cp /bin/true tree/bin/sh
}

nothing_half() {
	[ -z "$(ls -A "$AGENTDOCK_STATE_DIR/tmp")" ]
}

@test "import, list, inspect, rm, gc: for people" {
	run -0 "$agentdock" image import tree py/thon:3
	[[ $output == "py/thon:3: sha256:"*", 2 entries, "* ]]
	run -0 "$agentdock" image list
	[[ ${lines[0]} == NAME*DIGEST*MACHINE*SIZE*ENTRIES*IMPORTED ]]
	[[ ${lines[1]} == "py/thon:3 "* ]]
	run -0 "$agentdock" image inspect py/thon:3
	[[ $output == *"name      py/thon:3"* ]]
	run -0 "$agentdock" image rm py/thon:3
	[ "$output" = "removed py/thon:3" ]
	run -0 "$agentdock" image gc
	[[ $output == "freed "*" in 1 layer" ]]
	run -0 "$agentdock" image list
	[ "${#lines[@]}" = 1 ]
}

@test "import, list, inspect, rm, gc: for programs" {
	run -0 --separate-stderr "$agentdock" image import tree a --json
	[ -z "$stderr" ]
	digest=$(jq -r .digest <<<"$output")
	[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]]
	[ "$("$agentdock" image list --json | jq -r '.[0].digest')" = "$digest" ]
	[ "$("$agentdock" image inspect --json "$digest" | jq -c '.names, .entries')" = $'["a:latest"]\n2' ]
	[ "$("$agentdock" image rm --json "${digest:7:8}" | jq length)" = 1 ]
	[ "$("$agentdock" image gc --json | jq .layers)" = 1 ]
	[ "$("$agentdock" image list --json)" = "[]" ]
}

@test "a tar on standard input is the same image as in a file, however it is packed" {
	tar -cf t.tar -C tree .
	"$agentdock" image import t.tar plain
	gzip -c t.tar | "$agentdock" image import - packed
	[ "$("$agentdock" image inspect plain)" = "$("$agentdock" image inspect packed)" ]
}

@test "what is refused, in one line" {
	fails "image: unknown verb lsit; did you mean list?" image lsit
	fails "image: unknown verb frobnicate; see agentdock image --help" image frobnicate
	fails "image list: got 1 argument; usage: agentdock image list [--json]" image list x
	fails "image rm: got 0 arguments; usage: agentdock image rm REF... [--json]" image rm
	fails "image list: unknown or incomplete option --arch=arm64; usage: agentdock image list [--json]" \
		image list --arch=arm64
	fails "image name ../x: not valid; lower-case letters, digits, and '.', '_', '-', '/' between them, then :TAG where wanted" \
		image import tree ../x
	fails "architecture vax: unknown; write it as Go does: amd64, arm64, riscv64, ..." \
		image import tree x --arch vax
	fails "opening absent: No such file or directory" image import absent x
	fails "image x: not in $AGENTDOCK_STATE_DIR; see \`agentdock image list\`, or import it with \`agentdock image import SOURCE NAME\`" \
		image rm x
	nothing_half
}

@test "an archive that is none is refused and leaves nothing" {
	head -c 5000 /dev/urandom >noise
	tar -czf cut.tgz -C tree .
	truncate -s 300 cut.tgz
	for archive in noise cut.tgz /dev/null; do
		run --separate-stderr "$agentdock" image import "$archive" x
		[ "$status" = 125 ]
		[[ $stderr == "agentdock: $archive"* && $stderr != *$'\n'* ]]
	done
	nothing_half
	[ "$("$agentdock" image list --json)" = "[]" ]
}

@test "an error text from inside an archive cannot drive the terminal" {
	printf 'x' >$'a\033]0;owned\007'
	tar -cf evil.tar --transform='s,^,../,' -P $'a\033]0;owned\007'
	run --separate-stderr "$agentdock" image import evil.tar x
	[ "$status" = 125 ]
	[[ $stderr != *$'\033'* && $stderr != *$'\007'* ]]
}

@test "Ctrl-C ends an import and leaves nothing" {
	mkfifo pipe
	setsid "$agentdock" image import - x <pipe 2>stderr &
	importer=$!
	exec 7>pipe
	until compgen -G "$AGENTDOCK_STATE_DIR/tmp/*/layer/root" >/dev/null; do
		kill -0 $importer
	done
	# the archive programs, which are what takes the signal, are there
	until [ "$(pgrep -cg $importer)" = 3 ]; do kill -0 $importer; done
	kill -INT -- -$importer
	status=0
	wait $importer || status=$?
	[ "$status" = 130 ]
	exec 7>&-
	[ "$(<stderr)" = "agentdock: importing -: canceled" ]
	nothing_half
}

@test "progress is shown on a terminal only" {
	run -0 script -qec "'$agentdock' image import tree a" /dev/null
	[[ $output == *"importing tree: "* ]]
	run -0 --separate-stderr "$agentdock" image import tree a
	[ -z "$stderr" ]
}

# stamp RECIPE DIGEST: what packaging/default-image remembers.
stamp() {
	echo "$1 $2" >"$AGENTDOCK_STATE_DIR/default-image.stamp"
}

@test "the default image is not made again when its recipe made it" {
	digest=$("$agentdock" image import tree default --json | jq -r .digest)
	stamp "$(sha256sum <"$root/packaging/default-image" | cut -d' ' -f1)" "$digest"
	run -0 "$root/packaging/default-image" "$agentdock"
	[ "$output" = "image default is there: $digest" ]
}

@test "a default image of the operator's own is kept, unless --force is given" {
	digest=$("$agentdock" image import tree default --json | jq -r .digest)
	script=$root/packaging/default-image
	run -0 "$script" "$agentdock"
	[ "${lines[0]}" = "image default is there, and is not of this script's making; it is kept: $digest" ]
	[ "${lines[1]}" = "to replace it: $script $agentdock --force" ]
	stamp "$(sha256sum <"$script" | cut -d' ' -f1)" sha256:other
	run -0 "$script" "$agentdock"
	[[ $output == *"it is kept: $digest"* ]]
	# what goes on to make one is stopped where it needs a tool
	for word in mmdebstrap apt-get; do
		mkdir -p bin
		printf '#!/bin/sh\necho %s was called >&2\nexit 1\n' "$word" >"bin/$word"
		chmod +x "bin/$word"
	done
	run -1 env PATH="$PWD/bin:$PATH" "$script" "$agentdock" --force
	[[ $output != *"it is kept"* ]]
	stamp older "$digest"
	run -1 env PATH="$PWD/bin:$PATH" "$script" "$agentdock"
	[ "${lines[0]}" = "default-image: image default was made by an older recipe, and is made anew" ]
	[ "$("$agentdock" image list --json | jq -r '.[0].digest')" = "$digest" ]
}
