/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON by json-c. Owns the strictness: what json-c takes even in its strict mode and RFC 8259 does
 * not (NaN, single quotes, control characters, "-01", "1.", overlong UTF-8), what it changes
 * without a word (integers beyond 64 bits, NUL in keys) and what it drops (all but the last of
 * equal keys) is refused by a scan of text that json-c has found well-formed.
 */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"

enum { DEPTH_MAX = 64 };

void json_release(struct json_object **object)
{
	json_object_put(*object);
	*object = NULL;
}

/* ---- parsing ---- */

struct scan {
	struct json_tokener *tokener; /* decodes keys */
	const char *text;
	size_t length, at;
	int depth;
	struct json_object *keys[DEPTH_MAX + 1]; /* seen in each open object; NULL for arrays */
};

static void scan_release(struct scan *scan)
{
	for (int i = 0; i <= DEPTH_MAX; i++)
		json_object_put(scan->keys[i]);
	if (scan->tokener)
		json_tokener_free(scan->tokener);
}

static int scan_error(size_t at, const char *what, struct err *e)
{
	return err_set(e, EINVAL, "JSON: %s at byte %zu", what, at);
}

static struct json_tokener *tokener_new(void)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);

	if (tokener)
		json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	return tokener;
}

static int scan_key(struct scan *scan, size_t start, struct err *e)
{
	struct json_object *keys = scan->keys[scan->depth];
	scoped_json key = NULL;
	char shown[100];

	key = json_tokener_parse_ex(scan->tokener, scan->text + start, (int)(scan->at - start));
	if (!key || !keys)
		return scan_error(start, "a key that cannot be read", e);
	if (json_object_object_get_ex(keys, json_object_get_string(key), NULL))
		return err_set(e, EINVAL, "JSON: the key '%s' is there twice, again at byte %zu",
		               text_printable(json_object_get_string(key), shown, sizeof shown),
		               start);
	if (json_object_object_add(keys, json_object_get_string(key), NULL) < 0)
		return err_set(e, ENOMEM, "JSON: no memory for a key");
	return 0;
}

static int scan_string(struct scan *scan, struct err *e)
{
	size_t start = scan->at++, next;

	for (; scan->text[scan->at] != '"'; scan->at++) {
		if ((unsigned char)scan->text[scan->at] < 0x20)
			return scan_error(scan->at, "a control character in a string", e);
		if (scan->text[scan->at] != '\\')
			continue;
		scan->at++;
		if (!strncmp(scan->text + scan->at, "u0000", 5))
			return scan_error(scan->at - 1, "NUL in a string", e);
	}
	scan->at++;
	next = scan->at + strspn(scan->text + scan->at, " \t\r\n");
	return scan->text[next] == ':' ? scan_key(scan, start, e) : 0;
}

/* Would json-c put another value in the place of this number? */
static bool out_of_range(const char *number, size_t length)
{
	errno = 0;
	if (strcspn(number, ".eE") < length)
		return isinf(strtod(number, NULL));
	if (*number == '-')
		(void)strtoll(number, NULL, 10);
	else
		(void)strtoull(number, NULL, 10);
	return errno == ERANGE;
}

