/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's mounts as a container in a user namespace may have them: with what the host has set of
 * read-only, nosuid, nodev and noexec locked, and what a mount hides kept hidden (mount_namespaces(7),
 * "Restrictions on mount namespaces"). The kernel locks what it copies for a mount namespace of another
 * user namespace, and copies of that stay locked; copies of our own mounts the container's root could
 * change as it likes. So a process makes such a namespace and ends, and we copy from within.
 *
 * Acts on the calling process, which has one thread. Nothing foreign runs meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "container/mounts.h"

/* Its table of descriptors is ours: what PLACEFD is after this, the caller has. */
static _Noreturn void keep_namespace(int hostprocfd, int placefd)
{
	int fd = openat(hostprocfd, "self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && dup3(fd, placefd, O_CLOEXEC) >= 0)
		close(fd);
	_exit(0);
}

static int make_namespace(int hostprocfd, struct err *e)
{
	const struct clone_args args = {.flags = CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNS,
	                                .exit_signal = SIGCHLD};
	scoped_fd placefd = fcntl(hostprocfd, F_DUPFD_CLOEXEC, 0);
	pid_t pid;

	if (placefd < 0)
		return err_sys(e, "a descriptor");
	pid = process_clone3(&args);
	if (pid == 0)
		keep_namespace(hostprocfd, placefd);
	if (pid < 0) {
		errno = -pid;
		return err_sys(e, "making a user and a mount namespace");
	}
	process_end(&pid, false);
	return take_fd(&placefd);
}

int locked_mounts_enter(struct locked_mounts *mounts, int hostprocfd, struct err *e)
{
	scoped_fd namespacefd = make_namespace(hostprocfd, e);
	scoped_fd homefd = -1, rootfd = -1, cwdfd = -1;

	TRY(namespacefd);
	TRY(homefd = file_open(hostprocfd, "self/ns/mnt", O_RDONLY, 0, e));
	TRY(rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e));
	TRY(cwdfd = file_open(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0, e));
	if (setns(namespacefd, CLONE_NEWNS) < 0)
		return err_sys(e, "entering a mount namespace whose mounts are locked");
	*mounts = (struct locked_mounts){take_fd(&homefd), take_fd(&rootfd), take_fd(&cwdfd)};
	return 0;
}

int locked_mounts_leave(struct locked_mounts *mounts, struct err *e)
{
	int r = setns(mounts->homefd, CLONE_NEWNS);

	/* setns(2) makes root and working directory those of the namespace */
	if (r == 0)
		r = fchdir(mounts->rootfd);
	if (r == 0)
		r = chroot(".");
	if (r == 0)
		r = fchdir(mounts->cwdfd);
	if (r < 0)
		err_sys(e, "returning to our own mount namespace");
	close_fd(&mounts->homefd);
	close_fd(&mounts->rootfd);
	close_fd(&mounts->cwdfd);
	return r < 0 ? -e->code : 0;
}
