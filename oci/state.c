/* SPDX-License-Identifier: Apache-2.0 */
/* The state document, from JSON and to it, by one table of words. */
#include "oci/state.h"

#include <stdlib.h>

#include "base/json.h"
#include "oci/texts.h"

static const struct shape_word statuses[] = {
	{"creating", OCI_CREATING},
	{"created", OCI_CREATED},
	{"running", OCI_RUNNING},
	{"stopped", OCI_STOPPED},
	{NULL, 0},
};

static int state_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_state *state = object;

	if (!state->pid && (state->status == OCI_CREATED || state->status == OCI_RUNNING))
		return shape_refuse(place, "pid", e, "is missing; a container that is %s has one",
		                    statuses[state->status].name);
	return 0;
}

static const struct shape_field state_fields[] = {
	FIELD_TEXT(struct oci_state, "ociVersion", version, .required = true,
                   .check = oci_text_version),
	FIELD_TEXT(struct oci_state, "id", id, .required = true, .check = oci_text_filled),
	FIELD_WORD(struct oci_state, "status", status, statuses, .required = true),
	FIELD_I64(struct oci_state, "pid", pid, 0, INT32_MAX),
	FIELD_TEXT(struct oci_state, "bundle", bundle, .required = true,
                   .check = oci_text_absolute),
	FIELD_MAP(struct oci_state, "annotations", annotations, .check = oci_text_filled),
	FIELD_END,
};
static const struct shape state_shape = {state_fields, sizeof(struct oci_state), state_check};

int oci_state_parse(const char *json, size_t length, struct oci_state *state, struct err *e)
{
	struct oci_state parsed = {0};
	int result = shape_parse(json, length, &state_shape, &parsed, &parsed.store, e);

	*state = parsed;
	return result < 0 ? err_in(e, "state") : 0;
}

void oci_state_release(struct oci_state *state)
{
	oci_store_release(&state->store);
	*state = (struct oci_state){0};
}

struct json_object *oci_state_to_json(const struct oci_state *state)
{
	struct json_object *json = json_object_new_object();
	struct json_object *annotations;

	if (!json)
		abort();
	json_add_string(json, "ociVersion", state->version);
	json_add_string(json, "id", state->id);
	json_add_string(json, "status", statuses[state->status].name);
	if (state->pid)
		json_add_u64(json, "pid", (uint64_t)state->pid);
	json_add_string(json, "bundle", state->bundle);
	if (state->annotations.count == 0)
		return json;
	annotations = json_add_object(json, "annotations");
	for (size_t i = 0; i < state->annotations.count; i++)
		json_add_string(annotations, state->annotations.items[i].key,
		                state->annotations.items[i].value);
	return json;
}
