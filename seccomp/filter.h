/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall two of four: what a sandbox may call. A profile (JSON, seccomp/profiles/) becomes a policy,
 * a policy becomes classic BPF, and the BPF is installed by the process it binds.
 *
 * Three answers: allowed; forbidden (EPERM, and counted: the call is handed to a listener, see
 * seccomp/notify.h); unknown to the profile (ENOSYS, so that libc falls back). Calls of another
 * architecture or ABI (i386, x32) get ENOSYS. Nothing is ever killed: programs probe.
 * seccomp(2), seccomp_unotify(2); notification needs kernel 5.5.
 */
#ifndef SECCOMP_FILTER_H
#define SECCOMP_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct seccomp_filter {
	const struct sock_filter *instructions;
	unsigned short length;     /* in instructions */
	bool notifies;             /* forbidden calls go to a listener */
	struct sock_filter *owned; /* freed by release; NULL for the built-in one */
};

/* The profile seccomp/profiles/default.json, compiled when the project was built. */
const struct seccomp_filter *seccomp_default_filter(void);

/*
 * Compiles a profile for this machine's architecture. The error names the key or the call. The
 * caller releases the filter.
 */
int seccomp_filter_compile(const char *json, size_t length, struct seccomp_filter *filter,
                           struct err *e);
void seccomp_filter_release(struct seccomp_filter *filter);

/*
 * Installs FILTER on the calling process, which has no_new_privs on or CAP_SYS_ADMIN in its user
 * namespace. *LISTENERFD becomes the listener's descriptor where the filter notifies (the caller
 * hands it to the supervisor and closes it), else -1.
 */
int seccomp_filter_install(const struct seccomp_filter *filter, int *listenerfd, struct err *e);

/* The same with other SECCOMP_FILTER_FLAG_*: NEW_LISTENER is among them where the filter notifies. */
int seccomp_filter_install_flags(const struct seccomp_filter *filter, unsigned flags,
                                 int *listenerfd, struct err *e);

#endif
