/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a group is: a random mark on its directory, which the container's record has as well. Owns
 * nothing.
 *
 *  - A path tells nothing: what was removed may have been made anew, by another container, another store,
 *    another runtime. So nobody in a group is killed, frozen or listed before the mark is compared.
 *  - The mark is made by XATTR_CREATE: of two who want one group, one gets it.
 *  - It is on the directory of one hierarchy, the deciding one, which is made first and removed last.
 *  - "trusted." is out of the container's reach even where its group is given to it; a user without
 *    privilege may have "user." only.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>

#include "base/strings.h"
#include "container/group_internal.h"

enum { MARK_BYTES = (GROUP_MARK_SIZE - 1) / 2 };

static const char *const attributes[] = {"trusted.agentdock", "user.agentdock"};

enum { ATTRIBUTES = sizeof attributes / sizeof *attributes };

int group_mark_choose(struct group *group, struct err *e)
{
	unsigned char bytes[MARK_BYTES];

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return err_sys(e, "choosing the mark of a cgroup");
	for (int i = 0; i < MARK_BYTES; i++)
		snprintf(group->mark + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int others(const char *place, int length, struct err *e)
{
	return err_set(e, EBUSY,
	               "cgroup %.*s is another container's: it has its mark (%s); delete that "
	               "container, remove the cgroup if there is none any more, or give another "
	               "linux.cgroupsPath",
	               length, place, attributes[0]);
}

int group_mark_set(const struct group *group, int fd, const char *place, struct err *e)
{
	for (int i = 0; i < ATTRIBUTES; i++) {
		if (fsetxattr(fd, attributes[i], group->mark, GROUP_MARK_SIZE - 1, XATTR_CREATE) ==
		    0)
			return 0;
		if (errno == EEXIST)
			return others(place, (int)strlen(place), e);
		if (errno != EOPNOTSUPP && (errno != EPERM || i == ATTRIBUTES - 1))
			return err_sys(e, "cgroup %s: marking it as the container's", place);
	}
	return 0; /* no mark can be had: group_mark_compare is unsure */
}

void group_mark_remove(int fd)
{
	for (int i = 0; i < ATTRIBUTES; i++)
		fremovexattr(fd, attributes[i]);
}

enum group_whose group_mark_compare(const struct group *group, int fd)
{
	char mark[GROUP_MARK_SIZE];

	for (int i = 0; i < ATTRIBUTES; i++) {
		ssize_t length = fgetxattr(fd, attributes[i], mark, sizeof mark);

		if (length < 0 && errno != ERANGE)
			continue;
		return length == GROUP_MARK_SIZE - 1 &&
		                       memcmp(mark, group->mark, (size_t)length) == 0
		               ? GROUP_OURS
		               : GROUP_OTHERS;
	}
	return errno == EOPNOTSUPP || !*group->mark ? GROUP_UNSURE : GROUP_UNMARKED;
}

/* ---- above and below: who is killed with a group is whoever is below it ---- */

int group_mark_check_above(const struct group_hierarchy *of, struct err *e)
{
	char above[4096];

	for (const char *slash = strchr(of->path, '/'); slash; slash = strchr(slash + 1, '/')) {
		int length = (int)(slash - of->place);

		TRY(text_format(above, sizeof above, e, "%.*s", length, of->place));
		for (int i = 0; i < ATTRIBUTES; i++)
			if (getxattr(above, attributes[i], NULL, 0) >= 0)
				return others(of->place, length, e);
	}
	return 0;
}

static int look_below(int parentfd, const char *name, int fd, void *data)
{
	(void)parentfd;
	(void)name;
	return group_mark_compare(data, fd) == GROUP_OTHERS ? -EBUSY : 0;
}

int group_mark_check_below(struct group *group, int fd, const char *place, struct err *e)
{
	if (hierarchy_walk(fd, look_below, group) != -EBUSY)
		return 0;
	return err_set(e, EBUSY,
	               "cgroup %s has one below it that is another container's; delete that "
	               "container, or give another linux.cgroupsPath",
	               place);
}
