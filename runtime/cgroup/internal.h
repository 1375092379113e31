/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of runtime/cgroup share: control files by descriptor, the shape of the tables of
 * limits and of usage, and the half of each operation that concerns v1 hierarchies (hybrid.c).
 */
#ifndef RUNTIME_CGROUP_INTERNAL_H
#define RUNTIME_CGROUP_INTERNAL_H

#include <stddef.h>

#include "runtime/cgroup/cgroup.h"

enum { CONTROLLERS = 3, CONTROL_TEXT_SIZE = 4096 };
extern const char *const controller_names[CONTROLLERS]; /* the bit 1 << i is named [i] */

/* ---- control.c: no err, because the caller knows what a missing file means ---- */

/* Reads a control file into TEXT and ends it with NUL; its length or -errno. */
int control_read(int dirfd, const char *file, char *text, size_t size);

/* Writes TEXT with one write(2); 0 or -errno. */
int control_write(int dirfd, const char *file, const char *text);

/* The number after KEY in a text of "key number" lines, or in all of the text when KEY is NULL.
 * False when it is not there or is no number ("max"). */
bool control_number(const char *text, const char *key, uint64_t *value);

/* Is WORD one of the words of TEXT? */
bool control_has_word(const char *text, const char *word);

/* Waits until KEY of cgroup.events is VALUE: 0, -ETIMEDOUT after TIMEOUT_MS, or -errno. A group
 * that is gone is -ENODEV. */
int control_await(int groupfd, const char *key, uint64_t value, int timeout_ms);

/* ---- groups.c: directories of one hierarchy ---- */

/* Makes MOUNT/PATH and the groups above it that it lacks; a group PATH that is there is EEXIST.
 * Returns its descriptor. */
int group_make(const char *mount, const char *path, struct err *e);

/* Returns the descriptor of MOUNT/PATH, or -errno (ENOENT: it is not there). */
int group_open(const char *mount, const char *path, struct err *e);

/* Removes MOUNT/PATH and what is below it, trying again while it is busy; gone is no error. */
int group_remove(const char *mount, const char *path, struct err *e);

/* Calls VISIT for the group and for each below it, a group after those below it. FD is valid during
 * the call. */
typedef int group_visit(int parentfd, const char *name, int fd, void *data);
int group_walk(int groupfd, group_visit *visit, void *data);

/* ---- limits ---- */

enum limit_check { LIMIT_EXACT, LIMIT_PAGES, LIMIT_LIFTED };

struct limit_row {
	unsigned controller;
	const char *file;
	/* Writes the file's value into TEXT; false when LIMITS wants none. */
	bool (*value)(const struct cgroup_limits *limits, char *text, size_t size);
	enum limit_check check;
	bool swap;      /* absent where the kernel does not account swap: fine on a host without */
	bool fails_old; /* absent on kernels that are too old for it, with the controller there */
};

struct usage_row {
	unsigned controller; /* 0: in every group of the v2 tree */
	const char *file, *key;
	size_t offset; /* in struct cgroup_usage */
	uint64_t divisor;
};

bool limit_memory(const struct cgroup_limits *limits, char *text, size_t size);
bool limit_pids(const struct cgroup_limits *limits, char *text, size_t size);
/* The quota in microseconds of the period below. */
uint64_t limit_cpu_quota_us(const struct cgroup_limits *limits);
enum { CPU_PERIOD_US = 100000, CPU_QUOTA_LEAST_US = 1000 };

/*
 * Sees to it that CONTROLLER (an index) is in cgroup.subtree_control of every group from the root
 * of the v2 tree down to the parent of CGROUP.
 */
int controller_enable(const struct cgroup *cgroup, int controller, struct err *e);

/* What stands in for cgroup.kill on kernels before 5.14. */
int cgroup_kill_each(const struct cgroup *cgroup, struct err *e);

/* Does TEXT, the content of /proc/PID/cgroup, name the v2 group PATH, or one below it? Both may be
 * shown below the same longer prefix. TEXT is cut at the end of that line. */
bool group_is_named(char *text, const char *path);

/* ---- probe.c ---- */

/*
 * Notes in HOST the hierarchies that TEXT, the content of mountinfo, names; TEXT is cut up. A mount
 * whose root is not "/" shows only a part of its hierarchy; it is taken where there is no WHOLE one
 * (containers bind theirs so). Returns 1 when there are mounts of the other kind.
 */
int mounts_note(struct cgroup_host *host, char *text, bool whole, struct err *e);

/* ---- hybrid.c ---- */

extern const struct limit_row hybrid_limits[];
extern const size_t hybrid_limits_count;
extern const struct usage_row hybrid_usages[];
extern const size_t hybrid_usages_count;

/* A mounted v1 hierarchy with these comma-separated OPTIONS: has it what was not found yet? Notes it. */
bool hybrid_wants(const struct cgroup_host *host, const char *options);
void hybrid_note_mount(struct cgroup_host *host, const char *mount, const char *options);
int hybrid_create(struct cgroup *cgroup, const struct cgroup_host *host, struct err *e);
int hybrid_open(struct cgroup *cgroup, const struct cgroup_host *host, struct err *e);
int hybrid_remove(const char *path, const struct cgroup_host *host, struct err *e);

#endif
