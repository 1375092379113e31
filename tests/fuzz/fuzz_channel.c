/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from inside a sandbox: messages of any size with any descriptors beside them
 * (runtime/channel.c), pid 1's messages as the supervisor takes them, and notifications of denied
 * calls (seccomp/notify.c), for which ioctl(2) is answered here.
 *
 * Holds: no descriptor leaks, one that is handed over is close-on-exec, only whole messages of the
 * two known sizes are taken, pid 1 can say nothing but an exit status, and nothing is let through
 * by the listener but the first sockets of NETLINK_ROUTE.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scoped.h"
#include "init/protocol.h"
#include "runtime/channel.h"
#include "runtime/internal.h"
#include "seccomp/notify.h"

enum { MESSAGE_MAX = 2048, FDS_MAX = 8, STEPS_MAX = 80 };

/* ---- messages ---- */

struct sent {
	unsigned char bytes[MESSAGE_MAX];
	size_t length;
	int fds_count;
};

static void make_message(struct sent *sent, struct fuzz_bytes *bytes)
{
	static const uint16_t sizes[] = {sizeof(struct init_message),
	                                 sizeof(struct channel_message), 0};
	uint32_t form = fuzz_take(bytes, 1);
	size_t take;

	memset(sent, 0, sizeof *sent);
	sent->length = form & 3 ? sizes[(form & 3) - 1] : fuzz_take(bytes, 2) % MESSAGE_MAX;
	sent->fds_count = (int)(form >> 2) % (FDS_MAX + 1);
	take = sent->length < bytes->left ? sent->length : bytes->left;
	/* a long one shall not eat up the rest */
	if (take > 64)
		take = 64;
	memcpy(sent->bytes, bytes->data, take);
	bytes->data += take;
	bytes->left -= take;
}

static void send_message(int fd, const struct sent *sent)
{
	union {
		char buffer[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)sent->bytes, .iov_len = sent->length};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	size_t fds_size = (size_t)sent->fds_count * sizeof(int);
	int fds[FDS_MAX];

	for (int i = 0; i < FDS_MAX; i++)
		fds[i] = fd;
	if (sent->fds_count) {
		struct cmsghdr *cmsg = &control.align;

		header.msg_control = control.buffer;
		header.msg_controllen = CMSG_SPACE(fds_size);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fds_size);
		memcpy(CMSG_DATA(cmsg), fds, fds_size);
	}
	CHECK(sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0, "sendmsg: %m");
}

static void check_received(const struct sent *sent, const struct channel_message *message, int fd)
{
	bool whole = sent->length == sizeof *message || sent->length == sizeof(struct init_message);
	unsigned char got[sizeof *message], expected[sizeof *message] = {0};

	CHECK(whole, "a message of %zu bytes is taken", sent->length);
	memcpy(expected, sent->bytes, sent->length);
	memcpy(got, message, sizeof got);
	CHECK(memcmp(got, expected, sizeof expected) == 0, "a message is not what was sent");
	CHECK(sent->fds_count <= 1, "a message with %d descriptors is taken", sent->fds_count);
	CHECK((fd >= 0) == (sent->fds_count == 1), "%d descriptors became %d", sent->fds_count, fd);
	CHECK(fd < 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC), "not close-on-exec");
}

static void try_receive(const int ends[2], struct fuzz_bytes *bytes)
{
	struct channel_message message;
	struct err e = {0};
	scoped_fd fd = -1;
	struct sent sent;
	int result;

	make_message(&sent, bytes);
	send_message(ends[1], &sent);
	result = channel_receive(ends[0], &message, &fd, &e);
	if (result > 0)
		check_received(&sent, &message, fd);
	else
		CHECK(fd == -1, "a descriptor of a message that is refused");
	if (result < 0)
		fuzz_check_err(result, &e);
	if (result == 0)
		CHECK(sent.length == 0, "a message of %zu bytes is an end-of-file", sent.length);
}

/* Pid 1 says up to two things and is dead. */
static void try_supervise(struct fuzz_bytes *bytes)
{
	const struct sandbox_watch watch = {.livefds = {-1, -1}, .cancelfd = -1};
	const struct sandbox_spec spec = {.drain_ms = 1000, .grace_ms = 1000, .timeout_ms = 60000};
	struct report report = {0};
	struct sandbox sandbox = {
		.spec = &spec,
		.watch = &watch,
		.report = &report,
		.outputfds = {-1, -1},
		.stdin_sourcefd = -1,
		.stdin_pipefd = -1,
		.listenerfd = -1,
		.pidfd = eventfd(1, EFD_CLOEXEC),
	};
	struct err e = {0};
	int ends[2], count = (int)fuzz_take(bytes, 1) % 3;
	struct sent sent;

	cgroup_init(&sandbox.cgroup);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair: %m");
	for (int i = 0; i < count; i++) {
		make_message(&sent, bytes);
		send_message(ends[1], &sent);
	}
	close(ends[1]);
	sandbox.channelfd = ends[0];
	CHECK(supervise_running(&sandbox, &e) == 0, "what pid 1 says is our failure: %s", e.text);
	CHECK(!sandbox.command_ended || WIFEXITED(sandbox.command_status) ||
	              WIFSIGNALED(sandbox.command_status),
	      "%#x is how a command ended", (unsigned)sandbox.command_status);
	CHECK(report.reason == REPORT_EXITED && report.signals_sent_count == 0,
	      "pid 1 made the supervisor act");
	close_fd(&sandbox.channelfd);
	close_fd(&sandbox.pidfd);
}

