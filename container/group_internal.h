/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a container's group share. Contracts for others are in container/group.h. */
#ifndef CONTAINER_GROUP_INTERNAL_H
#define CONTAINER_GROUP_INTERNAL_H

#include "container/group.h"
#include "runtime/cgroup/hierarchy.h"

/* ---- group_place.c: where groups can be, and where this one is to be ---- */

struct group_mount {
	const char *controllers; /* as /proc/self/cgroup has them; "" is v2 */
	const char *point;       /* where the hierarchy is mounted */
	const char *own;         /* our own group below that, no leading "/" */
	int rank;
};
struct group_mounts {
	struct group_mount items[GROUP_HIERARCHIES_MAX];
	int count;
	char *cgroup_text, *mountinfo_text; /* what the items point to */
};

/* Those of this process, from /proc/self/cgroup and /proc/self/mountinfo. ENOTSUP: there is none. */
int group_mounts_find(struct group_mounts *mounts, struct err *e);
void group_mounts_release(struct group_mounts *mounts);

/* The same from the files' texts, which it cuts up and takes. CHECKED: each must be mounted now. */
int group_mounts_parse(struct group_mounts *mounts, char *cgroup_text, char *mountinfo_text,
                       bool checked, struct err *e);

/* linux.cgroupsPath (or NULL) as MOUNT shows it: below it, no leading "/"; *PATH is the caller's. */
int group_path_below(const struct group_mount *mount, const char *cgroups_path, const char *id,
                     char **path, struct err *e);

/* Adds the hierarchy with MOUNT/PATH (fd not open yet); NULL: no memory or no room. */
struct group_hierarchy *group_add(struct group *group, const char *controllers, const char *mount,
                                  const char *path);

/* ---- group_make.c: the directories ---- */

/* Makes each directory, inherits cpuset's, delegates v2's. SHARED: there may be processes already. */
int group_make_directories(struct group *group, bool shared, struct err *e);

/*
 * Enables CONTROLLER from the root of the v2 tree down to the parent of the group; an error says whose
 * fault it is.
 */
int group_enable(const struct group *group, const char *controller, struct err *e);

/* ---- group.c ---- */

/* The hierarchy of v1 that has CONTROLLER, or NULL. */
const struct group_hierarchy *group_v1(const struct group *group, const char *controller);
/* The one of v2, or NULL. */
const struct group_hierarchy *group_v2(const struct group *group);
/* The one of CONTROLLER: of v1, else of v2, else NULL. */
const struct group_hierarchy *group_of(const struct group *group, const char *controller);
/* The one that has the mark, and all processes; or NULL. It is made first and removed last. */
const struct group_hierarchy *group_deciding(const struct group *group);
/* Its processes: those of the v2 tree, of the freezer, or of the first hierarchy. */
struct members group_members(const struct group *group);

/* ---- group_mark.c ---- */

/* GROUP->mark, anew. */
int group_mark_choose(struct group *group, struct err *e);

/* FD is of the deciding directory, PLACE its path. EBUSY: it has another's. */
int group_mark_set(const struct group *group, int fd, const char *place, struct err *e);
void group_mark_remove(int fd);
enum group_whose group_mark_compare(const struct group *group, int fd);

/* EBUSY: one above, or below, has a mark of another's. To be asked with the own mark set: of two who are
 * below each other at least one sees it. */
int group_mark_check_above(const struct group_hierarchy *of, struct err *e);
int group_mark_check_below(struct group *group, int fd, const char *place, struct err *e);

/* ---- group_systemd.c ---- */

/* "a-b.slice" -> "a.slice/a-b.slice"; and the scope's name. Both are the caller's. */
int group_systemd_path(const char *cgroups_path, const char *id, char **path, char **unit,
                       struct err *e);
/* The same below the manager's own root, absolute, which the caller frees; the scope goes to GROUP. */
int group_systemd_place(struct group *group, const char *cgroups_path, const char *id, char **path,
                        struct err *e);
/* Of one that is placed. The scope has its limits when this returns. */
int group_systemd_start(struct group *group, const struct oci_resources *resources, struct err *e);
/* For an update. What systemd writes is written when this returns. */
int group_systemd_set(const struct group *group, const struct oci_resources *resources,
                      struct err *e);
int group_systemd_attach(const struct group *group, pid_t pid, struct err *e);
int group_systemd_stop(const struct group *group, struct err *e); /* gone is no error */
void group_systemd_end_placeholder(struct group *group);

/* ---- group_systemd_limits.c ---- */

struct bus_body;
/* RESOURCES as elements of an a(sv). */
void group_systemd_put_limits(struct bus_body *body, const struct oci_resources *resources);

/* ---- group_write.c: one value of the document into one control file ---- */

