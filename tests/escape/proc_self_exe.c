/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's own program, rewritten from inside (CVE-2019-5736: runc entered the container, was
 * seen there as /proc/PID/exe, and root inside wrote over /usr/bin/runc). Whatever runs inside and
 * was executed from a file of the host is such a way. The inside opens what is behind /proc/PID/exe
 * of each process but its own copy, then asks for it again for writing, by name and by descriptor.
 * "Text file busy" is a success: the kernel says it to who may write once the program has ended.
 *
 * pid 1 is a sealed memfd that nobody may read, so it is no file of the host and cannot be changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"

enum { PIDS = 64 };

static bool is_own_copy(int fd)
{
	struct stat own, st;

	return stat("/probe", &own) == 0 && fstat(fd, &st) == 0 && own.st_dev == st.st_dev &&
	       own.st_ino == st.st_ino;
}

static bool may_write(const char *path)
{
	scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 || errno == ETXTBSY;
}

/* Whether the program of PID can be written; SEEN counts those that can be looked at. */
static bool rewrites(int pid, int *seen, struct evidence *evidence)
{
	char exe[64], again[64], target[200];
	ssize_t length;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	scoped_fd fd = open(exe, O_PATH | O_CLOEXEC);

	if (fd < 0 || is_own_copy(fd))
		return false;
	++*seen;
	length = readlink(exe, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	if (may_write(exe) || may_write(again)) {
		verdict(evidence, BROKEN, "%s, which is %s, can be written", exe, target);
		return true;
	}
	verdict(evidence, HELD, "%s is %s: %s", exe, target, strerror(errno));
	return false;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	int seen = 0;

	(void)argv;
	for (int pid = 1; pid <= PIDS; pid++)
		if (rewrites(pid, &seen, evidence))
			return BROKEN;
	if (!seen)
		verdict(evidence, HELD,
		        "no program but our own copy can be opened by /proc/PID/exe");
	return HELD;
}

ATTACK(proc_self_exe) = {
	.name = "proc_self_exe",
	.what = "rewrite the runtime's program on the host by /proc/PID/exe",
	.seen = "CVE-2019-5736 (runc, LXC)",
	.wall = "pid 1 is a sealed memfd that cannot be read",
	.no_control =
		"pid 1 is executed from memory in every build: without its seal and its mode it "
		"would still be no file of the host",
	.inside = inside,
};
