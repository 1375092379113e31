/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing classic BPF for seccomp: single instructions, and the balanced tree of comparisons of the
 * call's number that each of our programs is. Who makes what the leaves are of is seccomp/filter.c
 * (a sandbox's policy) and seccomp/profile.c (an engine's profile).
 */
#ifndef SECCOMP_PROGRAM_H
#define SECCOMP_PROGRAM_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRAM_JUMP_MAX = 255 }; /* a conditional jump's distance is one byte */

/* Instructions are counted also where there is no room or no code: emitting twice measures. */
struct program {
	struct sock_filter *code; /* NULL: only measure; else BPF_MAXINSNS of them */
	size_t length;
};

/* Calls FIRST up to the next segment's first have this answer. */
struct program_segment {
	uint32_t first;
	uint32_t verdict;
	const void *rules; /* what else there is to be asked, before the verdict; NULL: nothing */
};

/* Writes a leaf, which ends in returns, so that control never falls into the next. */
typedef void program_leaf(struct program *p, const struct program_segment *segment,
                          const void *context);

void program_emit(struct program *p, uint16_t code, uint32_t k);
void program_jump(struct program *p, uint16_t code, uint32_t k, size_t yes, size_t no);

/* Loads one half of an argument, AND MASK. */
void program_load_arg(struct program *p, unsigned index, bool high, uint32_t mask);

/* COUNT segments, at least one, in order; the accumulator has the number. */
void program_tree(struct program *p, const struct program_segment *segments, size_t count,
                  program_leaf *leaf, const void *context);

#endif
