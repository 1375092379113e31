/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device node of one's own: mknod of the host's disk or of /dev/mem gives all of the host, where
 * it can be made and opened. It is tried for the kernel log, which is read and not harmed, and for
 * loop0, on each file system that the sandbox can write. A character device 0:0 is no device: it is
 * overlayfs's whiteout, which the kernel lets anybody make, and which would end up as a ghost in
 * whatever is built from the disk. The filter forbids mknod but for files, FIFOs and sockets;
 * behind it stand Landlock, no capability, and nodev.
 * The filter and Landlock are enough, each by itself. The others are not: a whiteout takes no
 * capability (that devices do is told by device_access), and /dev cannot be nodev.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

static const struct {
	mode_t type;
	unsigned major, minor;
	const char *what;
} nodes[] = {
	{S_IFCHR, 1, 11, "the kernel log"},
	{S_IFCHR, 1, 1, "physical memory"},
	{S_IFBLK, 7, 0, "loop0"},
	{S_IFCHR, 10, 229, "fuse"},
};

static const char *const places[] = {".", "/tmp", "/dev", "/dev/shm", "/workspace"};

/* Made and opened: only then it is worth anything. */
static long node_opened(const char *path, size_t i)
{
	scoped_fd fd = -1;

	if (syscall(SYS_mknodat, AT_FDCWD, path, nodes[i].type | 0666,
	            makedev(nodes[i].major, nodes[i].minor)) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -1 : 0;
}

static void try_place(struct tries *tries, const char *place)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/attack-node", place);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		tried(tries, node_opened(path, i), "a node of %s was made in %s and opened",
		      nodes[i].what, place);
		unlink(path);
	}
	tried(tries, syscall(SYS_mknod, path, S_IFCHR | 0666, makedev(0, 0)),
	      "a whiteout was made in %s", place);
	unlink(path);
	/* high bits of the mode, which the kernel cuts off and a filter may not */
	tried(tries, syscall(SYS_mknod, path, 0x100000000ul | S_IFCHR | 0666, makedev(0, 0)),
	      "a whiteout was made in %s", place);
	unlink(path);
}

static void attempt(struct tries *tries)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		try_place(tries, places[i]);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(mknod_attack) = {
	.name = "mknod",
	.what = "make a device node and open the host's disk or memory by it, or make a whiteout",
	.seen = "every container with CAP_MKNOD; whiteouts by anybody since Linux 5.8",
	.wall = "no capability, filter, Landlock, nodev on every mount but /dev",
	.control = WORDS(AS_ROOT_OF_THE_HOST, WITHOUT("nodev")),
	.alone = WORDS("seccomp", "landlock"),
	.inside = inside,
};
