/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What agentdock-archive tells the process that started it (--result-fd, ...). It stands
 * here and not in archive/ because the image store and the runtime read it, and they know nothing
 * of that program but this and its verbs.
 *
 * The writer has parsed hostile bytes and may have been taken over by them. So the reader takes a
 * whole struct or nothing, checks kind, ends text with NUL itself and prints it with
 * text_printable(). No struct at all means that the program died.
 */
#ifndef ROOTFS_ARCHIVE_RESULT_H
#define ROOTFS_ARCHIVE_RESULT_H

#include <stdint.h>

enum archive_result_kind { /* never 0: a buffer of zeros is no result */
	                   ARCHIVE_RESULT_OK = 1,
	                   ARCHIVE_RESULT_BAD_ARCHIVE, /* damaged, cut short, or it asks for what is
	                                                  refused */
	                   ARCHIVE_RESULT_LIMIT, /* more bytes, entries or memory than it was given
	                                          */
	                   ARCHIVE_RESULT_NO_SPACE, /* the file system or its quota is full */
	                   ARCHIVE_RESULT_IO, /* everything else: this host's fault, or ours */
};

enum { ARCHIVE_RESULT_TEXT_SIZE = 400 };

struct archive_result {
	int32_t kind;
	int32_t code;     /* positive errno; 0 with ARCHIVE_RESULT_OK */
	uint64_t bytes;   /* logical bytes of files; cat: bytes that came out */
	uint64_t entries; /* files, directories and links, also directories that no entry names */
	uint64_t skipped; /* devices, sockets and, where they are not wanted, FIFOs */
	char text[ARCHIVE_RESULT_TEXT_SIZE];
};

/* Written at offset 0 again and again where the descriptor can seek, else one after another. */
struct archive_progress {
	uint64_t bytes, entries;
};

/*
 * The directories of a layer that hide what lower layers have there (--opaque-fd). Only who started
 * the program may set the attribute that says so. NAMES holds COUNT paths from the layer's root,
 * one behind the other with a NUL behind each; "." is the root itself.
 */
enum { ARCHIVE_OPAQUE_BYTES = 1 << 20 };
struct archive_opaque {
	uint32_t count;
	char names[ARCHIVE_OPAQUE_BYTES];
};

#endif
