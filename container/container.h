/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container made of an OCI bundle: what its runtime knows outside, what the process inside needs,
 * and the halves of the rows that container/score.c names. Shared by the files of container/ only;
 * what others may call is in container/lifecycle.h and container/store.h.
 *
 * A container outlives its runtime: what later verbs need to know is in the store (container/store.h),
 * nothing is kept in memory. The container's first process is the one that was cloned: no process of
 * ours stays beside or above it.
 */
#ifndef CONTAINER_CONTAINER_H
#define CONTAINER_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "container/capabilities.h"
#include "container/group.h"
#include "container/lifecycle.h"
#include "container/store.h"
#include "oci/config.h"
#include "oci/state.h"
#include "seccomp/profile.h"

enum { NAMESPACES = 8 }; /* types of them */

struct container_mounts; /* mounts.c: what was opened outside for the inside to attach */

/* A container while it is built, or joined by exec, seen from outside. Descriptors are -1 unless open. */
struct container {
	const struct lifecycle_options *options;
	const struct oci_config *config; /* the container's */
	const struct oci_process
		*process;   /* what is to be executed: config's, or exec's own; without
	                                      args in a container that cannot be started */
	bool joins;         /* exec: into one that runs */
	bool comes_later;   /* create: there is a gate */
	bool hook_failed;   /* so the poststop hooks are to be run */
	const char *bundle; /* absolute */

	struct store_entry *entry;
	struct group group;
	struct container_mounts *mounts;
	struct seccomp_profile_filter *filter; /* NULL: none is wanted */
	struct capability_sets capabilities;   /* that the process is to have */

	int rootfd; /* exec: none. A detached tree of root.path, not yet anywhere (OPEN_TREE_CLONE) */
	int gatefd; /* the listening socket of the store's "start", held by the inside */
	int consolefd; /* connected to --console-socket, or the other end of our own; the master goes there */
	int notifyfd, notify_mountfd; /* the socket; its directory, detached */
	int terminalfd;               /* where the master comes, when it goes to nobody else */
	int channelfd, inside_channelfd;
	int hostprocfd; /* in->hostprocfd; opened outside: later "/" may be the container's */
	int nsfds
		[NAMESPACES]; /* of namespaces that are joined by path, in the order of namespaces.c */
	int targetfd;         /* exec: a pidfd of the container's first process */
	bool joins_later;     /* the group, after the clone: see clone_inside */
	const char *rootfs;            /* root.path, absolute */
	char *own_bundle, *own_rootfs; /* where no record has them yet */
	char *own_rdt_group;           /* as the record has it */

	pid_t pid; /* in our pid namespace */
	int pidfd, procfd;
};

/* The process inside: its own copy of the container as it was at the clone, and what came since. */
struct inside {
	const struct container *container;
	const struct oci_config *config;
	const struct oci_process *process;
	int channelfd; /* to who builds us; after the gate, to who starts us; -1 between them */
	int hostprocfd; /* O_PATH|O_DIRECTORY of a procfs of the host: our own files in it are "self/..." */
	int rootfd;     /* the new root, once it is attached; O_PATH */
	unsigned joins; /* CLONE_NEW* of namespaces that are left for join_namespaces */
	int fault;      /* enum channel_fault: whose the failing row is */
	pid_t host_pid; /* ours, as our runtime sees it; once note_pid has asked */
	char *program;  /* the file to execute, absolute, as seen from the new root */
	char **envp;
};

#define OUTSIDE(name) int name(struct container *container, struct err *e)
#define INSIDE(name)  int name(struct inside *in, struct err *e)

/* ---- group.c ---- */
OUTSIDE(place_group);
OUTSIDE(make_group);    /* by linux.cgroupsPath; of a container that runs: opens it */
OUTSIDE(set_resources); /* linux.resources, device rules included; before anybody is in the group */
OUTSIDE(move_into_group); /* the one that could not be cloned into it */
INSIDE(join_group);       /* the v1 hierarchies; CLONE_INTO_CGROUP has done the v2 tree */

