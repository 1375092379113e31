/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read back from directories of ours, and what is written for others to read. The first
 * byte says which: 'l' a label of RUN and the groups that it leads to (runtime/label.c), 'd' the
 * document of an image (rootfs/image_document.c), 'n' names and digests (rootfs/image_name.c),
 * 'e' an image's /bin/sh, whose header tells the machine (rootfs/image_machine.c), 'r' the streams
 * of a report (runtime/output.c, fleet/report.c), 'j' JSON (base/json.c), 't' text for a terminal
 * (base/strings.c).
 *
 * Holds: a label leads to one group below the mount, if to any; a document that is accepted is read
 * the same when it is written anew; a name becomes one file's name and that one again; the bytes of
 * a stream come back from the report's JSON; what is accepted as JSON is written as the same; no
 * control character is left in text for a terminal.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <nettle/base64.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "fleet/report.h"
#include "rootfs/image_store.h"
#include "runtime/internal.h"
#include "runtime/output.h"

/* The path of NAME in the scratch directory, for what takes no descriptor. */
static const char *scratch_path(const char *name, char path[64])
{
	snprintf(path, 64, "/proc/self/fd/%d/%s", fuzz_scratch(), name);
	return path;
}

static bool exists(const char *path)
{
	return faccessat(fuzz_scratch(), path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- labels ---- */

enum { GROUPS_KEPT = 4 };

/* A '@' in the text stands for the trees that are in sight, which no fuzzer can guess. */
static void put_label(const char *text, size_t length, uint64_t inode)
{
	const char *at = memchr(text, '@', length);
	char label[4096];
	int head = at ? (int)(at - text) : (int)length;
	int used;

	if (length > 1024)
		return;
	memcpy(label, text, (size_t)head);
	used = head;
	if (at) {
		used += snprintf(label + used, 64, "000-%llu", (unsigned long long)inode);
		memcpy(label + used, at + 1, length - (size_t)head - 1);
		used += (int)length - head - 1;
	}
	fuzz_put("run/s7", label, (size_t)used);
}

static void try_label(const char *text, size_t length)
{
	static const char *const kept[GROUPS_KEPT] = {"tree/system", "tree/agentdock/0123456789a",
	                                              "beside/0123456789ab",
	                                              "beside/agentdock/0123456789ab"};
	struct sandbox_host host = {.runfd = -1, .run_path = "run"};
	struct stat tree;
	struct err e;
	int reaped = 0, result;

	fuzz_make_dir("run");
	fuzz_make_dir("tree/agentdock/0123456789ab");
	for (int i = 0; i < GROUPS_KEPT; i++)
		fuzz_make_dir(kept[i]);
	CHECK(fstatat(fuzz_scratch(), "tree", &tree, 0) == 0, "tree: %m");
	put_label(text, length, tree.st_ino);
	host.cgroups.mode = CGROUP_V2;
	scratch_path("tree", host.cgroups.v2_mount);
	host.runfd = openat(fuzz_scratch(), "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	result = sandbox_reap(&host, &reaped, &e);
	if (result < 0)
		fuzz_check_err(result, &e);
	close_fd(&host.runfd);
	for (int i = 0; i < GROUPS_KEPT; i++)
		CHECK(exists(kept[i]), "a label led to %s", kept[i]);
	CHECK(reaped || exists("tree/agentdock/0123456789ab"), "a group went, and no label did");
	CHECK(result < 0 || !exists("run/s7"), "a label is neither reaped nor told of");
	fuzz_remove("run");
	fuzz_remove("tree");
	fuzz_remove("beside");
}

/* ---- documents of images ---- */

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void check_image(const struct image *image)
{
	CHECK(image->layers_count >= 1 && image->layers_count <= IMAGE_LAYERS_MAX, "%d layers",
	      image->layers_count);
	for (int i = 0; i < image->layers_count; i++)
		CHECK(image_digest_valid(image->layers[i]), "a layer that is no digest");
	for (size_t i = 0; i < image->env.count; i++)
		CHECK(strchr(image->env.items[i], '='), "an env that is no assignment");
	CHECK(memchr(image->architecture, '\0', sizeof image->architecture), "architecture");
}

static bool same_list(const struct string_list *one, const struct string_list *other)
{
	bool same = one->count == other->count;

	for (size_t i = 0; same && i < one->count; i++)
		same = strcmp(one->items[i], other->items[i]) == 0;
	return same;
}

static void check_same(const struct image *one, const struct image *other)
{
	CHECK(strcmp(one->architecture, other->architecture) == 0 &&
	              one->size_bytes == other->size_bytes && one->entries == other->entries &&
	              one->imported_at == other->imported_at &&
	              one->layers_count == other->layers_count &&
	              memcmp(one->layers, other->layers,
	                     (size_t)one->layers_count * IMAGE_DIGEST_SIZE) == 0 &&
	              same_list(&one->env, &other->env),
	      "a document is not read as it was written");
}

/* Texts are texts: json-c makes one of any value when it is asked for one. */
static void check_types(const char *text, size_t length)
{
	static const char *const lists[] = {"layers", "env"};
	scoped_json document = NULL;
	struct json_object *body = NULL, *list = NULL;
	struct err e;

	CHECK(json_parse(text, length, &document, &e) == 0, "accepted, and no JSON");
	json_object_object_get_ex(document, "image", &body);
	for (int i = 0; i < 2; i++) {
		json_object_object_get_ex(body, lists[i], &list);
		for (size_t n = 0; n < json_object_array_length(list); n++)
			CHECK(json_object_is_type(json_object_array_get_idx(list, n),
			                          json_type_string),
			      "%s: what is no text is taken for one", lists[i]);
	}
}

static void try_document(const char *text, size_t length)
{
	const struct image_store store = {.statefd = fuzz_scratch(), .path = "STATE"};
	struct image image = {0}, again = {0};
	struct err e;
	int result;

	fuzz_make_dir("images/sha256");
	fuzz_put("images/sha256/" HEX ".json", text, length);
	result = image_document_read(&store, "sha256:" HEX, &image, &e);
	if (result < 0) {
		fuzz_check_err(result, &e);
	} else {
		check_image(&image);
		check_types(text, length);
		CHECK(image_document_write(fuzz_scratch(), "images/sha256/" HEX ".json", &image,
		                           &e) == 0,
		      "accepted, and not written: %s", e.text);
		CHECK(image_digest_valid(image.digest), "a digest that is none");
		CHECK(image_document_read(&store, "sha256:" HEX, &again, &e) == 0,
		      "written, and not accepted: %s", e.text);
		check_same(&image, &again);
		image_release(&again);
	}
	image_release(&image);
	fuzz_remove("images");
}

/* ---- names ---- */

static void try_name(const char *text)
{
	char name[IMAGE_NAME_SIZE], again[IMAGE_NAME_SIZE], path[IMAGE_PATH_SIZE];
	const char *file;
	struct err e;
	int result = image_name_parse(text, name, &e);

	if (result < 0) {
		fuzz_check_err(result, &e);
	} else {
		image_name_path(name, path);
		file = path + strlen("images/names/");
		CHECK(strncmp(path, "images/names/", 13) == 0 && !strchr(file, '/') &&
		              file[0] != '.' && strlen(file) <= 255,
		      "%s becomes the file %s", text, path);
		CHECK(image_name_from_file(file, again) && strcmp(name, again) == 0,
		      "%s does not come back from %s", name, file);
		CHECK(!image_digest_valid(name) && !image_hex_prefix_valid(name),
		      "%s reads as a digest", name);
	}
	if (image_name_from_file(text, name))
		CHECK(image_name_parse(name, again, &e) == 0 && strcmp(name, again) == 0,
		      "the file %s becomes what is no name", text);
	if (image_digest_valid(text)) {
		image_document_path(text, path);
		CHECK(strlen(path) == strlen("images/sha256/.json") + 64 && !strchr(path + 14, '/'),
		      "the digest %s becomes %s", text, path);
	}
}

static void try_program(const char *data, size_t length)
{
	char architecture[16];
	scoped_fd rootfd = -1;
	struct err e;
	int result;

	fuzz_make_dir("image/bin");
	fuzz_put("image/bin/sh", data, length);
	rootfd = openat(fuzz_scratch(), "image", O_PATH | O_DIRECTORY | O_CLOEXEC);
	result = image_machine_of_tree(rootfd, architecture, &e);
	if (result < 0)
		fuzz_check_err(result, &e);
	else
		CHECK(image_machine_known(architecture) && length >= 20, "%s", architecture);
	fuzz_remove("image");
}

/* ---- reports ---- */

/* The bytes that stand in OBJECT as text or base64, behind USED bytes of DATA. */
static size_t decode(struct json_object *object, unsigned char *data, size_t used)
{
	struct json_object *value = NULL;
	struct base64_decode_ctx context;
	const char *text;
	size_t length, decoded;

	if (json_object_object_get_ex(object, "text", &value)) {
		length = (size_t)json_object_get_string_len(value);
		memcpy(data + used, json_object_get_string(value), length);
		return used + length;
	}
	CHECK(json_object_object_get_ex(object, "base64", &value), "neither text nor base64");
	text = json_object_get_string(value);
	length = (size_t)json_object_get_string_len(value);
	decoded = BASE64_DECODE_LENGTH(length);
	base64_decode_init(&context);
	CHECK(base64_decode_update(&context, &decoded, data + used, length, text) &&
	              base64_decode_final(&context),
	      "base64 that is none");
	return used + decoded;
}

/* A part of a stream, with the bytes of a character that a cut has split before or behind it. */
static size_t decode_part(struct json_object *stream, const char *key, unsigned char *data,
                          size_t used)
{
	struct json_object *part = NULL, *split = NULL;
	bool tail = strcmp(key, "tail") == 0;

	CHECK(json_object_object_get_ex(stream, key, &part), "no %s", key);
	json_object_object_get_ex(part, "split", &split);
	if (split && tail)
		used = decode(split, data, used);
	used = decode(part, data, used);
	if (split && !tail)
		used = decode(split, data, used);
	return used;
}

static void check_stream(struct json_object *stream, const uint8_t *data, size_t size)
{
	/* base64 is decoded with some room behind */
	scoped_mem unsigned char *back = malloc(2 * size + 64);
	uint64_t dropped = 0, total = 0;
	size_t used;
	struct err e;

	CHECK(back && json_get_u64(stream, "dropped_bytes", true, &dropped, &e) == 0 &&
	              json_get_u64(stream, "total_bytes", true, &total, &e) == 0 && total == size,
	      "%llu bytes of %zu", (unsigned long long)total, size);
	if (!dropped) {
		used = decode_part(stream, "data", back, 0);
		CHECK(used == size && memcmp(back, data, size) == 0, "a stream changed");
		return;
	}
	used = decode_part(stream, "head", back, 0);
	CHECK(used <= size && memcmp(back, data, used) == 0, "the head of a stream changed");
	size -= used;
	used = decode_part(stream, "tail", back, 0);
	CHECK(used + dropped == size, "%zu bytes at the end, %llu dropped, of %zu", used,
	      (unsigned long long)dropped, size);
	CHECK(memcmp(back, data + (total - used), used) == 0, "the tail of a stream changed");
}

static void try_report(const uint8_t *data, size_t size)
{
	struct fuzz_bytes bytes = {data, size};
	uint64_t cap = 2 + fuzz_take(&bytes, 2) % 300;
	size_t chunk = 1 + fuzz_take(&bytes, 1);
	struct report report = {.id = "0123456789ab"};
	struct output output;
	scoped_json json = NULL;
	scoped_json again = NULL;
	struct json_object *stream = NULL;
	const char *text;
	struct err e;

	output_init(&output, cap);
	for (size_t at = 0; at < bytes.left; at += chunk)
		CHECK(output_add(&output, bytes.data + at,
		                 bytes.left - at < chunk ? bytes.left - at : chunk, &e) == 0,
		      "%s", e.text);
	CHECK(output_finish(&output, &report.out, &e) == 0, "%s", e.text);
	output_release(&output);
	CHECK(report.out.head_bytes + report.out.tail_bytes <= cap, "more than the cap is kept");
	json = report_to_json(&report);
	text = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN);
	CHECK(json_parse(text, strlen(text), &again, &e) == 0, "a report that is no JSON: %s",
	      e.text);
	CHECK(json_object_object_get_ex(again, "stdout", &stream), "no stdout");
	check_stream(stream, bytes.data, bytes.left);
	report_release(&report);
}

/* ---- JSON ---- */

static void try_json(const char *text, size_t length)
{
	scoped_json json = NULL;
	scoped_json again = NULL;
	const char *written;
	struct err e;
	int result = json_parse(text, length, &json, &e);

	if (result < 0) {
		fuzz_check_err(result, &e);
		return;
	}
	written = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN);
	CHECK(json_parse(written, strlen(written), &again, &e) == 0, "%s: %s", written, e.text);
	CHECK(json_object_equal(json, again), "%s is not the same again", written);
}

/* ---- text ---- */

/* A character from CHARACTER on drives a terminal, breaks the line or turns it around. */
static bool is_control(const unsigned char *c)
{
	if (c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0))
		return true;
	return c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) ||
	                        (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

static void try_printable(const char *text)
{
	static const size_t rooms[] = {1, 2, 5, 17, 4096};

	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		scoped_mem char *shown = malloc(rooms[i]);
		size_t length;

		CHECK(shown, "no memory");
		text_printable(text, shown, rooms[i]);
		length = strnlen(shown, rooms[i]);
		CHECK(length < rooms[i], "a text that does not end");
		CHECK(utf8_valid_prefix(shown, length) == length, "not UTF-8");
		for (size_t at = 0; at < length; at++)
			CHECK(!is_control((const unsigned char *)shown + at),
			      "a control character at %zu", at);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_mem char *text = NULL;
	int next_fd = fuzz_next_fd();

	if (!size)
		return 0;
	text = fuzz_text(data + 1, size - 1);
	switch (data[0]) {
	case 'l':
		try_label(text, size - 1);
		break;
	case 'd':
		try_document(text, size - 1);
		break;
	case 'n':
		try_name(text);
		break;
	case 'r':
		try_report(data + 1, size - 1);
		break;
	case 'e':
		try_program(text, size - 1);
		break;
	case 't':
		try_printable(text);
		break;
	case 'j':
		try_json(text, size - 1);
		break;
	default:
		break;
	}
	CHECK(fuzz_next_fd() == next_fd, "a descriptor leaked");
	return 0;
}
