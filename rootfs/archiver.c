/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting agentdock-archive and believing it as little as possible. Nothing that a child controls
 * can grow without bound: results, progress and complaints come through memory files that are
 * sealed at their size.
 */
#include "rootfs/archiver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"

enum {
	COMPLAINT_BYTES = 4096,
	FIRST_FREE_FD = 16, /* above every number that a child is given */
};

int archiver_wait(struct archiver *child, struct err *e)
{
	pid_t waited;

	do
		waited = waitpid(child->pid, &child->status, 0);
	while (waited < 0 && errno == EINTR);
	child->pid = 0;
	if (waited < 0)
		return err_sys(e, "waiting for agentdock-archive %s", child->verb);
	return 0;
}

void archiver_release(struct archiver *child)
{
	struct err ignored;

	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		archiver_wait(child, &ignored);
	}
	close_fd(&child->complaintfd);
}

int archiver_memory(const char *name, off_t bytes, struct err *e)
{
	scoped_fd fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int high;

	if (fd < 0 || ftruncate(fd, bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_sys(e, "memory for %s", name);
	high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	return high < 0 ? err_sys(e, "memory for %s", name) : high;
}

int archiver_complaint(struct archiver *child, struct err *e)
{
	child->complaintfd = archiver_memory("complaint", COMPLAINT_BYTES, e);
	return child->complaintfd < 0 ? child->complaintfd : 0;
}

/* FDS are copied above FIRST_FREE_FD first, so that no dup2 overwrites what a later one needs. */
static int add_file_actions(posix_spawn_file_actions_t *actions, int cwdfd, int copies[],
                            const int fds[ARCHIVER_FDS])
{
	int error = 0, used = 0;

	for (int i = 0; i < ARCHIVER_FDS && !error; i++) {
		if (fds[i] < 0)
			continue;
		used = i + 1;
		copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
		error = copies[i] < 0 ? errno
		                      : posix_spawn_file_actions_adddup2(actions, copies[i], i);
	}
	if (!error && cwdfd >= 0)
		error = posix_spawn_file_actions_addfchdir_np(actions, cwdfd);
	if (!error) /* our caller's own, too: what unpack could reach, an archive might */
		error = posix_spawn_file_actions_addclosefrom_np(actions, used);
	return error;
}

int archiver_start(struct archiver *child, const char *program, const char *const argv[], int cwdfd,
                   const int fds[ARCHIVER_FDS], struct err *e)
{
	static const char *const envp[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int copies[ARCHIVER_FDS];
	sigset_t none, all;
	int error;

	for (int i = 0; i < ARCHIVER_FDS; i++)
		copies[i] = -1;
	child->verb = argv[1];
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	error = add_file_actions(&actions, cwdfd, copies, fds);
	if (!error)
		error = posix_spawn(&child->pid, program, &actions, &attributes,
		                    (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
	for (int i = 0; i < ARCHIVER_FDS; i++)
		close_fd(&copies[i]);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (!error)
		return 0;
	child->pid = 0;
	return err_set(e, error,
	               "starting %s: %s; make install, or set AGENTDOCK_LIBEXEC to the directory "
	               "that has it",
	               program, strerror(error));
}

/* The last line that the child wrote on stderr, "" where there is none. */
static void complaint_of(const struct archiver *child, char text[ERR_TEXT_SIZE])
{
	char raw[COMPLAINT_BYTES + 1] = {0};
	char *line = raw, *newline;
	ssize_t length = pread(child->complaintfd, raw, COMPLAINT_BYTES, 0);

	raw[length > 0 ? length : 0] = '\0';
	length = (ssize_t)strlen(raw);
	while (length > 0 && raw[length - 1] == '\n')
		raw[--length] = '\0';
	newline = strrchr(raw, '\n');
	if (newline)
		line = newline + 1;
	if (strncmp(line, "agentdock-archive: ", 19) == 0)
		line += 19;
	text_printable(line, text, ERR_TEXT_SIZE);
}

int archiver_failed(const struct archiver *child, const char *source, struct err *e)
{
	char complaint[ERR_TEXT_SIZE], name[16];

	complaint_of(child, complaint);
	if (WIFSIGNALED(child->status))
		return err_set(e, EIO, "%s: agentdock-archive %s was ended by %s", source,
		               child->verb,
		               signal_name(WTERMSIG(child->status), name, sizeof(name)));
	return err_set(e, WEXITSTATUS(child->status) == 1 ? EINVAL : EIO, "%s: %.400s", source,
	               *complaint ? complaint : "agentdock-archive failed without a word");
}

bool archiver_ok(const struct archiver *child)
{
	return WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0;
}

/* What each kind of result means to the operator. */
static const struct {
	int code;
	const char *meaning;
} kinds[] = {
	[ARCHIVE_RESULT_BAD_ARCHIVE] = {EINVAL, "is refused"},
	[ARCHIVE_RESULT_LIMIT] = {EFBIG, "is too large"},
	[ARCHIVE_RESULT_NO_SPACE] = {ENOSPC, "does not fit"},
	[ARCHIVE_RESULT_IO] = {EIO, "could not be unpacked"},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

int archiver_result(const struct archiver *child, int resultfd, const char *source,
                    const char *store_path, struct archive_result *result, struct err *e)
{
	char text[ERR_TEXT_SIZE];

	if (pread(resultfd, result, sizeof(*result), 0) != (ssize_t)sizeof(*result) ||
	    result->kind < ARCHIVE_RESULT_OK || result->kind >= KINDS)
		return archiver_failed(child, source, e);
	result->text[sizeof(result->text) - 1] = '\0';
	text_printable(result->text, text, sizeof(text));
	if (result->kind != ARCHIVE_RESULT_OK) {
		err_set(e, kinds[result->kind].code, "%s %s: %s", source,
		        kinds[result->kind].meaning, text);
		return result->kind == ARCHIVE_RESULT_NO_SPACE
		               ? err_hint(e, "free some space in %s, see agentdock image gc",
		                          store_path)
		               : -e->code;
	}
	return archiver_ok(child) ? 0 : archiver_failed(child, source, e);
}
