/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture with a cap. Invariants: the head is filled before the ring exists; the ring holds the
 * last ring_bytes bytes of the stream, oldest at ring_start; head_bytes + ring_bytes <=
 * total_bytes.
 */
#include "runtime/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

void output_init(struct output *output, uint64_t cap_bytes)
{
	*output = (struct output){
		.head_limit = (size_t)(cap_bytes - cap_bytes / 2),
		.tail_limit = (size_t)(cap_bytes / 2),
	};
}

static int grow_head(struct output *output, size_t wanted, struct err *e)
{
	size_t room = output->head_room ? output->head_room : 4096;
	unsigned char *grown;

	while (room < wanted)
		room *= 2;
	if (room > output->head_limit)
		room = output->head_limit;
	grown = realloc(output->head, room);
	if (!grown)
		return err_set(e, ENOMEM, "no memory to keep %zu bytes of output", room);
	output->head = grown;
	output->head_room = room;
	return 0;
}

static void ring_add(struct output *output, const unsigned char *data, size_t length)
{
	size_t limit = output->tail_limit;

	if (length > limit) {
		data += length - limit;
		length = limit;
	}
	size_t at = (output->ring_start + output->ring_bytes) % limit;
	size_t first = length < limit - at ? length : limit - at;
	memcpy(output->ring + at, data, first);
	memcpy(output->ring, data + first, length - first);
	output->ring_bytes += length;
	if (output->ring_bytes > limit) {
		output->ring_start = (output->ring_start + output->ring_bytes - limit) % limit;
		output->ring_bytes = limit;
	}
}

int output_add(struct output *output, const void *data, size_t length, struct err *e)
{
	const unsigned char *bytes = data;
	size_t to_head = output->head_limit - output->head_bytes;

	output->total_bytes += length;
	if (to_head > length)
		to_head = length;
	if (to_head) {
		if (output->head_bytes + to_head > output->head_room)
			TRY(grow_head(output, output->head_bytes + to_head, e));
		memcpy(output->head + output->head_bytes, bytes, to_head);
		output->head_bytes += to_head;
	}
	if (to_head == length || !output->tail_limit)
		return 0;
	if (!output->ring) {
		output->ring = malloc(output->tail_limit);
		if (!output->ring)
			return err_set(e, ENOMEM, "no memory to keep %zu bytes of output",
			               output->tail_limit);
	}
	ring_add(output, bytes + to_head, length - to_head);
	return 0;
}

/* Bytes at the end of DATA that begin a UTF-8 character without finishing it; 0 to 3. */
static size_t split_at_end(const unsigned char *data, size_t length)
{
	size_t back = length < 3 ? length : 3;

	for (size_t n = 1; n <= back; n++) {
		unsigned char c = data[length - n];

		if ((c & 0xc0) == 0x80)
			continue;
		size_t wants = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return wants > n ? n : 0;
	}
	return 0;
}

/* Bytes at the start of DATA that only continue a character; 0 to 3. */
static size_t split_at_start(const unsigned char *data, size_t length)
{
	size_t n = 0;

	while (n < length && n < 3 && (data[n] & 0xc0) == 0x80)
		n++;
	return n;
}

int output_finish(struct output *output, struct report_stream *stream, struct err *e)
{
	unsigned char *tail = NULL;
	size_t skip = 0;

	if (output->ring_bytes) {
		tail = malloc(output->ring_bytes);
		if (!tail)
			return err_set(e, ENOMEM, "no memory to keep the end of the output");
		size_t first = output->tail_limit - output->ring_start;
		if (first > output->ring_bytes)
			first = output->ring_bytes;
		memcpy(tail, output->ring + output->ring_start, first);
		memcpy(tail + first, output->ring, output->ring_bytes - first);
	}
	if (output->total_bytes > output->head_bytes + output->ring_bytes) {
		output->head_bytes -= split_at_end(output->head, output->head_bytes);
		if (tail) {
			skip = split_at_start(tail, output->ring_bytes);
			memmove(tail, tail + skip, output->ring_bytes - skip);
		}
	}
	stream->head = output->head;
	stream->head_bytes = output->head_bytes;
	stream->tail = tail;
	stream->tail_bytes = output->ring_bytes - skip;
	stream->total_bytes = output->total_bytes;
	stream->dropped_bytes = output->total_bytes - stream->head_bytes - stream->tail_bytes;
	output->head = NULL;
	output_release(output);
	return 0;
}

void output_release(struct output *output)
{
	free(output->head);
	free(output->ring);
	*output = (struct output){0};
}