static int scan_number(struct scan *scan, struct err *e)
{
	const char *start = scan->text + scan->at;
	size_t length = strspn(start, "+-.0123456789eE");
	const char *digits = start + (*start == '-');
	const char *point = memchr(start, '.', length);

	if (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9')
		return scan_error(scan->at, "a number with a leading zero", e);
	if (point && !(point[1] >= '0' && point[1] <= '9'))
		return scan_error(scan->at, "a number that ends in a point", e);
	if (out_of_range(start, length))
		return err_set(e, ERANGE, "JSON: a number that is too large at byte %zu", scan->at);
	scan->at += length;
	return 0;
}

static int scan_step(struct scan *scan, struct err *e)
{
	char c = scan->text[scan->at];

	if (c == '"')
		return scan_string(scan, e);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(scan, e);
	if (c == '\'')
		return scan_error(scan->at, "a string in single quotes", e);
	if (c == 'N' || c == 'I')
		return scan_error(scan->at, "NaN or Infinity, which JSON does not have,", e);
	if (c == '{' || c == '[') {
		if (scan->depth == DEPTH_MAX)
			return scan_error(scan->at, "nesting too deep", e);
		scan->depth++;
		if (c == '{' && !(scan->keys[scan->depth] = json_object_new_object()))
			return err_set(e, ENOMEM, "JSON: no memory for its keys");
	} else if (c == '}' || c == ']') {
		json_release(&scan->keys[scan->depth--]);
	}
	scan->at++;
	return 0;
}

/* TEXT is NUL-terminated and was accepted by json-c. */
static int scan_strictly(const char *text, size_t length, struct err *e)
{
	__attribute__((cleanup(scan_release))) struct scan scan = {.text = text, .length = length};

	scan.tokener = tokener_new();
	if (!scan.tokener)
		return err_set(e, ENOMEM, "JSON: no memory for a parser");
	while (scan.at < scan.length)
		TRY(scan_step(&scan, e));
	return 0;
}

static int parse_terminated(const char *text, size_t length, struct json_object **object,
                            struct err *e)
{
	struct json_tokener *tokener = tokener_new();
	scoped_json parsed = NULL;
	enum json_tokener_error code;
	size_t at;

	if (!tokener)
		return err_set(e, ENOMEM, "JSON: no memory for a parser");
	/* with the NUL, which ends a number at the end of the text */
	parsed = json_tokener_parse_ex(tokener, text, (int)length + 1);
	code = json_tokener_get_error(tokener);
	at = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (code == json_tokener_continue)
		return scan_error(length, "unexpected end", e);
	if (code != json_tokener_success)
		return scan_error(at, json_tokener_error_desc(code), e);
	if (at + strspn(text + at, " \t\r\n") < length)
		return scan_error(at, "something behind its end", e);
	TRY(scan_strictly(text, length, e));
	*object = take_mem(&parsed);
	return 0;
}

int json_parse(const char *text, size_t length, struct json_object **object, struct err *e)
{
	scoped_mem char *terminated = NULL;
	size_t valid;

	if (length >= INT_MAX)
		return err_set(e, EFBIG, "JSON: %zu bytes are more than can be parsed", length);
	valid = utf8_valid_prefix(text, length);
	if (valid < length)
		return scan_error(valid, "invalid UTF-8", e);
	if (length && memchr(text, '\0', length))
		return scan_error(strlen(text), "a NUL byte", e);
	terminated = strndup(length ? text : "", length);
	if (!terminated)
		return err_set(e, ENOMEM, "JSON: no memory for %zu bytes", length);
	return parse_terminated(terminated, length, object, e);
}

int json_parse_file(int dirfd, const char *path, size_t limit, struct json_object **object,
                    struct err *e)
{
	scoped_mem char *text = NULL;
	size_t length;

	TRY(file_read_all(dirfd, path, limit, &text, &length, e));
	if (json_parse(text, length, object, e) < 0)
		return err_in(e, "%s", path);
	return 0;
}

/* ---- getters ---- */

/* 1 and *VALUE when KEY is there with TYPE, 0 when it is absent and may be. */
static int get(struct json_object *object, const char *key, bool required, enum json_type type,
               struct json_object **value, struct err *e)
{
	struct json_object *found;

	if (!json_object_is_type(object, json_type_object))
		return err_set(e, EINVAL, "'%s' is looked for in what is no JSON object", key);
	if (!json_object_object_get_ex(object, key, &found)) {
		if (required)
			return err_set(e, ENOENT, "the key '%s' is missing", key);
		return 0;
	}
	if (!json_object_is_type(found, type))
		return err_set(e, EINVAL, "the key '%s' must be of type %s, not %s", key,
		               json_type_to_name(type),
		               json_type_to_name(json_object_get_type(found)));
	*value = found;
	return 1;
}

int json_get_string(struct json_object *object, const char *key, bool required, const char **value,
                    struct err *e)
{
	struct json_object *found;
	int result = get(object, key, required, json_type_string, &found, e);

	TRY(result);
	if (result)
		*value = json_object_get_string(found);
	return 0;
}

int json_get_u64(struct json_object *object, const char *key, bool required, uint64_t *value,
                 struct err *e)
{
	struct json_object *found;
	int result = get(object, key, required, json_type_int, &found, e);

	TRY(result);
	if (result && json_object_get_int64(found) < 0)
		return err_set(e, EINVAL, "the key '%s' must not be negative, as %" PRId64 " is",
		               key, json_object_get_int64(found));
	if (result)
		*value = json_object_get_uint64(found);
	return 0;
}

int json_get_bool(struct json_object *object, const char *key, bool required, bool *value,
                  struct err *e)
{
	struct json_object *found;
	int result = get(object, key, required, json_type_boolean, &found, e);

	TRY(result);
	if (result)
		*value = json_object_get_boolean(found);
	return 0;
}

int json_get_array(struct json_object *object, const char *key, bool required,
                   struct json_object **value, struct err *e)
{
	int result = get(object, key, required, json_type_array, value, e);

	return result < 0 ? result : 0;
}

int json_get_object(struct json_object *object, const char *key, bool required,
                    struct json_object **value, struct err *e)
{
	int result = get(object, key, required, json_type_object, value, e);

	return result < 0 ? result : 0;
}

int json_only_keys(struct json_object *object, const char *const keys[], struct err *e)
{
	char shown[100];

	if (!json_object_is_type(object, json_type_object))
		return err_set(e, EINVAL, "a JSON object is wanted, not %s",
		               json_type_to_name(json_object_get_type(object)));
	json_object_object_foreach(object, key, value)
	{
		size_t i = 0;

		(void)value;
		while (keys[i] && strcmp(keys[i], key) != 0)
			i++;
		if (!keys[i])
			return err_set(e, EINVAL, "unknown key '%s'",
			               text_printable(key, shown, sizeof shown));
	}
	return 0;
}

/* ---- building ---- */

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	if (!value || json_object_object_add(object, key, value) < 0)
		abort();
}

