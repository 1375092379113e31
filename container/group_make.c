/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of a group: made in each hierarchy and opened, ready to be joined. What fails half-way
 * removes what it made, and no group that was there. A group that is there already is taken when it is
 * empty and not frozen: engines make groups before they call a runtime. And given to another user.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "container/group_internal.h"

enum { MAKE_ATTEMPTS = 16, CPUSET_TEXT_SIZE = 4096 };

/* ---- v1 cpusets: a new one is empty, and nothing can be in it ---- */

static const char *const cpuset_files[] = {"cpuset.cpus", "cpuset.mems"};

static int cpuset_failed(int code, const char *place, const char *file, struct err *e)
{
	errno = code;
	err_sys(e, "cgroup %s: giving it %s of the group above", place, file);
	return err_hint(e, "a cpuset has to be filled before anything can be in it");
}

/* From the mount down: each group that is empty gets what the one above it has. */
static int cpuset_fill(const struct group_hierarchy *of, const char *file, struct err *e)
{
	char path[PATH_MAX], text[CPUSET_TEXT_SIZE], own[CPUSET_TEXT_SIZE];
	const char *slash = of->path - 1;
	int r;

	for (text[0] = '\0'; slash; slash = *slash ? strchrnul(slash + 1, '/') : NULL) {
		TRY(text_format(path, sizeof path, e, "%.*s/%s", (int)(slash - of->place),
		                of->place, file));
		r = control_read(AT_FDCWD, path, own, sizeof own);
		if (r >= 0 && own[0] != '\n' && own[0] != '\0')
			memcpy(text, own, sizeof text);
		else if (r >= 0)
			r = control_write(AT_FDCWD, path, text);
		if (r < 0)
			return cpuset_failed(-r, of->place, file, e);
	}
	return 0;
}

static int cpuset_inherit(const struct group_hierarchy *of, bool made, struct err *e)
{
	char above[32], text[CPUSET_TEXT_SIZE];

	for (size_t i = 0; i < sizeof cpuset_files / sizeof *cpuset_files; i++) {
		snprintf(above, sizeof above, "../%s", cpuset_files[i]);
		if (made && control_read(of->fd, above, text, sizeof text) > 1 &&
		    control_write(of->fd, cpuset_files[i], text) == 0)
			continue;
		TRY(cpuset_fill(of, cpuset_files[i], e));
	}
	return 0;
}

/* ---- v2: controllers from the root down ---- */

static int enable_failed(const char *place, int length, const char *controller, int code,
                         struct err *e)
{
	if (code == EBUSY)
		return err_set(e, EBUSY,
		               "the %s controller cannot be enabled in cgroup.subtree_control of "
		               "cgroup %.*s, because processes sit in that group itself; move them "
		               "into a group below it, or give another linux.cgroupsPath",
		               controller, length, place);
	errno = code;
	err_sys(e, "the %s controller cannot be enabled in cgroup.subtree_control of cgroup %.*s",
	        controller, length, place);
	if (code == EINVAL)
		return err_hint(e, "move real-time processes out of the groups below it");
	if (code == ENOENT)
		return err_hint(e, "the groups above it do not pass it on: enable it there");
	return err_hint(e, "delegate it: who runs us must own the files of that group");
}

int group_enable(const struct group *group, const char *controller, struct err *e)
{
	const struct group_hierarchy *v2 = group_v2(group);
	char path[PATH_MAX], text[CONTROL_TEXT_SIZE];
	const char *slash = v2->path - 1;

	TRY(text_format(path, sizeof path, e, "%.*s/cgroup.controllers", (int)(slash - v2->place),
	                v2->place));
	if (control_read(AT_FDCWD, path, text, sizeof text) >= 0 &&
	    !control_has_word(text, controller))
		return err_set(e, ENOENT,
		               "the cgroup v2 tree at %.*s has no %s controller; look at "
		               "cgroup_disable= on the kernel's command line, or delegate it to "
		               "this tree",
		               (int)(slash - v2->place), v2->place, controller);
	for (; *slash; slash = strchrnul(slash + 1, '/')) {
		int length = (int)(slash - v2->place), r;
		scoped_fd fd = -1;

		TRY(text_format(path, sizeof path, e, "%.*s/", length, v2->place));
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : subtree_enable(fd, controller);
		if (r < 0)
			return enable_failed(v2->place, length, controller, -r, e);
	}
	return 0;
}

