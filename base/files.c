/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by descriptor: opening, reading, writing, replacing. Owns no state. Whole trees are in
 * base/tree.c.
 */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"

enum { OPEN_TRIES = 64, TEMPORARY_TRIES = 16 };

int file_open(int dirfd, const char *path, int flags, mode_t mode, struct err *e)
{
	int fd = openat(dirfd, path, flags | O_CLOEXEC, mode);

	return fd >= 0 ? fd : err_sys(e, "opening %s", path);
}

int file_open2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve, struct err *e)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = resolve,
	};
	long fd = -1;

	/* openat2 refuses a mode where nothing can be created */
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)
		how.mode = mode;
	for (int tries = 0; tries < OPEN_TRIES; tries++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd >= 0 ? (int)fd : err_sys(e, "opening %s", path);
}

/* Reads until SIZE bytes are there or the file ends; the length or -1. */
static ssize_t read_full(int fd, char *buffer, size_t size)
{
	size_t length = 0;

	while (length < size) {
		ssize_t got = read(fd, buffer + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	return (ssize_t)length;
}

static int too_big(const char *path, size_t limit, struct err *e)
{
	return err_set(e, EFBIG, "reading %s: it is larger than the %zu bytes allowed for it", path,
	               limit);
}

ssize_t file_read(int dirfd, const char *path, char *buffer, size_t size, struct err *e)
{
	scoped_fd fd = -1;
	ssize_t length;

	if (size == 0)
		return too_big(path, 0, e);
	fd = file_open(dirfd, path, O_RDONLY | O_NONBLOCK, 0, e);
	TRY(fd);
	length = read_full(fd, buffer, size);
	if (length < 0)
		return err_sys(e, "reading %s", path);
	if ((size_t)length == size)
		return too_big(path, size - 1, e);
	buffer[length] = '\0';
	return length;
}

int file_read_all(int dirfd, const char *path, size_t limit, char **data, size_t *length,
                  struct err *e)
{
	scoped_mem char *content = NULL;
	size_t capacity = 4096, used = 0;
	scoped_fd fd = file_open(dirfd, path, O_RDONLY | O_NONBLOCK, 0, e);

	TRY(fd);
	for (;;) {
		char *larger = realloc(content, capacity);
		ssize_t got;

		if (!larger)
			return err_set(e, ENOMEM, "reading %s: no memory for %zu bytes", path,
			               capacity);
		content = larger;
		got = read_full(fd, content + used, capacity - used);
		if (got < 0)
			return err_sys(e, "reading %s", path);
		used += (size_t)got;
		if (used > limit)
			return too_big(path, limit, e);
		if (used < capacity)
			break;
		capacity *= 2;
	}
	content[used] = '\0';
	*data = take_mem(&content);
	*length = used;
	return 0;
}

int file_write(int dirfd, const char *path, const char *text, struct err *e)
{
	scoped_fd fd = file_open(dirfd, path, O_WRONLY, 0, e);
	size_t length = strlen(text);
	ssize_t written;

	TRY(fd);
	do {
		written = write(fd, text, length);
	} while (written < 0 && errno == EINTR);
	if (written < 0)
		return err_sys(e, "writing '%.100s' to %s", text, path);
	if ((size_t)written != length)
		return err_set(e, EIO, "writing '%.100s' to %s: only %zd of %zu bytes were taken",
		               text, path, written, length);
	return 0;
}

int fd_write_all(int fd, const void *data, size_t length, struct err *e)
{
	const char *rest = data;

	while (length) {
		ssize_t written = write(fd, rest, length);

		if (written < 0 && errno == EAGAIN) {
			struct pollfd ready = {.fd = fd, .events = POLLOUT};

			if (poll(&ready, 1, -1) < 0 && errno != EINTR)
				return err_sys(e, "waiting to write");
			continue;
		}
		if (written < 0 && errno != EINTR)
			return err_sys(e, "writing");
		if (written > 0) {
			rest += written;
			length -= (size_t)written;
		}
	}
	return 0;
}

/* ---- replacing a file ---- */

/* A new file beside PATH, open for writing; its name goes to NAME. */
static int temporary_open(int dirfd, const char *path, char *name, size_t size, struct err *e)
{
	uint64_t random;
	int fd;

	for (int tries = 0; tries < TEMPORARY_TRIES; tries++) {
		if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
			return err_sys(e, "getrandom");
		TRY(text_format(name, size, e, "%s.%016" PRIx64, path, random));
		fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		            0600);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : err_sys(e, "creating %s", name);
	}
	return err_set(e, EEXIST, "creating a temporary file beside %s: every name is taken", path);
}

static int fill_and_sync(int fd, const char *name, const void *data, size_t length, mode_t mode,
                         struct err *e)
{
	if (fd_write_all(fd, data, length, e) < 0)
		return err_in(e, "%s", name);
	/* by descriptor, so that the umask has no say */
	if (fchmod(fd, mode) < 0)
		return err_sys(e, "setting the mode of %s", name);
	if (fsync(fd) < 0)
		return err_sys(e, "syncing %s", name);
	return 0;
}

/* Makes the names in PATH's directory durable. */
static int sync_parent(int dirfd, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	scoped_fd fd = -1;

	TRY(text_format(parent, sizeof parent, e, "%.*s", slash ? (int)(slash - path + 1) : 1,
	                slash ? path : "."));
	fd = file_open(dirfd, parent, O_RDONLY | O_DIRECTORY, 0, e);
	TRY(fd);
	return fsync(fd) < 0 ? err_sys(e, "syncing %s", parent) : 0;
}

int file_replace(int dirfd, const char *path, const void *data, size_t length, mode_t mode,
                 struct err *e)
{
	char name[PATH_MAX];
	scoped_fd fd = temporary_open(dirfd, path, name, sizeof name, e);
	int result;

	TRY(fd);
	result = fill_and_sync(fd, name, data, length, mode, e);
	if (result == 0 && renameat(dirfd, name, dirfd, path) < 0)
		result = err_sys(e, "renaming %s to %s", name, path);
	if (result < 0) {
		unlinkat(dirfd, name, 0);
		return result;
	}
	return sync_parent(dirfd, path, e);
}

int dir_make_all(int dirfd, const char *path, mode_t mode, struct err *e)
{
	char prefix[PATH_MAX];
	struct stat st;
	char *end = prefix;

	if (fstatat(dirfd, path, &st, 0) == 0 && S_ISDIR(st.st_mode))
		return 0;
	TRY(text_format(prefix, sizeof prefix, e, "%s", path));
	while (*end) {
		char separator;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		separator = *end;
		*end = '\0';
		if (*prefix && mkdirat(dirfd, prefix, mode) < 0 && errno != EEXIST)
			return err_sys(e, "making the directory %s", prefix);
		*end = separator;
	}
	if (fstatat(dirfd, path, &st, 0) < 0)
		return err_sys(e, "making the directory %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR,
		               "making the directory %s: something that is no directory has that "
		               "name",
		               path);
	return 0;
}

static int compare_fds(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

int fds_close_others(int keep[], size_t count, struct err *e)
{
	unsigned from = STDERR_FILENO + 1;

	qsort(keep, count, sizeof *keep, compare_fds);
	for (size_t i = 0; i < count; i++) {
		unsigned fd = (unsigned)keep[i];

		if (keep[i] < (int)from)
			continue;
		if (fd > from && close_range(from, fd - 1, 0) < 0)
			return err_sys(e, "close_range");
		from = fd + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? err_sys(e, "close_range") : 0;
}
