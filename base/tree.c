/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees by descriptor: removing and measuring, whatever their depth and width. They may have
 * been made by somebody hostile. Invariants:
 *  - a directory is entered only by openat2 without links and without crossing a mount;
 *  - at most LEVELS_OPEN directories are open at a time;
 *  - removing a tree of any depth takes time in proportion to its entries: what lies deeper than
 *    LEVELS_OPEN is moved up to the top of the tree and removed from there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"

enum { LEVELS_OPEN = 32, NAME_SIZE = NAME_MAX + 1 };

/* ---- shared by both walks ---- */

/* For messages: names in a tree are not ours, so they are made printable. */
#define PRINTABLE(name) text_printable(name, (char[NAME_SIZE]){0}, NAME_SIZE)

/* Opens the directory NAME for reading its entries. ENOTDIR and ELOOP mean that it is none. */
static int directory_open(int dirfd, const char *name, DIR **dir, struct err *e)
{
	scoped_fd fd = file_open2(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
	                          RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS, e);

	if (fd == -EXDEV)
		return err_set(e, EXDEV, "%s is a mount point; unmount it first", PRINTABLE(name));
	if (fd < 0)
		return err_set(e, -fd, "opening %s: %s", PRINTABLE(name), strerrordesc_np(-fd));
	*dir = fdopendir(fd);
	if (!*dir)
		return err_sys(e, "reading %s", PRINTABLE(name));
	take_fd(&fd);
	return 0;
}

/* The next entry that is neither "." nor ".."; NULL at the end; fails with -errno. */
static int directory_next(DIR *dir, struct dirent **entry, struct err *e)
{
	struct dirent *next;

	do {
		errno = 0;
		next = readdir(dir);
		if (!next && errno)
			return err_sys(e, "reading a directory");
	} while (next && (!strcmp(next->d_name, ".") || !strcmp(next->d_name, "..")));
	*entry = next;
	return 0;
}

/*
 * Splits NAME into the directory it is in (a new descriptor) and its last component. A DIRFD of the
 * caller's confines the walk to it; a path of the operator's own may have links before its end.
 */
static int parent_open(int dirfd, const char *name, char last[NAME_SIZE], struct err *e)
{
	char path[PATH_MAX];
	const char *base = path;
	size_t length;
	char *slash;

	TRY(text_format(path, sizeof path, e, "%s", name));
	for (length = strlen(path); length > 1 && path[length - 1] == '/'; length--)
		path[length - 1] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		base = slash + 1;
		*slash = '\0';
	}
	if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
		return err_set(e, EINVAL, "'%s' does not name an entry of a directory", name);
	TRY(text_format(last, NAME_SIZE, e, "%s", base));
	if (!slash)
		strcpy(path, ".");
	else if (slash == path)
		strcpy(path, "/");
	if (dirfd == AT_FDCWD)
		return file_open(dirfd, path, O_PATH | O_DIRECTORY, 0, e);
	return file_open2(dirfd, path, O_PATH | O_DIRECTORY, 0,
	                  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, e);
}

/* ---- removing ---- */

struct removal {
	int parentfd; /* where the top of the tree has its name */
	int depth;    /* directories that are open */
	uint64_t serial;
	struct {
		DIR *dir;
		char name[NAME_SIZE];
		bool progress; /* something was removed since its entries were read from the start
		                */
	} levels[LEVELS_OPEN];
};

static void removal_release(struct removal *removal)
{
	while (removal->depth)
		closedir(removal->levels[--removal->depth].dir);
}

/*
 * A name that is listed and yet not there counts as GONE, never as progress: a broken file system
 * would have it read for ever.
 */
enum removed { REMOVED, GONE, NOT_EMPTY };

/* Removes NAME unless it is a directory with entries; returns an enum removed. */
static int remove_entry(int dirfd, const char *name, bool directory, struct err *e)
{
	for (int tries = 0; tries < 2; tries++) {
		if (unlinkat(dirfd, name, directory ? AT_REMOVEDIR : 0) == 0)
			return REMOVED;
		if (errno == ENOENT)
			return GONE;
		if (directory && (errno == ENOTEMPTY || errno == EEXIST))
			return NOT_EMPTY;
		if (errno != (directory ? ENOTDIR : EISDIR))
			break;
		directory = !directory;
	}
	if (errno == EBUSY)
		return err_set(e, EBUSY, "%s is a mount point or in use; unmount it first",
		               PRINTABLE(name));
	return err_sys(e, "removing %s", PRINTABLE(name));
}

