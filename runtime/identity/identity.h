/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall four of four: what a sandbox may be. User namespace maps, user and groups, the five
 * capability sets and securebits, no_new_privs, priorities, rlimits, the session keyring. All but
 * identity_map_ids act on the calling process, which is inside and has one thread.
 * user_namespaces(7), capabilities(7), setrlimit(2), keyctl(2).
 */
#ifndef RUNTIME_IDENTITY_IDENTITY_H
#define RUNTIME_IDENTITY_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

enum { IDENTITY_RANGE = 65536, RLIMITS_MAX = 16 };

struct rlimit_spec {
	int resource; /* RLIMIT_* */
	rlim_t soft, hard;
};

struct identity {
	uint32_t uid, gid;   /* inside */
	bool user_namespace; /* its own, with ids 0..65535 mapped to host_base.. */
	uint32_t host_base;  /* first host id of the range; 0 without a user namespace */
	struct rlimit_spec rlimits[RLIMITS_MAX];
	int rlimits_count;
	mode_t umask;
};

/* Outside: writes setgroups, uid_map and gid_map of PID by way of its /proc directory PROCFD
 * (opened by the caller and checked by pidfd, so that a reused pid is never written to). */
int identity_map_ids(int procfd, uint32_t host_base, struct err *e);

/* Inside, after the maps: becomes root of the user namespace, without supplementary groups. */
int identity_become_root(struct err *e);

/*
 * Gives up what puts the caller before others on this host: real-time scheduling, a nice value or
 * an out-of-memory adjustment below zero, the real-time I/O class; and its personality. Being
 * humbler than others is kept. Needs the host's /proc.
 */
int identity_forget_privileges(struct err *e);

/* A new, empty session keyring that is joined by nobody else. ENOSYS (no keyrings) is no error. */
int identity_session_keyring(struct err *e);

/* A limit above the hard limit that cannot be raised (no CAP_SYS_RESOURCE) is an error that names
 * it. */
int identity_set_rlimits(const struct identity *identity, struct err *e);

/* The bounding set as in CapBnd of /proc/PID/status. */
uint64_t identity_bounding_set(void);

/* Drops every capability from the bounding set and clears the ambient set. */
int identity_drop_bounding(struct err *e);

/* The supplementary groups; gid and uid, all of real, effective, saved, and fs. In this order. */
int identity_set_groups(const uint32_t *groups, size_t count, struct err *e);
int identity_set_ids(uint32_t uid, uint32_t gid, struct err *e);

/* Sets groups (none), gid, uid: all of real, effective, saved, and fs. */
int identity_become_user(uint32_t uid, uint32_t gid, struct err *e);

/* Empties permitted, effective and inheritable, locks the securebits (NOROOT, NO_SETUID_FIXUP,
 * KEEP_CAPS off, NO_CAP_AMBIENT_RAISE, each with its lock), and reads all back: anything left is an
 * error. The securebits must be set while CAP_SETPCAP is held, so this is two halves. */
int identity_lock_securebits(struct err *e);
int identity_drop_capabilities(struct err *e);

int identity_no_new_privs(struct err *e);

#endif
