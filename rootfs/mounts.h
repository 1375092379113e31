/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall one of four: what a sandbox may see. The root is assembled outside as detached mounts (mount
 * API of kernel 5.2) and attached inside by descriptor. No function takes a path that the guest
 * could exchange: targets are opened beneath the new root with openat2 (RESOLVE_IN_ROOT,
 * RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS; kernel 5.6), and created where the image lacks them.
 */
#ifndef ROOTFS_MOUNTS_H
#define ROOTFS_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* ---- outside: detached mounts; each returns an owned mount descriptor ---- */

/*
 * An overlay of LAYERFDS (lowest first, read-only) below the disk DISKFD (its upper/ and work/), or
 * wholly read-only when DISKFD is -1. USERNSFD >= 0: the layers are idmapped into that user
 * namespace (kernel 5.19); -EOPNOTSUPP where their file system or the kernel cannot do that.
 * Options carry descriptors, never a host path.
 */
int overlay_create(const int layerfds[], int layers_count, int diskfd, int usernsfd, struct err *e);

/*
 * A tmpfs for /dev: null zero full random urandom tty (made here: no host node is shared), ptmx ->
 * pts/ptmx, fd stdin stdout stderr links, the empty directories pts shm mqueue; owned by the host
 * id OWNER. Its size is just what it needs.
 */
int devices_create(uint32_t owner, struct err *e);

/* ---- inside: in the sandbox's own mount, pid, ipc namespaces ---- */

/* Nothing that happens to mounts here reaches the host, and the other way round. */
int mounts_make_private(struct err *e);

/*
 * Attaches ROOTFD (a detached mount) over the present "/", so that it belongs to this mount
 * namespace; ROOTFD is then the new root's descriptor. No directory of the host is needed for it (a
 * descriptor opened outside would belong to the host's mount namespace, which move_mount refuses).
 */
int root_attach(int rootfd, struct err *e);

/* Opens, or makes (mode 0755 directories), PATH beneath ROOT as a mount target; an O_PATH
 * descriptor. A symbolic link on the way is an error that names it. */
int mount_target(int rootfd, const char *path, struct err *e);

struct tmpfs_mount {
	const char *path;
	uint64_t size_bytes; /* 0: 64 MiB */
	uint64_t inodes;     /* 0: one for each 4 KiB of size */
	uint32_t mode;       /* permission bits; 0: 01777 */
	bool exec;           /* otherwise noexec; always nosuid,nodev */
};

/*
 * What does not depend on the image: it can be made in the present root, whose directories it covers
 * in this mount namespace only, while the new root is assembled, and be moved there (mount_move).
 *
 * /dev from DEVICESFD, devpts (own instance, max= set), /dev/shm, /dev/mqueue.
 */
int devices_attach(int rootfd, int devicesfd, uint64_t shm_bytes, struct err *e);
int proc_attach(int rootfd, struct err *e);
int tmpfs_attach(int rootfd, const struct tmpfs_mount *tmpfs, struct err *e);

/*
 * Moves the mount at PATH beneath FROMFD to PATH beneath ROOTFD, with all that is mounted on it.
 * FROMFD may be the root of the present mount namespace while another is attached over it.
 */
int mount_move(int fromfd, int rootfd, const char *path, struct err *e);

/*
 * Hides and write-protects the parts of ROOT's /proc that concern the host (runtime-spec's maskedPaths
 * and readonlyPaths and what its CVEs added), which must be a procfs: files by the null device of
 * our own /dev, directories by an empty read-only tmpfs. A path that this kernel lacks is skipped.
 * After proc_attach and devices_attach, and before anybody else is in the mount namespace. The
 * working directory becomes ROOT's /proc.
 */
int proc_mask(int rootfd, struct err *e);

/* Makes ROOTFD the root and detaches the old one: no mount of the host is left. cwd becomes "/". */
int root_pivot(int rootfd, struct err *e);

/* Remounts "/" read-only (mount flag, not the super block). */
int root_make_readonly(struct err *e);

/*
 * After the pivot: sees to it that UID and GID have a line in /etc/passwd and /etc/group
 * ("sandbox", home HOME). The image's own entry stands; a missing file is made.
 */
int account_ensure(uint32_t uid, uint32_t gid, const char *home, struct err *e);

/*
 * After the pivot: /etc/hosts gives localhost and HOSTNAME, so that both can be looked up where
 * there is no name server. The image's own is replaced, as container engines do.
 */
int hosts_write(const char *hostname, struct err *e);

#endif
