/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's disk: the two backings behind one face, and what is left of the limit. It owns the
 * detached mount and the image's file; both die with their descriptors.
 */
#include "rootfs/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "rootfs/detached.h"
#include "rootfs/disk_image.h"
#include "rootfs/overlay_internal.h"

static const uint64_t bytes_min = 1 << 20, bytes_max = 8ULL << 40;
static const uint64_t inodes_min = 16, inodes_max = 1ULL << 30;

/*
 * Less than this is full: programs write in pieces, and one that does not fit is refused whole
 * (dd bs=1M stops with almost 1 MiB free, larger pieces with some 2 MiB). A small disk has a
 * smaller last piece.
 */
static const uint64_t full_below_bytes = 4 << 20, full_below_part = 8;

const char *disk_backing_name(enum disk_backing backing)
{
	static const char *const names[] = {
		[DISK_AUTO] = "auto",
		[DISK_IMAGE] = "image",
		[DISK_TMPFS] = "tmpfs",
	};

	return names[backing];
}

void disk_init(struct disk *disk)
{
	*disk = (struct disk){.mountfd = -1, .imagefd = -1};
}

void disk_release(struct disk *disk)
{
	if (!disk)
		return;
	close_fd(&disk->mountfd);
	close_fd(&disk->imagefd);
}

static int check_limits(const struct disk_limits *limits, struct err *e)
{
	if (limits->bytes < bytes_min || limits->bytes > bytes_max)
		return err_set(e, EINVAL, "disk limit: %" PRIu64 " bytes; from 1 MiB to 8 TiB",
		               limits->bytes);
	if (limits->inodes < inodes_min || limits->inodes > inodes_max)
		return err_set(e, EINVAL, "inodes limit: %" PRIu64 "; from %" PRIu64 " to %" PRIu64,
		               limits->inodes, inodes_min, inodes_max);
	return 0;
}

static int create_image(int statefd, int controlfd, const struct disk_limits *limits,
                        struct disk *disk, struct err *e)
{
	disk->backing = DISK_IMAGE;
	disk->imagefd = disk_image_create(statefd, controlfd, limits->bytes, limits->inodes,
	                                  &disk->mountfd, e);
	return disk->imagefd;
}

