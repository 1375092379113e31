/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the score that concern the control group. A container that a user without privilege makes,
 * where no group was asked for and none may be made, has none: then whatever limit it asks for is
 * refused, and devices are kept from it by its user namespace.
 */
#include <errno.h>
#include <unistd.h>

#include "base/process.h"
#include "container/container.h"

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
	if (group_make(&container->group, e) == 0)
		return 0;
	return may_do_without(container, e) ? 0 : -e->code;
}

int set_resources(struct container *container, struct err *e)
{
	const struct oci_resources *resources = container->config->linux_part->resources;

	TRY(group_set(&container->group, resources, false, e));
	return group_set_devices(&container->group, resources, e);
}

int join_group(struct inside *in, struct err *e)
{
	return group_join(&in->container->group, e);
}
