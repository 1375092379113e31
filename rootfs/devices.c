/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev: made outside, where mknod is allowed and the super block belongs to the initial user
 * namespace (else the kernel would not let the nodes be opened); attached inside, together with the
 * file systems that belong to the sandbox's own namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/unsafe.h"
#include "rootfs/detached.h"
#include "rootfs/mounts.h"

static const struct {
	const char *name;
	unsigned major, minor; /* Documentation/admin-guide/devices.txt */
} nodes[] = {
	{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
	{"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
};

static const struct {
	const char *name, *target;
} links[] = {
	{"ptmx", "pts/ptmx"},          {"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
};

static const char *const directories[] = {"pts", "shm", "mqueue"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int populate(int devfd, uint32_t owner, struct err *e)
{
	for (size_t i = 0; i < COUNT(nodes); i++)
		if (mknodat(devfd, nodes[i].name, S_IFCHR | 0666,
		            makedev(nodes[i].major, nodes[i].minor)) < 0 ||
		    fchownat(devfd, nodes[i].name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(e, "making the device node %s", nodes[i].name);
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlinkat(links[i].target, devfd, links[i].name) < 0)
			return err_sys(e, "making the link /dev/%s", links[i].name);
	for (size_t i = 0; i < COUNT(directories); i++)
		if (mkdirat(devfd, directories[i], 0755) < 0)
			return err_sys(e, "making the directory /dev/%s", directories[i]);
	return 0;
}

int devices_create(uint32_t owner, struct err *e)
{
	char id[16];
	const struct fs_option options[] = {
		{.key = "source", .text = "dev"}, {.key = "mode", .text = "0755"},
		{.key = "size", .text = "64k"},   {.key = "nr_inodes", .text = "64"},
		{.key = "uid", .text = id},       {.key = "gid", .text = id},
	};
	scoped_fd devfd = -1;
	mode_t mask;
	int result;

	snprintf(id, sizeof id, "%u", owner);
	devfd = detached_mount("tmpfs", options, COUNT(options),
	                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e);
	TRY(devfd);
	mask = umask(0);
	result = populate(devfd, owner, e);
	umask(mask);
	TRY(result);
	return take_fd(&devfd);
}

static int attach_at(int rootfd, const char *path, int mountfd, struct err *e)
{
	scoped_fd targetfd = -1;

	TRY(mountfd);
	targetfd = mount_target(rootfd, path, e);
	TRY(targetfd);
	return detached_attach(mountfd, targetfd, path, "its place", e);
}

static int pts_attach(int rootfd, struct err *e)
{
	/* 5 is tty in every distribution; terminals are 0620 so that mesg(1) and write(1) work */
	static const struct fs_option options[] = {
		{.key = "source", .text = "devpts"}, {.key = "newinstance"},
		{.key = "ptmxmode", .text = "0666"}, {.key = "mode", .text = "0620"},
		{.key = "gid", .text = "5"},         {.key = "max", .text = "256"},
	};
	/* "max" is the last */
	size_t count = COUNT(options) - (unsafe_without("pty limit") ? 1 : 0);
	scoped_fd fd = detached_mount("devpts", options, count,
	                              MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e);

	return attach_at(rootfd, "/dev/pts", fd, e);
}

static int mqueue_attach(int rootfd, struct err *e)
{
	static const struct fs_option options[] = {{.key = "source", .text = "mqueue"}};
	scoped_fd fd = detached_mount("mqueue", options, COUNT(options),
	                              MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);

	return attach_at(rootfd, "/dev/mqueue", fd, e);
}

int devices_attach(int rootfd, int devicesfd, uint64_t shm_bytes, struct err *e)
{
	const struct tmpfs_mount shm = {.path = "/dev/shm", .size_bytes = shm_bytes};

	TRY(attach_at(rootfd, "/dev", devicesfd, e));
	TRY(pts_attach(rootfd, e));
	TRY(tmpfs_attach(rootfd, &shm, e));
	/* the kernel shows the queues of its own namespace alone */
	return unsafe_without("ipc namespace") ? 0 : mqueue_attach(rootfd, e);
}
