/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing: rm takes a name away, gc what no name reaches. A layer that is held (its lock file is
 * locked) stays; one that goes is first renamed into a slot under the store's lock, so that nobody
 * can open it half-removed, and is deleted after the lock is given back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

static int unlink_synced(const struct image_store *store, const char *path, const char *directory,
                         struct err *e)
{
	if (unlinkat(store->statefd, path, 0) < 0 && errno != ENOENT)
		return err_sys(e, "removing %s/%s", store->path, path);
	return image_dir_sync(store->statefd, directory, e);
}

static int unlink_document(const struct image_store *store, const char *digest, struct err *e)
{
	char path[IMAGE_PATH_SIZE];

	image_document_path(digest, path);
	return unlink_synced(store, path, "images/sha256", e);
}

int image_remove(struct image_store *store, const char *reference, struct err *e)
{
	scoped_fd lockfd = image_store_lock(store, LOCK_EX, e);
	scoped_strings names = {0}, same = {0};
	char digest[IMAGE_DIGEST_SIZE], name[IMAGE_NAME_SIZE], path[IMAGE_PATH_SIZE];

	TRY(lockfd);
	TRY(image_resolve(store, reference, digest, name, e));
	TRY(image_names_read(store, &names, e));
	TRY(image_names_of(&names, digest, &same, e));
	if (!name[0] && same.count > 1)
		return err_set(e, EBUSY,
		               "image %s: has %zu names, among them %s and %s; remove it "
		               "by name",
		               reference, same.count, same.items[0], same.items[1]);
	if (same.count > 0) {
		image_name_path(name[0] ? name : same.items[0], path);
		TRY(unlink_synced(store, path, "images/names", e));
	}
	/* After the name: a document without a name is gc's, a name without a document is broken.
	 */
	return same.count > 1 ? 0 : unlink_document(store, digest, e);
}

struct collection {
	const struct image_store *store;
	struct string_list names;
	struct string_list live; /* digests of layers */
	struct image_slot slot;
	uint64_t layers;
};

static void collection_release(struct collection *collection)
{
	string_list_release(&collection->names);
	string_list_release(&collection->live);
	image_slot_release(&collection->slot);
}

static bool has_string(const struct string_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], text) == 0)
			return true;
	return false;
}

/* A named image that cannot be read stops the collection: its layers are not known to be unused. */
static int mark_live(struct collection *collection, struct err *e)
{
	TRY(image_names_read(collection->store, &collection->names, e));
	for (size_t i = 0; i < collection->names.count; i++) {
		const char *digest = strchr(collection->names.items[i], '=') + 1;
		struct image image = {0};
		int result = image_document_read(collection->store, digest, &image, e);

		for (int j = 0; result == 0 && j < image.layers_count; j++)
			if (!has_string(&collection->live, image.layers[j]))
				result = string_list_add(&collection->live, image.layers[j], e);
		image_release(&image);
		TRY(result);
	}
	return 0;
}

static int collect_document(void *data, const char *file, struct err *e)
{
	struct collection *collection = data;
	scoped_strings names = {0};
	char digest[IMAGE_DIGEST_SIZE];

	if (!image_document_digest(file, digest))
		return 0;
	TRY(image_names_of(&collection->names, digest, &names, e));
	return names.count ? 0 : unlink_document(collection->store, digest, e);
}

static int collect_layer(void *data, const char *hex, struct err *e)
{
	struct collection *collection = data;
	const struct image_store *store = collection->store;
	char digest[IMAGE_DIGEST_SIZE], path[IMAGE_PATH_SIZE];
	scoped_fd lockfd = -1;

	if (strlen(hex) != IMAGE_HEX_SIZE - 1 || !image_hex_prefix_valid(hex))
		return 0;
	snprintf(digest, sizeof(digest), "sha256:%s", hex);
	if (has_string(&collection->live, digest))
		return 0;
	image_layer_path(digest, "lock", path);
	lockfd = openat(store->statefd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (lockfd < 0 && errno != ENOENT)
		return err_sys(e, "%s/%s", store->path, path);
	if (lockfd >= 0 && flock(lockfd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "locking %s/%s", store->path, path);
	image_layer_path(digest, "", path);
	if (renameat(store->statefd, path, collection->slot.fd, hex) < 0)
		return err_sys(e, "removing %s/%s", store->path, path);
	collection->layers++;
	return 0;
}

static int collect(struct collection *collection, struct err *e)
{
	const struct image_store *store = collection->store;
	scoped_fd lockfd = image_store_lock(store, LOCK_EX, e);

	TRY(lockfd);
	TRY(mark_live(collection, e));
	TRY(image_dir_visit(store->statefd, "images/sha256", collect_document, collection, e));
	TRY(image_dir_visit(store->statefd, "layers/sha256", collect_layer, collection, e));
	return image_dir_sync(store->statefd, "layers/sha256", e);
}

int image_gc(struct image_store *store, uint64_t *freed_bytes, uint64_t *layers, struct err *e)
{
	__attribute__((cleanup(collection_release))) struct collection collection = {
		.store = store,
		.slot = IMAGE_SLOT_NONE,
	};
	uint64_t slots_bytes = 0, layers_bytes = 0;

	TRY(image_slots_clean(store, &slots_bytes, e));
	TRY(image_slot_make(store, &collection.slot, e));
	TRY(collect(&collection, e));
	if (collection.layers) {
		TRY(tree_measure(collection.slot.tmpfd, collection.slot.name, &layers_bytes, NULL,
		                 e));
		TRY(tree_remove(collection.slot.tmpfd, collection.slot.name, e));
	}
	*freed_bytes = slots_bytes + layers_bytes;
	*layers = collection.layers;
	return 0;
}
