/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a container's group: made or opened, kept as text, joined, removed. Owns what struct group
 * has: the descriptor of its directory in each hierarchy. A group that was opened and is gone has no
 * descriptors, and whatever is asked of it finds no processes.
 */
#include "container/group.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/group_internal.h"

void group_init(struct group *group)
{
	group->v2fd = -1;
	group->count = 0;
	group->made = false;
	group->manager = GROUP_CGROUPFS;
	group->unit = NULL;
	group->mark[0] = '\0';
	group->whose = GROUP_OURS;
	group->placeholder = 0;
}

void group_release(struct group *group)
{
	group_systemd_end_placeholder(group);
	for (int i = 0; i < group->count; i++) {
		close_fd(&group->hierarchies[i].fd);
		close_fd(&group->hierarchies[i].tasksfd);
		free(group->hierarchies[i].place);
	}
	free(group->unit);
	group_init(group);
}

/* ---- which hierarchy ---- */

const struct group_hierarchy *group_v1(const struct group *group, const char *controller)
{
	for (int i = 0; i < group->count; i++)
		if (*group->hierarchies[i].controllers &&
		    has_option(group->hierarchies[i].controllers, controller))
			return &group->hierarchies[i];
	return NULL;
}

const struct group_hierarchy *group_v2(const struct group *group)
{
	for (int i = 0; i < group->count; i++)
		if (!*group->hierarchies[i].controllers)
			return &group->hierarchies[i];
	return NULL;
}

const struct group_hierarchy *group_of(const struct group *group, const char *controller)
{
	const struct group_hierarchy *of = group_v1(group, controller);

	return of ? of : group_v2(group);
}

const struct group_hierarchy *group_deciding(const struct group *group)
{
	const struct group_hierarchy *of = group_v2(group);

	if (!of)
		of = group_v1(group, "freezer");
	if (!of && group->count)
		of = &group->hierarchies[0];
	return of;
}

struct members group_members(const struct group *group)
{
	const struct group_hierarchy *of = group_deciding(group);

	if (!of)
		return (struct members){.fd = -1, .controllers = "", .path = ""};
	return (struct members){.fd = of->fd, .controllers = of->controllers, .path = of->path};
}

/* ---- make ---- */

static int find_places(struct group *group, const char *path, const char *id, struct err *e)
{
	struct group_mounts mounts;
	int r = group_mounts_find(&mounts, e);

	for (int i = 0; r == 0 && i < mounts.count; i++) {
		scoped_mem char *below = NULL;

		r = group_path_below(&mounts.items[i], path, id, &below, e);
		if (r == 0 &&
		    !group_add(group, mounts.items[i].controllers, mounts.items[i].point, below))
			r = err_set(e, ENOMEM, "cgroup %s: no memory", below);
	}
	group_mounts_release(&mounts);
	return r;
}

static int place(struct group *group, const char *path, const char *id, struct err *e)
{
	scoped_mem char *absolute = NULL;

	if (group->manager == GROUP_CGROUPFS)
		return find_places(group, path, id, e);
	TRY(group_systemd_place(group, path, id, &absolute, e));
	return find_places(group, absolute, id, e);
}

int group_place(struct group *group, enum group_manager manager, const char *path, const char *id,
                struct err *e)
{
	group->manager = manager;
	if (group_mark_choose(group, e) < 0 || place(group, path, id, e) < 0) {
		group_release(group);
		return -e->code;
	}
	return 0;
}

static int make(struct group *group, const struct oci_resources *resources, struct err *e)
{
	if (group->manager == GROUP_SYSTEMD)
		TRY(group_systemd_start(group, resources, e));
	return group_make_directories(group, group->manager == GROUP_SYSTEMD, e);
}

int group_make(struct group *group, const struct oci_resources *resources, struct err *e)
{
	if (make(group, resources, e) < 0) {
		group_release(group);
		return -e->code;
	}
	group->made = true;
	for (int i = 0; i < group->count; i++)
		if (!*group->hierarchies[i].controllers)
			group->v2fd = group->hierarchies[i].fd;
	return 0;
}

/* ---- save, open ---- */

static const char *const manager_names[] = {"cgroupfs", "systemd"};

