/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of runtime/ share and nobody else sees: the running sandbox as the process outside
 * holds it, and what the process inside needs of it.
 */
#ifndef RUNTIME_INTERNAL_H
#define RUNTIME_INTERNAL_H

#include <stdint.h>
#include <sys/types.h>

#include "rootfs/archive_result.h"
#include "rootfs/disk.h"
#include "runtime/cgroup/cgroup.h"
#include "runtime/channel.h"
#include "runtime/output.h"
#include "runtime/sandbox.h"
#include "seccomp/notify.h"

/* The most that /dev/shm is: what docker gives. */
enum { SHM_BYTES = 64 << 20 };

/* Host ids: above those that systemd-nspawn hands out, below 2^31 (UIDS-GIDS of systemd.io). */
enum { SLOTS = 4096 };
#define SLOT_HOST_BASE 0x70000000u

/* What a start that failed has learnt of the host: it can be played again, otherwise. */
enum again {
	AGAIN_NOT,
	AGAIN_WITHOUT_IDMAP, /* the layers' file system cannot be idmapped */
	AGAIN_JOINING_LATER, /* who is cloned into a cgroup is killed */
};

/*
 * One sandbox, from the outside, on the heap. Every descriptor is -1 when it is not open, so that
 * tearing down a half-built one is the same as tearing down a whole one.
 */
struct sandbox {
	const struct sandbox_spec *spec;
	const struct sandbox_watch *watch;
	struct sandbox_host *host;
	struct report *report;
	/* of a sandbox that is prepared before its command is known: spec and report are these */
	struct sandbox_spec own_spec;
	struct report *own_report;
	struct identity identity; /* the spec's, with user_namespace and host_base filled in */

	int turns; /* the semaphore that our turn is of; -1: we have none */

	/* label: the locked file RUN/sN that marks all this as ours while we live */
	int slot;
	int labelfd;

	struct cgroup cgroup;
	struct disk disk;
	int layerfds[IMAGE_LAYERS_MAX], lockfds[IMAGE_LAYERS_MAX];
	int layers_count;
	int initfd;

	int stdin_sourcefd, stdin_pipefd; /* what we read, where we write it */
	int outputfds[2];                 /* what the command writes */
	int insidefds[3];                 /* the command's ends; closed here after the clone */
	struct output outputs[2];

	int archiverfd, packfd; /* the unpacker's program; the workspace's archive, read end */
	int pack_resultfd;      /* what the packer says of its end */
	pid_t packer;

	int channelfd, inside_channelfd;
	pid_t pid;
	int pidfd, procfd;
	/* as long as we hold it, pid 1's end need not wait for its mounts to be taken down; -1 where
	 * that end was quicker than we */
	int mountnsfd;
	int handedfd; /* on its way inside with the next GO: the assembled root, the late command */
	int listenerfd;
	enum again again;
	struct seccomp_denials denials;

	uint64_t began_us, started_us, ended_us;
	uint64_t deadline_us; /* of the part that is played now */
	bool command_ended;
	int command_status;
	int pid1_status;
	enum channel_fault fault;
};

/* The process inside: its own copy of the sandbox as it was at the clone, and what came since. */
struct inside {
	const struct sandbox *sandbox;
	const struct sandbox_spec *spec;
	int channelfd;
	int receivedfd; /* came with the last GO */
	int hostrootfd; /* the host's root, as long as it is in sight */
	int rootfd;     /* the new root */
	int listenerfd; /* of the seccomp filter, on its way outside */
	int landlock_abi;
	struct sandbox_spec given; /* the spec with the command's words as we keep them */
	char program[4096];        /* the command's resolved path */
	enum channel_fault fault;
	uint32_t row_us[REPORT_ROWS_MAX];
};

/* ---- turn.c ---- */

enum { TURNS_KEY = 0x61676474 }; /* semget(2); documented for operators */

/* What is left of the building is the inside's, or nothing. Once, or again. */
void turn_give_back(struct sandbox *sandbox);

/* ---- label.c: what marks a sandbox as ours; sandbox_reap goes by it ---- */

/* Takes the name RUN/sN away; what it stood for has been removed. */
void label_drop(struct sandbox *sandbox);

/* As sandbox_reap, for 20 ms at most and without waiting for anybody: a command runs meanwhile. */
int reap_some(struct sandbox_host *host, int *reaped, struct err *e);

/* ---- sandbox.c ---- */

