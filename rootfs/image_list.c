/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding images: by name, by digest, all of them. Reads under the shared lock; a file that is no
 * image's (nobody but the store writes here) is passed over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

void image_release(struct image *image)
{
	string_list_release(&image->names);
	string_list_release(&image->env);
	string_list_release(&image->entrypoint);
	string_list_release(&image->cmd);
	*image = (struct image){0};
}

struct names_reading {
	const struct image_store *store;
	struct string_list *names;
};

/* The digest that NAME, which is valid, stands for. */
static int name_read(const struct image_store *store, const char *name,
                     char digest[IMAGE_DIGEST_SIZE], struct err *e)
{
	char path[IMAGE_PATH_SIZE], line[IMAGE_DIGEST_SIZE + 2]; /* and a newline */

	image_name_path(name, path);
	TRY((int)file_read(store->statefd, path, line, sizeof(line), e));
	line[strcspn(line, "\n")] = '\0';
	if (!image_digest_valid(line))
		return err_set(e, EINVAL, "%s/%s: holds no digest; remove it and import %s again",
		               store->path, path, name);
	memcpy(digest, line, IMAGE_DIGEST_SIZE);
	return 0;
}

static int read_name(void *data, const char *file, struct err *e)
{
	const struct names_reading *reading = data;
	char name[IMAGE_NAME_SIZE], digest[IMAGE_DIGEST_SIZE];
	char assignment[IMAGE_NAME_SIZE + sizeof(digest)];

	if (!image_name_from_file(file, name))
		return 0;
	TRY(name_read(reading->store, name, digest, e));
	TRY(text_format(assignment, sizeof(assignment), e, "%s=%s", name, digest));
	return string_list_add(reading->names, assignment, e);
}

