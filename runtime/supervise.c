/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Supervision: one poll loop from the command's start to the death of pid 1.
 *
 *	RUNNING --command ended--> DRAINING --nobody left, or drain_ms--> KILLED
 *	RUNNING --time-out, cancel--> STOPPING (TERM sent to all) --grace--> KILLED
 *	any --second cancel--> KILLED              any --pid 1 dead--> done
 *
 * Both pipes are drained in every state. A live reader that is slow makes the loop leave that one
 * pipe alone for a while; clocks and cancels go on. Memory is bounded by the cap and one chunk a
 * stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "init/protocol.h"
#include "runtime/internal.h"

enum {
	CHUNK = 65536,
	LIVE_CHUNK = PIPE_BUF, /* what a pipe that polled writable takes without blocking */
	KILL_PATIENCE_MS =
		10000,          /* from SIGKILL to the death of all; only a stuck kernel needs it */
	DRAIN_AFTER_DEATH = 64, /* chunks; a dead sandbox's pipe holds no more than 1 MiB */
	/* a stream's flood may cost us only so much time, which is not the sandbox's: 800 MB/s, and
	 * 25,600 reads a second; the pipe holds the rest up */
	WINDOW_US = 10000,
	WINDOW_BYTES = 8 << 20,
	WINDOW_READS = 256,
	DENIALS_MAX = 100000, /* answered; then calls are refused without us, see serve_listener */
};

enum state { RUNNING, DRAINING, STOPPING, KILLED };

struct live {
	unsigned char data[CHUNK];
	size_t length, written;
	int fd; /* -1: nobody reads */
};

struct loop {
	struct sandbox *sandbox;
	enum state state;
	uint64_t deadline_us; /* of the state; 0: none */
	bool pid1_dead;
	struct live live[2];
	uint64_t window_ends_us; /* what was read in this window, of both streams */
	size_t window_bytes, window_reads;
	unsigned char input[LIVE_CHUNK];
	size_t input_length, input_written;
};

enum slot {
	OUT,
	ERR,
	LIVE_OUT,
	LIVE_ERR,
	CHANNEL,
	PID1,
	LISTENER,
	CANCEL,
	STDIN_PIPE,
	STDIN_SOURCE,
	POLLED
};

static uint64_t after_ms(uint64_t ms)
{
	return clock_us() + ms * 1000;
}

/* ---- time and cancel while building ---- */

