/* SPDX-License-Identifier: Apache-2.0 */
/* base/files.h: in a directory of its own, trees that somebody hostile made included. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/scoped.h"

/* Deeper than PATH_MAX with one-letter names, and than the descriptors a process may have. */
enum { DEEP = 6000, WIDE = 5000 };

static char directory[] = "/tmp/test_files.XXXXXX";
static int dirfd_;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	dirfd_ = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dirfd_ < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	struct err e;

	(void)state;
	close(dirfd_);
	return tree_remove(AT_FDCWD, directory, &e);
}

static void make_file(int fd, const char *name, const char *text)
{
	scoped_fd file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
}

static int exists(const char *name)
{
	struct stat st;

	return fstatat(dirfd_, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_descriptors(void)
{
	scoped_dir dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	return count;
}

/* ---- single files ---- */

static void test_open(void **state)
{
	struct err e;
	scoped_fd fd = -1;

	(void)state;
	assert_int_equal(file_open(dirfd_, "absent", O_RDONLY, 0, &e), -ENOENT);
	assert_string_equal(e.text, "opening absent: No such file or directory");
	fd = file_open(dirfd_, "opened", O_WRONLY | O_CREAT, 0600, &e);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void test_open2_resolves_as_told(void **state)
{
	struct err e;
	scoped_fd fd = -1, made = -1;

	(void)state;
	assert_int_equal(symlinkat("/etc", dirfd_, "out"), 0);
	assert_int_equal(file_open2(dirfd_, "out/passwd", O_RDONLY, 0, RESOLVE_NO_SYMLINKS, &e),
	                 -ELOOP);
	assert_int_equal(file_open2(dirfd_, "../x", O_RDONLY, 0, RESOLVE_BENEATH, &e), -EXDEV);
	made = file_open2(dirfd_, "made", O_WRONLY | O_CREAT, 0600, RESOLVE_BENEATH, &e);
	assert_true(made >= 0);
	fd = file_open2(dirfd_, "made", O_RDONLY, 0600, RESOLVE_BENEATH, &e);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void test_read(void **state)
{
	char buffer[6];
	struct err e;

	(void)state;
	make_file(dirfd_, "five", "12345");
	make_file(dirfd_, "six", "123456");
	assert_int_equal(file_read(dirfd_, "five", buffer, sizeof buffer, &e), 5);
	assert_string_equal(buffer, "12345");
	assert_int_equal(file_read(dirfd_, "six", buffer, sizeof buffer, &e), -EFBIG);
	assert_non_null(strstr(e.text, "six"));
	assert_int_equal(file_read(dirfd_, "five", buffer, 0, &e), -EFBIG);
	assert_int_equal(file_read(dirfd_, ".", buffer, sizeof buffer, &e), -EISDIR);
}

static void test_read_all(void **state)
{
	scoped_mem char *big = malloc(10001), *data = NULL;
	size_t length = 0;
	struct err e;

	(void)state;
	assert_non_null(big);
	memset(big, 'x', 10000);
	big[10000] = '\0';
	make_file(dirfd_, "big", big);
	assert_int_equal(file_read_all(dirfd_, "big", 9999, &data, &length, &e), -EFBIG);
	assert_null(data);
	assert_int_equal(file_read_all(dirfd_, "big", 10000, &data, &length, &e), 0);
	assert_int_equal(length, 10000);
	assert_string_equal(data, big);
}

static void test_read_all_of_exactly_a_page(void **state)
{
	char page[4097];
	scoped_mem char *data = NULL;
	size_t length = 0;
	struct err e;

	(void)state;
	memset(page, 'y', 4096);
	page[4096] = '\0';
	make_file(dirfd_, "page", page);
	assert_int_equal(file_read_all(dirfd_, "page", 4096, &data, &length, &e), 0);
	assert_int_equal(length, 4096);
	assert_string_equal(data, page);
}

static void test_write(void **state)
{
	char buffer[16];
	struct err e;

	(void)state;
	assert_int_equal(file_write(dirfd_, "unmade", "x", &e), -ENOENT);
	assert_false(exists("unmade"));
	make_file(dirfd_, "control", "");
	assert_int_equal(file_write(dirfd_, "control", "max", &e), 0);
	file_read(dirfd_, "control", buffer, sizeof buffer, &e);
	assert_string_equal(buffer, "max");
	assert_int_equal(file_write(AT_FDCWD, "/dev/full", "x", &e), -ENOSPC);
	assert_non_null(strstr(e.text, "/dev/full"));
}

static void test_write_all_waits_for_a_full_pipe(void **state)
{
	static char data[300000], got[sizeof data];
	int fds[2], status;
	size_t at = 0;
	struct err e;
	pid_t pid;

	(void)state;
	memset(data, 'd', sizeof data);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fd_write_all(fds[1], data, sizeof data, &e) == 0 ? 0 : 1);
	close(fds[1]);
	assert_int_equal(fcntl(fds[0], F_SETFL, 0), 0);
	for (ssize_t n = 1; n > 0; at += (size_t)n) {
		n = read(fds[0], got + at, sizeof got - at);
		assert_true(n >= 0);
	}
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(at, sizeof data);
	assert_memory_equal(data, got, sizeof data);
}

static int entries_of(const char *name)
{
	scoped_fd fd = openat(dirfd_, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_dir dir = fdopendir(dup(fd));
	struct dirent *entry;
	int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	return count;
}

static void test_replace(void **state)
{
	char buffer[16];
	struct stat st;
	struct err e;

	(void)state;
	assert_int_equal(mkdirat(dirfd_, "replace", 0700), 0);
	assert_int_equal(file_replace(dirfd_, "replace/f", "one", 3, 0600, &e), 0);
	assert_int_equal(file_replace(dirfd_, "replace/f", "three", 5, 0666, &e), 0);
	assert_int_equal(file_read(dirfd_, "replace/f", buffer, sizeof buffer, &e), 5);
	assert_string_equal(buffer, "three");
	assert_int_equal(fstatat(dirfd_, "replace/f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	assert_int_equal(entries_of("replace"), 1);
}

static void test_replace_that_fails_leaves_nothing(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(mkdirat(dirfd_, "keep", 0700), 0);
	assert_int_equal(mkdirat(dirfd_, "keep/target", 0700), 0);
	assert_int_equal(file_replace(dirfd_, "keep/target", "x", 1, 0600, &e), -EISDIR);
	assert_int_equal(entries_of("keep"), 1);
	assert_int_equal(file_replace(dirfd_, "nowhere/f", "x", 1, 0600, &e), -ENOENT);
}

static void test_make_all(void **state)
{
	struct stat st;
	struct err e;

	(void)state;
	assert_int_equal(dir_make_all(dirfd_, "m/a//k/e/", 0700, &e), 0);
	assert_int_equal(dir_make_all(dirfd_, "m/a/k/e", 0700, &e), 0);
	assert_int_equal(fstatat(dirfd_, "m/a/k/e", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	make_file(dirfd_, "m/file", "");
	assert_int_equal(dir_make_all(dirfd_, "m/file", 0700, &e), -ENOTDIR);
	assert_int_equal(dir_make_all(dirfd_, "m/file/below", 0700, &e), -ENOTDIR);
	assert_int_equal(dir_make_all(AT_FDCWD, "/", 0700, &e), 0);
}

/* ---- trees ---- */

/* A chain of DEPTH directories named "d" beneath NAME, each with a file. */
static void make_deep(const char *name, int depth)
{
	int fd, next;

	assert_int_equal(mkdirat(dirfd_, name, 0700), 0);
	fd = openat(dirfd_, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < depth; i++) {
		assert_true(fd >= 0);
		make_file(fd, "f", "");
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void test_remove_nothing_and_files(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(tree_remove(dirfd_, "never-was", &e), 0);
	assert_int_equal(tree_remove(dirfd_, "never-was/below", &e), 0);
	make_file(dirfd_, "single", "x");
	assert_int_equal(tree_remove(dirfd_, "single", &e), 0);
	assert_false(exists("single"));
	assert_int_equal(tree_remove(dirfd_, "..", &e), -EINVAL);
	assert_int_equal(tree_remove(dirfd_, "/", &e), -EINVAL);
	assert_int_equal(tree_remove(dirfd_, "../x", &e), -EXDEV);
}

static void test_remove_follows_no_link(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(dir_make_all(dirfd_, "victim", 0700, &e), 0);
	make_file(dirfd_, "victim/precious", "x");
	assert_int_equal(dir_make_all(dirfd_, "links/sub", 0700, &e), 0);
	assert_int_equal(symlinkat("../victim", dirfd_, "links/relative"), 0);
	assert_int_equal(symlinkat("../../victim", dirfd_, "links/sub/deeper"), 0);
	assert_int_equal(tree_remove(dirfd_, "links/relative/precious", &e), -ELOOP);
	assert_int_equal(tree_remove(dirfd_, "links", &e), 0);
	assert_false(exists("links"));
	assert_true(exists("victim/precious"));
	assert_int_equal(symlinkat("victim", dirfd_, "top-link"), 0);
	assert_int_equal(tree_remove(dirfd_, "top-link", &e), 0);
	assert_false(exists("top-link"));
	assert_true(exists("victim/precious"));
}

static void test_remove_deep(void **state)
{
	int before = open_descriptors();
	struct err e;

	(void)state;
	make_deep("deep", DEEP);
	assert_int_equal(tree_remove(dirfd_, "deep", &e), 0);
	assert_false(exists("deep"));
	assert_int_equal(open_descriptors(), before);
}

/* The names that the removal itself would use are taken, at the top and below. */
static void test_remove_despite_taken_names(void **state)
{
	char name[64];
	struct err e;

	(void)state;
	make_deep("taken", 100);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "taken/.removed-%d-%d", getpid(), i);
		make_file(dirfd_, name, "");
	}
	assert_int_equal(tree_remove(dirfd_, "taken", &e), 0);
	assert_false(exists("taken"));
}

static void test_remove_wide(void **state)
{
	char name[32];
	struct err e;

	(void)state;
	assert_int_equal(mkdirat(dirfd_, "wide", 0700), 0);
	for (int i = 0; i < WIDE; i++) {
		snprintf(name, sizeof name, "wide/%d", i);
		if (i % 2)
			make_file(dirfd_, name, "");
		else
			assert_int_equal(mkdirat(dirfd_, name, 0700), 0);
		if (i % 4 == 0) {
			snprintf(name, sizeof name, "wide/%d/f", i);
			make_file(dirfd_, name, "");
		}
	}
	assert_int_equal(tree_remove(dirfd_, "wide", &e), 0);
	assert_false(exists("wide"));
}

/* In a mount namespace of a child's own, which ends with it. */
static int remove_across_mount(void)
{
	struct stat st;
	struct err e;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 10;
	if (chdir(directory) < 0 || mount("none", "mounted/at", "tmpfs", 0, NULL) < 0)
		return 11;
	make_file(AT_FDCWD, "mounted/at/precious", "");
	if (tree_remove(AT_FDCWD, "mounted", &e) >= 0 || !strstr(e.text, "mount point"))
		return 12;
	if (tree_remove(AT_FDCWD, "mounted/at", &e) >= 0)
		return 13;
	return stat("mounted/at/precious", &st) == 0 ? 0 : 14;
}

static void test_remove_stays_on_its_mount(void **state)
{
	struct err e;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(dir_make_all(dirfd_, "mounted/at", 0700, &e), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(remove_across_mount());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_measure(void **state)
{
	uint64_t bytes = 0, entries = 0, twice = 0, empty = 0;
	char text[8193];
	struct err e;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(dir_make_all(dirfd_, "measured/sub", 0700, &e), 0);
	assert_int_equal(tree_measure(dirfd_, "measured", &empty, &entries, &e), 0);
	assert_int_equal(entries, 2);
	make_file(dirfd_, "measured/sub/f", text);
	assert_int_equal(symlinkat("/", dirfd_, "measured/link"), 0);
	assert_int_equal(tree_measure(dirfd_, "measured", &bytes, &entries, &e), 0);
	assert_int_equal(entries, 4);
	assert_true(bytes >= empty + 8192);
	assert_true(bytes <= empty + 65536);
	assert_int_equal(linkat(dirfd_, "measured/sub/f", dirfd_, "measured/hard", 0), 0);
	assert_int_equal(tree_measure(dirfd_, "measured", &twice, &entries, &e), 0);
	assert_int_equal(entries, 5);
	assert_int_equal(twice, bytes);
	assert_int_equal(tree_measure(dirfd_, "absent", &bytes, &entries, &e), -ENOENT);
	assert_int_equal(tree_measure(dirfd_, "measured", NULL, NULL, &e), 0);
}

static void test_measure_deep(void **state)
{
	int before = open_descriptors();
	uint64_t entries = 0;
	struct err e;

	(void)state;
	make_deep("deep", DEEP);
	assert_int_equal(tree_measure(dirfd_, "deep", NULL, &entries, &e), 0);
	assert_int_equal(entries, 2 * DEEP + 1);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(tree_remove(dirfd_, "deep", &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_open2_resolves_as_told),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_all),
		cmocka_unit_test(test_read_all_of_exactly_a_page),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_write_all_waits_for_a_full_pipe),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_replace_that_fails_leaves_nothing),
		cmocka_unit_test(test_make_all),
		cmocka_unit_test(test_remove_nothing_and_files),
		cmocka_unit_test(test_remove_follows_no_link),
		cmocka_unit_test(test_remove_deep),
		cmocka_unit_test(test_remove_despite_taken_names),
		cmocka_unit_test(test_remove_wide),
		cmocka_unit_test(test_remove_stays_on_its_mount),
		cmocka_unit_test(test_measure),
		cmocka_unit_test(test_measure_deep),
	};

	return cmocka_run_group_tests_name("files", tests, set_up, tear_down);
}
