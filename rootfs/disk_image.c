/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ext4 images: templates, copies of them, and loop devices.
 *
 * STATE/disks/ext4-BYTES-INODES.img is the template for a limit: what mkfs.ext4 writes (some 150
 * KiB) in a sparse file, with upper/, upper/workspace/ and work/ in it. It is made in a file without
 * a name and linked when it is whole, so that a process killed on the way leaves nothing, and a
 * template that does not look like ours is made anew. Each sandbox gets a copy of its data extents.
 *
 * The file system: no journal and no barriers, because it is thrown away, never recovered.
 * uninit_bg (descriptors with a checksum) lets the inode tables stay holes in the file, and
 * noinit_itable keeps the kernel from writing them out later. There are no copies of the super
 * block, for they would be extents to copy for nothing. The image is larger than BYTES by its own
 * metadata and by the blocks that ext4 sets aside for extents (2 %, at most 16 MiB), so that BYTES
 * is what an empty one has to give, to the block. mkfs.ext4 rounds the inodes up to whole blocks of
 * each group's table; the surplus is used up, so that INODES is exact as well.
 */
#include "rootfs/disk_image.h"
#include "rootfs/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "rootfs/detached.h"

enum {
	BLOCK_BYTES = 4096,
	INODE_BYTES = 256,
	GROUP_BLOCKS = 8 * BLOCK_BYTES, /* what one block bitmap covers */
	GROUP_INODES_MAX = 8 * BLOCK_BYTES - 64,
	GROUP_METADATA_BLOCKS = 3,               /* two bitmaps and a share of the descriptors */
	EXTENT_RESERVE_MAX = 4096,               /* blocks; ext4 takes 1/50 of all, at most this */
	RESERVED_INODES = 10 + DISK_DIRECTORIES, /* the first are ext4's own */
	SIZING_TRIES = 6,
	SIZING_SLACK_BLOCKS = 8,
	LOOP_TRIES = 64,  /* numbers from the first free one on */
	LOOP_ROUNDS = 64, /* a millisecond, two, three, ... in between */
	LOOP_PATH_SIZE = 32,
	NODE_WAIT_MS = 200, /* until a device that somebody adds has its node */
};

static const char features[] = "none,ext_attr,dir_index,filetype,extent,flex_bg,sparse_super2,"
			       "large_file,huge_file,uninit_bg,dir_nlink,extra_isize";

/* Where the volume label says that a file is a template of this layout. */
static const char template_label[] = "agentdock-4";

/* ---- loop devices ---- */

int loop_control_open(struct err *e)
{
	int fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == EMFILE || errno == ENFILE || errno == EINTR)
		return err_sys(e, "opening /dev/loop-control");
	return err_set(
		e, ENODEV,
		"/dev/loop-control: %s; this host has no loop devices for the sandbox's disk: "
		"modprobe loop, or use a disk in memory (--disk-backing tmpfs)",
		strerrordesc_np(errno));
}

