/* SPDX-License-Identifier: Apache-2.0 */
/* `ps`: the lines of the host's ps(1) that are about processes of the container, or their pids. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/scoped.h"
#include "container/lifecycle.h"
#include "verbs/verbs.h"

enum { OUTPUT_MAX = 64 << 20, OPTIONS_MAX = 64 };

struct pids {
	pid_t *items;
	size_t count;
};

static bool is_among(const struct pids *pids, long pid)
{
	for (size_t i = 0; i < pids->count; i++)
		if (pids->items[i] == pid)
			return true;
	return false;
}

static int print_pids(const struct pids *pids, struct err *e)
{
	scoped_json list = json_object_new_array();

	for (size_t i = 0; i < pids->count; i++)
		json_object_array_add(list, json_object_new_int64(pids->items[i]));
	return print_json(list, e);
}

/* The text of ps with OPTIONS, or with -ef. The caller frees. */
static int run_ps(char *const options[], char **text, struct err *e)
{
	const char *argv[OPTIONS_MAX + 2] = {"ps", "-ef"};
	scoped_fd fd = memfd_create("ps", MFD_CLOEXEC);
	char path[32];
	size_t length;

	if (fd < 0)
		return err_sys(e, "making a file in memory for ps");
	for (int i = 0; options[i]; i++) {
		if (i == OPTIONS_MAX)
			return err_set(e, E2BIG, "ps: at most %d options", OPTIONS_MAX);
		argv[i + 1] = options[i];
	}
	TRY(process_run(argv, NULL, -1, fd, e));
	TRY(text_format(path, sizeof path, e, "/proc/self/fd/%d", fd));
	return file_read_all(AT_FDCWD, path, OUTPUT_MAX, text, &length, e);
}

/* The word that begins in column NUMBER of a line, or NULL. */
static const char *word_at(const char *line, int number)
{
	for (;; line += strcspn(line, " ")) {
		line += strspn(line, " ");
		if (!*line)
			return NULL;
		if (number-- == 0)
			return line;
	}
}

static int pid_column(const char *header)
{
	for (int column = 0;; column++) {
		const char *word = word_at(header, column);

		if (!word)
			return -1;
		if (strncmp(word, "PID", 3) == 0 && strcspn(word, " ") == 3)
			return column;
	}
}

static int print_lines(char *text, const struct pids *pids, struct err *e)
{
	char *rest, *line = strtok_r(text, "\n", &rest);
	int column = line ? pid_column(line) : -1;

	if (column < 0)
		return err_set(e, EINVAL,
		               "ps: its output has no column PID; give it options that "
		               "show one");
	puts(line);
	while ((line = strtok_r(NULL, "\n", &rest))) {
		const char *word = word_at(line, column);

		if (word && is_among(pids, strtol(word, NULL, 10)))
			puts(line);
	}
	return finish_stdout(e);
}

int verb_ps(struct request *request, struct err *e)
{
	scoped_mem pid_t *items = NULL;
	scoped_mem char *text = NULL;
	struct pids pids = {0};

	TRY(container_processes(&request->lifecycle, &items, &pids.count, e));
	pids.items = items;
	if (request->format == FORMAT_JSON)
		return print_pids(&pids, e);
	TRY(run_ps(request->words + 1, &text, e));
	return print_lines(text, &pids, e);
}
