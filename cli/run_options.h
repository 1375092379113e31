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
	struct string_list given_env; /* --env, --env-file */
	struct string_list env;       /* the whole environment */
	struct string_list command;   /* where the image's config has a part in it */
	struct string_list labels;
	char cwd[PATH_MAX];
	struct string_list tmpfs_paths;

	const char *image;           /* a reference, for image_find() */
	const char *entrypoint;      /* instead of the image's; NULL: not given */
	bool user_given;             /* --user */
	const char *seccomp_profile; /* a file; NULL: the built-in profile */
	const char *meta;            /* a file for the report as JSON; NULL: none */
	bool fixture, json, explain, quiet, help;
};

/*
 * Defaults, then the environment (SANDBOX_*), then ARGV (argv[0] is the command's name); checks
 * each value and what must fit together. The error is one line that names the option or the
 * variable, the value, and what is allowed. The command may be missing yet. The caller releases OPTIONS also when this fails.
 * OPTIONS must not move afterwards.
 */
int run_options_parse(struct run_options *options, int argc, char **argv, struct err *e);

/* What IMAGE's config asks for and ARGV did not decide: environment, user, working directory,
 * command. IMAGE NULL: there is none, so that a missing command is an error, and all is done. */
int run_options_take_image(struct run_options *options, const struct image *image, struct err *e);

void run_options_release(struct run_options *options);

void run_options_help(void); /* on stdout */

#endif
