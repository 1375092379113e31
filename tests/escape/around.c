/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's half of an attack: prepares, runs the launcher, judges. Owns the launcher's process
 * group and the two pipes from it. What comes out of them is hostile: whatever its amount, one
 * bounded line of each is kept, and it is made printable before it is passed on. A launcher that
 * never came to the attack is an error, never a wall that held; so is one that does not end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "tests/escape/driver.h"

enum {
	TIMEOUT_SECONDS = 90,
	GRACE_MS = 10 * 1000, /* for a launcher that is told to end, to take its sandbox down */
	DRAIN_READS = 64,     /* after the end: what a pipe holds, and not for ever */
	WORDS_MAX = 8,
};

/* One stream of the launcher: the line that matters of all that came. */
struct lines {
	int fd;
	bool first_counts; /* of stderr the first line that says anything, of stdout the last */
	bool tried;        /* the inside said that it begins */
	char line[512];    /* begun, not ended; what does not fit is dropped */
	size_t length;
	char kept[512];
};

struct launch {
	pid_t pid;
	int pidfd;
	int status;
	bool timed_out;
	struct lines out, err;
};

static void line_ends(struct lines *lines)
{
	lines->line[lines->length] = '\0';
	if (strlen(lines->line) == lines->length && strcmp(lines->line, TRYING) == 0)
		lines->tried = true;
	else if (lines->length && !(lines->first_counts && lines->kept[0]))
		memcpy(lines->kept, lines->line, lines->length + 1);
	lines->length = 0;
}

/* Reads once; false at the end of the stream or when nothing is there. */
static bool lines_read(struct lines *lines)
{
	char buffer[16384];
	ssize_t got = read(lines->fd, buffer, sizeof(buffer));

	for (ssize_t i = 0; i < got; i++) {
		if (buffer[i] == '\n')
			line_ends(lines);
		else if (lines->length < sizeof(lines->line) - 1)
			lines->line[lines->length++] = buffer[i];
	}
	return got > 0;
}

static void lines_finish(struct lines *lines)
{
	for (int i = 0; i < DRAIN_READS && lines_read(lines); i++)
		;
	if (lines->length)
		line_ends(lines);
	close_fd(&lines->fd);
}

/* ---- processes ---- */

static void __attribute__((noreturn)) launcher_start(char *const argv[], int out, int err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0)
		_exit(PROBE_ERROR);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "starting %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int launch(struct launch *launch, char *const argv[])
{
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		return -1;
	launch->out.fd = out[0];
	if (pipe2(err, O_CLOEXEC) < 0) {
		close(out[1]);
		return -1;
	}
	launch->err.fd = err[0];
	launch->pid = fork();
	if (launch->pid == 0)
		launcher_start(argv, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (launch->pid < 0)
		return -1;
	launch->pidfd = pidfd_open(launch->pid, 0);
	setpgid(launch->pid, launch->pid);
	fcntl(launch->out.fd, F_SETFL, O_NONBLOCK);
	fcntl(launch->err.fd, F_SETFL, O_NONBLOCK);
	return launch->pidfd < 0 ? -1 : 0;
}

/* For machines on which all takes longer, and for tests of what happens then. */
int around_patience(uint64_t *us)
{
	const char *setting = getenv("AGENTDOCK_PROBE_TIMEOUT");
	uint64_t seconds = TIMEOUT_SECONDS;
	struct err e;

	if (setting && *setting && parse_u64(setting, 24 * 3600, &seconds, &e) < 0) {
		fprintf(stderr, "AGENTDOCK_PROBE_TIMEOUT: %s\n", e.text);
		return PROBE_ERROR;
	}
	*us = seconds * 1000000;
	return 0;
}

/* Asks it to end when its time is up, and no longer asks a while later. */
static uint64_t out_of_time(struct launch *launch)
{
	kill(-launch->pid, launch->timed_out ? SIGKILL : SIGTERM);
	launch->timed_out = true;
	return clock_us() + GRACE_MS * UINT64_C(1000);
}

/* Drains both streams until the launcher itself has ended: what it left behind may hold them. */
static int wait_for(struct launch *launch, uint64_t patience_us)
{
	struct pollfd fds[] = {{.fd = launch->out.fd, .events = POLLIN},
	                       {.fd = launch->err.fd, .events = POLLIN},
	                       {.fd = launch->pidfd, .events = POLLIN}};
	uint64_t end = clock_us() + patience_us, now;
	struct err ignored;

	while (!fds[2].revents) {
		now = clock_us();
		if (now >= end)
			end = out_of_time(launch);
		poll(fds, 3, now < end ? (int)((end - now) / 1000) + 1 : 0);
		if (fds[0].revents && !lines_read(&launch->out))
			fds[0].fd = -1;
		if (fds[1].revents && !lines_read(&launch->err))
			fds[1].fd = -1;
	}
	lines_finish(&launch->out);
	lines_finish(&launch->err);
	if (launch->timed_out)
		kill(-launch->pid, SIGKILL);
	return process_wait(launch->pidfd, &launch->status, &ignored);
}

/* -1: the attack has no such half, or no process could be had. */
static pid_t during_start(const struct attack *attack)
{
	pid_t pid = attack->during ? fork() : -1;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		attack->during();
		_exit(0);
	}
	return pid;
}

