/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to rootfs: ext4 images without a name. See disk_image.c for what is in one.
 */
#ifndef ROOTFS_DISK_IMAGE_H
#define ROOTFS_DISK_IMAGE_H

#include <stdint.h>

#include "rootfs/disk.h"

/* What disk_furnish makes beside workspace/, which is counted as the guest's: upper/ and work/. */
enum { DISK_DIRECTORIES = 2 };

/* /dev/loop-control: an owned descriptor. -ENODEV: this host has no loop devices to give. */
int loop_control_open(struct err *e);

/*
 * A file without a name in STATE/disks with an empty file system of BYTES and INODES (furnished), a copy of the template that is made when there is none; and *MOUNTFD, its
 * detached mount by way of a loop device that goes when the mount goes. Both are the caller's.
 */
int disk_image_create(int statefd, int controlfd, uint64_t bytes, uint64_t inodes, int *mountfd,
                      struct err *e);

#endif
