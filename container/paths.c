/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.maskedPaths and linux.readonlyPaths, after the pivot. By descriptors: what was found is what is
 * covered. A path that is not there is skipped; one of /proc or /sys is looked for in the procfs or
 * sysfs that is mounted there, or it is an error: a name of the root can be exchanged by whoever shares
 * its files.
 *
 * The null device that covers files is the host's, copied before the pivot: whatever the image or its
 * other users have for /dev/null, it is not that (CVE-2025-31133).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "container/container.h"
#include "container/mounts.h"
#include "rootfs/detached.h"

int mask_prepare(struct inside *in, struct err *e)
{
	scoped_fd fd = source_copy(in->container, "/dev/null", false, e);
	/* the host's own: nothing of it may be changed by way of a cover */
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
	                                            MOUNT_ATTR_NOEXEC,
	                                .propagation = MS_PRIVATE};
	struct stat st;

	TRY(fd);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "asking what /dev/null is");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		return err_set(e, EINVAL,
		               "the host's /dev/null is not the null device (1:3); "
		               "linux.maskedPaths needs it");
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
		return err_sys(e, "setting the propagation of /dev/null");
	in->container->mounts->nullfd = take_fd(&fd);
	return 0;
}

/* Where the paths are looked for. */
static const struct {
	const char *path, *type, *name;
	long magic;
} kernels[] = {
	{"/proc", "proc", "procfs", PROC_SUPER_MAGIC},
	{"/sys", "sysfs", "sysfs", SYSFS_MAGIC},
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

struct places {
	int rootfd;
	int kernelfds[KERNELS]; /* -1: no such file system is there, and none was asked for */
};

static void close_places(struct places *places)
{
	for (int i = 0; i < KERNELS; i++)
		close_fd(&places->kernelfds[i]);
}

/* What comes behind PATH, which is DIRECTORY or below it, or NULL. */
static const char *below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	path += strspn(path, "/");
	if (strncmp(path, directory + 1, length - 1) != 0)
		return NULL;
	path += length - 1;
	return *path == '/' || *path == '\0' ? path + strspn(path, "/") : NULL;
}

/* The last one that is mounted there is the one that is seen. */
static bool asks_for(const struct oci_config *config, int kernel)
{
	bool asks = false;

	for (size_t i = 0; i < config->mounts.count; i++) {
		const struct oci_mount *mount = &config->mounts.items[i];
		const char *rest = below(mount->destination, kernels[kernel].path);

		if (rest && !*rest)
			asks = mount->type && strcmp(mount->type, kernels[kernel].type) == 0;
	}
	return asks;
}

static int open_kernel(const struct inside *in, int kernel, int *kernelfd, struct err *e)
{
	scoped_fd fd = target_find(in->rootfd, kernels[kernel].path, O_DIRECTORY,
	                           RESOLVE_NO_SYMLINKS, e);
	struct statfs fs;

	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == kernels[kernel].magic) {
		*kernelfd = take_fd(&fd);
		return 0;
	}
	if (!asks_for(in->config, kernel))
		return 0;
	return err_set(e, EXDEV,
	               "%s is not the %s that was mounted there; does somebody exchange it?",
	               kernels[kernel].path, kernels[kernel].name);
}

static int open_places(const struct inside *in, struct places *places, struct err *e)
{
	*places = (struct places){.rootfd = in->rootfd, .kernelfds = {-1, -1}};
	for (int i = 0; i < KERNELS; i++) {
		if (open_kernel(in, i, &places->kernelfds[i], e) < 0) {
			close_places(places);
			return -e->code;
		}
	}
	return 0;
}

/* -ENOENT: PATH is not there. */
static int find(const struct places *places, const char *path, struct err *e)
{
	const char *rest = NULL;
	int kernel = 0, fd;

	for (; kernel < KERNELS; kernel++)
		if (places->kernelfds[kernel] >= 0 && (rest = below(path, kernels[kernel].path)))
			break;
	if (rest)
		fd = file_open2(places->kernelfds[kernel], *rest ? rest : ".", O_PATH, 0,
		                RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, e);
	else
		fd = target_find(places->rootfd, path, 0, 0, e);
	return fd == -ENOTDIR ? -ENOENT : fd;
}

