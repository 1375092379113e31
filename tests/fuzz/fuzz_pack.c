/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing a directory (archive/pack.c, writer.c). The input is a string of decisions by which a tree
 * is made: names of any bytes and length, links, modes, owners, times, attributes.
 *
 * Holds: the tree is packed, the archive can be unpacked by what reads archives here, and the tree
 * that comes of it is the same, as an image entirely, as a checkout in names and contents.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/source.h"
#include "base/scoped.h"

enum { DEPTH_MAX = 12, STEPS_MAX = 64, NAME_BYTES = 255, TEXT_BYTES = 1024 };

/* ---- a tree by decisions ---- */

struct maker {
	struct fuzz_bytes bytes;
	int dirfds[DEPTH_MAX];
	int depth;
	int lastfd; /* O_PATH of what was made last; -1: nothing */
	mode_t last_type;
};

/* LENGTH bytes that are no NUL and none of WITHOUT, of which a few are given and then repeated. */
static void take_text(struct maker *m, char *text, size_t length, const char *without)
{
	size_t given = 1 + fuzz_take(&m->bytes, 1) % 16;

	for (size_t i = 0; i < length; i++) {
		text[i] = i < given ? (char)fuzz_take(&m->bytes, 1) : text[i - given];
		if (!text[i] || strchr(without, text[i]))
			text[i] = 'n';
	}
	text[length] = '\0';
}

static void take_name(struct maker *m, char name[NAME_BYTES + 1])
{
	uint32_t length = fuzz_take(&m->bytes, 1);

	take_text(m, name, length < 128 ? 1 + length % 8 : length, "/");
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		name[0] = 'd';
}

static const char *last_path(const struct maker *m, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", m->lastfd);
	return path;
}

static void made(struct maker *m, const char *name, mode_t type)
{
	close_fd(&m->lastfd);
	m->lastfd = openat(m->dirfds[m->depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	m->last_type = type;
	CHECK(m->lastfd >= 0, "what was made is not there: %m");
}

static void make_file(struct maker *m, const char *name)
{
	scoped_fd fd = openat(m->dirfds[m->depth], name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	                      0644);
	char text[TEXT_BYTES + 1];
	size_t length = fuzz_take(&m->bytes, 2) % TEXT_BYTES;

	if (fd < 0)
		return;
	take_text(m, text, length, "");
	CHECK(write(fd, text, length) == (ssize_t)length, "writing a file: %m");
	made(m, name, S_IFREG);
}

static void make_entry(struct maker *m, uint32_t kind)
{
	char name[NAME_BYTES + 1], text[TEXT_BYTES + 1], path[32];
	int dirfd = m->dirfds[m->depth];

	take_name(m, name);
	switch (kind) {
	case 0:
		make_file(m, name);
		break;
	case 1:
		if (m->depth + 1 == DEPTH_MAX || mkdirat(dirfd, name, 0755) < 0)
			break;
		made(m, name, S_IFDIR);
		m->dirfds[++m->depth] = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		break;
	case 2:
		take_text(m, text, 1 + fuzz_take(&m->bytes, 2) % (TEXT_BYTES - 1), "");
		if (symlinkat(text, dirfd, name) == 0)
			made(m, name, S_IFLNK);
		break;
	case 3:
		if (m->last_type == S_IFREG)
			(void)!linkat(AT_FDCWD, last_path(m, path), dirfd, name, AT_SYMLINK_FOLLOW);
		break;
	default:
		if (mknodat(dirfd, name, S_IFIFO | 0644, 0) == 0)
			made(m, name, S_IFIFO);
	}
}

static void change_last(struct maker *m, uint32_t kind)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {0}};
	char path[32], name[NAME_BYTES + 1] = "user.", value[TEXT_BYTES + 1];
	uint32_t uid, gid;
	size_t length;

	if (m->lastfd < 0)
		return;
	last_path(m, path);
	switch (kind) {
	case 0:
		if (m->last_type != S_IFLNK)
			(void)!chmod(path, fuzz_take(&m->bytes, 2) & 07777);
		break;
	case 1:
		times[1].tv_sec = (int64_t)fuzz_take(&m->bytes, 4) -
		                  ((int64_t)fuzz_take(&m->bytes, 1) << 27);
		(void)!utimensat(AT_FDCWD, path, times, 0);
		break;
	case 2:
		uid = fuzz_take(&m->bytes, 4);
		gid = fuzz_take(&m->bytes, 4);
		if (uid != UINT32_MAX && gid != UINT32_MAX)
			(void)!fchownat(m->lastfd, "", uid, gid, AT_EMPTY_PATH);
		break;
	default:
		take_text(m, name + 5, 1 + fuzz_take(&m->bytes, 1) % 60, "=");
		length = fuzz_take(&m->bytes, 2) % TEXT_BYTES;
		take_text(m, value, length, "");
		if (m->last_type == S_IFREG || m->last_type == S_IFDIR)
			(void)!setxattr(path, name, value, length, 0);
	}
}

static void make_tree(struct fuzz_bytes bytes)
{
	struct maker m = {.bytes = bytes, .lastfd = -1};

	fuzz_make_dir("tree");
	m.dirfds[0] = openat(fuzz_scratch(), "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < STEPS_MAX && m.bytes.left; i++) {
		uint32_t step = fuzz_take(&m.bytes, 1) % 12;

		if (step < 6)
			make_entry(&m, step % 5);
		else if (step < 11)
			change_last(&m, step - 7 > 3 ? 3 : step - 7);
		else if (m.depth > 0)
			close_fd(&m.dirfds[m.depth--]);
	}
	for (int i = 0; i <= m.depth; i++)
		close_fd(&m.dirfds[i]);
	close_fd(&m.lastfd);
}

