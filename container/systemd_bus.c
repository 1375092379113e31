/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The D-Bus of systemd's own socket. What comes is from the manager, which we trust with more than this;
 * that it is whole is checked all the same: no length of it leads out of the message.
 */
#include "container/systemd_bus.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"

enum { ANSWER_TIMEOUT_US = 30000000, MESSAGE_BYTES_MAX = 1 << 20, HEADER_BYTES = 16 };

enum { MESSAGE_CALL = 1, MESSAGE_RETURN, MESSAGE_ERROR, MESSAGE_SIGNAL };
enum {
	FIELD_PATH = 1,
	FIELD_INTERFACE,
	FIELD_MEMBER,
	FIELD_ERROR_NAME,
	FIELD_REPLY_SERIAL,
	FIELD_DESTINATION,
	FIELD_SENDER,
	FIELD_SIGNATURE
};

/* ---- putting ---- */

void bus_body_release(struct bus_body *body)
{
	free(body->data);
	*body = (struct bus_body){0};
}

static void put(struct bus_body *body, const void *data, size_t size)
{
	if (size == 0)
		return;
	if (body->no_memory || !bytes_grow(&body->data, &body->room, body->length + size, 256)) {
		body->no_memory = true;
		return;
	}
	memcpy(body->data + body->length, data, size);
	body->length += size;
}

static void align(struct bus_body *body, size_t alignment)
{
	static const char zeros[8];

	put(body, zeros, -body->length & (alignment - 1));
}

void bus_put_byte(struct bus_body *body, uint8_t value)
{
	put(body, &value, sizeof value);
}

void bus_put_u32(struct bus_body *body, uint32_t value)
{
	align(body, sizeof value);
	put(body, &value, sizeof value);
}

void bus_put_u64(struct bus_body *body, uint64_t value)
{
	align(body, sizeof value);
	put(body, &value, sizeof value);
}

void bus_put_string(struct bus_body *body, const char *text)
{
	size_t length = strlen(text);

	bus_put_u32(body, (uint32_t)length);
	put(body, text, length + 1);
}

void bus_put_signature(struct bus_body *body, const char *signature)
{
	size_t length = strlen(signature);

	bus_put_byte(body, (uint8_t)length);
	put(body, signature, length + 1);
}

struct bus_array bus_begin_array(struct bus_body *body, size_t alignment)
{
	struct bus_array array;

	bus_put_u32(body, 0);
	array.length_at = body->length - sizeof(uint32_t);
	align(body, alignment);
	array.begin = body->length;
	return array;
}

void bus_end_array(struct bus_body *body, struct bus_array array)
{
	uint32_t length = (uint32_t)(body->length - array.begin);

	if (!body->no_memory)
		memcpy(body->data + array.length_at, &length, sizeof length);
}

void bus_put_property(struct bus_body *body, const char *name, const char *signature)
{
	align(body, 8);
	bus_put_string(body, name);
	bus_put_signature(body, signature);
}

/* ---- taking ---- */

/* What is left of a message: alignment counts from its begin. */
struct cursor {
	const char *data;
	size_t at, end;
};

static const char *take(struct cursor *cursor, size_t alignment, size_t size)
{
	size_t at = (cursor->at + alignment - 1) & ~(alignment - 1);

	if (at > cursor->end || size > cursor->end - at)
		return NULL;
	cursor->at = at + size;
	return cursor->data + at;
}

static bool take_u32(struct cursor *cursor, uint32_t *value)
{
	const char *data = take(cursor, sizeof *value, sizeof *value);

	if (data)
		memcpy(value, data, sizeof *value);
	return data;
}

/* 's' and 'o' */
static const char *take_string(struct cursor *cursor)
{
	uint32_t length;
	const char *text;

	if (!take_u32(cursor, &length) || length >= MESSAGE_BYTES_MAX)
		return NULL;
	text = take(cursor, 1, (size_t)length + 1);
	return text && text[length] == '\0' ? text : NULL;
}

