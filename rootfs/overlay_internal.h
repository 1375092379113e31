/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to rootfs and its tests: how an overlay is told its layers. */
#ifndef ROOTFS_OVERLAY_INTERNAL_H
#define ROOTFS_OVERLAY_INTERNAL_H

#include "base/err.h"

enum overlay_naming {
	OVERLAY_BY_DESCRIPTOR, /* FSCONFIG_SET_FD; kernel 6.13 */
	OVERLAY_BY_NUMBER,     /* descriptor numbers as names beneath /proc/self/fd; any kernel */
};

/* overlay_create with one way of naming. -EOPNOTSUPP: this kernel does not take descriptors. */
int overlay_create_by(enum overlay_naming naming, const int layerfds[], int layers_count,
                      int diskfd, int usernsfd, struct err *e);

#endif
