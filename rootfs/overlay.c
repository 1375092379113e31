/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay: read-only image layers below, the sandbox's disk above. It owns the mount until it
 *is handed over.
 *
 * Each layer is first copied as a detached mount of its own (read-only, idmapped where wanted), so
 * that its path, as far as the kernel can tell, is "/": nothing in the mount table inside names the
 * host. Options:
 *	redirect_dir=on  renaming a directory of a layer works, rather than fail with EXDEV. It
 *trusts trusted.overlay.* attributes of all layers, which a guest cannot write (that takes
 *CAP_SYS_ADMIN in the initial user namespace), and which an import must drop. They can only lead to
 *other places within the layers. metacopy=off     no attribute ever says where a file's bytes are.
 *	index=off        the disk is used once, so nothing needs to be found again.
 *	xino=auto        inode numbers that do not collide between layers, where there are bits to
 *spare. volatile         no sync of the guest's reaches the host's disk (kernel 5.10): it is thrown
 *away.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
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
	int upperfd, workfd; /* -1: read-only */
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
	if (usernsfd >= 0 && (e->code == EINVAL || e->code == EOPNOTSUPP))
		return err_hint(e,
		                "the state directory's file system or this kernel lacks idmapped "
		                "mounts: use ext4, xfs or btrfs and Linux 5.19, or allow the user "
		                "namespace to be missing");
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
	if (diskfd < 0)
		return add_lower(overlay, empty_layer(e));
	overlay->upperfd = file_open(diskfd, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(overlay->upperfd);
	overlay->workfd = file_open(diskfd, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, e);
	return overlay->workfd;
}

/* ---- by descriptor ---- */

static int name_by_descriptor(int fsfd, const struct overlay *overlay, struct err *e)
{
	const struct fs_option upper = {.key = "upperdir", .fd = overlay->upperfd};
	const struct fs_option work = {.key = "workdir", .fd = overlay->workfd};

	for (int i = 0; i < overlay->lowers_count; i++) {
		const struct fs_option lower = {.key = "lowerdir+", .fd = overlay->lowerfds[i]};

		if (fs_set(fsfd, "overlay", &lower, e) == 0)
			continue;
		/* EBADF: a kernel that knows the option but no O_PATH descriptor for it */
		if (i == 0 && (e->code == EINVAL || e->code == EBADF))
			e->code = EOPNOTSUPP;
		return -e->code;
	}
	if (overlay->upperfd < 0)
		return 0;
	TRY(fs_set(fsfd, "overlay", &upper, e));
	return fs_set(fsfd, "overlay", &work, e);
}

/* ---- by number: the working directory is /proc/self/fd for as long as the kernel reads names ----
 */

static int set_number(int fsfd, const char *key, int fd, struct err *e)
{
	char text[16];
	const struct fs_option option = {.key = key, .text = text};

	snprintf(text, sizeof text, "%d", fd);
	return fs_set(fsfd, "overlay", &option, e);
}

/* Low descriptor numbers: with up to three digits, 65 of them just do not fit in 255 bytes. */
static int name_by_number(int fsfd, const struct overlay *overlay, struct err *e)
{
	char text[FS_TEXT_SIZE];
	const struct fs_option option = {.key = "lowerdir", .text = text};
	size_t used = 0;

	for (int i = 0; i < overlay->lowers_count; i++) {
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i ? ":" : "",
		                         overlay->lowerfds[i]);
		if (used >= sizeof text)
			return err_set(e, E2BIG,
			               "%d layers are more than this kernel takes with so many "
			               "descriptors open; squash the image, or use Linux 6.13",
			               overlay->lowers_count);
	}
	TRY(fs_set(fsfd, "overlay", &option, e));
	if (overlay->upperfd < 0)
		return 0;
	TRY(set_number(fsfd, "upperdir", overlay->upperfd, e));
	return set_number(fsfd, "workdir", overlay->workfd, e);
}

/* ---- the mount ---- */

static int overlay_mount(enum overlay_naming naming, const struct overlay *overlay, struct err *e)
{
	static const struct fs_option options[] = {
		{.key = "source", .text = "overlay"},  {.key = "xino", .text = "auto"},
		{.key = "redirect_dir", .text = "on"}, {.key = "metacopy", .text = "off"},
		{.key = "index", .text = "off"},       {.key = "volatile"},
	};
	/* the last three are for an upper only */
	size_t count = sizeof options / sizeof options[0] - (overlay->upperfd < 0 ? 3 : 0);
	unsigned read_only = overlay->upperfd < 0 ? MOUNT_ATTR_RDONLY : 0;
	scoped_fd fsfd = fs_open("overlay", e);

	TRY(fsfd);
	if (naming == OVERLAY_BY_DESCRIPTOR)
		TRY(name_by_descriptor(fsfd, overlay, e));
	else
		TRY(name_by_number(fsfd, overlay, e));
	for (size_t i = 0; i < count; i++)
		TRY(fs_set(fsfd, "overlay", &options[i], e));
	return fs_create(fsfd, "overlay", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | read_only, e);
}

static int overlay_mount_by_number(const struct overlay *overlay, struct err *e)
{
	scoped_fd cwdfd = file_open(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0, e);
	scoped_fd mountfd = -1;

	TRY(cwdfd);
	if (chdir("/proc/self/fd") < 0)
		return err_sys(e, "entering /proc/self/fd");
	mountfd = overlay_mount(OVERLAY_BY_NUMBER, overlay, e);
	if (fchdir(cwdfd) < 0 && mountfd >= 0)
		return err_sys(e, "going back to the working directory");
	return take_fd(&mountfd);
}

int overlay_create_by(enum overlay_naming naming, const int layerfds[], int layers_count,
                      int diskfd, int usernsfd, struct err *e)
{
	__attribute__((cleanup(overlay_release))) struct overlay overlay = {
		.upperfd = -1,
		.workfd = -1,
	};

	TRY(collect(&overlay, layerfds, layers_count, diskfd, usernsfd, e));
	if (naming == OVERLAY_BY_NUMBER)
		return overlay_mount_by_number(&overlay, e);
	return overlay_mount(naming, &overlay, e);
}

int overlay_create(const int layerfds[], int layers_count, int diskfd, int usernsfd, struct err *e)
{
	int fd = overlay_create_by(OVERLAY_BY_DESCRIPTOR, layerfds, layers_count, diskfd, usernsfd,
	                           e);

	if (fd != -EOPNOTSUPP)
		return fd;
	return overlay_create_by(OVERLAY_BY_NUMBER, layerfds, layers_count, diskfd, usernsfd, e);
}
