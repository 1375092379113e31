/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to entries by libarchive: its tar reader and four decompressors by name, so that no other
 * parser is linked. Names stay the bytes that they are: the process stays in the C locale, where
 * libarchive fails to convert what is not ASCII, says so with a warning and hands out the bytes.
 */
#include "archive/source.h"

#include <errno.h>
#include <iconv.h>
#include <langinfo.h>
#include <string.h>
#include <unistd.h>

#include "base/scoped.h"

enum { SOURCE_BUFFER_SIZE = 256 << 10 };

/* What libarchive says, and whose fault it is. */
static int source_fault(const struct source *source, struct err *e)
{
	const char *text = archive_error_string(source->reader);

	if (source->read_errno) {
		errno = source->read_errno;
		return err_sys(e, "reading the archive");
	}
	if (archive_errno(source->reader) == ENOMEM)
		return err_set(e, EFBIG, "the archive asks for more memory than it may have: %s",
		               text ? text : "out of memory");
	return err_set(e, EBADMSG, "not an archive that can be read: %s%s", text ? text : "damaged",
	               source->ended ? " (at the end of the input)" : "");
}

static ssize_t read_more(struct archive *reader, void *data, const void **buffer)
{
	struct source *source = data;
	ssize_t got;

	do {
		got = read(source->fd, source->buffer, source->buffer_size);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		source->read_errno = errno;
		archive_set_error(reader, errno, "read failed");
		return ARCHIVE_FATAL;
	}
	source->ended = got == 0;
	*buffer = source->buffer;
	return got;
}

int source_init(struct source *source, enum source_kind kind, struct err *e)
{
	static int (*const filters[])(struct archive *) = {
		archive_read_support_filter_gzip,
		archive_read_support_filter_xz,
		archive_read_support_filter_bzip2,
		archive_read_support_filter_zstd,
	};
	struct archive *reader = archive_read_new();
	iconv_t converter;

	*source = (struct source){.reader = reader,
	                          .fd = -1,
	                          .buffer_size = SOURCE_BUFFER_SIZE,
	                          .buffer = malloc(SOURCE_BUFFER_SIZE)};
	if (!reader || !source->buffer)
		return err_set(e, ENOMEM, "making the archive reader");
	for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
		if (filters[i](reader) != ARCHIVE_OK)
			return err_set(e, ENOTSUP, "libarchive: %s", archive_error_string(reader));
	if (kind == SOURCE_RAW) {
		archive_read_support_format_raw(reader);
		archive_read_support_format_empty(reader);
		return 0;
	}
	if (archive_read_support_format_tar(reader) != ARCHIVE_OK)
		return err_set(e, ENOTSUP, "libarchive: %s", archive_error_string(reader));
	/* libarchive converts pax names from UTF-8, and iconv reads its configuration the first
	 * time: let that be now, while "/usr/lib" is the host's */
	converter = iconv_open(nl_langinfo(CODESET), "UTF-8");
	if (converter != (iconv_t)-1)
		iconv_close(converter);
	return 0;
}

int source_open(struct source *source, int fd, struct err *e)
{
	source->fd = fd;
	if (archive_read_open(source->reader, source, NULL, read_more, NULL) != ARCHIVE_OK)
		return source_fault(source, e);
	return 0;
}

void source_release(struct source *source)
{
	if (source->reader)
		archive_read_free(source->reader);
	free(source->buffer);
	*source = (struct source){.fd = -1};
}

int source_next(struct source *source, struct archive_entry **entry, struct err *e)
{
	int result = archive_read_next_header(source->reader, entry);

	if (result == ARCHIVE_EOF) {
		/* libarchive takes an end between two entries for the end of the archive. A
		 * compressed stream has its own mark, which its decompressor asked for. */
		if (source->ended && archive_filter_count(source->reader) == 1)
			return err_set(e, EBADMSG,
			               "the input ends without the archive's end mark: it was "
			               "cut short");
		return 0;
	}
	/* RETRY is a damaged header that could be stepped over: what follows is guesswork */
	if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
		return source_fault(source, e);
	return 1;
}

int source_data(struct source *source, const void **data, size_t *length, int64_t *offset,
                struct err *e)
{
	int result = archive_read_data_block(source->reader, data, length, offset);

	if (result == ARCHIVE_EOF)
		return 0;
	if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
		return source_fault(source, e);
	return 1;
}

int source_drain(struct source *source, struct err *e)
{
	ssize_t got = 1;

	while (!source->ended && got != 0) {
		got = read(source->fd, source->buffer, source->buffer_size);
		if (got < 0 && errno != EINTR)
			return err_sys(e, "reading the rest of the input");
	}
	return 0;
}
