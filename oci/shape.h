/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON object that is read by a table: a shape says which keys an object may have, of what type
 * each is, and which member of a C struct takes it. Keys that the table lacks are ignored, as the
 * runtime-spec wants it ("Extensibility" in config.md).
 *
 * A refusal begins with the whole path of its key: "linux.resources.memory.limit: ...",
 * "mounts[3].destination: ...", "linux.netDevices["eth0"].name: ...".
 *
 * Everything that is read belongs to one store: texts point into its JSON document, lists and nested
 * objects are its blocks. Releasing it ends them all.
 */
#ifndef OCI_SHAPE_H
#define OCI_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct json_object;

/* ---- what members are made of ---- */

/* Where it makes a difference whether a key was there. */
struct oci_bool {
	bool set, value;
};
struct oci_int {
	bool set;
	int64_t value;
};
struct oci_uint {
	bool set;
	uint64_t value;
};

/* NULL stands behind the last one. */
struct oci_strings {
	const char **items;
	size_t count;
};

struct oci_ids {
	uint32_t *items;
	size_t count;
};

/* In the order of the document. */
struct oci_pair {
	const char *key, *value;
};
struct oci_map {
	struct oci_pair *items;
	size_t count;
};

/* Zero-initialised is empty. */
struct oci_block;
struct oci_store {
	struct json_object *document;
	struct oci_block *blocks;
};
void oci_store_release(struct oci_store *store);

/* ---- shapes ---- */

/* An array or a map has at most so many entries. */
enum { SHAPE_ENTRIES_MAX = 65536 };

/* Where in the document: a key, an index or a name of a map, in what holds it (NULL: the document). */
enum shape_step { SHAPE_KEY, SHAPE_INDEX, SHAPE_NAME };
struct shape_place {
	const struct shape_place *outer;
	enum shape_step step;
	const char *key; /* of SHAPE_KEY and SHAPE_NAME */
	size_t index;    /* of SHAPE_INDEX */
};

/* EINVAL with the text "PLACE.KEY: ...", or "PLACE: ..." where KEY is NULL. */
PRINTF_LIKE(4, 5)
int shape_refuse(const struct shape_place *place, const char *key, struct err *e, const char *fmt,
                 ...);

/* What a text must be like beside being one; those that several documents need are in oci/texts.h. */
typedef int shape_text_check(const char *text, const struct shape_place *place, struct err *e);

/* A word that the document may say, and what it means here. A list ends with a NULL name. */
struct shape_word {
	const char *name;
	uint64_t value;
};

enum shape_kind {
	SHAPE_BOOL,
	SHAPE_MAYBE_BOOL,
	SHAPE_TEXT,
	SHAPE_I64,
	SHAPE_U64,
	SHAPE_U32,
	SHAPE_MAYBE_I64,
	SHAPE_MAYBE_U64,
	SHAPE_WORD,    /* one of the words */
	SHAPE_FLAGS,   /* an array of them, or-ed */
	SHAPE_TEXTS,   /* an array of texts */
	SHAPE_IDS,     /* an array of uint32 */
	SHAPE_MAP,     /* an object of texts; the check is for names */
	SHAPE_OBJECT,  /* a pointer, NULL when absent */
	SHAPE_INSIDE,  /* an object that is a member itself, zeros when absent */
	SHAPE_OBJECTS, /* an array of objects */
	SHAPE_NAMED,   /* an object of objects, whose struct begins with the name */
	SHAPE_PRESENT, /* an object of which only its presence is wanted */
};

struct shape;
struct shape_field {
	const char *key; /* NULL behind the last one */
	enum shape_kind kind;
	bool required;
	size_t at;    /* the member's offset */
	int64_t min;  /* of signed numbers */
	uint64_t max; /* of numbers */
	const struct shape_word *words;
	const struct shape *shape;
	shape_text_check *check; /* of each text, or of each name of a map */
};

struct shape {
	const struct shape_field *fields;
	size_t size; /* of the struct */
	/* What concerns more than one key; fills in what the spec gives by default. Or NULL. */
	int (*check)(void *object, const struct shape_place *place, struct err *e);
};

