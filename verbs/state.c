/* SPDX-License-Identifier: Apache-2.0 */
/* What containers there are and what they do: `state` and `list`, in the words of runc. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/scoped.h"
#include "base/table.h"
#include "container/group.h"
#include "container/store.h"
#include "verbs/journal.h"
#include "verbs/verbs.h"

static const char *const words[] = {
	[OCI_CREATING] = "creating",
	[OCI_CREATED] = "created",
	[OCI_RUNNING] = "running",
	[OCI_STOPPED] = "stopped",
};

static int is_frozen(const struct store_entry *entry, bool *frozen, struct err *e)
{
	*frozen = false;
	return entry->record.group ? group_saved_is_frozen(entry->record.group, frozen, e) : 0;
}

int status_word(const struct store_entry *entry, const char **word, int *pidfd, struct err *e)
{
	bool frozen = false;
	int status;

	TRY(store_status(entry, &status, pidfd, e));
	if (status == OCI_RUNNING)
		TRY(is_frozen(entry, &frozen, e));
	*word = frozen ? "paused" : words[status];
	return 0;
}

static void add_annotations(struct json_object *json, const struct oci_map *annotations)
{
	struct json_object *added;

	if (annotations->count == 0)
		return;
	added = json_add_object(json, "annotations");
	for (size_t i = 0; i < annotations->count; i++)
		json_add_string(added, annotations->items[i].key, annotations->items[i].value);
}

/* The config of one that is being created or was left half-made may not be there yet. */
static int describe(struct store_entry *entry, struct json_object *json, struct err *e)
{
	const struct store_record *record = &entry->record;
	const char *word;
	scoped_fd pidfd = -1;

	TRY(status_word(entry, &word, &pidfd, e));
	if (entry->has_record)
		TRY(store_config(entry, e));
	json_add_string(json, "ociVersion", entry->has_record ? entry->config.version : "1.3.0");
	json_add_string(json, "id", entry->id);
	json_add_u64(json, "pid", pidfd >= 0 ? (uint64_t)record->pid : 0);
	json_add_string(json, "status", word);
	json_add_string(json, "bundle", entry->has_record ? record->bundle : "");
	json_add_string(json, "rootfs", entry->has_record ? record->rootfs : "");
	json_add_string(json, "created", entry->has_record ? record->created : "");
	add_annotations(json, &entry->config.annotations);
	json_add_string(json, "owner", entry->has_record ? record->owner : "");
	return 0;
}

static int describe_id(const char *root, const char *id, struct json_object **json, struct err *e)
{
	scoped_json described = json_object_new_object();
	struct store_entry entry;
	int r;

	if (!described)
		return err_set(e, ENOMEM, "no memory for the state of container %s", id);
	TRY(store_open(root, id, STORE_UNLOCKED, &entry, e));
	r = describe(&entry, described, e);
	store_release(&entry);
	TRY(r);
	*json = take_mem(&described);
	return 0;
}

int verb_state(struct request *request, struct err *e)
{
	scoped_json json = NULL;

	TRY(describe_id(request->lifecycle.root, request->lifecycle.id, &json, e));
	return print_json(json, e);
}

/* ---- list ---- */

static const char *text_of(struct json_object *json, const char *key)
{
	return json_object_get_string(json_object_object_get(json, key));
}

static int print_table(struct json_object *list, struct err *e)
{
	static const char *const header[] = {"ID",      "PID",   "STATUS", "BUNDLE",
	                                     "CREATED", "OWNER", NULL};
	static const char *const keys[] = {"id", "pid", "status", "bundle", "created", "owner"};
	struct table table = {0};
	int r = table_start(&table, header, e);

	for (size_t i = 0; r >= 0 && i < json_object_array_length(list); i++)
		for (size_t j = 0; r >= 0 && j < sizeof keys / sizeof *keys; j++)
			r = table_cell(&table, e, "%s",
			               text_of(json_object_array_get_idx(list, i), keys[j]));
	if (r >= 0)
		table_print(&table, stdout);
	table_release(&table);
	return r < 0 ? r : finish_stdout(e);
}

static int print_ids(const struct string_list *ids, struct err *e)
{
	for (size_t i = 0; i < ids->count; i++)
		puts(ids->items[i]);
	return finish_stdout(e);
}

/* One that was deleted meanwhile is passed over; one that can't be read is told of and passed over. */
static int describe_all(const char *root, const struct string_list *ids, struct json_object *list)
{
	for (size_t i = 0; i < ids->count; i++) {
		struct json_object *json;
		struct err e;

		if (describe_id(root, ids->items[i], &json, &e) >= 0)
			json_object_array_add(list, json);
		else if (e.code != ENOENT)
			journal_warn(e.text);
	}
	return 0;
}

int verb_list(struct request *request, struct err *e)
{
	scoped_json list = json_object_new_array();
	struct string_list ids = {0};
	int r;

	if (!list)
		return err_set(e, ENOMEM, "no memory for a list");
	r = store_list(request->lifecycle.root, &ids, e);
	if (r >= 0 && request->quiet)
		r = print_ids(&ids, e);
	else if (r >= 0)
		r = describe_all(request->lifecycle.root, &ids, list);
	string_list_release(&ids);
	TRY(r);
	if (request->quiet)
		return 0;
	return request->format == FORMAT_JSON ? print_json(list, e) : print_table(list, e);
}
