/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay: read-only image layers below, the sandbox's disk above. It owns the mount until it
 *is handed over.
 *
 * Each layer is first copied as a detached mount of its own (read-only, idmapped where wanted), so
 * that its path, as far as the kernel can tell, is "/": nothing in the mount table inside names the
 * host. Kernels before 6.15 refuse detached mounts as layers. There, a short-lived child attaches
 * them in a mount namespace of its own and names them "0", "1", ...; the overlay holds on to the
 * layers, so the namespace may go with the child.
 *
 * Options:
 *	redirect_dir=on  renaming a directory of a layer works, rather than fail with EXDEV. It
 *trusts trusted.overlay.* attributes of all layers, which a guest cannot write (that takes
 *CAP_SYS_ADMIN in the initial user namespace), and which an import must drop. They can only lead to
 *other places within the layers. metacopy=off     no attribute ever says where a file's bytes are.
 *	index=off        the disk is used once, so nothing needs to be found again.
 *	xino=auto        inode numbers that do not collide between layers, where there are bits to
 *	                 spare.
 *	volatile         no sync of the guest's reaches the host's disk (kernel 5.10): it is thrown
 *	                 away.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/unsafe.h"
#include "rootfs/detached.h"
#include "rootfs/image.h"
#include "rootfs/mounts.h"
#include "rootfs/overlay_internal.h"

/* fsconfig takes strings of up to 255 bytes. */
enum { FS_TEXT_SIZE = 256, LOWERS_MAX = IMAGE_LAYERS_MAX + 1 };

/* What an overlay is made of; all descriptors are owned. */
struct overlay {
	int lowerfds[LOWERS_MAX]; /* the topmost first */
	int lowers_count;
	int diskfd;          /* borrowed; -1: read-only */
	int upperfd, workfd; /* as diskfd */
};

static void overlay_release(struct overlay *overlay)
{
	for (int i = 0; i < overlay->lowers_count; i++)
		close_fd(&overlay->lowerfds[i]);
	close_fd(&overlay->upperfd);
	close_fd(&overlay->workfd);
}

static int layer_clone(int layerfd, int usernsfd, struct err *e)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};
	scoped_fd fd = detached_clone(layerfd, "", e);

	TRY(fd);
	if (usernsfd >= 0) {
		attributes.attr_set |= MOUNT_ATTR_IDMAP;
		attributes.userns_fd = (unsigned)usernsfd;
	}
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0)
		return take_fd(&fd);
	err_sys(e, "write-protecting%s", usernsfd < 0 ? "" : " and idmapping");
	if (usernsfd >= 0 && (e->code == EINVAL || e->code == EOPNOTSUPP)) {
		e->code = EOPNOTSUPP; /* the kernel says EINVAL for a file system that cannot */
		return err_hint(e,
		                "the state directory's file system or this kernel lacks idmapped "
		                "mounts: use ext4, xfs or btrfs and Linux 5.19, or allow the user "
		                "namespace to be missing");
	}
	return -e->code;
}

/* overlayfs wants two layers at least where there is no upper: an empty one goes to the bottom. */
static int empty_layer(struct err *e)
{
	static const struct fs_option options[] = {
		{.key = "size", .text = "4096"},
		{.key = "nr_inodes", .text = "1"},
	};

	return detached_mount("tmpfs", options, 2, MOUNT_ATTR_RDONLY, e);
}

static int add_lower(struct overlay *overlay, int fd)
{
	if (fd >= 0)
		overlay->lowerfds[overlay->lowers_count++] = fd;
	return fd;
}

