/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the score that concern the control group. A container that a user without privilege makes,
 * where no group was asked for and none may be made, has none: then whatever limit it asks for is
 * refused, and devices are kept from it by its user namespace.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "container/container.h"
#include "container/warn.h"

static bool may_do_without(const struct container *container, const struct err *e)
{
	const char *path = container->config->linux_part->cgroups_path;

	return (!path || !*path) && container->options->manager == GROUP_CGROUPFS &&
	       (geteuid() != 0 || !process_has_host_ids()) &&
	       (e->code == EACCES || e->code == EPERM || e->code == EROFS);
}

/* Where the container has its own: there nobody else's processes are to be spared. */
static int open_group(struct container *container, struct err *e)
{
	const char *below = container->options->cgroup;

	TRY(group_open(&container->group, container->entry->record.group, e));
	if (container->group.whose == GROUP_OTHERS || container->group.whose == GROUP_UNMARKED)
		return err_set(e, EPERM,
		               "the group of container %s is another's by now: it has not its mark",
		               container->entry->id);
	if (below && group_descend(&container->group, below, e) < 0) {
		group_release(&container->group);
		return -e->code;
	}
	return group_prepare_join(&container->group, e);
}

int place_group(struct container *container, struct err *e)
{
	return group_place(&container->group, container->options->manager,
	                   container->config->linux_part->cgroups_path, container->options->id, e);
}

int make_group(struct container *container, struct err *e)
{
	if (container->joins)
		return open_group(container, e);
	if (group_make(&container->group, container->config->linux_part->resources, e) == 0)
		return 0;
	return may_do_without(container, e) ? 0 : -e->code;
}

/* ---- whose it is ---- */

/* A cgroup namespace of its own, and the group mounted there to be written to. */
static bool is_writable(const struct oci_config *config)
{
	const struct oci_namespace *space = oci_config_namespace(config, CLONE_NEWCGROUP);
	bool writable = false;

	for (size_t i = 0; space && !space->path && i < config->mounts.count; i++) {
		const struct oci_mount *mount = &config->mounts.items[i];

		if (!mount->type || strncmp(mount->type, "cgroup", strlen("cgroup")) != 0 ||
		    strcmp(mount->destination, "/sys/fs/cgroup") != 0)
			continue;
		writable = true;
		for (size_t j = 0; j < mount->options.count; j++)
			writable &= strcmp(mount->options.items[j], "ro") != 0 &&
			            strcmp(mount->options.items[j], "rro") != 0;
	}
	return writable;
}

/* False: UID is nobody outside, or of a user namespace that somebody else has mapped. */
static bool host_uid(const struct oci_config *config, uint32_t uid, uid_t *host)
{
	const struct oci_mappings *mappings = &config->linux_part->uid_mappings;
	const struct oci_namespace *space = oci_config_namespace(config, CLONE_NEWUSER);

	if (space && space->path)
		return false;
	*host = uid;
	for (size_t i = 0; i < mappings->count; i++) {
		const struct oci_mapping *line = &mappings->items[i];

		if (uid < line->container_id || uid - line->container_id >= line->size)
			continue;
		*host = line->host_id + (uid - line->container_id);
		return true;
	}
	return !space;
}

static int give_group(const struct container *container, struct err *e)
{
	const struct oci_config *config = container->config;
	const struct oci_user *user = config->process ? config->process->user : NULL;
	uid_t uid;

	if (!is_writable(config) || !host_uid(config, user ? user->uid : 0, &uid) ||
	    group_give(&container->group, uid, e) == 0)
		return 0;
	if (e->code != EPERM || (geteuid() == 0 && process_has_host_ids()))
		return -e->code;
	container_warn("%s; the container makes no groups below it", e->text);
	e->code = 0;
	return 0;
}

/* ---- rows ---- */

int set_resources(struct container *container, struct err *e)
{
	const struct oci_resources *resources = container->config->linux_part->resources;

	TRY(group_set(&container->group, resources, false, e));
	TRY(group_set_devices(&container->group, resources, e));
	return give_group(container, e);
}

int move_into_group(struct container *container, struct err *e)
{
	return group_move(&container->group, container->pid, e);
}

int join_group(struct inside *in, struct err *e)
{
	return group_join(&in->container->group, e);
}
