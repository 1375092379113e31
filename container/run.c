/* SPDX-License-Identifier: Apache-2.0 */
/* run: create and start in one, without a gate; and what `exec` shares: to wait, and pass signals on. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "container/container.h"
#include "container/foreground.h"
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

int signals_take(struct err *e)
{
	sigset_t set;
	int fd;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof own_signals / sizeof *own_signals; i++)
		sigdelset(&set, own_signals[i]);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL))
		return err_sys(e, "taking signals");
	return fd;
}

void signals_give_back(int *signalfd)
{
	sigset_t none;

	if (*signalfd < 0)
		return;
	close_fd(signalfd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void pass_on(int signalfd, int pidfd)
{
	struct signalfd_siginfo info;

	while (read(signalfd, &info, sizeof info) == sizeof info)
		if (info.ssi_signo != SIGWINCH)
			pidfd_send_signal(pidfd, (int)info.ssi_signo, NULL, 0);
}

int foreground_wait(struct container *container, int signalfd, int *status, struct err *e)
{
	struct pollfd fds[] = {{.fd = container->pidfd, .events = POLLIN},
	                       {.fd = signalfd, .events = POLLIN}};
	int ended;

	while (!fds[0].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_sys(e, "waiting for the container");
		if (fds[1].revents)
			pass_on(signalfd, container->pidfd);
	}
	TRY(process_wait(container->pidfd, &ended, e));
	container->pid = -1;
	*status = WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
	return 0;
}

/* ---- run ---- */

/* After it runs. */
static int attend(struct container *container, int signalfd, int *status, struct err *e)
{
	const struct lifecycle_options *options = container->options;

	if (options->pid_file)
		TRY(pid_file_write(options->pid_file, container->pid, e));
	TRY(container_started(container, e));
	if (options->detach)
		return 0;
	store_release(container->entry); /* others may change it now */
	return foreground_wait(container, signalfd, status, e);
}

static int run(struct container *container, int signalfd, int *status, struct err *e)
{
	const struct lifecycle_options *options = container->options;
	struct err ignored;
	int fault, r;

	r = container_build(container, &fault, e);
	if (r < 0) {
		*status = status_of_fault(fault);
		return r;
	}
	*status = 0;
	r = attend(container, signalfd, status, e);
	process_end(r < 0 ? &container->pid : &(pid_t){-1}, true);
	store_release(container->entry);
	if (r < 0 || (!options->detach && !options->keep)) {
		if (container_delete(options, true, r < 0 ? &ignored : e) < 0 && r == 0)
			r = -e->code;
	}
	return r;
}

int container_run(const struct lifecycle_options *options, int *status, struct err *e)
{
	struct store_entry entry = {.fd = -1};
	struct container container;
	int signalfd = options->detach ? -1 : signals_take(e), r;

	if (!options->detach)
		TRY(signalfd);
	container_init(&container, options, &entry);
	r = run(&container, signalfd, status, e);
	signals_give_back(&signalfd);
	container_release(&container);
	return r;
}
