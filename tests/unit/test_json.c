/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.h: what RFC 8259 has, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct text {
	const char *bytes;
	size_t length;
};
#define TEXT(literal)                                                                              \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}

static void test_accepts(void **state)
{
	static const struct text texts[] = {
		TEXT("{}"),
		TEXT("[]"),
		TEXT(" \t\r\n[1] \t\r\n"),
		TEXT("12"),
		TEXT("\"x\""),
		TEXT("true"),
		TEXT("null"),
		TEXT("[-0, -1, 0.5, 1e5, 1E+5, 10e-2, 18446744073709551615, -9223372036854775808]"),
		TEXT("[\"NaN\", \"Infinity\", \"it's\", \"\\\\u0000\", \"\\ud83d\\ude00\", "
	             "\"a:b\"]"),
		TEXT("{\"a\": {\"a\": [{\"a\": 1}, {\"a\": 2}]}, \"b\": {\"a\": \"a\"}}"),
		TEXT("{\"\": 1, \"caf\xc3\xa9\": \"\\\"\", \"k\\n\": null}"),
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		scoped_json object = NULL;

		if (json_parse(texts[i].bytes, texts[i].length, &object, &e) < 0)
			fail_msg("%s: %s", texts[i].bytes, e.text);
	}
}

static void test_refuses(void **state)
{
	static const struct {
		struct text text;
		const char *says;
	} cases[] = {
		{TEXT(""), "unexpected end"},
		{TEXT(" "), "unexpected end"},
		{TEXT("[1"), "unexpected end"},
		{TEXT("{\"a\":"), "unexpected end"},
		{TEXT("[1] x"), "byte 4"},
		{TEXT("{}{}"), "byte 2"},
		{TEXT("12 13"), "byte 3"},
		{TEXT("[1]\0"), "NUL byte at byte 3"},
		{TEXT("[\"a\0b\"]"), "NUL byte at byte 3"},
		{TEXT("[\"a\\u0000b\"]"), "NUL in a string at byte 3"},
		{TEXT("{\"a\\u0000\":1}"), "NUL in a string at byte 3"},
		{TEXT("NaN"), "NaN"},
		{TEXT("[NaN]"), "byte 1"},
		{TEXT("[Infinity]"), "Infinity"},
		{TEXT("[-Infinity]"), "byte"},
		{TEXT("{\"a\":1,\"b\":2,\"a\":3}"), "'a' is there twice, again at byte 13"},
		{TEXT("{\"a\":{},\"\\u0061\":3}"), "'a' is there twice"},
		{TEXT("[{\"x\":{\"k\":1,\"k\":1}}]"), "'k' is there twice"},
		{TEXT("[\"\xff\"]"), "invalid UTF-8 at byte 2"},
		{TEXT("[\"\xc0\x80\"]"), "invalid UTF-8 at byte 2"},
		{TEXT("[\"\xed\xa0\x80\"]"), "invalid UTF-8 at byte 2"},
		{TEXT("\xef\xbb\xbf[]"), "byte 0"},
		{TEXT("['a']"), "byte 1"},
		{TEXT("{'a':1}"), "single quotes"},
		{TEXT("[\"a\tb\"]"), "control character"},
		{TEXT("[\"a\nb\"]"), "control character"},
		{TEXT("{\"a\":1,}"), "byte 7"},
		{TEXT("[1,]"), "byte 3"},
		{TEXT("[01]"), "byte"},
		{TEXT("[-01]"), "leading zero"},
		{TEXT("[1.]"), "ends in a point"},
		{TEXT("[1.e5]"), "ends in a point"},
		{TEXT("[.5]"), "byte 1"},
		{TEXT("[+1]"), "byte 1"},
		{TEXT("[0x10]"), "byte"},
		{TEXT("[18446744073709551616]"), "too large at byte 1"},
		{TEXT("[-9223372036854775809]"), "too large at byte 1"},
		{TEXT("[1e999]"), "too large at byte 1"},
		{TEXT("[TRUE]"), "byte"},
		{TEXT("/* c */[1]"), "byte 0"},
		{TEXT("[\"\\q\"]"), "byte"},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct json_object *object = NULL;

		if (json_parse(cases[i].text.bytes, cases[i].text.length, &object, &e) >= 0)
			fail_msg("'%s' was taken", cases[i].text.bytes);
		if (!strstr(e.text, cases[i].says))
			fail_msg("'%s' gave: %s", cases[i].text.bytes, e.text);
		assert_null(object);
	}
}

