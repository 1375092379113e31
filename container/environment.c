/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of the container's program: what the document says, and what it is told besides. HOME
 * is looked up where it lacks, in a file of the image, which is hostile: read up to a bound, never
 * waited for, scanned as bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"

enum { PASSWD_BYTES_MAX = 1 << 20 };

/* Field INDEX of a line of passwd(5); its length is *LENGTH. */
static const char *field(const char *line, int index, size_t *length)
{
	for (; index > 0; index--) {
		line += strcspn(line, ":\n");
		if (*line != ':')
			return NULL;
		line++;
	}
	*length = strcspn(line, ":\n");
	return line;
}

/* The home of the first line of TEXT with this number; it is ended there. */
static const char *home_in(char *text, uint32_t uid)
{
	char wanted[16];
	size_t length, wanted_length = (size_t)snprintf(wanted, sizeof wanted, "%u", uid);

	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *number = field(line, 2, &length);
		const char *home;

		if (!number || length != wanted_length || memcmp(number, wanted, length) != 0)
			continue;
		home = field(line, 5, &length);
		if (!home || !length || *home != '/')
			return NULL;
		text[home - text + (ptrdiff_t)length] = '\0';
		return home;
	}
	return NULL;
}

static char *read_passwd(void)
{
	struct err ignored;
	scoped_fd fd = file_open2(AT_FDCWD, "/etc/passwd", O_RDONLY | O_NONBLOCK | O_NOCTTY, 0,
	                          RESOLVE_NO_MAGICLINKS, &ignored);
	struct stat status;
	char *text;
	size_t length = 0;

	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	    status.st_size > PASSWD_BYTES_MAX)
		return NULL;
	text = calloc(1, (size_t)status.st_size + 1);
	while (text && length < (size_t)status.st_size) {
		ssize_t got = read(fd, text + length, (size_t)status.st_size - length);

		if (got <= 0)
			break;
		length += (size_t)got;
	}
	return text;
}

static int add_home(struct string_list *list, uint32_t uid, struct err *e)
{
	scoped_mem char *text = read_passwd(), *line = NULL;
	const char *home = text ? home_in(text, uid) : NULL;

	if (asprintf(&line, "HOME=%s", home ? home : "/") < 0) {
		line = NULL;
		return err_set(e, ENOMEM, "no memory for the environment");
	}
	return string_list_add(list, line, e);
}

static int add_number(struct string_list *list, const char *name, int number, struct err *e)
{
	char text[32];

	snprintf(text, sizeof text, "%s=%d", name, number);
	return string_list_set(list, text, e);
}

INSIDE(make_environment)
{
	const struct oci_process *process = in->process;
	int listen_fds = in->container->options->listen_fds;
	struct string_list list = {0};

	for (size_t i = 0; i < process->env.count; i++)
		TRY(string_list_add(&list, process->env.items[i], e));
	if (!string_list_value(&list, "HOME"))
		TRY(add_home(&list, process->user ? process->user->uid : 0, e));
	if (listen_fds > 0) {
		TRY(add_number(&list, "LISTEN_FDS", listen_fds, e));
		TRY(add_number(&list, "LISTEN_PID", getpid(), e));
	}
	if (in->container->options->notify_socket && !in->container->joins)
		TRY(string_list_set(&list, "NOTIFY_SOCKET=/run/notify/notify", e));
	in->envp = list.items;
	return 0;
}
