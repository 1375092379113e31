/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.mounts: what is opened of them before the clone, and how they get into the new root, in the
 * order of the list. Owns container->mounts, which the process inside has its own copy of.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/scoped.h"
#include "container/container.h"
#include "container/mounts.h"
#include "rootfs/detached.h"

/* ---- outside ---- */

static int in_mount(const struct container *container, size_t index, struct err *e)
{
	return err_in(e, "mounts[%zu] (%s)", index,
	              container->config->mounts.items[index].destination);
}

/* The kernel would ignore what a bind mount cannot have. */
static int check_bind(const struct mount_options *options, struct err *e)
{
	if (options->bind && options->data)
		return err_set(e, EINVAL, "options: a bind mount has no \"%s\"", options->data);
	if (options->bind && options->copy_up)
		return err_set(e, EINVAL, "options: a bind mount has no \"tmpcopyup\"");
	return 0;
}

static int read_options(struct container *container, struct err *e)
{
	const struct oci_mounts *list = &container->config->mounts;
	struct container_mounts *mounts = container->mounts;

	for (size_t i = 0; i < list->count; i++) {
		const struct oci_mount *mount = &list->items[i];
		struct container_mount *prepared = &mounts->items[i];

		if (mount_options_parse(&mount->options, &prepared->options, e) < 0)
			return in_mount(container, i, e);
		if (mount->type && strcmp(mount->type, "bind") == 0)
			prepared->options.bind = true;
		if (check_bind(&prepared->options, e) < 0)
			return in_mount(container, i, e);
	}
	return 0;
}

static struct container_mounts *new_mounts(size_t count)
{
	struct container_mounts *mounts = calloc(1, sizeof *mounts);

	if (!mounts)
		return NULL;
	mounts->items = calloc(count + 1, sizeof *mounts->items);
	if (!mounts->items) {
		free(mounts);
		return NULL;
	}
	mounts->count = count;
	mounts->nullfd = -1;
	for (size_t i = 0; i < count; i++)
		mounts->items[i].fd = -1;
	for (size_t i = 0; i < GROUP_HIERARCHIES_MAX; i++)
		mounts->groupfds[i] = -1;
	return mounts;
}

