/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of rootfs/: a scratch directory with layers in it, a user namespace to map layers
 * into, a child that says what it found wrong, and a look at what is left on the host.
 */
#ifndef TESTS_UNIT_ROOTFS_FIXTURE_H
#define TESTS_UNIT_ROOTFS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"

enum { HOST_BASE = 1000000000, HOST_RANGE = 65536 };

#define assert_ok(expr)                                                                            \
	do {                                                                                       \
		if ((expr) < 0)                                                                    \
			fail_msg("%s", e.text);                                                    \
	} while (0)

#define assert_text(text, part)                                                                    \
	do {                                                                                       \
		if (!strstr((text), (part)))                                                       \
			fail_msg("\"%s\" lacks \"%s\"", (text), (part));                           \
	} while (0)

struct scratch {
	char path[64];
	int fd;
};

static inline void scratch_open(struct scratch *scratch)
{
	strcpy(scratch->path, "/tmp/agentdock-rootfs-XXXXXX");
	assert_non_null(mkdtemp(scratch->path));
	scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scratch->fd >= 0);
}

static inline void scratch_close(struct scratch *scratch)
{
	struct err e;

	close(scratch->fd);
	assert_ok(tree_remove(AT_FDCWD, scratch->path, &e));
}

static inline void write_file(int dirfd, const char *path, const char *text, mode_t mode)
{
	int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static inline void assert_file(int dirfd, const char *path, const char *text)
{
	char buffer[4096];
	struct err e;

	assert_ok(file_read(dirfd, path, buffer, sizeof buffer, &e));
	assert_string_equal(buffer, text);
}

/* Makes the directory NAME and returns its descriptor. */
static inline int make_layer(const struct scratch *scratch, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(scratch->fd, name, 0755), 0);
	fd = openat(scratch->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* How many loop devices of the host stand on a file beneath the scratch directory. */
static inline int loops_left(const struct scratch *scratch)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *entry;
	int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[320], backing[512];
		struct err e;

		snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
		if (file_read(AT_FDCWD, path, backing, sizeof backing, &e) > 0 &&
		    strstr(backing, scratch->path))
			count++;
	}
	closedir(dir);
	return count;
}

static inline int entries_in(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
	DIR *dir = fdopendir(fd);

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* Runs BODY in a child, which writes what is wrong to the descriptor that it gets. */
static inline void run_child(void (*body)(int out, void *data), void *data)
{
	char text[4096];
	size_t used = 0;
	ssize_t got;
	int pipefds[2], status;
	pid_t pid;

	assert_int_equal(pipe2(pipefds, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(pipefds[0]);
		body(pipefds[1], data);
		_exit(0);
	}
	close(pipefds[1]);
	while ((got = read(pipefds[0], text + used, sizeof text - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	close(pipefds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (used)
		fail_msg("inside:\n%s", text);
	if (status != 0)
		fail_msg("the child's wait status is %#x", status);
}

/* In a child: CHECK and REQUIRE say what is wrong; REQUIRE ends it, for the rest would not work. */
#define CHECK(out, condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			dprintf((out), "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,   \
			        errno);                                                            \
	} while (0)

#define REQUIRE(out, expr)                                                                         \
	do {                                                                                       \
		if ((expr) < 0) {                                                                  \
			dprintf((out), "%s:%d: %s: %s\n", __FILE__, __LINE__, #expr, e.text);      \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A user namespace with ids 0..65535 on HOST_BASE..; its descriptor. */
static inline int make_userns(void)
{
	char path[64], map[64];
	int ready[2], done[2], fd, status;
	char byte = 'x';
	struct err e;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(done[1]);
		if (unshare(CLONE_NEWUSER) == 0 && write(ready[1], &byte, 1) == 1 &&
		    read(done[0], &byte, 1) == 0)
			_exit(0);
		_exit(1);
	}
	close(ready[1]);
	close(done[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	snprintf(map, sizeof map, "0 %d %d\n", HOST_BASE, HOST_RANGE);
	snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
	assert_ok(file_write(AT_FDCWD, path, map, &e));
	snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
	assert_ok(file_write(AT_FDCWD, path, map, &e));
	snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(done[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return fd;
}

#endif