/* Where one value goes. The texts of errors name KEY with its path, FILE and the group. */
struct group_setting {
	const char *key, *controller, *file;
};

/* Writes TEXT. -ENOENT with e->code 0 where OPTIONAL: there is no such file. */
int group_write(const struct group *group, const struct group_setting *setting, const char *text,
                bool optional, struct err *e);

/* Is the list HAVE ("0-3,7") not empty, and in the list WANT? */
bool group_list_within(const char *have, const char *want);

/* ENOTSUP: KEY cannot be had, because WHY. */
int group_refuse(const char *key, const char *why, struct err *e);

/* ---- group_v1.c, group_v2.c: tables of settings ---- */

/* What is to be set, and where. */
struct group_change {
	const struct group *group;
	const struct oci_resources *resources;
	bool update; /* of a group in use: what RESOURCES does not say stays */
};

enum group_value_type { VALUE_SIGNED, VALUE_UNSIGNED, VALUE_WORD };

/*
 * One key of the document and its file; without a file this kind of hierarchy has nothing like it, and
 * the key is refused. TEXT, where there is one, writes the value: 1 there is one, 0 there is none, < 0
 * it is refused. Else it is the number or word at MEMBER of the object at PART.
 */
struct group_row {
	struct group_setting setting;
	int (*text)(const struct group_change *change, char *text, size_t size, struct err *e);
	size_t part, member;
	enum group_value_type type;
	bool zero;             /* 0 is a value; else it is the same as unset */
	bool default_zero;     /* 0 is what a new group has: a value for an update only */
	bool read_back;        /* the kernel may take a value and do nothing */
	const char *effective; /* the list that counts, of which the kernel may leave out any */
};
enum { GROUP_VALUE_SIZE = 4096 };

/* What rows begin with. */
#define KEY(part, key)       "linux.resources." part "." key
#define MEMORY(key)          KEY("memory", key), "memory"
#define CPU(key, controller) KEY("cpu", key), controller
#define OF_MEMORY(name)                                                                            \
	.part = offsetof(struct oci_resources, memory), .member = offsetof(struct oci_memory, name)
#define OF_CPU(name)                                                                               \
	.part = offsetof(struct oci_resources, cpu), .member = offsetof(struct oci_cpu, name)

extern const struct group_row group_v1_rows[], group_v2_rows[];
extern const size_t group_v1_rows_count, group_v2_rows_count;

int group_pids_text(const struct group_change *change, char *text, size_t size, struct err *e);

/* ---- group_lists.c: what is a list in the document ---- */
int group_set_block_io(const struct group_change *change, struct err *e);
int group_set_hugepages(const struct group_change *change, struct err *e);
int group_set_network(const struct group_change *change, struct err *e);
int group_set_rdma(const struct group_change *change, struct err *e);
int group_set_unified(const struct group_change *change, struct err *e);

/* The conversions of crun(1), "CGROUP v2". */
uint64_t group_weight_of_shares(uint64_t shares);
uint64_t group_weight_of_block_io(uint64_t weight);

/* ---- group_devices.c, group_bpf.c ---- */

/* A rule with its type told apart: 'c' or 'b'. -1: all. */
struct device_rule {
	int64_t major, minor;
	char type;
	bool allow;
	unsigned char access; /* of DEVICE_* */
	bool any_node;        /* the default that lets any node be made */
};
enum { DEVICE_MKNOD = 1, DEVICE_READ = 2, DEVICE_WRITE = 4, DEVICE_ALL = 7 };

/* Rules in order: of those that match an access, the last one says. None: no. */
struct device_rules {
	struct device_rule *items;
	size_t count;
};

/* The document's rules, and what the default devices need behind the last of them that denies all. The
 * caller frees items. */
int device_rules_list(const struct oci_resources *resources, struct device_rules *rules,
                      struct err *e);

/* Are all devices allowed? */
bool device_rules_allow_all(const struct device_rules *rules);

/*
 * The same as v1 has it: a default and exceptions to it, no two of which are of the same device. ENOTSUP
 * where RULES cannot be put so: one denies a part of what another allows, or the reverse.
 */
struct device_set {
	bool allow; /* the default */
	struct device_rule *items;
	size_t count;
};
int device_set_make(const struct device_rules *rules, struct device_set *set, struct err *e);

struct bpf_insn;
/* The program of RULES: *COUNT instructions, which the caller frees. */
int device_program(const struct device_rules *rules, struct bpf_insn **program, size_t *count,
                   struct err *e);

/* Loads RULES' program and attaches it to GROUPFD in place of one that we attached before. */
int device_program_attach(int groupfd, const struct device_rules *rules, struct err *e);

#endif
