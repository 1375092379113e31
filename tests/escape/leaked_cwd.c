/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A working directory by descriptor: CVE-2024-21626 as it was used. An image (or who calls) asks for
 * the working directory /proc/self/fd/N, and if the runtime has a directory of the host open as N
 * when it goes there, the command starts outside of its root and walks on with "..". The host's half
 * leaves "/" open as such a descriptor. A working directory without a path inside is refused before
 * anything is executed; where it is reached all the same, Landlock lets nothing be opened from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"

enum { LEAKED = 42 };

static int before(const char *words[8], struct evidence *evidence)
{
	static char host_root[64];
	scoped_fd rootfd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat root;

	if (rootfd < 0 || fstat(rootfd, &root) < 0 || dup2(rootfd, LEAKED) < 0) {
		verdict(evidence, UNTRIED, "leaving a descriptor open: %s", strerror(errno));
		return -1;
	}
	snprintf(host_root, sizeof(host_root), "%lu:%lu", (unsigned long)root.st_dev,
	         (unsigned long)root.st_ino);
	words[0] = host_root;
	return 0;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	static const char *const ways[] = {".", "..", "../../../../../..", "/proc/self/cwd"};
	char found[64], where[256];
	struct stat st;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		scoped_fd fd = open(ways[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		snprintf(found, sizeof(found), "%lu:%lu", (unsigned long)st.st_dev,
		         (unsigned long)st.st_ino);
		if (strcmp(found, argv[0]) == 0)
			return verdict(evidence, BROKEN, "\"%s\" is the host's / and opens",
			               ways[i]);
	}
	if (!getcwd(where, sizeof(where)))
		snprintf(where, sizeof(where), "(%s)", strerror(errno));
	return verdict(evidence, HELD,
	               "the working directory is %s; nothing of the host opens from it", where);
}

ATTACK(leaked_cwd) = {
	.name = "leaked_cwd",
	.what = "start in a directory of the host, by a descriptor that is open in the runtime",
	.seen = "CVE-2024-21626 (runc)",
	.wall = "no descriptor of the host inside; the working directory must have a path inside; "
		"Landlock beneath the root",
	.options = WORDS("--workdir", "/proc/self/fd/42"),
	.control = WORDS(WITHOUT("closed descriptors"), WITHOUT("working directory check"),
                         WITHOUT("landlock")),
	.before = before,
	.inside = inside,
	/* agentdock, runc before and after 1.1.12, crun */
	.refusals = WORDS("working directory", "outside of container mount namespace root",
                          "/proc/self/fd/42"),
};
