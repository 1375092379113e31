/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of agentdock-probes that are no attacks share. */
#ifndef TESTS_ESCAPE_DRIVER_H
#define TESTS_ESCAPE_DRIVER_H

#include <stdint.h>

#include "tests/escape/attack.h"

/* The exit status of `inside` is an outcome; of all else that worked it is 0. */
enum { PROBE_ERROR = UNTRIED };

/* The word for an outcome. */
const char *outcome_name(enum outcome outcome);

/* The line that `inside` prints before it tries anything. */
#define TRYING "trying"

/* The host's half: runs LAUNCHER (NULL-terminated), prints the verdict, whatever it is. */
int around(const struct attack *attack, char *const launcher[]);

/* How long an attack may take. Returns 0, or PROBE_ERROR with a line on stderr. */
int around_patience(uint64_t *us);

/* Fill the empty directory at PATH. Each returns 0, or PROBE_ERROR with a line on stderr. */
int make_root(const struct attack *attack, const char *path);
int make_workspace(const struct attack *attack, const char *path);

/*
 * A launcher: `RUNTIME run --bundle BUNDLE ID` with ARGV as the command, where BUNDLE has the
 * directory rootfs and WORKSPACE ("" for none) is mounted at /workspace. Its configuration is
 * CONFIG, a file, or with "" what `runc spec` writes; the attack's options change it. Returns the exit
 * status.
 */
int run_bundle(const struct attack *attack, const char *bundle, const char *id, const char *runtime,
               const char *workspace, const char *config, char *const argv[]);

#endif
