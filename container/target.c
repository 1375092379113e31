/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places beneath a root that somebody hostile may have laid out and may be rearranging now: opened
 * as that root's own processes would find them (RESOLVE_IN_ROOT), and made where they lack. Only
 * descriptors are handed on, so that what is done next is done to what was found. No state.
 *
 * Nothing is made by a path: the parent is resolved within the root, the last name is made in it and
 * is not followed. A link that leads to nothing yet is read and walked as text, within the root again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/mounts.h"

enum { LINKS_MAX = 40, PATH_SIZE = 4096 };

int target_find(int rootfd, const char *path, int flags, uint64_t resolve, struct err *e)
{
	/* openat2 takes no empty path */
	return file_open2(rootfd, *path ? path : ".", O_PATH | flags, 0,
	                  RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve, e);
}

int target_is_root(int fd, int rootfd, struct err *e)
{
	struct statx one, other;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &one) < 0 ||
	    statx(rootfd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &other) < 0)
		return err_sys(e, "asking what was found");
	return one.stx_ino == other.stx_ino && one.stx_mnt_id == other.stx_mnt_id;
}

/* What a walk has resolved so far and what is left of it: both are texts within the root. */
struct walk {
	char path[PATH_SIZE]; /* all of it, rewritten where a link was read */
	size_t done;          /* so much of it is there, "/" or "." at the end left out */
	int links;
};

/* The name behind what is done; its length, 0 at the end. */
static size_t next_name(const struct walk *walk, size_t *start)
{
	*start = walk->done + strspn(walk->path + walk->done, "/");
	return strcspn(walk->path + *start, "/");
}

/* NAME in the parent is a link to nothing: its text goes into the path, which is walked anew. */
static int read_link(struct walk *walk, int parentfd, const char *name, size_t start, size_t length,
                     struct err *e)
{
	char text[PATH_SIZE], path[PATH_SIZE] = "";
	ssize_t size = readlinkat(parentfd, name, text, sizeof text);

	/* gone, or no link any more: somebody exchanges it, and the walk tries again */
	if (size < 0 && errno != ENOENT && errno != EINVAL)
		return err_sys(e, "reading the link \"%s\"", name);
	if (++walk->links > LINKS_MAX)
		return err_set(e, ELOOP, "\"%s\": too many symbolic links in the image", name);
	walk->done = 0;
	if (size < 0)
		return 0;
	TRY(text_format(path, sizeof path, e, "%.*s/%.*s/%s", text[0] == '/' ? 0 : (int)start,
	                walk->path, (int)size, text, walk->path + start + length));
	memcpy(walk->path, path, sizeof path);
	return 0;
}

/* The permissions do not depend on the umask that the engine has. */
static int make(int parentfd, const char *name, bool as_file)
{
	mode_t mask = umask(022);
	int result;

	if (as_file) {
		result = openat(parentfd, name,
		                O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_WRONLY, 0644);
		if (result >= 0)
			close(result);
	} else {
		result = mkdirat(parentfd, name, 0755);
	}
	umask(mask);
	return result < 0 ? -errno : 0;
}

static int open_prefix(int rootfd, struct walk *walk, size_t end, int flags, struct err *e)
{
	char behind = walk->path[end];
	int fd;

	walk->path[end] = '\0';
	fd = target_find(rootfd, walk->path, flags, 0, e);
	walk->path[end] = behind;
	return fd;
}

/*
 * One name further, which is made where it lacks. *FD was the place so far and becomes the new one.
 * 1: there is more, 0: that was the last.
 */
static int step(int rootfd, struct walk *walk, int *fd, bool as_file, struct err *e)
{
	size_t start, length = next_name(walk, &start), end = start + length;
	bool last = walk->path[end + strspn(walk->path + end, "/")] == '\0';
	int flags = last && as_file ? 0 : O_DIRECTORY, below, made;
	char name[256];

	if (length == 0)
		return 0;
	if (length >= sizeof name)
		return err_set(e, ENAMETOOLONG, "\"%.40s...\": a name is too long",
		               walk->path + start);
	memcpy(name, walk->path + start, length);
	name[length] = '\0';
	below = open_prefix(rootfd, walk, end, flags, e);
	if (below == -ENOENT) {
		made = make(*fd, name, last && as_file);
		if (made == -EEXIST)
			return read_link(walk, *fd, name, start, length, e) < 0 ? -e->code : 1;
		if (made < 0)
			return err_set(e, -made, "making \"%s\": %s", name, strerror(-made));
		below = open_prefix(rootfd, walk, end, flags, e);
	}
	if (below < 0)
		return err_in(e, "\"%s\"", name);
	walk->done = end;
	close_fd(fd);
	*fd = below;
	return !last;
}

static int walk_and_make(int rootfd, const char *path, bool as_file, struct err *e)
{
	struct walk walk = {.path = ""};
	scoped_fd fd = -1;
	int more;

	TRY(text_format(walk.path, sizeof walk.path, e, "%s", path));
	do {
		/* behind a link that was read, the walk begins at the root again */
		if (walk.done == 0) {
			close_fd(&fd);
			fd = target_find(rootfd, ".", O_DIRECTORY, 0, e);
			TRY(fd);
		}
		more = step(rootfd, &walk, &fd, as_file, e);
		TRY(more);
	} while (more);
	return take_fd(&fd);
}

int target_open(int rootfd, const char *path, bool as_file, struct err *e)
{
	int fd = target_find(rootfd, path, as_file ? 0 : O_DIRECTORY, 0, e);

	if (fd == -ENOENT)
		fd = walk_and_make(rootfd, path, as_file, e);
	return fd >= 0 ? fd : err_in(e, "%s", path);
}