static int parse_depth(int depth, struct err *e)
{
	scoped_json object = NULL;
	char text[400];

	memset(text, '[', (size_t)depth);
	memset(text + depth, ']', (size_t)depth);
	return json_parse(text, 2 * (size_t)depth, &object, e);
}

static void test_depth(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(parse_depth(64, &e), 0);
	assert_int_equal(parse_depth(65, &e), -EINVAL);
	assert_int_equal(parse_depth(200, &e), -EINVAL);
}

/* No prefix and no single changed byte of a document may do harm; ASan and UBSan watch. */
static void test_every_damage_is_survived(void **state)
{
	static const char document[] =
		"{\"a\\u0041\": [1, -2.5e3, \"x\\\"y\", {\"b\": null}], \"c\": true}";
	char damaged[sizeof document];
	int refused = 0;
	struct err e;

	(void)state;
	for (size_t cut = 0; cut < sizeof document - 1; cut++) {
		struct json_object *object = NULL;

		assert_true(json_parse(document, cut, &object, &e) < 0);
	}
	for (size_t at = 0; at < sizeof document - 1; at++) {
		for (int byte = 0; byte < 256; byte++) {
			scoped_json object = NULL;

			memcpy(damaged, document, sizeof document);
			damaged[at] = (char)byte;
			refused += json_parse(damaged, sizeof document - 1, &object, &e) < 0;
		}
	}
	assert_true(refused > 0);
}

static void test_file(void **state)
{
	char path[] = "/tmp/test_json.XXXXXX";
	int fd = mkstemp(path);
	struct json_object *object = NULL;
	struct err e;

	(void)state;
	assert_int_equal(write(fd, "{\"a\":NaN}", 9), 9);
	assert_int_equal(json_parse_file(AT_FDCWD, path, 100, &object, &e), -EINVAL);
	assert_memory_equal(e.text, path, strlen(path));
	assert_int_equal(json_parse_file(AT_FDCWD, path, 8, &object, &e), -EFBIG);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "{\"a\":1}\n", 8, 0), 8);
	assert_int_equal(json_parse_file(AT_FDCWD, path, 100, &object, &e), 0);
	json_release(&object);
	assert_null(object);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(json_parse_file(AT_FDCWD, path, 100, &object, &e), -ENOENT);
}

