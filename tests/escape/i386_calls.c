/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls by the door for 32-bit programs (int $0x80), where numbers mean other calls: a
 * filter that looks at the number alone lets through what it forbids (the manual of seccomp warns
 * of it; CVE-2009-0835 was this in the kernel's own). The filter looks at the architecture first;
 * whatever is not its own is unknown.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

/* arch/x86/entry/syscalls/syscall_32.tbl */
enum {
	I386_GETPID = 20,
	I386_PERSONALITY = 136,
	I386_KEYCTL = 288,
	I386_UNSHARE = 310,
	I386_SOCKET = 359,
};

#if defined(__x86_64__)
static int i386(int number, int a, int b, int c)
{
	int result;

	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "a"(number), "b"(a), "c"(b), "d"(c)
	                 : "memory", "r8", "r9", "r10", "r11");
	return result;
}
#else
static int i386(int number, int a, int b, int c)
{
	(void)number, (void)a, (void)b, (void)c;
	return -ENOSYS;
}
#endif

static int code(int result)
{
	return result < 0 ? -result : 0;
}

static int try_getpid(const void *unused)
{
	(void)unused;
	return code(i386(I386_GETPID, 0, 0, 0));
}

static int try_keyctl(const void *unused)
{
	(void)unused;
	return code(i386(I386_KEYCTL, 0 /* KEYCTL_GET_KEYRING_ID */, -3, 0));
}

static int try_unshare(const void *unused)
{
	(void)unused;
	return code(i386(I386_UNSHARE, CLONE_NEWUSER, 0, 0));
}

static int try_socket(const void *unused)
{
	(void)unused;
	return code(i386(I386_SOCKET, 40 /* AF_VSOCK */, 1, 0));
}

static int try_personality(const void *unused)
{
	(void)unused;
	return code(i386(I386_PERSONALITY, 0x0400000 /* READ_IMPLIES_EXEC */, 0, 0));
}

/* A kernel that was built without them ends who tries by SIGSEGV. */
static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (try_apart(try_getpid, NULL) == 0)
		return 0;
	verdict(evidence, ABSENT, "this kernel has no system calls of i386");
	return 1;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	tally_add(&tally, "getpid", try_apart(try_getpid, NULL));
	tally_add(&tally, "keyctl", try_apart(try_keyctl, NULL));
	tally_add(&tally, "unshare of the user namespace", try_apart(try_unshare, NULL));
	tally_add(&tally, "socket of AF_VSOCK", try_apart(try_socket, NULL));
	tally_add(&tally, "personality", try_apart(try_personality, NULL));
	return tally_verdict(&tally, evidence);
}

ATTACK(i386_calls) = {
	.name = "i386_calls",
	.what = "make forbidden system calls by their 32-bit numbers",
	.seen = "seccomp(2), CVE-2009-0835",
	.wall = "filter: another architecture is unknown",
	.control = WORDS(WITHOUT("seccomp")),
	.before = before,
	.inside = inside,
};
