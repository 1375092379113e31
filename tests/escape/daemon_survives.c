/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is left behind: forked twice, in a session of its own, deaf to signals, while the
 * command ends as soon as the host has seen both, as if all were done. CI hosts collect miners and
 * backdoors this way. The orphan becomes pid 1's, which stays for --drain (1 s) and is killed with the
 * cgroup then, so the pid namespace is gone, too. The orphan says that it won when it has gone on for
 * 6 s after the command; the host looks for it as well.
 * First of all it leaves the cgroup, where it can. In the control it gets out, and there is no pid
 * namespace. With the namespace alone it dies of pid 1's end. The cgroup alone is not shown here:
 * without the namespace pid 1 does not learn of the orphan, and ends as if nobody were left
 * (timeout_forking shows it).
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/escape/host.h"
#include "tests/escape/try.h"

enum { WON_AFTER_S = 6, MOMENTS_PER_S = 100 };

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	const struct timespec moment = {.tv_nsec = 1000000000 / MOMENTS_PER_S};
	pid_t command = getpid(), pid;

	(void)argv;
	survivors_leave_cgroup();
	for (int signo = 1; signo < SIGRTMIN; signo++)
		signal(signo, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid > 0) {
		/* the first child has to be gone, so that pid 1 is the daemon's parent */
		waitpid(pid, NULL, 0);
		hold();
		_exit(0);
	}
	setsid();
	if (pid < 0 || fork() != 0)
		_exit(0);
	while (kill(command, 0) == 0)
		nanosleep(&moment, NULL);
	/* a machine that stands still meanwhile takes one moment, not all of them */
	for (int i = 0; i < WON_AFTER_S * MOMENTS_PER_S; i++)
		nanosleep(&moment, NULL);
	return verdict(evidence, BROKEN, "a process went on for %d s after the command",
	               WON_AFTER_S);
}

static int before(const char *words[8], struct evidence *evidence)
{
	if (survivors_before(words, evidence) < 0)
		return -1;
	return hold_prepare(words[0]) == 0 ? 0 : unprepared(evidence, "a pipe");
}

static void during(void)
{
	hold_await();
	survivors_look();
	hold_end();
	survivors_during();
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	enum outcome outcome = survivors_after(inside, 2, evidence);

	if (outcome == HELD && status != 0)
		return verdict(evidence, UNTRIED,
		               "the command was to end with 0, and the launcher's "
		               "wait status is 0x%x",
		               (unsigned)status);
	return outcome;
}

ATTACK(daemon_survives) = {
	.name = "daemon_survives",
	.what = "leave a process behind that goes on after the command",
	.seen = "MITRE ATT&CK T1496; self-hosted CI runners",
	.wall = "the whole cgroup is killed at the end",
	.options = WORDS(HOLD_OPTIONS),
	.control = WORDS(AS_ROOT_OF_THE_HOST, WITHOUT("pid namespace"),
                         WITHOUT("cgroup namespace")),
	.alone = WORDS("pid namespace"),
	.before = before,
	.during = during,
	.inside = inside,
	.after = after,
	.silent = true,
};
