/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers of one --root: a directory ROOT/ID each (0711 root, 0700 each), with
 *
 *	config.json  the bundle's, as it was at create: what happens to the bundle's own has no effect
 *	state.json   what create found out; replaced whole, never written into
 *	start        the socket at which the first process waits for `start`; gone once it was let go
 *
 * Whoever changes a container holds an exclusive flock(2) on its directory, and says who it is by a
 * record lock (F_GETLK) of its first byte, when it makes the container, else of the second. The status is not written
 * down, it is looked up: no state.json yet, or one without a pid, is creating while the lock is held,
 * and else left by a create that was killed, which is stopped; the first process (pid and start time,
 * so a reused pid is nobody) is gone or a zombie: stopped; the socket is there: created; else running.
 */
#ifndef CONTAINER_STORE_H
#define CONTAINER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "oci/config.h"
#include "oci/state.h"

/* What state.json has. Texts belong to the entry. */
struct store_record {
	pid_t pid; /* 0: there is none yet, but what is said here is for `delete` to remove */
	uint64_t pid_start;    /* field 22 of /proc/PID/stat: ticks since boot */
	const char *bundle;    /* absolute */
	const char *rootfs;    /* absolute */
	const char *created;   /* RFC 3339, UTC */
	const char *owner;     /* name of the user that made it, or number */
	const char *group;     /* group_save's text */
	const char *rdt_group; /* a resctrl directory that is ours to remove, or NULL */
};

struct store_entry {
	int fd; /* the container's directory; a process that is cloned meanwhile is to close it */
	char *id;
	struct store_record record;
	bool has_record;
	bool locked;
	bool is_leftover; /* of a create that was killed: no process, and nobody makes one */
	struct oci_config config; /* parsed by store_config */
	struct oci_store texts;   /* the record's */
};

/* $XDG_RUNTIME_DIR/agentdock-runtime for users but root, else /run/agentdock-runtime. */
const char *store_default_root(void);

/* An id is one file name of [A-Za-z0-9_+.-], at most 255 bytes long (NAME_MAX), not "." or "..". */
int store_check_id(const char *id, struct err *e);

/* Makes ROOT where it lacks, and ROOT/ID, locked. EEXIST: there is such a container. */
int store_create(const char *root, const char *id, struct store_entry *entry, struct err *e);

/* How long to wait for who holds the lock: so many ms, or one of these. ETIMEDOUT names the holder. */
enum { STORE_UNLOCKED = -2, STORE_PATIENT = -1, STORE_AT_ONCE = 0, STORE_BOUNDED = 5000 };

/* Opens ROOT/ID and reads state.json. ENOENT: there is none; EBADMSG: state.json is damaged. */
int store_open(const char *root, const char *id, int patience_ms, struct store_entry *entry,
               struct err *e);

/* Locks an entry that was opened unlocked. ENOENT: it was deleted meanwhile. */
int store_lock(struct store_entry *entry, int patience_ms, struct err *e);

/* Keeps the config's text (create), or reads and parses the kept one into entry->config. */
int store_keep_config(struct store_entry *entry, const char *text, size_t length, struct err *e);
int store_config(struct store_entry *entry, struct err *e);

/* Writes state.json anew from RECORD, whole; entry->record has it with texts of its own. */
int store_save(struct store_entry *entry, const struct store_record *record, struct err *e);

/* SIGKILL to the process that makes the container now, if there is one. */
void store_end_creator(const struct store_entry *entry);

/* Removes ROOT/ID without a look at its state.json. */
int store_discard(const char *root, const char *id, struct err *e);

/* What store_record.pid_start wants. ESRCH or ENOENT: there is no such process. */
int store_pid_start(pid_t pid, uint64_t *start, struct err *e);

/* Removes the directory, which is to be locked. The entry stays to be released. */
int store_remove(const char *root, struct store_entry *entry, struct err *e);
void store_release(struct store_entry *entry);

/* The status now. *PIDFD (where PIDFD is not NULL) is of its first process, checked; -1 when stopped. */
int store_status(const struct store_entry *entry, int *status, int *pidfd, struct err *e);

/* The ids of ROOT in order; a ROOT that is not there has none. NULL-terminated, the caller's. */
struct string_list;
int store_list(const char *root, struct string_list *ids, struct err *e);

#endif
