/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image as an OCI archive. Layers are packed into a slot by agentdock-archive, as they are in the
 * store: with their whiteouts, without the devices that an import has left behind. So their digests
 * are not always those of the image that was imported, but those of an export that is imported and
 * exported again are the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "rootfs/archiver.h"
#include "rootfs/image_store.h"

struct export
{
	const struct image_store *store;
	struct image image;
	struct image_slot slot;
	int layerfds[IMAGE_LAYERS_MAX], lockfds[IMAGE_LAYERS_MAX];
	struct json_object *layers;   /* descriptors; owned */
	struct json_object *diff_ids; /* owned */
};

static void export_release(struct export *export)
{
	for (int i = 0; i < IMAGE_LAYERS_MAX; i++) {
		close_fd(&export->layerfds[i]);
		close_fd(&export->lockfds[i]);
	}
	json_release(&export->layers);
	json_release(&export->diff_ids);
	image_slot_release(&export->slot);
	image_release(&export->image);
}

/* Packs the directory DIRFD to OUTFD. */
static int pack(const struct export *export, const char *const argv[], int dirfd, int opaquefd,
                int outfd, struct err *e)
{
	__attribute__((cleanup(archiver_release))) struct archiver child = ARCHIVER_NONE;
	int fds[ARCHIVER_FDS] = {dirfd, outfd, -1, -1, -1, export->slot.lockfd, opaquefd, -1};

	TRY(archiver_complaint(&child, e));
	fds[ARCHIVER_STDERR] = child.complaintfd;
	TRY(archiver_start(&child, export->store->archiver, argv, dirfd, fds, e));
	TRY(archiver_wait(&child, e));
	return archiver_ok(&child)
	               ? 0
	               : archiver_failed(&child,
	                                 export->image.names.count ? export->image.names.items[0]
	                                                           : export->image.digest,
	                                 e);
}

static void blob_path(const char *digest, char path[IMAGE_PATH_SIZE])
{
	snprintf(path, IMAGE_PATH_SIZE, "layout/blobs/sha256/%s", image_digest_hex(digest));
}

static struct json_object *descriptor(const char *type, const char *digest, uint64_t size)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "mediaType", type);
	json_add_string(object, "digest", digest);
	json_add_u64(object, "size", size);
	return object;
}

/* The opaque directories that the store has kept of a layer; -1: there are none. */
static int open_opaque(const struct export *export, int layer, int *fd, struct err *e)
{
	char path[IMAGE_PATH_SIZE];

	image_layer_path(export->image.layers[layer], "opaque", path);
	*fd = file_open(export->store->statefd, path, O_RDONLY | O_NOFOLLOW, 0, e);
	return *fd == -ENOENT ? 0 : *fd;
}

static int export_layer(struct export *export, int layer, struct err *e)
{
	scoped_fd fd = -1, opaquefd = -1;
	char digest[IMAGE_DIGEST_SIZE], path[IMAGE_PATH_SIZE];
	struct stat st;

	TRY(open_opaque(export, layer, &opaquefd, e));
	fd = file_open(export->slot.fd, "blob", O_RDWR | O_CREAT | O_EXCL, 0644, e);
	TRY(fd);
	const char *const argv[] = {"agentdock-archive",
	                            "pack",
	                            "--keep-owner",
	                            "--xattrs",
	                            "--layer",
	                            "--lock-fd",
	                            "5",
	                            opaquefd >= 0 ? "--opaque-fd" : NULL,
	                            "6",
	                            NULL};

	TRY(pack(export, argv, export->layerfds[layer], opaquefd, fd, e));
	TRY(image_hash_file(fd, "a packed layer", digest, e));
	if (fstat(fd, &st) < 0)
		return err_sys(e, "a packed layer");
	blob_path(digest, path);
	if (renameat(export->slot.fd, "blob", export->slot.fd, path) < 0)
		return err_sys(e, "naming a packed layer");
	json_object_array_add(export->layers, descriptor("application/vnd.oci.image.layer.v1.tar",
	                                                 digest, (uint64_t)st.st_size));
	json_object_array_add(export->diff_ids, json_object_new_string(digest));
	return 0;
}

/* ---- JSON ---- */

static const char *text_of(struct json_object *object)
{
	return json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
	                                                      JSON_C_TO_STRING_NOSLASHESCAPE);
}

/* OBJECT becomes a blob; its descriptor, which the caller owns, *DESCRIBED. */
static int put_blob(const struct export *export, const char *type, struct json_object *object,
                    struct json_object **described, struct err *e)
{
	const char *text = text_of(object);
	char digest[IMAGE_DIGEST_SIZE], path[IMAGE_PATH_SIZE];

