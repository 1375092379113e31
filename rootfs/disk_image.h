/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to rootfs: ext4 images without a name. See disk_image.c for what is in one.
 */
#ifndef ROOTFS_DISK_IMAGE_H
#define ROOTFS_DISK_IMAGE_H

#include <stdint.h>

#include "base/err.h"

/* /dev/loop-control: an owned descriptor. -ENODEV: this host has no loop devices to give. */
int loop_control_open(struct err *e);

/* Mounts the image IMAGEFD by way of a loop device that goes when the mount goes. */
int disk_image_mount(int controlfd, int imagefd, struct err *e);

/*
 * A file without a name in STATE/disks that holds an empty file system of BYTES and INODES (with
 * upper/ and work/ in it), copied from the template that is made when there is none.
 */
int disk_image_create(int statefd, int controlfd, uint64_t bytes, uint64_t inodes, struct err *e);

#endif
