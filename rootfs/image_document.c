/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document of an image, images/sha256/HEX.json, and digests.
 *
 *	{"image": {"architecture": ..., "layers": [...], "env": [...], "user": ..., "uid": ...,
 *	           "gid": ..., "workdir": ..., "entrypoint": [...], "cmd": [...]},
 *	 "size_bytes": ..., "entries": ..., "imported_at": ...}
 *
 * What is empty from "user" on is left out. HEX is the SHA-256 of the text of "image" in just this order without white space, so an image's
 * digest depends on what a sandbox gets and not on when or from which packing it was imported.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

enum { HASH_CHUNK_BYTES = 256 * 1024 };

void image_hash_finish(struct sha256_ctx *hash, char digest[IMAGE_DIGEST_SIZE])
{
	unsigned char value[SHA256_DIGEST_SIZE];

	sha256_digest(hash, sizeof value, value);
	snprintf(digest, IMAGE_DIGEST_SIZE, "sha256:");
	for (size_t i = 0; i < sizeof value; i++)
		snprintf(digest + 7 + 2 * i, 3, "%02x", value[i]);
}

void image_hash_text(const char *text, char digest[IMAGE_DIGEST_SIZE])
{
	struct sha256_ctx hash;

	sha256_init(&hash);
	sha256_update(&hash, strlen(text), (const uint8_t *)text);
	image_hash_finish(&hash, digest);
}

int image_hash_file(int fd, const char *what, char digest[IMAGE_DIGEST_SIZE], struct err *e)
{
	scoped_mem unsigned char *chunk = malloc(HASH_CHUNK_BYTES);
	struct sha256_ctx hash;
	off_t at = 0;
	ssize_t got;

	if (!chunk)
		return err_set(e, ENOMEM, "%s: out of memory", what);
	sha256_init(&hash);
	while ((got = pread(fd, chunk, HASH_CHUNK_BYTES, at)) > 0) {
		sha256_update(&hash, (size_t)got, chunk);
		at += got;
	}
	if (got < 0)
		return err_sys(e, "reading %s", what);
	image_hash_finish(&hash, digest);
	return 0;
}

/* Images of before there was a config keep their digests. */
static void add_config(struct json_object *body, const struct image *image)
{
	if (*image->user)
		json_add_string(body, "user", image->user);
	if (image->has_ids) {
		json_add_u64(body, "uid", image->uid);
		json_add_u64(body, "gid", image->gid);
	}
	if (*image->workdir)
		json_add_string(body, "workdir", image->workdir);
	if (image->entrypoint.count)
		json_add_strings(body, "entrypoint", &image->entrypoint);
	if (image->cmd.count)
		json_add_strings(body, "cmd", &image->cmd);
}

int image_document_write(int dirfd, const char *path, struct image *image, struct err *e)
{
	scoped_json document = json_object_new_object();
	struct json_object *body = json_add_object(document, "image");
	struct json_object *layers;
	const char *text;

	json_add_string(body, "architecture", image->architecture);
	layers = json_add_array(body, "layers");
	for (int i = 0; i < image->layers_count; i++)
		json_object_array_add(layers, json_object_new_string(image->layers[i]));
	json_add_strings(body, "env", &image->env);
	add_config(body, image);
	text = json_object_to_json_string_ext(body, JSON_C_TO_STRING_NOSLASHESCAPE);
	image_hash_text(text, image->digest);

	json_add_u64(document, "size_bytes", image->size_bytes);
	json_add_u64(document, "entries", image->entries);
	json_add_u64(document, "imported_at", (uint64_t)image->imported_at);
	text = json_object_to_json_string_ext(document, JSON_C_TO_STRING_NOSLASHESCAPE);
	return file_replace(dirfd, path, text, strlen(text), 0600, e);
}

/* Entry I of ARRAY; NULL where it is no string, of which json-c would make one. */
static const char *string_at(struct json_object *array, size_t i)
{
	struct json_object *entry = json_object_array_get_idx(array, i);

	return json_object_is_type(entry, json_type_string) ? json_object_get_string(entry) : NULL;
}