static int open_root(struct container *container, struct err *e)
{
	struct stat st;

	container->rootfd = source_copy(container, container->rootfs, true, e);
	if (container->rootfd < 0)
		return err_in(e, "root.path");
	if (fstat(container->rootfd, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "root.path: %s is not a directory", container->rootfs);
	return 0;
}

static int open_binds(struct container *container, struct err *e)
{
	for (size_t i = 0; i < container->mounts->count; i++) {
		struct container_mount *prepared = &container->mounts->items[i];

		if (!prepared->options.bind || prepared->options.remount)
			continue;
		prepared->fd = source_open(container, &container->config->mounts.items[i],
		                           &prepared->options, e);
		if (prepared->fd < 0)
			return in_mount(container, i, e);
	}
	return 0;
}

static bool is_group_mount(const struct oci_mount *mount)
{
	return mount->type && strncmp(mount->type, "cgroup", strlen("cgroup")) == 0;
}

static int open_groups(struct container *container, struct err *e)
{
	const struct oci_mounts *list = &container->config->mounts;
	bool wanted = false;

	for (size_t i = 0; i < list->count; i++)
		wanted |= is_group_mount(&list->items[i]) &&
		          !container->mounts->items[i].options.bind;
	for (int i = 0; wanted && i < container->group.count; i++) {
		container->mounts->groupfds[i] = detached_clone(container->group.hierarchies[i].fd,
		                                                "", e);
		if (container->mounts->groupfds[i] < 0)
			return err_in(e, "the container's group");
	}
	return 0;
}

static int check_label(const struct oci_config *config, struct err *e)
{
	struct statfs fs;

	if (!config->linux_part->mount_label ||
	    (statfs("/sys/fs/selinux", &fs) == 0 && fs.f_type == SELINUX_MAGIC))
		return 0;
	return err_set(e, ENOTSUP,
	               "linux.mountLabel: SELinux is not enabled on this host; leave the key away");
}

static int open_copies(struct container *container, struct err *e)
{
	int r = open_root(container, e);

	if (r == -EPERM) {
		container->mounts->late = true;
		return 0;
	}
	TRY(r);
	return open_binds(container, e);
}

static int open_locked_copies(struct container *container, struct err *e)
{
	struct locked_mounts locked;
	struct err ignored;
	int r = locked_mounts_enter(&locked, container->hostprocfd, e);

	if (r == -EPERM) {
		container->mounts->late = true;
		return 0;
	}
	TRY(r);
	if (open_copies(container, e) == 0)
		return locked_mounts_leave(&locked, e);
	r = -e->code;
	locked_mounts_leave(&locked, &ignored);
	return r;
}

int open_sources(struct container *container, struct err *e)
{
	if (!oci_config_namespace(container->config, CLONE_NEWNS))
		return err_set(e, EINVAL,
		               "linux.namespaces: the container has no mount namespace, and would "
		               "mount over the host's files: add {\"type\": \"mount\"}");
	TRY(check_label(container->config, e));
	container->mounts = new_mounts(container->config->mounts.count);
	if (!container->mounts)
		return err_set(e, ENOMEM, "mounts: no memory");
	TRY(read_options(container, e));
	/* who is root may copy where the kernel locks what it copies; others' copies the inside makes */
	if (geteuid() == 0 && oci_config_namespace(container->config, CLONE_NEWUSER))
		TRY(open_locked_copies(container, e));
	else
		TRY(open_copies(container, e));
	return container->mounts->late ? 0 : open_groups(container, e);
}

int close_sources(struct container *container, struct err *e)
{
	struct container_mounts *mounts = container->mounts;

	(void)e;
	close_fd(&container->rootfd);
	if (!mounts)
		return 0;
	for (size_t i = 0; i < mounts->count; i++) {
		close_fd(&mounts->items[i].fd);
		mount_options_release(&mounts->items[i].options);
	}
	for (size_t i = 0; i < GROUP_HIERARCHIES_MAX; i++)
		close_fd(&mounts->groupfds[i]);
	close_fd(&mounts->nullfd);
	free(mounts->items);
	free(mounts);
	container->mounts = NULL;
	return 0;
}

/* ---- inside ---- */

/* Names in procfs that tools (lxcfs) put their own files over; all others would deceive us or the
 * kernel's own checks. The same as runc's. */
static const char *const procfs_names[] = {
	"/proc/cpuinfo",
	"/proc/diskstats",
	"/proc/loadavg",
	"/proc/meminfo",
	"/proc/slabinfo",
	"/proc/stat",
	"/proc/swaps",
	"/proc/sys/crypto/fips_enabled",
	"/proc/sys/kernel/ns_last_pid",
	"/proc/uptime",
};

enum { PROCFS_ROOT_INODE = 1 };

static bool is_procfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static bool is_procfs_root(int fd)
{
	struct stat st;

	return is_procfs(fd) && fstat(fd, &st) == 0 && st.st_ino == PROCFS_ROOT_INODE;
}

int target_check(int targetfd, const struct attachment *attachment, int sourcefd, struct err *e)
{
	const struct oci_mount *mount = attachment->mount;
	int is_root = target_is_root(targetfd, attachment->in->rootfd, e);

	TRY(is_root);
	if (is_root && sourcefd < 0)
		return err_set(e, EINVAL, "destination: only a bind mount can cover the root");
	if (!is_procfs(targetfd))
		return 0;
	if (is_procfs_root(targetfd) &&
	    (sourcefd >= 0 ? is_procfs(sourcefd) : strcmp(mount->type, "proc") == 0))
		return 0;
	for (size_t i = 0; i < sizeof procfs_names / sizeof *procfs_names; i++)
		if (strcmp(mount->destination, procfs_names[i]) == 0 && sourcefd >= 0)
			return 0;
	return err_set(e, EACCES,
	               "destination: is in a procfs, where only a few files may be covered "
	               "(/proc/meminfo and others of that kind)");
}

int target_check_own(int targetfd, int rootfd, const char *path, struct err *e)
{
	int is_root = target_is_root(targetfd, rootfd, e);

	TRY(is_root);
	if (!is_root && !is_procfs(targetfd))
		return 0;
	return err_set(e, EACCES,
	               "%s leads to %s, which must not be covered; look at the links of the image",
	               path, is_root ? "the root" : "a procfs");
}

static int attach_bind(const struct attachment *attachment, struct err *e)
{
	const struct oci_mount *mount = attachment->mount;
	struct container_mount *prepared = attachment->prepared;
	struct inside *in = attachment->in;
	scoped_fd targetfd = -1;
	struct stat st;
	int covers_root;

	if (prepared->fd < 0)
		prepared->fd = source_open(in->container, mount, &prepared->options, e);
	TRY(prepared->fd);
	if (fstat(prepared->fd, &st) < 0)
		return err_sys(e, "asking what %s is", mount->source);
	targetfd = target_open(in->rootfd, mount->destination, !S_ISDIR(st.st_mode), e);
	TRY(targetfd);
	TRY(target_check(targetfd, attachment, prepared->fd, e));
	covers_root = target_is_root(targetfd, in->rootfd, e);
	TRY(covers_root);
	if (detached_attach(prepared->fd, targetfd, mount->source, "it", e) < 0) {
		if (e->code == ENOTDIR || e->code == EINVAL)
			return err_hint(e, "is one of them a directory, and the other not?");
		return -e->code;
	}
	if (covers_root) {
		/* what is mounted over the root is the root of all that comes now */
		close_fd(&in->rootfd);
		in->rootfd = take_fd(&prepared->fd);
	}
	close_fd(&prepared->fd);
	return 0;
}

/* "remount", or nothing but a propagation: of what is mounted there already. */
static int change_mount(const struct attachment *attachment, struct err *e)
{
	const struct mount_options *options = &attachment->prepared->options;
	scoped_fd fd = target_find(attachment->in->rootfd, attachment->mount->destination, 0, 0, e);

	TRY(fd);
	if (!options->bind && (options->super || options->data)) {
		unsigned long flags = MS_REMOUNT | mount_options_flags(options);

		if (fchdir(fd) < 0 || mount("none", ".", NULL, flags, options->data) < 0)
			return err_sys(e, "remounting it");
	}
	if (source_change(fd, options, e) == 0)
		return 0;
	return e->code == EINVAL ? err_hint(e, "is anything mounted there?") : -e->code;
}

static int attach_one(const struct attachment *attachment, struct err *e)
{
	const struct mount_options *options = &attachment->prepared->options;
	const char *type = attachment->mount->type;
	bool typed = type && *type && strcmp(type, "none") != 0;

	if (options->remount || (!typed && !options->bind && options->propagations_count))
		return change_mount(attachment, e);
	if (options->bind)
		return attach_bind(attachment, e);
	if (!typed)
		return err_set(e, EINVAL, "type: is missing, and nothing else says what to mount");
	if (options->idmap || attachment->mount->uid_mappings.count)
		return err_set(e, EINVAL,
		               "options: only a bind mount's ids can be mapped, not "
		               "those of a new %s",
		               type);
	return is_group_mount(attachment->mount) ? cgroup_attach(attachment, e)
	                                         : type_attach(attachment, e);
}

int attach_mounts(struct inside *in, struct err *e)
{
	const struct oci_mounts *list = &in->config->mounts;
	struct container_mounts *mounts = in->container->mounts;

	for (size_t i = 0; i < list->count; i++) {
		const struct attachment attachment = {in, &list->items[i], &mounts->items[i]};

		if (attach_one(&attachment, e) < 0)
			return in_mount(in->container, i, e);
	}
	/* some were mounted from within their targets */
	if (chdir("/") < 0)
		return err_sys(e, "entering /");
	return 0;
}
