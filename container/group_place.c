/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a group is to be: the hierarchies that this mount namespace shows, our own group in each, and
 * the way from linux.cgroupsPath to a directory. Every hierarchy that /proc/self/cgroup names and
 * mountinfo shows is taken once; a mount of a whole hierarchy comes before one of a part of it, as
 * containers have them, and of those the one that our own group is below.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/group_internal.h"

enum { MOUNTINFO_MOST = 16 << 20, RANK_NONE = 0, RANK_ELSEWHERE, RANK_OURS, RANK_WHOLE };

void group_mounts_release(struct group_mounts *mounts)
{
	free(mounts->cgroup_text);
	free(mounts->mountinfo_text);
	*mounts = (struct group_mounts){0};
}

/* The lines "N:CONTROLLERS:PATH"; a path may have colons. */
static int note_own(struct group_mounts *mounts, char *text, struct err *e)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (*line == '\0')
			continue;
		if (!path || path[1] != '/')
			return err_set(e, EPROTO,
			               "/proc/self/cgroup: a line is not in the form that "
			               "cgroups(7) gives; mount /proc of this kernel there");
		if (mounts->count == GROUP_HIERARCHIES_MAX)
			return err_set(e, E2BIG,
			               "/proc/self/cgroup: more than %d hierarchies; unmount those "
			               "that nobody needs",
			               GROUP_HIERARCHIES_MAX);
		*path = '\0';
		mounts->items[mounts->count++] = (struct group_mount){
			.controllers = controllers + 1, .own = path + 1};
	}
	return 0;
}

/* How the path "/a/b" is written below ROOT: "b" of "/a". NULL: it is not below it. */
static const char *path_below(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	path += length;
	return path + strspn(path, "/");
}

static bool is_of(const struct mount_line *line, const char *controllers)
{
	char first[64];

	if (*controllers == '\0')
		return strcmp(line->type, "cgroup2") == 0;
	snprintf(first, sizeof first, "%.*s", (int)strcspn(controllers, ","), controllers);
	return strcmp(line->type, "cgroup") == 0 && has_option(line->options, first);
}

struct group_candidate {
	const char *point, *own;
	int rank;
};

static void note_mount(struct group_mount *mount, struct group_candidate *best,
                       const struct mount_line *line, bool checked)
{
	const char *below = path_below(mount->own, line->root);
	int rank = strcmp(line->root, "/") == 0 ? RANK_WHOLE : below ? RANK_OURS : RANK_ELSEWHERE;

	if (rank <= best->rank || strpbrk(line->point, "\t\n") ||
	    (checked && !is_filesystem(line->point, *mount->controllers ? CGROUP_SUPER_MAGIC
	                                                                : CGROUP2_SUPER_MAGIC)))
		return;
	*best = (struct group_candidate){line->point, below ? below : "", rank};
}

int group_mounts_parse(struct group_mounts *mounts, char *cgroup_text, char *mountinfo_text,
                       bool checked, struct err *e)
{
	struct group_candidate best[GROUP_HIERARCHIES_MAX] = {0};
	char *line;
	int kept = 0;

	*mounts = (struct group_mounts){.cgroup_text = cgroup_text,
	                                .mountinfo_text = mountinfo_text};
	TRY(note_own(mounts, cgroup_text, e));
	while ((line = strsep(&mountinfo_text, "\n"))) {
		struct mount_line mount;

		if (!strstr(line, " - cgroup"))
			continue;
		if (!mount_line_parse(line, &mount))
			return err_set(e, EPROTO,
			               "/proc/self/mountinfo: a line is not in the form that "
			               "proc(5) gives; mount /proc of this kernel there");
		for (int i = 0; i < mounts->count; i++)
			if (is_of(&mount, mounts->items[i].controllers))
				note_mount(&mounts->items[i], &best[i], &mount, checked);
	}
	for (int i = 0; i < mounts->count; i++) {
		if (best[i].rank == RANK_NONE)
			continue;
		mounts->items[kept++] = (struct group_mount){
			.controllers = mounts->items[i].controllers,
			.point = best[i].point,
			.own = best[i].own,
		};
	}
	mounts->count = kept;
	if (kept > 0)
		return 0;
	return err_set(
		e, ENOTSUP,
		"no cgroup hierarchy is mounted here (see /proc/self/mountinfo), and without "
		"one a container cannot be limited or killed for sure; mount -t cgroup2 "
		"cgroup2 /sys/fs/cgroup");
}

