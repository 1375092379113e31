/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside: targets, the root, and what is attached to it. Everything acts on the calling process's
 * own mount namespace. No state.
 */
#include "rootfs/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/unsafe.h"
#include "rootfs/detached.h"

static const uint64_t tmpfs_bytes_default = 64 << 20, page_bytes = 4096;

int mounts_make_private(struct err *e)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "making the sandbox's mounts private");
	return 0;
}

int root_attach(int rootfd, struct err *e)
{
	if (move_mount(rootfd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "attaching the sandbox's root");
	return 0;
}

/* ---- directories beneath a root ---- */

static int blame_target(const char *path, const char *component, struct err *e)
{
	switch (e->code) {
	case ELOOP:
		return err_set(
			e, ELOOP,
			"%s: the image has a symbolic link at \"%s\"; a mount target must be "
			"a directory all the way",
			path, component);
	case ENOTDIR:
		return err_set(e, ENOTDIR, "%s: \"%s\" is not a directory in the image", path,
		               component);
	default:
		return err_in(e, "%s", path);
	}
}

/* The permissions do not depend on the umask that the operator has. */
static int make_directory(int parentfd, const char *name, struct err *e)
{
	mode_t mask = umask(022);
	int result = mkdirat(parentfd, name, 0755);

	umask(mask);
	if (result < 0)
		return err_sys(e, "making the directory \"%s\"", name);
	return 0;
}

static int step_into(int parentfd, const char *name, struct err *e)
{
	uint64_t beneath = unsafe_without("mount targets") ? 0 : BENEATH_ROOT;
	int flags = O_PATH | O_DIRECTORY;
	int fd = file_open2(parentfd, name, flags, 0, beneath, e);

	if (fd != -ENOENT)
		return fd;
	TRY(make_directory(parentfd, name, e));
	return file_open2(parentfd, name, flags, 0, beneath, e);
}

/* Walks PATH and makes what it lacks. */
static int walk(int rootfd, const char *path, struct err *e)
{
	scoped_fd fd = fcntl(rootfd, F_DUPFD_CLOEXEC, 0);
	const char *rest = path + strspn(path, "/");
	char name[256];

	if (fd < 0)
		return err_sys(e, "%s", path);
	while (*rest) {
		size_t length = strcspn(rest, "/");
		const char *next = rest + length + strspn(rest + length, "/");
		int below;

		if (length >= sizeof name)
			return err_set(e, ENAMETOOLONG, "%.60s...: a name is too long", path);
		memcpy(name, rest, length);
		name[length] = '\0';
		if (strcmp(name, "..") == 0)
			return err_set(e, EINVAL, "%s: a mount target may not contain \"..\"",
			               path);
		below = step_into(fd, name, e);
		if (below < 0)
			return blame_target(path, name, e);
		close_fd(&fd);
		fd = below;
		rest = next;
	}
	return take_fd(&fd);
}

int mount_target(int rootfd, const char *path, struct err *e)
{
	int fd = file_open2(rootfd, path, O_PATH | O_DIRECTORY, 0, BENEATH_ROOT, e);

	/* Only what failed is walked, to make what is missing or to tell which name is to blame. */
	return fd >= 0 ? fd : walk(rootfd, path, e);
}

int mount_move(int fromfd, int rootfd, const char *path, struct err *e)
{
	scoped_fd mountfd = file_open2(fromfd, path, O_PATH | O_DIRECTORY, 0, BENEATH_ROOT, e);
	scoped_fd targetfd = -1;

	TRY(mountfd);
	if (unsafe_without(path))
		return 0;
	targetfd = mount_target(rootfd, path, e);
	TRY(targetfd);
	return detached_attach(mountfd, targetfd, path, "the new root", e);
}

/* ---- tmpfs ---- */

int tmpfs_attach(int rootfd, const struct tmpfs_mount *tmpfs, struct err *e)
{
	uint64_t bytes = tmpfs->size_bytes ? tmpfs->size_bytes : tmpfs_bytes_default;
	/* one for its root beside those that were asked for; at least one to use */
	uint64_t inodes = 1 + (tmpfs->inodes ? tmpfs->inodes : bytes / page_bytes + 1);
	unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	char size[24], nr_inodes[24], mode[8];
	const struct fs_option options[] = {
		{.key = "source", .text = "tmpfs"},
		{.key = "size", .text = size},
		{.key = "nr_inodes", .text = nr_inodes},
		{.key = "mode", .text = mode},
	};
	scoped_fd mountfd = -1, targetfd = mount_target(rootfd, tmpfs->path, e);

	TRY(targetfd);
	snprintf(size, sizeof size, "%" PRIu64, bytes);
	snprintf(nr_inodes, sizeof nr_inodes, "%" PRIu64, inodes);
	snprintf(mode, sizeof mode, "%o", (tmpfs->mode ? tmpfs->mode : 01777) & 07777);
	mountfd = detached_mount("tmpfs", options, sizeof options / sizeof options[0],
	                         attributes | (tmpfs->exec ? 0 : MOUNT_ATTR_NOEXEC), e);
	if (mountfd < 0)
		return err_in(e, "%s", tmpfs->path);
	return detached_attach(mountfd, targetfd, "a tmpfs", tmpfs->path, e);
}

/* ---- the root ---- */

int root_pivot(int rootfd, struct err *e)
{
	if (fchdir(rootfd) < 0)
		return err_sys(e, "entering the sandbox's root");
	/* The old root lands on top of the new one, from where it is taken off (pivot_root(2)). */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(e, "pivot_root");
	if (!unsafe_without("detached root") && umount2(".", MNT_DETACH) < 0)
		return err_sys(e, "detaching the host's root");
	if (chdir("/") < 0)
		return err_sys(e, "entering the sandbox's root");
	return 0;
}

int root_make_readonly(struct err *e)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};

	if (mount_setattr(AT_FDCWD, "/", 0, &attributes, sizeof attributes) < 0)
		return err_sys(e, "making the root read-only");
	return 0;
}
