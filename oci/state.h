/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a container as the OCI runtime-spec has it ("State" in runtime.md): what the command
 * `state` prints, hooks read from their standard input, and an agent of seccomp is sent.
 */
#ifndef OCI_STATE_H
#define OCI_STATE_H

#include "oci/shape.h"

enum oci_status { OCI_CREATING, OCI_CREATED, OCI_RUNNING, OCI_STOPPED };

struct oci_state {
	const char *version; /* ociVersion: the spec's, with which the document complies */
	const char *id;
	int status;         /* enum oci_status */
	int64_t pid;        /* as the runtime sees it; 0: there is no process */
	const char *bundle; /* absolute */
	struct oci_map annotations;
	struct oci_store store; /* what the members of a parsed one point to */
};

/*
 * Parses a document. EINVAL and a text that names the key where it is none; STATE is empty then.
 * One that is created or running has a pid. Keys that the spec does not know are ignored.
 */
int oci_state_parse(const char *json, size_t length, struct oci_state *state, struct err *e);
void oci_state_release(struct oci_state *state);

/* The document; the caller puts it. Without a pid where that is 0. */
struct json_object *oci_state_to_json(const struct oci_state *state);

#endif
