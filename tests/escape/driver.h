/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of agentdock-probes that are no attacks share. */
#ifndef TESTS_ESCAPE_DRIVER_H
#define TESTS_ESCAPE_DRIVER_H

#include "tests/escape/attack.h"

/* The exit status of `inside` and `around`: an outcome, or that there is none. */
enum { PROBE_ERROR = 3 };

/* The word for an outcome; "error" for PROBE_ERROR. */
const char *outcome_name(int outcome);

/* The line that `inside` prints before it tries anything. */
#define TRYING "trying"

/* The host's half: runs LAUNCHER (NULL-terminated), prints the verdict, returns its status. */
int around(const struct attack *attack, char *const launcher[]);

/* Fill the empty directory at PATH. Each returns 0, or PROBE_ERROR with a line on stderr. */
int make_root(const struct attack *attack, const char *path);
int make_workspace(const struct attack *attack, const char *path);

#endif
