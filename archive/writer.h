/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries to a tar stream: ustar headers, with a pax header before one only where ustar has no
 * room for a value (POSIX.1-2017, pax). The same entries give the same bytes. Names are bytes; a
 * pax record that is not UTF-8 is marked hdrcharset=BINARY.
 */
#ifndef ARCHIVE_WRITER_H
#define ARCHIVE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { WRITER_BUFFER_SIZE = 256 << 10 };

struct writer {
	int fd;
	size_t used;
	unsigned char *buffer;
	uint64_t written; /* bytes of the stream so far */
};

struct member {
	const char *path; /* a directory's ends with "/" */
	const char *link; /* of a symbolic or hard link; NULL otherwise */
	char type;        /* '0' file, '1' hard link, '2' symbolic link, '5' directory, '6' FIFO */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	int64_t mtime;
	uint64_t size;
};

/* Extended attributes and other records of one member, as they stand in the stream. */
struct pax_records {
	char *data;
	size_t used, room;
};
int pax_add(struct pax_records *records, const char *key, const void *value, size_t length,
            struct err *e);
void pax_release(struct pax_records *records);

int writer_init(struct writer *writer, int fd, struct err *e);
void writer_release(struct writer *writer);

/* RECORDS: further pax records, which the caller keeps. */
int writer_header(struct writer *writer, const struct member *member,
                  const struct pax_records *records, struct err *e);

/* Exactly SIZE bytes of FD, with zeros for those that it no longer has, and the padding. */
int writer_file(struct writer *writer, int fd, uint64_t size, struct err *e);

/* The end mark; everything is on its way then. */
int writer_finish(struct writer *writer, struct err *e);

#endif
