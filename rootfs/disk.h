/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's disk: everything it can write on its root file system, with a hard limit of bytes and
 * of inodes. It is a mount that is attached nowhere, on a file that has no name: when the last
 * descriptor goes (also by SIGKILL), the kernel frees all of it.
 *
 *	image  an ext4 file system (no journal) on a loop device over an O_TMPFILE file in
 *	       STATE/disks. The few blocks that mkfs.ext4 writes come from a template, made once for
 *	       each size.
 *	tmpfs  size= and nr_inodes=; its pages are charged to the sandbox's memory.
 *
 * Kernel 5.8 (LOOP_CONFIGURE), 5.2 (fsopen). Mounts are nosuid,nodev.
 */
#ifndef ROOTFS_DISK_H
#define ROOTFS_DISK_H

#include <stdint.h>

#include "base/err.h"

enum disk_backing { DISK_AUTO, DISK_IMAGE, DISK_TMPFS };

struct disk_limits {
	uint64_t bytes;
	uint64_t inodes;
	enum disk_backing backing; /* DISK_AUTO: image; tmpfs where there are no loop devices */
};

struct disk {
	int mountfd; /* the detached mount; its root holds upper/, with workspace/, and work/ */
	int imagefd; /* the file without a name; -1 for tmpfs */
	enum disk_backing backing;
	uint64_t used_bytes_empty; /* what the empty file system takes of its own limit */
	uint64_t used_inodes_empty;
};

struct disk_usage {
	uint64_t bytes, bytes_limit;
	uint64_t inodes, inodes_limit;
	int full; /* no byte or no inode was left */
};

/* Removes the templates; the next disk of each size makes its own again, in some milliseconds. */
int disk_templates_remove(int statefd, int *removed, struct err *e);

const char *disk_backing_name(enum disk_backing backing);

/* Makes the disk. Fails before anything is made when the host has less free space than LIMITS asks
 * for (image). OWNER is the host id that owns upper/. */
int disk_create(int statefd, const struct disk_limits *limits, uint32_t owner, struct disk *disk,
                struct err *e);
int disk_measure(const struct disk *disk, struct disk_usage *usage, struct err *e);

/*
 * Has the host kept what was written? The image is thin, so a host that ran full under it loses
 * writes: that is EIO. Only where the host is short of space now does this cost a sync.
 */
int disk_check(const struct disk *disk, int statefd, struct err *e);
void disk_init(struct disk *disk); /* all descriptors -1 */
void disk_release(struct disk *disk);

/* Gives workspace/, which hides whatever the image has there, to host ids UID:GID. */
int disk_own_workspace(const struct disk *disk, uint32_t uid, uint32_t gid, struct err *e);

/* Makes upper/, upper/workspace/ and work/ in a new file system, whatever the umask. */
int disk_furnish(int mountfd, struct err *e);

/*
 * Gives the image's file the name STATE/kept/NAME.ext4, so that it outlives the sandbox; call it
 * when nothing runs in the sandbox any more. Not for tmpfs.
 */
int disk_keep(const struct disk *disk, int statefd, const char *name, struct err *e);

#endif
