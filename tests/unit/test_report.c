/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/report.h: every ending has its status; every byte of a stream comes back. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nettle/base64.h>

#include "fleet/report.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < REPORT_REASONS; i++) {
		assert_non_null(report_reason_name((enum report_reason)i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(report_reason_name((enum report_reason)i),
			                        report_reason_name((enum report_reason)j));
	}
	for (int i = 0; i < REPORT_PHASES; i++)
		assert_non_null(report_phase_name((enum report_phase)i));
	assert_string_equal(report_reason_name(REPORT_DISK_FULL), "disk_full");
	assert_string_equal(report_phase_name(REPORT_UNPACK), "unpack");
}

static void test_exit_status(void **state)
{
	static const struct {
		struct report report;
		int status;
	} cases[] = {
		{{.reason = REPORT_EXITED, .exit_code = 0}, 0},
		{{.reason = REPORT_EXITED, .exit_code = 137}, 137},
		{{.reason = REPORT_SIGNALED, .exit_code = -1, .signo = SIGSEGV}, 139},
		{{.reason = REPORT_TIMEOUT, .exit_code = -1, .signo = SIGKILL}, 124},
		{{.reason = REPORT_OOM, .exit_code = -1, .signo = SIGKILL}, 137},
		{{.reason = REPORT_OOM, .exit_code = 1}, 137},
		{{.reason = REPORT_CANCELED, .exit_code = -1, .cancel_signo = SIGTERM}, 143},
		{{.reason = REPORT_CANCELED, .exit_code = -1}, 130},
		{{.reason = REPORT_DISK_FULL, .exit_code = 1}, 1},
		{{.reason = REPORT_DISK_FULL, .exit_code = -1, .signo = SIGBUS}, 135},
		{{.reason = REPORT_DISK_FULL, .exit_code = -1, .start_exit_code = 125}, 125},
		{{.reason = REPORT_START_FAILED, .exit_code = -1, .start_exit_code = 127}, 127},
		{{.reason = REPORT_START_FAILED, .exit_code = -1, .start_exit_code = 126}, 126},
		{{.reason = REPORT_START_FAILED, .exit_code = -1}, 125},
		{{.reason = REPORT_CHECKOUT_FAILED, .exit_code = -1}, 125},
		{{.reason = REPORT_WORKER_LOST, .exit_code = -1}, 125},
		{{.reason = REPORT_INTERNAL, .exit_code = -1}, 125},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(report_exit_status(&cases[i].report), cases[i].status);
}

static struct json_object *at(struct json_object *object, const char *pointer)
{
	struct json_object *found = NULL;

	if (json_pointer_get(object, pointer, &found) != 0)
		fail_msg("no %s in %s", pointer, json_object_to_json_string(object));
	return found;
}

static void assert_json(struct json_object *object, const char *pointer, const char *expected)
{
	const char *text = json_object_to_json_string_ext(at(object, pointer),
	                                                  JSON_C_TO_STRING_PLAIN);

	if (strcmp(text, expected) != 0)
		fail_msg("%s is %s, not %s", pointer, text, expected);
}

/* To text and, strictly, back. */
static struct json_object *round_trip(const struct report *report)
{
	scoped_json written = report_to_json(report);
	struct json_object *read_back = NULL;
	const char *text = json_object_to_json_string(written);
	struct err e;

	if (json_parse(text, strlen(text), &read_back, &e) < 0)
		fail_msg("%s", e.text);
	return read_back;
}

static void test_unknown_is_null(void **state)
{
	static const char *const nulls[] = {
		"/exit_code",
		"/signal",
		"/error",
		"/evidence/cancel_signal",
		"/usage/timeout_ms",
		"/usage/pids_limit",
		"/usage/cpu_limit",
		"/usage/memory_peak_bytes",
		"/usage/disk_limit_bytes",
		"/host/kept",
		"/host/missing",
	};
	struct report report = {.id = "0123456789ab", .reason = REPORT_TIMEOUT, .exit_code = -1};
	scoped_json object = round_trip(&report);

	(void)state;
	for (size_t i = 0; i < COUNT(nulls); i++)
		assert_json(object, nulls[i], "null");
	assert_json(object, "/id", "\"0123456789ab\"");
	assert_json(object, "/reason", "\"timeout\"");
	assert_json(object, "/exit_status", "124");
	assert_json(object, "/labels", "{}");
	assert_json(object, "/score", "[]");
	assert_json(object, "/stdout",
	            "{\"data\":{\"text\":\"\"},\"total_bytes\":0,"
	            "\"dropped_bytes\":0,\"truncated\":false}");
}

static void fill(struct report *report)
{
	*report = (struct report){
		.reason = REPORT_SIGNALED,
		.exit_code = -1,
		.signo = SIGTERM,
		.error = {.code = 5, .text = "why \"so\""},
		.signals_sent = {{SIGTERM, 2000}, {SIGKILL, 7001}},
		.signals_sent_count = 2,
		.oom_kills = 1,
		.pids_refused = 2,
		.wall_us = 1234567,
		.cpu_user_us = 5,
		.cpu_limit_millis = 1500,
		.memory_peak_bytes = 1ULL << 33,
		.timeout_ms = 120000,
		.denied = {{"mount", 3}},
		.denied_count = 1,
		.denied_total = 4,
		.phase_us = {[REPORT_RUN] = 12000},
		.rows = {{"user ids", 1, 2}},
		.rows_count = 1,
		.cgroup_mode = "v2",
		.user_namespace = true,
		.host_uid_base = 4294901760,
		.landlock_abi = 7,
		.disk_backing = "image",
		.labels = json_object_new_object(),
	};
	json_add_string(report->labels, "org", "acme");
}

static void test_groups(void **state)
{
	struct report report;
	scoped_json object = NULL;

	(void)state;
	fill(&report);
	object = round_trip(&report);
	assert_json(object, "/signal", "\"SIGTERM\"");
	assert_json(object, "/error", "\"why \\\"so\\\"\"");
	assert_json(object, "/evidence/signals_sent",
	            "[{\"signal\":\"SIGTERM\",\"at_ms\":2000},"
	            "{\"signal\":\"SIGKILL\",\"at_ms\":7001}]");
	assert_json(object, "/evidence/denied_calls", "[{\"name\":\"mount\",\"count\":3}]");
	assert_json(object, "/evidence/denied_total", "4");
	assert_json(object, "/evidence/oom_kills", "1");
	assert_json(object, "/evidence/pids_refused", "2");
	assert_json(object, "/usage/wall_ms", "1234.567");
	assert_json(object, "/usage/cpu_user_ms", "0.005");
	assert_json(object, "/usage/cpu_limit", "1.500");
	assert_json(object, "/usage/memory_peak_bytes", "8589934592");
	assert_json(object, "/usage/timeout_ms", "120000");
	assert_json(object, "/phases_ms/run", "12.000");
	assert_json(object, "/phases_ms/queue", "0.000");
	assert_json(object, "/host/cgroup", "\"v2\"");
	assert_json(object, "/host/user_namespace", "true");
	assert_json(object, "/host/host_uid_base", "4294901760");
	assert_json(object, "/host/landlock_abi", "7");
	assert_json(object, "/labels/org", "\"acme\"");
	assert_json(object, "/score/0", "{\"name\":\"user ids\",\"outside_us\":1,\"inside_us\":2}");
	report_release(&report);
	assert_null(report.labels);
}

/* ---- streams ---- */

struct bytes {
	unsigned char data[256];
	size_t length;
};

static void append_piece(struct bytes *bytes, struct json_object *piece)
{
	struct json_object *value;

	if (json_object_object_get_ex(piece, "text", &value)) {
		memcpy(bytes->data + bytes->length, json_object_get_string(value),
		       (size_t)json_object_get_string_len(value));
		bytes->length += (size_t)json_object_get_string_len(value);
	} else if (json_object_object_get_ex(piece, "base64", &value)) {
		const char *text = json_object_get_string(value);
		size_t length = strlen(text);
		struct base64_decode_ctx context;
		size_t decoded = BASE64_DECODE_LENGTH(length);

		base64_decode_init(&context);
		assert_true(base64_decode_update(&context, &decoded, bytes->data + bytes->length,
		                                 length, text));
		assert_true(base64_decode_final(&context));
		bytes->length += decoded;
	}
}

/* What a reader makes of a "head" or "tail". */
static struct bytes read_half(struct json_object *stream, const char *key)
{
	struct json_object *half, *split = NULL;
	struct bytes bytes = {.length = 0};

	assert_true(json_object_object_get_ex(stream, key, &half));
	json_object_object_get_ex(half, "split", &split);
	if (split && !strcmp(key, "tail"))
		append_piece(&bytes, split);
	append_piece(&bytes, half);
	if (split && !strcmp(key, "head"))
		append_piece(&bytes, split);
	return bytes;
}

#define STREAM(head_, tail_, dropped)                                                              \
	{                                                                                          \
		.head = (unsigned char *)(uintptr_t)(head_), .head_bytes = sizeof(head_) - 1,      \
		.tail = (unsigned char *)(uintptr_t)(tail_), .tail_bytes = sizeof(tail_) - 1,      \
		.total_bytes = sizeof(head_) - 1 + sizeof(tail_) - 1 + (dropped),                  \
		.dropped_bytes = (dropped)                                                         \
	}

static void test_halves_come_back_exactly(void **state)
{
	static const struct report_stream streams[] = {
		STREAM("head", "tail", 10),
		STREAM("", "", 10),
		STREAM("caf\xc3", "\xa9 noir", 1),
		STREAM("a\xf0\x9f\x98", "\x9f\x98\x80z", 1),
		STREAM("a\xff\xff\xff\xff", "\x80\x80\x80\x80z", 1),
		STREAM("nul\0byte", "nul\0\xff", 1),
		STREAM("nul\0byte\xe2", "\x82nul\0", 1),
		STREAM("\xe2", "\x82", 1),
		STREAM("mid\xffword", "mid\xffword", 1),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(streams); i++) {
		struct report report = {.out = streams[i]};
		scoped_json object = round_trip(&report);
		struct json_object *stream = at(object, "/stdout");
		struct bytes head = read_half(stream, "head"), tail = read_half(stream, "tail");

		assert_int_equal(head.length, streams[i].head_bytes);
		assert_memory_equal(head.data, streams[i].head, head.length);
		assert_int_equal(tail.length, streams[i].tail_bytes);
		assert_memory_equal(tail.data, streams[i].tail, tail.length);
		assert_json(stream, "/truncated", "true");
		assert_int_equal(json_object_get_int(at(stream, "/dropped_bytes")),
		                 streams[i].dropped_bytes);
		assert_false(json_object_object_get_ex(stream, "data", NULL));
	}
}

static void test_a_cut_character_leaves_the_rest_text(void **state)
{
	struct report report = {.err = STREAM("caf\xc3", "\xa9 noir", 1)};
	scoped_json object = round_trip(&report);

	(void)state;
	assert_json(object, "/stderr/head", "{\"text\":\"caf\",\"split\":{\"base64\":\"ww==\"}}");
	assert_json(object, "/stderr/tail", "{\"text\":\" noir\",\"split\":{\"base64\":\"qQ==\"}}");
}

static void test_a_whole_stream_is_joined(void **state)
{
	struct report text = {.out = STREAM("caf\xc3", "\xa9", 0)};
	struct report binary = {.out = STREAM("a\0b", "\377", 0)}; /* case O4 */
	scoped_json text_object = round_trip(&text);
	scoped_json binary_object = round_trip(&binary);

	(void)state;
	assert_json(text_object, "/stdout",
	            "{\"data\":{\"text\":\"caf\xc3\xa9\"},\"total_bytes\":5,"
	            "\"dropped_bytes\":0,\"truncated\":false}");
	assert_string_equal(json_object_get_string(at(binary_object, "/stdout/data/base64")),
	                    "YQBi/w==");
}

static void test_release(void **state)
{
	struct report report = {.labels = json_object_new_object()};

	(void)state;
	report.out.head = malloc(1);
	report.out.tail = malloc(1);
	report.err.head = malloc(1);
	report.err.tail = malloc(1);
	report_release(&report);
	assert_null(report.out.head);
	report_release(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_exit_status),
		cmocka_unit_test(test_unknown_is_null),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_halves_come_back_exactly),
		cmocka_unit_test(test_a_cut_character_leaves_the_rest_text),
		cmocka_unit_test(test_a_whole_stream_is_joined),
		cmocka_unit_test(test_release),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
