/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of an import: SOURCE -> this process -> unpack.
 *
 * SOURCE is `agentdock-archive pack` (a directory as a tar stream) or `cat` (an archive,
 * decompressed); `unpack` fills the target. Both are confined programs; this process looks at no
 * byte of what it passes on, it hashes them. Nothing that a child controls can block us for good or
 * grow without bound: results, progress and complaints come through memory files that are sealed
 * at their size, and the stream through a socket, whose loss is an error and no signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

#define LIMIT_BYTES   "34359738368" /* 32 GiB */
#define LIMIT_ENTRIES "4000000"
/* A tar adds a header of 1 to 3 blocks to each entry. */
#define LIMIT_STREAM "51539607552" /* 48 GiB */

enum {
	CHUNK_BYTES = 256 * 1024,
	COMPLAINT_BYTES = 4096,
	PROGRESS_EVERY_US = 100000,
	FIRST_FREE_FD = 16, /* above every number that a child is given */
};

/* The descriptors that a child starts with, by their number in it; -1: none. */
enum { CHILD_STDIN, CHILD_STDOUT, CHILD_STDERR, CHILD_RESULT, CHILD_PROGRESS, CHILD_LOCK };
enum { CHILD_FDS = CHILD_LOCK + 1 };

struct child {
	const char *verb;
	pid_t pid; /* 0: not running */
	int status;
	int complaintfd;
};
#define CHILD_NONE                                                                                 \
	{                                                                                          \
		.complaintfd = -1                                                                  \
	}

static int child_wait(struct child *child, struct err *e)
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

static void child_release(struct child *child)
{
	struct err ignored;

	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		child_wait(child, &ignored);
	}
	close_fd(&child->complaintfd);
}