static int compare_strings(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

int image_names_read(const struct image_store *store, struct string_list *names, struct err *e)
{
	struct names_reading reading = {.store = store, .names = names};

	TRY(image_dir_visit(store->statefd, "images/names", read_name, &reading, e));
	if (names->count)
		qsort(names->items, names->count, sizeof(*names->items), compare_strings);
	return 0;
}

int image_names_of(const struct string_list *names, const char *digest, struct string_list *out,
                   struct err *e)
{
	for (size_t i = 0; i < names->count; i++) {
		const char *assignment = names->items[i];
		size_t length = strcspn(assignment, "=");
		char name[IMAGE_NAME_SIZE];

		if (strcmp(assignment + length + 1, digest) != 0)
			continue;
		TRY(text_format(name, sizeof(name), e, "%.*s", (int)length, assignment));
		TRY(string_list_add(out, name, e));
	}
	return 0;
}

struct prefix_search {
	const char *prefix; /* of HEX */
	char digest[IMAGE_DIGEST_SIZE];
	int found;
};

bool image_document_digest(const char *file, char digest[IMAGE_DIGEST_SIZE])
{
	size_t length = strcspn(file, ".");

	if (length != IMAGE_HEX_SIZE - 1 || strcmp(file + length, ".json") != 0)
		return false;
	snprintf(digest, IMAGE_DIGEST_SIZE, "sha256:%.*s", (int)length, file);
	return image_digest_valid(digest);
}

static int match_prefix(void *data, const char *file, struct err *e)
{
	struct prefix_search *search = data;
	char digest[IMAGE_DIGEST_SIZE];

	(void)e;
	if (!image_document_digest(file, digest) ||
	    strncmp(image_digest_hex(digest), search->prefix, strlen(search->prefix)) != 0)
		return 0;
	memcpy(search->digest, digest, sizeof(digest));
	search->found++;
	return 0;
}

/* The digits that REFERENCE gives of a digest, or NULL where it can be none. */
static const char *hex_of_reference(const char *reference)
{
	const char *hex = strncmp(reference, "sha256:", 7) == 0 ? reference + 7 : reference;

	if (!image_hex_prefix_valid(hex) ||
	    (hex == reference && strlen(hex) < IMAGE_HEX_PREFIX_MIN))
		return NULL;
	return hex;
}

static int no_such_image(const struct image_store *store, const char *reference, struct err *e)
{
	if (strcmp(reference, "default") == 0)
		return err_set(e, ENOENT,
		               "image default: not in %s; make it with `make image`, or "
		               "import another with `agentdock image import SOURCE default`",
		               store->path);
	err_set(e, ENOENT,
	        "image %s: not in %s; see `agentdock image list`, or import it with `agentdock "
	        "image import SOURCE NAME`",
	        reference, store->path);
	if (image_hex_prefix_valid(reference) && strlen(reference) < IMAGE_HEX_PREFIX_MIN)
		return err_hint(e, "of a digest, give %d digits at least", IMAGE_HEX_PREFIX_MIN);
	return -e->code;
}

int image_resolve(const struct image_store *store, const char *reference,
                  char digest[IMAGE_DIGEST_SIZE], char name[IMAGE_NAME_SIZE], struct err *e)
{
	struct prefix_search search = {.prefix = hex_of_reference(reference)};
	int valid = image_name_parse(reference, name, e);
	int named = valid < 0 ? -ENOENT : name_read(store, name, digest, e);

	if (named != -ENOENT)
		return named;
	name[0] = '\0';
	if (!search.prefix)
		return valid < 0 ? valid : no_such_image(store, reference, e);
	TRY(image_dir_visit(store->statefd, "images/sha256", match_prefix, &search, e));
	if (search.found == 0)
		return no_such_image(store, reference, e);
	if (search.found > 1)
		return err_set(e, EINVAL, "image %s: %d digests begin so; give more of it",
		               reference, search.found);
	memcpy(digest, search.digest, IMAGE_DIGEST_SIZE);
	return 0;
}

static int load(const struct image_store *store, const struct string_list *names,
                const char *digest, struct image *image, struct err *e)
{
	struct image loaded = {0};

	TRY(image_document_read(store, digest, &loaded, e));
	if (image_names_of(names, digest, &loaded.names, e) < 0) {
		image_release(&loaded);
		return -e->code;
	}
	*image = loaded;
	return 0;
}

int image_find(struct image_store *store, const char *reference, struct image *image, struct err *e)
{
	scoped_fd lockfd = image_store_lock(store, LOCK_SH, e);
	char digest[IMAGE_DIGEST_SIZE], name[IMAGE_NAME_SIZE];
	struct image found = {0};

	TRY(lockfd);
	TRY(image_resolve(store, reference, digest, name, e));
	TRY(image_document_read(store, digest, &found, e));
	if (name[0] && string_list_add(&found.names, name, e) < 0) {
		image_release(&found);
		return -e->code;
	}
	*image = found;
	return 0;
}

int image_find_names(struct image_store *store, const char *reference, struct image *image,
                     struct err *e)
{
	scoped_fd lockfd = image_store_lock(store, LOCK_SH, e);
	scoped_strings names = {0};
	char digest[IMAGE_DIGEST_SIZE], name[IMAGE_NAME_SIZE];

	TRY(lockfd);
	TRY(image_resolve(store, reference, digest, name, e));
	TRY(image_names_read(store, &names, e));
	return load(store, &names, digest, image, e);
}

struct listing {
	const struct image_store *store;
	struct string_list names;
	struct image *images;
	size_t count;
};

static void listing_release(struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		image_release(&listing->images[i]);
	free(listing->images);
	string_list_release(&listing->names);
}

static int list_one(void *data, const char *file, struct err *e)
{
	struct listing *listing = data;
	char digest[IMAGE_DIGEST_SIZE];
	struct image *grown;

	if (!image_document_digest(file, digest))
		return 0;
	grown = reallocarray(listing->images, listing->count + 1, sizeof(*grown));
	if (!grown)
		return err_set(e, ENOMEM, "listing images: out of memory");
	listing->images = grown;
	TRY(load(listing->store, &listing->names, digest, &grown[listing->count], e));
	listing->count++;
	return 0;
}

/* Named ones first, by name; then the newest first. */
static int compare_images(const void *left, const void *right)
{
	const struct image *a = left, *b = right;
	const char *a_name = a->names.count ? a->names.items[0] : NULL;
	const char *b_name = b->names.count ? b->names.items[0] : NULL;

	if (a_name && b_name)
		return strcmp(a_name, b_name);
	if (a_name || b_name)
		return a_name ? -1 : 1;
	return a->imported_at < b->imported_at ? 1 : -(a->imported_at > b->imported_at);
}

int image_list(struct image_store *store, struct image **images, size_t *count, struct err *e)
{
	scoped_fd lockfd = image_store_lock(store, LOCK_SH, e);
	__attribute__((cleanup(listing_release))) struct listing listing = {.store = store};

	TRY(lockfd);
	TRY(image_names_read(store, &listing.names, e));
	TRY(image_dir_visit(store->statefd, "images/sha256", list_one, &listing, e));
	if (listing.count)
		qsort(listing.images, listing.count, sizeof(*listing.images), compare_images);
	*images = take_mem(&listing.images);
	*count = listing.count;
	listing.count = 0;
	return 0;
}
