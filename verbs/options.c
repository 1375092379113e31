/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options and what reads it. A row names the verbs that have it. */
#include "verbs/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct option_row {
	int of;      /* enum option_of, or-ed */
	char letter; /* 0: none */
	const char *name;
	const char *argument; /* NULL: none */
	int (*read)(struct request *request, const struct option_row *row, const char *value,
	            struct err *e);
	size_t at;        /* the member's offset, for those readers that want one */
	const char *key;  /* update: in linux.resources, "memory.limit" */
	const char *help; /* NULL: another spelling, not shown */
};

static void *member(struct request *request, const struct option_row *row)
{
	return (char *)request + row->at;
}

/* ---- readers of values ---- */

static int take_flag(struct request *request, const struct option_row *row, const char *value,
                     struct err *e)
{
	(void)value;
	(void)e;
	*(bool *)member(request, row) = true;
	return 0;
}

/* Of what we do not do: only a verb that wants it could say so. */
static int take_nothing(struct request *request, const struct option_row *row, const char *value,
                        struct err *e)
{
	(void)request;
	(void)row;
	(void)value;
	(void)e;
	return 0;
}

static int take_text(struct request *request, const struct option_row *row, const char *value,
                     struct err *e)
{
	if (!*value)
		return err_set(e, EINVAL, "--%s: must not be empty", row->name);
	*(const char **)member(request, row) = value;
	return 0;
}

static int take_list(struct request *request, const struct option_row *row, const char *value,
                     struct err *e)
{
	return string_list_add(member(request, row), value, e);
}

enum { COUNT_MAX = 1 << 20 }; /* no process has more descriptors: fs.nr_open */

static int take_count(struct request *request, const struct option_row *row, const char *value,
                      struct err *e)
{
	uint64_t number;

	if (parse_u64(value, COUNT_MAX, &number, e) < 0)
		return err_in(e, "--%s", row->name);
	*(int *)member(request, row) = (int)number;
	return 0;
}

/* "5s" and "1m" as well as bare seconds. */
static int take_seconds(struct request *request, const struct option_row *row, const char *value,
                        struct err *e)
{
	uint64_t ms;

	if (parse_duration_ms(value, &ms, e) < 0)
		return err_in(e, "--%s", row->name);
	if (ms < 1000 || ms > INT_MAX)
		return err_set(e, EINVAL, "--%s: at least 1s and at most 24 days", row->name);
	*(int *)member(request, row) = (int)(ms / 1000);
	return 0;
}

struct word {
	const char *name;
	int value;
};

static int take_word(const struct word *words, const struct option_row *row, const char *value,
                     int *number, struct err *e)
{
	for (; words->name; words++)
		if (strcmp(words->name, value) == 0) {
			*number = words->value;
			return 0;
		}
	return err_set(e, EINVAL, "--%s: \"%s\" is not one of %s", row->name, value, row->argument);
}

static int take_format(struct request *request, const struct option_row *row, const char *value,
                       struct err *e)
{
	static const struct word words[] = {
		{"table", FORMAT_TABLE}, {"json", FORMAT_JSON}, {NULL, 0}};

	return take_word(words, row, value, &request->format, e);
}

static int take_log_format(struct request *request, const struct option_row *row, const char *value,
                           struct err *e)
{
	static const struct word words[] = {{"text", LOG_TEXT}, {"json", LOG_JSON}, {NULL, 0}};

	return take_word(words, row, value, &request->log_format, e);
}

static int take_log_level(struct request *request, const struct option_row *row, const char *value,
                          struct err *e)
{
	static const struct word words[] = {
		{"debug", LOG_LEVEL_DEBUG},     {"info", LOG_LEVEL_WARNING},
		{"warning", LOG_LEVEL_WARNING}, {"warn", LOG_LEVEL_WARNING},
		{"error", LOG_LEVEL_ERROR},     {NULL, 0},
	};

	return take_word(words, row, value, &request->log_level, e);
}

static int take_debug(struct request *request, const struct option_row *row, const char *value,
                      struct err *e)
{
	(void)row;
	(void)value;
	(void)e;
	request->log_level = LOG_LEVEL_DEBUG;
	return 0;
}