	image_hash_text(text, digest);
	blob_path(digest, path);
	TRY(file_replace(export->slot.fd, path, text, strlen(text), 0644, e));
	*described = descriptor(type, digest, strlen(text));
	return 0;
}

/* An entry a layer: the image-spec does without, buildah does not once it has added a layer. */
static struct json_object *history_of(const struct export *export)
{
	struct json_object *history = json_object_new_array(), *entry;

	for (size_t i = 0; i < json_object_array_length(export->diff_ids); i++) {
		entry = json_object_new_object();
		json_add_string(entry, "created_by", "agentdock image export");
		json_object_array_add(history, entry);
	}
	return history;
}

static struct json_object *config_of(const struct export *export)
{
	const struct image *image = &export->image;
	struct json_object *document = json_object_new_object(), *config, *rootfs;

	json_add_string(document, "architecture", image->architecture);
	json_add_string(document, "os", "linux");
	config = json_add_object(document, "config");
	if (*image->user)
		json_add_string(config, "User", image->user);
	if (*image->workdir)
		json_add_string(config, "WorkingDir", image->workdir);
	if (image->env.count)
		json_add_strings(config, "Env", &image->env);
	if (image->entrypoint.count)
		json_add_strings(config, "Entrypoint", &image->entrypoint);
	if (image->cmd.count)
		json_add_strings(config, "Cmd", &image->cmd);
	rootfs = json_add_object(document, "rootfs");
	json_add_string(rootfs, "type", "layers");
	json_object_object_add(rootfs, "diff_ids", json_object_get(export->diff_ids));
	json_object_object_add(document, "history", history_of(export));
	return document;
}

static int put_manifest(struct export *export, struct json_object **described, struct err *e)
{
	scoped_json config = config_of(export);
	scoped_json manifest = json_object_new_object();
	struct json_object *config_described = NULL;

	TRY(put_blob(export, "application/vnd.oci.image.config.v1+json", config, &config_described,
	             e));
	json_object_object_add(manifest, "schemaVersion", json_object_new_int(2));
	json_add_string(manifest, "mediaType", "application/vnd.oci.image.manifest.v1+json");
	json_object_object_add(manifest, "config", config_described);
	json_object_object_add(manifest, "layers", json_object_get(export->layers));
	return put_blob(export, "application/vnd.oci.image.manifest.v1+json", manifest, described,
	                e);
}

static int put_index(struct export *export, struct json_object *manifest, struct err *e)
{
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	scoped_json index = json_object_new_object();
	struct json_object *part = json_add_object(manifest, "platform");
	const char *text;

	json_add_string(part, "architecture", export->image.architecture);
	json_add_string(part, "os", "linux");
	if (export->image.names.count) {
		part = json_add_object(manifest, "annotations");
		json_add_string(part, "org.opencontainers.image.ref.name",
		                export->image.names.items[0]);
	}
	json_object_object_add(index, "schemaVersion", json_object_new_int(2));
	json_add_string(index, "mediaType", "application/vnd.oci.image.index.v1+json");
	json_object_array_add(json_add_array(index, "manifests"), json_object_get(manifest));
	text = text_of(index);
	TRY(file_replace(export->slot.fd, "layout/index.json", text, strlen(text), 0644, e));
	return file_replace(export->slot.fd, "layout/oci-layout", layout, strlen(layout), 0644, e);
}

static int write_archive(struct export *export, int outfd, struct err *e)
{
	static const char *const argv[] = {"agentdock-archive", "pack", "--epoch",
	                                   "--lock-fd",         "5",    NULL};
	scoped_fd dirfd = file_open(export->slot.fd, "layout", O_RDONLY | O_DIRECTORY, 0, e);

	TRY(dirfd);
	return pack(export, argv, dirfd, -1, outfd, e);
}

int image_export(struct image_store *store, const char *reference, int outfd, struct err *e)
{
	__attribute__((cleanup(export_release))) struct export export = {
		.store = store,
		.slot = IMAGE_SLOT_NONE,
		.layers = json_object_new_array(),
		.diff_ids = json_object_new_array(),
	};
	scoped_json manifest = NULL;

	for (int i = 0; i < IMAGE_LAYERS_MAX; i++)
		export.layerfds[i] = export.lockfds[i] = -1;
	TRY(image_find(store, reference, &export.image, e));
	TRY(image_layers_open(store, &export.image, export.layerfds, export.lockfds, e));
	TRY(image_slot_make(store, &export.slot, e));
	TRY(dir_make_all(export.slot.fd, "layout/blobs/sha256", 0755, e));
	for (int i = 0; i < export.image.layers_count; i++)
		TRY(export_layer(&export, i, e));
	TRY(put_manifest(&export, &manifest, e));
	TRY(put_index(&export, manifest, e));
	return write_archive(&export, outfd, e);
}
