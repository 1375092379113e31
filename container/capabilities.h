/* SPDX-License-Identifier: Apache-2.0 */
/* The capabilities of Linux by their names, and the five sets of a process. capabilities(7). */
#ifndef CONTAINER_CAPABILITIES_H
#define CONTAINER_CAPABILITIES_H

#include <stdint.h>

#include "base/err.h"
#include "oci/config.h"

/* One bit a capability. */
struct capability_sets {
	uint64_t bounding, effective, inheritable, permitted, ambient;
};

/*
 * process.capabilities, NULL for none at all, as bits. A name that is no capability's is warned of and
 * left out, as the spec wants it, and so is one beyond HELD, which is what the process may have (0: it
 * is not known yet, as in a new user namespace). One that the kernel's own rules exclude is an error
 * that names it.
 */
int capability_sets_read(const struct oci_capabilities *capabilities, uint64_t held,
                         struct capability_sets *sets, struct err *e);

/* Each acts on the calling process. */
int capabilities_drop_bounding(const struct capability_sets *sets, struct err *e);
int capabilities_set(const struct capability_sets *sets, struct err *e);

#endif
