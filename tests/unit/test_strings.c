/* SPDX-License-Identifier: Apache-2.0 */
/* base/strings.h: the whole text or nothing, and nothing that drives a terminal. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/strings.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef int parser(const char *text, uint64_t *value, struct err *e);

struct parse_case {
	const char *text;
	int result;
	uint64_t value;
};

static void check_cases(parser *parse, const struct parse_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 4711;
		struct err e = {0};
		int result = parse(cases[i].text, &value, &e);

		if (result != cases[i].result)
			fail_msg("'%s' gave %d, not %d", cases[i].text, result, cases[i].result);
		if (value != (result < 0 ? 4711 : cases[i].value))
			fail_msg("'%s' gave %" PRIu64, cases[i].text, value);
		if (result < 0 && (e.code != -result || !strstr(e.text, cases[i].text)))
			fail_msg("'%s' is not named by: %s", cases[i].text, e.text);
	}
}

static int parse_u64_to_100(const char *text, uint64_t *value, struct err *e)
{
	return parse_u64(text, 100, value, e);
}

static int parse_u64_any(const char *text, uint64_t *value, struct err *e)
{
	return parse_u64(text, UINT64_MAX, value, e);
}

static void test_u64(void **state)
{
	static const struct parse_case bounded[] = {
		{"0", 0, 0},        {"007", 0, 7},      {"100", 0, 100},     {"101", -ERANGE, 0},
		{"", -EINVAL, 0},   {"-1", -EINVAL, 0}, {"+1", -EINVAL, 0},  {" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0}, {"1x", -EINVAL, 0}, {"0x1", -EINVAL, 0}, {"1.0", -EINVAL, 0},
	};
	static const struct parse_case any[] = {
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999", -ERANGE, 0},
	};

	(void)state;
	check_cases(parse_u64_to_100, bounded, COUNT(bounded));
	check_cases(parse_u64_any, any, COUNT(any));
}

static void test_bytes(void **state)
{
	static const struct parse_case cases[] = {
		{"0", 0, 0},
		{"100", 0, 100},
		{"100b", 0, 100},
		{"64k", 0, 65536},
		{"64K", 0, 65536},
		{"64kb", 0, 65536},
		{"64KiB", 0, 65536},
		{"512m", 0, 512ULL << 20},
		{"1g", 0, 1ULL << 30},
		{"1.5g", 0, 3ULL << 29},
		{"2t", 0, 2ULL << 40},
		{"0.3k", 0, 307},
		{"16777215t", 0, 16777215ULL << 40},
		{"16777216t", -ERANGE, 0},
		{"99999999999999999999", -ERANGE, 0},
		{"1.5", -EINVAL, 0},
		{"1.g", -EINVAL, 0},
		{".5g", -EINVAL, 0},
		{"1.1234567g", -EINVAL, 0},
		{"1bb", -EINVAL, 0},
		{"1ib", -EINVAL, 0},
		{"1p", -EINVAL, 0},
		{"1 g", -EINVAL, 0},
		{"-1g", -EINVAL, 0},
		{"g", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"1g ", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
	};

	(void)state;
	check_cases(parse_bytes, cases, COUNT(cases));
}

static void test_millis(void **state)
{
	static const struct parse_case cases[] = {
		{"1", 0, 1000},         {"1.5", 0, 1500},   {"0.001", 0, 1},
		{"64", 0, 64000},       {"0", -EINVAL, 0},  {"0.0", -EINVAL, 0},
		{"1.0001", -EINVAL, 0}, {"-1", -EINVAL, 0}, {"1,5", -EINVAL, 0},
		{"", -EINVAL, 0},       {"1.", -EINVAL, 0}, {"18446744073709551615", -ERANGE, 0},
	};

	(void)state;
	check_cases(parse_millis, cases, COUNT(cases));
}

static void test_duration(void **state)
{
	static const struct parse_case cases[] = {
		{"60", 0, 60000},
		{"1.5", 0, 1500},
		{"90s", 0, 90000},
		{"500ms", 0, 500},
		{"2m", 0, 120000},
		{"1h", 0, 3600000},
		{"0", 0, 0},
		{"1.5ms", -EINVAL, 0},
		{"1d", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"1m30", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"99999999999999999h", -ERANGE, 0},
	};

	(void)state;
	check_cases(parse_duration_ms, cases, COUNT(cases));
}

static void test_format_bytes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{17, "17 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{4301, "4.2 KiB"},
		{1048575, "1.0 MiB"},
		{512ULL << 20, "512 MiB"},
		{1ULL << 30, "1.0 GiB"},
		{10ULL << 30, "10 GiB"},
		{10239, "10 KiB"},
		{UINT64_MAX, "16 EiB"},
	};
	char buffer[32];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(format_bytes(cases[i].bytes, buffer, sizeof buffer),
		                    cases[i].text);
}

static void test_format_duration(void **state)
{
	static const struct {
		uint64_t us;
		const char *text;
	} cases[] = {
		{0, "0 us"},
		{412, "412 us"},
		{999, "999 us"},
		{1000, "1.0 ms"},
		{38100, "38.1 ms"},
		{999949, "999.9 ms"},
		{999950, "1.00 s"},
		{1240000, "1.24 s"},
		{59994999, "59.99 s"},
		{59995000, "1 min 00 s"},
		{123000000, "2 min 03 s"},
		{7384000000, "123 min 04 s"},
	};
	char buffer[32];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(format_duration_us(cases[i].us, buffer, sizeof buffer),
		                    cases[i].text);
}

static void test_utf8_prefix(void **state)
{
	static const struct {
		const char *data;
		size_t valid;
	} cases[] = {
		{"", 0},
		{"abc", 3},
		{"\xc3\xa9", 2},
		{"\xe2\x82\xac", 3},
		{"\xf0\x9f\x98\x80", 4},
		{"\xf4\x8f\xbf\xbf", 4},
		{"a\xff", 1},
		{"a\xc3", 1},
		{"a\xe2\x82", 1},
		{"a\xf0\x9f\x98", 1},
		{"\xc0\x80", 0},         /* overlong */
		{"\xe0\x80\x80", 0},     /* overlong */
		{"\xf0\x80\x80\x80", 0}, /* overlong */
		{"\xed\xa0\x80", 0},     /* surrogate */
		{"\xf4\x90\x80\x80", 0}, /* beyond U+10FFFF */
		{"\x80", 0},
		{"\xe2\x28\xa1", 0},
		{"\xe2\x82\x28", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(utf8_valid_prefix(cases[i].data, strlen(cases[i].data)),
		                 cases[i].valid);
	assert_int_equal(utf8_valid_prefix("a\0b", 3), 3);
}