static const char *take_signature(struct cursor *cursor)
{
	const char *length = take(cursor, 1, 1), *text;

	text = length ? take(cursor, 1, (size_t)(uint8_t)*length + 1) : NULL;
	return text && text[(uint8_t)*length] == '\0' ? text : NULL;
}

struct message {
	uint8_t type;
	uint32_t reply_serial;
	const char *member, *error, *signature; /* "" is none */
	struct cursor body;
};

/* One "(yv)" of the header. */
static bool take_field(struct cursor *cursor, struct message *message)
{
	const char *code = take(cursor, 8, 1), *type = code ? take_signature(cursor) : NULL;
	const char *text = "";
	uint32_t number = 0;
	bool ok;

	if (!type)
		return false;
	if (*type == 'u') {
		ok = take_u32(cursor, &number);
	} else {
		text = *type == 'g' ? take_signature(cursor) : take_string(cursor);
		ok = text;
	}
	if (*code == FIELD_MEMBER)
		message->member = text;
	else if (*code == FIELD_ERROR_NAME)
		message->error = text;
	else if (*code == FIELD_REPLY_SERIAL)
		message->reply_serial = number;
	else if (*code == FIELD_SIGNATURE)
		message->signature = text;
	return ok;
}

/* The size of the message that begins at DATA, of whose header all is there; 0: it is none. */
static size_t message_size(const char *data)
{
	static const uint16_t little = 1;
	const char order = *(const char *)&little ? 'l' : 'B';
	uint32_t body, fields;

	memcpy(&body, data + 4, sizeof body);
	memcpy(&fields, data + 12, sizeof fields);
	if (data[0] != order || data[3] != 1 || body > MESSAGE_BYTES_MAX ||
	    fields > MESSAGE_BYTES_MAX)
		return 0;
	return HEADER_BYTES + ((fields + 7UL) & ~7UL) + body;
}

static bool parse(const char *data, size_t size, struct message *message)
{
	struct cursor fields = {data, HEADER_BYTES, 0};
	uint32_t length;

	*message = (struct message){.type = (uint8_t)data[1],
	                            .member = "",
	                            .error = "",
	                            .signature = "",
	                            .body = {data, 0, size}};
	memcpy(&length, data + 12, sizeof length);
	fields.end = HEADER_BYTES + length;
	message->body.at = (fields.end + 7) & ~(size_t)7;
	while (fields.at < fields.end)
		if (!take_field(&fields, message))
			return false;
	return message->member && message->error && message->signature;
}

/* ---- the socket ---- */

static int broken(struct err *e)
{
	return err_set(e, EPROTO, "systemd: its answer is no D-Bus message");
}

/* WANTED bytes more than are done with; what was before stays. */
static int receive(struct bus *bus, size_t wanted, uint64_t deadline_us, struct err *e)
{
	while (bus->length - bus->next < wanted) {
		struct pollfd polled = {.fd = bus->fd, .events = POLLIN};
		uint64_t now_us = clock_us();
		ssize_t got;

		if (now_us >= deadline_us)
			return err_set(e, ETIMEDOUT, "systemd: it does not answer");
		if (!bytes_grow(&bus->in, &bus->room, bus->next + wanted, 4096))
			return err_set(e, ENOMEM, "systemd: no memory");
		got = recv(bus->fd, bus->in + bus->length, bus->room - bus->length, MSG_DONTWAIT);
		if (got == 0)
			return err_set(e, EPIPE, "systemd: it has closed the connection");
		if (got > 0)
			bus->length += (size_t)got;
		else if (errno == EAGAIN)
			poll(&polled, 1, (int)((deadline_us - now_us) / 1000) + 1);
		else if (errno != EINTR)
			return err_sys(e, "systemd: reading its answer");
	}
	return 0;
}

/* MESSAGE points into BUS till the next one is read. */
static int next_message(struct bus *bus, struct message *message, uint64_t deadline_us,
                        struct err *e)
{
	size_t size;

