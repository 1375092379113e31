/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, clocks and the system calls that glibc 2.36 has no wrapper for. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* CLOCK_MONOTONIC in microseconds. */
uint64_t clock_us(void);

/* clone3(2), kernel 5.3; returns as fork(2) does, -errno on failure. */
pid_t process_clone3(const struct clone_args *args);

/*
 * Runs ARGV (argv[0] is searched in PATH) with the environment ENVP (NULL: PATH and LC_ALL=C only),
 * stdin from STDINFD and stdout to STDOUTFD (-1: /dev/null), and waits. All other descriptors are
 * closed, so that a tool never inherits a sandbox's. Fails unless it exits 0; the error carries the
 * last line that it wrote to stderr.
 */
int process_run(const char *const argv[], const char *const envp[], int stdinfd, int stdoutfd,
                struct err *e);

/*
 * All signals by default: an ignored one stays ignored across each exec, and an ignored SIGCHLD would
 * have the kernel throw a child's status away.
 */
void process_default_signals(void);

/* All of them, or none. */
void process_block_signals(bool all);

/* The same, of a program that is not searched for, with what else can be said of it. */
struct process_tool {
	const char *path; /* NULL: argv[0], searched in PATH */
	const char *const *argv;
	const char *const *envp; /* NULL: PATH and LC_ALL=C only */
	const char *cwd;         /* NULL: ours */
	int stdinfd, stdoutfd;   /* -1: /dev/null */
	int64_t timeout_ms;      /* 0: none; it is killed then, ETIMEDOUT */
};
int process_run_tool(const struct process_tool *tool, struct err *e);

/* Waits for one child by pidfd; returns its status as waitpid(2) gives it, or -errno. */
int process_wait(int pidfd, int *status, struct err *e);

/* Waits for the child *PID, after a SIGKILL if KILL_FIRST, and makes it -1; -1 is nobody. */
void process_end(pid_t *pid, bool kill_first);

/* Are our ids those of the host, not of a user namespace? Where that can't be told, they are. */
bool process_has_host_ids(void);

/* Can the caller, as who it is for files now, execute CANDIDATE? 0, or the errno that says why not. */
int program_executable(const char *candidate);

/* Looks NAME up in a PATH as execvp(3) does: the first that can run, into PROGRAM; 0, or the best reason
 * why there is none, an errno. */
int program_search(const char *name, const char *path, char *program, size_t size);

/* "SIGTERM" for 15; "SIG65" style for unknown numbers. Never NULL. */
const char *signal_name(int signo, char *buffer, size_t size);

/* 15 for "TERM", "SIGTERM", "15", 37 for "RTMIN+3"; -EINVAL otherwise. */
int signal_parse(const char *text, struct err *e);

#endif