/* ---- mounts.c, mount_*.c, root.c, devices.c, paths.c ---- */
OUTSIDE(open_sources);   /* root.path, the sources of bind mounts, idmaps: all before the clone */
OUTSIDE(close_sources);  /* which are the inside's now */
INSIDE(set_propagation); /* of the present "/", before anything is mounted */
INSIDE(attach_root);     /* in->rootfd */
INSIDE(attach_mounts); /* config.mounts, in order; targets beneath in->rootfd, made where they lack */
INSIDE(make_devices);  /* linux.devices, the default devices and links of /dev */
INSIDE(pivot);         /* pivot_root, MS_MOVE with --no-pivot; the root's propagation; cwd "/" */
INSIDE(mask_paths);    /* linux.maskedPaths */
INSIDE(protect_paths); /* linux.readonlyPaths */
INSIDE(protect_root);  /* root.readonly */

/* ---- namespaces.c ---- */
OUTSIDE(open_namespaces); /* container->nsfds, types checked */
OUTSIDE(clone_inside);    /* by way of a process that joins first, where one must be joined first */
OUTSIDE(map_ids);         /* newuidmap and newgidmap where we lack the privilege */
INSIDE(join_namespaces);  /* those that were not joined on the way */
INSIDE(own_time_namespace);
INSIDE(become_root);    /* of the user namespace */
INSIDE(new_namespaces); /* those that the clone has not made */
INSIDE(own_cgroup_namespace);

/* ---- exec.c ---- */
OUTSIDE(refuse_paused);

/* ---- hooks.c ---- */
OUTSIDE(run_create_runtime_hooks); /* prestart, then createRuntime */
INSIDE(run_create_container_hooks);
INSIDE(note_pid); /* in->host_pid */
INSIDE(run_start_container_hooks);

/* `start` fails where one of them does, as the spec has it since 1.2.1. */
int run_poststart_hooks(struct container *container, struct err *e);

/* ---- terminal.c ---- */
OUTSIDE(open_console_socket);
INSIDE(new_session);
INSIDE(open_console); /* in the container's own /dev/pts; becomes 0, 1, 2 and the controlling terminal */

struct winsize;
void terminal_own_size(struct winsize *size);      /* of the caller's, or 80 x 24 */
int terminal_receive(int socketfd, struct err *e); /* the master, from container->terminalfd */

/* ---- host_settings.c: what is of the container's namespaces ---- */
OUTSIDE(check_sysctls); /* refuses those that are not of a namespace of the container's own */
INSIDE(raise_loopback);
INSIDE(set_names); /* hostname, domainname */
INSIDE(set_sysctls);

/* ---- net_devices.c, rdt.c ---- */
OUTSIDE(move_net_devices);
OUTSIDE(join_rdt);

/* ---- process.c: each of the inside's acts on the calling process ---- */
OUTSIDE(check_process); /* what can be told before the clone; container->capabilities */
INSIDE(session_keyring);
INSIDE(set_oom_score);
INSIDE(set_scheduler);
INSIDE(set_io_priority);
INSIDE(set_memory_policy);
INSIDE(set_affinity); /* exec: execCPUAffinity */
INSIDE(set_personality);
INSIDE(set_rlimits);
INSIDE(set_labels); /* AppArmor, SELinux: what the next exec becomes */
INSIDE(drop_bounding);
INSIDE(become_user); /* umask, groups, gid, uid; keeps what capabilities are to be kept */
INSIDE(set_capabilities);
INSIDE(no_new_privs);

/* ---- filter.c ---- */
OUTSIDE(compile_filter); /* linux.seccomp -> container->filter; kept in the store for exec and later */
INSIDE(install_filter_early); /* where no_new_privs is off: while CAP_SYS_ADMIN is held */
INSIDE(install_filter_late);
void filter_free(struct seccomp_profile_filter *filter);

/* Sends the listener and whose it is to listenerPath. The descriptor stays the caller's. */
int filter_hand_over(const struct container *container, int listenerfd, struct err *e);