int group_mounts_find(struct group_mounts *mounts, struct err *e)
{
	scoped_mem char *cgroup_text = NULL, *mountinfo_text = NULL;
	size_t length;
	int r;

	*mounts = (struct group_mounts){0};
	TRY(file_read_all(AT_FDCWD, "/proc/self/cgroup", MOUNTINFO_MOST, &cgroup_text, &length, e));
	TRY(file_read_all(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MOST, &mountinfo_text,
	                  &length, e));
	r = group_mounts_parse(mounts, take_mem(&cgroup_text), take_mem(&mountinfo_text), true, e);
	if (r < 0)
		group_mounts_release(mounts);
	return r;
}

/* ---- linux.cgroupsPath ---- */

/* Copies the components of PATH without "//" and "/" at its ends; false: one is "." or "..", or has a
 * control character, which would tear the lines that are kept of it. */
static bool copy_components(char *out, const char *path)
{
	char *start = out;

	while (*(path += strspn(path, "/"))) {
		size_t length = strcspn(path, "/");

		if ((length == 1 && *path == '.') || (length == 2 && strncmp(path, "..", 2) == 0))
			return false;
		for (size_t i = 0; i < length; i++)
			if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
				return false;
		if (out > start)
			*out++ = '/';
		memcpy(out, path, length);
		out += length;
		path += length;
	}
	*out = '\0';
	return true;
}

int group_path_below(const struct group_mount *mount, const char *cgroups_path, const char *id,
                     char **path, struct err *e)
{
	bool is_default = !cgroups_path || !*cgroups_path;
	bool absolute = is_default || *cgroups_path == '/';
	const char *from = is_default ? id : cgroups_path;
	size_t size = strlen(mount->own) + strlen(from) + sizeof "/agentdock/";
	scoped_mem char *joined = malloc(size), *clean = malloc(size);

	if (!joined || !clean)
		return err_set(e, ENOMEM, "linux.cgroupsPath: no memory");
	snprintf(joined, size, "%s/%s%s", absolute ? "" : mount->own,
	         is_default ? "agentdock/" : "", from);
	if (!copy_components(clean, joined))
		return err_set(e, EINVAL,
		               "linux.cgroupsPath: \"%s\": give a path of names, without \".\", "
		               "\"..\" and control characters",
		               from);
	if (*clean == '\0' || (!absolute && strcmp(clean, mount->own) == 0))
		return err_set(e, EINVAL,
		               "linux.cgroupsPath: \"%s\" is the root of a hierarchy or the group "
		               "that we are in; give one below it, for the container alone",
		               from);
	*path = take_mem(&clean);
	return 0;
}

struct group_hierarchy *group_add(struct group *group, const char *controllers, const char *mount,
                                  const char *path)
{
	struct group_hierarchy *added = &group->hierarchies[group->count];
	size_t length = strcmp(mount, "/") == 0 ? 0 : strlen(mount);

	if (group->count == GROUP_HIERARCHIES_MAX ||
	    strlen(controllers) >= sizeof added->controllers)
		return NULL;
	*added = (struct group_hierarchy){.fd = -1, .tasksfd = -1};
	if (asprintf(&added->place, "%.*s/%s", (int)length, mount, path) < 0)
		return NULL;
	added->path = added->place + length + 1;
	snprintf(added->controllers, sizeof added->controllers, "%s", controllers);
	group->count++;
	return added;
}