static int removal_enter(struct removal *removal, int dirfd, const char *name, struct err *e)
{
	int at = removal->depth;

	TRY(directory_open(dirfd, name, &removal->levels[at].dir, e));
	memcpy(removal->levels[at].name, name, strlen(name) + 1);
	removal->levels[at].progress = false;
	removal->depth++;
	return 0;
}

/* Moves the directory NAME up to the top of the tree, where it is found again. */
static int removal_move_up(struct removal *removal, int fromfd, const char *name, struct err *e)
{
	int topfd = dirfd(removal->levels[0].dir);
	char up[64];

	do {
		snprintf(up, sizeof up, ".removed-%d-%" PRIu64, getpid(), removal->serial++);
		if (renameat2(fromfd, name, topfd, up, RENAME_NOREPLACE) == 0) {
			removal->levels[0].progress = true;
			return 0;
		}
	} while (errno == EEXIST);
	return err_sys(e, "moving %s up out of a deep tree", PRINTABLE(name));
}

/* Every entry of the deepest open directory was read: removes it, or has it read once more. */
static int removal_leave(struct removal *removal, struct err *e)
{
	int at = removal->depth - 1;
	int fd = at ? dirfd(removal->levels[at - 1].dir) : removal->parentfd;
	int result = remove_entry(fd, removal->levels[at].name, true, e);

	TRY(result);
	if (result != NOT_EMPTY) {
		closedir(removal->levels[at].dir);
		removal->depth--;
		if (at)
			removal->levels[at - 1].progress = true;
		return 0;
	}
	if (!removal->levels[at].progress)
		return err_set(e, ENOTEMPTY,
		               "%s does not become empty; is something writing there?",
		               PRINTABLE(removal->levels[at].name));
	removal->levels[at].progress = false;
	rewinddir(removal->levels[at].dir);
	return 0;
}

static int removal_step(struct removal *removal, struct err *e)
{
	int at = removal->depth - 1;
	int fd = dirfd(removal->levels[at].dir);
	struct dirent *entry;
	int result;

	TRY(directory_next(removal->levels[at].dir, &entry, e));
	if (!entry)
		return removal_leave(removal, e);
	result = remove_entry(fd, entry->d_name, entry->d_type == DT_DIR, e);
	TRY(result);
	if (result == REMOVED)
		removal->levels[at].progress = true;
	if (result != NOT_EMPTY)
		return 0;
	if (removal->depth == LEVELS_OPEN)
		return removal_move_up(removal, fd, entry->d_name, e);
	return removal_enter(removal, fd, entry->d_name, e);
}

int tree_remove(int dirfd, const char *name, struct err *e)
{
	__attribute__((cleanup(removal_release))) struct removal removal = {0};
	char last[NAME_SIZE];
	scoped_fd parentfd = parent_open(dirfd, name, last, e);
	int result;

	if (parentfd == -ENOENT)
		return 0;
	if (parentfd < 0)
		return err_in(e, "removing %s", name);
	removal.parentfd = parentfd;
	result = remove_entry(parentfd, last, true, e);
	if (result == NOT_EMPTY)
		result = removal_enter(&removal, parentfd, last, e);
	while (result >= 0 && removal.depth)
		result = removal_step(&removal, e);
	return result < 0 ? err_in(e, "removing %s", name) : 0;
}

/* ---- measuring ---- */

/*
 * One level of the walk. The streams of the first LEVELS_OPEN levels stay open; below, the parent
 * of the current directory is closed and found again through "..", which must then be the same one.
 */
struct level {
	DIR *dir; /* NULL while closed */
	long position;
	dev_t dev;
	ino_t ino;
};

struct link_id {
	dev_t dev;
	ino_t ino;
};

struct survey {
	struct level *levels;
	size_t depth, capacity;
	void *links; /* tsearch(3) tree of the files with several names that were counted */
	uint64_t bytes, entries;
};

static void survey_release(struct survey *survey)
{
	while (survey->depth)
		if (survey->levels[--survey->depth].dir)
			closedir(survey->levels[survey->depth].dir);
	free(survey->levels);
	tdestroy(survey->links, free);
}

