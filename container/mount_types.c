/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems that are made for the container, by their type: mounted inside, in the container's own
 * namespaces, from within the target, which was opened beneath the new root. No state.
 *
 * mount(2) rather than fsconfig(2): a page of options fits (fsconfig takes 255 bytes each, and
 * overlayfs's layers are longer), each file system parses them as it always did, and it is one call.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/mounts.h"
#include "rootfs/detached.h"

enum { DATA_SIZE = 4096 /* a page is what the kernel takes */ };

/* What is peculiar to some types. */
static const struct type {
	const char *name;
	bool no_links;    /* its target is a directory all the way: others trust what is there */
	bool no_label;    /* takes no context= of SELinux */
	int namespace;    /* the one whose owner may mount it; else the host's own can be shown */
	const char *host; /* where that is */
} types[] = {
	{"proc", true, true, CLONE_NEWPID, "/proc"},
	{"sysfs", true, true, CLONE_NEWNET, "/sys"},
	{"mqueue", false, true, 0, NULL},
	{"cgroup", false, true, 0, NULL},
	{"cgroup2", false, true, 0, NULL},
	{NULL, false, false, 0, NULL},
};

static const struct type *find_type(const char *name)
{
	const struct type *type = types;

	while (type->name && strcmp(type->name, name) != 0)
		type++;
	return type;
}

/* ---- the target ---- */

static int open_target(const struct attachment *attachment, const struct type *type, struct err *e)
{
	int rootfd = attachment->in->rootfd;
	const char *path = attachment->mount->destination;
	scoped_fd fd = -1;

	if (!type->no_links)
		return target_open(rootfd, path, false, e);
	fd = target_find(rootfd, path, O_DIRECTORY, RESOLVE_NO_SYMLINKS, e);
	if (fd == -ENOENT) {
		scoped_fd madefd = target_open(rootfd, path, false, e);

		TRY(madefd);
		fd = target_find(rootfd, path, O_DIRECTORY, RESOLVE_NO_SYMLINKS, e);
	}
	if (fd == -ELOOP || fd == -ENOTDIR)
		return err_hint(e,
		                "for %s it must be a directory of the image, and no link on "
		                "the way to it",
		                type->name);
	return take_fd(&fd);
}

/* ---- its options ---- */

/* DATA with the label that all files are to have, as the kernel wants it. */
static int label_data(const char *data, const char *label, char *buffer, struct err *e)
{
	return text_format(buffer, DATA_SIZE, e, "%s%scontext=\"%s\"", data ? data : "",
	                   data ? "," : "", label);
}

/* ---- mounting ---- */

static int explain(const struct attachment *attachment, struct err *e)
{
	const char *type = attachment->mount->type;
	const char *data = attachment->prepared->options.data;

	switch (e->code) {
	case ENODEV:
		return err_hint(e, "this kernel lacks the file system type %s; load its module",
		                type);
	case EPERM:
		return err_hint(e,
		                "in a user namespace, the kernel mounts %s only where the "
		                "namespace it shows is a new one as well, and only as whole "
		                "as the runtime's own is",
		                type);
	case EINVAL:
		return data ? err_hint(e, "does %s know all of its options \"%.200s\"?", type, data)
		            : -e->code;
	default:
		return -e->code;
	}
}

static int mount_here(const struct attachment *attachment, const struct type *type,
                      unsigned long flags, struct err *e)
{
	const struct oci_mount *item = attachment->mount;
	const char *source = item->source && *item->source ? item->source : item->type;
	const char *label = attachment->in->config->linux_part->mount_label;
	const char *data = attachment->prepared->options.data;
	char labelled[DATA_SIZE];

	if (label && !type->no_label) {
		TRY(label_data(data, label, labelled, e));
		data = labelled;
	}
	if (data && strlen(data) >= DATA_SIZE)
		return err_set(e, E2BIG, "options: longer than the %d bytes that the kernel takes",
		               DATA_SIZE - 1);
	if (mount(source, ".", item->type, flags, data) == 0)
		return 0;
	err_sys(e, "mounting %s", item->type);
	return explain(attachment, e);
}

int host_attach(const struct attachment *attachment, const char *path, bool read_only, int targetfd,
                struct err *e)
{
	struct mount_options options = attachment->prepared->options;
	struct mount_attr attributes = {.propagation = MS_SLAVE};
	scoped_fd fd = source_copy(attachment->in->container, path, true, e);

	TRY(fd);
	options.tree_set |= options.set | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	options.set = 0;
	options.clear = 0;
	if (read_only) {
		options.tree_set |= MOUNT_ATTR_RDONLY;
		options.tree_clear = 0;
	}
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) < 0)
		return err_sys(e, "setting the propagation of %s", path);
	TRY(source_change(fd, &options, e));
	return detached_attach(fd, targetfd, path, "it", e);
}

