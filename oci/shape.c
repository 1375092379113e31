/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading by table: one reader for each kind of value, and one walk over the fields of a shape. Owns
 * the memory of what is read. How deep it goes is how deep the tables are nested; how much memory it
 * takes is bounded by the size of the document and SHAPE_ENTRIES_MAX.
 */
#include "oci/shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/scoped.h"
#include "base/strings.h"

/* ---- the store ---- */

struct oci_block {
	struct oci_block *next;
	max_align_t data[];
};

void oci_store_release(struct oci_store *store)
{
	while (store->blocks) {
		struct oci_block *block = store->blocks;

		store->blocks = block->next;
		free(block);
	}
	json_release(&store->document);
}

/* COUNT zeroed structs, at least one; NULL when there is no memory. */
static void *store_new(struct oci_store *store, size_t count, size_t size)
{
	struct oci_block *block = NULL;
	size_t bytes;

	if (!__builtin_mul_overflow(count, size, &bytes) &&
	    !__builtin_add_overflow(bytes, sizeof *block, &bytes))
		block = calloc(1, bytes);
	if (!block)
		return NULL;
	block->next = store->blocks;
	store->blocks = block;
	return block->data;
}

/* ---- refusals ---- */

static void place_write(const struct shape_place *place, char *text, size_t size)
{
	char shown[64];
	size_t used;

	if (!place)
		return;
	place_write(place->outer, text, size);
	used = strlen(text);
	switch (place->step) {
	case SHAPE_KEY:
		snprintf(text + used, size - used, "%s%s", used ? "." : "", place->key);
		break;
	case SHAPE_INDEX:
		snprintf(text + used, size - used, "[%zu]", place->index);
		break;
	case SHAPE_NAME:
		snprintf(text + used, size - used, "[\"%s\"]",
		         text_printable(place->key, shown, sizeof shown));
		break;
	}
}

