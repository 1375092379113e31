/* SPDX-License-Identifier: Apache-2.0 */
/* Capture with a cap: exact counts, exact bytes, bounded memory, characters kept whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"
#include "runtime/output.h"

static struct report_stream capture(uint64_t cap, const void *data, size_t length, size_t chunk)
{
	struct output output;
	struct report_stream stream = {0};
	struct err e = {0};

	output_init(&output, cap);
	for (size_t at = 0; at < length; at += chunk) {
		size_t n = length - at < chunk ? length - at : chunk;

		assert_int_equal(output_add(&output, (const char *)data + at, n, &e), 0);
	}
	assert_int_equal(output_finish(&output, &stream, &e), 0);
	return stream;
}

static void release(struct report_stream *stream)
{
	free(stream->head);
	free(stream->tail);
}

static void nothing_written(void **state)
{
	(void)state;
	struct report_stream stream = capture(100, "", 0, 1);

	assert_int_equal(stream.total_bytes, 0);
	assert_int_equal(stream.head_bytes + stream.tail_bytes + stream.dropped_bytes, 0);
	release(&stream);
}

static void up_to_the_cap_all_is_kept(void **state)
{
	(void)state;
	for (size_t chunk = 1; chunk <= 11; chunk++) {
		struct report_stream stream = capture(10, "a\0b\377567890", 10, chunk);
		unsigned char all[10];

		assert_int_equal(stream.dropped_bytes, 0);
		assert_int_equal(stream.head_bytes + stream.tail_bytes, 10);
		memcpy(all, stream.head, stream.head_bytes);
		memcpy(all + stream.head_bytes, stream.tail, stream.tail_bytes);
		assert_memory_equal(all, "a\0b\377567890", 10);
		release(&stream);
	}
}

static void past_the_cap_head_and_tail_are_kept(void **state)
{
	(void)state;
	char text[1000];

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)('a' + i % 26);
	for (size_t chunk = 1; chunk < sizeof text; chunk += 7) {
		struct report_stream stream = capture(101, text, sizeof text, chunk);

		assert_int_equal(stream.total_bytes, sizeof text);
		assert_int_equal(stream.head_bytes, 51);
		assert_int_equal(stream.tail_bytes, 50);
		assert_int_equal(stream.dropped_bytes, sizeof text - 101);
		assert_memory_equal(stream.head, text, 51);
		assert_memory_equal(stream.tail, text + sizeof text - 50, 50);
		release(&stream);
	}
}

/* A cut through a character drops the whole of it, and counts it. */
static void characters_are_not_split(void **state)
{
	(void)state;
	const char euro[3] = {(char)0xe2, (char)0x82, (char)0xac};
	char text[3000];

	for (size_t i = 0; i < sizeof text; i += 3)
		memcpy(text + i, euro, sizeof euro);
	for (uint64_t cap = 20; cap < 40; cap++) {
		struct report_stream stream = capture(cap, text, sizeof text, 17);

		assert_int_equal(utf8_valid_prefix(stream.head, stream.head_bytes),
		                 stream.head_bytes);
		assert_int_equal(utf8_valid_prefix(stream.tail, stream.tail_bytes),
		                 stream.tail_bytes);
		assert_int_equal(stream.head_bytes + stream.tail_bytes + stream.dropped_bytes,
		                 sizeof text);
		assert_true(stream.head_bytes + stream.tail_bytes + 6 > cap);
		release(&stream);
	}
}

static void memory_follows_the_cap_not_the_flood(void **state)
{
	(void)state;
	struct output output;
	struct report_stream stream = {0};
	struct err e = {0};
	static char chunk[65536];

	output_init(&output, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(output_add(&output, chunk, sizeof chunk, &e), 0);
	assert_true(output.head_room <= 500);
	assert_int_equal(output_finish(&output, &stream, &e), 0);
	assert_int_equal(stream.total_bytes, 65536000);
	assert_int_equal(stream.dropped_bytes, 65536000 - 1000);
	release(&stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_written),
		cmocka_unit_test(up_to_the_cap_all_is_kept),
		cmocka_unit_test(past_the_cap_head_and_tail_are_kept),
		cmocka_unit_test(characters_are_not_split),
		cmocka_unit_test(memory_follows_the_cap_not_the_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
