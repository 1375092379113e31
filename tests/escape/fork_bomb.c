/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork bomb: as many processes and threads as there can be, so that nobody on the host gets one
 * more. The limit of processes stops it (64 here), and the host's own processes fork meanwhile. The
 * attempt ends by itself at some hundreds. What the host counts is what decides.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack.h"
#include "tests/escape/host.h"

enum { OWN_FORKS = 20, LIMIT = 64, WANTED = 400, STACK_BYTES = 65536 };

static const char *word;
static struct {
	volatile int most, forks, refused;
} * seen;

static int before(const char *words[8], struct evidence *evidence)
{
	seen = shared_memory(sizeof(*seen));
	word = words[0] = unique_word();
	return seen && hold_prepare(word) == 0 ? 0 : unprepared(evidence, "memory and a pipe");
}

/* Another program of the host, which wants processes of its own while the inside has all of its. */
static void during(void)
{
	hold_await();
	seen->most = inside_processes(word, 0);
	for (int i = 0; i < OWN_FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		seen->forks += pid > 0;
		seen->refused += pid < 0;
	}
	hold_end();
}

/* How many there are at once. */
static int processes(void)
{
	static pid_t pids[WANTED];
	int count = 0;

	while (count < WANTED && (pids[count] = fork()) >= 0) {
		if (pids[count] == 0) {
			pause();
			_exit(0);
		}
		count++;
	}
	hold();
	for (int i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
	return count;
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* They end with the process. */
static int threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int count = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (count < WANTED && pthread_create(&thread, &attributes, wait_for_ever, NULL) == 0)
		count++;
	pthread_attr_destroy(&attributes);
	return count;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	int forked = processes(), cloned = threads();

	(void)argv;
	return verdict(evidence, forked < WANTED && cloned < WANTED ? HELD : BROKEN,
	               "%d processes and then %d threads at once", forked, cloned);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	(void)status;
	if (seen->refused)
		return verdict(evidence, BROKEN, "the host was refused %d processes of its own",
		               seen->refused);
	if (inside == HELD && seen->most > LIMIT)
		return verdict(evidence, BROKEN, "the host saw %d processes", seen->most);
	/* it forked beside them, or nothing is known */
	if (inside == HELD && !(seen->most && seen->forks))
		return verdict(evidence, UNTRIED, "the host saw nothing of it");
	return inside;
}

ATTACK(fork_bomb) = {
	.name = "fork_bomb",
	.what = "take all processes of the host",
	.seen = ":(){ :|:& };: of every shell",
	.wall = "pids.max",
	.options = WORDS("--pids-limit", "64", HOLD_OPTIONS),
	.control = WORDS("--pids-limit", "4096"),
	.before = before,
	.during = during,
	.inside = inside,
	.after = after,
};
