/* SPDX-License-Identifier: Apache-2.0 */
/* The state document of a container, as its hooks and an agent of seccomp are given it. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "container/container.h"

/* With the spec's version that the runtime knows, as `state` prints it. */
int state_document(const struct oci_config *config, const char *id, const char *bundle, int status,
                   pid_t pid, char **text, struct err *e)
{
	const struct oci_state state = {
		.version = config->version,
		.id = id,
		.status = status,
		.pid = pid,
		.bundle = bundle,
		.annotations = config->annotations,
	};
	scoped_json json = oci_state_to_json(&state);

	*text = strdup(json_object_to_json_string_ext(
		json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	return *text ? 0 : err_set(e, ENOMEM, "no memory for the state of container %s", id);
}
