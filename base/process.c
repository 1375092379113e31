/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: tools that are run and waited for, pidfds, signal names. Owns no state. A tool gets
 * exactly three descriptors, a default signal state and the environment that the caller names.
 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"

uint64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

pid_t process_clone3(const struct clone_args *args)
{
	long pid = syscall(SYS_clone3, args, sizeof *args);

	return pid >= 0 ? (pid_t)pid : -errno;
}

int process_wait(int pidfd, int *status, struct err *e)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
		if (errno != EINTR)
			return err_sys(e, "waiting for a process");
	if (info.si_code == CLD_EXITED)
		*status = W_EXITCODE(info.si_status, 0);
	else
		*status = info.si_status | (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
	return 0;
}

void process_end(pid_t *pid, bool kill_first)
{
	int status;

	if (*pid <= 0)
		return;
	if (kill_first)
		kill(*pid, SIGKILL);
	while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
		;
	*pid = -1;
}

/* ---- running a tool ---- */

#define PATH_OF_TOOLS "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       faccessat(AT_FDCWD, path, X_OK, 0) == 0;
}

/*
 * Relative entries of PATH are passed over: what lies in the current directory is never run. The
 * usual directories come last, because mkfs and its like are in sbin, which PATH often lacks.
 */
static int program_find(const char *name, char *found, size_t size, struct err *e)
{
	const char *own = getenv("PATH");
	const char *const lists[] = {own ? own : "", PATH_OF_TOOLS};

	if (strchr(name, '/')) {
		TRY(text_format(found, size, e, "%s", name));
		return 0;
	}
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		for (const char *at = lists[i]; *at; at += strspn(at, ":")) {
			int length = (int)strcspn(at, ":");

			if (*at == '/' &&
			    snprintf(found, size, "%.*s/%s", length, at, name) < (int)size &&
			    is_program(found))
				return 0;
			at += length;
		}
	}
	return err_set(e, ENOENT, "%s: no such program in PATH or " PATH_OF_TOOLS "; install it",
	               name);
}

enum { DRAIN_READS = 64 }; /* after the end: what a pipe holds, and not for ever */

/* What a tool wrote to stderr: the end of it, whatever its length. */
struct tail {
	char text[4096];
	size_t length;
};

/* Reads once; 0 at the end of the file or when nothing is there. */
static ssize_t tail_read(struct tail *tail, int fd)
{
	ssize_t got;

	if (tail->length == sizeof tail->text - 1) {
		size_t half = tail->length / 2;

		memmove(tail->text, tail->text + half, tail->length - half);
		tail->length -= half;
	}
	got = read(fd, tail->text + tail->length, sizeof tail->text - 1 - tail->length);
	if (got > 0)
		tail->length += (size_t)got;
	return got > 0 ? got : 0;
}

/* The last line that says anything, or "". */
static const char *tail_last_line(struct tail *tail)
{
	char *line;

	tail->text[tail->length] = '\0';
	for (size_t i = 0; i < tail->length; i++)
		if (tail->text[i] == '\0')
			tail->text[i] = '?';
	while (tail->length && strchr(" \t\r\n", tail->text[tail->length - 1]))
		tail->text[--tail->length] = '\0';
	line = strrchr(tail->text, '\n');
	return line ? line + 1 : tail->text;
}

/* A copy of FD, or of /dev/null for -1, above the three that a tool gets: the order in which those
 * are set up cannot overwrite one that is still needed. */
static int lift_fd(int fd, struct err *e)
{
	scoped_fd null = fd < 0 ? file_open(AT_FDCWD, "/dev/null", O_RDWR, 0, e) : -1;
	int lifted;

	if (fd < 0)
		TRY(null);
	lifted = fcntl(fd < 0 ? null : fd, F_DUPFD_CLOEXEC, 3);
	return lifted >= 0 ? lifted : err_sys(e, "duplicating a descriptor for a tool");
}