static void during_end(pid_t pid)
{
	if (pid < 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- the judgement ---- */

static const char *how_it_ended(int status, char *buffer, size_t size)
{
	char name[16];

	if (WIFSIGNALED(status))
		snprintf(buffer, size, "ended by %s",
		         signal_name(WTERMSIG(status), name, sizeof(name)));
	else
		snprintf(buffer, size, "exit status %d", WEXITSTATUS(status));
	return buffer;
}

/* What the inside said: an outcome, or -1 when its last line is none. */
static int said(const struct launch *launch, struct evidence *evidence)
{
	char printable[4 * sizeof(launch->out.kept) + 1];

	for (int outcome = HELD; outcome <= UNTRIED; outcome++) {
		const char *name = outcome_name((enum outcome)outcome);
		size_t length = strlen(name);

		if (strncmp(launch->out.kept, name, length) == 0 &&
		    strncmp(launch->out.kept + length, ": ", 2) == 0) {
			text_printable(launch->out.kept + length + 2, printable, sizeof(printable));
			return (int)verdict(evidence, (enum outcome)outcome, "%s", printable);
		}
	}
	return -1;
}

/* The first line of stderr, so that it is known why there is no outcome. */
static enum outcome no_outcome(const struct launch *launch, const char *what,
                               struct evidence *evidence)
{
	char printable[4 * sizeof(launch->err.kept) + 1], ending[48];

	return verdict(evidence, UNTRIED, "%s (%s)%s%s", what,
	               how_it_ended(launch->status, ending, sizeof(ending)),
	               launch->err.kept[0] ? ": " : "",
	               text_printable(launch->err.kept, printable, sizeof(printable)));
}

static bool is_refusal(const struct attack *attack, const struct launch *launch)
{
	const char *const *text = attack->refusals;

	while (text && *text && !strstr(launch->err.kept, *text))
		text++;
	return text && *text && !(WIFEXITED(launch->status) && WEXITSTATUS(launch->status) == 0);
}

/* The end of who was stopped by a wall, as a launcher tells it; all else is somebody's fault. */
static bool ended_for_it(const struct attack *attack, bool silent, int status)
{
	if (WIFSIGNALED(status)) /* the launcher itself */
		return false;
	return !silent || attack->silent || WEXITSTATUS(status) == 128 + SIGSYS;
}

static enum outcome judge(const struct attack *attack, const struct launch *launch,
                          struct evidence *evidence)
{
	int outcome;
	bool silent;

	if (launch->timed_out)
		return no_outcome(launch, "the sandbox did not end in time", evidence);
	if (!launch->out.tried && is_refusal(attack, launch)) {
		no_outcome(launch, "the sandbox refuses to start", evidence);
		return attack->after ? attack->after(HELD, launch->status, evidence) : HELD;
	}
	if (!launch->out.tried)
		return no_outcome(launch, "the sandbox did not start", evidence);
	outcome = said(launch, evidence);
	silent = outcome < 0;
	if (silent) {
		no_outcome(launch, "ended while it tried", evidence);
		outcome = HELD;
	}
	if (attack->after)
		outcome = (int)attack->after((enum outcome)outcome, launch->status, evidence);
	if (outcome == HELD && !ended_for_it(attack, silent, launch->status))
		return no_outcome(launch,
		                  silent ? "ended while it tried"
		                         : "the launcher did not end by itself",
		                  evidence);
	return (enum outcome)outcome;
}

static void print_verdict(const struct attack *attack, enum outcome outcome,
                          const struct evidence *evidence)
{
	scoped_json object = json_object_new_object();
	char printable[4 * sizeof(evidence->text) + 1];

	json_add_string(object, "attack", attack->name);
	json_add_string(object, "what", attack->what);
	json_add_string(object, "seen", attack->seen);
	json_add_string(object, "wall", attack->wall);
	json_add_string(object, "outcome", outcome_name(outcome));
	json_add_string(object, "evidence",
	                text_printable(evidence->text, printable, sizeof(printable)));
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
	                                                    JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* LAUNCHER /probe inside NAME WORDS, NULL-terminated; only the array is allocated. */
static char **command_line(const struct attack *attack, char *const launcher[],
                           const char *const words[])
{
	const char *const tail[] = {"/probe", "inside", attack->name};
	size_t count = 0, at = 0;
	const char **argv;

	while (launcher[count])
		count++;
	argv = calloc(count + 3 + WORDS_MAX + 1, sizeof(*argv));
	if (!argv)
		return NULL;
	for (size_t i = 0; i < count; i++)
		argv[at++] = launcher[i];
	for (size_t i = 0; i < 3; i++)
		argv[at++] = tail[i];
	for (size_t i = 0; i < WORDS_MAX && words[i]; i++)
		argv[at++] = words[i];
	/* execvp's type lacks const, but it changes nothing */
	return (char **)(uintptr_t)argv;
}

static enum outcome run_and_judge(const struct attack *attack, char *const argv[],
                                  uint64_t patience_us, struct evidence *evidence)
{
	struct launch run = {.pidfd = -1, .out.fd = -1, .err = {.fd = -1, .first_counts = true}};
	pid_t during = during_start(attack);
	enum outcome outcome = UNTRIED;

	if (attack->during && during < 0)
		verdict(evidence, UNTRIED, "starting the host's half: %s", strerror(errno));
	else if (launch(&run, argv) < 0 || wait_for(&run, patience_us) < 0)
		verdict(evidence, UNTRIED, "running %s: %s", argv[0], strerror(errno));
	else
		outcome = judge(attack, &run, evidence);
	during_end(during);
	close_fd(&run.pidfd);
	close_fd(&run.out.fd);
	close_fd(&run.err.fd);
	return outcome;
}

int around(const struct attack *attack, char *const launcher[])
{
	const char *words[WORDS_MAX] = {NULL};
	struct evidence evidence = {.text = ""};
	enum outcome outcome;
	uint64_t patience_us;
	int prepared;

	if (around_patience(&patience_us) != 0)
		return PROBE_ERROR;
	/* the launcher is told in turn when this process ends */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prepared = attack->before ? attack->before(words, &evidence) : 0;
	outcome = prepared < 0 ? UNTRIED : ABSENT;
	if (prepared == 0) {
		scoped_mem char **argv = command_line(attack, launcher, words);

		outcome = argv ? run_and_judge(attack, argv, patience_us, &evidence) : UNTRIED;
	}
	print_verdict(attack, outcome, &evidence);
	return fflush(stdout) == 0 ? 0 : PROBE_ERROR;
}
