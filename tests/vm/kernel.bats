#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What depends on the kernel and its control groups, by the same assertions on a host with hybrid groups and in the test
# kernels with pure v2: which is which is told by the mounts, and by AGENTDOCK_WANT_CGROUP where it is known beforehand.
# shellcheck disable=SC2154 # what common.bash sets
load ../cli/common

setup() {
	common_setup
	use_default_image
	want=${AGENTDOCK_WANT_CGROUP:-$(cgroup_kind)}
}

@test "the report and doctor say of the control groups what they are" {
	equal "the mounts" "$(cgroup_kind)" "$want"
	run_json -- true
	# shellcheck disable=SC2016
	holds report.json '.reason == "exited" and .host.cgroup == $want' --arg want "$want"
	"$agentdock" doctor --json >doctor.json
	# shellcheck disable=SC2016
	holds doctor.json '[.[] | select(.check == "cgroups")] | length == 1 and (.[0].found | startswith($want))' \
		--arg want "$want"
}
