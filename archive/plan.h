/* SPDX-License-Identifier: Apache-2.0 */
/* What a packed image (OCI layout, docker-archive) is made of. */
#ifndef ARCHIVE_PLAN_H
#define ARCHIVE_PLAN_H

#include "base/err.h"
#include "rootfs/image_plan.h"

struct plan_options {
	const char *architecture; /* as GOARCH writes it */
	const char *ref; /* what the image is called in there; NULL: the only one there is */
};

/* PLAN is all zero. What is wrong with the image is EBADMSG, or EFBIG. */
int plan_image(int dirfd, const struct plan_options *options, struct image_plan *plan,
               struct err *e);

#endif
