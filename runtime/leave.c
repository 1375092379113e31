/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process that has a sandbox to tear down and somebody who waits for it. Unmounting,
 * the loop device and removing the cgroups take longer than the sandbox of a short command lived,
 * and tell nobody anything: a process that shares our memory does that after us, the heir.
 *
 * Invariants: the two never use libc at the same time, for once there is an heir, we exit. What we
 * inherited we have let go of before, so the heir has none of it. The last descriptors are its own
 * to close.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/internal.h"

enum { STACK_BYTES = 64 << 10 };

/*
 * Whoever reads our output, waits for a lock of our caller's or unmounts our directory must not wait
 * for the heir. All that we open is close-on-exec and not above HIGHEST, so what is not came from
 * our caller.
 */
static void let_go(int highest)
{
	for (int fd = 0; fd <= highest; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
	close_range((unsigned)highest + 1, ~0u, 0);
	if (chdir("/") < 0)
		return; /* it is only where we stand */
}

static int outlive(void *data)
{
	struct err unheard;

	setsid(); /* no signal to our group may stop it */
	return sandbox_tear_down(data, &unheard) < 0;
}

/* In a pid namespace that is not the host's, its pid 1 may be what ends with us, and all with it. */
static bool may_be_outlived(void)
{
	enum { HOST_PID_NAMESPACE = 0xEFFFFFFC }; /* include/linux/proc_ns.h PROC_PID_INIT_INO */
	struct stat status;

	return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == HOST_PID_NAMESPACE;
}

/* Returns where nobody can outlive us. */
static void leave_heir(struct sandbox *left, int status)
{
#ifndef __SANITIZE_ADDRESS__ /* which looks for leaks at the end, and knows no shared stack */
	char *stack = malloc(STACK_BYTES);
	sigset_t all;

	if (!stack || !may_be_outlived()) {
		free(stack);
		return;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	let_go(sandbox_highest_fd(left));
	if (clone(outlive, stack + STACK_BYTES, CLONE_VM | SIGCHLD, left) > 0)
		_exit(status);
	free(stack);
#else
	(void)outlive;
	(void)may_be_outlived;
	(void)let_go;
	(void)left;
	(void)status;
#endif
}

_Noreturn void sandbox_leave(struct sandbox *left, int status)
{
	struct err e;

	fflush(NULL);
	if (left)
		leave_heir(left, status);
	if (sandbox_tear_down(left, &e) < 0)
		fprintf(stderr, "%s\n", e.text);
	exit(status);
}
