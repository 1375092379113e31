/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `agentdock audit` share. The attacks are the program agentdock-probes, which
 * prepares, launches and judges; here is the place where that happens, and how it is told.
 *
 *	STATE/audit/lock      held (flock) by the audit that goes on; another one waits
 *	STATE/audit/scratch   root file systems and workspaces that are being made; removed with the
 *	                      audit, or by the next one where it was killed
 *	STATE/audit/...       an image store of its own, so that no image of the operator is touched
 */
#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "rootfs/image.h"

struct audit {
	const char *runtime; /* what runs OCI bundles; NULL: this program */
	const char *config;  /* a config.json for it; NULL: what `runc spec` writes */
	bool control;        /* without the wall that stops it; only where that can be left out */
	const char *alone; /* of the walls that are left out so, the one that is not; NULL: none */
	char own_program[PATH_MAX];
	char probes[PATH_MAX + 64];
	char place[PATH_MAX]; /* STATE/audit */
	int lockfd;
	struct image_store store;
	char common_digest[IMAGE_DIGEST_SIZE]; /* of the image that most attacks take; "" not yet */
	struct string_list environment;        /* of the sandboxes' launchers */
	struct json_object *attacks;           /* what agentdock-probes list said */
};

/* Reads the list of attacks. */
int audit_list(struct audit *audit, struct err *e);

/* Then, before the first attack: waits for who has the place, and takes it. */
int audit_take_place(struct audit *audit, struct err *e);

/* Releases what there is of it. */
void audit_close(struct audit *audit);

/* Makes ATTACK (an entry of the list) in a sandbox of its own; VERDICT is what came of it. */
int audit_attack(struct audit *audit, struct json_object *attack, struct json_object **verdict,
                 struct err *e);

/* The string KEY of an object of agentdock-probes; "" where there is none. */
const char *audit_text(struct json_object *object, const char *key);

#endif
