/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of the runtime that lives inside with the guest's identity: pid 1. Who traces it,
 * writes its memory or takes its descriptors says in its name how the command ended, and holds what
 * else it kept (runc's init in CVE-2016-9962 had descriptors of the host). Tracing is open to the
 * guest on purpose. Pid 1 cannot be read, so it is not dumpable, and the kernel refuses every such
 * access; pidfd_getfd and kcmp are closed as well.
 *
 * What can be forged is shown with the socket on which pid 1 speaks to the outside: an exit status
 * that nobody returned becomes that of the launcher.
 */
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/scoped.h"
#include "init/protocol.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum {
	PATIENCE_MS = 1000,
	FORGED = 42,
	TEXT = 0x400000 /* where a static program that is not PIE begins */
};

static int reopen(pid_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	scoped_fd fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);

	return code_of(fd);
}

static int read_text(pid_t pid, const char *name)
{
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : code_of(read(fd, &byte, 1));
}

static int seize(pid_t pid)
{
	return code_of(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static int copy_from(pid_t pid)
{
	char bytes[4] = "";
	struct iovec to = {bytes, sizeof(bytes)}, from = {(void *)(uintptr_t)TEXT, sizeof(bytes)};

	return code_of(process_vm_readv(pid, &to, 1, &from, 1, 0));
}

static int copy_to(pid_t pid)
{
	char bytes[4] = "";
	struct iovec from = {bytes, sizeof(bytes)}, to = {(void *)(uintptr_t)TEXT, sizeof(bytes)};

	return code_of(process_vm_writev(pid, &from, 1, &to, 1, 0));
}

static int compare(pid_t pid)
{
	return code_of(syscall(SYS_kcmp, getpid(), pid, KCMP_FILES, 0, 0));
}

/* When it has said that the command runs, pid 1 closes the command's descriptors. */
static void await_started(int pidfd)
{
	const struct timespec moment = {.tv_nsec = 1000 * 1000};

	for (int i = 0; i < PATIENCE_MS; i++) {
		scoped_fd fd = pidfd_getfd(pidfd, STDIN_FILENO, 0);

		if (fd < 0)
			return;
		nanosleep(&moment, NULL);
	}
}

/* Whatever it holds that is a socket is told that the command has ended. */
static int forge_the_ending(pid_t pid)
{
	const struct init_message ended = {.kind = INIT_EXITED, .value = FORGED << 8};
	scoped_fd pidfd = pidfd_open(pid, 0);
	int code = ESRCH;

	await_started(pidfd);
	for (int number = INIT_FD; pidfd >= 0 && number < 10; number++) {
		scoped_fd fd = pidfd_getfd(pidfd, number, 0);

		code = code_of(fd < 0 ? fd : send(fd, &ended, sizeof(ended), MSG_NOSIGNAL));
		if (code == 0)
			return 0;
	}
	return code;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};
	pid_t pid = getppid();

	(void)argv;
	if (pid == 0)
		return verdict(evidence, HELD, "no process of the runtime is in sight");
	tally_add(&tally, "read mem", read_text(pid, "mem"));
	tally_add(&tally, "open mem to write", reopen(pid, "mem", O_RDWR));
	tally_add(&tally, "environ", read_text(pid, "environ"));
	tally_add(&tally, "maps", read_text(pid, "maps"));
	tally_add(&tally, "auxv", read_text(pid, "auxv"));
	tally_add(&tally, "exe", reopen(pid, "exe", O_RDONLY));
	tally_add(&tally, "fd", reopen(pid, "fd", O_RDONLY | O_DIRECTORY));
	tally_add(&tally, "process_vm_readv", copy_from(pid));
	tally_add(&tally, "process_vm_writev", copy_to(pid));
	tally_add(&tally, "kcmp", compare(pid));
	tally_add(&tally, "pidfd_getfd", forge_the_ending(pid));
	tally_add(&tally, "ptrace", seize(pid));
	return tally_verdict(&tally, evidence);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == FORGED)
		return verdict(evidence, BROKEN,
		               "the launcher reports exit status %d, which pid 1 was made to say",
		               FORGED);
	return inside;
}

ATTACK(ptrace_supervisor) = {
	.name = "ptrace_supervisor",
	.what = "take over the runtime's process inside, and forge how the command ended",
	.seen = "CVE-2016-9962 (runc); ptrace(2), pidfd_getfd(2)",
	.wall = "pid 1 cannot be read, so it is undumpable; pidfd_getfd and kcmp are closed",
	.control = WORDS(WITHOUT("unreadable pid 1"), WITHOUT("seccomp")),
	.inside = inside,
	.after = after,
};