static void test_printable(void **state)
{
	static const struct {
		const char *text, *printable;
	} cases[] = {
		{"plain caf\xc3\xa9", "plain caf\xc3\xa9"},
		{"\x1b[2J", "\\x1b[2J"},
		{"a\nb\tc\r", "a\\x0ab\\x09c\\x0d"},
		{"\x7f", "\\x7f"},
		{"\xff\xc3", "\\xff\\xc3"},
		{"\xc2\x9b"
	         "31m",
	         "\\xc2\\x9b"
	         "31m"},
		{"\xc2\xa0", "\xc2\xa0"},
		{"\xe2\x80\xae", "\\xe2\\x80\\xae"},
		{"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
	};
	char buffer[64];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(text_printable(cases[i].text, buffer, sizeof buffer),
		                    cases[i].printable);
}

static void test_printable_is_cut_between_characters(void **state)
{
	char buffer[6];

	(void)state;
	assert_string_equal(text_printable("abcdefgh", buffer, sizeof buffer), "abcde");
	assert_string_equal(text_printable("abcd\xc3\xa9", buffer, sizeof buffer), "abcd");
	assert_string_equal(text_printable("ab\x01", buffer, sizeof buffer), "ab");
	assert_string_equal(text_printable("a\x01", buffer, sizeof buffer), "a\\x01");
	assert_string_equal(text_printable("abc", buffer, 1), "");
}

static void test_text_format(void **state)
{
	char buffer[6];
	struct err e;

	(void)state;
	assert_int_equal(text_format(buffer, sizeof buffer, &e, "%s", "12345"), 5);
	assert_string_equal(buffer, "12345");
	assert_int_equal(text_format(buffer, sizeof buffer, &e, "%s", "123456"), -ENAMETOOLONG);
	assert_int_equal(e.code, ENAMETOOLONG);
}

static void test_list(void **state)
{
	struct string_list list = {0};
	struct err e;

	(void)state;
	assert_null(string_list_value(&list, "A"));
	assert_int_equal(string_list_set(&list, "A=1", &e), 0);
	assert_int_equal(string_list_set(&list, "AB=2", &e), 0);
	assert_int_equal(string_list_set(&list, "A=3=4", &e), 0);
	assert_int_equal(string_list_set(&list, "EMPTY=", &e), 0);
	assert_int_equal(list.count, 3);
	assert_null(list.items[3]);
	assert_string_equal(string_list_value(&list, "A"), "3=4");
	assert_string_equal(string_list_value(&list, "AB"), "2");
	assert_string_equal(string_list_value(&list, "EMPTY"), "");
	assert_null(string_list_value(&list, "B"));
	assert_int_equal(string_list_set(&list, "=1", &e), -EINVAL);
	assert_int_equal(string_list_set(&list, "NOTHING", &e), -EINVAL);
	assert_int_equal(string_list_add(&list, "anything", &e), 0);
	assert_string_equal(list.items[3], "anything");
	assert_null(list.items[4]);
	string_list_release(&list);
	assert_null(list.items);
	assert_int_equal(list.count, 0);
	string_list_release(&list);
}

static void bytes_that_grow_keep_what_they_hold(void **state)
{
	char *data = NULL;
	size_t room = 0, copied = 0;

	(void)state;
	for (size_t used = 0; used < 100000; used++) {
		size_t before = room;

		assert_true(bytes_grow(&data, &room, used + 1, 16));
		assert_true(room > used);
		copied += room != before;
		data[used] = (char)(used % 251);
	}
	assert_true(copied < 20);
	for (size_t i = 0; i < 100000; i++)
		assert_int_equal((unsigned char)data[i], i % 251);
	free(data);
}

/* As gmtime(3), which has the same calendar. */
static void test_text_time(void **state)
{
	static const uint64_t fixed[] = {0,          951782399,  951782400,
	                                 1709164800, 4107542399, 253402300799};
	char buffer[TEXT_TIME_SIZE], want[TEXT_TIME_SIZE];

	(void)state;
	for (uint64_t i = 0; i < 40000; i++) {
		time_t seconds = (time_t)(i < 6 ? fixed[i] : i * 86400 * 5 - i);
		struct tm tm;

		assert_non_null(gmtime_r(&seconds, &tm));
		strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S", &tm);
		text_time(buffer, (uint64_t)seconds);
		assert_string_equal(buffer, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_millis),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_format_bytes),
		cmocka_unit_test(test_format_duration),
		cmocka_unit_test(test_utf8_prefix),
		cmocka_unit_test(test_printable),
		cmocka_unit_test(test_printable_is_cut_between_characters),
		cmocka_unit_test(test_text_format),
		cmocka_unit_test(test_text_time),
		cmocka_unit_test(test_list),
		cmocka_unit_test(bytes_that_grow_keep_what_they_hold),
	};

	return cmocka_run_group_tests_name("strings", tests, NULL, NULL);
}
