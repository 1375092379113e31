/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was denied: the supervisor's end of the listener of a filter that notifies. Every forbidden
 * call is answered with EPERM and counted by its number. Nothing that the guest passes is read:
 * only the call's number is used, and it is bounded. seccomp_unotify(2).
 */
#ifndef SECCOMP_NOTIFY_H
#define SECCOMP_NOTIFY_H

#include <stdint.h>

#include "base/err.h"

enum { SECCOMP_DENIED_MAX = 32 };

struct seccomp_denied {
	int number; /* system call number of the native ABI */
	uint64_t count;
};

struct seccomp_denials {
	struct seccomp_denied calls[SECCOMP_DENIED_MAX];
	int calls_count;
	uint64_t total; /* also those of kinds that no longer fit in calls */
};

/*
 * Answers the one notification that is waiting (poll said POLLIN). Returns 1 when one was answered,
 * 0 when there was none after all (its process died), -errno when the listener is of no more use.
 */
int seccomp_notify_answer(int listenerfd, struct seccomp_denials *denials, struct err *e);

/* "mount" for 165 on x86-64; "syscall 999" into BUFFER where libseccomp knows no name. */
const char *seccomp_call_name(int number, char *buffer, int size);

#endif
