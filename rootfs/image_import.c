/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import: a source becomes a slot, a slot becomes a layer, a document and a name.
 *
 *	slot/layer/root, slot/layer/lock   -> layers/sha256/HEX
 *	slot/document                      -> images/sha256/HEX.json
 *	slot/name                          -> images/names/NAME
 *
 * All three are on the disk before the first rename, and the renames happen in this order under the
 * exclusive lock: killed between any two, the store has at most a layer or a document that no name
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

static int make_layer(const struct image_slot *slot, struct err *e)
{
	scoped_fd lockfd = -1;
	int rootfd;

	TRY(dir_make_all(slot->fd, "layer", 0700, e));
	lockfd = file_open(slot->fd, "layer/lock", O_RDWR | O_CREAT | O_EXCL, 0600, e);
	TRY(lockfd);
	TRY(dir_make_all(slot->fd, "layer/root", 0755, e));
	rootfd = file_open(slot->fd, "layer/root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	return rootfd;
}

/* Fills the slot's layer, and IMAGE but for its digest. */
static int fill_layer(const struct image_store *store, const struct image_slot *slot,
                      const char *source, image_progress *progress, void *data, struct image *image,
                      struct err *e)
{
	scoped_fd sourcefd = -1, rootfd = -1;
	struct archive_result result = {0};
	struct image_stream stream = {
		.archiver = store->archiver,
		.source = source,
		.store_path = store->path,
		.lockfd = slot->lockfd,
		.progress = progress,
		.data = data,
	};

	sourcefd = source_open(store, source, &stream.is_directory, e);
	TRY(sourcefd);
	rootfd = make_layer(slot, e);
	TRY(rootfd);
	stream.sourcefd = sourcefd;
	stream.targetfd = rootfd;
	TRY(image_stream_run(&stream, &result, image->layers[0], e));
	/* Whatever the archive said of its top directory: the sandbox's user must get in. */
	if (fchown(rootfd, 0, 0) < 0 || fchmod(rootfd, 0755) < 0)
		return err_sys(e, "the top directory of %s", source);
	if (!image->architecture[0] && image_machine_of_tree(rootfd, image->architecture, e) < 0)
		return err_in(e, "%s", source);
	image->layers_count = 1;
	image->size_bytes = result.bytes;
	image->entries = result.entries;
	image->imported_at = time(NULL);
	return 0;
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
enum { PUBLICATIONS = 3 };

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

static int publish_all(const struct image_store *store, const struct image_slot *slot,
                       const struct image *image, const char *name, struct err *e)
{
	struct image there = {0};
	struct publication publications[PUBLICATIONS] = {
		{.from = "layer", .directory = "layers/sha256", .keep_existing = true},
		{.from = "document", .directory = "images/sha256"},
		{.from = "name", .directory = "images/names"},
	};
	struct err ignored;

	image_layer_path(image->layers[0], "", publications[0].to);
	image_document_path(image->digest, publications[1].to);
	image_name_path(name, publications[2].to);
	/* A document that cannot be read is replaced: importing again is its way out. */
	publications[1].keep_existing = image_document_read(store, image->digest, &there,
	                                                    &ignored) == 0;
	image_release(&there);
	for (int i = 0; i < PUBLICATIONS; i++) {
		if (publish(store, slot, &publications[i], e) == 0)
			continue;
		/* A name that replaced another is not taken back: it is valid by itself. */
		for (int j = i; j >= 0 && !publications[PUBLICATIONS - 1].done; j--)
			if (publications[j].done)
				renameat(store->statefd, publications[j].to, slot->fd,
				         publications[j].from);
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
                 const char *architecture, image_progress *progress, void *data,
                 struct image *image, struct err *e)
{
	__attribute__((cleanup(image_release))) struct image imported = {0};
	scoped_slot slot = IMAGE_SLOT_NONE;
	scoped_fd lockfd = -1;
	char canonical[IMAGE_NAME_SIZE];
	uint64_t freed_bytes = 0;
	struct err ignored; /* other imports' leftovers: gc is the one that complains of them */

	TRY(image_name_parse(name, canonical, e));
	if (architecture && !image_machine_known(architecture))
		return err_set(e, EINVAL,
		               "architecture %s: unknown; write it as Go does: amd64, "
		               "arm64, riscv64, ...",
		               architecture);
	snprintf(imported.architecture, sizeof(imported.architecture), "%s",
	         architecture ? architecture : "");
	image_slots_clean(store, &freed_bytes, &ignored);
	TRY(image_slot_make(store, &slot, e));
	TRY(fill_layer(store, &slot, source, progress, data, &imported, e));
	TRY(write_slot(store, &slot, &imported, e));
	lockfd = image_store_lock(store, LOCK_EX, e);
	TRY(lockfd);
	TRY(publish_all(store, &slot, &imported, canonical, e));
	return image ? give_image(store, imported.digest, canonical, image, e) : 0;
}
