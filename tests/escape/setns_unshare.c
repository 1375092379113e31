/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other namespaces: into those of pid 1 or of the host by setns, into new ones by unshare. A new
 * user namespace gives every capability over new kernel surface, which most of the kernel's
 * escalations of the last years began with. A descriptor of a namespace of the host is left open by
 * the host's half, as a careless caller might. The filter forbids setns and unshare of any
 * namespace; pid 1 cannot be looked into; no descriptor of the host is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

enum { FIRST_FD = 3, LEAKED_NET = 44, LEAKED_MNT, LAST_FD = 64 };

static const struct {
	unsigned long flag;
	const char *file;
} kinds[] = {
	{CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mnt"},        {CLONE_NEWPID, "pid"},
	{CLONE_NEWNET, "net"},   {CLONE_NEWIPC, "ipc"},       {CLONE_NEWUTS, "uts"},
	{CLONE_NEWTIME, "time"}, {CLONE_NEWCGROUP, "cgroup"},
};

static int before(const char *words[8], struct evidence *evidence)
{
	scoped_fd net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	scoped_fd mnt = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	(void)words;
	if (dup2(net, LEAKED_NET) < 0 || dup2(mnt, LEAKED_MNT) < 0) {
		verdict(evidence, UNTRIED, "leaving namespaces open: %s", strerrorname_np(errno));
		return -1;
	}
	return 0;
}

static void try_unshare(struct tries *tries)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		/* the kernel reads an unsigned long, and all bits count: high ones are EINVAL */
		tried(tries, syscall(SYS_unshare, kinds[i].flag), "unshare made a new %s namespace",
		      kinds[i].file);
		tried(tries, syscall(SYS_unshare, kinds[i].flag | CLONE_FS | CLONE_FILES),
		      "unshare made a new %s namespace beside harmless flags", kinds[i].file);
	}
}

static void try_files(struct tries *tries)
{
	char path[64];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(path, sizeof(path), "/proc/1/ns/%s", kinds[i].file);
		scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

		tried(tries, fd < 0 ? -1 : setns(fd, 0), "setns entered %s", path);
	}
}

static void try_descriptors(struct tries *tries)
{
	for (int fd = FIRST_FD; fd < LAST_FD; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			tried(tries, setns(fd, 0), "setns entered what descriptor %d is", fd);
	}
	tried(tries, setns(-1, 0), "setns entered nothing");
}

static void try_pidfds(struct tries *tries)
{
	const pid_t pids[] = {1, getppid(), 2};

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		scoped_fd fd = pidfd_open(pids[i], 0);

		for (size_t k = 0; fd >= 0 && k < sizeof(kinds) / sizeof(kinds[0]); k++)
			tried(tries, setns(fd, (int)kinds[k].flag),
			      "setns entered the %s namespace of process %d", kinds[k].file,
			      pids[i]);
	}
}

static void attempt(struct tries *tries)
{
	try_descriptors(tries);
	try_files(tries);
	try_pidfds(tries);
	try_unshare(tries);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, 0, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(setns_unshare) = {
	.name = "setns_unshare",
	.what = "enter a namespace of the host, or a new one, for the capabilities there",
	.seen = "CVE-2022-0185, CVE-2023-32233, CVE-2024-1086: all begin with unshare",
	.wall = "no capability, and the filter",
	.control = WORDS(WITHOUT("seccomp")),
	.before = before,
	.inside = inside,
};
