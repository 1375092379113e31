# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2004
# What cases, endings and faults share beyond common.bash: the report of a run, sandboxes that go on in the background
# until they end by themselves, and small images of the machine's own programs.

# report OPTION... -- WORD...: runs it; the report is in the file $json. The exit status must be the one that it says, so
# that what a test reads there is what a caller gets.
report() {
	local status=0
	json=$BATS_TEST_TMPDIR/report.json
	"$agentdock" run --json "$@" >"$json" 2>"$BATS_TEST_TMPDIR/report.err" || status=$?
	if ! jq -e --argjson status "$status" '.exit_status == $status' "$json" >/dev/null; then
		echo "status $status, not as in the report:" >&2
		cat "$json" "$BATS_TEST_TMPDIR/report.err" >&2
		return 1
	fi
}

# is FILTER VALUE...: what the report in $json says there.
is() {
	local filters=() wanted=() got=() i all
	while [ $# -gt 0 ]; do
		filters+=("$1") wanted+=("$2")
		shift 2
	done
	# all in one go, with a NUL after each
	all=$(printf '(%s), "\\u0000", ' "${filters[@]}")
	mapfile -d '' -t got < <(jq -j "${all%, }" "$json")
	for i in "${!filters[@]}"; do
		if [ "${got[i]-nothing}" != "${wanted[i]}" ]; then
			printf '%s is %q, wanted %q, in:\n' "${filters[i]}" "${got[i]-}" "${wanted[i]}" >&2
			jq -c 'del(.score)' "$json" | head -c 3000 >&2
			return 1
		fi
	done
}

# so FILTER: it is true of the report in $json.
so() {
	holds "$json" "$1"
}

# nothing_runs: no process, group, label or mount is left of what this test ran and waited for.
nothing_runs() {
	local left
	left=$(leftovers)
	[ -z "$left" ] || { printf 'left: %s\n' "$left" >&2; return 1; }
}

# wait_for COMMAND...: until it succeeds; a minute at most.
wait_for() {
	local until=$((SECONDS + 60))
	while [ "$SECONDS" -lt "$until" ]; do
		"$@" && return 0
		sleep 0.05
	done
	echo "never: $*" >&2
	return 1
}

# background NAME WORD...: starts it with its output in NAME.out and NAME.err; started[NAME] is its pid.
background() {
	local name=$1
	shift
	"$@" >"$name.out" 2>"$name.err" 3>&- &
	started[$name]=$!
}

# reap NAME: waits for it to end; its exit status is in $status.
reap() {
	status=0
	wait "${started[$1]}" || status=$?
	unset "started[$1]"
}

# says NAME TEXT: whether the program in the background has printed TEXT.
says() {
	grep -qF -- "$2" "$1.out"
}

# root_of DIRECTORY PROGRAM...: a root of these programs of the machine and the libraries that they need.
root_of() {
	local to=$1 name path
	shift
	mkdir -p "$to/bin" "$to/usr" "$to/tmp" "$to/etc"
	ln -s ../bin "$to/usr/bin"
	for name; do
		path=$(readlink -f "$(command -v "$name")")
		cp "$path" "$to/bin/$name"
		{ ldd "$path" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r path; do
			mkdir -p "$to${path%/*}"
			cp -L "$path" "$to$path"
		done || true
	done
}

# use_small_image PROGRAM...: the test's own store gets an image "small" of these; the first is to be sh.
use_small_image() {
	root_of small "$@"
	"$agentdock" image import small small >/dev/null
	rm -rf small
}
