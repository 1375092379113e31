/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory to entries, in a fixed order: a directory before what it holds, names bytewise.
 *
 * The tree may be changed by others meanwhile. Every object is opened by descriptor beneath the one
 * that names it, and described by what was opened. What has gone is left out; a directory that was
 * moved while the walk was inside of it is an error, because the rest of its parents can no longer
 * be found.
 *
 * At most LEVELS_OPEN descriptors are kept, whatever the depth: the parent of a directory is found
 * again by "..", and has to be the same inode.
 */
#include "archive/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "archive/writer.h"
#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"

enum {
	LEVELS_OPEN = 64,
	FLIPS_MAX = 16, /* how often one name may change its type under us */
	XATTR_NAMES_MAX = 64 << 10,
	XATTR_VALUE_MAX = 64 << 10,
};

struct level {
	int fd; /* -1: closed for now */
	dev_t dev;
	ino_t ino;
	char **names;
	size_t count, next;
	size_t path_length; /* of this directory, with its "/" */
};

/* The first name of a file that has several. */
struct first_name {
	dev_t dev;
	ino_t ino;
	char *path;
};

struct pack {
	const struct pack_options *options;
	struct archive_counts *counts;
	struct writer writer;
	struct level *levels;
	size_t depth, levels_room;
	void *first_names; /* tsearch(3) */
	struct pax_records records;
	char *opaque_text;
	char **opaque; /* sorted, into opaque_text */
	size_t opaque_count;
	char path[ARCHIVE_PATH_MAX];
};

static int changed(const char *path, struct err *e)
{
	char shown[SHOWN_SIZE];

	return err_set(e, EAGAIN, "%s: changed again and again while it was read; try once more",
	               path_shown(path, shown));
}