static int take_manager(struct request *request, const struct option_row *row, const char *value,
                        struct err *e)
{
	static const struct word words[] = {
		{"cgroupfs", GROUP_CGROUPFS}, {"systemd", GROUP_SYSTEMD}, {NULL, 0}};
	int manager = GROUP_CGROUPFS;

	if (strcmp(value, "disabled") == 0)
		return err_set(e, ENOTSUP,
		               "--cgroup-manager: disabled is not supported: without a group, a "
		               "container has no limits and cannot be ended whole; use cgroupfs");
	TRY(take_word(words, row, value, &manager, e));
	request->lifecycle.manager = (enum group_manager)manager;
	return 0;
}

static int take_systemd(struct request *request, const struct option_row *row, const char *value,
                        struct err *e)
{
	(void)row;
	(void)value;
	(void)e;
	request->lifecycle.manager = GROUP_SYSTEMD;
	return 0;
}

/* What we lack the privilege for is found out where it is needed, whatever is said here. */
static int take_rootless(struct request *request, const struct option_row *row, const char *value,
                         struct err *e)
{
	static const struct word words[] = {{"true", 0}, {"false", 0}, {"auto", 0},
	                                    {"yes", 0},  {"no", 0},    {NULL, 0}};
	int ignored;

	(void)request;
	return take_word(words, row, value, &ignored, e);
}

/* ---- update: values become members of a document, which is read as that of --resources is ---- */

static void set_resource(struct request *request, const char *key, struct json_object *value)
{
	struct json_object *inner = NULL;
	char group[32];
	const char *dot = strchr(key, '.');

	if (!request->resources)
		request->resources = json_object_new_object();
	snprintf(group, sizeof group, "%.*s", (int)(dot - key), key);
	if (!json_object_object_get_ex(request->resources, group, &inner))
		inner = json_add_object(request->resources, group);
	if (json_object_object_add(inner, dot + 1, value) < 0)
		abort();
}

static int set_number(struct request *request, const struct option_row *row, const char *value,
                      int64_t factor_less, struct err *e)
{
	bool negative = *value == '-';
	uint64_t number;

	if (factor_less) {
		if (parse_u64(value + negative, INT64_MAX, &number, e) < 0)
			return err_in(e, "--%s", row->name);
	} else if (negative ? parse_u64(value + 1, 1, &number, e) < 0
	                    : parse_bytes(value, &number, e) < 0) {
		return err_in(e, "--%s", row->name);
	}
	if (number > INT64_MAX)
		return err_set(e, ERANGE, "--%s: %s is too large", row->name, value);
	set_resource(request, row->key,
	             json_object_new_int64(negative ? -(int64_t)number : (int64_t)number));
	return 0;
}

static int take_resource(struct request *request, const struct option_row *row, const char *value,
                         struct err *e)
{
	return set_number(request, row, value, 1, e);
}

static int take_resource_bytes(struct request *request, const struct option_row *row,
                               const char *value, struct err *e)
{
	return set_number(request, row, value, 0, e);
}

static int take_resource_text(struct request *request, const struct option_row *row,
                              const char *value, struct err *e)
{
	(void)e;
	set_resource(request, row->key, json_object_new_string(value));
	return 0;
}

static int take_unified(struct request *request, const struct option_row *row, const char *value,
                        struct err *e)
{
	const char *equals = strchr(value, '=');
	char key[256];

	if (!equals || equals == value)
		return err_set(e, EINVAL,
		               "--%s: \"%s\" is not KEY=VALUE, as memory.high=1073741824",
		               row->name, value);
	if (snprintf(key, sizeof key, "unified.%.*s", (int)(equals - value), value) >=
	    (int)sizeof key)
		return err_set(e, EINVAL, "--%s: the key is too long", row->name);
	set_resource(request, key, json_object_new_string(equals + 1));
	return 0;
}

/* ---- the table ---- */

#define AT(m)     .at = offsetof(struct request, m)
#define OF_START_ (OF_CREATE | OF_RUN)

