/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and digests as text and as paths in the store. The only place where an operator's text
 * becomes a file's name: what passes here has no '.' or '..' component and no byte that a path, a
 * terminal or a shell could take for something else. '/' is written as '%' in a file's name, a
 * byte that no name can have.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rootfs/image_store.h"

static const char lower_alnum[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char hex_digits[] = "0123456789abcdef";

/* Lower-case letters and digits; '.', '_' and '-' between them, dots never two in a row. */
static bool component_valid(const char *text, size_t length)
{
	if (length == 0 || !strchr(lower_alnum, text[0]) || !strchr(lower_alnum, text[length - 1]))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!strchr(lower_alnum, text[i]) && !strchr("._-", text[i]))
			return false;
		if (text[i] == '.' && text[i + 1] == '.')
			return false;
	}
	return true;
}

static bool repository_valid(const char *text, size_t length)
{
	size_t start = 0;

	for (size_t i = 0; i <= length; i++) {
		if (i < length && text[i] != '/')
			continue;
		if (!component_valid(text + start, i - start))
			return false;
		start = i + 1;
	}
	return true;
}

static bool tag_valid(const char *tag)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t length = strlen(tag);

	return length > 0 && length <= 128 && tag[0] != '.' && tag[0] != '-' &&
	       strspn(tag, allowed) == length;
}

int image_name_parse(const char *text, char name[IMAGE_NAME_SIZE], struct err *e)
{
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	const char *tag = colon ? colon + 1 : "latest";

	if (length + 1 + strlen(tag) >= IMAGE_NAME_SIZE)
		return err_set(e, ENAMETOOLONG,
		               "image name %.40s...: longer than %d characters with "
		               "its tag; choose a shorter one",
		               text, IMAGE_NAME_SIZE - 1);
	if (!repository_valid(text, length) || !tag_valid(tag))
		return err_set(e, EINVAL,
		               "image name %s: not valid; lower-case letters, digits, and "
		               "'.', '_', '-', '/' between them, then :TAG where wanted",
		               text);
	if ((length == 6 && memcmp(text, "sha256", 6) == 0) ||
	    (length == 64 && strspn(text, hex_digits) >= 64))
		return err_set(e, EINVAL, "image name %s: reads as a digest; choose another", text);
	snprintf(name, IMAGE_NAME_SIZE, "%.*s:%s", (int)length, text, tag);
	return 0;
}

void image_name_path(const char *name, char path[IMAGE_PATH_SIZE])
{
	snprintf(path, IMAGE_PATH_SIZE, "images/names/%s", name);
	for (char *c = path + strlen("images/names/"); *c; c++)
		if (*c == '/')
			*c = '%';
}

bool image_name_from_file(const char *file, char name[IMAGE_NAME_SIZE])
{
	char decoded[IMAGE_NAME_SIZE] = {0};
	struct err ignored;

	if (strlen(file) >= sizeof(decoded) || strchr(file, '/') || !strchr(file, ':'))
		return false;
	for (size_t i = 0; file[i]; i++)
		decoded[i] = file[i] == '%' ? '/' : file[i];
	return image_name_parse(decoded, name, &ignored) == 0;
}

bool image_hex_prefix_valid(const char *text)
{
	size_t length = strlen(text);

	return length > 0 && length <= 64 && strspn(text, hex_digits) == length;
}

bool image_digest_valid(const char *digest)
{
	return strlen(digest) == IMAGE_DIGEST_SIZE - 1 && strncmp(digest, "sha256:", 7) == 0 &&
	       image_hex_prefix_valid(digest + 7);
}

const char *image_digest_hex(const char *digest)
{
	return digest + strlen("sha256:");
}

void image_layer_path(const char *digest, const char *file, char path[IMAGE_PATH_SIZE])
{
	snprintf(path, IMAGE_PATH_SIZE, "layers/sha256/%s%s%s", image_digest_hex(digest),
	         *file ? "/" : "", file);
}

void image_document_path(const char *digest, char path[IMAGE_PATH_SIZE])
{
	snprintf(path, IMAGE_PATH_SIZE, "images/sha256/%s.json", image_digest_hex(digest));
}
