/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the image store (rootfs/image_*.c) share; nobody else includes it.
 *
 * Invariants that they keep together:
 *  - images/lock is held exclusively around every change of a name, a document or the set of
 *    layers, and shared around every read of them, so a reader never sees a half-made change.
 *    It is held for renames and small reads only, never while a tree is written or removed.
 *  - Whatever is not whole lives in a slot, tmp/HEX, whose lock file tmp/HEX.lock is held (flock)
 * by the process that made it, and by the one that unpacks into it. A slot whose lock is free
 *    belongs to dead processes and may be removed.
 *  - Everything gets its final name by rename out of a slot, after its bytes are on the disk.
 */
#ifndef ROOTFS_IMAGE_STORE_H
#define ROOTFS_IMAGE_STORE_H

#include <nettle/sha2.h>

#include "base/err.h"
#include "rootfs/archive_result.h"
#include "rootfs/image.h"

enum {
	IMAGE_HEX_SIZE = 64 + 1,
	IMAGE_NAME_SIZE = 200 + 1, /* as a file it must fit NAME_MAX */
	IMAGE_PATH_SIZE = 256 + 16,
	IMAGE_DOCUMENT_LIMIT_BYTES = 1 << 20,
	IMAGE_HEX_PREFIX_MIN = 6, /* shorter ones are more likely a mistyped name */
};

/* ---- image_store.c ---- */

/* Takes images/lock (LOCK_SH or LOCK_EX), waiting for it; the lock goes with the descriptor. */
int image_store_lock(const struct image_store *store, int operation, struct err *e);

/* A directory of this process's own in tmp/. */
struct image_slot {
	int tmpfd;
	int fd;     /* the slot itself */
	int lockfd; /* an empty file: harmless in the hands of whoever unpacks */
	char name[16 + 1];
};
int image_slot_make(const struct image_store *store, struct image_slot *slot, struct err *e);
void image_slot_release(struct image_slot *slot); /* removes it with all that is in it */
#define scoped_slot __attribute__((cleanup(image_slot_release))) struct image_slot
#define IMAGE_SLOT_NONE                                                                            \
	{                                                                                          \
		.tmpfd = -1, .fd = -1, .lockfd = -1                                                \
	}

/* Removes the slots of dead processes; adds the bytes that they took to FREED_BYTES. */
int image_slots_clean(const struct image_store *store, uint64_t *freed_bytes, struct err *e);

int image_dir_sync(int dirfd, const char *path, struct err *e);

/* Calls VISIT for each name in PATH (but . and ..); stops at the first one that fails. */
int image_dir_visit(int dirfd, const char *path,
                    int (*visit)(void *data, const char *name, struct err *e), void *data,
                    struct err *e);

/* ---- image_name.c: the only place where text becomes a file's name ---- */

/* Checks NAME[:TAG] and completes the tag. */
int image_name_parse(const char *text, char name[IMAGE_NAME_SIZE], struct err *e);
void image_name_path(const char *name, char path[IMAGE_PATH_SIZE]); /* images/names/... */
/* The name that the file FILE in images/names stands for; false where it stands for none. */
bool image_name_from_file(const char *file, char name[IMAGE_NAME_SIZE]);

bool image_digest_valid(const char *digest);      /* sha256: and 64 lower-case digits */
const char *image_digest_hex(const char *digest); /* without "sha256:" */
bool image_hex_prefix_valid(const char *text);    /* 1 to 64 lower-case digits */
void image_layer_path(const char *digest, const char *file, char path[IMAGE_PATH_SIZE]);
void image_document_path(const char *digest, char path[IMAGE_PATH_SIZE]);

/* ---- image_document.c: the JSON of an image, and digests ---- */

/* Of all that FD, a file, has; WHAT is for messages. */
int image_hash_file(int fd, const char *what, char digest[IMAGE_DIGEST_SIZE], struct err *e);
void image_hash_text(const char *text, char digest[IMAGE_DIGEST_SIZE]);

/* Ends HASH (nettle's, of a whole stream) as "sha256:HEX". */
void image_hash_finish(struct sha256_ctx *hash, char digest[IMAGE_DIGEST_SIZE]);

/* Sets image->digest and writes the document to PATH, synced. */
int image_document_write(int dirfd, const char *path, struct image *image, struct err *e);
/* Everything but the names. */
int image_document_read(const struct image_store *store, const char *digest, struct image *image,
                        struct err *e);

