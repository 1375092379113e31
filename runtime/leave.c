/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process that has a sandbox to tear down and somebody who waits for it. Unmounting,
 * the loop device and removing the cgroups take longer than the sandbox of a short command lived,
 * and tell nobody anything: a process that shares our memory and descriptors does that after us.
 *
 * Invariant: until we are gone it does nothing but wait for that, so that the two never use libc at
 * the same time; from then on all of it is its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "runtime/sandbox.h"

enum { STACK_BYTES = 64 << 10 };

struct heir {
	struct sandbox *left;
	int parentfd; /* our pidfd, readable when we are gone */
	int status;
};

/* Whoever reads our output, or waits for a lock of our caller's, must not wait for the heir. All that
 * we open is close-on-exec, so what is not came from our caller. */
static void close_inherited(void)
{
	scoped_dir dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10), flags = fcntl(fd, F_GETFD);

		if (entry->d_name[0] != '.' && flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
}

static int outlive(void *data)
{
	struct heir *heir = data;
	struct pollfd gone = {.fd = heir->parentfd, .events = POLLIN};
	struct err unheard;

	while (poll(&gone, 1, -1) < 0 && errno == EINTR)
		;
	close_inherited();
	return sandbox_tear_down(heir->left, &unheard) < 0;
}

/* Returns where nobody can outlive us. */
static void leave_heir(struct heir *heir)
{
#ifndef __SANITIZE_ADDRESS__ /* which looks for leaks at the end, and knows no shared stack */
	char *stack = malloc(STACK_BYTES);
	sigset_t all;

	heir->parentfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (!stack || heir->parentfd < 0 || getpid() == 1) {
		free(stack);
		return;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (clone(outlive, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | SIGCHLD, heir) > 0)
		_exit(heir->status);
	free(stack);
#else
	(void)outlive;
	(void)heir;
#endif
}

_Noreturn void sandbox_leave(struct sandbox *left, int status)
{
	static struct heir heir;
	struct err e;

	heir = (struct heir){.left = left, .parentfd = -1, .status = status};
	fflush(NULL);
	if (left)
		leave_heir(&heir);
	if (sandbox_tear_down(left, &e) < 0)
		fprintf(stderr, "%s\n", e.text);
	exit(status);
}
