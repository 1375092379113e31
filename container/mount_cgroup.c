/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types "cgroup" and "cgroup2": the container's own group, nothing above it, as the hierarchies of
 * this host have it. A bind of the group's directory is what a mount in the cgroup namespace shows, and
 * is there without one as well; each was copied outside (container_mounts.groupfds).
 *
 *	v2 alone        the group itself
 *	v1, or hybrid   "cgroup": a tmpfs with a directory a hierarchy, named as hosts name them
 *	                ("cpu,cpuacct", "systemd", "unified" for v2), a link for each controller of
 *	                several; "cgroup2": the group of the v2 tree, or an error where there is none
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/scoped.h"
#include "container/container.h"
#include "container/mounts.h"
#include "rootfs/detached.h"

static const char *directory_of(const struct group_hierarchy *hierarchy)
{
	const char *name = hierarchy->controllers;

	if (!*name)
		return "unified";
	return strncmp(name, "name=", strlen("name=")) == 0 ? name + strlen("name=") : name;
}

static int v2_index(const struct group *group)
{
	for (int i = 0; i < group->count; i++)
		if (!*group->hierarchies[i].controllers)
			return i;
	return -1;
}

/* "cpu,cpuacct": cpu and cpuacct lead to it. */
static int link_controllers(int tmpfsfd, const char *directory, struct err *e)
{
	char names[sizeof((struct group_hierarchy *)0)->controllers], *rest = names, *name;

	if (!strchr(directory, ','))
		return 0;
	memcpy(names, directory, strlen(directory) + 1);
	while ((name = strsep(&rest, ",")))
		if (symlinkat(directory, tmpfsfd, name) < 0 && errno != EEXIST)
			return err_sys(e, "making the link %s", name);
	return 0;
}

static int attach_hierarchy(const struct attachment *attachment, int tmpfsfd, int index,
                            struct err *e)
{
	struct container_mounts *mounts = attachment->in->container->mounts;
	const char *name = directory_of(&attachment->in->container->group.hierarchies[index]);

	if (mkdirat(tmpfsfd, name, 0755) < 0)
		return err_sys(e, "making the directory %s", name);
	TRY(source_change(mounts->groupfds[index], &attachment->prepared->options, e));
	if (move_mount(mounts->groupfds[index], "", tmpfsfd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "attaching the group of %s", name);
	close_fd(&mounts->groupfds[index]);
	return link_controllers(tmpfsfd, name, e);
}

static int attach_v1(const struct attachment *attachment, int targetfd, struct err *e)
{
	static const struct fs_option options[] = {
		{.key = "source", .text = "cgroup"},
		{.key = "mode", .text = "0755"},
	};
	const struct group *group = &attachment->in->container->group;
	scoped_fd tmpfsfd = detached_mount("tmpfs", options, sizeof options / sizeof *options,
	                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
	                                   e);

	TRY(tmpfsfd);
	/* kernels before 6.15 attach nothing to what is detached */
	TRY(detached_attach(tmpfsfd, targetfd, "a tmpfs", "it", e));
	for (int i = 0; i < group->count; i++)
		if (attachment->in->container->mounts->groupfds[i] >= 0)
			TRY(attach_hierarchy(attachment, tmpfsfd, i, e));
	/* now that the directories are made, it can be read-only */
	return source_change(tmpfsfd, &attachment->prepared->options, e);
}

static int attach_v2(const struct attachment *attachment, int targetfd, int index, struct err *e)
{
	int *groupfd = &attachment->in->container->mounts->groupfds[index];

	TRY(source_change(*groupfd, &attachment->prepared->options, e));
	TRY(detached_attach(*groupfd, targetfd, "the container's group", "it", e));
	close_fd(groupfd);
	return 0;
}

/* Nothing was copied outside: root of a user namespace mounts the v2 tree of its cgroup namespace, or
 * sees the host's, which is not its own to write to. */
static int attach_late(const struct attachment *attachment, struct err *e)
{
	static const char host[] = "/sys/fs/cgroup";
	struct oci_mount as_v2 = *attachment->mount;
	const struct attachment own = {attachment->in, &as_v2, attachment->prepared};
	scoped_fd targetfd = -1;
	struct statfs fs;

	as_v2.type = "cgroup2";
	if (statfs(host, &fs) < 0)
		return err_sys(e, "asking what %s is", host);
	if (fs.f_type == CGROUP2_SUPER_MAGIC) {
		int r = type_attach(&own, e);

		if (r != -EPERM)
			return r;
	}
	targetfd = target_open(attachment->in->rootfd, attachment->mount->destination, false, e);
	TRY(targetfd);
	return host_attach(attachment, host, true, targetfd, e);
}

int cgroup_attach(const struct attachment *attachment, struct err *e)
{
	const struct container *container = attachment->in->container;
	const struct group *group = &container->group;
	int v2 = v2_index(group);
	bool only_v2 = v2 >= 0 && group->count == 1;
	scoped_fd targetfd = -1;

	if (strcmp(attachment->mount->type, "cgroup2") == 0 && v2 < 0 && group->count > 0)
		return err_set(e, ENODEV, "type: this host has no cgroup v2 tree; use \"cgroup\"");
	if (group->count == 0 || container->mounts->late)
		return attach_late(attachment, e);
	if (container->mounts->groupfds[v2 >= 0 ? v2 : 0] < 0)
		return err_set(e, EBUSY, "type: the group is mounted already; bind it from there");
	targetfd = target_open(attachment->in->rootfd, attachment->mount->destination, false, e);
	TRY(targetfd);
	TRY(target_check(targetfd, attachment, -1, e));
	if (only_v2 || strcmp(attachment->mount->type, "cgroup2") == 0)
		return attach_v2(attachment, targetfd, v2, e);
	return attach_v1(attachment, targetfd, e);
}