/* It may be there without a node: nobody has asked for it, or somebody who asks now has not got it yet. */
static int loop_open(int controlfd, int number, char *path, size_t size, struct err *e)
{
	int fd;

	snprintf(path, size, "/dev/loop%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	for (int ms = 0; fd < 0 && errno == ENOENT && ms < NODE_WAIT_MS; ms++) {
		if (ioctl(controlfd, LOOP_CTL_ADD, number) < 0 && errno == EEXIST)
			poll(NULL, 0, 1);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (fd >= 0)
		return fd;
	err_sys(e, "opening %s", path);
	if (e->code != ENOENT)
		return -e->code;
	return err_hint(e, "the kernel has the device but /dev lacks its node: mount devtmpfs on "
	                   "/dev, or mknod the node");
}

/* The device may be taken, or on its way out, when we get to it. */
static bool loop_is_taken(int code)
{
	return code == EBUSY || code == ENXIO || code == EAGAIN || code == EINTR;
}

static int loop_try(int controlfd, int number, int imagefd, char *path, size_t size, struct err *e)
{
	const struct loop_config config = {
		.fd = (uint32_t)imagefd,
		.block_size = BLOCK_BYTES,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	scoped_fd loopfd = loop_open(controlfd, number, path, size, e);

	TRY(loopfd);
	if (flock(loopfd, LOCK_EX | LOCK_NB) < 0 || ioctl(loopfd, LOOP_CONFIGURE, &config) < 0)
		return err_sys(e, "giving %s its file", path);
	return take_fd(&loopfd);
}

/*
 * The kernel tells every caller the same free number until somebody has made it his. Who finds a
 * device locked (systemd.io, BLOCK_DEVICE_LOCKING) or taken goes on to the next number.
 */
static int loop_attach(int controlfd, int imagefd, char *path, size_t size, struct err *e)
{
	for (int round = 0; round < LOOP_ROUNDS; round++) {
		int first = ioctl(controlfd, LOOP_CTL_GET_FREE);

		if (first < 0)
			return err_sys(e, "asking /dev/loop-control for a free loop device");
		for (int i = 0; i < LOOP_TRIES; i++) {
			int fd = loop_try(controlfd, first + i, imagefd, path, size, e);

			if (fd >= 0 || !loop_is_taken(e->code))
				return fd;
		}
		poll(NULL, 0, round + 1);
	}
	return err_hint(e, "%d loop devices in a row were taken by others", LOOP_TRIES);
}

/* The mount keeps the device from here on; it clears itself after the last of both. */
static int loop_mount(const char *path, struct err *e)
{
	const struct fs_option options[] = {
		{.key = "source", .text = path},
		{.key = "noinit_itable"},
		{.key = "nobarrier"},
		{.key = "noauto_da_alloc"},
		{.key = "errors", .text = "remount-ro"},
	};

	return detached_mount("ext4", options, sizeof options / sizeof options[0],
	                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME, e);
}

/* ---- templates ---- */

static int nameless_file(int disksfd, struct err *e)
{
	int fd = openat(disksfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	err_sys(e, "making a file without a name in the state directory's disks/");
	if (e->code == EOPNOTSUPP || e->code == EISDIR)
		return err_hint(e,
		                "its file system lacks O_TMPFILE: use ext4, xfs, btrfs or tmpfs");
	return -e->code;
}

/* Groups are made smaller than usual where the inodes would not fit in the bitmaps of so few. */
static uint64_t group_blocks(uint64_t blocks, uint64_t inodes)
{
	uint64_t groups = (inodes + GROUP_INODES_MAX - 1) / GROUP_INODES_MAX;
	uint64_t wanted = (blocks / groups + 7) / 8 * 8;

	return groups == 1 || wanted > GROUP_BLOCKS ? GROUP_BLOCKS : wanted;
}

static uint64_t first_estimate(uint64_t data_blocks, uint64_t inodes)
{
	uint64_t blocks = data_blocks + inodes * INODE_BYTES / BLOCK_BYTES + 64;
	uint64_t reserve = blocks / 50;

	blocks += reserve < EXTENT_RESERVE_MAX ? reserve : EXTENT_RESERVE_MAX;
	return blocks + (blocks / group_blocks(blocks, inodes) + 1) * GROUP_METADATA_BLOCKS;
}

/* The image is mkfs.ext4's standard input, so that it needs no name in any file system. */
static int make_filesystem(int imagefd, uint64_t blocks, uint64_t inodes, struct err *e)
{
	static const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
	                                  "MKE2FS_CONFIG=/dev/null", NULL};
	char inodes_text[24], group_text[24], blocks_text[24];
	const char *const argv[] = {"mkfs.ext4",
	                            "-q",
	                            "-F",
	                            "-t",
	                            "ext4",
	                            "-b",
	                            "4096",
	                            "-I",
	                            "256",
	                            "-m",
	                            "0",
	                            "-N",
	                            inodes_text,
	                            "-g",
	                            group_text,
	                            "-L",
	                            template_label,
	                            "-O",
	                            features,
	                            "-E",
	                            "lazy_itable_init=1,nodiscard,root_owner=0:0,num_backup_sb=0",
	                            "/proc/self/fd/0",
	                            blocks_text,
	                            NULL};

	snprintf(inodes_text, sizeof inodes_text, "%" PRIu64, inodes);
	snprintf(group_text, sizeof group_text, "%" PRIu64, group_blocks(blocks, inodes));
	snprintf(blocks_text, sizeof blocks_text, "%" PRIu64, blocks);
	if (ftruncate(imagefd, 0) < 0 || ftruncate(imagefd, (off_t)(blocks * BLOCK_BYTES)) < 0)
		return err_sys(e, "sizing a disk template of %" PRIu64 " bytes",
		               blocks * BLOCK_BYTES);
	if (process_run(argv, env, imagefd, -1, e) < 0) {
		err_in(e, "making a disk template");
		return err_hint(e, "mkfs.ext4 is in Debian's package e2fsprogs");
	}
	return 0;
}

/* mkfs.ext4 rounds inodes up in each block group; a limit is what was asked for, so the rest is
 * used up here, by empty files that nobody sees. */
static int use_up_inodes(int mountfd, uint64_t allowed, struct err *e)
{
	scoped_fd directoryfd = -1;
	struct statfs fs;

	if (fstatfs(mountfd, &fs) < 0)
		return err_sys(e, "measuring a disk template");
	if (fs.f_ffree <= allowed)
		return 0;
	if (mkdirat(mountfd, "surplus", 0700) < 0)
		return err_sys(e, "making surplus/ in a disk template");
	directoryfd = file_open(mountfd, "surplus", O_RDONLY | O_DIRECTORY, 0, e);
	TRY(directoryfd);
	for (uint64_t left = fs.f_ffree - 1; left > allowed; left--) {
		char name[24];

		snprintf(name, sizeof name, "%" PRIu64, left);
		if (mknodat(directoryfd, name, S_IFREG, 0) < 0)
			return err_sys(e, "using up an inode of a disk template");
	}
	return 0;
}

/* Mounts the new file system, makes its two directories, and tells the blocks it has to give. */
static int furnish_template(int controlfd, int imagefd, uint64_t inodes, uint64_t *available,
                            struct err *e)
{
	char path[LOOP_PATH_SIZE];
	scoped_fd loopfd = loop_attach(controlfd, imagefd, path, sizeof path, e);
	scoped_fd mountfd = loopfd < 0 ? loopfd : loop_mount(path, e);
	struct statfs fs;

	TRY(mountfd);
	if (unlinkat(mountfd, "lost+found", AT_REMOVEDIR) < 0)
		return err_sys(e, "removing lost+found from a disk template");
	TRY(disk_furnish(mountfd, e));
	TRY(use_up_inodes(mountfd, inodes - 1, e)); /* workspace/ is one of them */
	if (fstatfs(mountfd, &fs) < 0)
		return err_sys(e, "measuring a disk template");
	*available = fs.f_bavail;
	return 0;
}

/* How much metadata there is, only mkfs.ext4 and the kernel know: try, measure, correct. */
static int build_template(int disksfd, int controlfd, uint64_t bytes, uint64_t inodes,
                          struct err *e)
{
	scoped_fd imagefd = nameless_file(disksfd, e);
	uint64_t wanted = bytes / BLOCK_BYTES, inodes_all = inodes + RESERVED_INODES;
	uint64_t blocks = first_estimate(wanted, inodes_all), available = 0;

	TRY(imagefd);
	for (int i = 0; i < SIZING_TRIES; i++) {
		TRY(make_filesystem(imagefd, blocks, inodes_all, e));
		TRY(furnish_template(controlfd, imagefd, inodes, &available, e));
		if (available <= wanted && wanted - available <= SIZING_SLACK_BLOCKS)
			return take_fd(&imagefd);
		blocks = blocks + wanted - available;
	}
	/* A size at which one more group costs more than it brings: a little less is a limit, too.
	 */
	if (available <= wanted && wanted - available <= wanted / 100)
		return take_fd(&imagefd);
	return err_set(e, EINVAL,
	               "a disk of %" PRIu64 " bytes and %" PRIu64 " inodes cannot be made with "
	               "ext4; choose another size or fewer inodes",
	               bytes, inodes);
}

/* Gives the finished template its name; a concurrent maker may have been first, which is as good.
 */
static int publish_template(int disksfd, int imagefd, const char *name, struct err *e)
{
	char self[40];

	snprintf(self, sizeof self, "/proc/self/fd/%d", imagefd);
	if (linkat(AT_FDCWD, self, disksfd, name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return err_sys(e, "naming the disk template %s", name);
	return 0;
}

/* Fields of ext4's super block: Documentation/filesystems/ext4/super.rst. */
static bool template_is_ours(int fd)
{
	struct {
		uint32_t inodes, blocks_low;
		unsigned char skipped_1[48];
		uint16_t magic;
		unsigned char skipped_2[62];
		char label[16];
	} super;
	struct stat st;

	_Static_assert(offsetof(__typeof__(super), magic) == 0x38, "s_magic");
	_Static_assert(offsetof(__typeof__(super), label) == 0x78, "s_volume_name");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return false;
	if (pread(fd, &super, sizeof super, 1024) != sizeof super || super.magic != 0xEF53)
		return false;
	return (uint64_t)super.blocks_low * BLOCK_BYTES == (uint64_t)st.st_size &&
	       strncmp(super.label, template_label, sizeof super.label) == 0;
}

static int template_open(int disksfd, int controlfd, uint64_t bytes, uint64_t inodes, struct err *e)
{
	char name[80];
	scoped_fd fd = -1;
	int made;

	snprintf(name, sizeof name, "ext4-%" PRIu64 "-%" PRIu64 ".img", bytes, inodes);
	fd = openat(disksfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && template_is_ours(fd))
		return take_fd(&fd);
	if (fd < 0 && errno != ENOENT)
		return err_sys(e, "opening the disk template %s", name);
	if (fd >= 0 && unlinkat(disksfd, name, 0) < 0 && errno != ENOENT)
		return err_sys(e, "removing the disk template %s, which is not whole", name);
	made = build_template(disksfd, controlfd, bytes, inodes, e);
	TRY(made);
	close_fd(&fd);
	fd = made;
	TRY(publish_template(disksfd, fd, name, e));
	return take_fd(&fd);
}

/* ---- copies ---- */

static int copy_extent(int from, int to, off_t start, off_t end, struct err *e)
{
	char buffer[16 * 1024];

	if (lseek(to, start, SEEK_SET) < 0)
		return err_sys(e, "writing the sandbox's disk");
	while (start < end) {
		size_t want = sizeof buffer;
		ssize_t got;

		if ((off_t)want > end - start)
			want = (size_t)(end - start);
		got = pread(from, buffer, want, start);
		if (got < 0)
			return err_sys(e, "reading the disk template");
		if (got == 0)
			return err_set(e, EIO, "the disk template shrank while it was read");
		TRY(fd_write_all(to, buffer, (size_t)got, e));
		start += got;
	}
	return 0;
}

static int copy_extents(int from, int to, struct err *e)
{
	off_t start = 0;

	while ((start = lseek(from, start, SEEK_DATA)) >= 0) {
		off_t end = lseek(from, start, SEEK_HOLE);

		if (end < 0)
			return err_sys(e, "reading the disk template's extents");
		TRY(copy_extent(from, to, start, end, e));
		start = end;
	}
	return errno == ENXIO ? 0 : err_sys(e, "reading the disk template's extents");
}

/* The host must be able to give all that the limit promises, before a byte of it is written. */
static int check_free_space(int disksfd, uint64_t bytes, struct err *e)
{
	struct statfs fs;
	char have[24], want[24];
	uint64_t free_bytes;

	if (fstatfs(disksfd, &fs) < 0)
		return err_sys(e, "measuring the state directory's free space");
	free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	if (free_bytes >= bytes)
		return 0;
	return err_set(
		e, ENOSPC,
		"the sandbox's disk may grow to %s, but the state directory has %s left; "
		"free some space, move the state directory, or lower the limit of bytes or of "
		"inodes",
		format_bytes(bytes, want, sizeof want),
		format_bytes(free_bytes, have, sizeof have));
}

/*
 * The file is attached while it is a hole as a whole, for the kernel writes out what is dirty in it
 * then, and the template is copied to the device: its blocks are in the cache where the mount looks
 * for them, instead of being read by the device's worker while the mount waits.
 */
int disk_image_create(int statefd, int controlfd, uint64_t bytes, uint64_t inodes, int *mountfd,
                      struct err *e)
{
	char path[LOOP_PATH_SIZE];
	scoped_fd disksfd = -1, templatefd = -1, imagefd = -1;
	struct stat st;

	if (mkdirat(statefd, "disks", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "making the state directory's disks/");
	disksfd = file_open(statefd, "disks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(disksfd);
	TRY(check_free_space(disksfd, bytes, e));
	templatefd = template_open(disksfd, controlfd, bytes, inodes, e);
	TRY(templatefd);
	if (fstat(templatefd, &st) < 0)
		return err_sys(e, "measuring the disk template");
	TRY(check_free_space(disksfd, (uint64_t)st.st_size, e));
	imagefd = nameless_file(disksfd, e);
	TRY(imagefd);
	if (ftruncate(imagefd, st.st_size) < 0)
		return err_sys(e, "sizing the sandbox's disk");
	scoped_fd loopfd = loop_attach(controlfd, imagefd, path, sizeof path, e);
	TRY(loopfd);
	TRY(copy_extents(templatefd, loopfd, e));
	int mounted = loop_mount(path, e);
	TRY(mounted);
	*mountfd = mounted;
	return take_fd(&imagefd);
}

int disk_templates_remove(int statefd, int *removed, struct err *e)
{
	int disksfd = openat(statefd, "disks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_dir dir = disksfd < 0 ? NULL : fdopendir(disksfd);
	struct dirent *entry;
	int count = 0;

	if (!dir && errno != ENOENT)
		return err_sys(e, "the state directory's disks/");
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "ext4-", 5) != 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno != ENOENT)
			return err_sys(e, "removing the disk template %s", entry->d_name);
		count++;
	}
	*removed = count;
	return 0;
}
