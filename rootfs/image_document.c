/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document of an image, images/sha256/HEX.json, and digests.
 *
 *	{"image": {"architecture": ..., "layers": [...], "env": [...]},
 *	 "size_bytes": ..., "entries": ..., "imported_at": ...}
 *
 * HEX is the SHA-256 of the text of "image" in just this order without white space, so an image's
 * digest depends on what a sandbox gets and not on when or from which packing it was imported.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

int image_hash_start(struct image_hash *hash, struct err *e)
{
	/* The host's openssl.cnf may ask for modules, which a static program cannot load. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	hash->context = EVP_MD_CTX_new();
	if (!hash->context || EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1)
		return err_set(e, ENOTSUP, "SHA-256: libcrypto cannot start it");
	return 0;
}

int image_hash_add(struct image_hash *hash, const void *data, size_t length, struct err *e)
{
	if (EVP_DigestUpdate(hash->context, data, length) != 1)
		return err_set(e, EIO, "SHA-256: libcrypto failed");
	return 0;
}

int image_hash_finish(struct image_hash *hash, char digest[IMAGE_DIGEST_SIZE], struct err *e)
{
	unsigned char value[EVP_MAX_MD_SIZE];
	unsigned length = 0;

	if (EVP_DigestFinal_ex(hash->context, value, &length) != 1 || length != 32)
		return err_set(e, EIO, "SHA-256: libcrypto failed");
	snprintf(digest, IMAGE_DIGEST_SIZE, "sha256:");
	for (unsigned i = 0; i < length; i++)
		snprintf(digest + 7 + 2 * (size_t)i, 3, "%02x", value[i]);
	return 0;
}

void image_hash_release(struct image_hash *hash)
{
	EVP_MD_CTX_free(hash->context);
	hash->context = NULL;
}

static int digest_of_text(const char *text, char digest[IMAGE_DIGEST_SIZE], struct err *e)
{
	__attribute__((cleanup(image_hash_release))) struct image_hash hash = {0};

	TRY(image_hash_start(&hash, e));
	TRY(image_hash_add(&hash, text, strlen(text), e));
	return image_hash_finish(&hash, digest, e);
}

static void add_strings(struct json_object *array, const char *text)
{
	json_object_array_add(array, json_object_new_string(text));
}

int image_document_write(int dirfd, const char *path, struct image *image, struct err *e)
{
	scoped_json document = json_object_new_object();
	struct json_object *body = json_add_object(document, "image");
	struct json_object *layers, *env;
	const char *text;

	json_add_string(body, "architecture", image->architecture);
	layers = json_add_array(body, "layers");
	for (int i = 0; i < image->layers_count; i++)
		add_strings(layers, image->layers[i]);
	env = json_add_array(body, "env");
	for (size_t i = 0; i < image->env.count; i++)
		add_strings(env, image->env.items[i]);
	text = json_object_to_json_string_ext(body, JSON_C_TO_STRING_NOSLASHESCAPE);
	TRY(digest_of_text(text, image->digest, e));

	json_add_u64(document, "size_bytes", image->size_bytes);
	json_add_u64(document, "entries", image->entries);
	json_add_u64(document, "imported_at", (uint64_t)image->imported_at);
	text = json_object_to_json_string_ext(document, JSON_C_TO_STRING_NOSLASHESCAPE);
	return file_replace(dirfd, path, text, strlen(text), 0600, e);
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
		const char *digest = json_object_get_string(json_object_array_get_idx(layers, i));

		if (!digest || !image_digest_valid(digest))
			return err_set(e, EINVAL, "layer %zu is no digest", i);
		memcpy(image->layers[i], digest, IMAGE_DIGEST_SIZE);
	}
	image->layers_count = (int)count;
	return 0;
}

static int read_env(struct json_object *body, struct image *image, struct err *e)
{
	struct json_object *env = NULL;

	TRY(json_get_array(body, "env", true, &env, e));
	for (size_t i = 0; i < json_object_array_length(env); i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(env, i));

		if (!text || !strchr(text, '='))
			return err_set(e, EINVAL, "env %zu is no KEY=VALUE", i);
		TRY(string_list_add(&image->env, text, e));
	}
	return 0;
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
	TRY(read_env(body, image, e));
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
