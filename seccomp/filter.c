/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy -> classic BPF, and its installation. libseccomp names the calls (seccomp/calls.c); the
 * program is written here, because three of our answers cannot be said in libseccomp 2.5:
 * "forbidden where no rule matches" beside "unknown" (it has one default action, which must not be
 * NOTIFY), "allowed unless the argument is one of these" (its rules of one call know no order and
 * compare an argument once), and ranges of numbers, which make the program a third of the size.
 *
 * The program, in order: another architecture -> unknown; then a balanced tree of comparisons of
 * the number, whose leaves are ranges of calls with the same answer, or the rules of one call. A
 * leaf ends in returns, so control never falls from one leaf into the next. Numbers are compared
 * unsigned and the last range has no end, so x32 calls (bit 30) and -1 are unknown.
 *
 * Calls without rules depend on number and architecture alone: the kernel (5.11 and newer) finds
 * that out when the filter is installed and later skips the program for those that are allowed.
 */
#include "seccomp/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp/policy.h"
#include "seccomp/program.h"

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#else
#error "this architecture has no AUDIT_ARCH here yet"
#endif

enum { VALUE_MAX = 6 }; /* instructions that comparing one value takes, at most */

_Static_assert((POLICY_ARGS_MAX - 1) * POLICY_VALUES_MAX * VALUE_MAX + VALUE_MAX <=
                       PROGRAM_JUMP_MAX,
               "the first condition of the largest rule can jump past the rule");

struct segments {
	const struct policy *policy;
	struct program_segment items[POLICY_CALLS + 1];
	size_t count;
};

static uint32_t verdict(const struct policy *policy, struct policy_answer answer)
{
	switch (answer.action) {
	case POLICY_ALLOW:
		return SECCOMP_RET_ALLOW;
	case POLICY_FORBID:
		return policy->notify ? SECCOMP_RET_USER_NOTIF
		                      : SECCOMP_RET_ERRNO | (uint32_t)policy->deny_error;
	case POLICY_ERRNO:
		return SECCOMP_RET_ERRNO | (uint32_t)answer.error;
	case POLICY_UNNAMED:
		break;
	}
	return SECCOMP_RET_ERRNO | (uint32_t)policy->unknown_error;
}

/* Falls through where the condition holds, else skips what follows it: REST instructions. */
static void emit_condition_int(struct program *p, const struct policy_condition *c, size_t rest)
{
	program_load_arg(p, c->index, false, (uint32_t)c->mask);
	for (unsigned i = 0; i < c->values_count; i++) {
		size_t later = c->values_count - 1 - i;

		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)c->values[i], later,
		             later ? 0 : rest);
	}
}

static void emit_condition_long(struct program *p, const struct policy_condition *c, size_t rest)
{
	struct program half = {0};
	size_t high, low, value;

	program_load_arg(&half, c->index, true, (uint32_t)(c->mask >> 32));
	high = half.length;
	half.length = 0;
	program_load_arg(&half, c->index, false, (uint32_t)c->mask);
	low = half.length;
	value = high + low + 2; /* instructions that one value takes */
	for (unsigned i = 0; i < c->values_count; i++) {
		size_t later = c->values_count - 1 - i;

		program_load_arg(p, c->index, true, (uint32_t)(c->mask >> 32));
		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(c->values[i] >> 32), 0,
		             low + 1 + (later ? 0 : rest));
		program_load_arg(p, c->index, false, (uint32_t)c->mask);
		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)c->values[i], later * value,
		             later ? 0 : rest);
	}
}

static void emit_condition(struct program *p, const struct policy_condition *c, size_t rest)
{
	if (c->mask >> 32)
		emit_condition_long(p, c, rest);
	else
		emit_condition_int(p, c, rest);
}

/* The conditions from FROM on and the return. */
static void emit_rule(struct program *p, const struct policy *policy,
                      const struct policy_rule *rule, unsigned from)
{
	if (from < rule->conditions_count) {
		struct program rest = {0};

		emit_rule(&rest, policy, rule, from + 1);
		emit_condition(p, &rule->conditions[from], rest.length);
		emit_rule(p, policy, rule, from + 1);
		return;
	}
	program_emit(p, BPF_RET | BPF_K, verdict(policy, rule->answer));
}

static bool has_rules(const struct policy *policy, int number)
{
	for (size_t i = 0; i < policy->rules_count; i++)
		if (policy->rules[i].number == number)
			return true;
	return false;
}