static int link_compare(const void *a, const void *b)
{
	const struct link_id *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* Is this the first name of the file? */
static int link_first(struct survey *survey, const struct stat *st, struct err *e)
{
	struct link_id *id = malloc(sizeof *id);
	struct link_id **found;

	if (!id)
		return err_set(e, ENOMEM, "no memory for the list of hard links");
	*id = (struct link_id){.dev = st->st_dev, .ino = st->st_ino};
	found = tsearch(id, &survey->links, link_compare);
	if (found && *found == id)
		return 1;
	free(id);
	return found ? 0 : err_set(e, ENOMEM, "no memory for the list of hard links");
}

static int survey_count(struct survey *survey, const struct stat *st, struct err *e)
{
	int first = 1;

	survey->entries++;
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return 0;
	if (S_ISREG(st->st_mode) && st->st_nlink > 1)
		first = link_first(survey, st, e);
	TRY(first);
	if (first)
		survey->bytes += (uint64_t)st->st_blocks * 512;
	return 0;
}

static int survey_reserve(struct survey *survey, struct err *e)
{
	size_t capacity = survey->capacity ? 2 * survey->capacity : LEVELS_OPEN;
	struct level *larger;

	if (survey->depth < survey->capacity)
		return 0;
	larger = reallocarray(survey->levels, capacity, sizeof *larger);
	if (!larger)
		return err_set(e, ENOMEM, "no memory for a tree of %zu levels", capacity);
	survey->levels = larger;
	survey->capacity = capacity;
	return 0;
}

static int survey_enter(struct survey *survey, int fd, const char *name, struct err *e)
{
	struct level *level, *parent;
	struct stat st;

	TRY(survey_reserve(survey, e));
	level = &survey->levels[survey->depth];
	TRY(directory_open(fd, name, &level->dir, e));
	survey->depth++;
	if (fstat(dirfd(level->dir), &st) < 0)
		return err_sys(e, "stat of %s", PRINTABLE(name));
	level->dev = st.st_dev;
	level->ino = st.st_ino;
	if (survey->depth > LEVELS_OPEN) {
		parent = level - 1;
		parent->position = telldir(parent->dir);
		closedir(parent->dir);
		parent->dir = NULL;
	}
	return survey_count(survey, &st, e);
}

/* Back to the parent of the deepest directory, where its entries were left. */
static int survey_leave(struct survey *survey, struct err *e)
{
	struct level *level = &survey->levels[survey->depth - 1];
	struct level *parent = level - 1;
	struct stat st;

	if (survey->depth > LEVELS_OPEN) {
		TRY(directory_open(dirfd(level->dir), "..", &parent->dir, e));
		if (fstat(dirfd(parent->dir), &st) < 0)
			return err_sys(e, "stat of a parent directory");
		if (st.st_dev != parent->dev || st.st_ino != parent->ino)
			return err_set(e, EBUSY,
			               "a directory was moved while it was measured; "
			               "stop what works there and try again");
		seekdir(parent->dir, parent->position);
	}
	closedir(level->dir);
	survey->depth--;
	return 0;
}

static int survey_step(struct survey *survey, struct err *e)
{
	DIR *dir = survey->levels[survey->depth - 1].dir;
	struct dirent *entry;
	struct stat st;

	TRY(directory_next(dir, &entry, e));
	if (!entry)
		return survey_leave(survey, e);
	if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "stat of %s", PRINTABLE(entry->d_name));
	if (S_ISDIR(st.st_mode))
		return survey_enter(survey, dirfd(dir), entry->d_name, e);
	return survey_count(survey, &st, e);
}

static int survey_start(struct survey *survey, int parentfd, const char *name, struct err *e)
{
	struct stat st;

	if (fstatat(parentfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "stat");
	if (S_ISDIR(st.st_mode))
		return survey_enter(survey, parentfd, name, e);
	return survey_count(survey, &st, e);
}

int tree_measure(int dirfd, const char *name, uint64_t *bytes, uint64_t *entries, struct err *e)
{
	__attribute__((cleanup(survey_release))) struct survey survey = {0};
	char last[NAME_SIZE];
	scoped_fd parentfd = parent_open(dirfd, name, last, e);
	int result = parentfd;

	if (result >= 0)
		result = survey_start(&survey, parentfd, last, e);
	while (result >= 0 && survey.depth)
		result = survey_step(&survey, e);
	if (result < 0)
		return err_in(e, "measuring %s", name);
	if (bytes)
		*bytes = survey.bytes;
	if (entries)
		*entries = survey.entries;
	return 0;
}