	memmove(bus->in, bus->in + bus->next, bus->length - bus->next);
	bus->length -= bus->next;
	bus->next = 0;
	TRY(receive(bus, HEADER_BYTES, deadline_us, e));
	size = message_size(bus->in);
	if (size == 0)
		return broken(e);
	TRY(receive(bus, size, deadline_us, e));
	bus->next = size;
	return parse(bus->in, size, message) ? 0 : broken(e);
}

/* One line of the authentication. */
static int next_line(struct bus *bus, const char **line, struct err *e)
{
	uint64_t deadline_us = clock_us() + ANSWER_TIMEOUT_US;
	char *end = NULL;

	for (size_t have = 1; !end; have = bus->length - bus->next + 1) {
		TRY(receive(bus, have, deadline_us, e));
		end = memchr(bus->in + bus->next, '\n', bus->length - bus->next);
	}
	*end = '\0';
	*line = bus->in + bus->next;
	bus->next = (size_t)(end - bus->in) + 1;
	return 0;
}

static int send_all(struct bus *bus, const char *data, size_t size, struct err *e)
{
	while (size > 0) {
		ssize_t sent = send(bus->fd, data, size, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return err_sys(e, "systemd: calling it");
		data += sent;
		size -= (size_t)sent;
	}
	return 0;
}

/* Who we are the socket tells. */
static int authenticate(struct bus *bus, struct err *e)
{
	static const char words[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	const char *line;

	TRY(send_all(bus, words, sizeof words - 1, e));
	do {
		TRY(next_line(bus, &line, e));
		if (strncmp(line, "OK ", 3) == 0)
			return 0;
	} while (strncmp(line, "DATA", 4) == 0);
	return err_set(e, EACCES, "systemd: it does not let us in; run as the user whose it is");
}

static int address_of(bool user, struct sockaddr_un *address, struct err *e)
{
	const char *runtime = user ? getenv("XDG_RUNTIME_DIR") : "/run";

	if (!runtime || *runtime != '/')
		return err_set(
			e, ENOTSUP,
			"systemd of this user: XDG_RUNTIME_DIR does not say where it is; log "
			"in, or set it to /run/user/UID; without systemd: leave "
			"--systemd-cgroup away");
	return text_format(address->sun_path, sizeof address->sun_path, e, "%s/systemd/private",
	                   runtime);
}

int bus_open(struct bus *bus, bool user, struct err *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*bus = (struct bus){.fd = -1};
	if (fd < 0)
		return err_sys(e, "systemd: a socket");
	TRY(address_of(user, &address, e));
	if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			return err_set(
				e, ENOTSUP,
				"systemd does not run here (nobody is at %s), so it cannot make "
				"the container's cgroup; leave --systemd-cgroup away",
				address.sun_path);
		return err_sys(e, "systemd: connecting to %s", address.sun_path);
	}
	bus->fd = take_fd(&fd);
	if (authenticate(bus, e) < 0) {
		bus_close(bus);
		return -e->code;
	}
	return 0;
}

void bus_close(struct bus *bus)
{
	close_fd(&bus->fd);
	free(bus->in);
	bus->in = NULL;
}

/* ---- calls ---- */

static void put_field(struct bus_body *header, uint8_t code, const char *type, const char *text)
{
	align(header, 8);
	bus_put_byte(header, code);
	bus_put_signature(header, type);
	if (*type == 'g')
		bus_put_signature(header, text);
	else
		bus_put_string(header, text);
}

static void put_header(struct bus_body *header, uint32_t serial, const struct bus_call *call)
{
	static const uint16_t little = 1;
	struct bus_array fields;

	bus_put_byte(header, *(const char *)&little ? 'l' : 'B');
	bus_put_byte(header, MESSAGE_CALL);
	bus_put_byte(header, 0);
	bus_put_byte(header, 1);
	bus_put_u32(header, call->body ? (uint32_t)call->body->length : 0);
	bus_put_u32(header, serial);
	fields = bus_begin_array(header, 8);
	put_field(header, FIELD_PATH, "o", "/org/freedesktop/systemd1");
	put_field(header, FIELD_INTERFACE, "s", call->interface);
	put_field(header, FIELD_MEMBER, "s", call->member);
	put_field(header, FIELD_DESTINATION, "s", "org.freedesktop.systemd1");
	if (call->signature)
		put_field(header, FIELD_SIGNATURE, "g", call->signature);
	bus_end_array(header, fields);
	align(header, 8);
}

static int send_call(struct bus *bus, const struct bus_call *call, struct err *e)
{
	struct bus_body whole = {0};
	int r;

	put_header(&whole, ++bus->serial, call);
	if (call->body)
		put(&whole, call->body->data, call->body->length);
	if (whole.no_memory || (call->body && call->body->no_memory))
		r = err_set(e, ENOMEM, "systemd: no memory");
	else
		r = send_all(bus, whole.data, whole.length, e);
	bus_body_release(&whole);
	return r;
}

static int error_reply(struct message *message, struct err *e)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {
		{"org.freedesktop.systemd1.NoSuchUnit", ENOENT},
		{"org.freedesktop.systemd1.UnitExists", EEXIST},
		{"org.freedesktop.DBus.Error.AccessDenied", EACCES},
		{"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", EACCES},
		{"org.freedesktop.DBus.Error.PropertyReadOnly", ENOTSUP},
		{"org.freedesktop.DBus.Error.InvalidArgs", EINVAL},
	};
	const char *words = *message->signature == 's' ? take_string(&message->body) : NULL;
	int code = EIO;

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (strcmp(message->error, codes[i].name) == 0)
			code = codes[i].code;
	return err_set(e, code, "systemd: %s", words ? words : message->error);
}