static int poll_timeout(uint64_t deadline_us)
{
	uint64_t now = clock_us();

	if (!deadline_us)
		return -1;
	if (now >= deadline_us)
		return 0;
	uint64_t ms = (deadline_us - now + 999) / 1000;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

/* Takes one signal off the signalfd; 0 when there was none. */
static int read_cancel(int cancelfd)
{
	struct signalfd_siginfo info;

	if (read(cancelfd, &info, sizeof info) != sizeof info)
		return 0;
	return (int)info.ssi_signo;
}

/* One that has come, if any. */
static int check_cancel(struct sandbox *sandbox, struct err *e)
{
	int signo = sandbox->watch->cancelfd < 0 ? 0 : read_cancel(sandbox->watch->cancelfd);

	if (!signo)
		return 0;
	sandbox->report->cancel_signo = signo;
	return err_set(e, ECANCELED, "canceled while it was started");
}

static int too_late(const struct sandbox *sandbox, struct err *e)
{
	return err_set(e, ETIME, "not started within %llu ms; raise --start-timeout",
	               (unsigned long long)sandbox->spec->start_timeout_ms);
}

int supervise_check(struct sandbox *sandbox, struct err *e)
{
	TRY(check_cancel(sandbox, e));
	return poll_timeout(sandbox->deadline_us) == 0 ? too_late(sandbox, e) : 0;
}

int supervise_building(struct sandbox *sandbox, struct channel_message *message, int *fd,
                       struct err *e)
{
	struct pollfd polled[2] = {
		{.fd = sandbox->channelfd, .events = POLLIN},
		{.fd = sandbox->watch->cancelfd, .events = POLLIN},
	};

	for (;;) {
		int n = poll(polled, 2, poll_timeout(sandbox->deadline_us));

		if (n < 0 && errno != EINTR)
			return err_sys(e, "poll");
		if (n > 0 && polled[1].revents)
			TRY(check_cancel(sandbox, e));
		if (n > 0 && polled[0].revents)
			return channel_receive(sandbox->channelfd, message, fd, e);
		if (n == 0)
			return too_late(sandbox, e);
	}
}

/* ---- what the loop does ---- */

static void note_signal(struct sandbox *sandbox, int signo)
{
	struct report *report = sandbox->report;

	if (report->signals_sent_count == REPORT_SIGNALS_MAX)
		return;
	report->signals_sent[report->signals_sent_count].signo = signo;
	report->signals_sent[report->signals_sent_count].at_ms =
		(clock_us() - sandbox->started_us) / 1000;
	report->signals_sent_count++;
}

static int kill_all(struct loop *loop, struct err *e)
{
	if (loop->state == KILLED)
		return 0;
	loop->state = KILLED;
	loop->deadline_us = after_ms(KILL_PATIENCE_MS);
	note_signal(loop->sandbox, SIGKILL);
	return cgroup_kill(&loop->sandbox->cgroup, e);
}

/* TERM to all, which have the grace to end in; a second request kills. */
static int stop(struct loop *loop, enum report_reason reason, struct err *e)
{
	struct sandbox *sandbox = loop->sandbox;

	if (loop->state == STOPPING)
		return kill_all(loop, e);
	if (loop->state == KILLED)
		return 0;
	sandbox->report->reason = reason;
	if (loop->state == DRAINING || sandbox->spec->grace_ms == 0)
		return kill_all(loop, e);
	loop->state = STOPPING;
	loop->deadline_us = after_ms(sandbox->spec->grace_ms);
	note_signal(sandbox, SIGTERM);
	return cgroup_signal(&sandbox->cgroup, SIGTERM, sandbox->pid, e);
}

static int on_deadline(struct loop *loop, struct err *e)
{
	switch (loop->state) {
	case RUNNING:
		return stop(loop, REPORT_TIMEOUT, e);
	case DRAINING:
	case STOPPING:
		return kill_all(loop, e);
	case KILLED:
		break;
	}
	return err_set(e, ETIMEDOUT,
	               "the sandbox's processes did not die of SIGKILL within %d ms; a system call "
	               "of theirs hangs in the kernel",
	               KILL_PATIENCE_MS);
}

static void on_command_end(struct loop *loop, int status)
{
	struct sandbox *sandbox = loop->sandbox;

	sandbox->command_ended = true;
	sandbox->command_status = status;
	sandbox->ended_us = clock_us();
	if (loop->state == RUNNING) {
		loop->state = DRAINING;
		loop->deadline_us = after_ms(sandbox->spec->drain_ms);
	}
}

static void on_channel(struct loop *loop)
{
	struct sandbox *sandbox = loop->sandbox;
	struct channel_message message;
	struct err ignored;
	scoped_fd fd = -1;

	/* from here on pid 1 lives among the guest's: what it says is an exit status or ignored */
	if (channel_receive(sandbox->channelfd, &message, &fd, &ignored) != 1) {
		close_fd(&sandbox->channelfd);
		return;
	}
	if (message.kind == INIT_EXITED && !sandbox->command_ended &&
	    (WIFEXITED(message.row) || WIFSIGNALED(message.row)))
		on_command_end(loop, message.row);
}

/* Has this window's share been read? A new window begins when the old one is over. */
static bool throttled(struct loop *loop)
{
	uint64_t now = clock_us();

	if (now >= loop->window_ends_us) {
		loop->window_ends_us = now + WINDOW_US;
		loop->window_bytes = loop->window_reads = 0;
	}
	return loop->window_bytes >= WINDOW_BYTES || loop->window_reads >= WINDOW_READS;
}

/* One chunk of a stream; closes it at its end. Returns the bytes that came. */
static ssize_t on_output(struct loop *loop, int i, struct err *e)
{
	struct sandbox *sandbox = loop->sandbox;
	struct live *live = &loop->live[i];
	ssize_t n = read(sandbox->outputfds[i], live->data, sizeof live->data);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		close_fd(&sandbox->outputfds[i]);
		return 0;
	}
	loop->window_bytes += (size_t)n;
	loop->window_reads++;
	TRY(output_add(&sandbox->outputs[i], live->data, (size_t)n, e));
	if (live->fd >= 0) {
		live->length = (size_t)n;
		live->written = 0;
	}
	return n;
}