/* clang-format off */
static const struct option_row table[] = {
	{OF_PROGRAM, 0, "root", "DIR", take_text, AT(lifecycle.root),
	 .help = "where containers are kept [/run/agentdock-runtime]"},
	{OF_PROGRAM, 0, "log", "FILE", take_text, AT(log),
	 .help = "append errors and warnings to FILE as well"},
	{OF_PROGRAM, 0, "log-format", "text|json", take_log_format, .help = "of the log [text]"},
	{OF_PROGRAM, 0, "log-level", "debug|warning|error", take_log_level,
	 .help = "what is told [warning]"},
	{OF_PROGRAM, 0, "debug", NULL, take_debug, .help = "the same as --log-level=debug"},
	{OF_PROGRAM, 0, "cgroup-manager", "cgroupfs|systemd", take_manager,
	 .help = "who makes control groups [cgroupfs]"},
	{OF_PROGRAM, 0, "systemd-cgroup", NULL, take_systemd,
	 .help = "the same as --cgroup-manager=systemd"},
	{OF_PROGRAM, 0, "rootless", "true|false|auto", take_rootless,
	 .help = "accepted; privileges are looked at where they are needed"},
	{OF_PROGRAM, 0, "criu", "FILE", take_nothing, .help = NULL},
	{OF_PROGRAM, 'v', "version", NULL, take_flag, AT(version), .help = "print the version"},
	{OF_PROGRAM, 'V', "version", NULL, take_flag, AT(version)},

	{OF_START_ | OF_SPEC, 'b', "bundle", "DIR", take_text, AT(lifecycle.bundle),
	 .help = "the bundle's directory [.]"},
	{OF_START_, 'f', "config", "FILE", take_text, AT(lifecycle.config_file),
	 .help = "another file of the bundle than config.json"},
	{OF_RUN | OF_EXEC, 'd', "detach", NULL, take_flag, AT(lifecycle.detach),
	 .help = "do not wait for the end"},
	{OF_RUN, 0, "keep", NULL, take_flag, AT(lifecycle.keep),
	 .help = "do not delete the container after its end"},

	{OF_EXEC, 'p', "process", "FILE", take_text, AT(file),
	 .help = "the whole process as JSON, instead of a command"},
	{OF_EXEC, 't', "tty", NULL, take_flag, AT(tty), .help = "with a terminal"},
	{OF_EXEC, 0, "cwd", "DIR", take_text, AT(cwd),
	 .help = "working directory inside [the container's]"},
	{OF_EXEC, 'e', "env", "KEY=VALUE", take_list, AT(env), .help = "set a variable; repeatable"},
	{OF_EXEC, 'u', "user", "UID[:GID]", take_text, AT(user),
	 .help = "numbers only [the container's]"},
	{OF_EXEC, 'g', "additional-gids", "GID", take_list, AT(groups),
	 .help = "another group; repeatable"},
	{OF_EXEC, 'c', "cap", "CAP", take_list, AT(capabilities),
	 .help = "another capability; repeatable"},
	{OF_EXEC, 0, "no-new-privs", NULL, take_flag, AT(no_new_privs),
	 .help = "no privileges by setuid files and the like"},
	{OF_EXEC, 0, "apparmor", "PROFILE", take_text, AT(lifecycle.apparmor),
	 .help = "AppArmor profile"},
	{OF_EXEC, 0, "process-label", "LABEL", take_text, AT(lifecycle.process_label),
	 .help = "SELinux label"},
	{OF_EXEC, 0, "cgroup", "PATH", take_text, AT(lifecycle.cgroup),
	 .help = "a group below the container's"},
	{OF_EXEC, 0, "ignore-paused", NULL, take_flag, AT(lifecycle.ignore_paused),
	 .help = "into a paused container as well; starts when it is resumed"},

	{OF_START_ | OF_EXEC, 0, "console-socket", "SOCKET", take_text, AT(lifecycle.console_socket),
	 .help = "send the terminal's master there"},
	{OF_START_ | OF_EXEC, 0, "pid-file", "FILE", take_text, AT(lifecycle.pid_file),
	 .help = "write the pid to FILE"},
	{OF_START_ | OF_EXEC, 0, "preserve-fds", "N", take_count, AT(lifecycle.preserve_fds),
	 .help = "leave N descriptors after standard error open"},
	{OF_START_, 0, "no-pivot", NULL, take_flag, AT(lifecycle.no_pivot),
	 .help = "for a root on a ramdisk: no pivot_root; less safe"},
	{OF_START_, 0, "no-new-keyring", NULL, take_flag, AT(lifecycle.no_new_keyring),
	 .help = "leave the caller's session keyring"},
	{OF_START_ | OF_EXEC, 0, "no-subreaper", NULL, take_flag, AT(ignored),
	 .help = "accepted; we never are one"},

	{OF_KILL, 'a', "all", NULL, take_flag, AT(all), .help = "each process of the container"},
	{OF_DELETE, 'f', "force", NULL, take_flag, AT(force),
	 .help = "end it first; no error if there is none"},
	{OF_KILL | OF_DELETE, 'r', "regex", NULL, take_flag, AT(regex),
	 .help = "ID is an extended regular expression for whole ids"},

	{OF_LIST, 'q', "quiet", NULL, take_flag, AT(quiet), .help = "ids only"},
	{OF_LIST | OF_PS, 'f', "format", "table|json", take_format, .help = "[table]"},

	{OF_UPDATE, 'r', "resources", "FILE", take_text, AT(file),
	 .help = "linux.resources as JSON; - is standard input"},
	{OF_UPDATE, 0, "memory", "BYTES", take_resource_bytes, .key = "memory.limit",
	 .help = "-1: no limit; 512m and the like, here and below"},
	{OF_UPDATE, 0, "memory-reservation", "BYTES", take_resource_bytes,
	 .key = "memory.reservation", .help = "soft limit"},
	{OF_UPDATE, 0, "memory-swap", "BYTES", take_resource_bytes, .key = "memory.swap",
	 .help = "memory and swap together; -1: no limit"},
	{OF_UPDATE, 0, "kernel-memory", "BYTES", take_resource_bytes, .key = "memory.kernel",
	 .help = "where the kernel still has it"},
	{OF_UPDATE, 0, "kernel-memory-tcp", "BYTES", take_resource_bytes,
	 .key = "memory.kernelTCP", .help = "buffers of TCP; cgroup v1"},
	{OF_UPDATE, 0, "cpu-period", "US", take_resource, .key = "cpu.period",
	 .help = "of --cpu-quota"},
	{OF_UPDATE, 0, "cpu-quota", "US", take_resource, .key = "cpu.quota",
	 .help = "CPU time in a period; -1: no limit"},
	{OF_UPDATE, 0, "cpu-burst", "US", take_resource, .key = "cpu.burst",
	 .help = "unused quota that may be used later"},
	{OF_UPDATE, 0, "cpu-shares", "N", take_resource, .key = "cpu.shares",
	 .help = "weight among others [1024]"},
	{OF_UPDATE, 0, "cpu-share", "N", take_resource, .key = "cpu.shares"},
	{OF_UPDATE, 0, "cpu-rt-period", "US", take_resource, .key = "cpu.realtimePeriod",
	 .help = "of --cpu-rt-runtime; cgroup v1"},
	{OF_UPDATE, 0, "cpu-rt-runtime", "US", take_resource, .key = "cpu.realtimeRuntime",
	 .help = "real-time CPU time in a period; cgroup v1"},
	{OF_UPDATE, 0, "cpuset-cpus", "LIST", take_resource_text, .key = "cpu.cpus",
	 .help = "CPUs, as 0-3,7"},
	{OF_UPDATE, 0, "cpuset-mems", "LIST", take_resource_text, .key = "cpu.mems",
	 .help = "memory nodes, as 0-1"},
	{OF_UPDATE, 0, "cpu-idle", "0|1", take_resource, .key = "cpu.idle",
	 .help = "1: only CPU time that nobody else wants"},
	{OF_UPDATE, 0, "pids-limit", "N", take_resource, .key = "pids.limit",
	 .help = "processes and threads; -1: no limit"},
	{OF_UPDATE, 0, "blkio-weight", "N", take_resource, .key = "blockIO.weight",
	 .help = "share of I/O, 10 to 1000"},
	{OF_UPDATE, 0, "unified", "KEY=VALUE", take_unified,
	 .help = "a file of the cgroup v2 directory; repeatable"},
	{OF_UPDATE, 0, "l3-cache-schema", "TEXT", take_text, AT(l3_cache_schema),
	 .help = "Intel RDT: L3 cache, as L3:0=7f0;1=1f"},
	{OF_UPDATE, 0, "mem-bw-schema", "TEXT", take_text, AT(mem_bw_schema),
	 .help = "Intel RDT: memory bandwidth, as MB:0=20;1=70"},

	{OF_SPEC, 'f', "file", "FILE", take_text, AT(file),
	 .help = "where to write it [config.json in the bundle]"},
	{OF_SPEC, 0, "rootless", NULL, take_flag, AT(rootless),
	 .help = "for a user without privileges"},

	{OF_EVENTS, 0, "stats", NULL, take_flag, AT(stats), .help = "print figures once and end"},
	{OF_EVENTS, 0, "interval", "TIME", take_seconds, AT(interval_s),
	 .help = "between two of them, 1s at least [5s]"},

	{OF_ALL, 'h', "help", NULL, take_flag, AT(help), .help = "print this"},
};
/* clang-format on */
enum { ROWS = sizeof table / sizeof *table, LONG_VALUE = 256 };

