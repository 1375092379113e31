/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's disk: files that are written, that are allocated without being written, that are sparse
 * and filled through a mapping, that have lost their name, and many small ones. An overlay on the
 * host's own file system lets all of them take what there is. Here they lie on a file system of their
 * own; its 32 MiB are the limit, each attempt wants 100 MiB and counts the blocks that it got.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum { WANTED = 100 << 20, CHUNK = 1 << 20, SMALL = 100 << 10, BLOCK = 512 };

static char chunk[CHUNK];

/* 0 when the file has all that is wanted. CODE is what ended the attempt. */
static int judge(int fd, int code)
{
	struct stat status;

	if (fsync(fd) < 0 || fstat(fd, &status) < 0)
		return errno;
	if ((off_t)status.st_blocks * BLOCK >= WANTED)
		return 0;
	return code ? code : ENOSPC;
}

static int fill(int fd)
{
	for (size_t done = 0; done < WANTED; done += CHUNK) {
		ssize_t written = write(fd, chunk, CHUNK);

		if (written != CHUNK)
			return written < 0 ? errno : ENOSPC;
	}
	return 0;
}

static int written(const void *path)
{
	scoped_fd fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd < 0 ? errno : judge(fd, fill(fd));
}

static int nameless(const void *path)
{
	scoped_fd fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || unlink(path) < 0)
		return errno;
	return judge(fd, fill(fd));
}

static int allocated(const void *path)
{
	scoped_fd fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd < 0 ? errno : judge(fd, code_of(fallocate(fd, 0, 0, WANTED)));
}

/* Beyond the end of the file, where it does not show in its size. */
static int allocated_unseen(const void *path)
{
	scoped_fd fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd < 0 ? errno : judge(fd, code_of(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, WANTED)));
}

/* Where there is no block for a page, the kernel sends SIGBUS. */
static int mapped(const void *path)
{
	scoped_fd fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *memory;

	if (fd < 0 || ftruncate(fd, WANTED) < 0)
		return errno;
	memory = mmap(NULL, WANTED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return errno;
	memset(memory, 1, WANTED);
	return judge(fd, code_of(msync(memory, WANTED, MS_SYNC)));
}

/* One file of some kilobytes after the other. */
static int many(const char *directory)
{
	char path[128];
	int count = 0, code = 0;

	for (; count * SMALL < WANTED && code == 0; count++) {
		snprintf(path, sizeof(path), "%s/small-%d", directory, count);
		scoped_fd fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		ssize_t got = fd < 0 ? -1 : write(fd, chunk, SMALL);

		if (got < 0 || (got == SMALL && fsync(fd) < 0))
			code = errno;
		else if (got != SMALL)
			code = ENOSPC;
	}
	while (count-- > 0) {
		snprintf(path, sizeof(path), "%s/small-%d", directory, count);
		unlink(path);
	}
	return code;
}

static int apart(int (*attempt)(const void *), const char *path)
{
	int code = try_apart(attempt, path);

	unlink(path);
	return code;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	memset(chunk, 1, sizeof(chunk));
	tally_add(&tally, "written", apart(written, "file"));
	tally_add(&tally, "written in /tmp", apart(written, "/tmp/file"));
	tally_add(&tally, "without a name", apart(nameless, "file"));
	tally_add(&tally, "allocated", apart(allocated, "file"));
	tally_add(&tally, "allocated beyond the end", apart(allocated_unseen, "file"));
	tally_add(&tally, "sparse and mapped", apart(mapped, "file"));
	tally_add(&tally, "many small ones", many("."));
	return tally_verdict(&tally, evidence);
}

ATTACK(disk_exhaustion) = {
	.name = "disk_exhaustion",
	.what = "fill the host's disk",
	.seen = "Docker's default storage, which has no limit (moby issue 3804)",
	.wall = "a file system of its own, limited in bytes",
	.options = WORDS("--disk", "32m"),
	.control = WORDS("--disk", "2g"),
	.inside = inside,
};
