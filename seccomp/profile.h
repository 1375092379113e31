/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seccomp filter as somebody else wants it: any actions, arguments, architectures and flags, with
 * the words of libseccomp and the kernel. What AgentDock wants by itself is seccomp/filter.h.
 * seccomp(2), seccomp_init(3).
 */
#ifndef SECCOMP_PROFILE_H
#define SECCOMP_PROFILE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct seccomp_argument {
	unsigned index;
	int comparison; /* enum scmp_compare */
	uint64_t value, value_two;
};

struct seccomp_rule {
	const char *const *names; /* one that libseccomp does not know is left out, as runc does */
	size_t names_count;
	uint32_t action; /* SCMP_ACT_* */
	const struct seccomp_argument *arguments;
	size_t arguments_count;
};

struct seccomp_profile {
	uint32_t default_action;       /* SCMP_ACT_* */
	const uint32_t *architectures; /* SCMP_ARCH_*; none: the native one */
	size_t architectures_count;
	uint64_t flags; /* SECCOMP_FILTER_FLAG_* */
	const struct seccomp_rule *rules;
	size_t rules_count;
};

struct seccomp_profile_filter {
	struct sock_filter *instructions;
	unsigned short length;
	uint64_t flags;
	bool notifies;
};

int seccomp_profile_compile(const struct seccomp_profile *profile,
                            struct seccomp_profile_filter *filter, struct err *e);
void seccomp_profile_filter_release(struct seccomp_profile_filter *filter);

/* As seccomp_filter_install. A flag that this kernel lacks is an error that names it. */
int seccomp_profile_filter_install(const struct seccomp_profile_filter *filter, int *listenerfd,
                                   struct err *e);

#endif