void options_help(int of)
{
	for (const struct option_row *row = table; row < table + ROWS; row++) {
		char left[64];

		if (!(row->of & of) || !row->help)
			continue;
		snprintf(left, sizeof left, "%c%c%s--%s%s%s", row->letter ? '-' : ' ',
		         row->letter ? row->letter : ' ', row->letter ? ", " : "  ", row->name,
		         row->argument ? " " : "", row->argument ? row->argument : "");
		if (strlen(left) > 34)
			printf("  %s\n  %-34s %s\n", left, "", row->help);
		else
			printf("  %-34s %s\n", left, row->help);
	}
}

/* ---- reading them ---- */

void request_init(struct request *request)
{
	*request = (struct request){.log_level = LOG_LEVEL_WARNING, .interval_s = 5};
}

void request_release(struct request *request)
{
	string_list_release(&request->env);
	string_list_release(&request->capabilities);
	string_list_release(&request->groups);
	json_release(&request->resources);
}

/* The verb's rows in the form of getopt_long(3); val is the row's number after LONG_VALUE. */
static void make_tables(int of, bool in_order, struct option *longs, char *shorts)
{
	*shorts++ = in_order ? '+' : ':';
	if (in_order)
		*shorts++ = ':';
	for (int i = 0; i < ROWS; i++) {
		if (!(table[i].of & of))
			continue;
		*longs++ = (struct option){table[i].name,
		                           table[i].argument ? required_argument : no_argument,
		                           NULL, LONG_VALUE + i};
		if (!table[i].letter)
			continue;
		*shorts++ = table[i].letter;
		if (table[i].argument)
			*shorts++ = ':';
	}
	*longs = (struct option){0};
	*shorts = '\0';
}

