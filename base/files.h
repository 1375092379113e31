/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by descriptor.
 *
 * Every function takes a directory descriptor (AT_FDCWD where the path is the operator's own) and
 * every descriptor it returns is close-on-exec. Paths in errors are those that the caller passed.
 */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* openat(2) with O_CLOEXEC. Returns the descriptor or -errno; the text is "opening PATH: cause". */
int file_open(int dirfd, const char *path, int flags, mode_t mode, struct err *e);

/*
 * openat2(2) (kernel 5.6). RESOLVE is a set of RESOLVE_*; O_CLOEXEC is added. EAGAIN (a rename
 * raced the walk) is tried again a bounded number of times.
 */
int file_open2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve,
               struct err *e);

/*
 * Reads a whole file into BUFFER, at most SIZE - 1 bytes, and ends it with NUL. Returns the length.
 * A file that does not fit is EFBIG. Meant for small kernel files (/proc, cgroup).
 */
ssize_t file_read(int dirfd, const char *path, char *buffer, size_t size, struct err *e);

/* Like file_read into memory that the caller frees; at most LIMIT bytes, EFBIG beyond. */
int file_read_all(int dirfd, const char *path, size_t limit, char **data, size_t *length,
                  struct err *e);

/* Writes TEXT with one write(2), as kernel control files want it. The file must exist. */
int file_write(int dirfd, const char *path, const char *text, struct err *e);

/* Writes all of DATA to an open descriptor, across short writes and EINTR. */
int fd_write_all(int fd, const void *data, size_t length, struct err *e);

/*
 * Replaces PATH with DATA so that a reader sees the old or the new file, whole: written beside it,
 * fsynced, renamed.
 */
int file_replace(int dirfd, const char *path, const void *data, size_t length, mode_t mode,
                 struct err *e);

/* mkdirat(2) of PATH and of the parents it lacks; one that exists is no error. */
int dir_make_all(int dirfd, const char *path, mode_t mode, struct err *e);

/*
 * Removes the tree NAME beneath DIRFD by descriptor, never following a link, never crossing into
 * another mount. A name that does not exist is no error. Depth costs no descriptors and no stack
 * beyond a fixed bound: a tree of any depth is removed.
 */
int tree_remove(int dirfd, const char *name, struct err *e);

/*
 * Bytes of disk that the regular files and directories beneath NAME take (st_blocks), and how many
 * entries there are; either pointer may be NULL.
 */
int tree_measure(int dirfd, const char *name, uint64_t *bytes, uint64_t *entries, struct err *e);

/* Closes all descriptors from 3 on but the COUNT of KEEP (which is sorted; -1 is none). Linux 5.9. */
int fds_close_others(int keep[], size_t count, struct err *e);

#endif
