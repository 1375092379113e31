/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What agentdock-archive plan makes of a packed image: which layers it has, where they are, and
 * what its config asks for. It stands here because the image store reads it; that program has
 * parsed hostile JSON for it and may have been taken over, so image_plan_check() comes first.
 */
#ifndef ROOTFS_IMAGE_PLAN_H
#define ROOTFS_IMAGE_PLAN_H

#include <stdint.h>

#include "base/err.h"
#include "rootfs/image.h"

enum {
	IMAGE_PLAN_WORDS_MAX = 2048, /* of env, entrypoint and cmd, each */
	IMAGE_PLAN_TEXT_SIZE = 256 << 10,
	IMAGE_PLAN_PATH_SIZE = 512,
};

struct image_plan_layer {
	char digest[IMAGE_DIGEST_SIZE];  /* of the file; "" in a docker-archive, which has none */
	char diff_id[IMAGE_DIGEST_SIZE]; /* of the tar stream in it */
	char path[IMAGE_PLAN_PATH_SIZE]; /* of the file, in the layout */
};

struct image_plan {
	char architecture[16];
	int32_t layers_count;
	struct image_plan_layer layers[IMAGE_LAYERS_MAX]; /* the lowest first */
	/* TEXT: user, workdir, then the words of env, entrypoint and cmd; a NUL behind each */
	uint32_t env_count, entrypoint_count, cmd_count;
	char text[IMAGE_PLAN_TEXT_SIZE];
};

/* Is PLAN of the shape that stands above? EBADMSG, with what is not. */
int image_plan_check(const struct image_plan *plan, struct err *e);

/* Architecture, env, user, workdir, entrypoint and cmd of a checked plan. */
int image_plan_config(const struct image_plan *plan, struct image *image, struct err *e);

/* The checked plan of the OCI layout or docker-archive in DIRFD. */
int image_plan_make(const struct image_store *store, int dirfd, const char *source,
                    const struct image_choice *choice, struct image_plan *plan, struct err *e);

#endif
