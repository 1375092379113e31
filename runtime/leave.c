/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process that has a sandbox to tear down and somebody who waits for it. Unmounting,
 * the loop device and removing the cgroups take longer than the sandbox of a short command lived,
 * and tell nobody anything: a process that shares our memory does that after us, the heir.
 *
 * Invariants: the two never use libc at the same time, for one of them waits for the other. What we
 * inherited, the heir has let go of before we end. The last descriptors are its own to close.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "runtime/sandbox.h"

enum { STACK_BYTES = 64 << 10 };

struct heir {
	struct sandbox *left;
	int parentfd; /* our pidfd, readable when we are gone */
	int readyfds[2];
	int status;
};

/*
 * Whoever reads our output, waits for a lock of our caller's or unmounts our directory must not wait
 * for the heir, nor may a signal to our group stop it. All that we open is close-on-exec, so what is
 * not came from our caller.
 */
static void let_go(void)
{
	scoped_dir dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10), flags = fcntl(fd, F_GETFD);

		if (entry->d_name[0] != '.' && flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
	if (chdir("/") == 0)
		setsid();
}

static int outlive(void *data)
{
	struct heir *heir = data;
	struct pollfd gone = {.fd = heir->parentfd, .events = POLLIN};
	struct err unheard;

	let_go();
	if (write(heir->readyfds[1], "", 1) != 1)
		return 1;
	while (poll(&gone, 1, -1) < 0 && errno == EINTR)
		;
	return sandbox_tear_down(heir->left, &unheard) < 0;
}

/* In a pid namespace that is not the host's, its pid 1 may be what ends with us, and all with it. */
static bool may_be_outlived(void)
{
	enum { HOST_PID_NAMESPACE = 0xEFFFFFFC }; /* include/linux/proc_ns.h PROC_PID_INIT_INO */
	struct stat status;

	return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == HOST_PID_NAMESPACE;
}

/* Returns where nobody can outlive us. */
static void leave_heir(struct heir *heir)
{
#ifndef __SANITIZE_ADDRESS__ /* which looks for leaks at the end, and knows no shared stack */
	char *stack = malloc(STACK_BYTES);
	sigset_t all;
	char ready;

	if (!stack || !may_be_outlived() || pipe2(heir->readyfds, O_CLOEXEC) < 0) {
		free(stack);
		return;
	}
	heir->parentfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (heir->parentfd >= 0 &&
	    clone(outlive, stack + STACK_BYTES, CLONE_VM | SIGCHLD, heir) > 0) {
		close(heir->readyfds[1]);
		if (read(heir->readyfds[0], &ready, 1) == 1)
			_exit(heir->status);
	}
	free(stack);
#else
	(void)outlive;
	(void)may_be_outlived;
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