/*
 * Hands on what fits. A reader that is gone ends the stream for the command as well (its next write
 * is SIGPIPE, as in a shell's pipe); output that cannot be written is our failure, never silence.
 */
static int on_live(struct loop *loop, int i, struct err *e)
{
	struct live *live = &loop->live[i];
	size_t left = live->length - live->written;
	ssize_t n = write(live->fd, live->data + live->written,
	                  left < LIVE_CHUNK ? left : LIVE_CHUNK);

	if (n >= 0) {
		live->written += (size_t)n;
	} else if (errno == EPIPE) {
		live->fd = -1;
		close_fd(&loop->sandbox->outputfds[i]);
	} else if (errno != EINTR && errno != EAGAIN) {
		return err_sys(e, "writing the command's %s", i ? "stderr" : "stdout");
	}
	return 0;
}

static bool live_pending(const struct live *live)
{
	return live->fd >= 0 && live->written < live->length;
}

static void close_stdin(struct sandbox *sandbox)
{
	close_fd(&sandbox->stdin_sourcefd);
	close_fd(&sandbox->stdin_pipefd);
}

static int on_stdin_source(struct loop *loop, struct err *e)
{
	struct sandbox *sandbox = loop->sandbox;
	ssize_t n = read(sandbox->stdin_sourcefd, loop->input, sizeof loop->input);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_sys(e, "reading standard input '%s'", sandbox->spec->stdin_path);
	if (n == 0) {
		close_stdin(sandbox);
		return 0;
	}
	loop->input_length = (size_t)n;
	loop->input_written = 0;
	return 0;
}

static void on_stdin_pipe(struct loop *loop)
{
	struct sandbox *sandbox = loop->sandbox;
	ssize_t n = write(sandbox->stdin_pipefd, loop->input + loop->input_written,
	                  loop->input_length - loop->input_written);

	if (n >= 0)
		loop->input_written += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		close_stdin(sandbox); /* the command closed its input */
}

/* ---- the loop ---- */

/* Returns when poll must end at the latest. */
static uint64_t fill(struct loop *loop, struct pollfd polled[POLLED])
{
	const struct sandbox *sandbox = loop->sandbox;
	bool input = loop->input_written < loop->input_length, wait = throttled(loop);

	for (int i = 0; i < 2; i++) {
		bool pending = live_pending(&loop->live[i]);

		polled[OUT + i] = (struct pollfd){pending || wait ? -1 : sandbox->outputfds[i],
		                                  POLLIN, 0};
		polled[LIVE_OUT + i] = (struct pollfd){pending ? loop->live[i].fd : -1, POLLOUT, 0};
	}
	polled[CHANNEL] = (struct pollfd){sandbox->channelfd, POLLIN, 0};
	polled[PID1] = (struct pollfd){sandbox->pidfd, POLLIN, 0};
	polled[LISTENER] = (struct pollfd){sandbox->listenerfd, POLLIN, 0};
	polled[CANCEL] = (struct pollfd){sandbox->watch->cancelfd, POLLIN, 0};
	polled[STDIN_PIPE] = (struct pollfd){input ? sandbox->stdin_pipefd : -1, POLLOUT, 0};
	polled[STDIN_SOURCE] = (struct pollfd){input ? -1 : sandbox->stdin_sourcefd, POLLIN, 0};
	if (wait && (!loop->deadline_us || loop->window_ends_us < loop->deadline_us))
		return loop->window_ends_us;
	return loop->deadline_us;
}

