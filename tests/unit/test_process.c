/* SPDX-License-Identifier: Apache-2.0 */
/* base/process.h: what a tool gets, how it ends, names of signals. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "base/scoped.h"

#define SH(script) ((const char *const[]){"sh", "-c", script, NULL})

/* Runs SCRIPT and returns what it wrote to stdout. */
static const char *output_of(const char *script, const char *const envp[], int stdinfd)
{
	static char text[4096];
	scoped_fd fd = memfd_create("output", MFD_CLOEXEC);
	struct err e = {0};
	ssize_t length;

	assert_true(fd >= 0);
	if (process_run(SH(script), envp, stdinfd, fd, &e) < 0)
		fail_msg("%s", e.text);
	length = pread(fd, text, sizeof text - 1, 0);
	assert_true(length >= 0);
	text[length] = '\0';
	return text;
}

static void test_environment_is_not_inherited(void **state)
{
	const char *const envp[] = {"ONE=1", NULL};

	(void)state;
	setenv("DATABASE_URL", "secret", 1);
	assert_string_equal(
		output_of("/usr/bin/env -u PWD -u SHLVL -u _ | /usr/bin/sort", NULL, -1),
		"LC_ALL=C\n"
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
	assert_string_equal(output_of("/usr/bin/env -u PWD -u SHLVL -u _", envp, -1), "ONE=1\n");
	unsetenv("DATABASE_URL");
}

static void test_only_three_descriptors(void **state)
{
	int leak = open("/dev/null", O_RDONLY); /* not close-on-exec */

	(void)state;
	assert_true(leak >= 0);
	/* the shell expands the pattern while it has the directory itself open */
	assert_string_equal(
		output_of("for f in /proc/self/fd/*; do if [ -e $f ]; then echo ${f##*/}; fi; done",
	                  NULL, -1),
		"0\n1\n2\n");
	close(leak);
}

static void test_stdin(void **state)
{
	scoped_fd fd = memfd_create("input", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(pwrite(fd, "given", 5, 0), 5);
	assert_string_equal(output_of("cat", NULL, fd), "given");
	assert_string_equal(output_of("cat", NULL, -1), "");
}

/* A caller whose own 0, 1 and 2 are closed or are what it passes, crosswise. */
static int run_with_low_descriptors(void)
{
	char text[8] = "";
	struct err e;
	int in, out;

	close(0);
	close(1);
	close(2);
	out = memfd_create("out", 0); /* 0 */
	in = memfd_create("in", 0);   /* 1 */
	if (out != 0 || in != 1 || pwrite(in, "abc", 3, 0) != 3)
		return 10;
	if (process_run(SH("cat; echo failed >&2; exit 3"), NULL, in, out, &e) != -EIO)
		return 11;
	if (!strstr(e.text, "exit code 3: failed"))
		return 12;
	return pread(out, text, 7, 0) == 3 && !strcmp(text, "abc") ? 0 : 13;
}

static void test_descriptors_may_cross(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(run_with_low_descriptors());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_signals_are_reset(void **state)
{
	unsigned long long ignored;
	sigset_t blocked, old;

	(void)state;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &old);
	signal(SIGPIPE, SIG_IGN);
	assert_string_equal(output_of("grep SigBlk /proc/self/status | cut -f2", NULL, -1),
	                    "0000000000000000\n");
	/* 32 and 33 are libc's own, which it has ignored in what it spawns */
	ignored = strtoull(output_of("grep SigIgn /proc/self/status | cut -f2", NULL, -1), NULL,
	                   16);
	assert_int_equal(ignored & ~(3ULL << 31), 0);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void test_failures_say_why(void **state)
{
	const char *const missing[] = {"no-such-program-here", NULL};
	const char *const directory[] = {"/tmp", NULL};
	struct err e;

	(void)state;
	assert_int_equal(process_run(SH("exit 0"), NULL, -1, -1, &e), 0);
	assert_int_equal(
		process_run(SH("echo first >&2; echo; echo last >&2; exit 7"), NULL, -1, -1, &e),
		-EIO);
	assert_string_equal(e.text, "sh failed with exit code 7: last");
	assert_int_equal(
		process_run(SH("printf '\\033[2Jred\\n\\n' >&2; exit 1"), NULL, -1, -1, &e), -EIO);
	assert_string_equal(e.text, "sh failed with exit code 1: \\x1b[2Jred");
	assert_int_equal(process_run(SH("exit 1"), NULL, -1, -1, &e), -EIO);
	assert_string_equal(e.text, "sh failed with exit code 1");
	assert_int_equal(process_run(SH("kill -9 $$"), NULL, -1, -1, &e), -EIO);
	assert_string_equal(e.text, "sh was killed by SIGKILL");
	assert_int_equal(process_run(missing, NULL, -1, -1, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no-such-program-here"));
	assert_int_equal(process_run(directory, NULL, -1, -1, &e), -EACCES);
	assert_non_null(strstr(e.text, "/tmp"));
}

static void test_much_stderr_is_drained(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(process_run(SH("head -c 1000000 /dev/zero | tr '\\0' x >&2; "
	                                "echo >&2; echo the end >&2; exit 1"),
	                             NULL, -1, -1, &e),
	                 -EIO);
	assert_string_equal(e.text, "sh failed with exit code 1: the end");
}

/* Something that the tool leaves behind holds its stderr; it ends when the socket's other end goes.
 */
static void test_what_stays_behind_is_not_waited_for(void **state)
{
	int fds[2];
	struct err e;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(
		process_run(SH("cat >/dev/null & echo started >&2; exit 1"), NULL, fds[0], -1, &e),
		-EIO);
	assert_string_equal(e.text, "sh failed with exit code 1: started");
	close(fds[0]);
	close(fds[1]);
}

static void test_program_is_not_taken_from_here(void **state)
{
	const char *const argv[] = {"local-tool", NULL};
	char directory[] = "/tmp/test_process.XXXXXX";
	const char *own = getenv("PATH");
	scoped_mem char *path = strdup(own ? own : "");
	scoped_mem char *here = getcwd(NULL, 0);
	struct err e;
	int fd;

	(void)state;
	assert_non_null(path);
	assert_non_null(here);
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	fd = open("local-tool", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
	close(fd);
	setenv("PATH", ":.:", 1);
	assert_int_equal(process_run(argv, NULL, -1, -1, &e), -ENOENT);
	setenv("PATH", directory, 1);
	assert_int_equal(process_run(argv, NULL, -1, -1, &e), 0);
	setenv("PATH", path, 1);
	assert_int_equal(unlink("local-tool"), 0);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void test_clone3_and_wait(void **state)
{
	int pidfd = -1, status = 0;
	struct clone_args args = {
		.flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	struct clone_args wrong = {.flags = CLONE_THREAD};
	struct err e;
	pid_t pid;

	(void)state;
	pid = process_clone3(&args);
	if (pid == 0)
		_exit(42);
	assert_true(pid > 0);
	assert_int_equal(process_wait(pidfd, &status, &e), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_int_equal(process_wait(pidfd, &status, &e), -ECHILD);
	close(pidfd);

	pid = process_clone3(&args);
	if (pid == 0) {
		raise(SIGKILL);
		_exit(0);
	}
	assert_int_equal(process_wait(pidfd, &status, &e), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	close(pidfd);
	assert_int_equal(process_clone3(&wrong), -EINVAL);
}

static void test_clock_goes_forward(void **state)
{
	uint64_t first = clock_us();

	(void)state;
	assert_true(first > 0);
	assert_true(clock_us() >= first);
}

static void test_signal_names(void **state)
{
	char buffer[16];
	struct err e;

	(void)state;
	assert_string_equal(signal_name(SIGTERM, buffer, sizeof buffer), "SIGTERM");
	assert_string_equal(signal_name(65, buffer, sizeof buffer), "SIG65");
	assert_string_equal(signal_name(-1, buffer, sizeof buffer), "SIG-1");
	assert_int_equal(signal_parse("TERM", &e), SIGTERM);
	assert_int_equal(signal_parse("SIGTERM", &e), SIGTERM);
	assert_int_equal(signal_parse("sigkill", &e), SIGKILL);
	assert_int_equal(signal_parse("15", &e), 15);
	assert_int_equal(signal_parse("64", &e), 64);
	for (int signo = 1; signo < NSIG; signo++)
		assert_int_equal(signal_parse(signal_name(signo, buffer, sizeof buffer), &e),
		                 signo);
	assert_int_equal(signal_parse("0", &e), -EINVAL);
	assert_int_equal(signal_parse("65", &e), -EINVAL);
	assert_int_equal(signal_parse("", &e), -EINVAL);
	assert_int_equal(signal_parse("SIG", &e), -EINVAL);
	assert_int_equal(signal_parse("TERMX", &e), -EINVAL);
	assert_non_null(strstr(e.text, "TERMX"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment_is_not_inherited),
		cmocka_unit_test(test_only_three_descriptors),
		cmocka_unit_test(test_stdin),
		cmocka_unit_test(test_descriptors_may_cross),
		cmocka_unit_test(test_signals_are_reset),
		cmocka_unit_test(test_failures_say_why),
		cmocka_unit_test(test_much_stderr_is_drained),
		cmocka_unit_test(test_what_stays_behind_is_not_waited_for),
		cmocka_unit_test(test_program_is_not_taken_from_here),
		cmocka_unit_test(test_clone3_and_wait),
		cmocka_unit_test(test_clock_goes_forward),
		cmocka_unit_test(test_signal_names),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
