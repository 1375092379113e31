/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import: a source becomes a slot, a slot becomes layers, a document and a name.
 *
 *	slot/layer...                      -> layers/sha256/HEX
 *	slot/document                      -> images/sha256/HEX.json
 *	slot/name                          -> images/names/NAME
 *
 * All of them are on the disk before the first rename, and the renames happen in this order under the
 * exclusive lock: killed between any two, the store has at most layers and a document that no name
 * reaches, which gc removes. A failure takes back what was renamed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

/* A store inside the source would be read while it is written, without end. */
static int check_not_around_store(const struct image_store *store, int sourcefd, const char *source,
                                  struct err *e)
{
	struct stat src, here, above;
	scoped_fd fd = file_open(store->statefd, ".", O_PATH | O_DIRECTORY, 0, e);

	TRY(fd);
	if (fstat(sourcefd, &src) < 0 || fstat(fd, &here) < 0)
		return err_sys(e, "%s", source);
	for (;;) {
		int upfd;

		if (here.st_dev == src.st_dev && here.st_ino == src.st_ino)
			return err_set(e, EINVAL,
			               "%s: the image store %s lies in it; import another "
			               "directory, or a copy",
			               source, store->path);
		upfd = file_open(fd, "..", O_PATH | O_DIRECTORY, 0, e);
		TRY(upfd);
		close_fd(&fd);
		fd = upfd;
		if (fstat(fd, &above) < 0)
			return err_sys(e, "%s", store->path);
		if (above.st_dev == here.st_dev && above.st_ino == here.st_ino)
			return 0;
		here = above;
	}
}

static int source_open(const struct image_store *store, const char *source, bool *is_directory,
                       struct err *e)
{
	scoped_fd fd = -1;
	struct stat st;

	if (strcmp(source, "-") == 0) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return err_sys(e, "standard input");
	} else {
		fd = file_open(AT_FDCWD, source, O_RDONLY | O_NOCTTY, 0, e);
		TRY(fd);
	}
	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", source);
	if (S_ISBLK(st.st_mode))
		return err_set(e, EINVAL, "%s: a block device; give a directory or a tar file",
		               source);
	*is_directory = S_ISDIR(st.st_mode);
	if (*is_directory)
		TRY(check_not_around_store(store, fd, source, e));
	return take_fd(&fd);
}

/* Unpacks the bytes or the directory SOURCEFD as a tree into the slot's "layer". */
static int unpack_tree(const struct image_import *import, int sourcefd, bool is_directory,
                       struct archive_result *counts, struct err *e)
{
	scoped_fd rootfd = image_layer_make(import->slot, "layer", e);
	struct image_stream stream = {
		.archiver = import->store->archiver,
		.source = import->source,
		.store_path = import->store->path,
		.sourcefd = sourcefd,
		.is_directory = is_directory,
		.targetfd = rootfd,
		.lockfd = import->slot->lockfd,
		.opaquefd = -1,
		.progress = import->progress,
		.data = import->data,
	};

	TRY(rootfd);
	TRY(image_stream_run(&stream, counts, import->image->layers[0], e));
	TRY(image_layer_finish(import->slot, "layer", rootfd, counts, "", e));
	return take_fd(&rootfd);
}

/* The slot's "layer" is the image's only one. */
static int take_tree(const struct image_import *import, int rootfd,
                     const struct archive_result *counts, struct err *e)
{
	struct image *image = import->image;

	if (import->choice && import->choice->architecture)
		snprintf(image->architecture, sizeof(image->architecture), "%s",
		         import->choice->architecture);
	else if (image_machine_of_tree(rootfd, image->architecture, e) < 0)
		return err_in(e, "%s", import->source);
	snprintf(import->layers->layers[0].from, sizeof(import->layers->layers[0].from), "layer");
	image->layers_count = 1;
	image->size_bytes = counts->bytes;
	image->entries = counts->entries;
	image->imported_at = time(NULL);
	return 0;
}

/* Fills the slot's layers, and the image but for its digest. Whether a tar is a root file system or
 * a packed image shows when it is unpacked, which a pipe lets us do but once. */
static int fill_layers(const struct image_import *import, struct err *e)
{
	scoped_fd sourcefd = -1, rootfd = -1;
	struct archive_result counts = {0};
	bool is_directory = false;

	sourcefd = source_open(import->store, import->source, &is_directory, e);
	TRY(sourcefd);
	if (is_directory && image_is_packed(sourcefd))
		return image_layers_import(import, sourcefd, e);
	rootfd = unpack_tree(import, sourcefd, is_directory, &counts, e);
	TRY(rootfd);
	if (!is_directory && image_is_packed(rootfd))
		return image_layers_import(import, rootfd, e);
	return take_tree(import, rootfd, &counts, e);
}

static int write_slot(const struct image_store *store, const struct image_slot *slot,
                      struct image *image, struct err *e)
{
	char line[IMAGE_DIGEST_SIZE + 1];

