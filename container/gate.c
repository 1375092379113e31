/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate between `create` and `start`: a socket in the container's directory of the store, at which
 * the process inside waits. Who can reach that directory may start the container, nobody else. Whoever
 * connects and goes without the word is let go, and the next one is heard.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scoped.h"
#include "container/container.h"
#include "runtime/channel.h"

enum { BACKLOG = 4 };

/* By way of the directory's descriptor: the path itself may be longer than an address has room. */
static struct sockaddr_un address(int directoryfd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/start", directoryfd);
	return address;
}

OUTSIDE(open_gate)
{
	struct sockaddr_un at = address(container->entry->fd);
	scoped_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG))
		return err_sys(e, "making the socket at which the container waits for its start");
	container->gatefd = take_fd(&fd);
	return 0;
}

int gate_connect(const struct store_entry *entry, struct err *e)
{
	struct sockaddr_un at = address(entry->fd);
	scoped_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at))
		return err_sys(e, "reaching the container's process, which waits for its start");
	return take_fd(&fd);
}

/* Says that it is here, after which it is nobody's but its own. */
static int announce(struct inside *in, struct err *e)
{
	struct channel_message at = {.kind = CHANNEL_AT};

	if (prctl(PR_SET_PDEATHSIG, 0))
		return err_sys(e, "prctl(PR_SET_PDEATHSIG)");
	TRY(channel_send(in->channelfd, &at, -1, e));
	close_fd(&in->channelfd);
	return 0;
}

/* The connection over which the word came; -1: another that was in vain. */
static int hear(int gatefd, struct err *e)
{
	scoped_fd fd = accept4(gatefd, NULL, NULL, SOCK_CLOEXEC), unwanted = -1;
	struct channel_message message;
	struct err ignored;

	if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
		return err_sys(e, "waiting for the start");
	if (fd < 0 || channel_receive(fd, &message, &unwanted, &ignored) != 1 ||
	    message.kind != CHANNEL_GO)
		return -1;
	return take_fd(&fd);
}

INSIDE(pass_gate)
{
	int gatefd = in->container->gatefd;

	TRY(announce(in, e));
	do {
		e->code = 0;
		in->channelfd = hear(gatefd, e);
	} while (in->channelfd < 0 && !e->code);
	if (e->code)
		_exit(125); /* nobody is there to be told */
	close(gatefd);
	return 0;
}