/* ---- image_list.c; all under the lock ---- */

#define scoped_strings __attribute__((cleanup(string_list_release))) struct string_list

/* Whether FILE, in images/sha256, is HEX.json; DIGEST is then filled in. */
bool image_document_digest(const char *file, char digest[IMAGE_DIGEST_SIZE]);

/* "NAME=DIGEST" for each name there is. */
int image_names_read(const struct image_store *store, struct string_list *names, struct err *e);
/* NAME is filled in where REFERENCE is a name, else "". */
int image_resolve(const struct image_store *store, const char *reference,
                  char digest[IMAGE_DIGEST_SIZE], char name[IMAGE_NAME_SIZE], struct err *e);
/* The names among NAMES that mean DIGEST. */
int image_names_of(const struct string_list *names, const char *digest, struct string_list *out,
                   struct err *e);

/* ---- image_machine.c ---- */

const char *image_machine(void); /* of this host, as GOARCH writes it */
bool image_machine_known(const char *architecture);
/* Told from the ELF header of /bin/sh or /usr/bin/env beneath ROOTFD. */
int image_machine_of_tree(int rootfd, char architecture[16], struct err *e);

/* ---- image_open.c ---- */

/* As image_open, for any machine. */
int image_layers_open(const struct image_store *store, const struct image *image, int layerfds[],
                      int lockfds[], struct err *e);

/* A layer's root (O_PATH) and its shared lock, which the caller closes; under the store's lock. */
int image_layer_open(const struct image_store *store, const char *digest, int *layerfd, int *lockfd,
                     struct err *e);

/* ---- image_layers.c ---- */

/* What an import has made or found of an image's layers. */
struct image_layers {
	struct image_layer {
		char from[20];      /* its place in the slot; "": the store has it */
		int lockfd;         /* holds it, where the store has it; owned */
		int rootfd;         /* owned */
	} layers[IMAGE_LAYERS_MAX]; /* as image->layers */
};
#define IMAGE_LAYER_NONE                                                                           \
	{                                                                                          \
		.lockfd = -1, .rootfd = -1                                                         \
	}
void image_layers_release(struct image_layers *layers);

/* Makes NAME/lock and NAME/root in the slot; returns a descriptor of the latter. */
int image_layer_make(const struct image_slot *slot, const char *name, struct err *e);
/* What every layer gets at last: the owner and mode of its root, its counts, and the digest of the
 * file that it came out of ("": none). */
int image_layer_finish(const struct image_slot *slot, const char *name, int rootfd,
                       const struct archive_result *counts, const char *blob, struct err *e);

struct image_import {
	const struct image_store *store;
	const struct image_slot *slot;
	const char *source; /* for messages */
	const struct image_choice *choice;
	image_progress *progress;
	void *data;
	struct image *image; /* all but its digest is filled in */
	struct image_layers *layers;
};

/* Whether a layer's directory hides what lower layers have there. */
bool image_dir_is_opaque(int fd);
/* Whether there is an OCI layout or a docker-archive in DIRFD, and no root file system. */
bool image_is_packed(int dirfd);
/* Takes the layers of the packed image in DIRFD that the store does not have. */
int image_layers_import(const struct image_import *import, int dirfd, struct err *e);

/* ---- image_user.c ---- */

/* Fills in the numbers of the image's user by the topmost passwd and group of LAYERS. */
int image_user_resolve(const struct image_store *store, const struct image_layers *layers,
                       struct image *image, struct err *e);

/* ---- image_stream.c ---- */

struct image_stream {
	const char *archiver;
	const char *source; /* for messages */
	const char *store_path;
	int sourcefd; /* a directory, or the bytes of an archive */
	bool is_directory;
	int targetfd; /* the empty directory to fill */
	int lockfd;   /* stays open in the process that fills it */
	int opaquefd; /* of a layer: takes a struct archive_opaque; -1: the source is a root tree */
	image_progress *progress;
	void *data;
	uint64_t bytes_before,
		entries_before; /* of the image's limit, which other layers have taken */
};
/* Unpacks the source into the target; DIGEST is that of its tar stream. */
int image_stream_run(const struct image_stream *stream, struct archive_result *result,
                     char digest[IMAGE_DIGEST_SIZE], struct err *e);

#endif
