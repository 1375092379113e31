/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to a systemd manager (org.freedesktop.systemd1(5)) over its own socket, on which it speaks D-Bus
 * ("D-Bus Specification": "Message Protocol", "Authentication Protocol"): no bus daemon has to run, and no
 * process is made for a call. The signals of jobs come over it unasked.
 */
#ifndef CONTAINER_SYSTEMD_BUS_H
#define CONTAINER_SYSTEMD_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What is told in a call, on the heap. Zero-initialised is empty; no memory shows in the call. */
struct bus_body {
	char *data;
	size_t length, room;
	bool no_memory;
};
void bus_body_release(struct bus_body *body);

void bus_put_u32(struct bus_body *body, uint32_t value); /* 'u', and 'b' of 0 and 1 */
void bus_put_u64(struct bus_body *body, uint64_t value);
void bus_put_byte(struct bus_body *body, uint8_t value);
void bus_put_string(struct bus_body *body, const char *text);
void bus_put_signature(struct bus_body *body, const char *signature); /* what a variant has */

/* An array of elements that are aligned to ALIGNMENT: what is put before bus_end_array(its return). */
struct bus_array {
	size_t length_at, begin;
};
struct bus_array bus_begin_array(struct bus_body *body, size_t alignment);
void bus_end_array(struct bus_body *body, struct bus_array array);

/* "(sv)" of a list of properties; the value is put next */
void bus_put_property(struct bus_body *body, const char *name, const char *signature);

struct bus {
	int fd;
	uint32_t serial; /* of the last call */
	char *in; /* what was received: LENGTH bytes, of which those before NEXT are done with */
	size_t room, length, next;
};

/* The system's manager, or with USER the one of this user. ENOTSUP: it does not run here. */
int bus_open(struct bus *bus, bool user, struct err *e);
void bus_close(struct bus *bus);

struct bus_call {
	const char *interface, *member;
	const char *signature; /* of BODY; NULL: there is none */
	const struct bus_body *body;
};

/*
 * One call to the manager's object. ANSWER, unless its size is 0, is the reply's first value where that is
 * a string or a variant of one. An error reply is err_set with its words; ENOENT: there is no such unit,
 * EEXIST: there is.
 */
int bus_ask(struct bus *bus, const struct bus_call *call, char *answer, size_t size, struct err *e);

/* One whose reply is a job; waits for its end. EIO: it did not end well. */
int bus_do(struct bus *bus, const struct bus_call *call, struct err *e);

#endif
