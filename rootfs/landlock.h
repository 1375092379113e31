/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: what a process may do with files, by the hierarchies that they lie in, whatever
 * descriptors it holds and whatever else fails. It can only be tightened, and is inherited by all
 * children. landlock(7), Documentation/userspace-api/landlock.rst; ABI 2 (kernel 5.19) or newer is
 * used, because the first forbids every link and rename between directories.
 */
#ifndef ROOTFS_LANDLOCK_H
#define ROOTFS_LANDLOCK_H

#include <linux/landlock.h>
#include <stdint.h>

#include "base/err.h"

/* What linux/landlock.h of Debian 12 does not know yet. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* ABI 3, kernel 6.2 */
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15) /* ABI 5, kernel 6.10 */
#endif

struct landlock_rule {
	int parentfd;     /* a directory (O_PATH) */
	uint64_t allowed; /* LANDLOCK_ACCESS_FS_*; what this kernel does not know is left out */
};

/*
 * Binds the calling process, which has no_new_privs, to RULES: of all that this kernel's Landlock
 * knows, only what a rule allows stays. Signals and abstract unix sockets reach only who is bound
 * as well (ABI 6, kernel 6.12). Returns the ABI; 0 when this kernel has none that is of use, and
 * nothing is bound.
 */
int landlock_restrict(const struct landlock_rule rules[], int count, struct err *e);

#endif
