/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's end of a notifying filter. Counts are of attempts: one that a signal interrupts
 * is made, and counted, again.
 *
 * Every call is answered EPERM but the first sockets of NETLINK_ROUTE, which are continued.
 * SECCOMP_USER_NOTIF_FLAG_CONTINUE is no wall where what a pointer leads to decides, because the
 * guest changes it meanwhile. Here three numbers decide. The kernel copied them from the registers,
 * and it executes the call with these registers: only a tracer could change them, and it would have
 * to stop the call, which then is judged anew. seccomp/policy.c sees to it that no other call that
 * a profile forbids looks like these.
 */
#include "seccomp/notify.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's structures may be longer than those of our headers; theirs are 80 and 24 bytes. */
union notification {
	struct seccomp_notif request;
	unsigned char room[512];
};
union response {
	struct seccomp_notif_resp response;
	unsigned char room[512];
};

static int check_sizes(struct err *e)
{
	static int checked;
	struct seccomp_notif_sizes sizes;

	if (checked)
		return 0;
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return err_sys(e, "seccomp listener: sizes of the kernel's structures");
	if (sizes.seccomp_notif > sizeof(union notification) ||
	    sizes.seccomp_notif_resp > sizeof(union response))
		return err_set(
			e, E2BIG,
			"seccomp listener: this kernel's structures are larger than we know; "
			"use a profile whose deny.action is \"errno\"");
	checked = 1;
	return 0;
}

static void count(struct seccomp_denials *denials, int number)
{
	int i = 0;

	denials->total++;
	while (i < denials->calls_count && denials->calls[i].number != number)
		i++;
	if (i == SECCOMP_DENIED_MAX)
		return;
	if (i == denials->calls_count)
		denials->calls[denials->calls_count++] = (struct seccomp_denied){number, 0};
	denials->calls[i].count++;
}

/* As the kernel reads them: the low 32 bits. */
static bool is_netlink_route(const struct seccomp_data *data)
{
	return data->nr == SYS_socket && (int)data->args[0] == AF_NETLINK &&
	       (int)data->args[2] == NETLINK_ROUTE;
}

/* 1 when a notification waits: receiving would block for as long as the guest likes otherwise. */
static int is_waiting(int listenerfd, struct err *e)
{
	struct pollfd poller = {.fd = listenerfd, .events = POLLIN};

	if (poll(&poller, 1, 0) < 0)
		return errno == EINTR ? 0 : err_sys(e, "seccomp listener");
	if (poller.revents & POLLIN)
		return 1;
	if (poller.revents)
		return err_set(e, EPIPE, "seccomp listener: no process is left under the filter");
	return 0;
}

int seccomp_notify_answer(int listenerfd, struct seccomp_denials *denials, struct err *e)
{
	union notification notification;
	union response response;
	int waiting;
	bool passes;

	TRY(check_sizes(e));
	waiting = is_waiting(listenerfd, e);
	if (waiting <= 0)
		return waiting;

	/* the kernel refuses a buffer that is not all zero */
	memset(&notification, 0, sizeof notification);
	if (ioctl(listenerfd, SECCOMP_IOCTL_NOTIF_RECV, &notification) < 0) {
		if (errno == ENOENT || errno == EINTR)
			return 0;
		return err_sys(e, "seccomp listener: receiving");
	}
	memset(&response, 0, sizeof response);
	response.response.id = notification.request.id;
	passes = is_netlink_route(&notification.request.data) &&
	         denials->netlink_passed < SECCOMP_NETLINK_MAX;
	if (passes)
		response.response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		response.response.error = -EPERM;
	if (ioctl(listenerfd, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0) {
		if (errno == ENOENT)
			return 0;
		return err_sys(e, "seccomp listener: answering");
	}
	if (passes)
		denials->netlink_passed++;
	else
		count(denials, notification.request.data.nr);
	return 1;
}
