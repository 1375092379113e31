/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture of one stream with a cap: the first half of the cap and the last half are kept, what lies
 * between is counted. Memory is bounded by the cap, whatever is written.
 */
#ifndef RUNTIME_OUTPUT_H
#define RUNTIME_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fleet/report.h"

struct output {
	size_t head_limit, tail_limit;
	unsigned char *head; /* grows up to its limit */
	size_t head_bytes, head_room;
	unsigned char *ring; /* made when the head is full */
	size_t ring_bytes, ring_start;
	uint64_t total_bytes;
};

void output_init(struct output *output, uint64_t cap_bytes);
int output_add(struct output *output, const void *data, size_t length, struct err *e);

/*
 * Hands the capture over to STREAM. Where bytes were dropped, a UTF-8 character that the cut split
 * is dropped whole (and counted), so that text stays text.
 */
int output_finish(struct output *output, struct report_stream *stream, struct err *e);
void output_release(struct output *output);

#endif
