# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the generated escape tests do: four audits, two of the build under test, of its sandboxes and of its OCI runtime's
# containers, and of the build with UNSAFE=1 (AGENTDOCK_UNSAFE_BUILD, by default build-unsafe) one without the walls and one
# with but one of them at a time; then a test looks at each verdict.
load "$AGENTDOCK_ROOT/tests/cli/common.bash"

setup_file() {
	# the file that is generated does not lie in the tree
	BATS_TEST_DIRNAME=$AGENTDOCK_ROOT/tests/cli BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR BATS_TEST_NUMBER=0 common_setup
	# the images of the attacks, and what they are executed from, in every build
	use_static_archiver
	"$agentdock" audit --json >"$BATS_FILE_TMPDIR/held.json" 2>"$BATS_FILE_TMPDIR/held.stderr" || true
	if grep -q works_without_its_wall "$BATS_TEST_FILENAME"; then
		unsafe=${AGENTDOCK_UNSAFE_BUILD:-$root/build-unsafe}/agentdock
		"$unsafe" audit --json --control >"$BATS_FILE_TMPDIR/broken.json" 2>"$BATS_FILE_TMPDIR/broken.stderr" || true
		"$unsafe" audit --json --alone >"$BATS_FILE_TMPDIR/alone.json" 2>"$BATS_FILE_TMPDIR/alone.stderr" || true
	fi
	if grep -q is_held_in_a_container "$BATS_TEST_FILENAME"; then
		"$AGENTDOCK_ROOT/tests/escape/container_config" >"$BATS_FILE_TMPDIR/config.json"
		"$agentdock" audit --json --runtime "${agentdock%/*}/agentdock-runtime" --config "$BATS_FILE_TMPDIR/config.json" \
			>"$BATS_FILE_TMPDIR/container.json" 2>"$BATS_FILE_TMPDIR/container.stderr" || true
	fi
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR leftovers >"$BATS_FILE_TMPDIR/left"
	end_leftovers
	"$agentdock" audit --json --list >"$BATS_FILE_TMPDIR/list.json"
}

# the sandboxes are those of setup_file
teardown() {
	:
}

# outcome WANTED RESULT NAME WALL WHAT-IF-NOT: the verdict on NAME and WALL ("" for any) in RESULT.json is WANTED, or
# nobody could try it here.
outcome() {
	local result=$BATS_FILE_TMPDIR/$2 row
	row=$(jq -r --arg name "$3" --arg wall "$4" '.attacks[] |
		select(.attack == $name and ($wall == "" or .wall == $wall)) | "\(.outcome): \(.evidence)"' "$result.json")
	case $row in
	"$1: "*) ;;
	"absent: "*) skip "$row" ;;
	*)
		printf '%s\n%s\n' "$5" "${row:-no verdict: $(cat "$result.stderr")}" >&2
		return 1
		;;
	esac
}

is_held() {
	outcome held held "$1" "" "The attack $1 is not held."
}

is_held_in_a_container() {
	outcome held container "$1" "" "The attack $1 is not held in a container."
}

works_without_its_wall() {
	outcome broken broken "$1" "" "Without its wall $1 does not work either, so that it is held says nothing."
}

# is_held_by NAME WALL
is_held_by() {
	outcome held alone "$1" "$2" "With $2 alone of its walls $1 is not held, so others hide it when that one is lost."
}

has_no_control() {
	holds "$BATS_FILE_TMPDIR/list.json" 'any(.[]; .attack == $name and (.no_control | length) > 20)' --arg name "$1"
}

nothing_is_left() {
	equal "what is left of the sandboxes" "$(cat "$BATS_FILE_TMPDIR/left")" ""
}
