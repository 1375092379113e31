#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The documents say what is so: see tests/docs.py.
bats_require_minimum_version 1.5.0

setup() {
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	agentdock=$root/${AGENTDOCK_BUILD:-build}/agentdock
	docs=$root/tests/docs.py
}

@test "the scores in docs/architecture.md are those that are played" {
	python3 "$docs" score
}

@test "every test and file that docs/threat-model.md names is there" {
	python3 "$docs" tests
}

@test "no link of README.md and docs/ leads nowhere" {
	python3 "$docs" links
}

@test "docs/oci.md has every key of a config.json, with tests that are there" {
	python3 "$docs" oci
}

@test "docs/oci.md has every verb and option of agentdock-runtime, and no other" {
	python3 "$docs" verbs "${agentdock%/*}/agentdock-runtime"
}

@test "docs/oci-conformance.md has every test of the runtime-spec's sentences, and no other" {
	python3 "$root/tests/oci/results" --check
}

@test "the manual page describes every option of run, and no other" {
	python3 "$docs" options "$("$agentdock" run --help)"
}

@test "the manual page describes every option of audit, and no other" {
	python3 "$docs" audit "$("$agentdock" audit --help)"
}

@test "docs/threat-model.md names every attack that is tried, what it wants, its wall and where it was seen" {
	python3 "$docs" escapes "$("$agentdock" audit --list --json)"
}

@test "the manual pages have no mistake that man finds" {
	for page in "$root"/docs/man/*.[18]; do
		run --separate-stderr man -l --warnings "$page"
		[ "$status" -eq 0 ]
		# shellcheck disable=SC2154 # of run --separate-stderr
		[ -z "$stderr" ]
	done
}

@test "the check of the documents finds what is wrong" {
	cp -r "$root/docs" "$root/README.md" "$BATS_TEST_TMPDIR"
	mkdir "$BATS_TEST_TMPDIR/tests" "$BATS_TEST_TMPDIR/runtime" "$BATS_TEST_TMPDIR/container"
	cp "$docs" "$BATS_TEST_TMPDIR/tests"
	sed '/"pivot"/d' "$root/runtime/score.c" >"$BATS_TEST_TMPDIR/runtime/score.c"
	sed 's/attach_mounts/attach_all/' "$root/container/score.c" >"$BATS_TEST_TMPDIR/container/score.c"
	docs=$BATS_TEST_TMPDIR/tests/docs.py
	run -1 python3 "$docs" score
	[[ $output == *"('pivot', '', 'pivot', False) is no row of runtime/score.c"* ]]
	[[ $output == *"the table of container/score.c lacks ('mounts', '', 'attach_all', True)"* ]]
	run -1 python3 "$docs" tests
	[[ $output == *"test_init.c has no test"* ]]
	run -1 python3 "$docs" links
	[[ $output == *"README.md: LICENSE: no such file"* ]]
	run -1 python3 "$docs" options '      --unheard-of'
	[[ $output == *"--unheard-of is not described"* ]]
	run -1 python3 "$docs" audit '  --unheard-of'
	[[ $output == *"--unheard-of is not described"* && $output == *"--runtime is no option"* ]]
	sed -i '/--keep/d; s/--all\b/--both/' "$BATS_TEST_TMPDIR/docs/oci.md"
	run -1 python3 "$docs" verbs "${agentdock%/*}/agentdock-runtime"
	[[ $output == *"lacks --keep of run"* && $output == *"--both is no option of kill"* ]]
	mkdir -p "$BATS_TEST_TMPDIR/tests/data/oci" "$BATS_TEST_TMPDIR/tests/unit"
	sed 's/"cpus"/"unheardOf"/' "$root/tests/data/oci/full.json" >"$BATS_TEST_TMPDIR/tests/data/oci/full.json"
	cp "$root"/tests/unit/test_oci_* "$BATS_TEST_TMPDIR/tests/unit"
	sed -i '/unit_test(test_mounts)/d' "$BATS_TEST_TMPDIR/tests/unit/test_oci_config.c"
	run -1 python3 "$docs" oci
	[[ $output == *"lacks unheardOf of linux.resources.cpu"* ]]
	[[ $output == *"cpus of linux.resources.cpu is not in full.json"* && $output == *"test_mounts: no such test"* ]]
	mkdir "$BATS_TEST_TMPDIR/tests/escape"
	run -1 python3 "$docs" escapes '[{"attack":"unheard_of","what":"a","wall":"b","seen":"c"}]'
	[[ $output == *"lacks the row | \`unheard_of\` | a | b | c |"* && $output == *"is of no attack: | \`leaked_cwd\`"* ]]
}
