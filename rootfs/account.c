/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's line in /etc/passwd and /etc/group. The files are the image's, so they are hostile
 * input: opened without links and without blocking, regular files only, read up to a bound, scanned
 * as bytes. Nothing is written where the image has an entry for the number.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "rootfs/detached.h"
#include "rootfs/mounts.h"

enum { ACCOUNT_FILE_MAX = 1 << 20, HOSTS_MAX = 256 };

static const char user_name[] = "sandbox";

/* What a scan of one file found. */
struct account_scan {
	bool id_taken;     /* the number has a line */
	bool name_taken;   /* "sandbox" has a line */
	bool ends_in_line; /* empty, or its last byte is a newline */
};

/* The decimal number between FIELD and END, or -1; passwd(5) has it in the third field. */
static int64_t field_number(const char *field, const char *end)
{
	int64_t value = 0;

	if (field == end || end - field > 10)
		return -1;
	for (; field < end; field++) {
		if (*field < '0' || *field > '9')
			return -1;
		value = value * 10 + (*field - '0');
	}
	return value;
}

/* NAME:PASSWORD:NUMBER:..., the same for both files. */
static void scan_line(const char *line, const char *end, uint32_t id, struct account_scan *scan)
{
	size_t name_length = sizeof user_name - 1;
	const char *name_end = memchr(line, ':', (size_t)(end - line));
	const char *password_end, *number_end;

	if (!name_end)
		return;
	if ((size_t)(name_end - line) == name_length && !memcmp(line, user_name, name_length))
		scan->name_taken = true;
	password_end = memchr(name_end + 1, ':', (size_t)(end - name_end - 1));
	if (!password_end)
		return;
	number_end = memchr(password_end + 1, ':', (size_t)(end - password_end - 1));
	if (number_end && field_number(password_end + 1, number_end) == (int64_t)id)
		scan->id_taken = true;
}

static void scan_text(const char *text, size_t length, uint32_t id, struct account_scan *scan)
{
	const char *line = text, *end = text + length;

	scan->ends_in_line = length == 0 || end[-1] == '\n';
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline ? newline : end;

		scan_line(line, line_end, id, scan);
		line = line_end + 1;
	}
}

static int read_bounded(int fd, const char *path, size_t size, char **text, size_t *length,
                        struct err *e)
{
	scoped_mem char *buffer = malloc(size + 1);
	size_t used = 0;

	if (!buffer)
		return err_set(e, ENOMEM, "reading %s: out of memory", path);
	while (used < size) {
		ssize_t got = read(fd, buffer + used, size - used);

		if (got < 0)
			return err_sys(e, "reading %s", path);
		if (got == 0)
			break;
		used += (size_t)got;
	}
	*text = take_mem(&buffer);
	*length = used;
	return 0;
}

static int open_account_file(int rootfd, const char *path, int flags, struct err *e)
{
	scoped_fd fd = file_open2(rootfd, path, flags | O_NONBLOCK | O_NOCTTY, 0644, BENEATH_ROOT,
	                          e);
	struct stat st;

	if (fd == -ELOOP)
		return err_set(
			e, ELOOP,
			"%s: the image has a symbolic link on the way; it must be a plain file",
			path);
	/* ENXIO: a FIFO without a reader, or a socket */
	if (fd == -ENXIO || fd == -EISDIR)
		return err_set(e, EINVAL, "%s is not a regular file in the image", path);
	TRY(fd);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "%s is not a regular file in the image", path);
	if (st.st_size > ACCOUNT_FILE_MAX)
		return err_set(e, EFBIG,
		               "%s: the image's file has %jd bytes; more than %d is refused", path,
		               (intmax_t)st.st_size, ACCOUNT_FILE_MAX);
	return take_fd(&fd);
}

/* A missing file is an empty one. */
static int scan_file(int rootfd, const char *path, uint32_t id, struct account_scan *scan,
                     struct err *e)
{
	scoped_fd fd = open_account_file(rootfd, path, O_RDONLY, e);
	scoped_mem char *text = NULL;
	struct stat st;
	size_t length = 0;

	if (fd == -ENOENT) {
		*scan = (struct account_scan){.ends_in_line = true};
		return 0;
	}
	TRY(fd);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	TRY(read_bounded(fd, path, (size_t)st.st_size, &text, &length, e));
	*scan = (struct account_scan){0};
	scan_text(text, length, id, scan);
	return 0;
}

/* Only now, for writing: opening for it copies the file up from the image. */
static int append_line(int rootfd, const char *path, const char *line, struct err *e)
{
	mode_t mask = umask(022);
	scoped_fd fd = open_account_file(rootfd, path, O_WRONLY | O_APPEND | O_CREAT, e);

	umask(mask);
	TRY(fd);
	if (fd_write_all(fd, line, strlen(line), e) < 0)
		return err_in(e, "adding the sandbox's user to %s", path);
	return 0;
}

/* "sandbox", or with the number behind it where the image has a "sandbox" of its own. */
static int ensure_line(int rootfd, const char *path, uint32_t id, const char *rest, struct err *e)
{
	struct account_scan scan = {0};
	char name[32], line[600];

	TRY(scan_file(rootfd, path, id, &scan, e));
	if (scan.id_taken)
		return 0;
	if (scan.name_taken)
		snprintf(name, sizeof name, "%s%u", user_name, id);
	else
		snprintf(name, sizeof name, "%s", user_name);
	TRY(text_format(line, sizeof line, e, "%s%s:x:%u:%s\n", scan.ends_in_line ? "" : "\n", name,
	                id, rest));
	return append_line(rootfd, path, line, e);
}

int account_ensure(uint32_t uid, uint32_t gid, const char *home, struct err *e)
{
	scoped_fd rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	scoped_fd etcfd = -1;
	char rest[540];

	TRY(rootfd);
	if (home[0] != '/' || strpbrk(home, ":\n"))
		return err_set(e, EINVAL, "a home directory \"%.100s\" cannot stand in /etc/passwd",
		               home);
	etcfd = mount_target(rootfd, "/etc", e);
	TRY(etcfd);
	TRY(text_format(rest, sizeof rest, e, "%u:sandbox:%s:/bin/sh", gid, home));
	TRY(ensure_line(rootfd, "/etc/passwd", uid, rest, e));
	return ensure_line(rootfd, "/etc/group", gid, "", e);
}

/* Has the image that very file? To read it is much less than to have overlayfs copy it up. */
static bool hosts_is(int rootfd, const char *text, size_t length)
{
	char have[HOSTS_MAX];
	struct err ignored;
	struct stat status;
	scoped_fd fd = open_account_file(rootfd, "/etc/hosts", O_RDONLY, &ignored);

	return fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & 07777) == 0644 &&
	       read(fd, have, sizeof have) == (ssize_t)length && memcmp(have, text, length) == 0;
}

int hosts_write(const char *hostname, struct err *e)
{
	scoped_fd rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	scoped_fd fd = -1;
	char text[HOSTS_MAX];
	int length;

	TRY(rootfd);
	length = text_format(text, sizeof text, e,
	                     "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 %.64s\n",
	                     hostname);
	TRY(length);
	if (hosts_is(rootfd, text, (size_t)length))
		return 0;
	fd = open_account_file(rootfd, "/etc/hosts", O_WRONLY | O_CREAT | O_TRUNC, e);
	TRY(fd);
	if (fchmod(fd, 0644) < 0) /* whatever the umask */
		return err_sys(e, "/etc/hosts");
	return fd_write_all(fd, text, (size_t)length, e);
}
