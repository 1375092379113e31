/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentdock-archive as a child of the image store: the confined program that parses what nobody
 * trusts. It may have been taken over by what it parsed: nothing of it is believed unchecked.
 */
#ifndef ROOTFS_ARCHIVER_H
#define ROOTFS_ARCHIVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "rootfs/archive_result.h"

/* The descriptors that a child starts with, by their number in it; -1: none. */
enum {
	ARCHIVER_STDIN,
	ARCHIVER_STDOUT,
	ARCHIVER_STDERR,
	ARCHIVER_RESULT,
	ARCHIVER_PROGRESS,
	ARCHIVER_LOCK,
	ARCHIVER_EXTRA,
	ARCHIVER_FROM,
	ARCHIVER_FDS,
};

struct archiver {
	const char *verb;
	pid_t pid; /* 0: not running */
	int status;
	int complaintfd; /* its stderr, where the caller made it one; owned */
};
#define ARCHIVER_NONE                                                                              \
	{                                                                                          \
		.complaintfd = -1                                                                  \
	}

/* A file of BYTES zero bytes that can be written but not grow. */
int archiver_memory(const char *name, off_t bytes, struct err *e);
/* Such a file for stderr, as CHILD->complaintfd. */
int archiver_complaint(struct archiver *child, struct err *e);

/* Starts PROGRAM with ARGV (argv[1] is the verb) in the directory CWDFD (-1: ours). */
int archiver_start(struct archiver *child, const char *program, const char *const argv[], int cwdfd,
                   const int fds[ARCHIVER_FDS], struct err *e);
int archiver_wait(struct archiver *child, struct err *e);
void archiver_release(struct archiver *child); /* kills it where it runs */

/* Once it has ended: did it do what it was to do? */
bool archiver_ok(const struct archiver *child);
/* The error of a child that ended without a result of its own. */
int archiver_failed(const struct archiver *child, const char *source, struct err *e);
/* What it left in RESULTFD; an error where that tells of one, or is none. */
int archiver_result(const struct archiver *child, int resultfd, const char *source,
                    const char *store_path, struct archive_result *result, struct err *e);

#endif
