/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a profile's rules: conditions on arguments, and what a call is answered. */
#include "seccomp/profile_internal.h"

/* ---- conditions: fall through where they hold, else skip what follows of the rule: REST ---- */

static void emit_equal(struct program *p, const struct seccomp_argument *a, bool narrow,
                       size_t rest)
{
	uint64_t mask = a->comparison == SECCOMP_MASKED_EQ ? a->value : UINT64_MAX;
	uint64_t value = (a->comparison == SECCOMP_MASKED_EQ ? a->value_two : a->value) & mask;
	size_t low = (uint32_t)mask == UINT32_MAX ? 2 : 3;

	if (!narrow && mask >> 32) {
		program_load_arg(p, a->index, true, (uint32_t)(mask >> 32));
		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value >> 32), 0, low + rest);
	}
	program_load_arg(p, a->index, false, (uint32_t)mask);
	program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)value, 0, rest);
}

static void emit_unequal(struct program *p, const struct seccomp_argument *a, bool narrow,
                         size_t rest)
{
	if (!narrow) {
		program_load_arg(p, a->index, true, UINT32_MAX);
		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(a->value >> 32), 0, 2);
	}
	program_load_arg(p, a->index, false, UINT32_MAX);
	program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)a->value, rest, 0);
}

/* CODE, asked of the low halves, is what must be true (WANTED) or false for the condition to hold. */
static void emit_order(struct program *p, const struct seccomp_argument *a, bool narrow,
                       uint16_t code, bool wanted, size_t rest)
{
	if (!narrow) {
		uint32_t high = (uint32_t)(a->value >> 32);

		program_load_arg(p, a->index, true, UINT32_MAX);
		program_jump(p, BPF_JMP | BPF_JGT | BPF_K, high, 3 + (wanted ? 0 : rest), 0);
		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, high, 0, 2 + (wanted ? rest : 0));
	}
	program_load_arg(p, a->index, false, UINT32_MAX);
	program_jump(p, (uint16_t)(BPF_JMP | code | BPF_K), (uint32_t)a->value, wanted ? 0 : rest,
	             wanted ? rest : 0);
}

static void emit_condition(struct program *p, const struct seccomp_argument *a, bool narrow,
                           size_t rest)
{
	switch (a->comparison) {
	case SECCOMP_EQ:
	case SECCOMP_MASKED_EQ:
		emit_equal(p, a, narrow, rest);
		break;
	case SECCOMP_NE:
		emit_unequal(p, a, narrow, rest);
		break;
	case SECCOMP_GE:
		emit_order(p, a, narrow, BPF_JGE, true, rest);
		break;
	case SECCOMP_GT:
		emit_order(p, a, narrow, BPF_JGT, true, rest);
		break;
	case SECCOMP_LT:
		emit_order(p, a, narrow, BPF_JGE, false, rest);
		break;
	case SECCOMP_LE:
		emit_order(p, a, narrow, BPF_JGT, false, rest);
		break;
	}
}

/* The conditions from FROM on and the return. */
static void emit_rule(struct program *p, const struct entry *entry, size_t from)
{
	if (from < entry->arguments_count) {
		struct program rest = {0};

		emit_rule(&rest, entry, from + 1);
		emit_condition(p, &entry->arguments[from], entry->narrow, rest.length);
		emit_rule(p, entry, from + 1);
		return;
	}
	program_emit(p, BPF_RET | BPF_K, entry->rule->action);
}

/* ipc(2) of the kernel looks at the low half alone: above it is a version of the call. */
enum { IPC_CALL_MASK = 0xffff };

static void emit_entry(struct program *p, const struct entry *entry)
{
	if (entry->muxed) {
		struct program rest = {0};

		emit_rule(&rest, entry, 0);
		program_load_arg(p, 0, false, entry->muxed->is_ipc ? IPC_CALL_MASK : UINT32_MAX);
		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, entry->muxed->call, 0, rest.length);
	}
	emit_rule(p, entry, 0);
}

void profile_leaf(struct program *p, const struct program_segment *segment, const void *context)
{
	(void)context;
	for (const struct entry *entry = segment->rules;
	     entry && entry->rule && entry->number == segment->first; entry++)
		emit_entry(p, entry);
	program_emit(p, BPF_RET | BPF_K, segment->verdict);
}