int shape_refuse(const struct shape_place *place, const char *key, struct err *e, const char *fmt,
                 ...)
{
	const struct shape_place inner = {.outer = place, .step = SHAPE_KEY, .key = key};
	char where[250] = "", what[ERR_TEXT_SIZE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	place_write(key ? &inner : place, where, sizeof where);
	if (!where[0])
		return err_set(e, EINVAL, "%s", what);
	return err_set(e, EINVAL, "%s: %s", where, what);
}

/* One value on its way into its member. */
struct value {
	struct json_object *json;
	const struct shape_field *field;
	const struct shape_place *place;
	void *member;
	struct oci_store *store;
};

static int read_object(struct json_object *json, const struct shape *shape,
                       const struct shape_place *place, void *object, struct oci_store *store,
                       struct err *e);

static int no_memory(const struct value *v, struct err *e)
{
	shape_refuse(v->place, NULL, e, "no memory for it");
	e->code = ENOMEM;
	return -ENOMEM;
}

/* A value of the document for a message: "text", 12, an object. */
static const char *show(struct json_object *json, char *shown, size_t size)
{
	switch (json_object_get_type(json)) {
	case json_type_array:
		return "an array";
	case json_type_object:
		return "an object";
	default:
		return text_printable(json_object_to_json_string(json), shown, size);
	}
}

static int want(struct json_object *json, const struct shape_place *place, enum json_type type,
                const char *what, struct err *e)
{
	char shown[64];

	if (json_object_is_type(json, type))
		return 0;
	return shape_refuse(place, NULL, e, "must be %s, not %s", what,
	                    show(json, shown, sizeof shown));
}

/* ---- single values ---- */

static int read_bool(const struct value *v, struct err *e)
{
	TRY(want(v->json, v->place, json_type_boolean, "true or false", e));
	*(bool *)v->member = json_object_get_boolean(v->json);
	return 0;
}

static int read_maybe_bool(const struct value *v, struct err *e)
{
	TRY(want(v->json, v->place, json_type_boolean, "true or false", e));
	*(struct oci_bool *)v->member = (struct oci_bool){true, json_object_get_boolean(v->json)};
	return 0;
}

static int text_of(const struct value *v, struct json_object *json, const struct shape_place *place,
                   const char **text, struct err *e)
{
	TRY(want(json, place, json_type_string, "a text", e));
	*text = json_object_get_string(json);
	return v->field->check ? v->field->check(*text, place, e) : 0;
}

static int read_text(const struct value *v, struct err *e)
{
	return text_of(v, v->json, v->place, v->member, e);
}

static int signed_of(const struct value *v, int64_t *number, struct err *e)
{
	char shown[64];

	*number = json_object_get_int64(v->json);
	/* what is beyond int64 is given as its maximum */
	if (json_object_is_type(v->json, json_type_int) && *number >= v->field->min &&
	    *number <= (int64_t)v->field->max &&
	    (*number < 0 || json_object_get_uint64(v->json) <= INT64_MAX))
		return 0;
	return shape_refuse(v->place, NULL, e,
	                    "must be a whole number from %" PRId64 " to %" PRIu64 ", not %s",
	                    v->field->min, v->field->max, show(v->json, shown, sizeof shown));
}

static int unsigned_of(const struct value *v, struct json_object *json,
                       const struct shape_place *place, uint64_t *number, struct err *e)
{
	char shown[64];

	*number = json_object_get_uint64(json);
	if (json_object_is_type(json, json_type_int) && json_object_get_int64(json) >= 0 &&
	    *number <= v->field->max)
		return 0;
	return shape_refuse(place, NULL, e, "must be a whole number from 0 to %" PRIu64 ", not %s",
	                    v->field->max, show(json, shown, sizeof shown));
}

static int read_i64(const struct value *v, struct err *e)
{
	return signed_of(v, v->member, e);
}

static int read_maybe_i64(const struct value *v, struct err *e)
{
	struct oci_int *member = v->member;

	TRY(signed_of(v, &member->value, e));
	member->set = true;
	return 0;
}

static int read_u64(const struct value *v, struct err *e)
{
	return unsigned_of(v, v->json, v->place, v->member, e);
}

static int read_u32(const struct value *v, struct err *e)
{
	uint64_t number;

	TRY(unsigned_of(v, v->json, v->place, &number, e));
	*(uint32_t *)v->member = (uint32_t)number;
	return 0;
}

static int read_maybe_u64(const struct value *v, struct err *e)
{
	struct oci_uint *member = v->member;

	TRY(unsigned_of(v, v->json, v->place, &member->value, e));
	member->set = true;
	return 0;
}

/* ---- words ---- */

/* As many of them as fit, for a message. */
static const char *words_list(const struct shape_word *words, char *list, size_t size)
{
	const size_t more = sizeof ", ...";
	size_t used = 0;

	snprintf(list, size, "there are none");
	for (; words->name && used + strlen(words->name) + more < size; words++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "",
		                         words->name);
	if (words->name)
		snprintf(list + used, size - used, ", ...");
	return list;
}

static int word_of(const struct value *v, struct json_object *json, const struct shape_place *place,
                   uint64_t *meaning, struct err *e)
{
	char shown[64], list[160];
	const char *name;

	TRY(text_of(v, json, place, &name, e));
	for (const struct shape_word *word = v->field->words; word->name; word++)
		if (strcmp(word->name, name) == 0) {
			*meaning = word->value;
			return 0;
		}
	return shape_refuse(place, NULL, e, "%s is none of the values that can be (%s)",
	                    show(json, shown, sizeof shown),
	                    words_list(v->field->words, list, sizeof list));
}

static int read_word(const struct value *v, struct err *e)
{
	uint64_t meaning;

	TRY(word_of(v, v->json, v->place, &meaning, e));
	*(int *)v->member = (int)meaning;
	return 0;
}

/* ---- arrays ---- */

static int array_length(const struct value *v, size_t *length, struct err *e)
{
	TRY(want(v->json, v->place, json_type_array, "an array", e));
	*length = json_object_array_length(v->json);
	if (*length > SHAPE_ENTRIES_MAX)
		return shape_refuse(v->place, NULL, e, "%zu entries, %d can be", *length,
		                    SHAPE_ENTRIES_MAX);
	return 0;
}

static int read_flags(const struct value *v, struct err *e)
{
	struct shape_place at = {.outer = v->place, .step = SHAPE_INDEX};
	uint64_t all = 0, meaning = 0;
	size_t count;

	TRY(array_length(v, &count, e));
	for (; at.index < count; at.index++) {
		TRY(word_of(v, json_object_array_get_idx(v->json, at.index), &at, &meaning, e));
		all |= meaning;
	}
	*(uint64_t *)v->member = all;
	return 0;
}

static int read_texts(const struct value *v, struct err *e)
{
	struct shape_place at = {.outer = v->place, .step = SHAPE_INDEX};
	struct oci_strings list;

	TRY(array_length(v, &list.count, e));
	list.items = store_new(v->store, list.count + 1, sizeof *list.items);
	if (!list.items)
		return no_memory(v, e);
	for (; at.index < list.count; at.index++)
		TRY(text_of(v, json_object_array_get_idx(v->json, at.index), &at,
		            &list.items[at.index], e));
	*(struct oci_strings *)v->member = list;
	return 0;
}

static int read_ids(const struct value *v, struct err *e)
{
	struct shape_place at = {.outer = v->place, .step = SHAPE_INDEX};
	struct oci_ids list;
	uint64_t number;

	TRY(array_length(v, &list.count, e));
	list.items = store_new(v->store, list.count, sizeof *list.items);
	if (!list.items)
		return no_memory(v, e);
	for (; at.index < list.count; at.index++) {
		TRY(unsigned_of(v, json_object_array_get_idx(v->json, at.index), &at, &number, e));
		list.items[at.index] = (uint32_t)number;
	}
	*(struct oci_ids *)v->member = list;
	return 0;
}

/* What every list of objects looks like in memory, whatever its objects are. */
struct list {
	void *items;
	size_t count;
};

static int read_objects(const struct value *v, struct err *e)
{
	struct shape_place at = {.outer = v->place, .step = SHAPE_INDEX};
	const struct shape *shape = v->field->shape;
	struct list list;

	TRY(array_length(v, &list.count, e));
	list.items = store_new(v->store, list.count, shape->size);
	if (!list.items)
		return no_memory(v, e);
	for (; at.index < list.count; at.index++)
		TRY(read_object(json_object_array_get_idx(v->json, at.index), shape, &at,
		                (char *)list.items + at.index * shape->size, v->store, e));
	memcpy(v->member, &list, sizeof list);
	return 0;
}

/* ---- objects ---- */

static int object_length(const struct value *v, size_t *length, struct err *e)
{
	TRY(want(v->json, v->place, json_type_object, "an object", e));
	*length = (size_t)json_object_object_length(v->json);
	if (*length > SHAPE_ENTRIES_MAX)
		return shape_refuse(v->place, NULL, e, "%zu entries, %d can be", *length,
		                    SHAPE_ENTRIES_MAX);
	return 0;
}

static int name_check(const struct value *v, const char *name, const struct shape_place *place,
                      struct err *e)
{
	return v->field->check ? v->field->check(name, place, e) : 0;
}

static int read_map(const struct value *v, struct err *e)
{
	struct oci_map map;
	size_t i = 0;

	TRY(object_length(v, &map.count, e));
	map.items = store_new(v->store, map.count, sizeof *map.items);
	if (!map.items)
		return no_memory(v, e);
	json_object_object_foreach(v->json, name, json)
	{
		const struct shape_place at = {v->place, SHAPE_NAME, .key = name};

		TRY(name_check(v, name, &at, e));
		TRY(want(json, &at, json_type_string, "a text", e));
		map.items[i++] = (struct oci_pair){name, json_object_get_string(json)};
	}
	*(struct oci_map *)v->member = map;
	return 0;
}

static int read_named(const struct value *v, struct err *e)
{
	const struct shape *shape = v->field->shape;
	struct list list;
	char *item;

	TRY(object_length(v, &list.count, e));
	list.items = item = store_new(v->store, list.count, shape->size);
	if (!item)
		return no_memory(v, e);
	json_object_object_foreach(v->json, name, json)
	{
		const struct shape_place at = {v->place, SHAPE_NAME, .key = name};
		const char *kept = name;

		TRY(name_check(v, name, &at, e));
		memcpy(item, &kept, sizeof kept);
		TRY(read_object(json, shape, &at, item, v->store, e));
		item += shape->size;
	}
	memcpy(v->member, &list, sizeof list);
	return 0;
}

static int read_inside(const struct value *v, struct err *e)
{
	return read_object(v->json, v->field->shape, v->place, v->member, v->store, e);
}

static int read_pointed(const struct value *v, struct err *e)
{
	void *object = store_new(v->store, 1, v->field->shape->size);

	if (!object)
		return no_memory(v, e);
	TRY(read_object(v->json, v->field->shape, v->place, object, v->store, e));
	memcpy(v->member, &object, sizeof object);
	return 0;
}

static int read_present(const struct value *v, struct err *e)
{
	TRY(want(v->json, v->place, json_type_object, "an object", e));
	*(bool *)v->member = true;
	return 0;
}

static int (*const readers[])(const struct value *v, struct err *e) = {
	[SHAPE_BOOL] = read_bool,
	[SHAPE_MAYBE_BOOL] = read_maybe_bool,
	[SHAPE_TEXT] = read_text,
	[SHAPE_I64] = read_i64,
	[SHAPE_U64] = read_u64,
	[SHAPE_U32] = read_u32,
	[SHAPE_MAYBE_I64] = read_maybe_i64,
	[SHAPE_MAYBE_U64] = read_maybe_u64,
	[SHAPE_WORD] = read_word,
	[SHAPE_FLAGS] = read_flags,
	[SHAPE_TEXTS] = read_texts,
	[SHAPE_IDS] = read_ids,
	[SHAPE_MAP] = read_map,
	[SHAPE_OBJECT] = read_pointed,
	[SHAPE_INSIDE] = read_inside,
	[SHAPE_OBJECTS] = read_objects,
	[SHAPE_NAMED] = read_named,
	[SHAPE_PRESENT] = read_present,
};

static int read_object(struct json_object *json, const struct shape *shape,
                       const struct shape_place *place, void *object, struct oci_store *store,
                       struct err *e)
{
	TRY(want(json, place, json_type_object, "an object", e));
	for (const struct shape_field *field = shape->fields; field->key; field++) {
		const struct shape_place at = {place, SHAPE_KEY, .key = field->key};
		struct value v = {NULL, field, &at, (char *)object + field->at, store};

		if (json_object_object_get_ex(json, field->key, &v.json))
			TRY(readers[field->kind](&v, e));
		else if (field->required)
			return shape_refuse(&at, NULL, e, "is missing, and must be there");
	}
	return shape->check ? shape->check(object, place, e) : 0;
}

int shape_parse(const char *json, size_t length, const struct shape *shape, void *object,
                struct oci_store *store, struct err *e)
{
	TRY(json_parse(json, length, &store->document, e));
	if (read_object(store->document, shape, NULL, object, store, e) < 0) {
		oci_store_release(store);
		memset(object, 0, shape->size);
		return -e->code;
	}
	return 0;
}