	TRY(image_document_write(slot->fd, "document", image, e));
	snprintf(line, sizeof(line), "%s\n", image->digest);
	TRY(file_replace(slot->fd, "name", line, strlen(line), 0600, e));
	/* A rename may reach the disk before the bytes of the tree do, unless they are there. */
	if (syncfs(slot->fd) < 0)
		return err_sys(e, "writing %s to the disk", store->path);
	return 0;
}

/* A rename out of the slot, and whether it was made. */
struct publication {
	const char *from;
	char to[IMAGE_PATH_SIZE];
	const char *directory;
	bool keep_existing; /* same digest, same content: what is there already stands */
	bool done;
};
struct publications {
	struct publication items[IMAGE_LAYERS_MAX + 2]; /* the layers, the document, the name */
	int count;
};

static struct publication *add_publication(struct publications *all, const char *from,
                                           const char *directory)
{
	struct publication *added = &all->items[all->count++];

	*added = (struct publication){.from = from, .directory = directory};
	return added;
}

static int publish(const struct image_store *store, const struct image_slot *slot,
                   struct publication *publication, struct err *e)
{
	if (publication->keep_existing &&
	    faccessat(store->statefd, publication->to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (renameat(slot->fd, publication->from, store->statefd, publication->to) < 0)
		return err_sys(e, "renaming to %s/%s", store->path, publication->to);
	publication->done = true;
	return image_dir_sync(store->statefd, publication->directory, e);
}

static void add_layers(struct publications *all, const struct image_import *import)
{
	for (int i = 0; i < import->image->layers_count; i++) {
		struct publication *layer;

		if (!*import->layers->layers[i].from)
			continue;
		layer = add_publication(all, import->layers->layers[i].from, "layers/sha256");
		layer->keep_existing = true;
		image_layer_path(import->image->layers[i], "", layer->to);
	}
}

/* A document that cannot be read is replaced: importing again is its way out. */
static void add_document(struct publications *all, const struct image_import *import)
{
	struct publication *document = add_publication(all, "document", "images/sha256");
	struct image there = {0};
	struct err ignored;

	image_document_path(import->image->digest, document->to);
	document->keep_existing = image_document_read(import->store, import->image->digest, &there,
	                                              &ignored) == 0;
	image_release(&there);
}

static int publish_all(const struct image_import *import, const char *name, struct err *e)
{
	const struct image_store *store = import->store;
	const struct image_slot *slot = import->slot;
	scoped_mem struct publications *all = calloc(1, sizeof(*all));

	if (!all)
		return err_set(e, ENOMEM, "%s: out of memory", import->source);
	add_layers(all, import);
	add_document(all, import);
	image_name_path(name, add_publication(all, "name", "images/names")->to);
	for (int i = 0; i < all->count; i++) {
		if (publish(store, slot, &all->items[i], e) == 0)
			continue;
		/* A name that replaced another is not taken back: it is valid by itself. */
		for (int j = i; j >= 0 && !all->items[all->count - 1].done; j--)
			if (all->items[j].done)
				renameat(store->statefd, all->items[j].to, slot->fd,
				         all->items[j].from);
		return -e->code;
	}
	return 0;
}

/* As the store has it: an image that was there already keeps the time of its first import. */
static int give_image(const struct image_store *store, const char *digest, const char *name,
                      struct image *image, struct err *e)
{
	struct image read = {0};

	TRY(image_document_read(store, digest, &read, e));
	if (string_list_add(&read.names, name, e) < 0) {
		image_release(&read);
		return -e->code;
	}
	*image = read;
	return 0;
}

int image_import(struct image_store *store, const char *source, const char *name,
                 const struct image_choice *choice, image_progress *progress, void *data,
                 struct image *image, struct err *e)
{
	__attribute__((cleanup(image_release))) struct image imported = {0};
	__attribute__((cleanup(image_layers_release))) struct image_layers layers;
	scoped_slot slot = IMAGE_SLOT_NONE;
	scoped_fd lockfd = -1;
	const struct image_import import = {
		.store = store,
		.slot = &slot,
		.source = source,
		.choice = choice,
		.progress = progress,
		.data = data,
		.image = &imported,
		.layers = &layers,
	};
	char canonical[IMAGE_NAME_SIZE];
	uint64_t freed_bytes = 0;
	struct err ignored; /* other imports' leftovers: gc is the one that complains of them */

	for (int i = 0; i < IMAGE_LAYERS_MAX; i++)
		layers.layers[i] = (struct image_layer)IMAGE_LAYER_NONE;
	TRY(image_name_parse(name, canonical, e));
	if (choice && choice->architecture && !image_machine_known(choice->architecture))
		return err_set(e, EINVAL,
		               "architecture %s: unknown; write it as Go does: amd64, "
		               "arm64, riscv64, ...",
		               choice->architecture);
	image_slots_clean(store, &freed_bytes, &ignored);
	TRY(image_slot_make(store, &slot, e));
	TRY(fill_layers(&import, e));
	TRY(write_slot(store, &slot, &imported, e));
	lockfd = image_store_lock(store, LOCK_EX, e);
	TRY(lockfd);
	TRY(publish_all(&import, canonical, e));
	return image ? give_image(store, imported.digest, canonical, image, e) : 0;
}
