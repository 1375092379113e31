/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentdock-init as a file that has no name, cannot change any more, and can be executed but not
 * read: a process that executes what it may not read is undumpable (unless the sysctl
 * fs.suid_dumpable is 1, which doctor tells), so the guest, which has the
 * same user id, can neither trace pid 1 nor see its memory, descriptors or /proc/1/exe. Holds for
 * user id 0 too, as long as it has no CAP_DAC_OVERRIDE. memfd_create(2), F_ADD_SEALS in fcntl(2).
 */
#ifndef RUNTIME_INIT_MEMFD_H
#define RUNTIME_INIT_MEMFD_H

#include "base/err.h"

/* Returns a close-on-exec descriptor, for execveat(fd, "", argv, envp, AT_EMPTY_PATH). */
int init_memfd(struct err *e);

#endif
