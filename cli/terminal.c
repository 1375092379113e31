/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command says to the person: failures, colours, "did you mean". Everything goes through
 * text_printable(), because an error may quote a name that came out of a sandbox.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"
#include "cli/cli.h"

int cli_fail(const struct err *e)
{
	char text[4 * ERR_TEXT_SIZE + 1]; /* each byte may become \xNN */

	fprintf(stderr, "agentdock: %s\n", text_printable(e->text, text, sizeof(text)));
	return CLI_FAILED;
}

int cli_finish_stdout(void)
{
	struct err e;
	int failed = ferror(stdout);

	errno = failed ? EIO : 0;
	if (fflush(stdout) == 0 && !failed)
		return 0;
	err_sys(&e, "writing to standard output");
	return cli_fail(&e);
}

bool cli_colours(int fd)
{
	return isatty(fd) && !cli_setting("NO_COLOR", NULL) &&
	       strcmp(cli_setting("TERM", ""), "dumb") != 0;
}

enum { SUGGEST_WORD_MAX = 32 };

/* Levenshtein's distance of two short words, one row of the matrix at a time. */
static size_t distance(const char *a, const char *b)
{
	size_t row[SUGGEST_WORD_MAX + 1], columns = strlen(b);

	for (size_t j = 0; j <= columns; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < columns; j++) {
			size_t replaced = diagonal + (a[i] != b[j]);
			size_t other = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;

			diagonal = row[j + 1];
			row[j + 1] = replaced < other ? replaced : other;
		}
	}
	return row[columns];
}

const char *cli_suggest(const char *word, const char *const names[])
{
	const char *best = NULL;
	size_t best_distance = 3; /* two slips are a typo, three are another word */

	if (strlen(word) > SUGGEST_WORD_MAX)
		return NULL;
	for (; *names; names++) {
		size_t d = strlen(*names) > SUGGEST_WORD_MAX ? best_distance
		                                             : distance(word, *names);

		if (d < best_distance && d < strlen(word)) {
			best = *names;
			best_distance = d;
		}
	}
	return best;
}

bool cli_reader_is_gone(int fd)
{
	struct pollfd polled = {.fd = fd};

	return poll(&polled, 1, 0) == 1 && (polled.revents & (POLLERR | POLLHUP));
}