/* Of all descriptors that tearing LEFT down needs, the highest. */
int sandbox_highest_fd(struct sandbox *left);

/* ---- supervise.c ---- */

/* Whether the time to start is over, or the start is canceled: -ETIME, -ECANCELED. */
int supervise_check(struct sandbox *sandbox, struct err *e);

/* Waits for one message from the inside, while time-out and cancel are minded. As channel_receive;
 * -ETIME and -ECANCELED as well. */
int supervise_building(struct sandbox *sandbox, struct channel_message *message, int *fd,
                       struct err *e);

/* From the command's start to the death of pid 1: drains, forwards, counts, times out, cancels. */
int supervise_running(struct sandbox *sandbox, struct err *e);

/* ---- score.c ---- */

/*
 * Plays the score up to the command's start, or, where the command comes later, up to the gate
 * first and from there with the second call. On failure sandbox->fault says whose it is.
 */
int score_play(struct sandbox *sandbox, struct err *e);
int score_play_to_gate(struct sandbox *sandbox, struct err *e);
int score_play_from_gate(struct sandbox *sandbox, struct err *e);

/* The process inside, from its first instruction to exec. */
_Noreturn void score_play_inside(struct sandbox *sandbox);

/* Plays the inside halves of the dropping rows (part 4) on the calling process. */
int score_drop(struct inside *in, struct err *e);

/* ---- outside.c ---- */

/* As err_sys, where the kernel refused to make a namespace. */
int namespaces_refused(const char *what, struct err *e);

/*
 * Closes what the process inside, cloned a moment ago, has of its builder, all but what it works
 * with: other sandboxes' pipes, disks and labels, and its caller's.
 */
int keep_own_descriptors(const struct sandbox *sandbox, struct err *e);

/* ---- inside.c ---- */

/*
 * The descriptors of a program that is executed inside: its 0, 1, 2, one to the outside (INIT_FD),
 * and the program itself, which goes with the exec. FROM in this order; all others are closed.
 */
enum { PROGRAM_FD = 4, PLACED_FDS };
int place_descriptors(const int from[PLACED_FDS], struct err *e);

/* ---- spawn.c: what the last row needs to have been done by others before it ---- */

/* From here on in->spec has the command's words in memory of its own, which stays until exec. */
int keep_words(struct inside *in, struct err *e);

/* From here on nobody inside can read our memory or take our descriptors. */
int close_memory(struct err *e);

/* ---- workspace.c ---- */

/* Unpacking failed: where that was because packing had failed, *e becomes that. Returns -e->code. */
int workspace_first_cause(struct sandbox *sandbox, struct err *e);

/* ---- outside.c, inside.c, spawn.c, workspace.c: the halves that the score names ---- */
#define OUTSIDE(name) int name(struct sandbox *sandbox, struct err *e)
#define INSIDE(name)  int name(struct inside *in, struct err *e)

OUTSIDE(take_turn);
OUTSIDE(claim_label);
OUTSIDE(make_cgroup);
OUTSIDE(set_limits);
OUTSIDE(make_disk);
OUTSIDE(open_layers);
OUTSIDE(make_devices);
OUTSIDE(open_streams);
OUTSIDE(load_init);
OUTSIDE(start_packing);
OUTSIDE(clone_inside);
OUTSIDE(map_ids);
OUTSIDE(assemble_root);
OUTSIDE(open_gate);

INSIDE(join_cgroup);
INSIDE(make_namespaces);
INSIDE(new_session);
INSIDE(session_keyring);
INSIDE(private_mounts);
INSIDE(set_hostname);
INSIDE(make_network);
INSIDE(become_root);
INSIDE(attach_root);
INSIDE(cgroup_namespace);
INSIDE(attach_proc);
INSIDE(attach_devices);
INSIDE(mask_proc);
INSIDE(attach_tmpfs);
INSIDE(pivot);
INSIDE(ensure_account);
INSIDE(unpack_workspace);
INSIDE(read_only_root);
INSIDE(set_rlimits);
INSIDE(drop_bounding);
INSIDE(lock_securebits);
INSIDE(become_user);
INSIDE(drop_capabilities);
INSIDE(no_new_privs);
INSIDE(restrict_files);
INSIDE(pass_gate);
INSIDE(working_directory);
INSIDE(find_command);
INSIDE(arrange_descriptors);
INSIDE(install_filter);
INSIDE(execute);

#endif
