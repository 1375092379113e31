/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock as the sandbox uses it: rules for a root, and descriptors that lead past it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/landlock.h"

static char base[] = "/tmp/test_landlock.XXXXXX";
static int insidefd, outsidefd, abi;

static int make_directory(const char *name)
{
	struct err e;

	assert_true(dir_make_all(AT_FDCWD, name, 0755, &e) == 0);
	return open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Runs BODY below a ruleset that allows all beneath "inside" but device nodes, and beneath "outside"
 * a right that no kernel knows yet, which is nothing.
 */
static int below_the_wall(int (*body)(void))
{
	const struct landlock_rule rules[] = {
		{insidefd, ~(uint64_t)LANDLOCK_ACCESS_FS_MAKE_CHAR},
		{outsidefd, UINT64_C(1) << 63},
	};
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct err e;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || landlock_restrict(rules, 2, &e) <= 0)
			_exit(99);
		_exit(body());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define TRIED(n, expression)                                                                       \
	do {                                                                                       \
		if (!(expression))                                                                 \
			return n;                                                                  \
	} while (0)

static int leaked_directory(void)
{
	TRIED(1, openat(outsidefd, "file", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
	TRIED(2, openat(outsidefd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0 &&
	                 errno == EACCES);
	TRIED(3, mkdirat(outsidefd, "new", 0755) < 0 && errno == EACCES);
	TRIED(4, unlinkat(outsidefd, "file", 0) < 0 && errno == EACCES);
	TRIED(5, openat(outsidefd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES);
	return 0;
}

static int work_inside(void)
{
	scoped_fd fd = openat(insidefd, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	TRIED(1, fd >= 0 && write(fd, "x", 1) == 1 && ftruncate(fd, 0) == 0);
	TRIED(2, mkdirat(insidefd, "directory", 0755) == 0);
	TRIED(3, renameat(insidefd, "file", insidefd, "directory/moved") == 0);
	TRIED(4, linkat(insidefd, "directory/moved", insidefd, "linked", 0) == 0);
	TRIED(5, mknodat(insidefd, "fifo", S_IFIFO | 0644, 0) == 0);
	TRIED(6, mknodat(insidefd, "null", S_IFCHR | 0666, 0x103) < 0 && errno == EACCES);
	return 0;
}

static void need_landlock(void)
{
	if (abi > 0)
		return;
	print_message("this kernel has no Landlock of ABI 2 or newer\n");
	skip();
}

static void a_leaked_directory_leads_nowhere(void **state)
{
	(void)state;
	need_landlock();
	assert_int_equal(leaked_directory(), 1); /* the control: without the wall it can be read */
	assert_int_equal(below_the_wall(leaked_directory), 0);
}

static void what_is_allowed_works(void **state)
{
	(void)state;
	need_landlock();
	assert_int_equal(below_the_wall(work_inside), 0);
}

static int set_up(void **state)
{
	scoped_fd filefd = -1;
	struct err e;
	int status;
	pid_t child;

	(void)state;
	assert_non_null(mkdtemp(base));
	assert_int_equal(chdir(base), 0);
	insidefd = make_directory("inside");
	outsidefd = make_directory("outside");
	filefd = openat(outsidefd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(insidefd >= 0 && outsidefd >= 0 && filefd >= 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(landlock_restrict(NULL, 0, &e));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	abi = WEXITSTATUS(status);
	return 0;
}

static int tear_down(void **state)
{
	struct err e;

	(void)state;
	close(insidefd);
	close(outsidefd);
	assert_int_equal(chdir("/"), 0);
	return tree_remove(AT_FDCWD, base, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaked_directory_leads_nowhere),
		cmocka_unit_test(what_is_allowed_works),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
