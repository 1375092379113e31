/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of agentdock-archive: runs the built program as its callers do, in a scratch
 * directory of this test's own. Included by one file each, so all of it is static.
 */
#ifndef TESTS_UNIT_ARCHIVE_FIXTURE_H
#define TESTS_UNIT_ARCHIVE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "rootfs/archive_result.h"

#define LIMITS    "--limit-bytes", "8388608", "--limit-entries", "2000"
#define ARGS(...) ((const char *const[]){"agentdock-archive", __VA_ARGS__, NULL})

static char program[PATH_MAX], generator[PATH_MAX], scratch[PATH_MAX];
static int scratchfd;
static struct err e;

#define OK(expr)                                                                                   \
	do {                                                                                       \
		if ((expr) < 0)                                                                    \
			fail_msg("%s: %s", #expr, e.text[0] ? e.text : strerror(errno));           \
	} while (0)

/* ---- running ---- */

struct run {
	int status; /* of exit(3), or 128 + the signal */
	struct archive_result result;
	char text[1024]; /* stderr */
};

/* In the child: what the program gets as 0, 1, 2, 3. */
static __attribute__((unused)) void become(const char *const args[], int dirfd, int infd, int outfd,
                                           int errfd, int resultfd)
{
	int nullfd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[] = {infd < 0 ? nullfd : infd, outfd < 0 ? nullfd : outfd, errfd, resultfd};

	if (dirfd >= 0 && fchdir(dirfd) < 0)
		_exit(99);
	for (int i = 0; i < 4; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 20);
	for (int i = 0; i < 4; i++)
		if (dup2(fds[i], i) < 0)
			_exit(99);
	execv(program, (char *const *)(uintptr_t)args);
	_exit(99);
}

static __attribute__((unused)) void run_program(struct run *run, int dirfd, int infd, int outfd,
                                                const char *const args[])
{
	scoped_fd errfd = memfd_create("err", MFD_CLOEXEC);
	scoped_fd resultfd = memfd_create("result", MFD_CLOEXEC);
	pid_t child = fork();
	int status;

	if (child == 0)
		become(args, dirfd, infd, outfd, errfd, resultfd);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	memset(run, 0, sizeof *run);
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	assert_true(pread(errfd, run->text, sizeof run->text - 1, 0) >= 0);
	if (pread(resultfd, &run->result, sizeof run->result, 0) != sizeof run->result)
		memset(&run->result, 0, sizeof run->result);
}

static __attribute__((unused)) void expect_ok(const struct run *run)
{
	if (run->status != 0 || run->result.kind != ARCHIVE_RESULT_OK)
		fail_msg("status %d, kind %d: %s", run->status, run->result.kind, run->text);
}

static __attribute__((unused)) int make_dir(const char *name)
{
	int fd;

	OK(tree_remove(scratchfd, name, &e));
	OK(mkdirat(scratchfd, name, 0755));
	OK(fd = openat(scratchfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return fd;
}

static __attribute__((unused)) void put_file(int dirfd, const char *path, const char *text,
                                             mode_t mode)
{
	scoped_fd fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	OK(fd);
	OK(fd_write_all(fd, text, strlen(text), &e));
	OK(fchmod(fd, mode));
}

static __attribute__((unused)) void expect_content(int dirfd, const char *path, const char *text)
{
	char content[256];

	OK(file_read(dirfd, path, content, sizeof content, &e));
	assert_string_equal(content, text);
}

static __attribute__((unused)) int memory_file(void)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	OK(fd);
	return fd;
}

static __attribute__((unused)) int rewound(int fd)
{
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static off_t size_of(int fd)
{
	struct stat st;

	OK(fstat(fd, &st));
	return st.st_size;
}

static __attribute__((unused)) bool same_bytes(int fd1, int fd2)
{
	size_t size = (size_t)size_of(fd1);
	void *p1, *p2;
	bool same;

	if (size_of(fd2) != (off_t)size)
		return false;
	p1 = mmap(NULL, size, PROT_READ, MAP_SHARED, fd1, 0);
	p2 = mmap(NULL, size, PROT_READ, MAP_SHARED, fd2, 0);
	assert_true(p1 != MAP_FAILED && p2 != MAP_FAILED);
	same = memcmp(p1, p2, size) == 0;
	munmap(p1, size);
	munmap(p2, size);
	return same;
}

static __attribute__((unused)) bool holds(int fd, const char *text)
{
	size_t size = (size_t)size_of(fd);
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	bool found;

	assert_true(p != MAP_FAILED);
	found = memmem(p, size, text, strlen(text));
	munmap(p, size);
	return found;
}

/* The tree as our own packer sees it, every time 0: two trees with the same fingerprint are equal
 * in names, types, modes, owners, links and bytes. */
static __attribute__((unused)) int fingerprint(int dirfd)
{
	int fd = memory_file();
	struct run run;

	run_program(&run, dirfd, -1, fd,
	            ARGS("pack", "--keep-owner", "--epoch", "--xattrs", "--result-fd", "3"));
	expect_ok(&run);
	return fd;
}

/* ---- where things are ---- */

static __attribute__((unused)) int set_up(void **state)
{
	char here[PATH_MAX - 64];
	ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
	const char *tmp = getenv("TMPDIR");

	(void)state;
	if (length < 0)
		return -1;
	here[length] = '\0';
	for (int up = 0; up < 2; up++) /* BUILD/tests/test_archive */
		*strrchr(here, '/') = '\0';
	snprintf(program, sizeof program, "%s/agentdock-archive", here);
	snprintf(generator, sizeof generator, "%s/../tests/hostile_archives.py", here);
	snprintf(scratch, sizeof scratch, "%s/archive-test.XXXXXX", tmp ? tmp : "/tmp");
	umask(022);
	if (!mkdtemp(scratch))
		return -1;
	scratchfd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return scratchfd < 0 ? -1 : 0;
}

static __attribute__((unused)) int tear_down(void **state)
{
	(void)state;
	close(scratchfd);
	return tree_remove(AT_FDCWD, scratch, &e);
}

#endif
