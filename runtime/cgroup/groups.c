/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups as directories of one hierarchy: make, open, walk, remove. Everything is resolved beneath
 * the descriptor of the mount's root, without links and without another mount.
 */
#include "runtime/cgroup/hierarchy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"

enum {
	MAKE_ATTEMPTS = 16,
	LEVELS_FIRST = 8,
	LEVEL_SPARE = 64,
	REMOVE_TIMEOUT_US = 2000000,
	REMOVE_BACKOFF_LEAST_US = 100,
	REMOVE_BACKOFF_MOST_US = 20000,
};

static const uint64_t BENEATH = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;

static int mount_open(const char *mount, struct err *e)
{
	return file_open(AT_FDCWD, mount, O_PATH | O_DIRECTORY, 0, e);
}

/* Makes the groups above PATH that are missing. */
static int make_above(int mountfd, const char *path)
{
	char above[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
		if (mkdirat(mountfd, above, 0755) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

int hierarchy_make(const char *mount, const char *path, struct err *e)
{
	scoped_fd mountfd = mount_open(mount, e);
	int fd;

	TRY(mountfd);
	/* ENOENT: the parent is not there yet, or another process has just removed it. */
	for (int attempt = 0; mkdirat(mountfd, path, 0755) < 0; attempt++) {
		if (errno == EEXIST)
			return err_set(e, EEXIST,
			               "cgroup %s/%s: a group of this name is there already; "
			               "remove it, or choose another name",
			               mount, path);
		if ((errno == ENOENT || errno == ENODEV) && attempt < MAKE_ATTEMPTS &&
		    (make_above(mountfd, path) == 0 || errno == ENOENT || errno == ENODEV))
			continue;
		err_sys(e, "cgroup %s/%s: making it", mount, path);
		return err_hint(e, "%s",
		                e->code == EROFS ? "the hierarchy is mounted read-only here: mount "
		                                   "it read-write for agentdock"
		                                 : "agentdock must run as root, or own the parent "
		                                   "group; see agentdock doctor");
	}
	fd = file_open2(mountfd, path, O_RDONLY | O_DIRECTORY, 0, BENEATH, e);
	if (fd < 0)
		unlinkat(mountfd, path, AT_REMOVEDIR);
	return fd;
}

int hierarchy_open(const char *mount, const char *path, struct err *e)
{
	scoped_fd mountfd = mount_open(mount, e);

	TRY(mountfd);
	return file_open2(mountfd, path, O_RDONLY | O_DIRECTORY, 0, BENEATH, e);
}

/*
 * The kernel would enable cpu and pids in a group that has processes, and make it the root of a
 * threaded subtree, in which no group of ours can have a process. Only the root (which has no
 * cgroup.type) may have both.
 */
int subtree_enable(int groupfd, const char *controller)
{
	char text[CONTROL_TEXT_SIZE], enable[CONTROLLER_NAME_SIZE + 1];

	if (control_read(groupfd, "cgroup.subtree_control", text, sizeof text) >= 0 &&
	    control_has_word(text, controller))
		return 0;
	if (faccessat(groupfd, "cgroup.type", F_OK, 0) == 0 &&
	    control_read(groupfd, "cgroup.procs", text, sizeof text) > 0)
		return -EBUSY;
	snprintf(enable, sizeof enable, "+%s", controller);
	return control_write(groupfd, "cgroup.subtree_control", enable);
}

/* One group on the way down: the names of those below it, each with its NUL, and how far we are. */
struct level {
	char *names;
	size_t length, room, at, current;
};

/* The way down to FD. One descriptor, whatever the depth: who is in a group may make it as deep as he
 * likes. */
struct walk {
	int fd;
	struct level *levels;
	size_t depth, room;
};

static int list_below(int fd, struct level *level)
{
	scoped_fd again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_dir dir = NULL;
	struct dirent *entry;

	if (again < 0)
		return -errno;
	dir = fdopendir(again);
	if (!dir)
		return -errno;
	take_fd(&again);
	while ((entry = readdir(dir))) {
		size_t size = strlen(entry->d_name) + 1;

		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (!bytes_grow(&level->names, &level->room, level->length + size, LEVEL_SPARE))
			return -ENOMEM;
		memcpy(level->names + level->length, entry->d_name, size);
		level->length += size;
	}
	return 0;
}

/* Goes down to FD, which it takes. */
static int walk_down(struct walk *walk, int fd)
{
	if (walk->depth == walk->room) {
		size_t room = 2 * walk->room + LEVELS_FIRST;
		struct level *levels = reallocarray(walk->levels, room, sizeof *levels);

		if (!levels) {
			close(fd);
			return -ENOMEM;
		}
		walk->levels = levels;
		walk->room = room;
	}
	close_fd(&walk->fd);
	walk->fd = fd;
	walk->levels[walk->depth] = (struct level){0};
	return list_below(fd, &walk->levels[walk->depth++]);
}

/* A group has its place for good, so ".." is the one that we came from. */
static int walk_up(struct walk *walk, hierarchy_visit *visit, void *data)
{
	const struct level *above = &walk->levels[walk->depth - 2];
	int parentfd = openat(walk->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (parentfd < 0)
		return -errno;
	r = visit(parentfd, above->names + above->current, walk->fd, data);
	close_fd(&walk->fd);
	walk->fd = parentfd;
	free(walk->levels[--walk->depth].names);
	return r;
}

static int walk_on(struct walk *walk, hierarchy_visit *visit, void *data)
{
	for (;;) {
		struct level *level = &walk->levels[walk->depth - 1];
		int fd;

		if (level->at == level->length && walk->depth == 1)
			return visit(-1, "", walk->fd, data);
		if (level->at == level->length) {
			TRY(walk_up(walk, visit, data));
			continue;
		}
		level->current = level->at;
		level->at += strlen(level->names + level->at) + 1;
		fd = openat(walk->fd, level->names + level->current,
		            O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 && errno != ENOENT)
			return -errno;
		if (fd >= 0)
			TRY(walk_down(walk, fd));
	}
}

int hierarchy_walk(int groupfd, hierarchy_visit *visit, void *data)
{
	struct walk walk = {.fd = -1};
	int fd = openat(groupfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = walk_down(&walk, fd);
	if (r == 0)
		r = walk_on(&walk, visit, data);
	while (walk.depth > 0)
		free(walk.levels[--walk.depth].names);
	free(walk.levels);
	close_fd(&walk.fd);
	return r;
}

static int remove_one(int parentfd, const char *name, int fd, void *data)
{
	(void)fd;
	(void)data;
	if (parentfd >= 0 && unlinkat(parentfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* One attempt: the group alone, or when that says that it is not empty, what is below it first. */
static int remove_attempt(int mountfd, const char *path)
{
	scoped_fd fd = -1;
	int result;

	if (unlinkat(mountfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY && errno != ENOTEMPTY)
		return -errno;
	fd = openat(mountfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	result = hierarchy_walk(fd, remove_one, NULL);
	if (result < 0)
		return result;
	return unlinkat(mountfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int hierarchy_remove(const char *mount, const char *path, struct err *e)
{
	scoped_fd mountfd = mount_open(mount, e);
	uint64_t start_us = clock_us();
	long backoff_us = REMOVE_BACKOFF_LEAST_US;

	TRY(mountfd);
	for (;;) {
		struct timespec pause = {.tv_nsec = backoff_us * 1000};
		int result = remove_attempt(mountfd, path);

		if (result == 0)
			return 0;
		if ((result != -EBUSY && result != -ENOTEMPTY && result != -ENOENT) ||
		    clock_us() - start_us > REMOVE_TIMEOUT_US) {
			errno = -result;
			err_sys(e, "cgroup %s/%s: removing it", mount, path);
			if (result == -EBUSY)
				err_hint(e, "processes are still in it (see its cgroup.procs); end "
				            "them and try again");
			return -e->code;
		}
		/* No hierarchy tells when a group that drains has drained. */
		nanosleep(&pause, NULL);
		backoff_us = backoff_us * 2 > REMOVE_BACKOFF_MOST_US ? REMOVE_BACKOFF_MOST_US
		                                                     : backoff_us * 2;
	}
}
