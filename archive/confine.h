/* SPDX-License-Identifier: Apache-2.0 */
/* What the program takes from itself before it reads the first byte. All of it binds for good. */
#ifndef ARCHIVE_CONFINE_H
#define ARCHIVE_CONFINE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * PACK      reads files beneath one directory, writes to stdout.
 * CAT       reads and writes open descriptors.
 * CHECKOUT  writes beneath the working directory. The caller has put the process into the sandbox
 *           already: what that sandbox does not permit to add is left out.
 * IMAGE     writes beneath the working directory as root of a user namespace with every id of this
 *           one, in empty mount, network, ipc and uts namespaces. Needs root; each wall is a must
 *           (Landlock where the kernel has it with link and rename: 5.19).
 * LAYER     as IMAGE, and makes whiteouts.
 * PLAN      reads files beneath one directory.
 */
enum confinement {
	CONFINE_PACK,
	CONFINE_CAT,
	CONFINE_CHECKOUT,
	CONFINE_IMAGE,
	CONFINE_LAYER,
	CONFINE_PLAN,
};

/*
 * DIRFD: the directory to read (PACK, PLAN), -1 otherwise. *ROOTFD becomes an O_PATH descriptor of
 * the directory to write beneath (CHECKOUT, IMAGE, LAYER), which the caller closes. LIMIT_BYTES bounds each
 * file. The process gets SIGKILL when its parent ends.
 */
int confine_self(enum confinement kind, int dirfd, uint64_t limit_bytes, int *rootfd,
                 struct err *e);

#endif
