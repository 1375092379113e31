/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unpacker (archive/): each input is an archive, and is unpacked twice into an empty directory
 * in memory, as a checkout and as an image. Its confinement is not taken: what it holds back by
 * itself is to be seen, before any wall.
 *
 * Holds: what lies beside the directory is untouched, to the inode's last change; bytes and entries
 * stay within the limits; nothing is there that should not be (devices, foreign attributes, for a
 * checkout setuid bits and FIFOs as well); a failure is the archive's or a limit's, never the host's.
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

enum { LIMIT_BYTES = 1 << 20, LIMIT_ENTRIES = 64, OWNER = 10001, BLOCK = 512 };

/* ---- what lies beside ---- */

static const char *const beside[] = {"beside", "beside/note", "beside/directory"};
enum { BESIDE = sizeof beside / sizeof *beside };
static struct stat beside_before[BESIDE];

static void make_beside(void)
{
	static bool made;

	if (made)
		return;
	fuzz_make_dir("beside/directory");
	fuzz_put("beside/note", "untouched", 9);
	for (int i = 0; i < BESIDE; i++)
		CHECK(fstatat(fuzz_scratch(), beside[i], &beside_before[i], AT_SYMLINK_NOFOLLOW) ==
		              0,
		      "%s: %m", beside[i]);
	made = true;
}

