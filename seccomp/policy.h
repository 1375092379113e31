/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as data: what each system call of the native ABI is answered. Read from JSON
 * (docs/seccomp.md is the format), made into BPF by seccomp/filter.c.
 *
 * A call has one answer for when no rule of its own matches, and any number of rules, each an
 * answer and conditions on arguments of which all must hold. The first rule that matches answers.
 */
#ifndef SECCOMP_POLICY_H
#define SECCOMP_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	POLICY_CALLS = 1024, /* numbers from 0 that a profile can name; Linux 6.18 ends at 469 */
	POLICY_ARGS_MAX = 6,
	POLICY_VALUES_MAX = 8, /* of one condition */
};

enum policy_action {
	POLICY_UNNAMED, /* the profile does not know the call: policy.unknown_error */
	POLICY_ALLOW,
	POLICY_FORBID, /* policy.notify, or policy.deny_error */
	POLICY_ERRNO,
};

struct policy_answer {
	enum policy_action action;
	int error; /* of POLICY_ERRNO */
};

/* Holds when (argument & mask) is one of the values. */
struct policy_condition {
	unsigned index;
	uint64_t mask; /* never 0 */
	uint64_t values[POLICY_VALUES_MAX];
	unsigned values_count; /* 1 or more */
};

struct policy_rule {
	int number;
	struct policy_answer answer;
	struct policy_condition conditions[POLICY_ARGS_MAX];
	unsigned conditions_count; /* 1 or more */
};

struct policy {
	bool notify; /* forbidden calls go to a listener */
	int deny_error;
	int unknown_error;
	struct policy_answer calls[POLICY_CALLS];
	struct policy_rule *rules; /* in the order in which they are tried */
	size_t rules_count;
};

/* The error names the key, the entry and the way out; POLICY is written only on success. */
int policy_parse(const char *json, size_t length, struct policy *policy, struct err *e);
void policy_release(struct policy *policy);

#endif
