/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, and the tree that finds a call's segment by its number. Owns nothing. */
#include "seccomp/program.h"

#include <linux/seccomp.h>
#include <string.h>

void program_emit(struct program *p, uint16_t code, uint32_t k)
{
	if (p->code && p->length < BPF_MAXINSNS)
		p->code[p->length] = (struct sock_filter)BPF_STMT(code, k);
	p->length++;
}

void program_jump(struct program *p, uint16_t code, uint32_t k, size_t yes, size_t no)
{
	if (p->code && p->length < BPF_MAXINSNS)
		p->code[p->length] = (struct sock_filter)BPF_JUMP(code, k, (uint8_t)yes,
		                                                  (uint8_t)no);
	p->length++;
}

void program_load_arg(struct program *p, unsigned index, bool high, uint32_t mask)
{
	program_emit(p, BPF_LD | BPF_W | BPF_ABS,
	             (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)index +
	                        (high ? 4 : 0)));
	if (mask != UINT32_MAX)
		program_emit(p, BPF_ALU | BPF_AND | BPF_K, mask);
}

/*
 * Recursion as deep as the logarithm of the segments' number. The left half is written before it is
 * known how far the jump over it goes; where that is too far for one instruction, it is moved by one:
 * what is in it is relative.
 */
void program_tree(struct program *p, const struct program_segment *segments, size_t count,
                  program_leaf *leaf, const void *context)
{
	size_t middle = count / 2, at = p->length, left;
	struct program jump = {.code = p->code, .length = at};

	if (count == 1) {
		leaf(p, segments, context);
		return;
	}
	program_emit(p, 0, 0);
	program_tree(p, segments, middle, leaf, context);
	left = p->length - at - 1;
	if (left <= PROGRAM_JUMP_MAX) {
		program_jump(&jump, BPF_JMP | BPF_JGE | BPF_K, segments[middle].first, left, 0);
	} else {
		if (p->code && p->length < BPF_MAXINSNS)
			memmove(&p->code[at + 2], &p->code[at + 1], left * sizeof *p->code);
		p->length++;
		program_jump(&jump, BPF_JMP | BPF_JGE | BPF_K, segments[middle].first, 0, 1);
		program_emit(&jump, BPF_JMP | BPF_JA, (uint32_t)left);
	}
	program_tree(p, segments + middle, count - middle, leaf, context);
}