/* A change of content, mode, owner, attributes or links is a change of the inode's time. */
static void check_beside(void)
{
	scoped_fd fd = openat(fuzz_scratch(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_dir dir = fdopendir(fd);
	const struct dirent *entry;

	CHECK(dir, "the scratch directory: %m");
	(void)take_fd(&fd);
	for (int i = 0; i < BESIDE; i++) {
		const struct stat *before = &beside_before[i];
		struct stat now;

		CHECK(fstatat(fuzz_scratch(), beside[i], &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		              now.st_ino == before->st_ino && now.st_nlink == before->st_nlink &&
		              now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
		              now.st_ctim.tv_nsec == before->st_ctim.tv_nsec,
		      "%s was changed", beside[i]);
	}
	while ((entry = readdir(dir)))
		CHECK(entry->d_name[0] == '.' || strcmp(entry->d_name, "beside") == 0 ||
		              strcmp(entry->d_name, "root") == 0,
		      "%s came to be beside the directory", entry->d_name);
}

/* ---- what was unpacked ---- */

enum mode { CHECKOUT, IMAGE, LAYER };

struct tree {
	bool image, layer, whole;
	uint64_t bytes, entries;
	ino_t files[LIMIT_ENTRIES + 2]; /* whose bytes are counted */
	size_t files_count;
};

static void count_bytes(struct tree *tree, const struct stat *st)
{
	for (size_t i = 0; i < tree->files_count; i++)
		if (tree->files[i] == st->st_ino)
			return;
	CHECK(tree->files_count < LIMIT_ENTRIES + 2, "too many files");
	tree->files[tree->files_count++] = st->st_ino;
	tree->bytes += (uint64_t)st->st_size;
}

static void check_xattrs(const struct tree *tree, int dirfd, const char *name)
{
	char names[4096], path[64];
	scoped_fd fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t length;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	length = listxattr(path, names, sizeof names);
	for (const char *at = names; at < names + length; at += strlen(at) + 1)
		CHECK(tree->image && strncmp(at, "user.overlay.", 13) != 0 &&
		              (strncmp(at, "user.", 5) == 0 ||
		               strcmp(at, "security.capability") == 0),
		      "%s has the attribute %s", name, at);
}

static void check_entry(struct tree *tree, int dirfd, const char *name, const struct stat *st)
{
	bool fifo = S_ISFIFO(st->st_mode) && tree->image;
	bool whiteout = S_ISCHR(st->st_mode) && st->st_rdev == 0 && tree->layer;

	CHECK(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode) || fifo ||
	              whiteout,
	      "%s has the type %#o", name, st->st_mode & S_IFMT);
	CHECK(tree->image || S_ISLNK(st->st_mode) || (st->st_mode & 07022) == 0,
	      "%s has the mode %#o", name, st->st_mode & 07777);
	CHECK(tree->image || !tree->whole || (st->st_uid == OWNER && st->st_gid == OWNER),
	      "%s belongs to %u:%u", name, st->st_uid, st->st_gid);
	tree->entries++;
	if (S_ISREG(st->st_mode))
		count_bytes(tree, st);
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
		check_xattrs(tree, dirfd, name);
}

/* As deep as there are entries at most. */
static void check_tree(struct tree *tree, int dirfd)
{
	scoped_fd fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_dir dir = fdopendir(fd);
	const struct dirent *entry;

	CHECK(dir, "what was unpacked: %m");
	(void)take_fd(&fd);
	while ((entry = readdir(dir))) {
		scoped_fd below = -1;
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		CHECK(fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0, "%s: %m",
		      entry->d_name);
		check_entry(tree, dirfd, entry->d_name, &st);
		if (!S_ISDIR(st.st_mode))
			continue;
		below = openat(dirfd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		CHECK(below >= 0, "%s: %m", entry->d_name);
		check_tree(tree, below);
	}
}

/* What the privileged side reads: names of directories that are there. */
static void check_opaque(int rootfd, int opaquefd)
{
	scoped_mem struct archive_opaque *opaque = malloc(sizeof *opaque);
	const char *name;

	CHECK(opaque && pread(opaquefd, opaque, sizeof *opaque, 0) == sizeof *opaque, "opaque");
	name = opaque->names;
	for (uint32_t i = 0; i < opaque->count; i++) {
		scoped_fd fd = openat(rootfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		CHECK(fd >= 0 && *name != '/' && !strstr(name, ".."), "opaque, and not there: %s",
		      name);
		name += strlen(name) + 1;
	}
}

static void check_unpacked(int rootfd, enum mode mode, int result,
                           const struct archive_counts *counts, const struct err *e)
{
	struct tree tree = {
		.image = mode != CHECKOUT, .layer = mode == LAYER, .whole = result == 0};

	if (result < 0) {
		fuzz_check_err(result, e);
		CHECK(e->code == EBADMSG || e->code == EFBIG, "the host's fault (%d): %s", e->code,
		      e->text);
	}
	check_tree(&tree, rootfd);
	/* the one that breaks the limit may have been made */
	CHECK(tree.entries <= LIMIT_ENTRIES + (tree.whole ? 0U : 1U), "%llu entries are there",
	      (unsigned long long)tree.entries);
	CHECK(tree.bytes <= LIMIT_BYTES, "%llu bytes are there", (unsigned long long)tree.bytes);
	CHECK(!tree.whole || (counts->entries <= LIMIT_ENTRIES && counts->entries >= tree.entries &&
	                      counts->bytes <= LIMIT_BYTES && counts->bytes >= tree.bytes),
	      "what is there and what was counted differ");
}

/* ---- an input ---- */

static void try_unpack(int infd, enum mode mode)
{
	scoped_fd opaquefd = memfd_create("opaque", MFD_CLOEXEC);
	const struct unpack_options options = {
		.layer = mode == LAYER,
		.image = mode != CHECKOUT,
		.opaquefd = opaquefd,
		.has_owner = mode == CHECKOUT,
		.owner_uid = OWNER,
		.owner_gid = OWNER,
		.limit_bytes = LIMIT_BYTES,
		.limit_entries = LIMIT_ENTRIES,
		.progressfd = -1,
	};
	struct archive_counts counts = {0};
	struct source source;
	scoped_fd rootfd = -1;
	struct err e;
	int result;

	fuzz_make_dir("root");
	rootfd = openat(fuzz_scratch(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(rootfd >= 0 && lseek(infd, 0, SEEK_SET) == 0 &&
	              ftruncate(opaquefd, sizeof(struct archive_opaque)) == 0,
	      "root: %m");
	CHECK(source_init(&source, SOURCE_TAR, &e) == 0, "%s", e.text);
	result = unpack_stream(&source, infd, rootfd, &options, &counts, &e);
	source_release(&source);
	check_unpacked(rootfd, mode, result, &counts, &e);
	if (result == 0)
		check_opaque(rootfd, opaquefd);
	check_beside();
	fuzz_remove("root");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int next_fd = fuzz_next_fd();
	scoped_fd infd = memfd_create("archive", MFD_CLOEXEC);

	make_beside();
	CHECK(infd >= 0 && write(infd, data, size) == (ssize_t)size, "the input: %m");
	for (enum mode mode = CHECKOUT; mode <= LAYER; mode++)
		try_unpack(infd, mode);
	close_fd(&infd);
	CHECK(fuzz_next_fd() == next_fd, "a descriptor leaked");
	return 0;
}

/* ---- mutations that keep a tar's headers valid ---- */

/* libFuzzer's; in a program without it nobody calls the mutator */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

static bool is_header(const uint8_t *block)
{
	return memcmp(block + 257, "ustar", 5) == 0;
}

static void set_checksum(uint8_t *header)
{
	char text[8];
	unsigned sum = 0;

	memset(header + 148, ' ', 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += header[i];
	snprintf(text, sizeof text, "%06o", sum);
	memcpy(header + 148, text, 7);
}

static void mutate_field(uint8_t *block, unsigned choice)
{
	static const struct {
		uint16_t at, length;
	} fields[] = {{0, 100},   {0, 8},     {100, 8},   {108, 8}, {116, 8}, {124, 12},
	              {136, 12},  {156, 1},   {157, 100}, {157, 8}, {257, 8}, {345, 155},
	              {386, 126}, {0, BLOCK}, {0, 64},    {265, 32}};
	uint8_t field[BLOCK] = {0};
	size_t at = fields[choice % 16].at, length = fields[choice % 16].length;

	memcpy(field, block + at, length);
	LLVMFuzzerMutate(field, length, length);
	memcpy(block + at, field, length);
}

/* Puts block FROM in front of block TO. */
static size_t repeat_block(uint8_t *data, size_t size, size_t from, size_t to)
{
	uint8_t block[BLOCK];

	memcpy(block, data + from * BLOCK, BLOCK);
	memmove(data + (to + 1) * BLOCK, data + to * BLOCK, size - to * BLOCK);
	memcpy(data + to * BLOCK, block, BLOCK);
	return size + BLOCK;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	size_t blocks = size / BLOCK, one = seed / 256, other = seed / 65536;

	if (!blocks || !is_header(data))
		return LLVMFuzzerMutate(data, size, room);
	one %= blocks;
	other %= blocks;
	if (seed % 16 == 0) {
		size = LLVMFuzzerMutate(data, size, room);
	} else if (seed % 16 < 4 && size + BLOCK <= room) {
		size = repeat_block(data, size, one, other);
	} else if (seed % 16 == 4 && blocks > 1) {
		memmove(data + one * BLOCK, data + (one + 1) * BLOCK, size - (one + 1) * BLOCK);
		size -= BLOCK;
	} else {
		mutate_field(data + one * BLOCK, seed / 16 % 16);
	}
	for (size_t at = 0; at + BLOCK <= size; at += BLOCK)
		if (is_header(data + at))
			set_checksum(data + at);
	return size;
}
