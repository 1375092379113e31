/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of the host that the caller left open, or that the runtime itself did (CVE-2024-21626:
 * runc kept one of /sys/fs/cgroup over the exec). A directory outside of the root is a way to every
 * file of the host, whatever the root and the mounts are. The host's half leaves one of "/" and a
 * secret file open without close-on-exec, as a careless caller does. All but 0 to 2 are closed, and
 * Landlock refuses what does not lie beneath the root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"

#define SECRET "correct-horse-battery-staple"
enum { FDS = 256, LEAKED_DIR = 40, LEAKED_FILE = 41 };

static int before(const char *words[8], struct evidence *evidence)
{
	char name[] = "/tmp/agentdock-probe-XXXXXX";
	static char host_root[64];
	struct stat root;
	int rootfd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    filefd = mkostemp(name, O_CLOEXEC);

	if (filefd >= 0)
		unlink(name);
	if (rootfd < 0 || filefd < 0 || fstat(rootfd, &root) < 0 ||
	    pwrite(filefd, SECRET, strlen(SECRET), 0) < 0 || dup2(rootfd, LEAKED_DIR) < 0 ||
	    dup2(filefd, LEAKED_FILE) < 0) {
		verdict(evidence, UNTRIED, "leaving descriptors open: %s", strerror(errno));
		return -1;
	}
	/* how the inside knows the host's root when it sees it */
	snprintf(host_root, sizeof(host_root), "%lu:%lu", (unsigned long)root.st_dev,
	         (unsigned long)root.st_ino);
	words[0] = host_root;
	return 0;
}

static int is_host_root(int fd, const char *host_root)
{
	char found[64];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	snprintf(found, sizeof(found), "%lu:%lu", (unsigned long)st.st_dev,
	         (unsigned long)st.st_ino);
	return strcmp(found, host_root) == 0;
}

static int leads_to_host(int fd, const char *path, const char *host_root)
{
	scoped_fd opened = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return opened >= 0 && is_host_root(opened, host_root);
}

static int has_secret(int fd)
{
	char data[sizeof(SECRET)] = "", path[64];
	ssize_t got = pread(fd, data, sizeof(data) - 1, 0);

	if (got <= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		scoped_fd again = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		got = again >= 0 ? pread(again, data, sizeof(data) - 1, 0) : -1;
	}
	return got > 0 && strcmp(data, SECRET) == 0;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	int open_fds = 0;

	for (int fd = 0; fd < FDS; fd++) {
		char path[64];

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		open_fds++;
		snprintf(path, sizeof(path), "/proc/self/fd/%d/../../../../../..", fd);
		if (has_secret(fd))
			return verdict(evidence, BROKEN, "descriptor %d is the host's secret file",
			               fd);
		if (leads_to_host(fd, "../../../../..", argv[0]) ||
		    leads_to_host(AT_FDCWD, path, argv[0]))
			return verdict(evidence, BROKEN, "descriptor %d leads to the host's /", fd);
		if (fchdir(fd) == 0 && leads_to_host(AT_FDCWD, ".", argv[0]))
			return verdict(evidence, BROKEN, "fchdir(%d) leads to the host's /", fd);
	}
	return verdict(evidence, HELD, "%d descriptors are open, and none leads out", open_fds);
}

ATTACK(leaked_descriptors) = {
	.name = "leaked_descriptors",
	.what = "reach the host's files by a descriptor that somebody left open",
	.seen = "CVE-2024-21626 (runc), CVE-2016-9962",
	.wall = "close_range of all descriptors, Landlock beneath the root",
	.control = WORDS(WITHOUT("closed descriptors"), WITHOUT("landlock")),
	.before = before,
	.inside = inside,
};
