# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the generated escape tests do: two audits, one of the build under test and one, without the walls, of the build
# with UNSAFE=1 (AGENTDOCK_UNSAFE_BUILD, by default build-unsafe); then a test looks at each verdict.
load "$AGENTDOCK_ROOT/tests/cli/common.bash"

setup_file() {
	# the file that is generated does not lie in the tree
	BATS_TEST_DIRNAME=$AGENTDOCK_ROOT/tests/cli BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR BATS_TEST_NUMBER=0 common_setup
	# the images of the attacks, and what they are executed from, in every build
	use_static_archiver
	"$agentdock" audit --json >"$BATS_FILE_TMPDIR/held.json" 2>"$BATS_FILE_TMPDIR/held.stderr" || true
	if grep -q works_without_its_wall "$BATS_TEST_FILENAME"; then
		"${AGENTDOCK_UNSAFE_BUILD:-$root/build-unsafe}/agentdock" audit --json --control \
			>"$BATS_FILE_TMPDIR/broken.json" 2>"$BATS_FILE_TMPDIR/broken.stderr" || true
	fi
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR leftovers >"$BATS_FILE_TMPDIR/left"
	end_leftovers
	"$agentdock" audit --json --list >"$BATS_FILE_TMPDIR/list.json"
}

# the sandboxes are those of setup_file
teardown() {
	:
}

# outcome WANTED NAME WHAT-IF-NOT: the verdict on NAME in WANTED.json is WANTED, or nobody could try it here.
outcome() {
	local result=$BATS_FILE_TMPDIR/$1 row
	row=$(jq -r --arg name "$2" '.attacks[] | select(.attack == $name) | "\(.outcome): \(.evidence)"' "$result.json")
	case $row in
	"$1: "*) ;;
	"absent: "*) skip "$row" ;;
	*)
		printf '%s\n%s\n' "$3" "${row:-no verdict: $(cat "$result.stderr")}" >&2
		return 1
		;;
	esac
}

is_held() {
	outcome held "$1" "The attack $1 is not held."
}

works_without_its_wall() {
	outcome broken "$1" "Without its wall $1 does not work either, so that it is held says nothing."
}

has_no_control() {
	holds "$BATS_FILE_TMPDIR/list.json" 'any(.[]; .attack == $name and (.no_control | length) > 20)' --arg name "$1"
}

nothing_is_left() {
	equal "what is left of the sandboxes" "$(cat "$BATS_FILE_TMPDIR/left")" ""
}
