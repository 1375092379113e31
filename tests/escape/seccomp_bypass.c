/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways around the filter itself. A newer filter whose listener answers "continue" passes what an
 * older one asks of its own (the manual of seccomp_unotify); a tracer exchanges the call after it
 * was judged (open until Linux 4.8); a descriptor of the listener that was left inside answers for
 * the supervisor; a tracer suspends it (CVE-2022-30594); numbers whose upper half is set compare as
 * others; flags in memory (clone3) cannot be seen. What is tried to get through is keyctl, which answers
 * with a number and changes nothing, and a new user namespace. personality(READ_IMPLIES_EXEC) makes
 * data executable.
 */
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum { FDS = 256, SESSION_KEYRING = -3 };

static int forbidden_call(const void *unused)
{
	(void)unused;
	return code_of(syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, SESSION_KEYRING, 0));
}

/* ---- filters of one's own ---- */

static struct sock_filter allow_all[] = {{.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW}};
static const struct sock_fprog allowing = {.len = 1, .filter = allow_all};

static int filter_by_call(const void *flags)
{
	return code_of(
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, *(const unsigned *)flags, &allowing));
}

static int filter_by_prctl(const void *unused)
{
	(void)unused;
	return code_of(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &allowing));
}

/* The listener of a filter knows no such call; anything else does not know the request. */
static int inherited_listener(void)
{
	uint64_t id = 0;

	for (int fd = 0; fd < FDS; fd++)
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0 || errno == ENOENT)
			return 0;
	return EBADF;
}

/* ---- a call that a tracer exchanges ---- */

#if defined(__x86_64__)
static int traced_child(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		return errno;
	raise(SIGSTOP);
	/* becomes keyctl, with these arguments */
	return code_of(syscall(SYS_getppid, 0, SESSION_KEYRING, 0));
}

static int exchange(pid_t pid)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0)
		return errno;
	if (registers.orig_rax == SYS_getppid)
		registers.orig_rax = SYS_keyctl;
	return code_of(ptrace(PTRACE_SETREGS, pid, NULL, &registers));
}

static int exchanged_call(const void *unused)
{
	pid_t pid = fork();
	int status, code = 0;

	(void)unused;
	if (pid == 0)
		_exit(traced_child());
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && code == 0) {
		code = WSTOPSIG(status) == SIGTRAP ? exchange(pid) : 0;
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0)
			code = errno;
	}
	if (code)
		return code;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}
#else
static int exchanged_call(const void *unused)
{
	(void)unused;
	return ENOSYS;
}
#endif

static int suspended_filter(const void *unused)
{
	pid_t pid = fork();
	int code;

	(void)unused;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	code = code_of(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_SUSPEND_SECCOMP));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return code;
}

/* ---- numbers and memory ---- */

static int high_bits(const void *unused)
{
	(void)unused;
	return code_of(syscall(0x100000000L | SYS_keyctl, 0, SESSION_KEYRING, 0));
}

static int clone_in_memory(const void *unused)
{
	struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

	(void)unused;
	if (pid == 0)
		_exit(0);
	return code_of(pid);
}

static int clone_by_register(const void *unused)
{
	long pid = syscall(SYS_clone, 0x100000000L | CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);

	(void)unused;
	if (pid == 0)
		_exit(0);
	return code_of(pid);
}

static int unshare_by_register(const void *unused)
{
	(void)unused;
	return code_of(syscall(SYS_unshare, 0x100000000L | CLONE_FS | CLONE_NEWUSER));
}

static int set_personality(const void *flags)
{
	return code_of(personality(*(const unsigned long *)flags));
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	static const unsigned no_flags = 0, sync = SECCOMP_FILTER_FLAG_TSYNC,
			      listener = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	static const unsigned long executable = READ_IMPLIES_EXEC, zero_page = MMAP_PAGE_ZERO;
	struct tally tally = {0};

	(void)argv;
	tally_add(&tally, "keyctl", try_apart(forbidden_call, NULL));
	tally_add(&tally, "a filter", try_apart(filter_by_call, &no_flags));
	tally_add(&tally, "a filter for all threads", try_apart(filter_by_call, &sync));
	tally_add(&tally, "a filter with a listener", try_apart(filter_by_call, &listener));
	tally_add(&tally, "a filter by prctl", try_apart(filter_by_prctl, NULL));
	tally_add(&tally, "an inherited listener", inherited_listener());
	tally_add(&tally, "a call exchanged by a tracer", try_apart(exchanged_call, NULL));
	tally_add(&tally, "PTRACE_O_SUSPEND_SECCOMP", try_apart(suspended_filter, NULL));
	tally_add(&tally, "high bits in the number", try_apart(high_bits, NULL));
	tally_add(&tally, "clone3 of a user namespace", try_apart(clone_in_memory, NULL));
	tally_add(&tally, "clone, high bits", try_apart(clone_by_register, NULL));
	tally_add(&tally, "unshare, high bits", try_apart(unshare_by_register, NULL));
	tally_add(&tally, "READ_IMPLIES_EXEC", try_apart(set_personality, &executable));
	tally_add(&tally, "MMAP_PAGE_ZERO", try_apart(set_personality, &zero_page));
	return tally_verdict(&tally, evidence);
}

ATTACK(seccomp_bypass) = {
	.name = "seccomp_bypass",
	.what = "get a forbidden call past the filter",
	.seen = "seccomp_unotify(2), ptrace(2) before Linux 4.8, CVE-2022-30594",
	.wall = "filter: no filters beside it, calls judged anew, whole registers compared",
	.control = WORDS(WITHOUT("seccomp")),
	.inside = inside,
};