static void emit_leaf(struct program *p, const struct program_segment *segment, const void *context)
{
	const struct policy *policy = context;

	for (size_t i = 0; segment->rules && i < policy->rules_count; i++)
		if ((uint32_t)policy->rules[i].number == segment->first)
			emit_rule(p, policy, &policy->rules[i], 0);
	program_emit(p, BPF_RET | BPF_K, segment->verdict);
}

static void segments_build(struct segments *segments, const struct policy *policy)
{
	uint32_t unknown = verdict(policy, (struct policy_answer){.action = POLICY_UNNAMED});

	*segments = (struct segments){.policy = policy};
	for (uint32_t number = 0; number <= POLICY_CALLS; number++) {
		bool last = number == POLICY_CALLS;
		struct program_segment segment = {
			.first = number,
			.verdict = last ? unknown : verdict(policy, policy->calls[number]),
			.rules = !last && has_rules(policy, (int)number) ? policy->rules : NULL,
		};
		const struct program_segment *before =
			segments->count ? &segments->items[segments->count - 1] : NULL;

		if (!before || before->rules || segment.rules || before->verdict != segment.verdict)
			segments->items[segments->count++] = segment;
	}
}

static void emit_program(struct program *p, const struct segments *segments)
{
	uint32_t unknown = verdict(segments->policy,
	                           (struct policy_answer){.action = POLICY_UNNAMED});

	program_emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, ARCH_NATIVE, 1, 0);
	program_emit(p, BPF_RET | BPF_K, unknown);
	program_emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	program_tree(p, segments->items, segments->count, emit_leaf, segments->policy);
}

static int policy_compile(const struct policy *policy, struct seccomp_filter *filter, struct err *e)
{
	struct segments segments;
	struct sock_filter code[BPF_MAXINSNS];
	struct program p = {.code = code};
	struct sock_filter *owned;

	segments_build(&segments, policy);
	emit_program(&p, &segments);
	if (p.length > BPF_MAXINSNS)
		return err_set(e, E2BIG,
		               "seccomp profile: it makes %zu BPF instructions, the kernel takes "
		               "%d; give it fewer rules",
		               p.length, BPF_MAXINSNS);
	owned = reallocarray(NULL, p.length, sizeof *owned);
	if (!owned)
		return err_sys(e, "seccomp profile");
	memcpy(owned, code, p.length * sizeof *owned);
	*filter = (struct seccomp_filter){
		.instructions = owned,
		.length = (unsigned short)p.length,
		.notifies = policy->notify,
		.owned = owned,
	};
	return 0;
}

int seccomp_filter_compile(const char *json, size_t length, struct seccomp_filter *filter,
                           struct err *e)
{
	struct policy policy;
	int result;

	TRY(policy_parse(json, length, &policy, e));
	result = policy_compile(&policy, filter, e);
	policy_release(&policy);
	return result;
}

void seccomp_filter_release(struct seccomp_filter *filter)
{
	free(filter->owned);
	*filter = (struct seccomp_filter){0};
}

enum { KERNEL_ENOTSUPP = 524 }; /* no errno of user space, and returned nevertheless */

static int install_error(const struct seccomp_filter *filter, unsigned flags, struct err *e)
{
	int cause = errno;

	err_sys(e, "installing the seccomp filter of %u instructions", filter->length);
	switch (cause) {
	case EACCES:
		return err_hint(e, "set no_new_privs before");
	case EBUSY:
		return err_hint(e, "this process already has a filter with a listener; use a "
		                   "profile whose deny.action is \"errno\"");
	case EINVAL:
	case ENOSYS:
		if (flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
			return err_hint(e, "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs Linux "
			                   "5.19 or newer");
		return err_hint(e, "the kernel needs CONFIG_SECCOMP_FILTER and, for profiles that "
		                   "notify, to be 5.5 or newer");
	case KERNEL_ENOTSUPP:
	case ENOMEM:
		return err_hint(e, "the memory of all compiled filters of this host may be used "
		                   "up: end what holds them, or raise net.core.bpf_jit_limit");
	default:
		return -cause;
	}
}

int seccomp_filter_install_flags(const struct seccomp_filter *filter, unsigned flags,
                                 int *listenerfd, struct err *e)
{
	const struct sock_fprog program = {
		.len = filter->length,
		/* the kernel's structure lacks the const, the kernel does not write */
		.filter = (struct sock_filter *)(uintptr_t)filter->instructions,
	};
	long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

	if (result < 0)
		return install_error(filter, flags, e);
	*listenerfd = filter->notifies ? (int)result : -1;
	return 0;
}

int seccomp_filter_install(const struct seccomp_filter *filter, int *listenerfd, struct err *e)
{
	return seccomp_filter_install_flags(
		filter, filter->notifies ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, listenerfd, e);
}