/* Enables what can be; what cannot is the error of a setting that wants it, which tells the cause. */
static void delegate(const struct group *group)
{
	const struct group_hierarchy *v2 = group_v2(group);
	char path[PATH_MAX], all[CONTROL_TEXT_SIZE], have[CONTROL_TEXT_SIZE], *next = all, *word;
	struct err ignored;

	if (text_format(path, sizeof path, &ignored, "%.*s/cgroup.controllers",
	                (int)(v2->path - 1 - v2->place), v2->place) < 0 ||
	    control_read(AT_FDCWD, path, all, sizeof all) < 0 ||
	    control_read(v2->fd, "cgroup.controllers", have, sizeof have) < 0)
		return;
	while ((word = strsep(&next, " \n")))
		if (*word && !control_has_word(have, word))
			group_enable(group, word, &ignored);
}

/* ---- each hierarchy ---- */

static int make_failed(const char *place, int code, struct err *e)
{
	errno = code;
	err_sys(e, "cgroup %s: making it", place);
	if (code == EROFS)
		return err_hint(e, "the hierarchy is mounted read-only here: mount it read-write");
	if (code == EAGAIN)
		return err_hint(e, "see cgroup.max.depth and cgroup.max.descendants of the groups "
		                   "above it");
	if (code == EACCES || code == EPERM)
		return err_hint(e, "run as root, or have the group above it delegated to this user "
		                   "(by systemd: --systemd-cgroup)");
	return -code;
}

