/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was denied: the supervisor's end of the listener of a filter that notifies. Every forbidden
 * call is answered with EPERM and counted by its number. Nothing that the guest passes is read: the
 * number is used, and of socket its scalar arguments. seccomp_unotify(2).
 *
 * One kind of call is forbidden only from some number on: sockets of NETLINK_ROUTE. What waits in
 * their queues is charged to nobody, so there must not be many; programs that list interfaces need
 * one at a time. A profile that says so ("few") sends them here; any other never does.
 */
#ifndef SECCOMP_NOTIFY_H
#define SECCOMP_NOTIFY_H

#include <stdint.h>

#include "base/err.h"

enum {
	SECCOMP_DENIED_MAX = 32,
	SECCOMP_NETLINK_MAX = 64, /* each can hold twice net.core.rmem_max */
};

struct seccomp_denied {
	int number; /* system call number of the native ABI */
	uint64_t count;
};

struct seccomp_denials {
	struct seccomp_denied calls[SECCOMP_DENIED_MAX];
	int calls_count;
	uint64_t total;          /* also those of kinds that no longer fit in calls */
	unsigned netlink_passed; /* sockets of NETLINK_ROUTE, which are not denied */
};

/*
 * Answers the one notification that is waiting (poll said POLLIN). Returns 1 when one was answered,
 * 0 when there was none after all (its process died), -errno when the listener is of no more use.
 */
int seccomp_notify_answer(int listenerfd, struct seccomp_denials *denials, struct err *e);

/* "mount" for 165 on x86-64; "syscall 999" into BUFFER where libseccomp knows no name. */
const char *seccomp_call_name(int number, char *buffer, int size);

#endif
