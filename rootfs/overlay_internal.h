/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to rootfs and its tests: how an overlay is told its layers, and what it reads there. */
#ifndef ROOTFS_OVERLAY_INTERNAL_H
#define ROOTFS_OVERLAY_INTERNAL_H

#include "base/err.h"

/* "y" on a directory: nothing of the layers below is merged into it. */
#define OVERLAY_OPAQUE "trusted.overlay.opaque"

enum overlay_naming {
	OVERLAY_BY_DESCRIPTOR, /* detached layers, FSCONFIG_SET_FD; kernel 6.15 */
	OVERLAY_BY_NAME,       /* attached in a child's mount namespace; any kernel */
};

/*
 * overlay_create with one way of naming. -EOPNOTSUPP: this kernel does not take descriptors.
 * BY_NAME takes the disk's mount with it into the child's namespace: the descriptor stays good, but
 * the mount can be attached, or stacked upon, no more.
 */
int overlay_create_by(enum overlay_naming naming, const int layerfds[], int layers_count,
                      int diskfd, int usernsfd, struct err *e);

#endif
