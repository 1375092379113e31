/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a sandbox's group share: the shape of the tables of limits and of usage, and the
 * half of each operation that concerns v1 hierarchies (hybrid.c).
 */
#ifndef RUNTIME_CGROUP_INTERNAL_H
#define RUNTIME_CGROUP_INTERNAL_H

#include <stddef.h>

#include "runtime/cgroup/cgroup.h"
#include "runtime/cgroup/hierarchy.h"

enum { CONTROLLERS = 3 };
extern const char *const controller_names[CONTROLLERS]; /* the bit 1 << i is named [i] */

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
