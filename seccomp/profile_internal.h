/* SPDX-License-Identifier: Apache-2.0 */
/* Between the halves of the compiler of profiles: profile.c finds out what each number is answered,
 * profile_code.c writes it. */
#ifndef SECCOMP_PROFILE_INTERNAL_H
#define SECCOMP_PROFILE_INTERNAL_H

#include "seccomp/profile.h"
#include "seccomp/program.h"

/* A call that i386 also makes by socketcall(2) or ipc(2), whose first argument is CALL. */
struct muxed {
	const char *name;
	bool is_ipc;
	uint32_t call;
};

/* One rule as it concerns one number. */
struct entry {
	uint32_t number;
	uint64_t key; /* by which they are sorted: number, rank, the profile's order */
	const struct seccomp_rule *rule; /* NULL: a boundary of segments, no rule */
	const struct seccomp_argument *arguments;
	size_t arguments_count;
	const struct muxed *muxed;
	bool narrow;
};

/* A program_leaf. RULES of the segment is the first of its number's entries that is a rule; behind
 * the last of all entries there is one that is none. */
void profile_leaf(struct program *p, const struct program_segment *segment, const void *context);

#endif
