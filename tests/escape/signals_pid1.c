/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals to the process of the runtime inside: kill or stop pid 1, so that the sandbox ends as
 * somebody else's fault, or never. Each signal by each call that sends one, and all processes at
 * once. The kernel drops what pid 1 of a pid namespace does not handle when it comes from inside,
 * SIGKILL and SIGSTOP with it. The command then returns 0, and the launcher has to say so.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum { SIGNALS = 64, PATIENCE_MS = 5000 };

static char state_of(pid_t pid)
{
	char path[64], text[256] = "";
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return '?';
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/* Whether pid 1 still reaps: an orphan that has ended disappears. */
static int reaps(void)
{
	const struct timespec moment = {.tv_nsec = 1000 * 1000};
	int ends[2];
	pid_t child, orphan = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	child = fork();
	if (child == 0) {
		orphan = fork();
		if (orphan == 0)
			_exit(0);
		_exit(write(ends[1], &orphan, sizeof(orphan)) != sizeof(orphan) || orphan < 0);
	}
	if (child > 0 && waitpid(child, NULL, 0) == child &&
	    read(ends[0], &orphan, sizeof(orphan)) != sizeof(orphan))
		orphan = 0;
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; orphan > 0 && i < PATIENCE_MS; i++) {
		if (kill(orphan, 0) < 0)
			return 1;
		nanosleep(&moment, NULL);
	}
	return 0;
}

static void send_each_way(pid_t pid, int signo)
{
	siginfo_t info = {.si_signo = signo, .si_code = SI_QUEUE};
	scoped_fd pidfd = pidfd_open(pid, 0);

	info.si_pid = getpid();
	info.si_uid = getuid();
	kill(pid, signo);
	syscall(SYS_tkill, pid, signo);
	tgkill(pid, pid, signo);
	syscall(SYS_rt_sigqueueinfo, pid, signo, &info);
	syscall(SYS_rt_tgsigqueueinfo, pid, pid, signo, &info);
	if (pidfd >= 0)
		pidfd_send_signal(pidfd, signo, NULL, 0);
}

/* As an orphan's and a kernel's: what a process may not claim to be. */
static int send_forged(pid_t pid)
{
	siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_KERNEL};

	return code_of(syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &info));
}

/* Stops all but itself and pid 1, then lets them go on: so that we live to tell of it. */
static int stop_everybody(const void *unused)
{
	(void)unused;
	return kill(-1, SIGSTOP) < 0 || kill(-1, SIGCONT) < 0 ? errno : 0;
}

/* Pid 1 hands signals on once it has said that the command runs; before, the start would fail. */
static void await_started(pid_t pid, const sigset_t *signals)
{
	const struct timespec patience = {.tv_sec = 1};

	kill(pid, SIGUSR1);
	sigtimedwait(signals, NULL, &patience);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	pid_t pid = getppid();
	int forged;
	sigset_t all;

	(void)argv;
	if (pid == 0)
		return verdict(evidence, HELD, "no process of the runtime is in sight");
	/* what pid 1 hands on to the command */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	await_started(pid, &all);
	send_each_way(pid, SIGSTOP);
	if (state_of(pid) == 'T') {
		kill(pid, SIGCONT); /* else the launcher waits for us for ever */
		return verdict(evidence, BROKEN, "process %d of the runtime was stopped", pid);
	}
	send_each_way(pid, SIGKILL);
	for (int signo = 1; signo <= SIGNALS; signo++)
		if (signo != SIGKILL && signo != SIGSTOP && signo != 32 && signo != 33)
			send_each_way(pid, signo);
	forged = send_forged(pid);
	/* elsewhere than in a pid namespace it would reach processes that are not ours */
	if (pid == 1)
		try_apart(stop_everybody, NULL);
	if (getppid() != pid)
		return verdict(evidence, BROKEN, "process %d of the runtime is dead", pid);
	if (!reaps())
		return verdict(evidence, BROKEN, "pid 1 no longer reaps");
	return verdict(
		evidence, HELD,
		"%d signals, 6 ways each: pid 1 lives and reaps; one in the kernel's name: %s",
		SIGNALS - 2, strerrorname_np(forged));
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	if (inside != HELD || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return inside;
	return verdict(evidence, BROKEN,
	               "the command was to end with 0, and the launcher's wait status is 0x%x",
	               (unsigned)status);
}

ATTACK(signals_pid1) = {
	.name = "signals_pid1",
	.what = "kill or stop the runtime's process inside by signals",
	.seen = "pid_namespaces(7), kill(2)",
	.wall = "pid namespace: its pid 1 gets no signal that it does not handle",
	.control = WORDS(WITHOUT("pid namespace"), WITHOUT("user namespace")),
	.inside = inside,
	.after = after,
};