int bus_ask(struct bus *bus, const struct bus_call *call, char *answer, size_t size, struct err *e)
{
	uint64_t deadline_us = clock_us() + ANSWER_TIMEOUT_US;
	struct message message = {0};
	const char *text;

	TRY(send_call(bus, call, e));
	do
		TRY(next_message(bus, &message, deadline_us, e));
	while ((message.type != MESSAGE_RETURN && message.type != MESSAGE_ERROR) ||
	       message.reply_serial != bus->serial);
	if (message.type == MESSAGE_ERROR)
		return error_reply(&message, e);
	if (size == 0)
		return 0;
	if (*message.signature == 'v')
		message.signature = take_signature(&message.body);
	if (!message.signature || (*message.signature != 's' && *message.signature != 'o'))
		return broken(e);
	text = take_string(&message.body);
	if (!text)
		return broken(e);
	TRY(text_format(answer, size, e, "%s", text));
	return 0;
}

/* JobRemoved has "uoss": its number, its object, the unit and the result. */
static bool is_end_of(struct message *message, const char *job, const char **result)
{
	uint32_t number;
	const char *object, *unit;

	if (message->type != MESSAGE_SIGNAL || strcmp(message->member, "JobRemoved") != 0 ||
	    strcmp(message->signature, "uoss") != 0 || !take_u32(&message->body, &number))
		return false;
	object = take_string(&message->body);
	unit = take_string(&message->body);
	*result = take_string(&message->body);
	return object && unit && *result && strcmp(object, job) == 0;
}

int bus_do(struct bus *bus, const struct bus_call *call, struct err *e)
{
	uint64_t deadline_us = clock_us() + ANSWER_TIMEOUT_US;
	struct message message = {0};
	const char *result;
	char job[256];

	TRY(bus_ask(bus, call, job, sizeof job, e));
	do
		TRY(next_message(bus, &message, deadline_us, e));
	while (!is_end_of(&message, job, &result));
	if (strcmp(result, "done") == 0)
		return 0;
	return err_set(e, EIO, "systemd: the job ended with \"%s\"", result);
}
