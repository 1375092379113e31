/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of which oci/config.c makes the document; each file has those of one part. */
#ifndef OCI_PARTS_H
#define OCI_PARTS_H

#include "oci/config.h"

extern const struct shape oci_shape_process;   /* struct oci_process */
extern const struct shape oci_shape_hooks;     /* struct oci_hooks */
extern const struct shape oci_shape_mount;     /* struct oci_mount */
extern const struct shape oci_shape_linux;     /* struct oci_linux */
extern const struct shape oci_shape_resources; /* struct oci_resources */
extern const struct shape oci_shape_seccomp;   /* struct oci_seccomp */
extern const struct shape oci_shape_mapping;   /* struct oci_mapping */
extern const struct shape oci_shape_freebsd;   /* struct oci_unkept */
extern const struct shape oci_shape_zos;       /* struct oci_unkept */

/* Takes what is checked and not kept, one value over the other. */
struct oci_unkept {
	const char *text;
	struct oci_strings texts;
	struct oci_uint number;
	bool yes;
	int word;
	struct oci_unkept *object;
	struct {
		struct oci_unkept *items;
		size_t count;
	} objects;
};

/* The list is one that user_namespaces(7) can have; KEY is its name at PLACE. */
int oci_mappings_check(const struct oci_mappings *mappings, const struct shape_place *place,
                       const char *key, struct err *e);

#endif
