/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of the host by the names that they have in every /dev: disks, memory, the kernel log,
 * drivers that speak to the kernel (fuse, loop-control, kvm, tun, vhost, dri). A container that is
 * given the host's /dev, or a node too many of it, can be left by them. /dev is made of six harmless
 * nodes; all others are neither there nor can they be made there, although /dev itself cannot be
 * nodev. Those that do something when they are merely opened (watchdogs, tapes) are not touched.
 * What keeps nodes from being made is enough each by itself, but for the dropping of capabilities,
 * which cannot be had without the bounding set. That no other node is there to begin with cannot be
 * left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *name;
	mode_t type;
	unsigned major, minor; /* 0: known by its name only, numbers differ */
} devices[] = {
	{"kmsg", S_IFCHR, 1, 11},
	{"mem", S_IFCHR, 1, 1},
	{"port", S_IFCHR, 1, 4},
	{"fuse", S_IFCHR, 10, 229},
	{"kvm", S_IFCHR, 10, 232},
	{"net/tun", S_IFCHR, 10, 200},
	{"vhost-net", S_IFCHR, 10, 238},
	{"vhost-vsock", S_IFCHR, 10, 241},
	{"loop-control", S_IFCHR, 10, 237},
	{"loop0", S_IFBLK, 7, 0},
	{"mapper/control", S_IFCHR, 10, 236},
	{"dri/card0", S_IFCHR, 226, 0},
	{"dri/renderD128", S_IFCHR, 226, 128},
	{"cuse", S_IFCHR, 10, 203},
	{"uinput", S_IFCHR, 10, 223},
	{"tty0", S_IFCHR, 4, 0},
	{"console", S_IFCHR, 5, 1},
	{"sda", S_IFBLK, 8, 0},
	{"vda", S_IFBLK, 254, 0},
	{"nvme0n1", S_IFBLK, 259, 0},
	{"ram0", S_IFBLK, 1, 0},
	{"btrfs-control", S_IFCHR, 10, 234},
	{"nbd0", S_IFBLK, 43, 0},
	{"userfaultfd", S_IFCHR, 0, 0},
	{"snd/control", S_IFCHR, 0, 0},
	{"mei0", S_IFCHR, 0, 0},
	{"dma_heap/system", S_IFCHR, 0, 0},
	{"udmabuf", S_IFCHR, 0, 0},
	{"vfio/vfio", S_IFCHR, 10, 196},
	{"hwrng", S_IFCHR, 10, 183},
};

/* Nodes that every program may expect, and that lead to nothing of the host. */
static const unsigned harmless[][2] = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}};

static bool is_harmless(dev_t device)
{
	for (size_t i = 0; i < COUNT(harmless); i++) {
		if (makedev(harmless[i][0], harmless[i][1]) == device)
			return true;
	}
	/* a terminal of the sandbox's own devpts */
	return major(device) >= 136 && major(device) <= 143;
}

/* ptmx is a device 5:2 in devpts, whichever devpts that is; which one is another attack. */
static bool is_device(const struct stat *st)
{
	return S_ISBLK(st->st_mode) ||
	       (S_ISCHR(st->st_mode) && !is_harmless(st->st_rdev) && st->st_rdev != makedev(5, 2));
}

static long opened(const char *path)
{
	scoped_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	errno = ENOTTY;
	return is_device(&st) ? 0 : -1;
}

static void by_name(struct tries *tries)
{
	char path[64];

	for (size_t i = 0; i < COUNT(devices); i++) {
		snprintf(path, sizeof(path), "/dev/%s", devices[i].name);
		tried(tries, opened(path), "%s is there and was opened", path);
	}
}

/* Whatever is there under whatever name. */
static void by_looking(struct tries *tries)
{
	char path[300];
	struct dirent *entry;
	struct stat st;
	DIR *dir = opendir("/dev");

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		if (lstat(path, &st) == 0 && is_device(&st))
			tried(tries, opened(path), "%s (%u:%u) is there and was opened", path,
			      major(st.st_rdev), minor(st.st_rdev));
	}
	if (dir)
		closedir(dir);
}

static void by_making(struct tries *tries)
{
	static const char path[] = "/dev/attack-device";

	for (size_t i = 0; i < COUNT(devices); i++) {
		if (!devices[i].major)
			continue;
		if (syscall(SYS_mknodat, AT_FDCWD, path, devices[i].type | 0666,
		            makedev(devices[i].major, devices[i].minor)) < 0)
			tried(tries, -1, "%s", path);
		else
			tried(tries, opened(path), "%s was made in /dev and opened",
			      devices[i].name);
		unlink(path);
	}
}

static void attempt(struct tries *tries)
{
	by_name(tries);
	by_looking(tries);
	by_making(tries);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(device_access) = {
	.name = "device_access",
	.what = "open a device of the host: disk, memory, kernel log, fuse, kvm, tun",
	.seen = "containers that are given the host's /dev (docker run --privileged)",
	.wall = "/dev is made of six harmless nodes; filter, Landlock, no capability",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.alone = WORDS(NO_CAPABILITY_ALONE, "seccomp", "landlock"),
	.inside = inside,
};
