/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON by json-c, with the strictness that its "strict" mode lacks checked in this one place:
 * trailing bytes, NaN and Infinity, NUL in strings, duplicate keys, invalid UTF-8, depth over 64
 * are errors that name the key or the offset. Getters name the key in their error.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strings.h"

#define scoped_json __attribute__((cleanup(json_release))) struct json_object *
void json_release(struct json_object **object);

int json_parse(const char *text, size_t length, struct json_object **object, struct err *e);

/* Reads and parses a file of at most LIMIT bytes. */
int json_parse_file(int dirfd, const char *path, size_t limit, struct json_object **object,
                    struct err *e);

/* Each fails with EINVAL when the key is there with another type; REQUIRED: ENOENT when absent.
 * An absent optional key leaves the output as it was. */
int json_get_string(struct json_object *object, const char *key, bool required, const char **value,
                    struct err *e);
int json_get_u64(struct json_object *object, const char *key, bool required, uint64_t *value,
                 struct err *e);
int json_get_bool(struct json_object *object, const char *key, bool required, bool *value,
                  struct err *e);
int json_get_array(struct json_object *object, const char *key, bool required,
                   struct json_object **value, struct err *e);
int json_get_object(struct json_object *object, const char *key, bool required,
                    struct json_object **value, struct err *e);

/* EINVAL that names the first key of OBJECT that is not in KEYS (NULL-terminated). */
int json_only_keys(struct json_object *object, const char *const keys[], struct err *e);

/* Adds a value and aborts the process on memory exhaustion, as the rest of building JSON does. */
void json_add_string(struct json_object *object, const char *key, const char *value);
void json_add_u64(struct json_object *object, const char *key, uint64_t value);
void json_add_bool(struct json_object *object, const char *key, bool value);
struct json_object *json_add_object(struct json_object *object, const char *key);
struct json_object *json_add_array(struct json_object *object, const char *key);
void json_add_strings(struct json_object *object, const char *key, const struct string_list *list);

/* Adds bytes: {"text": "..."} where they are valid UTF-8 without NUL, else {"base64": "..."}. */
void json_add_bytes(struct json_object *object, const char *key, const void *data, size_t length);

#endif
