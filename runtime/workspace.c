/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace goes in as an archive stream: agentdock-archive packs the host's directory outside,
 * and unpacks the stream inside, as the sandbox's user, behind every wall that the command itself
 * will stand behind. No name in it can lead out, and its parser holds nothing worth having.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "runtime/score.h"

extern char **environ;

/* The unpacker's descriptors: 0 the archive, 1 and 2 nothing, RESULT_FD the result. */
enum { RESULT_FD = 3 };

/* The packer's: 1 the archive, PACK_FROM_FD the directory, PACK_RESULT_FD what went wrong. */
enum { PACK_FROM_FD = 3, PACK_RESULT_FD, PACK_FIRST_CLOSED_FD };

static int open_workspace(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR)
		return err_set(e, ENOTDIR, "workspace '%s' is not a directory; name a directory",
		               path);
	if (fd < 0)
		return err_sys(e, "workspace '%s'", path);
	return fd;
}

static int spawn_packer(struct sandbox *sandbox, int directoryfd, int writefd, struct err *e)
{
	const char *program = sandbox->host->store.archiver;
	char *const argv[] = {(char[]){"agentdock-archive"},
	                      (char[]){"pack"},
	                      (char[]){"--from"},
	                      (char[]){"3"},
	                      (char[]){"--result-fd"},
	                      (char[]){"4"},
	                      NULL};
	char *const envp[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	/* a group of its own: what the terminal sends to ours must not stop it */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                              POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, writefd, 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, directoryfd, PACK_FROM_FD);
	posix_spawn_file_actions_adddup2(&actions, sandbox->pack_resultfd, PACK_RESULT_FD);
	posix_spawn_file_actions_addclosefrom_np(&actions, PACK_FIRST_CLOSED_FD);
	r = posix_spawn(&sandbox->packer, program, &actions, &attributes, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (r) {
		sandbox->packer = -1;
		errno = r;
		return err_sys(e, "starting %s", program);
	}
	return 0;
}

/* A descriptor whose number the dup2 calls of spawn_packer cannot clobber. */
static int out_of_the_way(int *fd, struct err *e)
{
	int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, 10);

	if (lifted < 0)
		return err_sys(e, "fcntl(F_DUPFD_CLOEXEC)");
	close_fd(fd);
	*fd = lifted;
	return 0;
}

OUTSIDE(start_packing)
{
	int ends[2];
	scoped_fd directoryfd = open_workspace(sandbox->spec->workspace, e);

	if (directoryfd < 0) {
		sandbox->fault = FAULT_GUEST;
		return directoryfd;
	}
	sandbox->archiverfd = file_open(AT_FDCWD, sandbox->host->store.archiver, O_PATH, 0, e);
	TRY(sandbox->archiverfd);
	if (pipe2(ends, O_CLOEXEC))
		return err_sys(e, "pipe2");
	fcntl(ends[0], F_SETPIPE_SZ, 1 << 20); /* fewer switches; the default works as well */
	sandbox->packfd = ends[0];
	scoped_fd writefd = ends[1];
	sandbox->pack_resultfd = memfd_create("pack-result", MFD_CLOEXEC);
	if (sandbox->pack_resultfd < 0)
		return err_sys(e, "memfd_create");
	TRY(out_of_the_way(&directoryfd, e));
	TRY(out_of_the_way(&writefd, e));
	TRY(out_of_the_way(&sandbox->pack_resultfd, e));
	return spawn_packer(sandbox, directoryfd, writefd, e);
}

int workspace_first_cause(struct sandbox *sandbox, struct err *e)
{
	struct archive_result result;
	char text[ERR_TEXT_SIZE];

	if (sandbox->packer <= 0 || sandbox->fault != FAULT_GUEST)
		return -e->code;
	while (waitpid(sandbox->packer, NULL, 0) < 0 && errno == EINTR)
		;
	sandbox->packer = -1;
	if (pread(sandbox->pack_resultfd, &result, sizeof result, 0) != sizeof result ||
	    result.kind == ARCHIVE_RESULT_OK || result.code == EPIPE)
		return -e->code;
	result.text[sizeof result.text - 1] = '\0';
	text_printable(result.text, text, sizeof text);
	return err_set(e, result.code > 0 ? result.code : EIO,
	               "workspace '%.100s' could not be read: %.300s", sandbox->spec->workspace,
	               text);
}

/* ---- inside ---- */

