/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who stays beside a process of a container until its end. Owns the blocked signals, the raw mode of
 * our terminal, which is given back on every way out, and what is on its way between the two terminals:
 * no more than a buffer in each direction, so that who does not read stops who writes, and nobody else.
 */
#include "container/foreground.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "container/container.h"
#include "runtime/channel.h"

/* A fault of ours or of the host's, too: 125 is nobody else's code. */
int status_of_fault(int fault)
{
	return fault == FAULT_NOT_FOUND ? 127 : fault == FAULT_CANT_EXECUTE ? 126 : 125;
}

/* ---- signals ---- */

/* Those that stop us or say that we are wrong are ours; that a child ended is told by its pidfd. */
static const int own_signals[] = {SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,  SIGTRAP, SIGABRT, SIGSYS,
                                  SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGPIPE, SIGURG};

int foreground_begin(struct foreground *foreground, struct err *e)
{
	sigset_t set;

	*foreground = (struct foreground){.signalfd = -1, .masterfd = -1};
	sigfillset(&set);
	for (size_t i = 0; i < sizeof own_signals / sizeof *own_signals; i++)
		sigdelset(&set, own_signals[i]);
	foreground->signalfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (foreground->signalfd < 0 || sigprocmask(SIG_BLOCK, &set, &foreground->mask))
		return err_sys(e, "taking signals");
	return 0;
}

void foreground_end(struct foreground *foreground)
{
	if (foreground->signalfd < 0)
		return;
	if (foreground->is_raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &foreground->modes);
	close_fd(&foreground->masterfd);
	close_fd(&foreground->signalfd);
	sigprocmask(SIG_SETMASK, &foreground->mask, NULL);
}

static void pass_on(const struct foreground *foreground, int pidfd)
{
	struct signalfd_siginfo info;
	struct winsize size;

	while (read(foreground->signalfd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo != SIGWINCH) {
			pidfd_send_signal(pidfd, (int)info.ssi_signo, NULL, 0);
		} else if (foreground->masterfd >= 0) {
			terminal_own_size(&size);
			ioctl(foreground->masterfd, TIOCSWINSZ, &size);
		}
	}
}

/* ---- between two terminals ---- */

/* Ours becomes raw: what its keys mean is for the other one to say. */
static int take_terminal(struct foreground *foreground, int socketfd, struct err *e)
{
	struct termios raw;

	foreground->masterfd = terminal_receive(socketfd, e);
	TRY(foreground->masterfd);
	if (fcntl(foreground->masterfd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return err_sys(e, "fcntl");
	if (tcgetattr(STDIN_FILENO, &foreground->modes))
		return 0; /* not a terminal */
	raw = foreground->modes;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
		return err_sys(e, "setting our terminal's modes");
	foreground->is_raw = true;
	return 0;
}

/* False: the end of the file, or nobody is there any more. */
static bool fill(struct stream *stream, int fd)
{
	ssize_t got = read(fd, stream->bytes, sizeof stream->bytes);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	stream->length = (size_t)got;
	return got > 0;
}

static bool drain(struct stream *stream, int fd)
{
	ssize_t put = write(fd, stream->bytes, stream->length);

	if (put < 0)
		return errno == EAGAIN || errno == EINTR;
	stream->length -= (size_t)put;
	memmove(stream->bytes, stream->bytes + put, stream->length);
	return true;
}

enum { PROCESS, SIGNALS, NOTIFY, INPUT, MASTER, OUTPUT, POLLED };

static void set_events(const struct foreground *foreground, struct pollfd fds[POLLED])
{
	bool has_terminal = foreground->masterfd >= 0;
	const struct stream *in = &foreground->in, *out = &foreground->out;

	fds[INPUT].fd = has_terminal && !foreground->in_ended && !in->length ? STDIN_FILENO : -1;
	fds[INPUT].events = POLLIN;
	fds[MASTER].fd = has_terminal && (in->length || !out->length) ? foreground->masterfd : -1;
	fds[MASTER].events = (short)((in->length ? POLLOUT : 0) | (out->length ? 0 : POLLIN));
	fds[OUTPUT].fd = out->length ? STDOUT_FILENO : -1;
	fds[OUTPUT].events = POLLOUT;
}

static void carry(struct foreground *foreground, const struct pollfd fds[POLLED])
{
	bool open = true;

	if (fds[INPUT].revents && !fill(&foreground->in, STDIN_FILENO))
		foreground->in_ended = true;
	if (fds[MASTER].revents & POLLOUT)
		open = drain(&foreground->in, foreground->masterfd);
	if ((fds[MASTER].revents & (POLLIN | POLLHUP)) && !foreground->out.length)
		open = fill(&foreground->out, foreground->masterfd) && open;
	/* who reads us went away: what is written is written to nobody */
	if (fds[OUTPUT].revents && !drain(&foreground->out, STDOUT_FILENO))
		foreground->out.length = 0;
	if (!open)
		close_fd(&foreground->masterfd);
}

/* What was written before the end. A process that is left may write on: only what is there. */
static void carry_rest(struct foreground *foreground)
{
	do
		while (foreground->out.length)
			if (!drain(&foreground->out, STDOUT_FILENO))
				return;
	while (foreground->masterfd >= 0 && fill(&foreground->out, foreground->masterfd) &&
	       foreground->out.length);
}

/* ---- the wait ---- */

int foreground_wait(struct foreground *foreground, struct container *container, int *status,
                    struct err *e)
{
	struct pollfd fds[POLLED] = {
		[PROCESS] = {.fd = container->pidfd, .events = POLLIN},
		[SIGNALS] = {.fd = foreground->signalfd, .events = POLLIN},
		[NOTIFY] = {.events = POLLIN},
	};
	int ended;

	if (container->terminalfd >= 0)
		TRY(take_terminal(foreground, container->terminalfd, e));
	while (!fds[PROCESS].revents) {
		set_events(foreground, fds);
		fds[NOTIFY].fd = container->notifyfd;
		if (poll(fds, POLLED, -1) < 0) {
			if (errno != EINTR)
				return err_sys(e, "waiting for the container");
			continue;
		}
		if (fds[SIGNALS].revents)
			pass_on(foreground, container->pidfd);
		if (fds[NOTIFY].revents)
			notify_pass_on(container);
		carry(foreground, fds);
	}
	carry_rest(foreground);
	TRY(process_wait(container->pidfd, &ended, e));
	container->pid = -1;
	*status = WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
	return 0;
}
