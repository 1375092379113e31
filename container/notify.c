/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NOTIFY_SOCKET (sd_notify(3)): the container is given a socket of its own at /run/notify/notify, and
 * of what it says there one thing is passed on: that it is ready. Who supervises us must not be told
 * anything else by who is inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "container/container.h"
#include "container/mounts.h"
#include "container/warn.h"
#include "rootfs/detached.h"

enum {
	MESSAGE_BYTES_MAX = 4096,
	ROUND_MESSAGES = 16, /* so many at once: who sends without end keeps us from nothing else */
};

int notify_listen(struct container *container, struct err *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int directoryfd = container->entry->fd, r;
	mode_t mask;

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/notify/notify",
	         directoryfd);
	unlinkat(directoryfd, "notify/notify", 0);
	/* for the program's user, whoever that is */
	mask = umask(0111);
	r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof address);
	umask(mask);
	if (r < 0)
		return err_sys(e, "making the container's notify socket");
	container->notifyfd = take_fd(&fd);
	return 0;
}

/* The directory is bound, not the socket, which `start` makes anew. */
OUTSIDE(open_notify)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
	                                            MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
	scoped_fd fd = -1;

	if (mkdirat(container->entry->fd, "notify", 0755))
		return err_sys(e, "making a directory for the notify socket");
	fd = file_open(container->entry->fd, "notify", O_PATH | O_DIRECTORY, 0, e);
	TRY(fd);
	container->notify_mountfd = detached_clone(fd, "", e);
	if (container->notify_mountfd < 0)
		return err_hint(e, "without privileges nothing of the host can be bound before the "
		                   "clone; unset NOTIFY_SOCKET");
	/* a socket can be sent to where nothing can be written */
	if (mount_setattr(container->notify_mountfd, "", AT_EMPTY_PATH, &attributes,
	                  sizeof attributes) < 0)
		return err_sys(e, "making the notify socket's directory read-only");
	return container->comes_later ? 0 : notify_listen(container, e);
}

INSIDE(attach_notify)
{
	scoped_fd targetfd = target_open(in->rootfd, "/run/notify", false, e);

	TRY(targetfd);
	TRY(target_check_own(targetfd, in->rootfd, "/run/notify", e));
	return detached_attach(in->container->notify_mountfd, targetfd, "the notify socket",
	                       "/run/notify", e);
}

/* Is there a line that says so? */
static bool says_ready(char *message)
{
	char *rest = message;

	for (char *line; (line = strsep(&rest, "\n"));)
		if (strcmp(line, "READY=1") == 0)
			return true;
	return false;
}

/* An address that begins with "@" is of the abstract namespace. */
static int tell(const struct container *container, struct err *e)
{
	const char *path = container->options->notify_socket;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t length = strlen(path);
	char text[64];
	int size = snprintf(text, sizeof text, "READY=1\nMAINPID=%d\n", container->pid);

	if (length >= sizeof address.sun_path)
		return err_set(e, ENAMETOOLONG, "NOTIFY_SOCKET: %s is too long", path);
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = '\0';
	if (fd < 0 || sendto(fd, text, (size_t)size, MSG_NOSIGNAL, (struct sockaddr *)&address,
	                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		return err_sys(e, "NOTIFY_SOCKET %s", path);
	return 0;
}

void notify_pass_on(struct container *container)
{
	struct err failed;
	char message[MESSAGE_BYTES_MAX + 1];
	ssize_t length;

	for (int i = 0; i < ROUND_MESSAGES; i++) {
		length = recv(container->notifyfd, message, MESSAGE_BYTES_MAX, 0);
		if (length < 0)
			return;
		message[length] = '\0';
		if (says_ready(message)) {
			close_fd(&container->notifyfd);
			/* it runs all the same */
			if (tell(container, &failed) < 0)
				container_warn("%s", failed.text);
			return;
		}
	}
}

int notify_await(struct container *container, struct err *e)
{
	struct pollfd fds[] = {{.fd = container->pidfd, .events = POLLIN},
	                       {.fd = container->notifyfd, .events = POLLIN}};

	while (container->notifyfd >= 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_sys(e, "waiting for the container to be ready");
		if (fds[1].revents)
			notify_pass_on(container);
		if (fds[0].revents)
			return 0;
	}
	return 0;
}
