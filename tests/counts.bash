# shellcheck shell=bash disable=SC2034 # what it sets is for who loads it
# SPDX-License-Identifier: Apache-2.0
# What a log of tests says: sets $ok, $bad and $skip. Who died, or ran nothing, has failed, and the log says so.

# count_tap LOG EXIT-STATUS: of bats
count_tap() {
	skip=$(grep -c '^ok .*# skip' "$1")
	ok=$(($(grep -c '^ok ' "$1") - skip))
	bad=$(grep -c '^not ok ' "$1")
	count_dead "$@"
}

# count_cmocka LOG EXIT-STATUS: of cmocka programs, which name each test twice: when it ends and in the summary
count_cmocka() {
	ok=$(grep -c '^\[       OK \]' "$1")
	bad=$(($(grep -c '^\[  FAILED  \] [A-Za-z_0-9]*$' "$1") / 2))
	skip=$(($(grep -c '^\[  SKIPPED \] [A-Za-z_0-9]*$' "$1") / 2))
	count_dead "$@"
}

count_dead() {
	[ "$2" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1 && echo "exit status $2" >>"$1"
	[ $((ok + bad + skip)) -eq 0 ] && bad=1 && echo "no test ran" >>"$1"
	return 0
}