/* Its own limits, not the command's: --ulimit fsize=4k is no reason to refuse a larger file. */
static int limit_unpacker(const struct inside *in, struct err *e)
{
	const rlim_t bytes = in->spec->disk.bytes;
	const struct identity limits = {
		.rlimits = {{RLIMIT_CORE, 0, 0}, {RLIMIT_FSIZE, bytes, bytes}},
		.rlimits_count = 2,
	};

	return identity_set_rlimits(&limits, e);
}

/* The child: gives up all that the command will be without, and becomes the unpacker. */
static int become_unpacker(struct inside *in, int *resultfd, struct err *e)
{
	const struct sandbox *sandbox = in->sandbox;
	char bytes[24], entries[24];
	char *const argv[] = {(char[]){"agentdock-archive"},
	                      (char[]){"unpack"},
	                      (char[]){"--mode"},
	                      (char[]){"checkout"},
	                      (char[]){"--limit-bytes"},
	                      bytes,
	                      (char[]){"--limit-entries"},
	                      entries,
	                      (char[]){"--result-fd"},
	                      (char[]){"3"},
	                      NULL};
	char *const envp[] = {NULL};
	sigset_t none;
	int listenerfd = -1;

	snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)in->spec->disk.bytes);
	snprintf(entries, sizeof entries, "%llu", (unsigned long long)in->spec->disk.inodes);
	scoped_fd nullfd = file_open(AT_FDCWD, "/dev/null", O_RDWR, 0, e);
	TRY(nullfd);
	/* its root is the workspace: libc finds no file of the image to load (gconv, locales) */
	if (chroot("/workspace") || chdir("/"))
		return err_sys(e, "/workspace");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	TRY(score_drop(in, e));
	TRY(place_descriptors((const int[PLACED_FDS]){sandbox->packfd, nullfd, nullfd, *resultfd,
	                                              sandbox->archiverfd},
	                      e));
	*resultfd = RESULT_FD;
	TRY(limit_unpacker(in, e));
	/* without a listener, a call that the profile forbids is ENOSYS here */
	struct seccomp_filter quiet = *in->spec->filter;
	quiet.notifies = false;
	TRY(seccomp_filter_install(&quiet, &listenerfd, e));
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return err_sys(e, "prctl(PR_SET_PDEATHSIG)");
	execveat(PROGRAM_FD, "", argv, envp, AT_EMPTY_PATH);
	return err_sys(e, "executing the unpacker");
}

static _Noreturn void unpacker(struct inside *in, int resultfd)
{
	struct archive_result failed = {.kind = ARCHIVE_RESULT_IO};
	struct err e = {0};

	become_unpacker(in, &resultfd, &e);
	failed.code = e.code;
	snprintf(failed.text, sizeof failed.text, "%.390s", e.text);
	_exit(write(resultfd, &failed, sizeof failed) == sizeof failed ? 125 : 126);
}

static int read_result(int fd, struct archive_result *result)
{
	size_t have = 0;

	while (have < sizeof *result) {
		ssize_t n = read(fd, (char *)result + have, sizeof *result - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		have += (size_t)n;
	}
	result->text[sizeof result->text - 1] = '\0';
	return 0;
}

/* What the unpacker said, as an error of this run. Its text came from a parser of hostile bytes. */
static int judge(struct inside *in, const struct archive_result *result, struct err *e)
{
	char text[ERR_TEXT_SIZE];

	text_printable(result->text, text, sizeof text);
	switch (result->kind) {
	case ARCHIVE_RESULT_OK:
		return 0;
	case ARCHIVE_RESULT_LIMIT:
	case ARCHIVE_RESULT_NO_SPACE:
		in->fault = FAULT_DISK_FULL;
		return err_set(e, ENOSPC,
		               "the workspace does not fit into the sandbox's disk: %.300s; raise "
		               "--disk or --inodes",
		               text);
	default:
		in->fault = FAULT_GUEST;
		return err_set(e, result->code > 0 ? result->code : EINVAL,
		               "the workspace could not be copied in: %.380s", text);
	}
}

INSIDE(unpack_workspace)
{
	struct archive_result result = {0};
	int ends[2], status, r;

	if (pipe2(ends, O_CLOEXEC))
		return err_sys(e, "pipe2");
	scoped_fd readfd = ends[0], writefd = ends[1];
	pid_t child = fork();
	if (child < 0)
		return err_sys(e, "starting the unpacker");
	if (child == 0)
		unpacker(in, writefd);
	close_fd(&writefd);
	r = read_result(readfd, &result);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0) {
		in->fault = FAULT_GUEST;
		return err_set(
			e, EPIPE,
			"the unpacker died before it had unpacked the workspace (wait status "
			"0x%x); is the memory limit too low for it?",
			(unsigned)status);
	}
	return judge(in, &result, e);
}
