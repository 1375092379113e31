/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of bind mounts: copied, detached, with the options that they are to have before anybody
 * sees them. The caller's own mount namespace and privileges count. No state.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/mounts.h"

/* mount_setattr(2) without wrapper's errors: 0 or -errno. */
static int set_attributes(int fd, bool tree, struct mount_attr *attributes)
{
	unsigned flags = AT_EMPTY_PATH | (tree ? AT_RECURSIVE : 0);

	return mount_setattr(fd, "", flags, attributes, sizeof *attributes) < 0 ? -errno : 0;
}

unsigned long source_propagation(const struct oci_config *config)
{
	/* only a container whose own root is shared may hand mounts back to the host */
	return (config->linux_part->rootfs_propagation & MS_SHARED) ? 0 : MS_SLAVE;
}

/* Locked flags can be set and not cleared: what was asked for in vain is stricter than asked. */
static int change_what_can_be(int fd, bool tree, struct mount_attr *attributes, struct err *e)
{
	int r = set_attributes(fd, tree, attributes);

	if (r == -EPERM && attributes->attr_clr && !(attributes->attr_set & MOUNT_ATTR_IDMAP)) {
		attributes->attr_clr = 0;
		attributes->attr_set &= ~(uint64_t)MOUNT_ATTR__ATIME;
		r = set_attributes(fd, tree, attributes);
	}
	if (r == 0)
		return 0;
	return err_set(e, -r, "setting the options of the mount: %s", strerror(-r));
}

static bool says_nothing(const struct mount_attr *attributes)
{
	return !attributes->attr_set && !attributes->attr_clr && !attributes->propagation;
}

int source_change(int fd, const struct mount_options *options, struct err *e)
{
	struct mount_attr tree = {.attr_set = options->tree_set, .attr_clr = options->tree_clear};
	struct mount_attr one = {.attr_set = options->set, .attr_clr = options->clear};

	if (!says_nothing(&tree))
		TRY(change_what_can_be(fd, true, &tree, e));
	if (!says_nothing(&one))
		TRY(change_what_can_be(fd, false, &one, e));
	for (int i = 0; i < options->propagations_count; i++) {
		unsigned long what = options->propagations[i];
		struct mount_attr propagation = {.propagation = what & ~(unsigned long)MS_REC};
		int r = set_attributes(fd, what & MS_REC, &propagation);

		if (r < 0)
			return err_set(e, -r, "setting the propagation of the mount: %s",
			               strerror(-r));
	}
	return 0;
}

/* Whether the propagations that OPTIONS end with leave nothing of the one before. */
static bool overrides_propagation(const struct mount_options *options)
{
	unsigned long first = options->propagations_count ? options->propagations[0] : 0;

	return first & (MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE) &&
	       (first & MS_REC || !options->tree);
}

static int set_propagation_of_copy(int fd, const struct oci_config *config,
                                   const struct mount_options *options, struct err *e)
{
	struct mount_attr attributes = {.propagation = source_propagation(config)};
	int r;

	if (!attributes.propagation || overrides_propagation(options))
		return 0;
	r = set_attributes(fd, true, &attributes);
	return r == 0 ? 0
	              : err_set(e, -r, "setting the propagation of the mount: %s", strerror(-r));
}

static int set_idmap(int fd, const struct oci_config *config, const struct oci_mount *mount,
                     const struct mount_options *options, struct err *e)
{
	scoped_fd namespacefd = idmap_open(config, mount, e);
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP};
	int r;

	TRY(namespacefd);
	attributes.userns_fd = (unsigned)namespacefd;
	r = set_attributes(fd, options->idmap_tree, &attributes);
	if (r == 0)
		return 0;
	err_set(e, -r, "mapping its ids (idmap): %s", strerror(-r));
	if (r == -EPERM)
		return err_hint(e,
		                "the kernel wants privileges over the whole file system of %s "
		                "for it, and no ids that are mapped already",
		                mount->source);
	/* the kernel says EINVAL for a file system that cannot */
	e->code = EOPNOTSUPP;
	return err_hint(e,
	                "the file system of %s%s, or this kernel, cannot do that: use ext4, xfs, "
	                "btrfs or (from Linux 6.3 on) tmpfs, or leave the option away",
	                mount->source, options->idmap_tree ? " or one below it" : "");
}

int source_copy(const struct container *container, const char *path, bool tree, struct err *e)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (tree ? AT_RECURSIVE : 0);
	char absolute[PATH_MAX];
	int fd;

	if (path[0] != '/') {
		TRY(text_format(absolute, sizeof absolute, e, "%s/%s", container->bundle, path));
		path = absolute;
	}
	fd = open_tree(AT_FDCWD, path, flags);
	if (fd >= 0)
		return fd;
	err_sys(e, "copying the mount of %s", path);
	if (e->code == EINVAL && !tree)
		return err_hint(e, "where the runtime's own mounts are locked (a user namespace), "
		                   "what is below can only be had with it: use rbind");
	return -e->code;
}

/* As statfs(2) has them; ST_NOSYMFOLLOW is not glibc's. */
static const struct {
	uint64_t attribute;
	unsigned long flag;
} restrictions[] = {
	{MOUNT_ATTR_RDONLY, ST_RDONLY},   {MOUNT_ATTR_NOSUID, ST_NOSUID},
	{MOUNT_ATTR_NODEV, ST_NODEV},     {MOUNT_ATTR_NOEXEC, ST_NOEXEC},
	{MOUNT_ATTR_NOSYMFOLLOW, 0x2000},
};

enum {
	RESTRICTIONS = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	               MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW,
};

/*
 * A copy gives no more than its source: engines say "rw" of each bind mount, of one that the host has
 * read-only too. So nothing of that is cleared but what an option for the whole tree has set.
 */
static int keep_restrictions(int fd, struct mount_options *options, struct err *e)
{
	uint64_t undone = options->tree_set & options->clear & RESTRICTIONS;
	struct statfs fs;

	options->tree_clear &= ~(uint64_t)RESTRICTIONS;
	options->clear &= ~(uint64_t)RESTRICTIONS;
	if (!undone)
		return 0;
	if (fstatfs(fd, &fs) < 0)
		return err_sys(e, "asking for the options of the mount");
	for (size_t i = 0; i < sizeof restrictions / sizeof *restrictions; i++)
		if (!((unsigned long)fs.f_flags & restrictions[i].flag))
			options->clear |= undone & restrictions[i].attribute;
	return 0;
}

int source_open(const struct container *container, const struct oci_mount *mount,
                const struct mount_options *options, struct err *e)
{
	struct mount_options kept = *options;
	scoped_fd fd = -1;

	if (!mount->source || !*mount->source)
		return err_set(e, EINVAL, "source: is missing, and a bind mount has one");
	/* in a pid namespace whose /proc is not here yet, and of file systems that are not ours */
	if (container->mounts->late && (options->idmap || mount->uid_mappings.count))
		return err_set(
			e, EPERM,
			"uidMappings: without privileges no mount of the host can be idmapped; "
			"leave them and \"idmap\" away, or be root");
	fd = source_copy(container, mount->source, options->tree, e);
	if (fd < 0)
		return err_in(e, "source");
	TRY(set_propagation_of_copy(fd, container->config, options, e));
	if (options->idmap || mount->uid_mappings.count)
		TRY(set_idmap(fd, container->config, mount, options, e));
	TRY(keep_restrictions(fd, &kept, e));
	TRY(source_change(fd, &kept, e));
	return take_fd(&fd);
}
