/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New namespaces by the calls that make processes: clone, whose flags a filter sees, and clone3,
 * whose flags lie in memory, where it does not. Filters of container engines let clone3 pass, or
 * answered EPERM so that libc broke; CVE-2022-0185 and its successors need one of the doors. Raw
 * calls are made, since libc would hide the second. The filter forbids clone with a flag of a
 * namespace, and answers clone3 with ENOSYS.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

static const struct {
	unsigned long long flag;
	const char *name;
} kinds[] = {
	{CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mount"},      {CLONE_NEWPID, "pid"},
	{CLONE_NEWNET, "net"},   {CLONE_NEWIPC, "ipc"},       {CLONE_NEWUTS, "uts"},
	{CLONE_NEWTIME, "time"}, {CLONE_NEWCGROUP, "cgroup"},
};

/* The child lives only to show that it could be made. */
static long ended(long pid)
{
	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return pid;
}

static long by_clone(unsigned long flags)
{
	return ended(syscall(SYS_clone, flags, NULL, NULL, NULL, 0));
}

static long by_clone3(unsigned long long flags, size_t size)
{
	struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};

	return ended(syscall(SYS_clone3, &args, size));
}

static void attempt(struct tries *tries)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unsigned long long flag = kinds[i].flag;
		const char *name = kinds[i].name;

		/* CLONE_NEWTIME is in the bits of clone's exit signal: only clone3 knows it */
		if (flag != CLONE_NEWTIME) {
			tried(tries, by_clone(flag | SIGCHLD), "clone made a %s namespace", name);
			tried(tries, by_clone(0xffffffff00000000ul | flag | SIGCHLD),
			      "clone made a %s namespace, with high bits set", name);
		}
		tried(tries, by_clone3(flag, sizeof(struct clone_args)),
		      "clone3 made a %s namespace", name);
		tried(tries, by_clone3(flag, CLONE_ARGS_SIZE_VER0),
		      "clone3 of the first version made a %s namespace", name);
	}
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, 0, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(clone3_namespaces) = {
	.name = "clone3_namespaces",
	.what = "get a new namespace by clone, or by clone3, whose flags no filter sees",
	.seen = "moby 42680 (clone3 and seccomp); CVE-2022-0185 and its successors",
	.wall = "filter: clone with CLONE_NEW* is forbidden, clone3 unknown",
	.control = WORDS(WITHOUT("seccomp")),
	.inside = inside,
};