static int collect(struct overlay *overlay, const int layerfds[], int layers_count, int diskfd,
                   int usernsfd, struct err *e)
{
	if (layers_count < 1 || layers_count > IMAGE_LAYERS_MAX)
		return err_set(e, EINVAL, "an image of %d layers: from 1 to %d can be stacked",
		               layers_count, IMAGE_LAYERS_MAX);
	for (int i = layers_count - 1; i >= 0; i--)
		if (add_lower(overlay, layer_clone(layerfds[i], usernsfd, e)) < 0)
			return err_in(e, "layer %d of the image", i + 1);
	overlay->diskfd = diskfd;
	if (diskfd < 0)
		return add_lower(overlay, empty_layer(e));
	overlay->upperfd = file_open(diskfd, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(overlay->upperfd);
	overlay->workfd = file_open(diskfd, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, e);
	return overlay->workfd;
}

/* ---- the mount ---- */

typedef int name_layers(int fsfd, const struct overlay *overlay, struct err *e);

static int overlay_mount(name_layers *name, const struct overlay *overlay, struct err *e)
{
	static const struct fs_option options[] = {
		{.key = "source", .text = "overlay"},  {.key = "xino", .text = "auto"},
		{.key = "redirect_dir", .text = "on"}, {.key = "metacopy", .text = "off"},
		{.key = "index", .text = "off"},       {.key = "volatile"},
	};
	/* the last three are for an upper only */
	size_t count = sizeof options / sizeof options[0] - (overlay->diskfd < 0 ? 3 : 0);
	unsigned read_only = overlay->diskfd < 0 ? MOUNT_ATTR_RDONLY : 0;
	scoped_fd fsfd = fs_open("overlay", e);

	TRY(fsfd);
	TRY(name(fsfd, overlay, e));
	for (size_t i = 0; i < count; i++)
		TRY(fs_set(fsfd, "overlay", &options[i], e));
	return fs_create(fsfd, "overlay",
	                 (unsafe_without("nosuid") ? 0 : MOUNT_ATTR_NOSUID) |
	                         (unsafe_without("nodev") ? 0 : MOUNT_ATTR_NODEV) | read_only,
	                 e);
}

/* ---- layers by descriptor ---- */

static int by_descriptor(int fsfd, const struct overlay *overlay, struct err *e)
{
	const struct fs_option upper = {.key = "upperdir", .fd = overlay->upperfd};
	const struct fs_option work = {.key = "workdir", .fd = overlay->workfd};

	for (int i = 0; i < overlay->lowers_count; i++) {
		const struct fs_option lower = {.key = "lowerdir+", .fd = overlay->lowerfds[i]};

		TRY(fs_set(fsfd, "overlay", &lower, e));
	}
	if (overlay->diskfd < 0)
		return 0;
	TRY(fs_set(fsfd, "overlay", &upper, e));
	return fs_set(fsfd, "overlay", &work, e);
}

/* Only asked when an overlay failed: was it the kernel, or this very overlay? */
static bool kernel_takes_descriptors(void)
{
	__attribute__((cleanup(overlay_release))) struct overlay overlay = {
		.diskfd = -1,
		.upperfd = -1,
		.workfd = -1,
	};
	scoped_fd fd = -1;
	struct err e;

	if (add_lower(&overlay, empty_layer(&e)) < 0 || add_lower(&overlay, empty_layer(&e)) < 0)
		return true;
	fd = overlay_mount(by_descriptor, &overlay, &e);
	return fd >= 0;
}

/* ---- layers by name, in a child ---- */

static int by_name(int fsfd, const struct overlay *overlay, struct err *e)
{
	static const struct fs_option upper = {.key = "upperdir", .text = "disk/upper"};
	static const struct fs_option work = {.key = "workdir", .text = "disk/work"};
	char text[FS_TEXT_SIZE];
	const struct fs_option lower = {.key = "lowerdir", .text = text};
	size_t used = 0;

	for (int i = 0; i < overlay->lowers_count; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i ? ":" : "", i);
	TRY(fs_set(fsfd, "overlay", &lower, e));
	if (overlay->diskfd < 0)
		return 0;
	TRY(fs_set(fsfd, "overlay", &upper, e));
	return fs_set(fsfd, "overlay", &work, e);
}

static int stage_one(int stagefd, const char *name, int mountfd, struct err *e)
{
	scoped_fd targetfd = mount_target(stagefd, name, e);

	TRY(targetfd);
	return detached_attach(mountfd, targetfd, "a layer", name, e);
}

/* In the child: the layers become the directories of a tmpfs, which is the working directory. */
static int stage_and_mount(const struct overlay *overlay, struct err *e)
{
	static const struct fs_option options[] = {{.key = "mode", .text = "0700"}};
	scoped_fd stagefd = -1;
	char name[16];

	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(e, "making a mount namespace to stack the layers in");
	TRY(mounts_make_private(e));
	stagefd = detached_mount("tmpfs", options, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e);
	TRY(stagefd);
	TRY(root_attach(stagefd, e));
	if (fchdir(stagefd) < 0)
		return err_sys(e, "entering the place to stack the layers in");
	for (int i = 0; i < overlay->lowers_count; i++) {
		snprintf(name, sizeof name, "%d", i);
		TRY(stage_one(stagefd, name, overlay->lowerfds[i], e));
	}
	if (overlay->diskfd >= 0)
		TRY(stage_one(stagefd, "disk", overlay->diskfd, e));
	return overlay_mount(by_name, overlay, e);
}

struct staged {
	int mountfd; /* or -errno */
	struct err err;
};

/* The child shares the table of descriptors, so the mount that it makes is the parent's as well. */
static int overlay_mount_staged(const struct overlay *overlay, struct err *e)
{
	const struct clone_args args = {.flags = CLONE_FILES};
	struct staged staged = {.mountfd = -1};
	int fds[2], status;
	ssize_t got;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, "making a pipe");
	pid = process_clone3(&args);
	if (pid == 0) {
		staged.mountfd = stage_and_mount(overlay, &staged.err);
		_exit(write(fds[1], &staged, sizeof staged) == sizeof staged ? 0 : 1);
	}
	if (pid > 0)
		while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
			;
	close(fds[1]);
	got = pid > 0 ? read(fds[0], &staged, sizeof staged) : 0;
	close(fds[0]);
	if (pid < 0)
		return err_set(e, -pid, "starting a child to stack the layers: %s",
		               strerrordesc_np(-pid));
	if (got != sizeof staged)
		return err_set(e, ECHILD, "the child that stacks the layers was killed");
	if (staged.mountfd < 0)
		*e = staged.err;
	return staged.mountfd;
}

int overlay_create_by(enum overlay_naming naming, const int layerfds[], int layers_count,
                      int diskfd, int usernsfd, struct err *e)
{
	__attribute__((cleanup(overlay_release))) struct overlay overlay = {
		.diskfd = -1,
		.upperfd = -1,
		.workfd = -1,
	};
	int fd;

	TRY(collect(&overlay, layerfds, layers_count, diskfd, usernsfd, e));
	if (naming == OVERLAY_BY_NAME)
		return overlay_mount_staged(&overlay, e);
	fd = overlay_mount(by_descriptor, &overlay, e);
	if (fd < 0 && !kernel_takes_descriptors())
		return err_set(e, EOPNOTSUPP, "overlay: this kernel takes no detached layers");
	return fd;
}

int overlay_create(const int layerfds[], int layers_count, int diskfd, int usernsfd, struct err *e)
{
	int fd = overlay_create_by(OVERLAY_BY_DESCRIPTOR, layerfds, layers_count, diskfd, usernsfd,
	                           e);

	if (fd != -EOPNOTSUPP)
		return fd;
	return overlay_create_by(OVERLAY_BY_NAME, layerfds, layers_count, diskfd, usernsfd, e);
}
