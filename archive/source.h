/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to entries. The reader is made before the confinement and opened after it. */
#ifndef ARCHIVE_SOURCE_H
#define ARCHIVE_SOURCE_H

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct source {
	struct archive *reader;
	int fd;
	int read_errno; /* why the last read of fd failed; 0: it did not */
	bool ended;     /* fd has said end-of-file */
	size_t buffer_size;
	unsigned char *buffer;
};

enum source_kind {
	SOURCE_TAR, /* the entries of a tar archive */
	SOURCE_RAW, /* one entry: the decompressed bytes, whatever they are */
};

/* Neither takes bytes; source_open reads the first. The caller releases SOURCE in any case. */
int source_init(struct source *source, enum source_kind kind, struct err *e);
int source_open(struct source *source, int fd, struct err *e);
void source_release(struct source *source);

/* 1: *ENTRY is the next; 0: the archive has ended, by its own mark. */
int source_next(struct source *source, struct archive_entry **entry, struct err *e);

/* 1: LENGTH bytes of DATA belong at OFFSET of the entry; 0: no more of them. */
int source_data(struct source *source, const void **data, size_t *length, int64_t *offset,
                struct err *e);

/* Reads FD to its end, so that who writes the other end can finish. */
int source_drain(struct source *source, struct err *e);

#endif
