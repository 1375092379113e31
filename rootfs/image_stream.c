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
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "rootfs/archiver.h"
#include "rootfs/image_store.h"

#define LIMIT_BYTES   (UINT64_C(32) << 30) /* of all layers of an image together */
#define LIMIT_ENTRIES UINT64_C(4000000)
/* A tar adds a header of 1 to 3 blocks to each entry. */
#define LIMIT_STREAM "51539607552" /* 48 GiB */

enum { CHUNK_BYTES = 256 * 1024, PROGRESS_EVERY_US = 100000 };

struct pump {
	const struct image_stream *stream;
	struct sha256_ctx hash;
	struct archiver source, sink;
	int infd, outfd, resultfd, progressfd;
	bool refused; /* the sink took no more */
	uint64_t told_us;
};

static void pump_release(struct pump *pump)
{
	archiver_release(&pump->source);
	archiver_release(&pump->sink);
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
	int fds[ARCHIVER_FDS] = {-1, -1, -1, -1, -1, -1, -1, -1};
	int result;

	TRY(archiver_complaint(&pump->source, e));
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "a pipe");
	pump->infd = ends[0];
	fcntl(ends[0], F_SETPIPE_SZ, CHUNK_BYTES); /* fewer switches; refused is no harm */
	fds[ARCHIVER_STDIN] = stream->sourcefd;
	fds[ARCHIVER_STDOUT] = ends[1];
	fds[ARCHIVER_STDERR] = pump->source.complaintfd;
	result = archiver_start(&pump->source, stream->archiver, stream->is_directory ? pack : cat,
	                        stream->is_directory ? stream->sourcefd : -1, fds, e);
	close_fd(&ends[1]);
	return result;
}

static void write_rest(uint64_t limit, uint64_t used, char text[24])
{
	snprintf(text, 24, "%" PRIu64, used < limit ? limit - used : 0);
}

static int start_sink(struct pump *pump, struct err *e)
{
	const struct image_stream *stream = pump->stream;
	bool layer = stream->opaquefd >= 0;
	char bytes[24], entries[24];
	const char *const unpack[] = {
		"agentdock-archive",
		"unpack",
		"--mode",
		layer ? "layer" : "image",
		"--limit-bytes",
		bytes,
		"--limit-entries",
		entries,
		"--result-fd",
		"3",
		"--progress-fd",
		"4",
		"--lock-fd",
		"5",
		layer ? "--opaque-fd" : NULL,
		"6",
		NULL,
	};
	int ends[2];
	int fds[ARCHIVER_FDS] = {-1, -1, -1, -1, -1, -1, -1, -1};
	int result;

	write_rest(LIMIT_BYTES, stream->bytes_before, bytes);
	write_rest(LIMIT_ENTRIES, stream->entries_before, entries);
	TRY(archiver_complaint(&pump->sink, e));
	pump->resultfd = archiver_memory("result", sizeof(struct archive_result), e);
	TRY(pump->resultfd);
	pump->progressfd = archiver_memory("progress", sizeof(struct archive_progress), e);
	TRY(pump->progressfd);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, "a socket pair");
	pump->outfd = ends[0];
	fds[ARCHIVER_STDIN] = ends[1];
	fds[ARCHIVER_STDOUT] = pump->sink.complaintfd;
	fds[ARCHIVER_STDERR] = pump->sink.complaintfd;
	fds[ARCHIVER_RESULT] = pump->resultfd;
	fds[ARCHIVER_PROGRESS] = pump->progressfd;
	fds[ARCHIVER_LOCK] = stream->lockfd;
	fds[ARCHIVER_EXTRA] = stream->opaquefd;
	result = archiver_start(&pump->sink, stream->archiver, unpack, stream->targetfd, fds, e);
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

/* Once both have ended: the first cause. A source that failed made the sink see a cut stream; a
 * sink that refused made the source lose its reader. */
static int judge(struct pump *pump, struct archive_result *result, struct err *e)
{
	TRY(archiver_wait(&pump->sink, e));
	TRY(archiver_wait(&pump->source, e));
	if (!pump->refused && !archiver_ok(&pump->source))
		return archiver_failed(&pump->source, pump->stream->source, e);
	TRY(archiver_result(&pump->sink, pump->resultfd, pump->stream->source,
	                    pump->stream->store_path, result, e));
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
		.source = ARCHIVER_NONE,
		.sink = ARCHIVER_NONE,
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
