/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `agentdock run`: one table gives the parser, the variables of the environment that
 * stand for an option, and the text of --help. What they ask for is written into a sandbox_spec;
 * what the spec has no place for (where the report goes, which image) stays beside it.
 */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/strings.h"
#include "runtime/spec.h"

struct run_options {
	struct sandbox_spec spec; /* all but image and filter; points into this struct and argv */
	struct string_list env;
	struct string_list labels;
	char cwd[PATH_MAX];
	struct string_list tmpfs_paths;

	const char *image;           /* a reference, for image_find() */
	const char *seccomp_profile; /* a file; NULL: the built-in profile */
	const char *meta;            /* a file for the report as JSON; NULL: none */
	bool fixture, json, explain, quiet, help;
};

/*
 * Defaults, then the environment (SANDBOX_*), then ARGV (argv[0] is the command's name); checks
 * each value and what must fit together. The error is one line that names the option or the
 * variable, the value, and what is allowed. The caller releases OPTIONS also when this fails.
 * OPTIONS must not move afterwards.
 */
int run_options_parse(struct run_options *options, int argc, char **argv, struct err *e);
void run_options_release(struct run_options *options);

void run_options_help(void); /* on stdout */

#endif