int disk_furnish(int mountfd, struct err *e)
{
	scoped_fd fd = -1;

	if (mkdirat(mountfd, "upper", 0755) < 0 || mkdirat(mountfd, "upper/workspace", 0755) < 0 ||
	    mkdirat(mountfd, "work", 0700) < 0)
		return err_sys(e, "making the directories of a sandbox's disk");
	if (fchmodat(mountfd, "upper", 0755, 0) < 0)
		return err_sys(e, "setting the mode of a sandbox's disk");
	fd = file_open(mountfd, "upper/workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(fd);
	if (fchmod(fd, 0755) < 0 || fsetxattr(fd, OVERLAY_OPAQUE, "y", 1, 0) < 0)
		return err_sys(e, "preparing /workspace on a sandbox's disk");
	return 0;
}

/* Attributes take a part of an inode since kernel 6.6: what is taken is measured. */
static int fit_inodes(const struct disk *disk, uint64_t wanted, struct err *e)
{
	struct statfs fs;
	char inodes[24];
	const struct fs_option option = {.key = "nr_inodes", .text = inodes};
	scoped_fd fsfd = -1;

	if (fstatfs(disk->mountfd, &fs) < 0)
		return err_sys(e, "measuring the sandbox's disk");
	if (fs.f_ffree == wanted)
		return 0;
	snprintf(inodes, sizeof inodes, "%" PRIu64, fs.f_files - fs.f_ffree + wanted);
	fsfd = fspick(disk->mountfd, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
	if (fsfd < 0)
		return err_sys(e, "tmpfs: fspick");
	TRY(fs_set(fsfd, "tmpfs", &option, e));
	if (fsconfig(fsfd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return err_sys(e, "tmpfs: giving it %s inodes", inodes);
	return 0;
}

static int create_tmpfs(const struct disk_limits *limits, struct disk *disk, struct err *e)
{
	char size[24], inodes[24];
	const struct fs_option options[] = {
		{.key = "source", .text = "disk"},
		{.key = "mode", .text = "0755"},
		{.key = "size", .text = size},
		{.key = "nr_inodes", .text = inodes},
	};

	snprintf(size, sizeof size, "%" PRIu64, limits->bytes);
	/* and its root, and the attribute of workspace/ */
	snprintf(inodes, sizeof inodes, "%" PRIu64, limits->inodes + 2 + DISK_DIRECTORIES);
	disk->backing = DISK_TMPFS;
	disk->mountfd = detached_mount("tmpfs", options, sizeof options / sizeof options[0],
	                               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e);
	TRY(disk->mountfd);
	TRY(disk_furnish(disk->mountfd, e));
	return fit_inodes(disk, limits->inodes - 1, e); /* workspace/ is one of them */
}

static int create_backing(int statefd, const struct disk_limits *limits, struct disk *disk,
                          struct err *e)
{
	scoped_fd controlfd = -1;

	if (limits->backing == DISK_TMPFS)
		return create_tmpfs(limits, disk, e);
	controlfd = loop_control_open(e);
	if (controlfd == -ENODEV && limits->backing == DISK_AUTO)
		return create_tmpfs(limits, disk, e);
	TRY(controlfd);
	return create_image(statefd, controlfd, limits, disk, e);
}

/* upper/ becomes the guest's /. */
static int own_upper(struct disk *disk, uint32_t owner, struct err *e)
{
	struct statfs fs;

	if (fchownat(disk->mountfd, "upper", owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "giving the sandbox's disk to host id %u", owner);
	if (fstatfs(disk->mountfd, &fs) < 0)
		return err_sys(e, "measuring the sandbox's disk");
	disk->used_bytes_empty = (fs.f_blocks - fs.f_bavail) * (uint64_t)fs.f_bsize;
	disk->used_inodes_empty = fs.f_files - fs.f_ffree - 1; /* workspace/ counts */
	return 0;
}

int disk_create(int statefd, const struct disk_limits *limits, uint32_t owner, struct disk *disk,
                struct err *e)
{
	__attribute__((cleanup(disk_release))) struct disk made;

	disk_init(&made);
	TRY(check_limits(limits, e));
	TRY(create_backing(statefd, limits, &made, e));
	TRY(own_upper(&made, owner, e));
	*disk = made;
	disk_init(&made);
	return 0;
}

static uint64_t beyond(uint64_t used, uint64_t base)
{
	return used > base ? used - base : 0;
}

int disk_measure(const struct disk *disk, struct disk_usage *usage, struct err *e)
{
	struct statfs fs;
	uint64_t block, full_below;

	if (fstatfs(disk->mountfd, &fs) < 0)
		return err_sys(e, "measuring the sandbox's disk");
	block = (uint64_t)fs.f_bsize;
	full_below = fs.f_blocks * block / full_below_part;
	if (full_below > full_below_bytes)
		full_below = full_below_bytes;
	*usage = (struct disk_usage){
		.bytes = beyond((fs.f_blocks - fs.f_bavail) * block, disk->used_bytes_empty),
		.bytes_limit = beyond(fs.f_blocks * block, disk->used_bytes_empty),
		.inodes = beyond(fs.f_files - fs.f_ffree, disk->used_inodes_empty),
		.inodes_limit = beyond(fs.f_files, disk->used_inodes_empty),
		.full = fs.f_bavail * block < full_below || fs.f_ffree == 0,
	};
	return 0;
}

/*
 * overlayfs refuses an upper directory that a volatile overlay wrote, for it cannot know that all
 * of it reached the disk. After syncfs it has, so the mark, which is in overlayfs's own work/work,
 * goes and the kept disk can be used again.
 */
static int settle(const struct disk *disk, struct err *e)
{
	scoped_fd workfd = file_open(disk->mountfd, "work", O_RDONLY | O_DIRECTORY, 0, e);

	TRY(workfd);
	TRY(tree_remove(workfd, "work", e));
	if (syncfs(workfd) < 0 || fsync(disk->imagefd) < 0)
		return err_sys(e, "writing out the kept disk");
	return 0;
}

int disk_keep(const struct disk *disk, int statefd, const char *name, struct err *e)
{
	char file[256], self[40];
	scoped_fd keptfd = -1;

	if (disk->imagefd < 0)
		return err_set(e, EINVAL, "a disk in memory cannot be kept; use the image backing");
	if (!*name || strchr(name, '/') || name[0] == '.')
		return err_set(e, EINVAL, "\"%s\" cannot name a kept disk", name);
	if (mkdirat(statefd, "kept", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "making the state directory's kept/");
	keptfd = file_open(statefd, "kept", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(keptfd);
	if (snprintf(file, sizeof file, "%s.ext4", name) >= (int)sizeof file)
		return err_set(e, ENAMETOOLONG, "\"%.40s...\" is too long for a kept disk", name);
	TRY(settle(disk, e));
	snprintf(self, sizeof self, "/proc/self/fd/%d", disk->imagefd);
	if (linkat(AT_FDCWD, self, keptfd, file, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(e, "keeping the disk as kept/%s", file);
	return 0;
}

int disk_check(const struct disk *disk, int statefd, struct err *e)
{
	struct statfs fs, host;

	if (disk->backing != DISK_IMAGE)
		return 0;
	if (fstatfs(disk->mountfd, &fs) < 0 || fstatfs(statefd, &host) < 0)
		return err_sys(e, "measuring the sandbox's disk");
	if (!(fs.f_flags & ST_RDONLY)) {
		uint64_t host_free = (uint64_t)host.f_bavail * (uint64_t)host.f_bsize;

		if (host_free >= fs.f_blocks * (uint64_t)fs.f_bsize || syncfs(disk->mountfd) == 0)
			return 0;
	}
	return err_set(e, EIO,
	               "the state directory's file system ran full under the sandbox, and what the "
	               "command wrote is lost; free some space, or lower the disk limits");
}

int disk_own_workspace(const struct disk *disk, uint32_t uid, uint32_t gid, struct err *e)
{
	if (fchownat(disk->mountfd, "upper/workspace", uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "giving /workspace to host id %u", uid);
	return 0;
}
