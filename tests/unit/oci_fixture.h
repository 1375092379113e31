/* SPDX-License-Identifier: Apache-2.0 */
/* tests/data/oci/full.json, which has every key, with one value changed at a time. */
#ifndef TESTS_UNIT_OCI_FIXTURE_H
#define TESTS_UNIT_OCI_FIXTURE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "oci/config.h"

/* Unit tests run in the root of the tree. */
#define OCI_DATA "tests/data/oci/"
#define OCI_FULL OCI_DATA "full.json"

#define scoped_config __attribute__((cleanup(oci_config_release))) struct oci_config

/*
 * The last step of PATH ("a.b[2]", "a["name"].b") as a key or an index in *HOLDER, which is looked
 * up on the way.
 */
struct oci_step {
	struct json_object *holder;
	char key[64]; /* empty: the index */
	size_t index;
};

static const char *oci_step_read(const char *path, struct oci_step *step)
{
	size_t length;

	step->key[0] = '\0';
	if (!strncmp(path, "[\"", 2)) {
		length = strcspn(path + 2, "\"");
		snprintf(step->key, sizeof step->key, "%.*s", (int)length, path + 2);
		return path + 2 + length + 2;
	}
	if (*path == '[') {
		step->index = strtoul(path + 1, NULL, 10);
		return strchr(path, ']') + 1;
	}
	path += *path == '.';
	length = strcspn(path, ".[");
	snprintf(step->key, sizeof step->key, "%.*s", (int)length, path);
	return path + length;
}

static inline struct oci_step oci_find(struct json_object *document, const char *path)
{
	struct oci_step step = {.holder = document};

	while (*(path = oci_step_read(path, &step))) {
		if (step.key[0])
			step.holder = json_object_object_get(step.holder, step.key);
		else
			step.holder = json_object_array_get_idx(step.holder, step.index);
		if (!step.holder)
			fail_msg("%s leads nowhere", path);
	}
	return step;
}

/* VALUE is JSON with ' for "; NULL deletes. */
static inline void oci_change(struct json_object *document, const char *path, const char *value)
{
	struct oci_step step = oci_find(document, path);
	struct json_object *parsed = NULL;
	char text[1024];
	struct err e;

	if (value) {
		snprintf(text, sizeof text, "%s", value);
		for (char *quote = text; (quote = strchr(quote, '\'')); quote++)
			*quote = '"';
		if (json_parse(text, strlen(text), &parsed, &e) < 0)
			fail_msg("%s: %s", text, e.text);
	}
	if (!step.key[0])
		json_object_array_put_idx(step.holder, step.index, parsed);
	else if (value)
		json_object_object_add(step.holder, step.key, parsed);
	else
		json_object_object_del(step.holder, step.key);
}

static inline struct json_object *oci_full(void)
{
	struct json_object *document = NULL;
	struct err e;

	if (json_parse_file(AT_FDCWD, OCI_FULL, 1 << 20, &document, &e) < 0)
		fail_msg("%s", e.text);
	return document;
}

/* The path of a key in what holds it, as refusals write it. */
static inline void oci_path(char *path, size_t size, const char *outer, const char *key)
{
	static const char *const maps[] = {"annotations", "linux.sysctl", "linux.netDevices",
	                                   "linux.resources.unified", "linux.resources.rdma"};

	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
		if (!strcmp(outer, maps[i])) {
			snprintf(path, size, "%s[\"%s\"]", outer, key);
			return;
		}
	snprintf(path, size, "%s%s%s", outer, *outer ? "." : "", key);
}

static inline int parse_document(struct json_object *document, struct oci_config *config,
                                 struct err *e)
{
	const char *text = json_object_to_json_string(document);

	return oci_config_parse(text, strlen(text), config, e);
}

static inline int parse_changed(const char *path, const char *value, struct oci_config *config,
                                struct err *e)
{
	scoped_json document = oci_full();

	oci_change(document, path, value);
	return parse_document(document, config, e);
}

static inline void takes(const char *path, const char *value)
{
	scoped_config config = {0};
	struct err e;

	if (parse_changed(path, value, &config, &e) < 0)
		fail_msg("%s = %s: %s", path, value ? value : "nothing", e.text);
}

/* The refusal is "config.json: " and SAYS, and perhaps more. */
static inline void refuses(const char *path, const char *value, const char *says)
{
	const char *shown = value ? value : "nothing";
	scoped_config config = {0};
	char wanted[300];
	struct err e;

	if (parse_changed(path, value, &config, &e) == 0)
		fail_msg("%s = %s is taken", path, shown);
	snprintf(wanted, sizeof wanted, "config.json: %s", says);
	if (strncmp(e.text, wanted, strlen(wanted)) != 0)
		fail_msg("%s = %s: \"%s\", not \"%s\"", path, shown, e.text, wanted);
	assert_int_equal(e.code, EINVAL);
	assert_null(config.version);
}

struct rule {
	const char *path;
	const char *taken, *refused; /* NULL deletes the key */
	const char *says;
};

static inline void keep(const struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		takes(rules[i].path, rules[i].taken);
		refuses(rules[i].path, rules[i].refused, rules[i].says);
	}
}

#endif