static int make_above(const struct group_hierarchy *of)
{
	char above[PATH_MAX];

	for (const char *slash = strchr(of->path, '/'); slash; slash = strchr(slash + 1, '/')) {
		if (snprintf(above, sizeof above, "%.*s", (int)(slash - of->place), of->place) >=
		    (int)sizeof above)
			return -ENAMETOOLONG;
		if (mkdir(above, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* 1: made; 0: it was there. ENOENT: the parent is not there yet, or another has just removed it. */
static int make_directory(const struct group_hierarchy *of)
{
	for (int attempt = 0; mkdir(of->place, 0755) < 0; attempt++) {
		int r = -errno;

		if (r == -EEXIST)
			return 0;
		if (r == -ENOENT || r == -ENODEV)
			r = make_above(of);
		if (r < 0 && ((r != -ENOENT && r != -ENODEV) || attempt == MAKE_ATTEMPTS))
			return r;
		if (attempt == MAKE_ATTEMPTS)
			return -ENOENT;
	}
	return 1;
}

static int note_pid(int pid, void *data)
{
	*(int *)data = pid;
	return 0;
}

/* Whoever is in it would be limited, frozen and killed as the container. */
static int check_empty(const struct group_hierarchy *of, struct err *e)
{
	struct members members = {of->fd, of->controllers, of->path};
	int pid = 0, count = members_list(&members, note_pid, &pid);

	if (count == 0)
		return 0;
	if (count < 0) {
		errno = -count;
		return err_sys(e, "cgroup %s: looking who is in it", of->place);
	}
	return err_set(e, EBUSY,
	               "cgroup %s is there already and has processes (%d of them, one is %d); end "
	               "them or move them out, or give another linux.cgroupsPath",
	               of->place, count, pid);
}

/* A group below a frozen one begins frozen, and so would all that is put into it, without a word. */
static int check_thawed(const struct group_hierarchy *of, struct err *e)
{
	struct members members = {of->fd, of->controllers, of->path};
	bool v1 = *of->controllers, frozen;

	if ((v1 && !has_option(of->controllers, "freezer")) ||
	    members_are_frozen(&members, &frozen) < 0 || !frozen)
		return 0;
	return err_set(e, EBUSY,
	               "cgroup %s is frozen, and nothing can start in it: write %s, or to that of "
	               "the group above it which is frozen",
	               of->place, v1 ? "THAWED to its freezer.state" : "0 to its cgroup.freeze");
}

static int make_and_open(struct group_hierarchy *of, bool *made, struct err *e)
{
	int r = make_directory(of);

	if (r < 0)
		return make_failed(of->place, -r, e);
	*made = r;
	of->fd = open(of->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (of->fd < 0)
		return err_sys(e, "cgroup %s: opening it", of->place);
	return 0;
}

/* Whether it can be taken, by now that it is marked. */
static int make_usable(const struct group_hierarchy *of, bool shared, bool made, struct err *e)
{
	if (!made && !shared)
		TRY(check_empty(of, e));
	TRY(check_thawed(of, e));
	if (*of->controllers && has_option(of->controllers, "cpuset"))
		TRY(cpuset_inherit(of, made, e));
	return 0;
}

/* The deciding directory is ours from here on; or another's, even if it was us who made it. */
static int claim(struct group *group, struct group_hierarchy *of, bool *made, bool *marked,
                 struct err *e)
{
	TRY(make_and_open(of, made, e));
	if (group_mark_set(group, of->fd, of->place, e) < 0) {
		*made &= e->code != EBUSY;
		return -e->code;
	}
	*marked = true;
	TRY(group_mark_check_above(of, e));
	return *made ? 0 : group_mark_check_below(group, of->fd, of->place, e);
}

int group_make_directories(struct group *group, bool shared, struct err *e)
{
	bool made[GROUP_HIERARCHIES_MAX] = {0}, marked = false;
	int first = (int)(group_deciding(group) - group->hierarchies);
	int r = claim(group, &group->hierarchies[first], &made[first], &marked, e);

	for (int i = 0; r == 0 && i < group->count; i++) {
		if (i != first)
			r = make_and_open(&group->hierarchies[i], &made[i], e);
		if (r == 0)
			r = make_usable(&group->hierarchies[i], shared, made[i], e);
	}
	if (r == 0)
		r = group_prepare_join(group, e);
	if (r < 0 && marked && !made[first])
		group_mark_remove(group->hierarchies[first].fd);
	for (int i = 0; r < 0 && i < group->count; i++)
		if (made[i])
			rmdir(group->hierarchies[i].place);
	if (r == 0 && group_v2(group))
		delegate(group);
	return r;
}

/* ---- the owner ---- */

int group_give(const struct group *group, uid_t uid, struct err *e)
{
	static const char always[] = "cgroup.procs\ncgroup.subtree_control\ncgroup.threads";
	const struct group_hierarchy *v2 = group_v2(group);
	char names[CONTROL_TEXT_SIZE], *next = names, *name;
	int r;

	if (!v2 || group->count > 1)
		return 0;
	r = control_read(AT_FDCWD, "/sys/kernel/cgroup/delegate", names, sizeof names);
	if (r == -ENOENT)
		memcpy(names, always, sizeof always);
	else if (r < 0)
		return err_set(e, -r, "/sys/kernel/cgroup/delegate: reading it: %s", strerror(-r));
	if (fchown(v2->fd, uid, (gid_t)-1) < 0)
		return err_sys(e, "cgroup %s: giving it to user %u", v2->place, uid);
	/* not all that can be handed on is in each group */
	while ((name = strsep(&next, "\n")))
		if (*name && fchownat(v2->fd, name, uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0 &&
		    errno != ENOENT)
			return err_sys(e, "cgroup %s: giving its %s to user %u", v2->place, name,
			               uid);
	return 0;
}
