/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall three of four: what a sandbox may use. One group for each sandbox, PARENT/NAME.
 *
 * Designed for the v2 hierarchy. Where cpu, memory and pids still sit on v1 hierarchies (hybrid
 * hosts), the same limits are set through those (hybrid.c, the only file that knows), while
 * CLONE_INTO_CGROUP, cgroup.freeze and cgroup.kill use the v2 tree beside them.
 * Everything goes by descriptor of a group's directory. cgroups(7), Documentation/admin-guide/
 * cgroup-v2.rst; cgroup.kill needs kernel 5.14 (a freeze-and-kill loop stands in before).
 */
#ifndef RUNTIME_CGROUP_CGROUP_H
#define RUNTIME_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum cgroup_mode { CGROUP_NONE, CGROUP_V2, CGROUP_HYBRID };
const char *cgroup_mode_name(enum cgroup_mode mode); /* "v2", "hybrid", "none" */

/* Which limits may be missing on this host, by the operator's word (--allow-missing). */
enum cgroup_controller {
	CGROUP_CPU = 1 << 0,
	CGROUP_MEMORY = 1 << 1,
	CGROUP_PIDS = 1 << 2,
};

/* What this host offers. */
struct cgroup_host {
	enum cgroup_mode mode;
	char v2_mount[128];
	char v1_mounts[3][128]; /* cpu, memory, pids; hybrid only */
	unsigned controllers;   /* set of enum cgroup_controller that can be used */
	bool has_kill, has_freeze;
};
int cgroup_host_probe(struct cgroup_host *host, struct err *e);

/* 0 always means "no limit wanted". */
struct cgroup_limits {
	uint64_t cpu_millis;   /* 1500 is one and a half CPUs; period 100 ms */
	uint64_t memory_bytes; /* swap is always 0 beside it */
	uint64_t pids;
	bool oom_group;          /* one out-of-memory kill takes the whole group (v2 only) */
	unsigned may_be_missing; /* set of enum cgroup_controller */
};

struct cgroup {
	enum cgroup_mode mode;
	int v2fd;          /* the group's directory in the v2 tree */
	int v1fds[3];      /* cpu, memory, pids; -1 unless hybrid */
	int tasksfds[3];   /* of the v1 groups, for cgroup_join; -1 unless hybrid and just made */
	char path[128];    /* PARENT/NAME, below the mounts; for messages and the reaper */
	unsigned enforced; /* set of enum cgroup_controller: what cgroup_limit did set */
};
void cgroup_init(struct cgroup *cgroup);    /* all descriptors -1 */
void cgroup_release(struct cgroup *cgroup); /* closes descriptors; removes nothing */

/*
 * Makes PARENT (and on v2 delegates the controllers down to it) and PARENT/NAME in each hierarchy.
 * On failure nothing of PARENT/NAME is left.
 */
int cgroup_create(struct cgroup *cgroup, const struct cgroup_host *host, const char *parent,
                  const char *name, struct err *e);

/* Opens a group that exists (for the reaper); hierarchies that lack it are left at -1. */
int cgroup_open(struct cgroup *cgroup, const struct cgroup_host *host, const char *parent,
                const char *name, struct err *e);

/* Sets the limits and reads each back. A limit whose controller is missing is an error that names
 * controller, group and way out, unless may_be_missing has it. */
int cgroup_limit(struct cgroup *cgroup, const struct cgroup_limits *limits, struct err *e);

/*
 * Puts the calling process, which has one thread, in the v1 hierarchies of a group that
 * cgroup_create made, whatever it may still open; CLONE_INTO_CGROUP with v2fd has done the v2 tree.
 * Nothing to do on v2.
 */
int cgroup_join(const struct cgroup *cgroup, struct err *e);

/* Moves process PID, another's child or one's own, into the group's v2 tree. */
int cgroup_take_in(const struct cgroup *cgroup, pid_t pid, struct err *e);

struct cgroup_usage {
	uint64_t cpu_us, cpu_user_us, cpu_system_us;
	uint64_t throttled_us;
	uint64_t memory_peak_bytes; /* 0: this kernel does not say */
	uint64_t pids_peak;         /* 0: this kernel does not say */
	uint64_t oom_kills;
	uint64_t pids_refused;
};
int cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *usage, struct err *e);

int cgroup_freeze(const struct cgroup *cgroup, bool frozen, struct err *e); /* waits until it is */

/* Sends SIGNO to every process of the group, and of groups below it, but SPARED. One that is forked
 * meanwhile may be missed: it is a request, not a wall. */
int cgroup_signal(const struct cgroup *cgroup, int signo, pid_t spared, struct err *e);

/* Sends SIGKILL to every process of the group, and of groups below it, until none is left to send
 * it to; does not wait for their end. */
int cgroup_kill(const struct cgroup *cgroup, struct err *e);

/* Waits (on cgroup.events) until no process is in the group; -ETIMEDOUT after TIMEOUT_MS. */
int cgroup_wait_empty(const struct cgroup *cgroup, int timeout_ms, struct err *e);

/* Removes the group from every hierarchy, sub-groups first; a group that still drains is tried
 * again for a bounded time. One that is gone is no error. */
int cgroup_remove(struct cgroup *cgroup, const struct cgroup_host *host, struct err *e);

#endif
