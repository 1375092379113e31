/* SPDX-License-Identifier: Apache-2.0 */
/* The channel between outside and inside: framing and descriptor passing. Owns nothing. */
#include "runtime/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/scoped.h"
#include "init/protocol.h"

union control {
	char buffer[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int channel_send(int socketfd, const struct channel_message *message, int fd, struct err *e)
{
	struct channel_message copy = *message;
	struct iovec iov = {.iov_base = &copy, .iov_len = sizeof copy};
	union control control = {0};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

	copy.has_fd = fd >= 0;
	if (fd >= 0) {
		header.msg_control = control.buffer;
		header.msg_controllen = sizeof control.buffer;
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(cmsg), &fd, sizeof fd);
	}
	while (sendmsg(socketfd, &header, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return err_sys(e, "talking to the other side of the sandbox");
	}
	return 0;
}

/* *FD becomes the first descriptor beside a message; true when no other came or was lost. */
static bool take_descriptor(struct msghdr *header, int *fd)
{
	bool alone = !(header->msg_flags & MSG_CTRUNC);

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(header); cmsg; cmsg = CMSG_NXTHDR(header, cmsg)) {
		size_t end = cmsg->cmsg_len - CMSG_LEN(0);

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof *fd <= end; at += sizeof *fd) {
			scoped_fd came = -1;

			memcpy(&came, CMSG_DATA(cmsg) + at, sizeof came);
			if (*fd < 0)
				*fd = take_fd(&came);
			else
				alone = false;
		}
	}
	return alone;
}

int channel_receive(int socketfd, struct channel_message *message, int *fd, struct err *e)
{
	union control control = {0};
	struct iovec iov = {.iov_base = message, .iov_len = sizeof *message};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof control.buffer,
	};
	scoped_fd received = -1;
	ssize_t length;

	memset(message, 0, sizeof *message);
	*fd = -1;
	/* A reset is told once, before what was sent: the other side went without reading our last. */
	do
		length = recvmsg(socketfd, &header, MSG_CMSG_CLOEXEC);
	while (length < 0 && (errno == EINTR || errno == ECONNRESET));
	if (length < 0)
		return err_sys(e, "listening to the other side of the sandbox");

	/* padding makes room for two, and a message may bring as many as fit */
	bool alone = take_descriptor(&header, &received);
	if ((header.msg_flags & MSG_CTRUNC) && received < 0)
		return err_set(e, EMFILE,
		               "no descriptor is free for what the other side of the sandbox "
		               "hands over; raise the limit (ulimit -n)");
	if (!alone)
		return err_set(e, EPROTO,
		               "a message with more than one descriptor from inside the "
		               "sandbox");
	if (length == 0)
		return 0;
	if ((header.msg_flags & MSG_TRUNC) ||
	    (length != sizeof *message && length != sizeof(struct init_message)))
		return err_set(e, EPROTO, "a message of %zd bytes%s from inside the sandbox",
		               length, header.msg_flags & MSG_TRUNC ? " and more" : "");
	*fd = take_fd(&received);
	return 1;
}
