/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to the files of container/ that make what the container sees: mounts.c, mount_*.c, root.c,
 * devices.c, paths.c, target.c. Mount API of kernel 5.2, openat2 of 5.6, mount_setattr of 5.12.
 *
 * A mount is opened outside, with the host's eyes and privileges, as a detached copy; it is changed
 * while it is attached nowhere; the inside attaches it to a descriptor that was opened beneath the new
 * root. Where the outside may not copy mounts (rootless), the inside does it, as root of its own
 * namespaces; nothing else differs.
 */
#ifndef CONTAINER_MOUNTS_H
#define CONTAINER_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "container/container.h"

/* ---- mount_options.c ---- */

enum { PROPAGATIONS_MAX = 4 };

/* "Linux mount options" in config.md. */
struct mount_options {
	uint64_t set, clear;           /* MOUNT_ATTR_*: of the mount; a later option overrides */
	uint64_t tree_set, tree_clear; /* of it and all mounts below it ("rro") */
	unsigned long super;           /* MS_*: of the file system (MS_SYNCHRONOUS, ...) */
	unsigned long propagations[PROPAGATIONS_MAX]; /* MS_SHARED, ..., with MS_REC; in order */
	int propagations_count;
	bool bind, tree; /* "rbind" is both */
	bool remount, copy_up, idmap, idmap_tree;
	char *data; /* what is the file system's own, joined by ','; on the heap; NULL: none */
};

int mount_options_parse(const struct oci_strings *words, struct mount_options *options,
                        struct err *e);
void mount_options_release(struct mount_options *options);

/* The words that mean something here, in the order of their names, for `features`; NULL: no more. */
const char *mount_option_name(size_t index);

/* The MS_* of mount(2) that say what options->set and ->super do. */
unsigned long mount_options_flags(const struct mount_options *options);

/* ---- mounts.c ---- */

/* All descriptors are -1 unless open. */
struct container_mounts {
	bool late; /* the outside may not copy mounts: the inside does */
	struct container_mount {
		struct mount_options options;
		int fd; /* of a bind mount: detached, with its options set */
	} * items;      /* as config->mounts */
	size_t count;
	int groupfds[GROUP_HIERARCHIES_MAX]; /* detached, of the container's own group */
	int nullfd;                          /* of the host, detached, the null device itself */
};

/* A mount that the inside is about to attach. */
struct attachment {
	struct inside *in;
	const struct oci_mount *mount;
	struct container_mount *prepared;
};

/* ---- mount_source.c ---- */

/* The absolute PATH, or one of the bundle, as a detached mount of it, or of the tree. */
int source_copy(const struct container *container, const char *path, bool tree, struct err *e);

/* A bind mount's source with its options, detached. Restrictions of the source's own mount stay. */
int source_open(const struct container *container, const struct oci_mount *mount,
                const struct mount_options *options, struct err *e);

/* Changes the mount, or tree of mounts, at FD as OPTIONS say. What is locked (mount_namespaces(7)) and
 * stricter than was asked for stays as it is. */
int source_change(int fd, const struct mount_options *options, struct err *e);

/* The propagation that copies of the host's mounts have until they are given one. */
unsigned long source_propagation(const struct oci_config *config);

/* ---- mount_locked.c ---- */

/* Where we came from, while we are where the mounts are locked. */
struct locked_mounts {
	int homefd, rootfd, cwdfd;
};

/* EPERM: this user may not. After a success the caller returns by locked_mounts_leave, whose failure
 * leaves us where we do not belong. HOSTPROCFD: see struct inside. */
int locked_mounts_enter(struct locked_mounts *mounts, int hostprocfd, struct err *e);
int locked_mounts_leave(struct locked_mounts *mounts, struct err *e);

/* ---- mount_idmap.c ---- */

/* A user namespace with these mappings, or the container's own; its descriptor. */
int idmap_open(const struct oci_config *config, const struct oci_mount *mount, struct err *e);

/* ---- mount_types.c, mount_cgroup.c ---- */

int type_attach(const struct attachment *attachment, struct err *e);
int cgroup_attach(const struct attachment *attachment, struct err *e);

/*
 * Where the kernel keeps a file system from a user namespace because it shows a namespace of somebody
 * else: the runtime's own mount at PATH, with all below it, as engines expect.
 */
int host_attach(const struct attachment *attachment, const char *path, bool read_only, int targetfd,
                struct err *e);

/* What target_check is, for a mount that is ours and nobody's wish: it covers nothing of a procfs, and no root. */
int target_check_own(int targetfd, int rootfd, const char *path, struct err *e);

/* Refuses what must not be covered: parts of procfs. SOURCEFD: of a bind mount, else -1. */
int target_check(int targetfd, const struct attachment *attachment, int sourcefd, struct err *e);

/* ---- mount_copy.c ---- */

/* Copies what is in the directory FROMFD into the empty directory TOFD, "tmpcopyup". */
int tree_copy(int fromfd, int tofd, struct err *e);

/* ---- paths.c ---- */

/* Before the pivot: takes what mask_paths needs of the host. */
int mask_prepare(struct inside *in, struct err *e);

/* ---- target.c ---- */

/* Is what FD has open the very root at ROOTFD, by whatever path it was found? */
int target_is_root(int fd, int rootfd, struct err *e);

/* As target_open, but nothing is made. FLAGS are O_*, RESOLVE is added. The text is "opening PATH". */
int target_find(int rootfd, const char *path, int flags, uint64_t resolve, struct err *e);

#endif
