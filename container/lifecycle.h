/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with containers, one function a verb ("Operations" and "Lifecycle" in the
 * runtime-spec's runtime.md), for programs that have read their options. None exits or prints.
 */
#ifndef CONTAINER_LIFECYCLE_H
#define CONTAINER_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "container/group.h"
#include "oci/config.h"

/* Names as runc and crun have them. A zeroed one is the default of each but root. */
struct lifecycle_options {
	const char *root; /* the store */
	enum group_manager manager;
	const char *id;
	const char *bundle;      /* as given; NULL: "." */
	const char *config_file; /* in the bundle, or absolute; NULL: "config.json" */
	const char *console_socket;
	const char *pid_file;
	int preserve_fds;          /* so many after 2 */
	int listen_fds;            /* LISTEN_FDS of our environment; those are preserved as well */
	const char *notify_socket; /* NOTIFY_SOCKET of our environment */
	bool no_pivot, no_new_keyring, detach, keep;
	/* exec */
	const char *apparmor, *process_label;
	const char *cgroup; /* a group below the container's */
	bool ignore_paused; /* else a container that is paused is EBUSY */
};

/* Up to the gate. The container's process waits for `start`. */
int container_create(const struct lifecycle_options *options, struct err *e);

int container_start(const struct lifecycle_options *options, struct err *e);

/*
 * create, start, and unless options->detach: forwards signals, a terminal where process.terminal is
 * set and there is no console socket, waits, deletes (unless options->keep). *STATUS is the exit code
 * to give: the program's own, 128 + n, 126, 127.
 */
int container_run(const struct lifecycle_options *options, int *status, struct err *e);

/* PROCESS is what is added to a running container; *STATUS as of container_run, 0 when detached. */
int container_exec(const struct lifecycle_options *options, const struct oci_process *process,
                   int *status, struct err *e);

/*
 * By pidfd, with the start time checked. ALL: to each process of its group, as well when its first
 * one is gone. ESRCH: there is nothing to signal.
 */
int container_kill(const struct lifecycle_options *options, int signo, bool all, struct err *e);

/*
 * One that is not stopped is EBUSY, as the spec wants it, though crun and runc end what waits at its
 * gate. FORCE: it is ended first, and one that is not there is no error. Runs the poststop hooks.
 */
int container_delete(const struct lifecycle_options *options, bool force, struct err *e);

int container_pause(const struct lifecycle_options *options, bool paused, struct err *e);

/* Sets what RESOURCES says and leaves all else as it is. */
int container_update(const struct lifecycle_options *options, const struct oci_resources *resources,
                     struct err *e);

/* Writes SCHEMA ("L3:0=f" and the like, a line each) to its Intel RDT group. */
int container_update_rdt(const struct lifecycle_options *options, const char *schema,
                         struct err *e);

/* The pids of its processes, in our pid namespace. The caller frees. */
int container_processes(const struct lifecycle_options *options, pid_t **pids, size_t *count,
                        struct err *e);

#endif
