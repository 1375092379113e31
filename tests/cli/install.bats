#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where, and that `make uninstall` takes all of it away.
bats_require_minimum_version 1.5.0

load common

setup() {
	common_setup
	into=$BATS_TEST_TMPDIR/root
}

@test "install: stripped programs that work, manual pages, the sample repository and nothing else of it" {
	make -s -C "$root" BUILD="$build" DESTDIR="$into" PREFIX=/usr install
	[ "$("$into/usr/bin/agentdock" --version)" = "$("$agentdock" --version)" ]
	[ "$("$into/usr/bin/agentdock-runtime" --version)" = "$("$build/agentdock-runtime" --version)" ]
	for program in bin/agentdock bin/agentdock-runtime libexec/agentdock/agentdock-archive libexec/agentdock/agentdock-probes; do
		run -0 readelf -S "$into/usr/$program"
		[[ $output != *.debug_info* && $output != *.symtab* ]]
		run -1 grep -qaF "$root" "$into/usr/$program"
	done
	"$into/usr/bin/agentdock" audit --list | grep -q ^leaked_cwd
	[ -s "$into/usr/share/man/man1/agentdock.1" ]
	[ -s "$into/usr/share/man/man8/agentdock-runtime.8" ]
	[ "$(ls "$into/usr/libexec/agentdock/fixtures")" = sample-repo ]
	[ -s "$into/usr/libexec/agentdock/fixtures/sample-repo/tests/test_parser.py" ]
	[ -z "$(find "$into" -name __pycache__ -o -name .pytest_cache)" ]
	make -s -C "$root" BUILD="$build" DESTDIR="$into" PREFIX=/usr uninstall
	[ -z "$(find "$into" -type f)" ]
}
