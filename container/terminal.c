/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of process.terminal: a pair of the container's own devpts, opened by descriptor beneath
 * the container's root. The slave comes from the master (TIOCGPTPEER), never from a name, and has its
 * size before anybody reads it; the master goes to who asked for it, over a socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "container/container.h"
#include "container/mounts.h"
#include "rootfs/detached.h"

enum { ROWS_BY_DEFAULT = 24, COLUMNS_BY_DEFAULT = 80 };

INSIDE(new_session)
{
	(void)in;
	process_default_signals();
	process_block_signals(false);
	if (setsid() < 0)
		return err_sys(e, "setsid");
	return 0;
}

/* ---- where the master goes ---- */

static int connect_to(const char *path, struct err *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	scoped_fd pathfd = file_open(AT_FDCWD, path, O_PATH, 0, e);

	TRY(pathfd);
	/* by its descriptor: an address has little room */
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", pathfd);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		return err_sys(e, "connecting to %s", path);
	return take_fd(&fd);
}

OUTSIDE(open_console_socket)
{
	const struct lifecycle_options *options = container->options;
	int ends[2];

	if (options->console_socket) {
		container->consolefd = connect_to(options->console_socket, e);
		return container->consolefd < 0 ? err_in(e, "--console-socket") : 0;
	}
	if (container->comes_later || options->detach)
		return err_set(e, EINVAL,
		               "process.terminal is true and nobody stays who could have the "
		               "terminal; give --console-socket");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return err_sys(e, "socketpair");
	container->terminalfd = ends[0];
	container->consolefd = ends[1];
	return 0;
}

union control {
	char buffer[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* With its name beside it, as receivers for runc expect it. */
static int send_master(int socketfd, int masterfd, const char *name, struct err *e)
{
	struct iovec iov = {.iov_base = (char *)(uintptr_t)name, .iov_len = strlen(name)};
	union control control = {0};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof control.buffer,
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof masterfd);
	memcpy(CMSG_DATA(cmsg), &masterfd, sizeof masterfd);
	while (sendmsg(socketfd, &header, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return err_sys(e, "sending the terminal to the console socket");
	return 0;
}

int terminal_receive(int socketfd, struct err *e)
{
	char name[64];
	struct iovec iov = {.iov_base = name, .iov_len = sizeof name};
	union control control = {0};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof control.buffer,
	};
	struct cmsghdr *cmsg;
	int fd;

	while (recvmsg(socketfd, &header, MSG_CMSG_CLOEXEC) < 0)
		if (errno != EINTR)
			return err_sys(e, "receiving the terminal");
	cmsg = CMSG_FIRSTHDR(&header);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS || cmsg->cmsg_len != CMSG_LEN(sizeof fd))
		return err_set(e, EPROTO, "the terminal has not come");
	memcpy(&fd, CMSG_DATA(cmsg), sizeof fd);
	return fd;
}

/* ---- the pair ---- */

/* NAME beneath the container's devpts. What it is, is looked at: anything may be mounted there. */
static int open_beneath(const char *name, int flags, struct err *e)
{
	scoped_fd rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	scoped_fd fd = -1;
	struct statfs st;

	TRY(rootfd);
	fd = file_open2(rootfd, name, flags, 0, BENEATH_ROOT, e);
	TRY(fd);
	if (fstatfs(fd, &st))
		return err_sys(e, "/%s", name);
	if (st.f_type != DEVPTS_SUPER_MAGIC)
		return err_set(e, EINVAL, "/%s is not of a devpts; mount one at /dev/pts", name);
	return take_fd(&fd);
}

static int open_pair(int *masterfd, int *slavefd, struct err *e)
{
	int unlock = 0;
	struct stat st;

	*masterfd = open_beneath("dev/pts/ptmx", O_RDWR | O_NOCTTY, e);
	TRY(*masterfd);
	if (fstat(*masterfd, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(5, 2))
		return err_set(e, EINVAL, "/dev/pts/ptmx is not what makes terminals");
	*slavefd = -1;
	if (ioctl(*masterfd, TIOCSPTLCK, &unlock) == 0)
		*slavefd = ioctl(*masterfd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return *slavefd < 0 ? err_sys(e, "making a terminal") : 0;
}

void terminal_own_size(struct winsize *size)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (ioctl(fd, TIOCGWINSZ, size) == 0 && size->ws_row && size->ws_col)
			return;
	*size = (struct winsize){.ws_row = ROWS_BY_DEFAULT, .ws_col = COLUMNS_BY_DEFAULT};
}

static int set_size(int fd, const struct oci_console_size *wanted, struct err *e)
{
	struct winsize size;

	terminal_own_size(&size);
	if (wanted && (wanted->height > USHRT_MAX || wanted->width > USHRT_MAX))
		return err_set(e, ERANGE, "process.consoleSize: at most %d each way", USHRT_MAX);
	if (wanted && wanted->height && wanted->width) {
		size.ws_row = (unsigned short)wanted->height;
		size.ws_col = (unsigned short)wanted->width;
	}
	return ioctl(fd, TIOCSWINSZ, &size) ? err_sys(e, "setting the terminal's size") : 0;
}

/* The slave at /dev/console. Its name is opened anew, for only a path can be bound. */
static int bind_console(int slavefd, const char *name, struct err *e)
{
	scoped_fd namefd = open_beneath(name + 1, O_PATH, e);
	scoped_fd rootfd = -1, targetfd = -1, mountfd = -1;
	struct stat named, slave;

	TRY(namefd);
	if (fstat(namefd, &named) || fstat(slavefd, &slave))
		return err_sys(e, "%s", name);
	if (named.st_dev != slave.st_dev || named.st_ino != slave.st_ino)
		return err_set(e, EINVAL, "%s is not the terminal that was made", name);
	rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	TRY(rootfd);
	targetfd = target_open(rootfd, "/dev/console", true, e);
	TRY(targetfd);
	TRY(target_check_own(targetfd, rootfd, "/dev/console", e));
	mountfd = detached_clone(namefd, "", e);
	TRY(mountfd);
	return detached_attach(mountfd, targetfd, "the terminal", "/dev/console", e);
}

static int become_controlling(int slavefd, struct err *e)
{
	if (ioctl(slavefd, TIOCSCTTY, 0))
		return err_sys(e, "making the terminal the controlling one");
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (dup2(slavefd, fd) < 0)
			return err_sys(e, "dup2");
	return 0;
}

INSIDE(open_console)
{
	const struct oci_user *user = in->process->user;
	scoped_fd masterfd = -1, slavefd = -1;
	unsigned number;
	char name[32];

	TRY(open_pair(&masterfd, &slavefd, e));
	if (ioctl(masterfd, TIOCGPTN, &number))
		return err_sys(e, "asking for the terminal's number");
	snprintf(name, sizeof name, "/dev/pts/%u", number);
	TRY(set_size(slavefd, in->process->console_size, e));
	if (user && fchown(slavefd, user->uid, (gid_t)-1))
		return err_sys(e, "giving the terminal to process.user.uid %u", user->uid);
	if (!in->container->joins)
		TRY(bind_console(slavefd, name, e));
	TRY(send_master(in->container->consolefd, masterfd, name, e));
	return become_controlling(slavefd, e);
}
