/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control group of a container, by linux.cgroupsPath and linux.resources ("Control groups" in
 * config-linux.md), in whatever hierarchies this mount namespace shows: v2 alone, v1 alone, or v1
 * controllers beside a v2 tree (hybrid). What runtime/cgroup/ has is used; this adds groups at any
 * path, every controller, device rules (BPF_PROG_TYPE_CGROUP_DEVICE on v2, devices.allow and
 * devices.deny on v1) and systemd as the one who makes the group (org.freedesktop.systemd1).
 *
 * A value that a controller refuses, or whose controller is missing, is an error that names the key of
 * the document, the file and the way out.
 */
#ifndef CONTAINER_GROUP_H
#define CONTAINER_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "oci/config.h"

enum group_manager { GROUP_CGROUPFS, GROUP_SYSTEMD };

enum { GROUP_HIERARCHIES_MAX = 16, GROUP_MARK_SIZE = 33 };

/* By the mark of an opened group. */
enum group_whose {
	GROUP_OURS,     /* or gone */
	GROUP_UNMARKED, /* made by somebody else since; or a create was killed before it marked it */
	GROUP_OTHERS,
	GROUP_UNSURE, /* the file system takes no marks, or the record is older than they are */
};

struct group {
	int v2fd; /* the directory in the v2 tree, for CLONE_INTO_CGROUP; -1: there is no v2 tree */
	struct group_hierarchy {
		int fd;      /* of the directory; v2fd is the v2 tree's, not a second one */
		int tasksfd; /* of v1, for group_join: "tasks", opened when made; else -1 */
		char controllers[64]; /* of v1: "cpu,cpuacct", "name=systemd"; empty is v2 */
		char *place;          /* the directory, absolute; on the heap */
		const char *path;     /* the end of PLACE: below the mount, no leading "/" */
	} hierarchies[GROUP_HIERARCHIES_MAX];
	int count; /* 0: a user without privilege or delegation has none, and no limits */
	bool made; /* or opened and not another's; else there is nothing to remove */
	enum group_manager manager;
	char *unit; /* of GROUP_SYSTEMD: the scope */
	char mark[GROUP_MARK_SIZE];
	enum group_whose whose;
	/* A scope has to have a process: one of ours is in it till group_release, by when the
	 * container's own is. 0: none. */
	pid_t placeholder;
};

void group_init(struct group *group);
void group_release(struct group *group); /* closes; removes nothing */

/*
 * Says where the group is to be, and makes nothing: group_save then tells who comes after us. PATH is
 * linux.cgroupsPath or NULL: absolute is below the root of the hierarchies, relative below our own group,
 * NULL or "" is "/agentdock/ID"; for GROUP_SYSTEMD "slice:prefix:name", of which each part may be empty.
 */
int group_place(struct group *group, enum group_manager manager, const char *path, const char *id,
                struct err *e);

/*
 * Makes a group that is placed, and marks it. One that is there and has processes, or is frozen, or has
 * another's mark, or is below or above one that has, is EBUSY. On failure
 * nothing of it is left, and GROUP is empty. RESOURCES (or NULL) are what group_set is going to set: a
 * scope of systemd begins with what systemd knows of them.
 */
int group_make(struct group *group, const struct oci_resources *resources, struct err *e);

/*
 * What group_open takes, for the store. The caller frees. One that was opened is not to be touched
 * before GROUP->whose is looked at; of another's, no descriptor is left, as of one that is gone.
 */
int group_save(const struct group *group, char **text, struct err *e);
int group_open(struct group *group, const char *saved, struct err *e);

/* A group BELOW the container's, for exec --cgroup; it replaces GROUP. Hierarchies that lack it keep
 * the container's own; ENOENT: all lack it. */
int group_descend(struct group *group, const char *below, struct err *e);

/*
 * group_join puts the calling process, which has one thread, into the v1 hierarchies, by descriptors
 * that group_make has opened, and group_prepare_join of an opened group opens; CLONE_INTO_CGROUP with
 * v2fd has done the v2 tree. group_move puts PID into all; a user who may not by himself, because we are
 * outside of what his systemd was delegated (in a session), has systemd do it.
 */
int group_prepare_join(struct group *group, struct err *e);
int group_join(const struct group *group, struct err *e);
int group_move(const struct group *group, pid_t pid, struct err *e);

/* Sets what is set in RESOURCES. UPDATE: of a group that is in use; devices are left alone when empty. */
int group_set(const struct group *group, const struct oci_resources *resources, bool update,
              struct err *e);

/* With no rule at all (RESOURCES NULL) the default list holds: what the spec's default devices need. */
int group_set_devices(const struct group *group, const struct oci_resources *resources,
                      struct err *e);

/*
 * Makes UID, as the host has it, the owner of the directory and of what the kernel says may be handed on
 * (/sys/kernel/cgroup/delegate), so that it can make groups below; limits stay out of its reach. For
 * v2 alone: in v1 that is not secure ("Cgroup ownership" in config-linux.md), and nothing is done.
 */
int group_give(const struct group *group, uid_t uid, struct err *e);

int group_freeze(const struct group *group, bool frozen, struct err *e); /* waits until it is */
int group_is_frozen(const struct group *group, bool *frozen, struct err *e);
/* The same of group_save's text, for less. One that is another's is not. */
int group_saved_is_frozen(const char *saved, bool *frozen, struct err *e);
/* Does a v1 freezer keep SIGKILL waiting, here or in a group that the container made below? Lets go. */
bool group_is_held(const struct group *group);
void group_let_go(const struct group *group);
int group_signal(const struct group *group, int signo, struct err *e);
int group_kill(const struct group *group,
               struct err *e); /* all, and those that are forked meanwhile */
int group_processes(const struct group *group, pid_t **pids, size_t *count, struct err *e);
int group_wait_empty(const struct group *group, int timeout_ms, struct err *e);
int group_remove(struct group *group, struct err *e); /* sub-groups first; gone is no error */

/* What `events` prints. Numbers that the kernel does not tell are 0; UINT64_MAX is no limit. Swap is
 * without memory, on v1 too. */
struct group_stats {
	struct {
		uint64_t usage_ns, user_ns, system_ns, periods, throttled_periods, throttled_ns;
	} cpu;
	struct {
		uint64_t usage, max_usage, limit, failcnt, cache, swap_usage, swap_limit,
			kernel_usage;
		struct oci_map raw; /* memory.stat */
	} memory;
	struct {
		uint64_t current, limit;
	} pids;
	struct group_io {
		uint64_t major, minor, value;
		char op[16];
	} * io_bytes, *io_ops;
	size_t io_bytes_count, io_ops_count;
	struct group_hugetlb {
		char size[16];
		uint64_t usage, max, failcnt;
	} * hugetlb;
	size_t hugetlb_count;
	uint64_t oom_kills;
};
int group_stats(const struct group *group, struct group_stats *stats, struct err *e);
void group_stats_release(struct group_stats *stats);

/* A descriptor that becomes readable at an out-of-memory event, for `events`. */
int group_oom_watch(const struct group *group, struct err *e);

#endif
