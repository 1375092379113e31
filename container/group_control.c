/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to the processes of a group: frozen, signalled, killed, listed, waited for, and watched
 * for out-of-memory events. The v2 tree does it where there is one; else the v1 freezer, or without it
 * any hierarchy that has the group.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "container/group_internal.h"

enum { FREEZE_TIMEOUT_MS = 10000, WAIT_LEAST_US = 200, WAIT_MOST_US = 10000, PIDS_FIRST = 64 };

static bool is_gone(const struct members *members)
{
	return members->fd < 0;
}

static int no_group(const struct group *group, const char *what, struct err *e)
{
	if (group->count == 0)
		return err_set(e, ENOTSUP,
		               "%s: the container has no cgroup, because its user could make none",
		               what);
	return err_set(e, ENOENT, "%s: the cgroup %s is gone", what, group->hierarchies[0].place);
}

/* ---- freeze ---- */

static int can_freeze(const struct group *group, const struct members *members, const char *what,
                      struct err *e)
{
	if (is_gone(members))
		return no_group(group, what, e);
	if (*members->controllers && !has_option(members->controllers, "freezer"))
		return err_set(
			e, ENOTSUP,
			"%s: no hierarchy is mounted here that can freeze; mount a cgroup v2 "
			"tree or the v1 hierarchy \"freezer\"",
			what);
	return 0;
}

int group_freeze(const struct group *group, bool frozen, struct err *e)
{
	struct members members = group_members(group);
	const char *what = frozen ? "freezing the container" : "thawing the container";
	int r;

	TRY(can_freeze(group, &members, what, e));
	r = members_freeze(&members, frozen, FREEZE_TIMEOUT_MS);
	if (r == 0)
		return 0;
	errno = -r;
	err_sys(e, "%s: cgroup %s", what, members.path);
	if (r != -ETIMEDOUT)
		return -e->code;
	if (!frozen)
		return err_hint(e, "a group above it is frozen: thaw that");
	/* half of it frozen is neither */
	members_freeze(&members, false, 0);
	return err_hint(e, "a process of it is stuck in the kernel; wait for it, or kill the "
	                   "container");
}

int group_is_frozen(const struct group *group, bool *frozen, struct err *e)
{
	struct members members = group_members(group);
	int r;

	*frozen = false;
	if (is_gone(&members) ||
	    (*members.controllers && !has_option(members.controllers, "freezer")))
		return 0;
	r = members_are_frozen(&members, frozen);
	if (r == 0 || r == -ENOENT || r == -ENODEV)
		return 0;
	errno = -r;
	return err_sys(e, "cgroup %s: reading whether it is frozen", members.path);
}

/* The v1 freezer, which a v2 tree may stand beside; its fd is -1 where there is none. */
static struct members freezer(const struct group *group)
{
	const struct group_hierarchy *of = group_v1(group, "freezer");

	if (!of)
		return (struct members){.fd = -1, .controllers = "", .path = ""};
	return (struct members){.fd = of->fd, .controllers = of->controllers, .path = of->path};
}

bool group_is_held(const struct group *group)
{
	struct members members = freezer(group);

	return !is_gone(&members) && members_are_held(&members);
}

void group_let_go(const struct group *group)
{
	struct members members = freezer(group);

	if (!is_gone(&members))
		members_let_go(&members);
}

/* ---- signals ---- */

int group_signal(const struct group *group, int signo, struct err *e)
{
	struct members members = group_members(group);
	int r;

	if (is_gone(&members))
		return group->count ? 0 : no_group(group, "signalling all processes", e);
	r = members_signal(&members, signo, 0);
	if (r >= 0)
		return 0;
	errno = -r;
	return err_sys(e, "cgroup %s: signalling its processes", members.path);
}

int group_kill(const struct group *group, struct err *e)
{
	struct members members = group_members(group), v1 = freezer(group);
	int r;

	if (is_gone(&members))
		return group->count ? 0 : no_group(group, "killing all processes", e);
	if (*members.controllers)
		return members_kill(&members, e);
	r = control_write(members.fd, "cgroup.kill", "1");
	/* in a v1 freezer beside it nobody dies who is frozen there */
	if (r == 0 || r == -ENODEV)
		return group_is_held(group) ? members_kill(&v1, e) : 0;
	if (r == -ENOENT)
		return members_kill(is_gone(&v1) ? &members : &v1, e);
	errno = -r;
	return err_sys(e, "cgroup %s: writing cgroup.kill", members.path);
}