static void test_getters(void **state)
{
	static const char text[] = "{\"s\":\"x\",\"n\":18446744073709551615,\"m\":-1,\"b\":true,"
				   "\"a\":[1],\"o\":{},\"z\":null,\"f\":1.5}";
	struct json_object *array = NULL, *child = NULL, *null = NULL;
	const char *string = "old";
	uint64_t number = 5;
	scoped_json o = NULL;
	bool flag = false;
	struct err e;

	(void)state;
	assert_int_equal(json_parse(text, sizeof text - 1, &o, &e), 0);
	assert_int_equal(json_get_string(o, "absent", false, &string, &e), 0);
	assert_string_equal(string, "old");
	assert_int_equal(json_get_string(o, "absent", true, &string, &e), -ENOENT);
	assert_non_null(strstr(e.text, "'absent'"));
	assert_int_equal(json_get_string(o, "s", true, &string, &e), 0);
	assert_string_equal(string, "x");
	assert_int_equal(json_get_string(o, "n", false, &string, &e), -EINVAL);
	assert_non_null(strstr(e.text, "'n'"));
	assert_int_equal(json_get_string(o, "z", false, &string, &e), -EINVAL);
	assert_int_equal(json_get_u64(o, "m", false, &number, &e), -EINVAL);
	assert_non_null(strstr(e.text, "-1"));
	assert_int_equal(json_get_u64(o, "f", false, &number, &e), -EINVAL);
	assert_int_equal(number, 5);
	assert_int_equal(json_get_u64(o, "n", true, &number, &e), 0);
	assert_true(number == UINT64_MAX);
	assert_int_equal(json_get_bool(o, "n", true, &flag, &e), -EINVAL);
	assert_int_equal(json_get_bool(o, "b", true, &flag, &e), 0);
	assert_true(flag);
	assert_int_equal(json_get_array(o, "o", true, &array, &e), -EINVAL);
	assert_int_equal(json_get_array(o, "a", true, &array, &e), 0);
	assert_int_equal(json_object_array_length(array), 1);
	assert_int_equal(json_get_object(o, "a", true, &child, &e), -EINVAL);
	assert_int_equal(json_get_object(o, "o", true, &child, &e), 0);
	assert_int_equal(json_get_string(array, "s", false, &string, &e), -EINVAL);
	assert_int_equal(json_get_string(null, "s", false, &string, &e), -EINVAL);
}

static void test_only_keys(void **state)
{
	static const char *const all[] = {"a", "b", "c", NULL}, *const some[] = {"a", NULL};
	scoped_json object = NULL;
	struct err e;

	(void)state;
	assert_int_equal(json_parse("{\"a\":1,\"b\":2}", 13, &object, &e), 0);
	assert_int_equal(json_only_keys(object, all, &e), 0);
	assert_int_equal(json_only_keys(object, some, &e), -EINVAL);
	assert_non_null(strstr(e.text, "'b'"));
	assert_int_equal(json_only_keys(NULL, some, &e), -EINVAL);
}

static void test_building(void **state)
{
	scoped_json object = json_object_new_object();
	scoped_json read_back = NULL;
	const char *text;
	struct err e;

	(void)state;
	json_add_string(object, "s", "caf\xc3\xa9\n");
	json_add_string(object, "bad", "x\xff");
	json_add_u64(object, "n", UINT64_MAX);
	json_add_bool(object, "b", false);
	json_add_u64(json_add_object(object, "o"), "k", 1);
	json_object_array_add(json_add_array(object, "a"), json_object_new_int(1));
	text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	assert_string_equal(text,
	                    "{\"s\":\"caf\xc3\xa9\\n\",\"bad\":\"x\\\\xff\","
	                    "\"n\":18446744073709551615,\"b\":false,\"o\":{\"k\":1},\"a\":[1]}");
	assert_int_equal(json_parse(text, strlen(text), &read_back, &e), 0);
	assert_true(json_object_equal(object, read_back));
}

static void test_bytes(void **state)
{
	scoped_json object = json_object_new_object();

	(void)state;
	json_add_bytes(object, "empty", NULL, 0);
	json_add_bytes(object, "text", "caf\xc3\xa9", 5);
	json_add_bytes(object, "nul", "a\0b\xff", 4);
	json_add_bytes(object, "cut", "\xe2\x82", 2);
	assert_string_equal(
		json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
	                                                       JSON_C_TO_STRING_NOSLASHESCAPE),
		"{\"empty\":{\"text\":\"\"},\"text\":{\"text\":\"caf\xc3\xa9\"},"
		"\"nul\":{\"base64\":\"YQBi/w==\"},\"cut\":{\"base64\":\"4oI=\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts),   cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_depth),     cmocka_unit_test(test_every_damage_is_survived),
		cmocka_unit_test(test_file),      cmocka_unit_test(test_getters),
		cmocka_unit_test(test_only_keys), cmocka_unit_test(test_building),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
