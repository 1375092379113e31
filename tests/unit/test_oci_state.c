/* SPDX-License-Identifier: Apache-2.0 */
/* oci/state.h: the state document, read and written. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "oci/state.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define scoped_state __attribute__((cleanup(oci_state_release))) struct oci_state

static int parse_text(const char *text, struct oci_state *state, struct err *e)
{
	return oci_state_parse(text, strlen(text), state, e);
}

static int parse_example(const char *path, struct oci_state *parsed, struct err *e)
{
	scoped_mem char *text = NULL;
	size_t length;

	if (file_read_all(AT_FDCWD, path, 1 << 20, &text, &length, e) < 0)
		fail_msg("%s", e->text);
	return oci_state_parse(text, length, parsed, e);
}

static void test_examples(void **state)
{
	scoped_state parsed = {0};
	struct err e;

	(void)state;
	assert_int_equal(parse_example("tests/data/oci/state/bad/invalid-json.json", &parsed, &e),
	                 -EINVAL);
	assert_int_equal(strncmp(e.text, "state: JSON: ", 13), 0);
	if (parse_example("tests/data/oci/state/good/spec-example.json", &parsed, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(parsed.version, "0.2.0");
	assert_string_equal(parsed.id, "oci-container1");
	assert_int_equal(parsed.status, OCI_RUNNING);
	assert_int_equal(parsed.pid, 4422);
	assert_string_equal(parsed.bundle, "/containers/redis");
	assert_int_equal(parsed.annotations.count, 1);
	assert_string_equal(parsed.annotations.items[0].key, "myKey");
	assert_string_equal(parsed.annotations.items[0].value, "myValue");
}

#define START "{\"ociVersion\": \"1.3.0\", \"id\": \"a\", \"bundle\": \"/b\", "

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *says;
	} tries[] = {
		{"{\"id\": \"a\", \"bundle\": \"/b\", \"status\": \"stopped\"}",
	         "state: ociVersion: is missing, and must be there"},
		{"{\"ociVersion\": \"1.3.0\", \"bundle\": \"/b\", \"status\": \"stopped\"}",
	         "state: id: is missing, and must be there"},
		{"{\"ociVersion\": \"1.3.0\", \"id\": \"\", \"bundle\": \"/b\", \"status\": "
	         "\"stopped\"}",
	         "state: id: must not be empty"},
		{"{\"ociVersion\": \"1.3.0\", \"id\": \"a\", \"status\": \"stopped\"}",
	         "state: bundle: is missing, and must be there"},
		{"{\"ociVersion\": \"1.3.0\", \"id\": \"a\", \"bundle\": \"b\", \"status\": "
	         "\"stopped\"}",
	         "state: bundle: must be an absolute path, not \"b\""},
		{"{\"ociVersion\": \"2.0.0\", \"id\": \"a\", \"bundle\": \"/b\", \"status\": "
	         "\"stopped\"}",
	         "state: ociVersion: \"2.0.0\" is of a later runtime-spec, versions up to 1.x can "
	         "be "
	         "read; write the document for one of these"},
		{START "\"pid\": 1}", "state: status: is missing, and must be there"},
		{START "\"status\": \"paused\"}",
	         "state: status: \"paused\" is none of the values that can be (creating, created, "
	         "running, stopped)"},
		{START "\"status\": \"running\"}",
	         "state: pid: is missing; a container that is running has one"},
		{START "\"status\": \"created\", \"pid\": 0}",
	         "state: pid: is missing; a container that is created has one"},
		{START "\"status\": \"running\", \"pid\": -1}",
	         "state: pid: must be a whole number from 0 to 2147483647, not -1"},
		{START "\"status\": \"stopped\", \"annotations\": {\"\": \"a\"}}",
	         "state: annotations[\"\"]: must not be empty"},
		{START "\"status\": \"stopped\", \"annotations\": {\"a\": null}}",
	         "state: annotations[\"a\"]: must be a text, not null"},
		{"[]", "state: must be an object, not an array"},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(tries); i++) {
		scoped_state parsed = {0};

		assert_int_equal(parse_text(tries[i].text, &parsed, &e), -EINVAL);
		assert_string_equal(e.text, tries[i].says);
		assert_null(parsed.id);
	}
}

static void test_statuses(void **state)
{
	static const struct {
		const char *text;
		int status;
	} tries[] = {
		{START "\"status\": \"creating\"}", OCI_CREATING},
		{START "\"status\": \"created\", \"pid\": 7}", OCI_CREATED},
		{START "\"status\": \"running\", \"pid\": 7}", OCI_RUNNING},
		{START "\"status\": \"stopped\", \"pid\": 0, \"unknown\": [1]}", OCI_STOPPED},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(tries); i++) {
		scoped_state parsed = {0};

		if (parse_text(tries[i].text, &parsed, &e) < 0)
			fail_msg("%s: %s", tries[i].text, e.text);
		assert_int_equal(parsed.status, tries[i].status);
		assert_int_equal(parsed.pid,
		                 parsed.status == OCI_CREATED || parsed.status == OCI_RUNNING ? 7
		                                                                              : 0);
	}
}

static void test_written(void **state)
{
	struct oci_pair pairs[] = {{"com.example.a", "b/c"}, {"empty", ""}};
	struct oci_state written = {.version = "1.3.0",
	                            .id = "a-1",
	                            .status = OCI_CREATED,
	                            .pid = 12,
	                            .bundle = "/run/b",
	                            .annotations = {pairs, 2}};
	scoped_json with = oci_state_to_json(&written);
	scoped_json without = NULL;

	(void)state;
	assert_string_equal(
		json_object_to_json_string_ext(with, JSON_C_TO_STRING_PLAIN |
	                                                     JSON_C_TO_STRING_NOSLASHESCAPE),
		"{\"ociVersion\":\"1.3.0\",\"id\":\"a-1\",\"status\":\"created\",\"pid\":12,"
		"\"bundle\":\"/run/b\",\"annotations\":{\"com.example.a\":\"b/"
		"c\",\"empty\":\"\"}}");
	written.status = OCI_STOPPED;
	written.pid = 0;
	written.annotations.count = 0;
	without = oci_state_to_json(&written);
	assert_string_equal(
		json_object_to_json_string_ext(without, JSON_C_TO_STRING_PLAIN |
	                                                        JSON_C_TO_STRING_NOSLASHESCAPE),
		"{\"ociVersion\":\"1.3.0\",\"id\":\"a-1\",\"status\":\"stopped\","
		"\"bundle\":\"/run/b\"}");
}

static void test_read_back(void **state)
{
	static const int statuses[] = {OCI_CREATING, OCI_CREATED, OCI_RUNNING, OCI_STOPPED};
	struct oci_pair pairs[] = {{"k\n\"", "v\xc3\xa9"}};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(statuses); i++) {
		const struct oci_state written = {.version = "1.0.2",
		                                  .id = "x",
		                                  .status = statuses[i],
		                                  .pid = 2147483647,
		                                  .bundle = "/",
		                                  .annotations = {pairs, 1}};
		scoped_json json = oci_state_to_json(&written);
		scoped_state parsed = {0};

		if (parse_text(json_object_to_json_string(json), &parsed, &e) < 0)
			fail_msg("%s", e.text);
		assert_string_equal(parsed.version, written.version);
		assert_string_equal(parsed.id, written.id);
		assert_int_equal(parsed.status, written.status);
		assert_int_equal(parsed.pid, written.pid);
		assert_string_equal(parsed.bundle, written.bundle);
		assert_int_equal(parsed.annotations.count, 1);
		assert_string_equal(parsed.annotations.items[0].key, pairs[0].key);
		assert_string_equal(parsed.annotations.items[0].value, pairs[0].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),  cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_statuses),  cmocka_unit_test(test_written),
		cmocka_unit_test(test_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