/* A file of BYTES zero bytes that can be written but not grow. */
static int fixed_memory(const char *name, off_t bytes, struct err *e)
{
	scoped_fd fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int high;

	if (fd < 0 || ftruncate(fd, bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_sys(e, "memory for %s", name);
	high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	return high < 0 ? err_sys(e, "memory for %s", name) : high;
}

/* FDS are copied above FIRST_FREE_FD first, so that no dup2 overwrites what a later one needs. */
static int add_file_actions(posix_spawn_file_actions_t *actions, int cwdfd, int copies[],
                            const int fds[CHILD_FDS])
{
	int error = 0, used = 0;

	for (int i = 0; i < CHILD_FDS && !error; i++) {
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

static int spawn(struct child *child, const char *archiver, const char *const argv[], int cwdfd,
                 const int fds[CHILD_FDS], struct err *e)
{
	static const char *const envp[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int copies[CHILD_FDS] = {-1, -1, -1, -1, -1, -1};
	sigset_t none, all;
	int error;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	error = add_file_actions(&actions, cwdfd, copies, fds);
	if (!error)
		error = posix_spawn(&child->pid, archiver, &actions, &attributes,
		                    (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
	for (int i = 0; i < CHILD_FDS; i++)
		close_fd(&copies[i]);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (!error)
		return 0;
	child->pid = 0;
	return err_set(e, error,
	               "starting %s: %s; make install, or set AGENTDOCK_LIBEXEC to the directory "
	               "that has it",
	               archiver, strerror(error));
}

/* The last line that the child wrote on stderr, "" where there is none. */
static void child_complaint(const struct child *child, char text[ERR_TEXT_SIZE])
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

/* The error of a child that ended without a result of its own. */
static int child_failed(const struct child *child, const char *source, struct err *e)
{
	char complaint[ERR_TEXT_SIZE], name[16];

	child_complaint(child, complaint);
	if (WIFSIGNALED(child->status))
		return err_set(e, EIO, "%s: agentdock-archive %s was ended by %s", source,
		               child->verb,
		               signal_name(WTERMSIG(child->status), name, sizeof(name)));
	return err_set(e, WEXITSTATUS(child->status) == 1 ? EINVAL : EIO, "%s: %.400s", source,
	               *complaint ? complaint : "agentdock-archive failed without a word");
}

static bool child_ok(const struct child *child)
{
	return WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0;
}

/* ---- the stream ---- */

struct pump {
	const struct image_stream *stream;
	struct sha256_ctx hash;
	struct child source, sink;
	int infd, outfd, resultfd, progressfd;
	bool refused; /* the sink took no more */
	uint64_t told_us;
};

static void pump_release(struct pump *pump)
{
	child_release(&pump->source);
	child_release(&pump->sink);
	close_fd(&pump->infd);
	close_fd(&pump->outfd);
	close_fd(&pump->resultfd);
	close_fd(&pump->progressfd);
}

static int start_source(struct pump *pump, struct err *e)
{
	static const char *const pack[] = {"agentdock-archive", "pack", "--keep-owner", "--xattrs",
	                                   NULL};
	static const char *const cat[] = {"agentdock-archive", "cat", "--limit-bytes", LIMIT_STREAM,
	                                  NULL};
	const struct image_stream *stream = pump->stream;
	int ends[2];
	int fds[CHILD_FDS] = {-1, -1, -1, -1, -1, -1};
	int result;

	pump->source.verb = stream->is_directory ? "pack" : "cat";
	pump->source.complaintfd = fixed_memory("complaint", COMPLAINT_BYTES, e);
	TRY(pump->source.complaintfd);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "a pipe");
	pump->infd = ends[0];
	fcntl(ends[0], F_SETPIPE_SZ, CHUNK_BYTES); /* fewer switches; refused is no harm */
	fds[CHILD_STDIN] = stream->sourcefd;
	fds[CHILD_STDOUT] = ends[1];
	fds[CHILD_STDERR] = pump->source.complaintfd;
	result = spawn(&pump->source, stream->archiver, stream->is_directory ? pack : cat,
	               stream->is_directory ? stream->sourcefd : -1, fds, e);
	close_fd(&ends[1]);
	return result;
}

static int start_sink(struct pump *pump, struct err *e)
{
	static const char *const unpack[] = {
		"agentdock-archive",
		"unpack",
		"--mode",
		"image",
		"--limit-bytes",
		LIMIT_BYTES,
		"--limit-entries",
		LIMIT_ENTRIES,
		"--result-fd",
		"3",
		"--progress-fd",
		"4",
		"--lock-fd",
		"5",
		NULL,
	};
	const struct image_stream *stream = pump->stream;
	int ends[2];
	int fds[CHILD_FDS];
	int result;

	pump->sink.verb = "unpack";
	pump->sink.complaintfd = fixed_memory("complaint", COMPLAINT_BYTES, e);
	TRY(pump->sink.complaintfd);
	pump->resultfd = fixed_memory("result", sizeof(struct archive_result), e);
	TRY(pump->resultfd);
	pump->progressfd = fixed_memory("progress", sizeof(struct archive_progress), e);
	TRY(pump->progressfd);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, "a socket pair");
	pump->outfd = ends[0];
	fds[CHILD_STDIN] = ends[1];
	fds[CHILD_STDOUT] = pump->sink.complaintfd;
	fds[CHILD_STDERR] = pump->sink.complaintfd;
	fds[CHILD_RESULT] = pump->resultfd;
	fds[CHILD_PROGRESS] = pump->progressfd;
	fds[CHILD_LOCK] = stream->lockfd;
	result = spawn(&pump->sink, stream->archiver, unpack, stream->targetfd, fds, e);
	close_fd(&ends[1]);
	return result;
}

static void tell(struct pump *pump)
{
	struct archive_progress progress = {0};
	uint64_t now_us = clock_us();

	if (!pump->stream->progress || now_us - pump->told_us < PROGRESS_EVERY_US)
		return;
	pump->told_us = now_us;
	if (pread(pump->progressfd, &progress, sizeof(progress), 0) == sizeof(progress))
		pump->stream->progress(pump->stream->data, progress.bytes, progress.entries);
}

static int pass_on(struct pump *pump, const unsigned char *data, size_t length, struct err *e)
{
	while (length > 0) {
		ssize_t sent = send(pump->outfd, data, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
			pump->refused = true;
			return 0;
		}
		if (sent < 0)
			return err_sys(e, "passing %s on to agentdock-archive",
			               pump->stream->source);
		data += sent;
		length -= (size_t)sent;
	}
	return 0;
}

static int pump_run(struct pump *pump, struct err *e)
{
	scoped_mem unsigned char *chunk = malloc(CHUNK_BYTES);

	if (!chunk)
		return err_set(e, ENOMEM, "importing %s: out of memory", pump->stream->source);
	while (!pump->refused) {
		ssize_t got = read(pump->infd, chunk, CHUNK_BYTES);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading %s", pump->stream->source);
		if (got == 0)
			break;
		sha256_update(&pump->hash, (size_t)got, chunk);
		TRY(pass_on(pump, chunk, (size_t)got, e));
		tell(pump);
	}
	close_fd(&pump->outfd);
	close_fd(&pump->infd);
	return 0;
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

/* The writer may have been taken over by what it parsed: nothing of it is believed unchecked. */
static int read_result(const struct pump *pump, struct archive_result *result, struct err *e)
{
	const char *source = pump->stream->source;
	char text[ERR_TEXT_SIZE];

	if (pread(pump->resultfd, result, sizeof(*result), 0) != (ssize_t)sizeof(*result) ||
	    result->kind < ARCHIVE_RESULT_OK || result->kind >= KINDS)
		return child_failed(&pump->sink, source, e);
	result->text[sizeof(result->text) - 1] = '\0';
	text_printable(result->text, text, sizeof(text));
	if (result->kind != ARCHIVE_RESULT_OK) {
		err_set(e, kinds[result->kind].code, "%s %s: %s", source,
		        kinds[result->kind].meaning, text);
		return result->kind == ARCHIVE_RESULT_NO_SPACE
		               ? err_hint(e, "free some space in %s, see agentdock image gc",
		                          pump->stream->store_path)
		               : -e->code;
	}
	return child_ok(&pump->sink) ? 0 : child_failed(&pump->sink, source, e);
}

/* Once both have ended: the first cause. A source that failed made the sink see a cut stream; a
 * sink that refused made the source lose its reader. */
static int judge(struct pump *pump, struct archive_result *result, struct err *e)
{
	TRY(child_wait(&pump->sink, e));
	TRY(child_wait(&pump->source, e));
	if (!pump->refused && !child_ok(&pump->source))
		return child_failed(&pump->source, pump->stream->source, e);
	TRY(read_result(pump, result, e));
	if (pump->refused)
		return err_set(e, EIO, "%s: agentdock-archive unpack ended before the stream did",
		               pump->stream->source);
	return 0;
}

int image_stream_run(const struct image_stream *stream, struct archive_result *result,
                     char digest[IMAGE_DIGEST_SIZE], struct err *e)
{
	__attribute__((cleanup(pump_release))) struct pump pump = {
		.stream = stream,
		.source = CHILD_NONE,
		.sink = CHILD_NONE,
		.infd = -1,
		.outfd = -1,
		.resultfd = -1,
		.progressfd = -1,
	};
	struct archive_result read = {0};

	sha256_init(&pump.hash);
	TRY(start_sink(&pump, e));
	TRY(start_source(&pump, e));
	TRY(pump_run(&pump, e));
	TRY(judge(&pump, &read, e));
	if (stream->progress)
		stream->progress(stream->data, read.bytes, read.entries);
	image_hash_finish(&pump.hash, digest);
	*result = read;
	return 0;
}
