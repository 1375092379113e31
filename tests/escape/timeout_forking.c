/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forking without end while the time-out strikes: each process lives just long enough to make the
 * next one, in a session of its own and deaf to SIGTERM, so that who kills them one by one is always
 * late. A whole cgroup is killed at once, and pid 1 with it, whose end kills the pid namespace. First
 * of all they leave the cgroup, where they can. The command says that it won when it has run twice as
 * long as it may, with its grace. The host looks for what is left; whatever it finds it kills, and the
 * processes end by themselves a while later.
 * In the control they get out of the cgroup and there is no pid namespace. With the namespace alone
 * they die of pid 1's end; with the filter alone they stay in the cgroup, and die with that.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/escape/host.h"
#include "tests/escape/try.h"

enum {
	CHAINS = 8,
	WON_AFTER_S = 4,
	MOMENTS_PER_S = 100,
	END_AFTER_S = 8,
	TIMED_OUT = 124,        /* says AgentDock */
	KILLED = 128 + SIGKILL, /* says what runs bundles */
};

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void __attribute__((noreturn)) chain(time_t end)
{
	while (now_s() < end) {
		setsid();
		if (fork() > 0)
			_exit(0);
	}
	_exit(0);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	const struct timespec moment = {.tv_nsec = 1000000000 / MOMENTS_PER_S};
	time_t end = now_s() + END_AFTER_S;

	(void)argv;
	survivors_leave_cgroup();
	signal(SIGTERM, SIG_IGN);
	for (int i = 0; i < CHAINS; i++)
		if (fork() == 0)
			chain(end);
	/* a machine that stands still meanwhile takes one moment, not all of them */
	for (int i = 0; i < WON_AFTER_S * MOMENTS_PER_S; i++) {
		nanosleep(&moment, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return verdict(evidence, BROKEN, "ran for %d s, with a time-out of 1 s and a grace of 1 s",
	               WON_AFTER_S);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	enum outcome outcome = survivors_after(inside, 2, evidence);
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	if (outcome == HELD && code != TIMED_OUT && code != KILLED)
		return verdict(evidence, UNTRIED,
		               "the time-out was to end it, and the launcher's wait "
		               "status is 0x%x",
		               (unsigned)status);
	return outcome;
}

ATTACK(timeout_forking) = {
	.name = "timeout_forking",
	.what = "outlive the time-out by forking faster than one can kill",
	.seen = "runners that kill by process group or by a list of pids",
	.wall = "the whole cgroup is killed at the time-out",
	.options = WORDS("--timeout", "1", "--grace", "1"),
	.control = WORDS(AS_ROOT_OF_THE_HOST, WITHOUT("pid namespace"),
                         WITHOUT("cgroup namespace")),
	.alone = WORDS("pid namespace", "seccomp"),
	.before = survivors_before,
	.during = survivors_during,
	.inside = inside,
	.after = after,
	.silent = true,
};
