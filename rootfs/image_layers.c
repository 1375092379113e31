/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of a packed image. Each file is hashed before anything parses it, and what comes out
 * of it is hashed on its way to the tree: the first must be the manifest's digest, the second the
 * config's diff id, which is what the layer is called in the store. A layer that is there already
 * and came out of the very same file is held by its lock until the image has its name, and not
 * unpacked again; a diff id alone is no proof, for anybody can write one.
 *
 * Overlayfs takes no layer twice. Of equal ones only the topmost counts, because it hides and
 * removes all that the other ones have; and below a layer whose root is opaque nothing counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/archiver.h"
#include "rootfs/image_plan.h"
#include "rootfs/image_store.h"
#include "rootfs/overlay_internal.h"

enum { COUNTS_SIZE = 64 + IMAGE_DIGEST_SIZE };

static void layer_release(struct image_layer *layer)
{
	close_fd(&layer->lockfd);
	close_fd(&layer->rootfd);
}

/* LAYER, which its scope gives up. */
static struct image_layer layer_take(struct image_layer *layer)
{
	struct image_layer taken = *layer;

	*layer = (struct image_layer)IMAGE_LAYER_NONE;
	return taken;
}

void image_layers_release(struct image_layers *layers)
{
	for (int i = 0; i < IMAGE_LAYERS_MAX; i++)
		layer_release(&layers->layers[i]);
}

