/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of agentdock-runtime, before and after the verb: one table gives the parser and the text
 * of --help. Names are those of crun and runc; where they differ, both are taken.
 */
#ifndef VERBS_OPTIONS_H
#define VERBS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strings.h"
#include "container/lifecycle.h"

struct json_object;

/* Which verb an option is of. */
enum option_of {
	OF_PROGRAM = 1 << 0, /* before the verb */
	OF_CREATE = 1 << 1,
	OF_RUN = 1 << 2,
	OF_EXEC = 1 << 3,
	OF_KILL = 1 << 4,
	OF_DELETE = 1 << 5,
	OF_LIST = 1 << 6,
	OF_PS = 1 << 7,
	OF_UPDATE = 1 << 8,
	OF_SPEC = 1 << 9,
	OF_EVENTS = 1 << 10,
	OF_OTHERS = 1 << 11, /* verbs that have none of their own */
	OF_ALL = (1 << 12) - 1,
};

enum output_format { FORMAT_TABLE, FORMAT_JSON };
enum log_format { LOG_TEXT, LOG_JSON };
enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

/* What was asked for. Texts are argv's. */
struct request {
	struct lifecycle_options lifecycle;
	const char *log;
	int log_format, log_level; /* enum log_format, log_level */
	bool help, version, ignored;

	bool all, force, regex, quiet, stats, rootless;
	int format; /* enum output_format */
	int interval_s;
	const char *file; /* exec --process, update --resources, spec --file */

	/* exec */
	bool tty, no_new_privs;
	const char *cwd, *user;
	struct string_list env, capabilities, groups;

	/* update: what "linux.resources" would say, as a document; NULL: nothing yet */
	struct json_object *resources;
	const char *l3_cache_schema, *mem_bw_schema;

	char **words; /* what follows the options: the id and more; NULL-terminated */
	int words_count;
};

void request_init(struct request *request);
void request_release(struct request *request);

/*
 * Reads the options of ARGV that are OF a verb; argv[0] is its name. IN_ORDER: they end at the first
 * word, as what follows is somebody else's; else they may stand anywhere before "--". Returns how many
 * words of ARGV were read in order, or -EINVAL with a text that names the option.
 */
int options_read(struct request *request, int of, bool in_order, int argc, char **argv,
                 struct err *e);

void options_help(int of); /* on stdout */

#endif
