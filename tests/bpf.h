/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interpreter of the classic BPF that we and libseccomp write, for tests that compare a program
 * with what it was made from. Stricter than the kernel: any other instruction, a load that is not
 * of a word of struct seccomp_data, and an end without an answer make the program broken.
 */
#ifndef TESTS_BPF_H
#define TESTS_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "seccomp/filter.h"

/* The answer, and how many instructions it took. False: the program is broken at *STEPS. */
static inline bool bpf_run(const struct seccomp_filter *filter, const struct seccomp_data *data,
                           uint32_t *answer, unsigned *steps)
{
	uint32_t a = 0;

	*steps = 0;
	for (size_t pc = 0; pc < filter->length; pc++) {
		const struct sock_filter *in = &filter->instructions[pc];

		++*steps;
		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (in->k % 4 != 0 || in->k + 4 > sizeof *data)
				return false;
			memcpy(&a, (const char *)data + in->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= in->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += in->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= in->k ? in->jt : in->jf;
			break;
		case BPF_RET | BPF_K:
			*answer = in->k;
			return true;
		default:
			return false;
		}
	}
	return false;
}

#endif
