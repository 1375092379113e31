/* SPDX-License-Identifier: Apache-2.0 */
/* The journal. Owns the log's descriptor. A line is one write(2), so that several runtimes can share a
 * file; one that can't be written has nobody to be told to. */
#include "verbs/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/strings.h"

enum { TEXT_MAX = 4 * ERR_TEXT_SIZE };

static int log_fd = -1;
static int log_format = LOG_TEXT, log_level = LOG_LEVEL_WARNING;

int journal_open(const struct request *request, struct err *e)
{
	const char *path = request->log;

	log_format = request->log_format;
	log_level = request->log_level;
	if (!path)
		return 0;
	if (strncmp(path, "journald:", 9) == 0 || strncmp(path, "syslog:", 7) == 0)
		return err_set(e, ENOTSUP, "--log: %s is not supported; name a file", path);
	if (strncmp(path, "file:", 5) == 0)
		path += 5;
	log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	return log_fd >= 0 ? 0 : err_sys(e, "--log: opening %s", path);
}

static void write_line(int fd, const char *line, size_t length)
{
	while (length > 0) {
		ssize_t wrote = write(fd, line, length);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return;
		line += wrote;
		length -= (size_t)wrote;
	}
}

static void write_json(const char *level, const char *text, const char *now)
{
	scoped_json json = json_object_new_object();
	char line[6 * TEXT_MAX];
	int length;

	if (!json)
		return;
	json_add_string(json, "level", level);
	json_add_string(json, "msg", text);
	json_add_string(json, "time", now);
	length = snprintf(line, sizeof line, "%s\n",
	                  json_object_to_json_string_ext(
				  json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	if (length < (int)sizeof line)
		write_line(log_fd, line, (size_t)length);
}

/* A text in double quotes ends where they do. */
static void write_text(const char *level, const char *text, const char *now)
{
	char quoted[2 * TEXT_MAX], line[2 * TEXT_MAX + 100];
	size_t length = 0;

	for (; *text && length < sizeof quoted - 2; text++) {
		if (*text == '"' || *text == '\\')
			quoted[length++] = '\\';
		quoted[length++] = *text;
	}
	quoted[length] = '\0';
	snprintf(line, sizeof line, "time=\"%s\" level=%s msg=\"%s\"\n", now, level, quoted);
	write_line(log_fd, line, strlen(line));
}

static void tell(const char *level, const char *prefix, const char *text)
{
	char printable[TEXT_MAX], line[TEXT_MAX + 100], seconds[TEXT_TIME_SIZE], now[40];

	text_printable(text, printable, sizeof printable);
	snprintf(line, sizeof line, "agentdock-runtime: %s%s\n", prefix, printable);
	write_line(STDERR_FILENO, line, strlen(line));
	if (log_fd < 0)
		return;
	text_time(seconds, (uint64_t)time(NULL));
	snprintf(now, sizeof now, "%sZ", seconds);
	if (log_format == LOG_JSON)
		write_json(level, printable, now);
	else
		write_text(level, printable, now);
}

void journal_error(const char *text)
{
	tell("error", "", text);
}

void journal_warn(const char *text)
{
	if (log_level <= LOG_LEVEL_WARNING)
		tell("warning", "warning: ", text);
}
