/* SPDX-License-Identifier: Apache-2.0 */
/* The tally of attempts, and the attempt apart. */
#include "tests/escape/tally.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scoped.h"

/* ---- several attempts ---- */

static void add(struct tally *tally, const char *name, int code, const int *walls)
{
	if (tally->count == (int)(sizeof(tally->attempts) / sizeof(*tally->attempts)))
		abort();
	tally->attempts[tally->count].name = name;
	tally->attempts[tally->count].code = code;
	tally->attempts[tally->count++].walls = walls;
}

void tally_add(struct tally *tally, const char *name, int code)
{
	add(tally, name, code, NULL);
}

void tally_add_limit(struct tally *tally, const char *name, int code, const int walls[])
{
	add(tally, name, code, walls);
}

static enum outcome outcome_of(const struct tally *tally, int i)
{
	const int *wall = tally->attempts[i].walls;

	if (tally->attempts[i].code == 0)
		return BROKEN;
	while (wall && *wall && *wall != tally->attempts[i].code)
		wall++;
	return wall && !*wall ? UNTRIED : HELD;
}

static void __attribute__((format(printf, 2, 3)))
append(struct evidence *evidence, const char *format, ...)
{
	size_t length = strlen(evidence->text);
	va_list args;

	va_start(args, format);
	vsnprintf(evidence->text + length, sizeof(evidence->text) - length, format, args);
	va_end(args);
}

static void append_code(struct evidence *evidence, int code)
{
	const char *name = code < 0 ? sigabbrev_np(-code) : strerrorname_np(code);

	if (code == 0)
		append(evidence, "got");
	else if (name)
		append(evidence, "%s%s", code < 0 ? "SIG" : "", name);
	else
		append(evidence, "%s %d", code < 0 ? "signal" : "errno", code < 0 ? -code : code);
}

/* The attempts with the same outcome and code, after the code, unless an earlier one has told it. */
static void append_group(const struct tally *tally, int first, struct evidence *evidence)
{
	enum outcome outcome = outcome_of(tally, first);
	int code = tally->attempts[first].code;
	const char *separator = ": ";

	for (int i = 0; i < first; i++)
		if (tally->attempts[i].code == code && outcome_of(tally, i) == outcome)
			return;
	if (evidence->text[0])
		append(evidence, "; ");
	append(evidence, "%s", outcome == UNTRIED ? "not by the wall, " : "");
	append_code(evidence, code);
	for (int i = first; i < tally->count; i++) {
		if (tally->attempts[i].code != code || outcome_of(tally, i) != outcome)
			continue;
		append(evidence, "%s%s", separator, tally->attempts[i].name);
		separator = ", ";
	}
}

enum outcome tally_verdict(const struct tally *tally, struct evidence *evidence)
{
	static const enum outcome order[] = {BROKEN, UNTRIED, HELD};
	enum outcome decided = HELD;

	if (tally->count == 0)
		abort();
	evidence->text[0] = '\0';
	for (size_t o = 0; o < sizeof(order) / sizeof(*order); o++) {
		for (int i = 0; i < tally->count; i++) {
			if (outcome_of(tally, i) != order[o])
				continue;
			append_group(tally, i, evidence);
			if (decided == HELD)
				decided = order[o];
		}
	}
	return decided;
}

/* ---- an attempt in a process of its own ---- */

static void prefer_to_be_killed(void)
{
	scoped_fd fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) < 0)
		return; /* then the kernel chooses */
}

int try_apart(int (*attempt)(const void *data), const void *data)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return errno;
	if (pid == 0) {
		prefer_to_be_killed();
		_exit(attempt(data));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
