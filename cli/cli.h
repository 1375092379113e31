/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands of `agentdock` share: their names, where this installation keeps things, and
 * how they fail. A command takes its own argv (argv[0] is its name) and returns the exit status;
 * whatever goes wrong on our side is CLI_FAILED, so that it is told from a status of the command
 * that was run.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "runtime/sandbox.h"

enum { CLI_FAILED = 125 };

int cmd_run(int argc, char **argv);    /* cli/run.c */
int cmd_image(int argc, char **argv);  /* cli/image.c */
int cmd_doctor(int argc, char **argv); /* cli/doctor.c */
int cmd_gc(int argc, char **argv);     /* cli/gc.c */
int cmd_audit(int argc, char **argv);  /* cli/audit.c */

/* The value of a variable of the environment; FALLBACK where it is not set, or empty. */
const char *cli_setting(const char *variable, const char *fallback);

/* Each path is a setting of the environment, or else the default in brackets. Never NULL, never
 * freed, the same for the life of the process. */
const char *cli_state_dir(void);     /* AGENTDOCK_STATE_DIR [/var/lib/agentdock] */
const char *cli_run_dir(void);       /* AGENTDOCK_RUN_DIR [/run/agentdock] */
const char *cli_cgroup_parent(void); /* AGENTDOCK_CGROUP_PARENT [agentdock] */

/* The directory of agentdock-archive and the fixtures: AGENTDOCK_LIBEXEC, or the first of the
 * executable's own directory, its ../libexec/agentdock, /usr/local/libexec/agentdock and
 * /usr/libexec/agentdock that has agentdock-archive; the last one where none has, so that the error
 * that follows names a path. */
const char *cli_libexec_dir(void);
const char *cli_archiver(void);        /* agentdock-archive in there */
int cli_archiver_check(struct err *e); /* whether it can be started */

/* Whether the state and the run directory are absolute; the error names the variable. */
int cli_paths_check(struct err *e);

/* fixtures/sample-repo of the build tree or of the installation. */
int cli_fixture(const char **path, struct err *e);

/* sandbox_host_open() and image_store_open() on the directories above. */
int cli_host_open(struct sandbox_host *host, struct err *e);
int cli_store_open(struct image_store *store, struct err *e);

/* Prints "agentdock: TEXT" on stderr, made printable; returns CLI_FAILED. */
int cli_fail(const struct err *e);

/* Flushes what was printed on stdout; a write that failed (a full disk) is CLI_FAILED, else 0. */
int cli_finish_stdout(void);

/* Whether FD takes colours: a terminal that is not dumb, and NO_COLOR is not set. */
bool cli_colours(int fd);

/* Whether whoever reads FD is gone: a pipe or a terminal whose other end is closed. */
bool cli_reader_is_gone(int fd);

/* The entry of NAMES (NULL-terminated) that WORD was probably meant to be, or NULL. */
const char *cli_suggest(const char *word, const char *const names[]);

#endif