/* "MANAGER TAB UNIT TAB MARK", then a line for each hierarchy: "CONTROLLERS TAB MOUNT TAB PATH". */
int group_save(const struct group *group, char **text, struct err *e)
{
	scoped_mem char *saved = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&saved, &length);

	if (!out)
		return err_sys(e, "cgroup: keeping where it is");
	fprintf(out, "%s\t%s\t%s\n", manager_names[group->manager], group->unit ? group->unit : "",
	        group->mark);
	for (int i = 0; i < group->count; i++) {
		const struct group_hierarchy *of = &group->hierarchies[i];

		fprintf(out, "%s\t%.*s\t%s\n", of->controllers, (int)(of->path - of->place - 1),
		        of->place, of->path);
	}
	if (fclose(out) != 0)
		return err_set(e, ENOMEM, "cgroup: keeping where it is: no memory");
	*text = take_mem(&saved);
	return 0;
}

/* ENOENT leaves -1. That it is one is looked at: the mount may have gone since. */
static int open_directory(struct group_hierarchy *of, struct err *e)
{
	struct statfs fs;

	of->fd = open(of->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (of->fd < 0 && errno != ENOENT)
		return err_sys(e, "cgroup %s: opening it", of->place);
	if (of->fd < 0)
		return 0;
	if (fstatfs(of->fd, &fs) == 0 &&
	    fs.f_type == (*of->controllers ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC))
		return 0;
	close_fd(&of->fd);
	return err_set(e, EPROTO,
	               "%s is no cgroup any more: what was mounted there when the container was "
	               "made has gone or is hidden; mount it again",
	               of->place);
}

static int parse_lines(struct group *group, char *text, struct err *e)
{
	char *line = strsep(&text, "\n"), *manager = strsep(&line, "\t"),
	     *unit = strsep(&line, "\t");

	group->manager = strcmp(manager, "systemd") == 0 ? GROUP_SYSTEMD : GROUP_CGROUPFS;
	if (unit && *unit && !(group->unit = strdup(unit)))
		return err_set(e, ENOMEM, "cgroup: no memory");
	if (line)
		snprintf(group->mark, sizeof group->mark, "%s", line);
	while ((line = strsep(&text, "\n")) && *line) {
		char *controllers = strsep(&line, "\t"), *mount = strsep(&line, "\t");

		if (!mount || !line)
			return err_set(e, EPROTO,
			               "what is kept of the cgroup is not as we keep it");
		if (!group_add(group, controllers, mount, line))
			return err_set(e, ENOMEM, "cgroup %s: no memory", line);
	}
	return 0;
}

/* With no directory open. */
static int parse_saved(struct group *group, const char *saved, struct err *e)
{
	scoped_mem char *text = strdup(saved);

	group_init(group);
	return text ? parse_lines(group, text, e) : err_set(e, ENOMEM, "cgroup: no memory");
}

/* The deciding one. */
static int open_first(struct group *group, struct err *e)
{
	const struct group_hierarchy *first = group_deciding(group);
	struct group_hierarchy *of;

	if (!first)
		return 0;
	of = &group->hierarchies[first - group->hierarchies];
	TRY(open_directory(of, e));
	if (of->fd >= 0)
		group->whose = group_mark_compare(group, of->fd);
	if (group->whose == GROUP_OTHERS)
		close_fd(&of->fd);
	return 0;
}

static int open_all(struct group *group, const char *saved, struct err *e)
{
	const struct group_hierarchy *first;

	TRY(parse_saved(group, saved, e));
	TRY(open_first(group, e));
	if (group->whose == GROUP_OTHERS)
		return 0;
	first = group_deciding(group);
	for (int i = 0; i < group->count; i++)
		if (&group->hierarchies[i] != first)
			TRY(open_directory(&group->hierarchies[i], e));
	if (group_v2(group))
		group->v2fd = group_v2(group)->fd;
	group->made = true;
	return 0;
}

int group_open(struct group *group, const char *saved, struct err *e)
{
	if (open_all(group, saved, e) == 0)
		return 0;
	group_release(group);
	return -e->code;
}

int group_saved_is_frozen(const char *saved, bool *frozen, struct err *e)
{
	struct group group;
	int r = parse_saved(&group, saved, e);

	*frozen = false;
	if (r == 0)
		r = open_first(&group, e);
	if (r == 0)
		r = group_is_frozen(&group, frozen, e);
	group_release(&group);
	return r;
}

int group_descend(struct group *group, const char *below, struct err *e)
{
	const struct group_mount root = {.own = ""};
	scoped_mem char *path = NULL, *absolute = NULL;
	int found = 0;

	if (asprintf(&absolute, "/%s", below) < 0)
		return err_set(e, ENOMEM, "cgroup %s: no memory", below);
	if (group_path_below(&root, absolute, "", &path, e) < 0)
		return err_set(
			e, EINVAL,
			"--cgroup: \"%s\": give a path of names below the container's group, "
			"without \".\" and \"..\"",
			below);
	for (int i = 0; i < group->count; i++) {
		struct group_hierarchy *of = &group->hierarchies[i], deeper = *of;

		if (asprintf(&deeper.place, "%s/%s", of->place, path) < 0)
			return err_set(e, ENOMEM, "cgroup %s: no memory", below);
		deeper.path = deeper.place + (of->path - of->place);
		deeper.fd = openat(of->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (deeper.fd < 0) {
			free(deeper.place);
			continue;
		}
		close_fd(&of->fd);
		close_fd(&of->tasksfd);
		free(of->place);
		deeper.tasksfd = -1;
		*of = deeper;
		if (!*of->controllers)
			group->v2fd = of->fd;
		found++;
	}
	if (found)
		return 0;
	return err_set(
		e, ENOENT,
		"--cgroup: the container's group has no group \"%s\" below it; make it first",
		below);
}

/* ---- join ---- */

/* Opened while we may: who joins by them has lost the right to open them. */
int group_prepare_join(struct group *group, struct err *e)
{
	for (int i = 0; i < group->count; i++) {
		struct group_hierarchy *of = &group->hierarchies[i];

		if (!*of->controllers)
			continue;
		if (of->tasksfd < 0)
			of->tasksfd = openat(of->fd, "tasks", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
		if (of->tasksfd < 0)
			return err_sys(e, "cgroup %s: opening its tasks", of->place);
	}
	return 0;
}

static int join_failed(const struct group_hierarchy *of, struct err *e)
{
	err_sys(e, "cgroup %s: joining it", of->place);
	if (e->code == ENOSPC)
		return err_hint(e,
		                "its cpuset.cpus or cpuset.mems is empty; fill them, or those of "
		                "the group above");
	if (e->code == EBUSY)
		return err_hint(e,
		                "controllers are enabled in its cgroup.subtree_control, and then "
		                "processes may only be in groups below it");
	if (e->code == ENODEV)
		return err_hint(e, "somebody has removed it meanwhile");
	if (e->code == EPERM || e->code == EACCES)
		return err_hint(e,
		                "it has to be delegated to us: own its cgroup.procs, and that of "
		                "a group that we are below as well");
	return -e->code;
}

int group_join(const struct group *group, struct err *e)
{
	for (int i = 0; i < group->count; i++) {
		/* a task that moves itself takes no lock: moving another costs a grace period */
		if (group->hierarchies[i].tasksfd >= 0 &&
		    write(group->hierarchies[i].tasksfd, "0", 1) != 1)
			return join_failed(&group->hierarchies[i], e);
	}
	return 0;
}

int group_move(const struct group *group, pid_t pid, struct err *e)
{
	char text[16];

	snprintf(text, sizeof text, "%d", pid);
	for (int i = 0; i < group->count; i++) {
		int r = control_write(group->hierarchies[i].fd, "cgroup.procs", text);

		if (r == -EACCES && group->manager == GROUP_SYSTEMD) {
			TRY(group_systemd_attach(group, pid, e));
		} else if (r < 0) {
			errno = -r;
			return join_failed(&group->hierarchies[i], e);
		}
	}
	return 0;
}

/* ---- remove ---- */

static int remove_one(const struct group_hierarchy *of, struct err *e)
{
	size_t above = (size_t)(of->path - of->place) - 1;
	scoped_mem char *mount = NULL;

	if (rmdir(of->place) == 0 || errno == ENOENT)
		return 0;
	mount = strndup(of->place, above);
	if (!mount)
		return err_set(e, ENOMEM, "cgroup %s: no memory", of->place);
	return hierarchy_remove(mount, of->path, e);
}

/* The deciding one last: what a crash leaves is found by it, and nobody takes it meanwhile. */
int group_remove(struct group *group, struct err *e)
{
	const struct group_hierarchy *last = group_deciding(group);

	if (!group->made) {
		group_release(group);
		return 0;
	}
	group_systemd_end_placeholder(group);
	if (group->unit)
		TRY(group_systemd_stop(group, e));
	for (int i = 0; i < group->count; i++)
		if (&group->hierarchies[i] != last)
			TRY(remove_one(&group->hierarchies[i], e));
	if (last)
		TRY(remove_one(last, e));
	group_release(group);
	return 0;
}
