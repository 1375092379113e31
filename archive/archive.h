/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of agentdock-archive: the one program that parses bytes of archives nobody trusts.
 *
 *	main.c     the command line, the result
 *	confine.c  what the program takes from itself before it reads the first byte
 *	source.c   bytes to entries: libarchive, and nothing of it that writes
 *	unpack.c   entries to the tree: what is let through, the limits
 *	whiteouts.c  what a layer removes from those below it
 *	target.c   the tree: every name is resolved beneath one descriptor
 *	plan.c     a packed image to what it is made of
 *	ids.c      names of users to numbers
 *	pack.c     a directory to entries, in a fixed order
 *	writer.c   entries to a tar stream
 *
 * The code of an error says whose fault it is: EBADMSG is the archive's, EFBIG is a limit, ENOSPC
 * and EDQUOT are the file system's, all others are this host's.
 */
#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "rootfs/archive_result.h"

/* The longest path, in bytes. More than PATH_MAX, because trees deeper than that exist; bounded,
 * because Landlock looks at every directory above at every step. */
enum { ARCHIVE_PATH_MAX = 16384 };

struct archive_counts {
	uint64_t bytes, entries, skipped;
};

struct unpack_options {
	bool layer;     /* of an image, as "image" is: whiteouts are carried out */
	bool image;     /* owners, all mode bits, some extended attributes, FIFOs */
	bool has_owner; /* owner_uid:owner_gid instead of what the archive says */
	uid_t owner_uid;
	gid_t owner_gid;
	uint64_t limit_bytes, limit_entries;
	int progressfd; /* -1: none */
	int opaquefd;   /* of a layer: takes a struct archive_opaque */
};
/* SOURCE is made (source_init) before the confinement, and used here after it. */
struct source;
int unpack_stream(struct source *source, int infd, int dirfd, const struct unpack_options *options,
                  struct archive_counts *counts, struct err *e);

struct pack_options {
	bool keep_owner; /* otherwise 0:0 */
	bool epoch;      /* every mtime is 0 */
	bool xattrs;     /* user.* but overlayfs's, and security.capability */
	/* of a layer: its character devices 0:0 become ".wh.NAME", and its opaque directories get
	 * a ".wh..wh..opq"; they are the names in the file OPAQUEFD (-1: none) */
	bool layer;
	int opaquefd;
};
/* COUNTS is filled on failure too. Names are sorted bytewise; DIRFD itself has no entry. */
int pack_directory(int dirfd, int outfd, const struct pack_options *options,
                   struct archive_counts *counts, struct err *e);

/*
 * The numbers of USER ("NAME|UID[:NAME|GID]", as image-spec has it) by the files PASSWDFD and
 * GROUPFD (-1: there is none), as "UID:GID" to OUTFD. A user without a line has group 0. ENOENT: a
 * name that is in neither.
 */
int resolve_ids(const char *user, int passwdfd, int groupfd, int outfd, struct err *e);

/* Decompresses INFD to OUTFD, at most LIMIT_BYTES. */
int cat_stream(struct source *source, int infd, int outfd, uint64_t limit_bytes,
               struct archive_counts *counts, struct err *e);

/* Is NAME (an extended attribute's) one that is carried? */
bool xattr_wanted(const char *name);

enum { SHOWN_SIZE = 160 };
/* The end of PATH, fit for a terminal and for a message, in BUFFER. */
const char *path_shown(const char *path, char buffer[SHOWN_SIZE]);

#endif