/* The offset of a member that has TYPE, else no program. */
#define SHAPE_AT(S, member, type)                                                                  \
	(offsetof(S, member) +                                                                     \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((S *)0)->member), type) ? 1      \
	                                                                                  : -1]))

/* Rows of tables. What follows are other members: .required = true, .check = ... */
#define FIELD(K, S, name, m, type, ...)                                                            \
	{                                                                                          \
		.key = (name), .kind = (K), .at = SHAPE_AT(S, m, type), __VA_ARGS__                \
	}
#define FIELD_BOOL(S, key, m, ...) FIELD(SHAPE_BOOL, S, key, m, bool, __VA_ARGS__)
#define FIELD_MAYBE_BOOL(S, key, m, ...)                                                           \
	FIELD(SHAPE_MAYBE_BOOL, S, key, m, struct oci_bool, __VA_ARGS__)
#define FIELD_TEXT(S, key, m, ...)    FIELD(SHAPE_TEXT, S, key, m, const char *, __VA_ARGS__)
#define FIELD_TEXTS(S, key, m, ...)   FIELD(SHAPE_TEXTS, S, key, m, struct oci_strings, __VA_ARGS__)
#define FIELD_IDS(S, key, m, ...)     FIELD(SHAPE_IDS, S, key, m, struct oci_ids, __VA_ARGS__)
#define FIELD_MAP(S, key, m, ...)     FIELD(SHAPE_MAP, S, key, m, struct oci_map, __VA_ARGS__)
#define FIELD_PRESENT(S, key, m, ...) FIELD(SHAPE_PRESENT, S, key, m, bool, __VA_ARGS__)
#define FIELD_I64(S, key, m, low, high, ...)                                                       \
	FIELD(SHAPE_I64, S, key, m, int64_t, .min = (low), .max = (high), __VA_ARGS__)
#define FIELD_U64(S, key, m, high, ...)                                                            \
	FIELD(SHAPE_U64, S, key, m, uint64_t, .max = (high), __VA_ARGS__)
#define FIELD_U32(S, key, m, high, ...)                                                            \
	FIELD(SHAPE_U32, S, key, m, uint32_t, .max = (high), __VA_ARGS__)
#define FIELD_MAYBE_I64(S, key, m, low, high, ...)                                                 \
	FIELD(SHAPE_MAYBE_I64, S, key, m, struct oci_int, .min = (low), .max = (high), __VA_ARGS__)
#define FIELD_MAYBE_U64(S, key, m, high, ...)                                                      \
	FIELD(SHAPE_MAYBE_U64, S, key, m, struct oci_uint, .max = (high), __VA_ARGS__)
#define FIELD_WORD(S, key, m, list, ...)                                                           \
	FIELD(SHAPE_WORD, S, key, m, int, .words = (list), __VA_ARGS__)
#define FIELD_FLAGS(S, key, m, list, ...)                                                          \
	FIELD(SHAPE_FLAGS, S, key, m, uint64_t, .words = (list), __VA_ARGS__)
#define FIELD_OBJECT(S, key, m, T, its, ...)                                                       \
	FIELD(SHAPE_OBJECT, S, key, m, T *, .shape = &(its), __VA_ARGS__)
#define FIELD_INSIDE(S, key, m, T, its, ...)                                                       \
	FIELD(SHAPE_INSIDE, S, key, m, T, .shape = &(its), __VA_ARGS__)
#define FIELD_OBJECTS(S, key, m, T, its, ...)                                                      \
	FIELD(SHAPE_OBJECTS, S, key, m.items, T *, .shape = &(its), __VA_ARGS__)
#define FIELD_NAMED(S, key, m, T, its, ...)                                                        \
	FIELD(SHAPE_NAMED, S, key, m.items, T *, .shape = &(its), __VA_ARGS__)
#define FIELD_END                                                                                  \
	{                                                                                          \
		.key = NULL                                                                        \
	}

/*
 * Parses JSON text into OBJECT, a zeroed struct of SHAPE, whose store is STORE. On failure the store
 * is empty and OBJECT holds nothing.
 */
int shape_parse(const char *json, size_t length, const struct shape *shape, void *object,
                struct oci_store *store, struct err *e);

#endif
