/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `agentdock doctor`: what this host can enforce, and how to get what is missing. The checks are in
 * doctor_kernel.c and doctor_host.c; here they are run, printed and cleared away.
 */
#include "cli/doctor.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/table.h"
#include "cli/cli.h"

enum { TRY_TIMEOUT_MS = 5000 };

static const char *const state_names[] = {"ok", "degraded", "missing", "not tried"};

void finding_ok(struct finding *finding, const char *fmt, ...)
{
	va_list args;

	finding->state = FINDING_OK;
	finding->way_out[0] = '\0';
	va_start(args, fmt);
	vsnprintf(finding->found, sizeof finding->found, fmt, args);
	va_end(args);
}

void finding_lacks(struct finding *finding, enum finding_state state, const char *way_out,
                   const char *fmt, ...)
{
	va_list args;

	finding->state = state;
	snprintf(finding->way_out, sizeof finding->way_out, "%s", way_out);
	va_start(args, fmt);
	vsnprintf(finding->found, sizeof finding->found, fmt, args);
	va_end(args);
}

void finding_untried(struct finding *finding, const char *fmt, ...)
{
	va_list args;

	finding->state = FINDING_UNTRIED;
	finding->way_out[0] = '\0';
	va_start(args, fmt);
	vsnprintf(finding->found, sizeof finding->found, fmt, args);
	va_end(args);
}

void finding_error(struct finding *finding, enum finding_state state, const char *way_out,
                   const struct err *e)
{
	const char *hint = strstr(e->text, "; ");
	int length = hint ? (int)(hint - e->text) : (int)strlen(e->text);

	finding_lacks(finding, state, hint ? hint + 2 : way_out, "%.*s", length, e->text);
}

int doctor_try(uint64_t namespaces, int (*look)(void *data), void *data)
{
	scoped_fd pidfd = -1;
	const struct clone_args args = {.flags = namespaces | CLONE_PIDFD,
	                                .pidfd = (uint64_t)(uintptr_t)&pidfd,
	                                .exit_signal = SIGCHLD};
	struct pollfd ended = {.events = POLLIN};
	pid_t pid = process_clone3(&args);
	int status;

	if (pid < 0)
		return -pid;
	if (pid == 0)
		_exit(look(data));
	ended.fd = pidfd;
	if (poll(&ended, 1, TRY_TIMEOUT_MS) != 1)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ETIMEDOUT;
}

/* ---- the findings as a whole ---- */

typedef int finding_sink(void *data, const char *name, const struct finding *finding,
                         struct err *e);

static void doctor_init(struct doctor *doctor)
{
	*doctor = (struct doctor){.scratchfd = -1, .statefd = -1, .usernsfd = -1};
	disk_init(&doctor->disk);
	cgroup_init(&doctor->cgroup);
}

static void doctor_release(struct doctor *doctor)
{
	struct cgroup parent;
	struct err ignored;

	if (doctor->cgroup_parent[0]) {
		/* the parent is there even where the group could not be made in all hierarchies */
		if (doctor->cgroup.v2fd >= 0)
			cgroup_remove(&doctor->cgroup, &doctor->host, &ignored);
		cgroup_init(&parent);
		snprintf(parent.path, sizeof parent.path, "%s", doctor->cgroup_parent);
		cgroup_remove(&parent, &doctor->host, &ignored);
	}
	cgroup_release(&doctor->cgroup);
	disk_release(&doctor->disk);
	close_fd(&doctor->usernsfd);
	close_fd(&doctor->scratchfd);
	close_fd(&doctor->statefd);
}

/* Runs all checks; returns how many found something missing. */
static int examine(finding_sink *sink, void *data, struct err *e)
{
	static const struct check *const tables[] = {kernel_checks, host_checks};
	struct doctor doctor;
	int missing = 0, result = 0;

	doctor_init(&doctor);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		for (const struct check *check = tables[i]; check->name && result >= 0; check++) {
			struct finding finding = {.state = FINDING_OK};

			if (check->needs_root && geteuid() != 0)
				finding_untried(&finding, "needs root");
			else
				check->look(&doctor, &finding);
			missing += finding.state == FINDING_MISSING;
			result = sink(data, check->name, &finding, e);
		}
	}
	doctor_release(&doctor);
	return result < 0 ? result : missing;
}