static int read_layers(struct json_object *body, struct image *image, struct err *e)
{
	struct json_object *layers = NULL;
	size_t count;

	TRY(json_get_array(body, "layers", true, &layers, e));
	count = json_object_array_length(layers);
	if (count < 1 || count > IMAGE_LAYERS_MAX)
		return err_set(e, EINVAL, "%zu layers: there must be 1 to %d", count,
		               IMAGE_LAYERS_MAX);
	for (size_t i = 0; i < count; i++) {
		const char *digest = string_at(layers, i);

		if (!digest || !image_digest_valid(digest))
			return err_set(e, EINVAL, "layer %zu is no digest", i);
		memcpy(image->layers[i], digest, IMAGE_DIGEST_SIZE);
	}
	image->layers_count = (int)count;
	return 0;
}

static int read_strings(struct json_object *body, const char *key, bool required,
                        struct string_list *list, struct err *e)
{
	struct json_object *array = NULL;

	TRY(json_get_array(body, key, required, &array, e));
	for (size_t i = 0; array && i < json_object_array_length(array); i++) {
		const char *text = string_at(array, i);

		if (!text)
			return err_set(e, EINVAL, "%s %zu is no text", key, i);
		TRY(string_list_add(list, text, e));
	}
	return 0;
}

static int read_text(struct json_object *body, const char *key, char *text, size_t size,
                     struct err *e)
{
	const char *value = "";

	TRY(json_get_string(body, key, false, &value, e));
	return text_format(text, size, e, "%s", value);
}

static int read_ids(struct json_object *body, struct image *image, struct err *e)
{
	uint64_t uid = UINT64_MAX, gid = UINT64_MAX;

	TRY(json_get_u64(body, "uid", false, &uid, e));
	TRY(json_get_u64(body, "gid", uid != UINT64_MAX, &gid, e));
	image->has_ids = uid != UINT64_MAX;
	if (!image->has_ids)
		return 0;
	if (uid >= UINT32_MAX || gid >= UINT32_MAX)
		return err_set(e, EINVAL, "the ids of the user are beyond what there is");
	image->uid = (uint32_t)uid;
	image->gid = (uint32_t)gid;
	return 0;
}

static int read_config(struct json_object *body, struct image *image, struct err *e)
{
	TRY(read_strings(body, "env", true, &image->env, e));
	for (size_t i = 0; i < image->env.count; i++)
		if (!strchr(image->env.items[i], '='))
			return err_set(e, EINVAL, "env %zu is no KEY=VALUE", i);
	TRY(read_text(body, "user", image->user, sizeof(image->user), e));
	TRY(read_ids(body, image, e));
	TRY(read_text(body, "workdir", image->workdir, sizeof(image->workdir), e));
	TRY(read_strings(body, "entrypoint", false, &image->entrypoint, e));
	return read_strings(body, "cmd", false, &image->cmd, e);
}

static int read_document(struct json_object *document, struct image *image, struct err *e)
{
	struct json_object *body = NULL;
	const char *architecture = NULL;
	uint64_t imported_at = 0;

	TRY(json_get_object(document, "image", true, &body, e));
	TRY(json_get_string(body, "architecture", true, &architecture, e));
	TRY(text_format(image->architecture, sizeof(image->architecture), e, "%s", architecture));
	TRY(read_layers(body, image, e));
	TRY(read_config(body, image, e));
	TRY(json_get_u64(document, "size_bytes", true, &image->size_bytes, e));
	TRY(json_get_u64(document, "entries", true, &image->entries, e));
	TRY(json_get_u64(document, "imported_at", true, &imported_at, e));
	image->imported_at = (int64_t)imported_at;
	return 0;
}

int image_document_read(const struct image_store *store, const char *digest, struct image *image,
                        struct err *e)
{
	scoped_json document = NULL;
	struct image read = {0};
	char path[IMAGE_PATH_SIZE];

	image_document_path(digest, path);
	memcpy(read.digest, digest, IMAGE_DIGEST_SIZE);
	if (json_parse_file(store->statefd, path, IMAGE_DOCUMENT_LIMIT_BYTES, &document, e) < 0 ||
	    read_document(document, &read, e) < 0) {
		image_release(&read);
		err_in(e, "%s/%s", store->path, path);
		return err_hint(e, "import the image again");
	}
	*image = read;
	return 0;
}