/*
 * One call a round: a flood of them starves nobody. Answering costs time that is not the sandbox's,
 * so there is an end to it: without a listener the kernel itself refuses (ENOSYS).
 */
static void serve_listener(struct sandbox *sandbox)
{
	struct err ignored;

	if (seccomp_notify_answer(sandbox->listenerfd, &sandbox->denials, &ignored) < 0 ||
	    sandbox->denials.total >= DENIALS_MAX)
		close_fd(&sandbox->listenerfd);
}

static int serve(struct loop *loop, const struct pollfd polled[POLLED], struct err *e)
{
	struct sandbox *sandbox = loop->sandbox;

	for (int i = 0; i < 2; i++) {
		if (polled[LIVE_OUT + i].revents)
			TRY(on_live(loop, i, e));
		if (polled[OUT + i].revents)
			TRY((int)on_output(loop, i, e));
	}
	if (polled[CHANNEL].revents)
		on_channel(loop);
	if (polled[LISTENER].revents)
		serve_listener(sandbox);
	if (polled[STDIN_PIPE].revents)
		on_stdin_pipe(loop);
	if (polled[STDIN_SOURCE].revents)
		TRY(on_stdin_source(loop, e));
	if (polled[CANCEL].revents) {
		int signo = read_cancel(sandbox->watch->cancelfd);

		if (signo && !sandbox->report->cancel_signo)
			sandbox->report->cancel_signo = signo;
		if (signo)
			TRY(stop(loop, REPORT_CANCELED, e));
	}
	if (polled[PID1].revents)
		loop->pid1_dead = true;
	if (loop->deadline_us && clock_us() >= loop->deadline_us && !loop->pid1_dead)
		TRY(on_deadline(loop, e));
	return 0;
}

/*
 * All processes are dead: what the pipes still hold is the end of the output. A live reader that
 * takes nothing for drain_ms loses it; the capture does not.
 */
static int drain_dead(struct loop *loop, struct err *e)
{
	struct sandbox *sandbox = loop->sandbox;
	uint64_t deadline = after_ms(sandbox->spec->drain_ms);

	for (int i = 0; i < 2; i++) {
		struct live *live = &loop->live[i];

		for (int chunk = 0; chunk < DRAIN_AFTER_DEATH; chunk++) {
			while (live_pending(live)) {
				struct pollfd out = {.fd = live->fd, .events = POLLOUT};

				if (poll(&out, 1, poll_timeout(deadline)) <= 0)
					live->fd = -1;
				else
					TRY(on_live(loop, i, e));
			}
			if (sandbox->outputfds[i] < 0)
				break;
			ssize_t n = on_output(loop, i, e);
			TRY((int)n);
			if (n == 0)
				break;
		}
	}
	return 0;
}

int supervise_running(struct sandbox *sandbox, struct err *e)
{
	struct pollfd polled[POLLED];
	/* not on the stack, which the caller's limits may make small */
	scoped_mem struct loop *loop = calloc(1, sizeof *loop);

	if (!loop)
		return err_set(e, ENOMEM, "no memory to supervise a sandbox");
	loop->sandbox = sandbox;
	loop->state = RUNNING;

	for (int i = 0; i < 2; i++)
		loop->live[i].fd = sandbox->watch->livefds[i];
	if (sandbox->spec->timeout_ms)
		loop->deadline_us = after_ms(sandbox->spec->timeout_ms);
	while (!loop->pid1_dead) {
		uint64_t until_us = fill(loop, polled);

		if (poll(polled, POLLED, poll_timeout(until_us)) < 0 && errno != EINTR)
			return err_sys(e, "poll");
		TRY(serve(loop, polled, e));
	}
	if (sandbox->channelfd >= 0 && !sandbox->command_ended)
		on_channel(loop);
	if (!sandbox->command_ended)
		sandbox->ended_us = clock_us();
	return drain_dead(loop, e);
}