int image_layer_make(const struct image_slot *slot, const char *name, struct err *e)
{
	scoped_fd dirfd = -1, lockfd = -1;

	TRY(dir_make_all(slot->fd, name, 0700, e));
	dirfd = file_open(slot->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(dirfd);
	lockfd = file_open(dirfd, "lock", O_RDWR | O_CREAT | O_EXCL, 0600, e);
	TRY(lockfd);
	TRY(dir_make_all(dirfd, "root", 0755, e));
	return file_open(dirfd, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
}

int image_layer_finish(const struct image_slot *slot, const char *name, int rootfd,
                       const struct archive_result *counts, const char *blob, struct err *e)
{
	char path[IMAGE_PATH_SIZE], line[COUNTS_SIZE];

	/* Whatever the archive said of its top directory: the sandbox's user must get in. */
	if (fchown(rootfd, 0, 0) < 0 || fchmod(rootfd, 0755) < 0)
		return err_sys(e, "the top directory of the tree");
	TRY(text_format(path, sizeof(path), e, "%s/counts", name));
	snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %s\n", counts->bytes, counts->entries,
	         blob);
	return file_replace(slot->fd, path, line, strlen(line), 0600, e);
}

/* ---- the file of a layer ---- */

/* A layout may be anybody's: a FIFO or a device must not be opened for reading. */
static int layer_file(int dirfd, const char *path, struct err *e)
{
	scoped_fd pathfd = file_open2(dirfd, path, O_PATH, 0,
	                              RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, e);
	char self[32];
	struct stat st;

	TRY(pathfd);
	if (fstat(pathfd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "%s is no file", path);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", pathfd);
	return file_open(AT_FDCWD, self, O_RDONLY, 0, e);
}

/* The file, once its digest is found to be right. */
static int open_checked(int dirfd, const struct image_plan_layer *planned, struct err *e)
{
	scoped_fd fd = layer_file(dirfd, planned->path, e);
	char found[IMAGE_DIGEST_SIZE];

	TRY(fd);
	if (!*planned->digest)
		return take_fd(&fd);
	TRY(image_hash_file(fd, planned->path, found, e));
	if (strcmp(found, planned->digest) != 0)
		return err_set(e, EINVAL, "%s is damaged: its digest is %s", planned->path, found);
	return take_fd(&fd);
}

/* ---- opaque directories ---- */

static int make_opaque(int rootfd, const char *path, struct err *e)
{
	char shown[200];
	scoped_fd fd = file_open2(
		rootfd, path, O_RDONLY | O_DIRECTORY, 0,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV, e);

	text_printable(path, shown, sizeof(shown));
	if (fd < 0)
		return err_set(e, EINVAL, "the opaque directory %s: %s", shown,
		               strerrordesc_np(-fd));
	if (fsetxattr(fd, OVERLAY_OPAQUE, "y", 1, 0) < 0)
		return err_sys(e, "the opaque directory %s: setting " OVERLAY_OPAQUE, shown);
	return 0;
}

/* OPAQUEFD was filled by who has parsed the layer. What it says is done beneath ROOTFD or not at
 * all, and kept beside it. */
static int make_opaques(const struct image_slot *slot, const char *name, int rootfd, int opaquefd,
                        struct err *e)
{
	scoped_mem struct archive_opaque *opaque = malloc(sizeof(*opaque));
	const char *path, *end;
	char kept[IMAGE_PATH_SIZE];

	if (!opaque)
		return err_set(e, ENOMEM, "no memory for the names of opaque directories");
	if (pread(opaquefd, opaque, sizeof(*opaque), 0) != (ssize_t)sizeof(*opaque))
		return err_sys(e, "reading the names of opaque directories");
	if (!opaque->count)
		return 0;
	path = opaque->names;
	end = opaque->names + sizeof(opaque->names);
	for (uint32_t i = 0; i < opaque->count; i++) {
		const char *nul = memchr(path, '\0', (size_t)(end - path));

		if (!nul)
			return err_set(e, EINVAL, "the names of opaque directories do not end");
		TRY(make_opaque(rootfd, path, e));
		path = nul + 1;
	}
	TRY(text_format(kept, sizeof(kept), e, "%s/opaque", name));
	return file_replace(slot->fd, kept, opaque->names, (size_t)(path - opaque->names), 0600, e);
}

bool image_dir_is_opaque(int fd)
{
	char value[2], self[32];

	/* a descriptor that is a path has no attributes */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return getxattr(self, OVERLAY_OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* ---- one layer ---- */

/* Progress of one layer, told as that of the whole. */
static void tell_whole(void *data, uint64_t bytes, uint64_t entries)
{
	const struct image_import *import = data;

	import->progress(import->data, import->image->size_bytes + bytes,
	                 import->image->entries + entries);
}

static int unpack_layer(const struct image_import *import, const struct image_plan_layer *planned,
                        int filefd, const char *name, int *rootfd, struct archive_result *counts,
                        struct err *e)
{
	scoped_fd opaquefd = archiver_memory("opaque", sizeof(struct archive_opaque), e);
	scoped_fd fd = -1;
	char digest[IMAGE_DIGEST_SIZE];
	struct image_stream stream = {
		.archiver = import->store->archiver,
		.source = planned->path,
		.store_path = import->store->path,
		.sourcefd = filefd,
		.lockfd = import->slot->lockfd,
		.progress = import->progress ? tell_whole : NULL,
		.data = (void *)(uintptr_t)import,
		.bytes_before = import->image->size_bytes,
		.entries_before = import->image->entries,
	};

	TRY(opaquefd);
	fd = image_layer_make(import->slot, name, e);
	TRY(fd);
	stream.targetfd = fd;
	stream.opaquefd = opaquefd;
	TRY(image_stream_run(&stream, counts, digest, e));
	if (strcmp(digest, planned->diff_id) != 0)
		return err_set(e, EINVAL, "%s: it unpacks to %s and not to the config's %s",
		               planned->path, digest, planned->diff_id);
	TRY(make_opaques(import->slot, name, fd, opaquefd, e));
	TRY(image_layer_finish(import->slot, name, fd, counts, planned->digest, e));
	*rootfd = take_fd(&fd);
	return 0;
}

/* Of a layer that came out of the file BLOB. */
static bool parse_counts(char *line, const char *blob, struct archive_result *counts)
{
	const char *bytes = strsep(&line, " "), *entries = strsep(&line, " ");
	const char *from = strsep(&line, "\n");
	struct err ignored;

	return from && *blob && strcmp(from, blob) == 0 &&
	       parse_u64(bytes, UINT64_MAX, &counts->bytes, &ignored) == 0 &&
	       parse_u64(entries, UINT64_MAX, &counts->entries, &ignored) == 0;
}

/* 1: the store has the layer, out of this file, and TAKEN holds it from now on. */
static int find_layer(const struct image_store *store, const struct image_plan_layer *planned,
                      struct image_layer *taken, struct archive_result *counts, struct err *e)
{
	__attribute__((cleanup(layer_release))) struct image_layer found = IMAGE_LAYER_NONE;
	scoped_fd storefd = image_store_lock(store, LOCK_SH, e);
	char path[IMAGE_PATH_SIZE], line[COUNTS_SIZE];
	struct err ignored;
	int result;

	TRY(storefd);
	result = image_layer_open(store, planned->diff_id, &found.rootfd, &found.lockfd, e);
	if (result == -ENOENT)
		return 0;
	TRY(result);
	image_layer_path(planned->diff_id, "counts", path);
	if (file_read(store->statefd, path, line, sizeof(line), &ignored) < 0 ||
	    !parse_counts(line, planned->digest, counts))
		return 0;
	*taken = layer_take(&found);
	return 1;
}

/* What is lower in the image no longer counts. */
static void forget_lower(const struct image_import *import)
{
	struct image *image = import->image;

	for (int i = 0; i < image->layers_count; i++)
		layer_release(&import->layers->layers[i]);
	image->layers_count = 0;
	image->size_bytes = 0;
	image->entries = 0;
}

static int take_layer(const struct image_import *import, int filefd,
                      const struct image_plan_layer *planned, int number, struct err *e)
{
	struct archive_result counts = {0};
	struct image *image = import->image;
	__attribute__((cleanup(layer_release))) struct image_layer taken = IMAGE_LAYER_NONE;
	int found;

	found = find_layer(import->store, planned, &taken, &counts, e);
	if (found == 0) {
		snprintf(taken.from, sizeof(taken.from), "layer%d", number);
		found = unpack_layer(import, planned, filefd, taken.from, &taken.rootfd, &counts,
		                     e);
	}
	TRY(found);
	if (image_dir_is_opaque(taken.rootfd))
		forget_lower(import);
	import->layers->layers[image->layers_count] = layer_take(&taken);
	memcpy(image->layers[image->layers_count++], planned->diff_id, IMAGE_DIGEST_SIZE);
	image->size_bytes += counts.bytes;
	image->entries += counts.entries;
	return 0;
}

static bool comes_again(const struct image_plan *plan, int layer)
{
	for (int i = layer + 1; i < plan->layers_count; i++)
		if (strcmp(plan->layers[i].diff_id, plan->layers[layer].diff_id) == 0)
			return true;
	return false;
}

int image_layers_import(const struct image_import *import, int dirfd, struct err *e)
{
	scoped_mem struct image_plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return err_set(e, ENOMEM, "%s: no memory to plan with", import->source);
	TRY(image_plan_make(import->store, dirfd, import->source, import->choice, plan, e));
	if (image_plan_config(plan, import->image, e) < 0)
		return err_in(e, "%s", import->source);
	for (int i = 0; i < plan->layers_count; i++) {
		scoped_fd filefd = open_checked(dirfd, &plan->layers[i], e);

		if (filefd < 0 || (!comes_again(plan, i) &&
		                   take_layer(import, filefd, &plan->layers[i], i + 1, e) < 0))
			return err_in(e, "%s: layer %d", import->source, i + 1);
	}
	import->image->imported_at = time(NULL);
	return image_user_resolve(import->store, import->layers, import->image, e);
}

static bool is_file(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

bool image_is_packed(int dirfd)
{
	char architecture[16];
	struct err ignored;

	return (is_file(dirfd, "oci-layout") || is_file(dirfd, "manifest.json")) &&
	       image_machine_of_tree(dirfd, architecture, &ignored) < 0;
}