/* Whether a procfs or a sysfs would show a namespace that is not the container's, which may be its user
 * namespace's or one of the runtime's own. */
static bool may_show_host(const struct attachment *attachment, const struct type *type)
{
	return type->host && !has_new_namespace(attachment->in->config, type->namespace);
}

/* The mount that was just made there: nothing but the kernel's mounts can have another device. */
static int open_mounted(const struct attachment *attachment, int targetfd, struct err *e)
{
	scoped_fd fd = target_find(attachment->in->rootfd, attachment->mount->destination,
	                           O_DIRECTORY, 0, e);
	struct stat below, now;

	TRY(fd);
	if (fstat(targetfd, &below) < 0 || fstat(fd, &now) < 0)
		return err_sys(e, "asking what was mounted");
	if (below.st_dev == now.st_dev)
		return err_set(e, EXDEV, "destination: somebody exchanges it while it is mounted");
	return take_fd(&fd);
}

/* "tmpcopyup" */
static int copy_up(const struct attachment *attachment, int targetfd, struct err *e)
{
	const char *data = attachment->prepared->options.data;
	scoped_fd mountedfd = open_mounted(attachment, targetfd, e);
	scoped_fd fromfd = -1, tofd = -1;
	struct stat st;

	TRY(mountedfd);
	fromfd = file_open(targetfd, ".", O_RDONLY | O_DIRECTORY, 0, e);
	TRY(fromfd);
	tofd = file_open(mountedfd, ".", O_RDONLY | O_DIRECTORY, 0, e);
	TRY(tofd);
	if (fstat(fromfd, &st) < 0 || fchown(tofd, st.st_uid, st.st_gid) < 0 ||
	    (!(data && strstr(data, "mode=")) && fchmod(tofd, st.st_mode & 07777) < 0))
		return err_sys(e, "setting the owner and mode of the copy");
	if (tree_copy(fromfd, tofd, e) < 0)
		return err_in(e, "tmpcopyup");
	return 0;
}

/* What is not said by mount(2)'s flags. */
static int finish(const struct attachment *attachment, int targetfd, bool read_only, struct err *e)
{
	struct mount_options rest = attachment->prepared->options;
	scoped_fd fd = -1;

	rest.set = read_only ? MOUNT_ATTR_RDONLY : 0;
	rest.clear = rest.tree_set = rest.tree_clear = 0;
	if (!rest.set && !rest.propagations_count)
		return 0;
	fd = open_mounted(attachment, targetfd, e);
	TRY(fd);
	return source_change(fd, &rest, e);
}

int type_attach(const struct attachment *attachment, struct err *e)
{
	const struct mount_options *options = &attachment->prepared->options;
	const struct type *type = find_type(attachment->mount->type);
	unsigned long flags = mount_options_flags(options);
	scoped_fd targetfd = open_target(attachment, type, e);
	bool later_read_only = options->copy_up && flags & MS_RDONLY;

	TRY(targetfd);
	TRY(target_check(targetfd, attachment, -1, e));
	if (options->copy_up && strcmp(attachment->mount->type, "tmpfs") != 0)
		return err_set(e, EINVAL, "options: only a tmpfs can have tmpcopyup");
	if (fchdir(targetfd) < 0)
		return err_sys(e, "entering it");
	if (later_read_only)
		flags &= ~(unsigned long)MS_RDONLY;
	if (mount_here(attachment, type, flags, e) < 0) {
		if (e->code == EPERM && may_show_host(attachment, type))
			return host_attach(attachment, type->host, false, targetfd, e);
		return -e->code;
	}
	if (options->copy_up)
		TRY(copy_up(attachment, targetfd, e));
	return finish(attachment, targetfd, later_read_only, e);
}
