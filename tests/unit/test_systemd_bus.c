/* SPDX-License-Identifier: Apache-2.0 */
/* container/systemd_bus.h: what is put is as the wire has it, and no answer leads us out of itself. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "container/systemd_bus.h"

static const char hello[] = "DATA\r\nOK 0123456789abcdef\r\n";
static const char job[] = "/org/freedesktop/systemd1/job/7";
static const struct bus_call call = {"an.interface", "Member", NULL, NULL};

static char directory[] = "/tmp/test_systemd_bus.XXXXXX";
static int listenfd;

/* ---- a manager that says what it is told to, and hangs up ---- */

struct said {
	const char *data;
	size_t length;
};

static void *serve(void *argument)
{
	const struct said *said = argument;
	int fd = accept(listenfd, NULL, NULL);
	char buffer[4096];

	if (send(fd, said->data, said->length, MSG_NOSIGNAL) == (ssize_t)said->length)
		shutdown(fd, SHUT_WR);
	while (read(fd, buffer, sizeof buffer) > 0)
		;
	close(fd);
	return NULL;
}

/* A call, which is answered by DATA; DOES: it is a job. */
static int converse(const void *data, size_t length, bool does, char *answer, size_t size,
                    struct err *e)
{
	struct said said = {data, length};
	pthread_t server;
	struct bus bus;
	int r;

	assert_int_equal(pthread_create(&server, NULL, serve, &said), 0);
	r = bus_open(&bus, true, e);
	if (r == 0) {
		r = does ? bus_do(&bus, &call, e) : bus_ask(&bus, &call, answer, size, e);
		bus_close(&bus);
	}
	pthread_join(server, NULL);
	return r;
}

/* ---- its messages ---- */

static void put_text_field(struct bus_body *out, uint8_t code, const char *type, const char *text)
{
	if (!text)
		return;
	while (out->length % 8)
		bus_put_byte(out, 0);
	bus_put_byte(out, code);
	bus_put_signature(out, type);
	if (*type == 'g')
		bus_put_signature(out, text);
	else
		bus_put_string(out, text);
}

struct sent {
	uint8_t type;
	const char *member, *error, *signature, *words[3]; /* of 'o', 's', and 'v' of 's' */
};

static void put_words(struct bus_body *body, const struct sent *sent)
{
	if (sent->type == 4)
		bus_put_u32(body, 7);
	if (*sent->signature == 'v')
		bus_put_signature(body, "s");
	for (size_t i = 0; i < 3 && sent->words[i]; i++)
		bus_put_string(body, sent->words[i]);
}

/* Appends SENT to OUT, whose length is then one of no alignment. */
static void put_message(struct bus_body *out, const struct sent *sent)
{
	struct bus_body message = {0}, body = {0};
	struct bus_array fields;

	put_words(&body, sent);
	bus_put_byte(&message, 'l');
	bus_put_byte(&message, sent->type);
	bus_put_byte(&message, 0);
	bus_put_byte(&message, 1);
	bus_put_u32(&message, (uint32_t)body.length);
	bus_put_u32(&message, 99);
	fields = bus_begin_array(&message, 8);
	bus_put_byte(&message, 5);
	bus_put_signature(&message, "u");
	bus_put_u32(&message, sent->type == 4 ? 0 : 1);
	put_text_field(&message, 3, "s", sent->member);
	put_text_field(&message, 4, "s", sent->error);
	put_text_field(&message, 8, "g", sent->signature);
	bus_end_array(&message, fields);
	while (message.length % 8)
		bus_put_byte(&message, 0);
	for (size_t i = 0; i < message.length; i++)
		bus_put_byte(out, (uint8_t)message.data[i]);
	for (size_t i = 0; i < body.length; i++)
		bus_put_byte(out, (uint8_t)body.data[i]);
	bus_body_release(&message);
	bus_body_release(&body);
}

static void put_hello(struct bus_body *out)
{
	for (const char *at = hello; *at; at++)
		bus_put_byte(out, (uint8_t)*at);
}

static const struct sent returns_job = {2, NULL, NULL, "o", {job}};
static const struct sent other_signal = {4, "UnitNew", NULL, "uoss", {"/", "a.scope", "x"}};
static const struct sent other_job = {4, "JobRemoved", NULL, "uoss", {"/8", "a.scope", "failed"}};
static const struct sent job_done = {4, "JobRemoved", NULL, "uoss", {job, "a.scope", "done"}};
static const struct sent job_failed = {4, "JobRemoved", NULL, "uoss", {job, "a.scope", "failed"}};

static int after(const struct sent *const messages[], bool does, char *answer, struct err *e)
{
	struct bus_body out = {0};
	int r;

	put_hello(&out);
	for (; *messages; messages++)
		put_message(&out, *messages);
	r = converse(out.data, out.length, does, answer, 64, e);
	bus_body_release(&out);
	return r;
}
#define AFTER(does, answer, e, ...)                                                                \
	after((const struct sent *const[]){__VA_ARGS__, NULL}, does, answer, e)