/* ---- one tree and another ---- */

static ssize_t read_whole(int dirfd, const char *name, char *data, size_t size)
{
	scoped_fd fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -1 : read(fd, data, size);
}

static void same_content(int one, int other, const char *name, mode_t type)
{
	char text1[TEXT_BYTES + 1], text2[TEXT_BYTES + 1];
	ssize_t length1 = 0, length2 = 0;

	if (S_ISREG(type)) {
		length1 = read_whole(one, name, text1, sizeof text1);
		length2 = read_whole(other, name, text2, sizeof text2);
	} else if (S_ISLNK(type)) {
		length1 = readlinkat(one, name, text1, sizeof text1);
		length2 = readlinkat(other, name, text2, sizeof text2);
	}
	CHECK(length1 >= 0 && length1 == length2 && memcmp(text1, text2, (size_t)length1) == 0,
	      "the content of %s is another", name);
}

/* All that ONE has, with their values. */
static void same_xattrs(int one, int other, const char *name)
{
	scoped_fd fd1 = openat(one, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	scoped_fd fd2 = openat(other, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path1[32], path2[32], names[8192], value1[2048], value2[2048];
	ssize_t length;

	snprintf(path1, sizeof path1, "/proc/self/fd/%d", fd1);
	snprintf(path2, sizeof path2, "/proc/self/fd/%d", fd2);
	length = listxattr(path1, names, sizeof names);
	for (const char *at = names; at < names + length; at += strlen(at) + 1) {
		ssize_t size1 = getxattr(path1, at, value1, sizeof value1);
		ssize_t size2 = getxattr(path2, at, value2, sizeof value2);

		if (strncmp(at, "user.overlay.", 13) == 0)
			continue;
		CHECK(size1 >= 0 && size1 == size2 && memcmp(value1, value2, (size_t)size1) == 0,
		      "the attribute %s of %s is another", at, name);
	}
}

static void same_attributes(const struct stat *one, const struct stat *other, const char *name)
{
	mode_t mask = S_ISFIFO(one->st_mode) ? 0777 : 07777;

	CHECK(S_ISLNK(one->st_mode) || (one->st_mode & mask) == (other->st_mode & mask),
	      "the mode of %s is %#o, not %#o", name, other->st_mode, one->st_mode);
	CHECK(one->st_uid == other->st_uid && one->st_gid == other->st_gid,
	      "%s belongs to %u:%u, not %u:%u", name, other->st_uid, other->st_gid, one->st_uid,
	      one->st_gid);
	CHECK(one->st_mtim.tv_sec == other->st_mtim.tv_sec, "%s is of %lld, not %lld", name,
	      (long long)other->st_mtim.tv_sec, (long long)one->st_mtim.tv_sec);
	CHECK(S_ISDIR(one->st_mode) || one->st_nlink == other->st_nlink, "the links of %s", name);
}

static void same_tree(int one, int other, bool image)
{
	scoped_fd fd = openat(one, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_dir dir = fdopendir(fd);
	const struct dirent *entry;

	CHECK(dir, "a directory: %m");
	(void)take_fd(&fd);
	while ((entry = readdir(dir))) {
		const char *name = entry->d_name;
		struct stat st1, st2;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		CHECK(fstatat(one, name, &st1, AT_SYMLINK_NOFOLLOW) == 0, "%s: %m", name);
		if (S_ISFIFO(st1.st_mode) && !image)
			continue;
		CHECK(fstatat(other, name, &st2, AT_SYMLINK_NOFOLLOW) == 0 &&
		              (st1.st_mode & S_IFMT) == (st2.st_mode & S_IFMT),
		      "%s is not there, or another thing", name);
		same_content(one, other, name, st1.st_mode);
		if (image) {
			same_attributes(&st1, &st2, name);
			same_xattrs(one, other, name);
		}
		if (S_ISDIR(st1.st_mode)) {
			scoped_fd below1 = openat(one, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			scoped_fd below2 = openat(other, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			same_tree(below1, below2, image);
		}
	}
}

static void check_round(int treefd, int archivefd, bool image)
{
	const struct unpack_options options = {
		.image = image,
		.limit_bytes = 1 << 24,
		.limit_entries = 100000,
		.progressfd = -1,
	};
	struct archive_counts counts = {0};
	struct source source;
	struct err e;
	scoped_fd rootfd = -1;

	fuzz_make_dir("root");
	rootfd = openat(fuzz_scratch(), "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(lseek(archivefd, 0, SEEK_SET) == 0, "the archive: %m");
	CHECK(source_init(&source, SOURCE_TAR, &e) == 0, "%s", e.text);
	CHECK(unpack_stream(&source, archivefd, rootfd, &options, &counts, &e) == 0,
	      "what we packed is refused: %s", e.text);
	source_release(&source);
	same_tree(treefd, rootfd, image);
	same_tree(rootfd, treefd, image);
	fuzz_remove("root");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pack_options options = {.keep_owner = true, .xattrs = true};
	struct archive_counts counts = {0};
	int next_fd = fuzz_next_fd();
	scoped_fd archivefd = memfd_create("archive", MFD_CLOEXEC);
	scoped_fd treefd = -1;
	struct err e;

	make_tree((struct fuzz_bytes){data, size});
	treefd = openat(fuzz_scratch(), "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(pack_directory(treefd, archivefd, &options, &counts, &e) == 0,
	      "a tree is not packed: %s", e.text);
	check_round(treefd, archivefd, true);
	check_round(treefd, archivefd, false);
	close_fd(&treefd);
	close_fd(&archivefd);
	fuzz_remove("tree");
	CHECK(fuzz_next_fd() == next_fd, "a descriptor leaked");
	return 0;
}
