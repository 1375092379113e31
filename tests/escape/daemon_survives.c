/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is left behind: forked twice, in a session of its own, deaf to signals, while the
 * command ends at once as if all were done. CI hosts collect miners and backdoors this way. What is
 * left after --drain (1 s) is killed with the cgroup. The one left behind says that it won when it
 * has gone on for 3 s after the command; the host looks for it, too.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/escape/attack.h"
#include "tests/escape/host.h"

enum { WON_AFTER_S = 3 };

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct timespec left = {.tv_sec = WON_AFTER_S};
	pid_t pid;

	(void)argv;
	for (int signo = 1; signo < SIGRTMIN; signo++)
		signal(signo, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid > 0) {
		/* the first child has to be gone, so that pid 1 is the daemon's parent */
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	setsid();
	if (pid < 0 || fork() != 0)
		_exit(0);
	while (nanosleep(&left, &left) < 0)
		;
	return verdict(evidence, BROKEN, "a process went on for %d s after the command",
	               WON_AFTER_S);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	(void)status;
	return survivors_after(inside, 1, evidence);
}

ATTACK(daemon_survives) = {
	.name = "daemon_survives",
	.what = "leave a process behind that goes on after the command",
	.seen = "MITRE ATT&CK T1496; self-hosted CI runners",
	.wall = "the whole cgroup is killed at the end",
	.control = WORDS("--drain", "20"),
	.before = survivors_before,
	.during = survivors_during,
	.inside = inside,
	.after = after,
};