/* A mount over the root hides nothing from those who have it as theirs. */
static int refuse_root(const struct places *places, int fd, const char *way_out, struct err *e)
{
	int is_root = target_is_root(fd, places->rootfd, e);

	TRY(is_root);
	return is_root ? err_set(e, EINVAL, "is the root of the container; %s", way_out) : 0;
}

/* ---- masking ---- */

/* A cover is attached once, and copied from there: copies of what is detached need Linux 6.15. */
struct cover {
	int fd; /* attached, or about to be */
	bool attached;
};

static int cover_with(struct cover *cover, int targetfd, const char *path, struct err *e)
{
	scoped_fd copyfd = -1;

	if (!cover->attached) {
		TRY(detached_attach(cover->fd, targetfd, "a cover", path, e));
		cover->attached = true;
		return 0;
	}
	copyfd = detached_clone(cover->fd, "", e);
	TRY(copyfd);
	return detached_attach(copyfd, targetfd, "a cover", path, e);
}

static int empty_directory(struct err *e)
{
	static const struct fs_option options[] = {
		{.key = "source", .text = "masked"},
		{.key = "nr_inodes", .text = "1"},
		{.key = "mode", .text = "0555"},
	};

	return detached_mount(
		"tmpfs", options, sizeof options / sizeof *options,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
}

static int mask(const struct places *places, const char *path, struct cover *null,
                struct cover *empty, struct err *e)
{
	scoped_fd fd = find(places, path, e);
	struct stat st;

	if (fd == -ENOENT)
		return 0;
	TRY(fd);
	TRY(refuse_root(places, fd, "it cannot be masked", e));
	if (fstat(fd, &st) < 0)
		return err_sys(e, "asking what %s is", path);
	if (!S_ISDIR(st.st_mode))
		return cover_with(null, fd, path, e);
	if (empty->fd < 0)
		empty->fd = empty_directory(e);
	TRY(empty->fd);
	return cover_with(empty, fd, path, e);
}

int mask_paths(struct inside *in, struct err *e)
{
	const struct oci_strings *paths = &in->config->linux_part->masked_paths;
	struct cover null = {.fd = in->container->mounts->nullfd}, empty = {.fd = -1};
	struct places places;
	int r = 0;

	if (!paths->count)
		return 0;
	if (open_places(in, &places, e) < 0)
		return err_in(e, "linux.maskedPaths");
	for (size_t i = 0; i < paths->count && r == 0; i++) {
		r = mask(&places, paths->items[i], &null, &empty, e);
		if (r < 0)
			r = err_in(e, "linux.maskedPaths[%zu]", i);
	}
	close_places(&places);
	close_fd(&empty.fd);
	close_fd(&in->container->mounts->nullfd);
	return r;
}

/* ---- protecting ---- */

static int protect(const struct places *places, const char *path, struct err *e)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE};
	scoped_fd fd = find(places, path, e), copyfd = -1;

	if (fd == -ENOENT)
		return 0;
	TRY(fd);
	TRY(refuse_root(places, fd, "root.readonly protects it", e));
	copyfd = open_tree(fd, "",
	                   AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (copyfd < 0)
		return err_sys(e, "copying the mount of %s", path);
	if (mount_setattr(copyfd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
	                  sizeof attributes) < 0)
		return err_sys(e, "making %s read-only", path);
	return detached_attach(copyfd, fd, "its copy", path, e);
}

int protect_paths(struct inside *in, struct err *e)
{
	const struct oci_strings *paths = &in->config->linux_part->readonly_paths;
	struct places places;
	int r = 0;

	if (!paths->count)
		return 0;
	if (open_places(in, &places, e) < 0)
		return err_in(e, "linux.readonlyPaths");
	for (size_t i = 0; i < paths->count && r == 0; i++) {
		r = protect(&places, paths->items[i], e);
		if (r < 0)
			r = err_in(e, "linux.readonlyPaths[%zu]", i);
	}
	close_places(&places);
	return r;
}