static struct json_object *string_new(const char *text, size_t length)
{
	if (length > INT_MAX)
		abort();
	return json_object_new_string_len(text, (int)length);
}

void json_add_string(struct json_object *object, const char *key, const char *value)
{
	size_t length = strlen(value);
	scoped_mem char *printable = NULL;

	/* a name with stray bytes in it must not make the whole document invalid */
	if (utf8_valid_prefix(value, length) < length) {
		printable = malloc(4 * length + 1);
		if (!printable)
			abort();
		value = text_printable(value, printable, 4 * length + 1);
		length = strlen(value);
	}
	add(object, key, string_new(value, length));
}

void json_add_u64(struct json_object *object, const char *key, uint64_t value)
{
	add(object, key, json_object_new_uint64(value));
}

void json_add_bool(struct json_object *object, const char *key, bool value)
{
	add(object, key, json_object_new_boolean(value));
}

struct json_object *json_add_object(struct json_object *object, const char *key)
{
	struct json_object *child = json_object_new_object();

	add(object, key, child);
	return child;
}

struct json_object *json_add_array(struct json_object *object, const char *key)
{
	struct json_object *child = json_object_new_array();

	add(object, key, child);
	return child;
}

void json_add_strings(struct json_object *object, const char *key, const struct string_list *list)
{
	struct json_object *array = json_add_array(object, key);

	for (size_t i = 0; i < list->count; i++)
		if (json_object_array_add(array,
		                          string_new(list->items[i], strlen(list->items[i]))) < 0)
			abort();
}

void json_add_bytes(struct json_object *object, const char *key, const void *data, size_t length)
{
	struct json_object *child = json_add_object(object, key);
	scoped_mem char *encoded = NULL;
	size_t encoded_length = BASE64_ENCODE_RAW_LENGTH(length);

	if (length == 0 ||
	    (utf8_valid_prefix(data, length) == length && !memchr(data, '\0', length))) {
		add(child, "text", string_new(length ? data : "", length));
		return;
	}
	encoded = malloc(encoded_length);
	if (!encoded)
		abort();
	base64_encode_raw(encoded, length, data);
	add(child, "base64", string_new(encoded, encoded_length));
}