/* ---- create.c ---- */
OUTSIDE(keep_record); /* in the store: from here on delete --force finds all that there is */

/* ---- notify.c ---- */
OUTSIDE(open_notify);
INSIDE(attach_notify);

/* The socket, before anybody can look for it. */
int notify_listen(struct container *container, struct err *e);

/* What has come, some of it: container->notifyfd is -1 when it said that it is ready, which is passed on. */
void notify_pass_on(struct container *container);

/* Until it is ready, or has ended. */
int notify_await(struct container *container, struct err *e);

/* ---- gate.c ---- */
OUTSIDE(open_gate);
int gate_connect(const struct store_entry *entry, struct err *e); /* to who waits; a channel */
INSIDE(pass_gate); /* says READY to who builds us, waits for who starts us */

/* ---- command.c ---- */
INSIDE(find_program);        /* with the user's own eyes, by PATH of process.env; in->fault */
INSIDE(working_directory);   /* made where it lacks; must be inside */
INSIDE(own_null_device);     /* 0, 1, 2 that are the host's null device become the container's */
INSIDE(make_environment);    /* environment.c: in->envp */
INSIDE(arrange_descriptors); /* 0, 1, 2, those that are preserved, the channel: nothing else */
INSIDE(say_ready);
INSIDE(execute);

/* ---- score.c ---- */

/* Plays the outside halves and waits for the inside: until the gate, or until the program runs. On
 * failure *FAULT says whose it is (enum channel_fault). */
int score_play(struct container *container, int *fault, struct err *e);

/* Lets the process inside go that waits at the gate, at the other end of this channel. */
int score_open_gate(int channelfd, struct err *e);

/* What comes after the gate. */
int score_start(struct container *container, int *fault, struct err *e);

/* The process inside, from its first instruction to exec. JOINS: inside.joins. */
_Noreturn void score_play_inside(struct container *container, unsigned joins);

/*
 * Ties the life of the process inside to that of who builds it. The kernel forgets that with each
 * change of user, so it is said again after each. Does not return where nobody is there any more.
 */
int stay_tied(const struct inside *in, struct err *e);

/* ---- create.c ---- */

/* Both are for create, run and exec; the descriptors of a container are -1 from here on. */
void container_init(struct container *container, const struct lifecycle_options *options,
                    struct store_entry *entry);
void container_release(struct container *container);

/* All of `create`, the locked ENTRY included. On failure nothing is left, and ENTRY is released. */
int container_build(struct container *container, int *fault, struct err *e);

/* Ends it and takes away all that building has made. Keeps errno. */
void container_undo(struct container *container);

/* What is left to do outside when the program runs; it is ended where that fails. */
int container_started(struct container *container, struct err *e);

/* Are the descriptors that the caller wants to be preserved open? */
int preserved_check(const struct lifecycle_options *options, struct err *e);

int pid_file_write(const char *path, pid_t pid, struct err *e);

/* ---- shared by rows and verbs ---- */

/* hooks.c. After the container is gone: each of them is run, with a warning where one fails. */
void run_poststop_hooks(const struct oci_config *config, const char *id, const char *bundle);

/* The state document of the container as a hook or an agent is given it. The caller frees it. */
int state_document(const struct oci_config *config, const char *id, const char *bundle, int status,
                   pid_t pid, char **text, struct err *e);

/* Is this namespace (CLONE_NEW*) a new one of the container's? */
bool has_new_namespace(const struct oci_config *config, int type);

/* 1 where it is new or joined and not the runtime's. After open_namespaces; not for user. */
int has_own_namespace(const struct container *container, int type, struct err *e);

/*
 * Opens, or makes, PATH beneath ROOTFD as a mount target: an O_PATH descriptor. Links are followed as
 * if ROOTFD were "/" (RESOLVE_IN_ROOT), as the guest itself would follow them; procfs magic links
 * never. What lacks is made: directories 0755, at the end a file where AS_FILE.
 */
int target_open(int rootfd, const char *path, bool as_file, struct err *e);

#endif