/* ---- tests ---- */

/* a(sv) of one 't', then a 'y': the array begins at 8, its length is without what is before that */
static void test_put(void **state)
{
	static const char expected[] = "\x18\0\0\0\0\0\0\0\2\0\0\0hi\0\1t\0\0\0\0\0\0\0"
				       "\5\0\0\0\0\0\0\0\6";
	struct bus_body body = {0};
	struct bus_array array = bus_begin_array(&body, 8);

	(void)state;
	bus_put_property(&body, "hi", "t");
	bus_put_u64(&body, 5);
	bus_end_array(&body, array);
	bus_put_byte(&body, 6);
	assert_int_equal(body.length, sizeof expected - 1);
	assert_memory_equal(body.data, expected, body.length);
	bus_body_release(&body);
}

static void test_answers(void **state)
{
	static const struct sent variant = {2, NULL, NULL, "v", {"/a/b"}};
	static const struct sent number = {2, NULL, NULL, "u", {NULL}};
	static const struct sent gone = {
		3, NULL, "org.freedesktop.systemd1.NoSuchUnit", "s", {"Unit a not loaded."}};
	static const struct sent there = {3, NULL, "org.freedesktop.systemd1.UnitExists", "", {0}};
	char answer[64];
	struct err e;

	(void)state;
	assert_int_equal(AFTER(false, answer, &e, &variant), 0);
	assert_string_equal(answer, "/a/b");
	assert_int_equal(AFTER(false, answer, &e, &other_signal, &returns_job), 0);
	assert_string_equal(answer, job);
	assert_int_equal(AFTER(false, answer, &e, &number), -EPROTO);
	assert_int_equal(AFTER(false, answer, &e, &gone), -ENOENT);
	assert_non_null(strstr(e.text, "Unit a not loaded."));
	assert_int_equal(AFTER(false, answer, &e, &there), -EEXIST);
	assert_int_equal(AFTER(false, answer, &e, &other_signal), -EPIPE);
}

static void test_jobs(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(AFTER(true, NULL, &e, &returns_job, &job_done), 0);
	assert_int_equal(AFTER(true, NULL, &e, &returns_job, &other_signal, &other_job, &job_done),
	                 0);
	assert_int_equal(AFTER(true, NULL, &e, &returns_job, &job_failed), -EIO);
	assert_non_null(strstr(e.text, "\"failed\""));
	assert_int_equal(AFTER(true, NULL, &e, &returns_job, &other_job), -EPIPE);
}

/* Cut off anywhere it is an error; with any byte another it is an error or the same. */
static void test_broken(void **state)
{
	struct bus_body out = {0};
	struct err e;

	(void)state;
	put_hello(&out);
	put_message(&out, &returns_job);
	put_message(&out, &job_done);
	for (size_t length = 0; length < out.length; length++)
		assert_true(converse(out.data, length, true, NULL, 0, &e) < 0);
	for (size_t i = 0; i < out.length; i++) {
		static const char others[] = {0, 1, 0x7f, (char)0xff};
		char right = out.data[i];

		for (size_t j = 0; j < sizeof others; j++) {
			out.data[i] = others[j];
			converse(out.data, out.length, true, NULL, 0, &e);
		}
		out.data[i] = right;
	}
	bus_body_release(&out);
}

static void test_refused(void **state)
{
	static const char rejected[] = "REJECTED EXTERNAL\r\n";
	struct bus bus;
	struct err e;

	(void)state;
	assert_int_equal(converse(rejected, sizeof rejected - 1, false, NULL, 0, &e), -EACCES);
	setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
	assert_int_equal(bus_open(&bus, true, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "/nowhere/systemd/private"));
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(bus_open(&bus, true, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "XDG_RUNTIME_DIR"));
	setenv("XDG_RUNTIME_DIR", directory, 1);
}

static int set_up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char below[64];

	(void)state;
	assert_non_null(mkdtemp(directory));
	setenv("XDG_RUNTIME_DIR", directory, 1);
	snprintf(below, sizeof below, "%s/systemd", directory);
	assert_int_equal(mkdir(below, 0700), 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s/private", below);
	listenfd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return bind(listenfd, (struct sockaddr *)&address, sizeof address) || listen(listenfd, 1);
}

static int tear_down(void **state)
{
	char path[64];

	(void)state;
	close(listenfd);
	snprintf(path, sizeof path, "%s/systemd/private", directory);
	unlink(path);
	snprintf(path, sizeof path, "%s/systemd", directory);
	rmdir(path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put),     cmocka_unit_test(test_answers),
		cmocka_unit_test(test_jobs),    cmocka_unit_test(test_broken),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
