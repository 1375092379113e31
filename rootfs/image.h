/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image store: root file systems by digest, unpacked once, shared read-only by any number of
 * sandboxes.
 *
 *	STATE/images/lock              held (flock) exclusively by what changes names, shared by readers
 *	STATE/images/names/NAME        one line: the image's digest
 *	STATE/images/sha256/HEX.json   the image: architecture, layers, config, size, when imported
 *	STATE/layers/sha256/HEX/root   a layer's tree; immutable once it has this name
 *	STATE/layers/sha256/HEX/counts its size in bytes, and how many entries it has
 *	STATE/layers/sha256/HEX/opaque its opaque directories, where it has some: see archive_opaque
 *	STATE/layers/sha256/HEX/lock   held (flock) shared by every sandbox that stands on it
 *	STATE/tmp/                     what is being imported; removed by the next import or gc when
 *	                               the process that made it is gone
 *
 * Import is atomic (a tree gets its final name by rename, when it is whole) and idempotent (the same
 * bytes are the same digest). rm drops a name; gc removes layers that no name reaches and nobody
 * holds. The digest of a layer is the SHA-256 of its tar stream (what OCI calls its diff id); a directory is streamed in a fixed
 * order with fixed metadata, so that the same tree has the same digest.
 * Archives are parsed by the confined program agentdock-archive, never by this code.
 */
#ifndef ROOTFS_IMAGE_H
#define ROOTFS_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strings.h"

enum {
	IMAGE_LAYERS_MAX = 64,
	IMAGE_DIGEST_SIZE = 7 + 64 + 1, /* "sha256:" HEX NUL */
	IMAGE_USER_SIZE = 128,
	IMAGE_WORKDIR_SIZE = 1024,
};

struct image {
	char digest[IMAGE_DIGEST_SIZE];
	char architecture[16]; /* as GOARCH writes it: amd64, arm64 */
	uint64_t size_bytes;
	uint64_t entries;    /* files, directories, links */
	int64_t imported_at; /* seconds since the epoch */
	int layers_count;
	char layers[IMAGE_LAYERS_MAX][IMAGE_DIGEST_SIZE]; /* the lowest first */
	struct string_list names; /* of image_find: the one that it was found by, if any */
	/* what the image's config asks for; empty for plain trees */
	struct string_list env, entrypoint, cmd;
	char user[IMAGE_USER_SIZE];
	bool has_ids; /* those of the user; not where it is a name that the image does not know */
	uint32_t uid, gid;
	char workdir[IMAGE_WORKDIR_SIZE];
};
void image_release(struct image *image);

struct image_store {
	int statefd;        /* STATE; owned */
	char path[256];     /* for messages */
	char archiver[256]; /* path of agentdock-archive */
};

/* Opens (and makes, mode 0711/0700) the store beneath STATE. */
int image_store_open(struct image_store *store, const char *state, const char *archiver,
                     struct err *e);
void image_store_release(struct image_store *store);

/* How an import goes on: called now and then with the bytes and entries that were unpacked. */
typedef void image_progress(void *data, uint64_t bytes, uint64_t entries);

/* What is wanted of a source; NULL: see there. */
struct image_choice {
	/* A root tree: what it is for; else told from the ELF header of its /bin/sh or
	 * /usr/bin/env. A packed image: which one is taken; else this machine's. */
	const char *architecture;
	/* What the image is called in a source that has several; else there must be but one. */
	const char *ref;
};

/*
 * Imports a root file system (a directory, or a tar: plain, gzip, xz, zstd, bzip2; "-" is standard
 * input) or a packed image (an OCI layout, or a tar of one; a tar that docker saved) and gives it
 * NAME (docker's syntax: [a-z0-9._/-]+[:tag]). IMAGE (may be NULL) is what came of it; the caller
 * releases it. CHOICE may be NULL.
 */
int image_import(struct image_store *store, const char *source, const char *name,
                 const struct image_choice *choice, image_progress *progress, void *data,
                 struct image *image, struct err *e);

/* All images; the caller releases each and frees the array. */
int image_list(struct image_store *store, struct image **images, size_t *count, struct err *e);

/* By name, by name:tag ("latest" where none is given), by digest or a unique prefix of it. */
int image_find(struct image_store *store, const char *reference, struct image *image,
               struct err *e);

/* So, and all names that the image has, for which those of all images are read. */
int image_find_names(struct image_store *store, const char *reference, struct image *image,
                     struct err *e);

/* The layers of an image and its config as an OCI archive, a tar, to OUTFD. */
int image_export(struct image_store *store, const char *reference, int outfd, struct err *e);

/* DIRECTORY, which is made, or empty, becomes an OCI bundle: rootfs/ and config.json. */
int image_bundle(struct image_store *store, const char *reference, const char *directory,
                 struct err *e);

int image_remove(struct image_store *store, const char *reference, struct err *e);
int image_gc(struct image_store *store, uint64_t *freed_bytes, uint64_t *layers, struct err *e);

/*
 * Opens the layers of an image for a sandbox: LAYERFDS[i] is an O_PATH descriptor of a layer's root
 * (lowest first), LOCKFDS[i] its shared lock. An image for another machine is refused by name. The
 * caller closes all descriptors.
 */
int image_open(struct image_store *store, const struct image *image, int layerfds[], int lockfds[],
               struct err *e);

#endif
