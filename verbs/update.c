/* SPDX-License-Identifier: Apache-2.0 */
/* `update`: what the options say is put into the document of --resources, which is then read as
 * linux.resources of a config.json is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/scoped.h"
#include "container/lifecycle.h"
#include "oci/parts.h"
#include "verbs/verbs.h"

/* Each member of what the options say goes over that of the document. */
static void lay_over(struct json_object *document, struct json_object *given)
{
	json_object_object_foreach(given, group, members)
	{
		struct json_object *there;

		if (!json_object_object_get_ex(document, group, &there) ||
		    !json_object_is_type(there, json_type_object))
			there = json_add_object(document, group);
		json_object_object_foreach(members, key, value)
		{
			json_object_object_add(there, key, json_object_get(value));
		}
	}
}

static int read_file(struct request *request, struct err *e)
{
	scoped_mem char *text = NULL;
	struct json_object *document;
	size_t length;

	TRY(read_document(request->file, &text, &length, e));
	if (json_parse(text, length, &document, e) < 0)
		return err_in(e, "--resources %s", request->file);
	if (!json_object_is_type(document, json_type_object)) {
		json_object_put(document);
		return err_set(e, EINVAL, "--resources %s: must be an object as linux.resources is",
		               request->file);
	}
	if (request->resources)
		lay_over(document, request->resources);
	json_release(&request->resources);
	request->resources = document;
	return 0;
}

static int update(struct request *request, struct err *e)
{
	struct oci_resources resources = {0};
	struct oci_store store = {0};
	const char *text;
	size_t length;
	int r;

	if (request->file)
		TRY(read_file(request, e));
	if (!request->resources)
		return 0;
	text = json_object_to_json_string_length(request->resources, JSON_C_TO_STRING_PLAIN,
	                                         &length);
	if (shape_parse(text, length, &oci_shape_resources, &resources, &store, e) < 0)
		return err_in(e, "resources");
	r = container_update(&request->lifecycle, &resources, e);
	oci_store_release(&store);
	return r;
}

int verb_update(struct request *request, struct err *e)
{
	const char *l3 = request->l3_cache_schema, *bandwidth = request->mem_bw_schema;
	char schema[4096];

	if (!request->resources && !request->file && !l3 && !bandwidth)
		return err_set(e, EINVAL, "update: nothing to change; see update --help");
	TRY(update(request, e));
	if (!l3 && !bandwidth)
		return 0;
	TRY(text_format(schema, sizeof schema, e, "%s%s%s%s", l3 ? l3 : "", l3 ? "\n" : "",
	                bandwidth ? bandwidth : "", bandwidth ? "\n" : ""));
	return container_update_rdt(&request->lifecycle, schema, e);
}
