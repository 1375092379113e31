/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cgroups are made of, for whoever makes groups: control files by descriptor, directories of one
 * hierarchy, the processes in one, lines of mountinfo. cgroups(7), proc(5).
 */
#ifndef RUNTIME_CGROUP_HIERARCHY_H
#define RUNTIME_CGROUP_HIERARCHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { CONTROL_TEXT_SIZE = 4096, CONTROLLER_NAME_SIZE = 32 };

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

/* ---- limits.c ---- */

/* 1: there is swap space; 0: there is none. */
int host_has_swap(struct err *e);

/* ---- groups.c: directories of one hierarchy ---- */

/* Makes MOUNT/PATH and the groups above it that it lacks; a group PATH that is there is EEXIST.
 * Returns its descriptor. */
int hierarchy_make(const char *mount, const char *path, struct err *e);

/* Returns the descriptor of MOUNT/PATH, or -errno (ENOENT: it is not there). */
int hierarchy_open(const char *mount, const char *path, struct err *e);

/* Removes MOUNT/PATH and what is below it, trying again while it is busy; gone is no error. */
int hierarchy_remove(const char *mount, const char *path, struct err *e);

/* Calls VISIT for the group and for each below it, a group after those below it. FD is valid during
 * the call. */
typedef int hierarchy_visit(int parentfd, const char *name, int fd, void *data);
int hierarchy_walk(int groupfd, hierarchy_visit *visit, void *data);

/*
 * Enables CONTROLLER in cgroup.subtree_control of a v2 group: 0 or -errno. EBUSY: processes sit in the
 * group itself.
 */
int subtree_enable(int groupfd, const char *controller);

/* ---- members.c: the processes of a group and of those below it ---- */

struct members {
	int fd;                  /* the group's directory in one hierarchy */
	const char *controllers; /* of the hierarchy, as /proc/PID/cgroup has them; "" is v2 */
	const char *path;        /* below the mount, without a leading "/" */
};

/* Calls VISIT for each pid; returns how many there are, also those of other pid namespaces. */
typedef int member_visit(int pid, void *data);
int members_list(const struct members *members, member_visit *visit, void *data);

/* Sends SIGNO to each but SPARED; returns how many are listed or -errno. One that is forked meanwhile
 * may be missed. A group that is gone has none. */
int members_signal(const struct members *members, int signo, pid_t spared);

/* Freezes or thaws, and waits until it is so: 0, -ETIMEDOUT, or -errno. Of v1, the freezer's only. */
int members_freeze(const struct members *members, bool frozen, int timeout_ms);
int members_are_frozen(const struct members *members, bool *frozen);

/* Is SIGKILL kept waiting, because the group or one below it is frozen? Of v1 alone: what is frozen in
 * v2 dies. members_let_go thaws all of them, the upper ones last, and does not wait: what was frozen by
 * who is to die then dies of what waits for it before it can freeze anything again. */
bool members_are_held(const struct members *members);
void members_let_go(const struct members *members);

/* SIGKILL to each until none is left: what stands in for cgroup.kill on v1 and on kernels before 5.14. */
int members_kill(const struct members *members, struct err *e);

/* Does TEXT, the content of /proc/PID/cgroup, name the group PATH of this hierarchy, or one below it?
 * Both may be shown below the same longer prefix. TEXT is cut at the end of that line. */
bool group_is_named(char *text, const char *controllers, const char *path);

/* ---- probe.c ---- */

/* What of a line of mountinfo matters here. */
struct mount_line {
	char *root, *point, *type, *options;
};

/* Cuts up and unescapes a line of mountinfo; false when it is not in the form that proc(5) gives. */
bool mount_line_parse(char *line, struct mount_line *mount);

/* Is PATH a directory of a file system with this magic number? */
bool is_filesystem(const char *path, long magic);

/* Is WORD one of these comma-separated OPTIONS? */
bool has_option(const char *options, const char *word);

#endif