static int spawn(const char *program, const struct process_tool *tool, const int fds[3], pid_t *pid)
{
	static const char *const default_envp[] = {"PATH=" PATH_OF_TOOLS, "LC_ALL=C", NULL};
	const char *const *envp = tool->envp ? tool->envp : default_envp;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int code;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	code = posix_spawnattr_setsigmask(&attributes, &none);
	code = code ? code : posix_spawnattr_setsigdefault(&attributes, &all);
	code = code ? code
	            : posix_spawnattr_setflags(&attributes,
	                                       POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	for (int i = 0; i < 3 && !code; i++)
		code = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	code = code ? code : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (tool->cwd && !code)
		code = posix_spawn_file_actions_addchdir_np(&actions, tool->cwd);
	/* posix_spawn's types lack const, but it changes nothing */
	code = code ? code
	            : posix_spawn(pid, program, &actions, &attributes,
	                          (char *const *)(uintptr_t)tool->argv,
	                          (char *const *)(uintptr_t)envp);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return code;
}

/* Milliseconds until END_US, for poll(2); 0: it has come. */
static int left_until(uint64_t end_us)
{
	uint64_t now = clock_us();

	if (end_us == UINT64_MAX)
		return -1;
	return end_us <= now                 ? 0
	       : end_us - now > 60 * 1000000 ? 60 * 1000
	                                     : (int)((end_us - now + 999) / 1000);
}

/*
 * Drains stderr until the tool itself has ended: a daemon that it left behind may hold the pipe
 * open for ever. 1: it was killed at END_US.
 */
static int wait_and_drain(int pidfd, int stderrfd, uint64_t end_us, struct tail *tail, int *status,
                          struct err *e)
{
	struct pollfd fds[] = {{.fd = stderrfd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	bool late = false;

	while (!fds[1].revents) {
		int left = left_until(end_us);

		if (left == 0) {
			late = true;
			end_us = UINT64_MAX;
			pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
			continue;
		}
		if (poll(fds, 2, left) < 0) {
			if (errno != EINTR)
				return err_sys(e, "waiting for a tool");
			continue;
		}
		if (fds[0].revents && tail_read(tail, stderrfd) == 0)
			fds[0].fd = -1;
	}
	for (int i = 0; i < DRAIN_READS && tail_read(tail, stderrfd) > 0; i++)
		;
	TRY(process_wait(pidfd, status, e));
	return late;
}

static int ending(const char *name, int status, struct tail *tail, struct err *e)
{
	char line[400], signal[16];
	const char *said = text_printable(tail_last_line(tail), line, sizeof line);
	const char *colon = *said ? ": " : "";

	if (WIFSIGNALED(status))
		return err_set(e, EIO, "%s was killed by %s%s%s", name,
		               signal_name(WTERMSIG(status), signal, sizeof signal), colon, said);
	if (WEXITSTATUS(status))
		return err_set(e, EIO, "%s failed with exit code %d%s%s", name, WEXITSTATUS(status),
		               colon, said);
	return 0;
}

/* Sets *PID and its pidfd, and *READFD, where what it writes to stderr comes. */
static int start_tool(const struct process_tool *tool, pid_t *pid, int *pidfd, int *readfd,
                      struct err *e)
{
	scoped_fd in = -1, out = -1, errors = -1, writefd = -1;
	char program[PATH_MAX];
	int pipefds[2], code;

	if (tool->path)
		TRY(text_format(program, sizeof program, e, "%s", tool->path));
	else
		TRY(program_find(tool->argv[0], program, sizeof program, e));
	TRY(in = lift_fd(tool->stdinfd, e));
	TRY(out = lift_fd(tool->stdoutfd, e));
	if (pipe2(pipefds, O_CLOEXEC) < 0)
		return err_sys(e, "making a pipe for %s", tool->argv[0]);
	*readfd = pipefds[0];
	writefd = pipefds[1];
	TRY(errors = lift_fd(writefd, e));
	if (fcntl(*readfd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "making a pipe for %s", tool->argv[0]);
	code = spawn(program, tool, (int[3]){in, out, errors}, pid);
	if (code)
		return err_set(e, code, "starting %s: %s", program, strerrordesc_np(code));
	*pidfd = pidfd_open(*pid, 0);
	if (*pidfd >= 0)
		return 0;
	err_sys(e, "pidfd_open of %s", tool->argv[0]);
	process_end(pid, true);
	return -e->code;
}

int process_run_tool(const struct process_tool *tool, struct err *e)
{
	scoped_fd readfd = -1, pidfd = -1;
	struct tail tail = {.length = 0};
	uint64_t end_us = UINT64_MAX;
	int status, late;
	pid_t pid;

	if (tool->timeout_ms > 0 && tool->timeout_ms < INT64_MAX / 2000)
		end_us = clock_us() + (uint64_t)tool->timeout_ms * 1000;
	TRY(start_tool(tool, &pid, &pidfd, &readfd, e));
	TRY(late = wait_and_drain(pidfd, readfd, end_us, &tail, &status, e));
	if (late)
		return err_set(e, ETIMEDOUT, "%s was killed: it took more than %" PRId64 " ms",
		               tool->argv[0], tool->timeout_ms);
	return ending(tool->argv[0], status, &tail, e);
}

int process_run(const char *const argv[], const char *const envp[], int stdinfd, int stdoutfd,
                struct err *e)
{
	const struct process_tool tool = {
		.argv = argv, .envp = envp, .stdinfd = stdinfd, .stdoutfd = stdoutfd};

	return process_run_tool(&tool, e);
}

/* ---- signals ---- */

enum { SIGNALS = 64, SIGSET_BYTES = 8 };

/* glibc keeps two signals (32, 33) to itself: for those too, the calls are made directly. */
void process_block_signals(bool all)
{
	uint64_t mask = all ? ~UINT64_C(0) : 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, SIGSET_BYTES);
}

void process_default_signals(void)
{
	static const struct {
		void (*handler)(int);
		unsigned long flags, restorer, mask;
	} by_default;

	for (int signo = 1; signo <= SIGNALS; signo++)
		syscall(SYS_rt_sigaction, signo, &by_default, NULL, SIGSET_BYTES);
}

int program_executable(const char *candidate)
{
	struct stat status;

	if (stat(candidate, &status))
		return errno;
	if (S_ISDIR(status.st_mode))
		return EISDIR;
	if (!S_ISREG(status.st_mode) || faccessat(AT_FDCWD, candidate, X_OK, AT_EACCESS))
		return EACCES;
	return 0;
}

int program_search(const char *name, const char *path, char *program, size_t size)
{
	int reason = ENOENT;

	while (*path) {
		size_t length = strcspn(path, ":");
		int r = ENAMETOOLONG;

		if (snprintf(program, size, "%.*s%s%s", (int)length, path, length ? "/" : "./",
		             name) < (int)size)
			r = program_executable(program);
		if (r == 0)
			return 0;
		if (r != ENOENT && r != ENOTDIR && r != EISDIR)
			reason = r;
		path += length + (path[length] == ':');
	}
	return reason;
}

const char *signal_name(int signo, char *buffer, size_t size)
{
	const char *name = sigabbrev_np(signo);

	if (name)
		snprintf(buffer, size, "SIG%s", name);
	else
		snprintf(buffer, size, "SIG%d", signo);
	return buffer;
}

/* "RTMIN", "RTMIN+3", "RTMAX-1", as libc numbers them; 0: it is no such name. */
static int realtime_signal(const char *name)
{
	bool from_end = strncasecmp(name, "RTMAX", 5) == 0;
	uint64_t offset = 0;
	struct err unused;

	if (!from_end && strncasecmp(name, "RTMIN", 5) != 0)
		return 0;
	if (name[5] && (name[5] != (from_end ? '-' : '+') ||
	                parse_u64(name + 6, (uint64_t)(SIGRTMAX - SIGRTMIN), &offset, &unused) < 0))
		return 0;
	return from_end ? SIGRTMAX - (int)offset : SIGRTMIN + (int)offset;
}

int signal_parse(const char *text, struct err *e)
{
	static const struct {
		const char *name;
		int signo;
	} second_names[] = {{"IOT", SIGABRT}, {"CLD", SIGCHLD}, {"IO", SIGIO}};
	const char *name = strncasecmp(text, "SIG", 3) ? text : text + 3;
	struct err unused;
	uint64_t number;

	for (int signo = 1; signo < NSIG; signo++) {
		const char *known = sigabbrev_np(signo);

		if (known && !strcasecmp(known, name))
			return signo;
	}
	for (size_t i = 0; i < sizeof second_names / sizeof *second_names; i++)
		if (!strcasecmp(second_names[i].name, name))
			return second_names[i].signo;
	if (realtime_signal(name))
		return realtime_signal(name);
	if (parse_u64(name, NSIG - 1, &number, &unused) == 0 && number > 0)
		return (int)number;
	return err_set(e, EINVAL, "'%s' is not a signal; write a name such as TERM or a number",
	               text);
}

bool process_has_host_ids(void)
{
	scoped_fd fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	char line[64] = ""; /* the first of many, perhaps */
	unsigned long inside, outside, count;
	char *rest = line;

	if (fd < 0 || read(fd, line, sizeof line - 1) <= 0)
		return true;
	inside = strtoul(rest, &rest, 10);
	outside = strtoul(rest, &rest, 10);
	count = strtoul(rest, &rest, 10);
	return inside == 0 && outside == 0 && count == UINT32_MAX;
}
