/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a container's directory, for the store. */
#ifndef CONTAINER_STORE_LOCK_H
#define CONTAINER_STORE_LOCK_H

#include "container/store.h"

/* By which byte of the directory its holder is found. */
enum store_holder { HOLDER_CREATOR, HOLDER_OTHER };

/* PATIENCE_MS: as of store_open, but not STORE_UNLOCKED. 0: the directory was removed meanwhile; 1: the
 * lock is ours. */
int store_lock_as(struct store_entry *entry, enum store_holder who, int patience_ms, struct err *e);

#endif
