/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls by their x32 numbers. The architecture that a filter sees is that of x86-64, only
 * bit 30 of the number is set: a filter that lists what it forbids lets all of them through (the
 * manual of seccomp warns of it). Ours lists what it allows, and no such number is among that.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum { X32 = 0x40000000 };

static int try_getpid(void)
{
	return code_of(syscall(X32 | SYS_getpid));
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (try_getpid() == 0)
		return 0;
	verdict(evidence, ABSENT, "this kernel has no system calls of x32");
	return 1;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	tally_add(&tally, "getpid", try_getpid());
	tally_add(&tally, "keyctl", code_of(syscall(X32 | SYS_keyctl, 0, -3, 0)));
	tally_add(&tally, "socket of AF_VSOCK", code_of(syscall(X32 | SYS_socket, 40, 1, 0)));
	tally_add(&tally, "unshare of the user namespace",
	          code_of(syscall(X32 | SYS_unshare, CLONE_NEWUSER)));
	return tally_verdict(&tally, evidence);
}

ATTACK(x32_calls) = {
	.name = "x32_calls",
	.what = "make forbidden system calls by their x32 numbers",
	.seen = "seccomp(2)",
	.wall = "filter: a list of what is allowed, which has no number of x32",
	.control = WORDS(WITHOUT("seccomp")),
	.before = before,
	.inside = inside,
};