static int to_json(void *data, const char *name, const struct finding *finding, struct err *e)
{
	struct json_object *row = json_object_new_object();

	(void)e;
	json_add_string(row, "check", name);
	json_add_string(row, "state", state_names[finding->state]);
	json_add_string(row, "found", finding->found);
	json_add_string(row, "way_out", finding->way_out);
	json_object_array_add(data, row);
	return 0;
}

static int to_table(void *data, const char *name, const struct finding *finding, struct err *e)
{
	TRY(table_cell(data, e, "%s", name));
	TRY(table_cell(data, e, "%s", state_names[finding->state]));
	if (finding->way_out[0] == '\0')
		return table_cell(data, e, "%s", finding->found);
	return table_cell(data, e, "%s; %s", finding->found, finding->way_out);
}

static int print_json(struct err *e)
{
	scoped_json rows = json_object_new_array();
	int missing = examine(to_json, rows, e);

	if (missing >= 0)
		puts(json_object_to_json_string_ext(rows, JSON_C_TO_STRING_PRETTY |
		                                                  JSON_C_TO_STRING_NOSLASHESCAPE));
	return missing;
}

/* A line of the table; what stands at COLUMN is the state, or its heading. */
static void print_coloured_line(const char *line, size_t column)
{
	static const char *const colours[] = {"32", "33", "31", "2"};
	const char *state = line + column;

	for (size_t i = 0; i < sizeof state_names / sizeof *state_names; i++) {
		size_t length = strlen(state_names[i]);

		if (strncmp(state, state_names[i], length) == 0) {
			printf("%.*s\033[%sm%s\033[0m%s\n", (int)column, line, colours[i],
			       state_names[i], state + length);
			return;
		}
	}
	printf("%s\n", line);
}

static void print_coloured(const struct table *table)
{
	scoped_mem char *text = NULL;
	size_t size, column;
	FILE *memory = open_memstream(&text, &size);
	char *rest, *line;

	if (!memory)
		return table_print(table, stdout);
	table_print(table, memory);
	fclose(memory);
	column = (size_t)(strstr(text, "STATE") - text);
	for (rest = text; (line = strsep(&rest, "\n")) && *line;)
		print_coloured_line(line, column);
}

static int print_table(struct err *e)
{
	static const char *const header[] = {"CHECK", "STATE", "FOUND; WAY OUT", NULL};
	struct table table = {0};
	int missing = table_start(&table, header, e);

	if (missing >= 0)
		missing = examine(to_table, &table, e);
	if (missing >= 0) {
		if (geteuid() != 0)
			puts("agentdock doctor was not started as root: what takes root is not "
			     "tried.\nRun it as root (sudo agentdock doctor).\n");
		if (cli_colours(STDOUT_FILENO))
			print_coloured(&table);
		else
			table_print(&table, stdout);
		printf("\n%s\n", missing ? "agentdock run does not work here as it is: see what is "
		                           "missing"
		                         : "agentdock run works here");
	}
	table_release(&table);
	return missing;
}

int cmd_doctor(int argc, char **argv)
{
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	struct err e;
	int missing;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		puts("usage: agentdock doctor [--json]\n\n"
		     "Says what this host can enforce, and how to get what is missing. Exits with "
		     "0\n"
		     "when all that a default `agentdock run` needs is there, with 125 otherwise.\n"
		     "Nothing is changed or left behind.");
		return cli_finish_stdout();
	}
	if (argc > 1 && !json) {
		err_set(&e, EINVAL, "doctor takes only --json, got %s", argv[1]);
		return cli_fail(&e);
	}
	missing = json ? print_json(&e) : print_table(&e);
	if (missing < 0)
		return cli_fail(&e);
	return cli_finish_stdout() || missing ? CLI_FAILED : 0;
}
