/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that comes later than its sandbox: its words cross to the process inside in a memfd,
 * which goes with the GO of the row "gate". Both halves are ours, so the inside trusts the layout:
 * two counts, the working directory, the arguments, the environment; each text ends with a NUL.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "runtime/internal.h"

struct counts {
	size_t arguments, variables;
};

static int write_words(int fd, char *const words[], struct err *e)
{
	for (; *words; words++)
		TRY(fd_write_all(fd, *words, strlen(*words) + 1, e));
	return 0;
}

OUTSIDE(open_gate)
{
	const struct sandbox_spec *spec = sandbox->spec;
	const struct counts counts = {words_count(spec->argv), words_count(spec->envp)};
	scoped_fd fd = memfd_create("command", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "memfd_create");
	TRY(fd_write_all(fd, (const char *)&counts, sizeof counts, e));
	TRY(fd_write_all(fd, spec->cwd, strlen(spec->cwd) + 1, e));
	TRY(write_words(fd, spec->argv, e));
	TRY(write_words(fd, spec->envp, e));
	sandbox->handedfd = take_fd(&fd);
	return 0;
}

/* COUNT texts from *TEXT on, which is left behind the last. */
static char **read_words(char **text, size_t count)
{
	char **words = calloc(count + 1, sizeof *words);

	for (size_t i = 0; words && i < count; i++) {
		words[i] = *text;
		*text += strlen(*text) + 1;
	}
	return words;
}

/* What is read here stays until exec. */
INSIDE(pass_gate)
{
	struct stat status;
	struct counts counts;
	char *text;

	if (fstat(in->receivedfd, &status))
		return err_sys(e, "the command");
	text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, in->receivedfd, 0);
	if (text == MAP_FAILED)
		return err_sys(e, "the command");
	close_fd(&in->receivedfd);
	memcpy(&counts, text, sizeof counts);
	text += sizeof counts;
	in->given = *in->spec;
	in->given.cwd = text;
	text += strlen(text) + 1;
	in->given.argv = read_words(&text, counts.arguments);
	in->given.envp = read_words(&text, counts.variables);
	if (!in->given.argv || !in->given.envp)
		return err_set(e, ENOMEM, "no memory for the command");
	in->spec = &in->given;
	return 0;
}