static int open_name(int dirfd, const char *name, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY |
	                 O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
	                   RESOLVE_NO_XDEV,
	};
	long fd;

	for (int tries = 0; tries < 32; tries++) {
		fd = syscall(SYS_openat2, dirfd, name, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* ---- names of a directory ---- */

static int compare_names(const void *p1, const void *p2)
{
	return strcmp(*(char *const *)p1, *(char *const *)p2);
}

static void free_names(struct level *level)
{
	for (size_t i = level->next; i < level->count; i++)
		free(level->names[i]);
	free(level->names);
	level->names = NULL;
}

static int add_name(struct level *level, size_t *room, const char *name, struct err *e)
{
	if (level->count == *room) {
		size_t grown = *room * 2 + 32;
		char **names = reallocarray(level->names, grown, sizeof *names);

		if (!names)
			return err_set(e, ENOMEM, "no memory for the names of a directory");
		level->names = names;
		*room = grown;
	}
	level->names[level->count] = strdup(name);
	if (!level->names[level->count])
		return err_set(e, ENOMEM, "no memory for the names of a directory");
	level->count++;
	return 0;
}

static int list_names(const char *path, struct level *level, struct err *e)
{
	scoped_fd copyfd = fcntl(level->fd, F_DUPFD_CLOEXEC, 0);
	scoped_dir dir = copyfd < 0 ? NULL : fdopendir(copyfd);
	char shown[SHOWN_SIZE];
	struct dirent *entry;
	size_t room = 0;

	if (!dir)
		return err_sys(e, "listing %s", path_shown(path, shown));
	take_fd(&copyfd); /* the stream's now */
	while (errno = 0, (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			TRY(add_name(level, &room, entry->d_name, e));
	if (errno)
		return err_sys(e, "listing %s", path_shown(path, shown));
	if (level->count)
		qsort(level->names, level->count, sizeof *level->names, compare_names);
	return 0;
}

/* ---- the levels of the walk ---- */

/* Takes FD, whatever comes of it. */
static int push_level(struct pack *pack, int fd, size_t path_length, struct err *e)
{
	scoped_fd ownedfd = fd;
	struct level level = {.fd = fd, .path_length = path_length};
	char shown[SHOWN_SIZE];
	struct stat st;
	int result;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", path_shown(pack->path, shown));
	level.dev = st.st_dev;
	level.ino = st.st_ino;
	if (pack->depth == pack->levels_room) {
		size_t room = pack->levels_room * 2 + 32;
		struct level *levels = reallocarray(pack->levels, room, sizeof *levels);

		if (!levels)
			return err_set(e, ENOMEM, "no memory for so deep a tree");
		pack->levels = levels;
		pack->levels_room = room;
	}
	result = list_names(pack->path, &level, e);
	if (result < 0) {
		free_names(&level);
		return result;
	}
	if (pack->depth >= LEVELS_OPEN)
		close_fd(&pack->levels[pack->depth - LEVELS_OPEN].fd);
	take_fd(&ownedfd);
	pack->levels[pack->depth++] = level;
	return 0;
}

static void drop_level(struct pack *pack)
{
	struct level *level = &pack->levels[--pack->depth];

	free_names(level);
	close_fd(&level->fd);
}

/* Leaves a directory; sees to it that the one above is open. */
static int pop_level(struct pack *pack, struct err *e)
{
	struct level *level = &pack->levels[pack->depth - 1];
	struct level *above = pack->depth > 1 ? &pack->levels[pack->depth - 2] : NULL;
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC};
	struct stat st;

	if (above && above->fd < 0) {
		scoped_fd fd = (int)syscall(SYS_openat2, level->fd, "..", &how, sizeof how);

		pack->path[level->path_length] = '\0';
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != above->dev ||
		    st.st_ino != above->ino)
			return changed(pack->path, e);
		above->fd = take_fd(&fd);
	}
	drop_level(pack);
	return 0;
}

/* ---- entries ---- */

static int compare_files(const void *p1, const void *p2)
{
	const struct first_name *f1 = p1, *f2 = p2;

	if (f1->dev != f2->dev)
		return f1->dev < f2->dev ? -1 : 1;
	return (f1->ino > f2->ino) - (f1->ino < f2->ino);
}

static void free_first_name(void *p)
{
	struct first_name *first = p;

	free(first->path);
	free(first);
}

/* The name under which the file ST is in the archive already; NULL, and PATH is remembered, when it
 * is not. */
static int find_first_name(struct pack *pack, const struct stat *st, const char **path,
                           struct err *e)
{
	struct first_name key = {.dev = st->st_dev, .ino = st->st_ino}, **found, *first;

	*path = NULL;
	if (st->st_nlink < 2)
		return 0;
	found = tfind(&key, &pack->first_names, compare_files);
	if (found) {
		*path = (*found)->path;
		return 0;
	}
	first = malloc(sizeof *first);
	if (first) {
		*first = (struct first_name){key.dev, key.ino, strdup(pack->path)};
		if (first->path && tsearch(first, &pack->first_names, compare_files))
			return 0;
		free_first_name(first);
	}
	return err_set(e, ENOMEM, "no memory for the hard links");
}

static struct member describe(const struct pack *pack, const struct stat *st, char type)
{
	return (struct member){
		.path = pack->path,
		.type = type,
		.mode = st->st_mode & 07777,
		.uid = pack->options->keep_owner ? st->st_uid : 0,
		.gid = pack->options->keep_owner ? st->st_gid : 0,
		.mtime = pack->options->epoch ? 0 : st->st_mtim.tv_sec,
	};
}

static int put_member(struct pack *pack, const struct member *member, struct err *e)
{
	char shown[SHOWN_SIZE];

	pack->counts->entries++;
	if (writer_header(&pack->writer, member, &pack->records, e) < 0)
		return err_in(e, "%s", path_shown(pack->path, shown));
	return 0;
}

static int add_xattr(struct pack *pack, int fd, const char *name, char *value, struct err *e)
{
	ssize_t length = fgetxattr(fd, name, value, XATTR_VALUE_MAX);
	char key[300], shown[SHOWN_SIZE];

	if (length < 0 && errno == ENODATA)
		return 0;
	if (length < 0)
		return err_sys(e, "%s: reading an extended attribute",
		               path_shown(pack->path, shown));
	/* a "=" would end the key of the record too early */
	if (strchr(name, '='))
		return err_set(e, EINVAL, "%s: an extended attribute's name has a \"=\"",
		               path_shown(pack->path, shown));
	TRY(text_format(key, sizeof key, e, "SCHILY.xattr.%s", name));
	return pax_add(&pack->records, key, value, (size_t)length, e);
}

static int read_xattrs(struct pack *pack, int fd, struct err *e)
{
	char shown[SHOWN_SIZE];
	scoped_mem char *list = NULL, *value = NULL;
	struct level sorted = {0};
	size_t room = 0;
	ssize_t length;
	int result = 0;

	pack->records.used = 0;
	if (!pack->options->xattrs)
		return 0;
	/* most files have none: ask for the size first */
	length = flistxattr(fd, NULL, 0);
	if (length == 0 || (length < 0 && errno == EOPNOTSUPP))
		return 0;
	list = malloc(XATTR_NAMES_MAX);
	value = malloc(XATTR_VALUE_MAX);
	if (!list || !value)
		return err_set(e, ENOMEM, "no memory for extended attributes");
	length = flistxattr(fd, list, XATTR_NAMES_MAX);
	if (length < 0)
		return err_sys(e, "%s: listing extended attributes", path_shown(pack->path, shown));
	for (char *name = list; name < list + length && result == 0; name += strlen(name) + 1)
		if (xattr_wanted(name))
			result = add_name(&sorted, &room, name, e);
	if (sorted.count)
		qsort(sorted.names, sorted.count, sizeof *sorted.names, compare_names);
	for (size_t i = 0; i < sorted.count && result == 0; i++)
		result = add_xattr(pack, fd, sorted.names[i], value, e);
	free_names(&sorted);
	return result;
}

static bool flipped(int code)
{
	return code == -ELOOP || code == -ENOTDIR || code == -ENXIO || code == -EISDIR;
}

/*
 * One kind of object each. 1: it is no longer what ST says, look again; 0: done with, or gone.
 * PATH is complete, NAME is its last component.
 */

static int pack_file(struct pack *pack, int dirfd, const char *name, const struct stat *seen,
                     struct err *e)
{
	int result = open_name(dirfd, name, 0);
	scoped_fd fd = result;
	char shown[SHOWN_SIZE];
	struct member member;
	const char *first;
	struct stat st;

	(void)seen;
	if (result == -ENOENT)
		return 0;
	if (flipped(result))
		return 1;
	if (result == -EXDEV) { /* another mount's file */
		pack->counts->skipped++;
		return 0;
	}
	if (result < 0 || fstat(fd, &st) < 0) {
		errno = result < 0 ? -result : errno;
		return err_sys(e, "opening %s", path_shown(pack->path, shown));
	}
	if (!S_ISREG(st.st_mode))
		return 1;
	member = describe(pack, &st, '0');
	TRY(find_first_name(pack, &st, &first, e));
	if (first) {
		pack->records.used = 0;
		member.type = '1';
		member.link = first;
		return put_member(pack, &member, e);
	}
	member.size = (uint64_t)st.st_size;
	TRY(read_xattrs(pack, fd, e));
	TRY(put_member(pack, &member, e));
	if (writer_file(&pack->writer, fd, member.size, e) < 0)
		return err_in(e, "%s", path_shown(pack->path, shown));
	pack->counts->bytes += member.size;
	return 0;
}

static int pack_link(struct pack *pack, int dirfd, const char *name, const struct stat *seen,
                     struct err *e)
{
	char text[PATH_MAX], shown[SHOWN_SIZE];
	ssize_t length = readlinkat(dirfd, name, text, sizeof text - 1);
	struct member member = describe(pack, seen, '2');
	const char *first;

	if (length < 0 && errno == ENOENT)
		return 0;
	if (length < 0 && errno == EINVAL)
		return 1;
	if (length < 0)
		return err_sys(e, "reading the link %s", path_shown(pack->path, shown));
	text[length] = '\0';
	TRY(find_first_name(pack, seen, &first, e));
	pack->records.used = 0;
	member.type = first ? '1' : '2';
	member.link = first ? first : text;
	member.mode = 0777;
	return put_member(pack, &member, e);
}

static int pack_fifo(struct pack *pack, int dirfd, const char *name, const struct stat *seen,
                     struct err *e)
{
	struct member member = describe(pack, seen, '6');

	(void)dirfd;
	(void)name;
	pack->records.used = 0;
	return put_member(pack, &member, e);
}

/* ---- a layer's own ---- */

#define OPAQUE ".wh..wh..opq"

/* An empty file of the name DIRECTORY (LENGTH bytes of path) NAME REST. */
static int put_mark(struct pack *pack, size_t length, const char *name, const char *rest,
                    struct err *e)
{
	char path[ARCHIVE_PATH_MAX + 8];
	struct member member = {.path = path, .type = '0'};

	memcpy(path, pack->path, length);
	TRY(text_format(path + length, sizeof path - length, e, "%s%s", name, rest));
	pack->records.used = 0;
	pack->counts->entries++;
	return writer_header(&pack->writer, &member, &pack->records, e);
}

static int pack_whiteout(struct pack *pack, int dirfd, const char *name, const struct stat *seen,
                         struct err *e)
{
	(void)dirfd;
	if (!pack->options->layer || seen->st_rdev != 0) {
		pack->counts->skipped++;
		return 0;
	}
	return put_mark(pack, strlen(pack->path) - strlen(name), ".wh.", name, e);
}

static int read_opaque(struct pack *pack, struct err *e)
{
	scoped_mem char *text = malloc(ARCHIVE_OPAQUE_BYTES + 1);
	ssize_t length;
	size_t room = 0;

	if (!text)
		return err_set(e, ENOMEM, "no memory for the opaque directories");
	length = read(pack->options->opaquefd, text, ARCHIVE_OPAQUE_BYTES);
	if (length < 0)
		return err_sys(e, "reading the opaque directories");
	text[length] = '\0';
	for (char *name = text; name < text + length; name += strlen(name) + 1) {
		if (pack->opaque_count == room) {
			char **grown = reallocarray(pack->opaque, room * 2 + 32, sizeof *grown);

			if (!grown)
				return err_set(e, ENOMEM, "no memory for the opaque directories");
			pack->opaque = grown;
			room = room * 2 + 32;
		}
		pack->opaque[pack->opaque_count++] = name;
	}
	pack->opaque_text = take_mem(&text);
	if (pack->opaque_count)
		qsort(pack->opaque, pack->opaque_count, sizeof *pack->opaque, compare_names);
	return 0;
}

static bool is_opaque(const struct pack *pack, const char *path)
{
	return pack->opaque_count && bsearch(&path, pack->opaque, pack->opaque_count,
	                                     sizeof *pack->opaque, compare_names);
}

static int pack_subdirectory(struct pack *pack, int dirfd, const char *name,
                             const struct stat *seen, struct err *e)
{
	int result = open_name(dirfd, name, O_DIRECTORY);
	scoped_fd fd = result;
	char shown[SHOWN_SIZE];
	struct stat st = *seen;
	struct member member;
	size_t length = strlen(pack->path);
	bool opaque = is_opaque(pack, pack->path);

	if (result == -ENOENT)
		return 0;
	if (flipped(result))
		return 1;
	/* EXDEV: a mount point, whose directory is there and whose content is another's */
	if (result != -EXDEV && (result < 0 || fstat(fd, &st) < 0)) {
		errno = result < 0 ? -result : errno;
		return err_sys(e, "opening %s", path_shown(pack->path, shown));
	}
	if (length + 2 > sizeof pack->path)
		return err_set(e, ENAMETOOLONG, "%s: a path of more than %d bytes",
		               path_shown(pack->path, shown), ARCHIVE_PATH_MAX - 2);
	pack->records.used = 0;
	if (fd >= 0)
		TRY(read_xattrs(pack, fd, e));
	memcpy(pack->path + length, "/", 2);
	member = describe(pack, &st, '5');
	TRY(put_member(pack, &member, e));
	if (opaque)
		TRY(put_mark(pack, length + 1, OPAQUE, "", e));
	return fd < 0 ? 0 : push_level(pack, take_fd(&fd), length + 1, e);
}

static const struct {
	mode_t type;
	int (*pack)(struct pack *pack, int dirfd, const char *name, const struct stat *seen,
	            struct err *e);
} packers[] = {
	{S_IFREG, pack_file}, {S_IFDIR, pack_subdirectory}, {S_IFLNK, pack_link},
	{S_IFIFO, pack_fifo}, {S_IFCHR, pack_whiteout},
};

static int pack_name(struct pack *pack, int dirfd, const char *name, struct err *e)
{
	char shown[SHOWN_SIZE];
	struct stat st;

	for (int flips = 0; flips < FLIPS_MAX; flips++) {
		size_t i = 0, kinds = sizeof packers / sizeof packers[0];
		int again;

		if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0
			                       : err_sys(e, "%s", path_shown(pack->path, shown));
		while (i < kinds && packers[i].type != (st.st_mode & S_IFMT))
			i++;
		if (i == kinds) {
			pack->counts->skipped++;
			return 0;
		}
		TRY(again = packers[i].pack(pack, dirfd, name, &st, e));
		if (!again)
			return 0;
	}
	return changed(pack->path, e);
}

static int walk(struct pack *pack, struct err *e)
{
	char shown[SHOWN_SIZE];

	while (pack->depth) {
		struct level *level = &pack->levels[pack->depth - 1];
		scoped_mem char *name = NULL;
		size_t length;

		if (level->next == level->count) {
			TRY(pop_level(pack, e));
			continue;
		}
		name = level->names[level->next++];
		length = strlen(name);
		if (level->path_length + length + 2 > sizeof pack->path) {
			pack->path[level->path_length] = '\0';
			return err_set(e, ENAMETOOLONG, "a path of more than %d bytes in %s",
			               ARCHIVE_PATH_MAX - 2, path_shown(pack->path, shown));
		}
		memcpy(pack->path + level->path_length, name, length + 1);
		TRY(pack_name(pack, level->fd, name, e));
	}
	return writer_finish(&pack->writer, e);
}

int pack_directory(int dirfd, int outfd, const struct pack_options *options,
                   struct archive_counts *counts, struct err *e)
{
	struct pack *pack = calloc(1, sizeof *pack);
	int result;

	if (!pack)
		return err_set(e, ENOMEM, "no memory to pack with");
	pack->options = options;
	pack->counts = counts;
	result = writer_init(&pack->writer, outfd, e);
	if (result == 0 && options->layer && options->opaquefd >= 0)
		result = read_opaque(pack, e);
	if (result == 0 && is_opaque(pack, "."))
		result = put_mark(pack, 0, OPAQUE, "", e);
	if (result == 0) {
		int topfd = open_name(dirfd, ".", O_DIRECTORY);

		if (topfd < 0) {
			errno = -topfd;
			result = err_sys(e, "opening the directory to pack");
		} else {
			result = push_level(pack, topfd, 0, e);
		}
	}
	if (result == 0)
		result = walk(pack, e);
	while (pack->depth)
		drop_level(pack);
	free(pack->levels);
	free(pack->opaque);
	free(pack->opaque_text);
	tdestroy(pack->first_names, free_first_name);
	pax_release(&pack->records);
	writer_release(&pack->writer);
	free(pack);
	return result;
}
