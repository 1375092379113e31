/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree that an archive becomes. Nothing is ever made, changed or removed but beneath rootfd:
 *   - a path is resolved by openat2 (RESOLVE_BENEATH, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV) to the
 *     directory of its last name; a symbolic link on the way is an error, so links cannot redirect
 *     what follows them, whatever the order of entries;
 *   - the last name is made with O_EXCL or its like, after what was there is unlinked, so that no
 *     byte is written to a file that another name (a hard link) shares;
 *   - directories get their owner, mode and time at the end, when nothing is made in them any more.
 * Paths are relative, without empty, "." or ".." components (path_clean sees to it).
 */
#ifndef ARCHIVE_TARGET_H
#define ARCHIVE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "archive/archive.h"
#include "base/err.h"

struct attributes {
	mode_t mode; /* permission bits as they shall be */
	bool change_owner;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
};

struct pending_directory;

struct target {
	int rootfd;   /* the caller's */
	int parentfd; /* the directory of the last entry, -1: none */
	size_t parent_length;
	char parent[ARCHIVE_PATH_MAX];
	uint64_t *entries; /* counts the directories that no entry names */
	uint64_t limit_entries;
	struct attributes implied; /* theirs */

	struct pending_directory *pending;
	size_t pending_count, pending_room;
	char *names; /* of the pending ones */
	size_t names_used, names_room;
};

void target_init(struct target *target, int rootfd, uint64_t *entries, uint64_t limit_entries,
                 const struct attributes *implied);
void target_release(struct target *target);

/* Copies PATH without what is not wanted of it; an empty result is the root itself. ".." is
 * EBADMSG; a path that is too long, too. */
int path_clean(const char *path, char clean[ARCHIVE_PATH_MAX], struct err *e);

/* An empty file, open for writing: the caller fills it, calls target_finish_file, closes it. */
int target_file(struct target *target, const char *path, struct err *e);
int target_finish_file(int fd, const char *path, const struct attributes *attributes,
                       struct err *e);
int target_directory(struct target *target, const char *path, const struct attributes *attributes,
                     struct err *e);
int target_symlink(struct target *target, const char *path, const char *text,
                   const struct attributes *attributes, struct err *e);
int target_hardlink(struct target *target, const char *path, const char *existing, struct err *e);
int target_fifo(struct target *target, const char *path, const struct attributes *attributes,
                struct err *e);

/* A character device 0:0 where the tree has no PATH; 1: it has, and it is a directory. */
int target_whiteout(struct target *target, const char *path, struct err *e);

/* Makes what is missing of PATH, which may be ".". */
int target_make_directory(struct target *target, const char *path, struct err *e);

/* A descriptor of the directory PATH, to set extended attributes on. */
int target_open_directory(struct target *target, const char *path, struct err *e);

/* Gives the directories what target_directory was told. */
int target_finish(struct target *target, struct err *e);

#endif
