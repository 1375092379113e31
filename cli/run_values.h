/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the value of an option is read. A reader takes the whole text or fails with what is wrong
 * and what is allowed; the caller puts the option's or the variable's name in front. Scalars go to
 * the field of struct run_options that the row of the table names.
 */
#ifndef CLI_RUN_VALUES_H
#define CLI_RUN_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/run_options.h"

struct run_option;
typedef int value_reader(struct run_options *options, const struct run_option *option,
                         const char *value, struct err *e);

struct run_option {
	const char *name;     /* NULL: a heading of --help */
	int letter;           /* 0: none */
	const char *argument; /* what --help calls the value; NULL: a flag */
	value_reader *read;
	size_t offset;        /* of the field, for the readers of scalars */
	uint64_t min, max;    /* bounds of a number, in its own unit */
	const char *variable; /* of the environment, that gives the default; may be NULL */
	const char *help;
};

enum { RUN_ID_MAX = 65535 }; /* a sandbox has that many ids */

value_reader value_flag;     /* bool; the value is ignored */
value_reader value_text;     /* const char *: the value itself, which is not to be empty */
value_reader value_bytes;    /* uint64_t */
value_reader value_count;    /* uint64_t */
value_reader value_duration; /* uint64_t, in milliseconds */

value_reader value_cpus, value_user, value_entrypoint, value_backing, value_env, value_env_file,
	value_workdir, value_hostname, value_tmpfs, value_network, value_label, value_ulimit,
	value_allow_missing;
#ifdef AGENTDOCK_UNSAFE
value_reader value_unsafe_without;
#endif

#endif
