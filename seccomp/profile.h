/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seccomp filter as somebody else wants it ("Seccomp" in the runtime-spec's config-linux.md): any
 * actions, arguments, architectures and flags. What AgentDock wants by itself is seccomp/filter.h.
 *
 * Where the spec is silent, rules mean what they mean to libseccomp, which engines write them for:
 *
 *	- a name means, in each architecture, that architecture's call; a name that nobody here knows is
 *	  left out, and so is a rule whose action is the default one;
 *	- of several rules of a call, one without arguments counts, the first of them; else the first
 *	  in the profile's order that holds;
 *	- a rule holds when all of its arguments do. One that names an argument twice is as many rules
 *	  as it has arguments;
 *	- architectures are the native one and those that are named. Calls of others kill the thread. One
 *	  whose programs this machine cannot execute makes no call and no code;
 *	- i386: calls by way of socketcall and ipc as well. What those are given is in memory, where
 *	  no filter sees it: of rules with arguments those hold there that are stricter than the
 *	  default.
 *
 * And one thing more: where the default action is an errno, calls newer than any that the profile
 * names are answered with ENOSYS, by which a libc knows that it must do without; by EPERM it would
 * not. Nobody falls back from a call that Linux 3.2 had (the oldest that glibc runs on): those get
 * the default action, however few are named.
 */
#ifndef SECCOMP_PROFILE_H
#define SECCOMP_PROFILE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum seccomp_comparison {
	SECCOMP_NE,
	SECCOMP_LT,
	SECCOMP_LE,
	SECCOMP_EQ,
	SECCOMP_GE,
	SECCOMP_GT,
	SECCOMP_MASKED_EQ, /* (argument & value) == (value_two & value) */
};

struct seccomp_argument {
	unsigned index; /* 0 to 5 */
	enum seccomp_comparison comparison;
	uint64_t value, value_two;
};

struct seccomp_rule {
	const char *const *names;
	size_t names_count;
	uint32_t action; /* SECCOMP_RET_*, with its data */
	const struct seccomp_argument *arguments;
	size_t arguments_count;
};

struct seccomp_profile {
	uint32_t default_action;
	const uint32_t *architectures; /* AUDIT_ARCH_*, NAMES_X32 (seccomp/names.h) */
	size_t architectures_count;
	uint64_t flags; /* SECCOMP_FILTER_FLAG_* */
	const struct seccomp_rule *rules;
	size_t rules_count;
};

struct seccomp_profile_filter {
	struct sock_filter *instructions;
	unsigned short length;
	unsigned flags; /* those that are left: of one thread, and with a listener or without */
	bool notifies;
};

/* What the profile borrows is borrowed until here. The caller releases the filter. */
int seccomp_profile_compile(const struct seccomp_profile *profile,
                            struct seccomp_profile_filter *filter, struct err *e);
void seccomp_profile_filter_release(struct seccomp_profile_filter *filter);

/* What a call of the native architecture is answered, whatever its arguments; where they count: the
 * strictest of the answers. */
uint32_t seccomp_profile_answer(const struct seccomp_profile *profile, const char *name);

/* As seccomp_filter_install. A flag that this kernel lacks is an error that names it. */
int seccomp_profile_filter_install(const struct seccomp_profile_filter *filter, int *listenerfd,
                                   struct err *e);

#endif