/* ---- notifications ---- */

static struct {
	struct seccomp_data data;
	int receive_errno, send_errno; /* 0: it works */
	bool answered;
	struct seccomp_notif_resp response;
} kernel;

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *argument;
	int error = request == SECCOMP_IOCTL_NOTIF_RECV ? kernel.receive_errno : kernel.send_errno;

	(void)fd;
	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	if (request == SECCOMP_IOCTL_NOTIF_RECV && !error) {
		struct seccomp_notif *notification = argument;

		notification->id = 17;
		notification->data = kernel.data;
	} else if (request == SECCOMP_IOCTL_NOTIF_SEND && !error) {
		kernel.answered = true;
		kernel.response = *(struct seccomp_notif_resp *)argument;
	}
	errno = error;
	return error ? -1 : 0;
}

static void check_answer(const struct seccomp_denials *before, const struct seccomp_denials *after)
{
	const struct seccomp_data *data = &kernel.data;
	bool netlink = data->nr == SYS_socket && (uint32_t)data->args[0] == AF_NETLINK &&
	               (uint32_t)data->args[2] == NETLINK_ROUTE;
	bool passes = netlink && before->netlink_passed < SECCOMP_NETLINK_MAX;

	CHECK(kernel.answered && kernel.response.id == 17, "a call is left without an answer");
	if (passes)
		CHECK(kernel.response.flags == SECCOMP_USER_NOTIF_FLAG_CONTINUE &&
		              kernel.response.error == 0,
		      "one of the first sockets is refused");
	else
		CHECK(kernel.response.flags == 0 && kernel.response.error == -EPERM,
		      "call %d is let through", data->nr);
	CHECK(after->total == before->total + !passes &&
	              after->netlink_passed == before->netlink_passed + passes,
	      "call %d is not counted once", data->nr);
}

static void check_counts(const struct seccomp_denials *denials)
{
	uint64_t sum = 0;
	char name[64];

	CHECK(denials->calls_count >= 0 && denials->calls_count <= SECCOMP_DENIED_MAX, "%d kinds",
	      denials->calls_count);
	for (int i = 0; i < denials->calls_count; i++) {
		sum += denials->calls[i].count;
		for (int j = 0; j < i; j++)
			CHECK(denials->calls[i].number != denials->calls[j].number,
			      "call %d is there twice", denials->calls[i].number);
		CHECK(seccomp_call_name(denials->calls[i].number, name, sizeof name)[0],
		      "call %d has no name", denials->calls[i].number);
	}
	CHECK(sum <= denials->total, "%llu calls of %llu", (unsigned long long)sum,
	      (unsigned long long)denials->total);
}

static void try_notification(struct seccomp_denials *denials, struct fuzz_bytes *bytes)
{
	static const int errors[] = {0, 0, 0, 0, ENOENT, EINTR, EINVAL, ENOMEM};
	scoped_fd listenerfd = eventfd(1, EFD_CLOEXEC);
	const struct seccomp_denials before = *denials;
	uint32_t form = fuzz_take(bytes, 1);
	struct err e = {0};
	int result;

	memset(&kernel, 0, sizeof kernel);
	kernel.receive_errno = errors[form & 7];
	kernel.send_errno = errors[form >> 3 & 7];
	kernel.data.nr = form & 0x40 ? SYS_socket : (int)fuzz_take(bytes, form & 0x80 ? 4 : 1);
	for (int i = 0; i < 3; i++)
		kernel.data.args[i] = fuzz_take(bytes, 1) | (uint64_t)fuzz_take(bytes, 1) << 28;
	result = seccomp_notify_answer(listenerfd, denials, &e);
	if (result == 1)
		check_answer(&before, denials);
	else
		CHECK(!kernel.answered && denials->total == before.total,
		      "a call is counted that was not answered");
	if (result < 0)
		fuzz_check_err(result, &e);
	check_counts(denials);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes bytes = {data, size};
	struct seccomp_denials denials = {0};
	int ends[2], next = fuzz_next_fd();

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair: %m");
	for (int i = 0; i < STEPS_MAX && bytes.left; i++) {
		switch (fuzz_take(&bytes, 1) % 4) {
		case 0:
			try_receive(ends, &bytes);
			break;
		case 1:
			try_supervise(&bytes);
			break;
		default:
			try_notification(&denials, &bytes);
		}
	}
	close(ends[0]);
	close(ends[1]);
	CHECK(fuzz_next_fd() == next, "a descriptor leaked");
	return 0;
}
