/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is running: a sandbox, from its spec to its report. One process builds and supervises one
 * sandbox at a time; no threads. All that outlives a SIGKILL of that process (cgroups, a directory,
 * a slot) carries the lock that died with it, and is reaped by the next start.
 */
#ifndef RUNTIME_SANDBOX_H
#define RUNTIME_SANDBOX_H

#include "base/err.h"
#include "fleet/report.h"
#include "rootfs/image.h"
#include "runtime/cgroup/cgroup.h"
#include "runtime/spec.h"

/* Where this host keeps things. NULL members take the default in brackets. */
struct sandbox_host_paths {
	const char *state; /* [/var/lib/agentdock] images, layers, disk templates, kept disks */
	const char *run;   /* [/run/agentdock] one directory for each running sandbox, slots */
	const char *cgroup_parent; /* [agentdock] below the cgroup mounts */
	const char *archiver;      /* path of the program agentdock-archive; no default */
};

struct sandbox_host {
	struct image_store store;
	int runfd;
	char run_path[256];
	char cgroup_parent[64];
	struct cgroup_host cgroups;
	bool clone_into_kills; /* learnt: see clone_inside in outside.c */
};
int sandbox_host_open(struct sandbox_host *host, const struct sandbox_host_paths *paths,
                      struct err *e);
void sandbox_host_release(struct sandbox_host *host);

/* How the caller follows a run. Zero-initialised but for the descriptors (-1) follows nothing. */
struct sandbox_watch {
	int livefds[2]; /* what the command writes goes here as well, chunk by chunk; -1: nowhere.
	                 * A slow reader slows the command down, never the time-out. */
	int cancelfd;   /* signalfd(2): a signal cancels the run (TERM, grace, KILL); a second one
	                 * kills at once; -1: none */
	void (*phase)(void *data, enum report_phase phase); /* may be NULL */
	void *data;
};

/* One that is prepared, or over and as far as it is left. */
struct sandbox;

/*
 * Runs SPEC from nothing to nothing: build, supervise, tear down, collect. Always fills REPORT (the
 * caller releases it), also when the sandbox could not be built. Returns 0; -errno only with reason
 * start_failed or internal, and then *e == report->error.
 *
 * LEFT may be NULL: all is torn down at the return. Else no process of the sandbox's lives at the
 * return, and *LEFT is what is to be torn down still, or NULL where nothing is.
 */
int sandbox_run(struct sandbox_host *host, const struct sandbox_spec *spec,
                const struct sandbox_watch *watch, struct report *report, struct sandbox **left,
                struct err *e);

/*
 * A sandbox that is built ahead, so that a long-lived caller's command starts at once: it waits with
 * everything made and everything given up, until it is run, once, or torn down. SPEC's argv, envp
 * and cwd are not looked at; what its other pointers show must outlive the sandbox. Its time-outs
 * begin with the command, its report with the building. A child that the caller forks without exec
 * holds it, too: nobody can reap it before that child is gone.
 */
int sandbox_prepare(struct sandbox_host *host, const struct sandbox_spec *spec,
                    struct sandbox **prepared, struct err *e);

struct sandbox_command {
	char *const *argv; /* as in a spec */
	char *const *envp;
	const char *cwd;
};

/* As sandbox_run, of which PREPARED is the first half; PREPARED is gone at the return. */
int sandbox_run_prepared(struct sandbox *prepared, const struct sandbox_command *command,
                         const struct sandbox_watch *watch, struct report *report,
                         struct sandbox **left, struct err *e);

/* Unmounts, detaches and removes what LEFT still has in the kernel, and frees it. HOST must be open. */
int sandbox_tear_down(struct sandbox *left, struct err *e);

/*
 * Ends this process with STATUS, whose waiting parent need not wait for the tearing down: a process
 * that shares our memory and descriptors outlives us for it, some milliseconds, with none of the
 * descriptors that we inherited. What it could not finish is reaped by the next start.
 */
_Noreturn void sandbox_leave(struct sandbox *left, int status);

/* Removes what sandboxes whose process is gone have left. Another process's live sandbox is never
 * touched. Every sandbox_run does some of it while its command runs. */
int sandbox_reap(struct sandbox_host *host, int *reaped, struct err *e);

#endif
