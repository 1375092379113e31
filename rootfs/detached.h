/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to rootfs: the mount API of kernel 5.2 in one call each. A detached mount is attached
 * nowhere; it dies with its last descriptor. An error carries what the kernel wrote to the file
 * system context's log, which says more than the errno.
 */
#ifndef ROOTFS_DETACHED_H
#define ROOTFS_DETACHED_H

#include <linux/openat2.h>
#include <stddef.h>

#include "base/err.h"

/* How each name beneath a root that the guest may have laid out is resolved (openat2, kernel 5.6).
 */
#define BENEATH_ROOT (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

struct fs_option {
	const char *key;
	const char *text; /* NULL: a flag, or a descriptor when fd > 0 */
	int fd;           /* passed as FSCONFIG_SET_FD when > 0 */
};

/* A new file system context; owned descriptor. */
int fs_open(const char *type, struct err *e);

int fs_set(int fsfd, const char *type, const struct fs_option *option, struct err *e);

/* Creates the super block and returns the detached mount with ATTRIBUTES (MOUNT_ATTR_*). */
int fs_create(int fsfd, const char *type, unsigned attributes, struct err *e);

/* The three above in a row. */
int detached_mount(const char *type, const struct fs_option options[], size_t count,
                   unsigned attributes, struct err *e);

/* A detached copy of the mount at PATHFD, or at NAME beneath it where NAME is not "". */
int detached_clone(int pathfd, const char *name, struct err *e);

/* Puts a detached mount on TARGETFD. WHAT and WHERE are for the error. */
int detached_attach(int mountfd, int targetfd, const char *what, const char *where, struct err *e);

#endif
