/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in filter: seccomp/profiles/default.json, compiled by seccomp/compile_main.c. */
#include "seccomp/filter.h"

#include "seccomp_default.inc"

const struct seccomp_filter *seccomp_default_filter(void)
{
	static const struct seccomp_filter filter = {
		.instructions = default_instructions,
		.length = sizeof default_instructions / sizeof default_instructions[0],
		.notifies = default_notifies,
	};

	return &filter;
}