/* ---- who is in it ---- */

struct pid_list {
	pid_t *pids;
	size_t count, room;
};

static int note_pid(int pid, void *data)
{
	struct pid_list *list = data;

	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : PIDS_FIRST;
		pid_t *pids = reallocarray(list->pids, room, sizeof *pids);

		if (!pids)
			return -ENOMEM;
		list->pids = pids;
		list->room = room;
	}
	list->pids[list->count++] = pid;
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	const pid_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* In order, each once: v1 may list one twice while it moves. */
static void sort_pids(struct pid_list *list)
{
	size_t kept = 0;

	if (list->count == 0)
		return;
	qsort(list->pids, list->count, sizeof *list->pids, compare_pids);
	for (size_t i = 1; i < list->count; i++)
		if (list->pids[i] != list->pids[kept])
			list->pids[++kept] = list->pids[i];
	list->count = kept + 1;
}

int group_processes(const struct group *group, pid_t **pids, size_t *count, struct err *e)
{
	struct members members = group_members(group);
	struct pid_list list = {0};
	int r;

	if (is_gone(&members) && group->count == 0)
		return no_group(group, "listing processes", e);
	r = is_gone(&members) ? 0 : members_list(&members, note_pid, &list);
	if (r < 0) {
		free(list.pids);
		errno = -r;
		return err_sys(e, "cgroup %s: listing its processes", members.path);
	}
	sort_pids(&list);
	*pids = list.pids;
	*count = list.count;
	return 0;
}

static int ignore_pid(int pid, void *data)
{
	(void)pid;
	(void)data;
	return 0;
}

/* No v1 hierarchy tells when a group is empty. */
static int wait_v1(const struct members *members, int timeout_ms)
{
	uint64_t start_us = clock_us();
	long pause_us = WAIT_LEAST_US;

	for (;;) {
		struct timespec pause = {.tv_nsec = pause_us * 1000};
		int r = members_list(members, ignore_pid, NULL);

		if (r <= 0)
			return r;
		if (clock_us() - start_us >= (uint64_t)timeout_ms * 1000)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
		pause_us = pause_us * 2 > WAIT_MOST_US ? WAIT_MOST_US : pause_us * 2;
	}
}

int group_wait_empty(const struct group *group, int timeout_ms, struct err *e)
{
	struct members members = group_members(group);
	int r;

	if (is_gone(&members))
		return 0;
	r = *members.controllers ? wait_v1(&members, timeout_ms)
	                         : control_await(members.fd, "populated", 0, timeout_ms);
	if (r == 0 || r == -ENODEV)
		return 0;
	errno = -r;
	return err_sys(e, "cgroup %s: waiting until no process is in it", members.path);
}

/* ---- out of memory ---- */

static int watch_v2(const struct group_hierarchy *of, struct err *e)
{
	char path[PATH_MAX];
	scoped_fd fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd < 0)
		return err_sys(e, "cgroup %s: watching for out-of-memory events", of->place);
	snprintf(path, sizeof path, "/proc/self/fd/%d/memory.events", of->fd);
	if (inotify_add_watch(fd, path, IN_MODIFY) < 0) {
		err_sys(e, "cgroup %s: watching memory.events", of->place);
		return err_hint(e, "the memory controller has to be enabled for it");
	}
	return take_fd(&fd);
}

static int watch_v1(const struct group_hierarchy *of, struct err *e)
{
	scoped_fd fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	scoped_fd control = openat(of->fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	char text[32];
	int r;

	if (fd < 0 || control < 0)
		return err_sys(e, "cgroup %s: watching memory.oom_control", of->place);
	snprintf(text, sizeof text, "%d %d", fd, control);
	r = control_write(of->fd, "cgroup.event_control", text);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "cgroup %s: watching memory.oom_control", of->place);
	}
	return take_fd(&fd);
}

int group_oom_watch(const struct group *group, struct err *e)
{
	const struct group_hierarchy *v1 = group_v1(group, "memory"), *v2 = group_v2(group);

	if ((v1 && v1->fd < 0) || (!v1 && (!v2 || v2->fd < 0)))
		return no_group(group, "watching for out-of-memory events", e);
	return v1 ? watch_v1(v1, e) : watch_v2(v2, e);
}