static const struct option_row *find_row(int of, int found)
{
	if (found >= LONG_VALUE)
		return &table[found - LONG_VALUE];
	for (const struct option_row *row = table; row < table + ROWS; row++)
		if ((row->of & of) && row->letter == found)
			return row;
	return NULL;
}

static int refuse(int found, char **argv, struct err *e)
{
	char shown[100];
	const char *word = argv[optind - 1];

	if (found == ':')
		return err_set(e, EINVAL, "option %s needs an argument",
		               text_printable(word, shown, sizeof shown));
	if (optopt > 0 && optopt < LONG_VALUE)
		return err_set(e, EINVAL, "unknown option -%c; see --help", optopt);
	return err_set(e, EINVAL,
	               "unknown option %s, or an argument that it does not have; see --help",
	               text_printable(word, shown, sizeof shown));
}

int options_read(struct request *request, int of, bool in_order, int argc, char **argv,
                 struct err *e)
{
	struct option longs[ROWS + 1];
	char shorts[2 * ROWS + 3];
	int found;

	make_tables(of, in_order, longs, shorts);
	optind = 0;
	opterr = 0;
	while ((found = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_row *row = find_row(of, found);

		if (!row)
			return refuse(found, argv, e);
		TRY(row->read(request, row, optarg, e));
	}
	request->words = argv + optind;
	request->words_count = argc - optind;
	return optind;
}
