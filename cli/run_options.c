/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options and what walks it: getopt_long's arrays, the variables of the environment,
 * --help. How one value is read stands in run_values.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "cli/cli.h"
#include "cli/environment.h"
#include "cli/run_options.h"
#include "cli/run_values.h"

#define FIELD(member) .offset = offsetof(struct run_options, member)
#define KIB           (UINT64_C(1) << 10)
#define MIB           (UINT64_C(1) << 20)
#define GIB           (UINT64_C(1) << 30)
#define TIB           (UINT64_C(1) << 40)
#define SECOND_MS     UINT64_C(1000)
#define HOUR_MS       (3600 * SECOND_MS)

/* clang-format off */
static const struct run_option table[] = {
	{.help = "limits"},
	{.name = "memory", .letter = 'm', .argument = "SIZE", .read = value_bytes,
	 FIELD(spec.limits.memory_bytes), .min = 256 * KIB, .max = 16 * TIB,
	 .variable = "SANDBOX_MEMORY_LIMIT", .help = "memory, without any swap [512m]"},
	{.name = "cpus", .argument = "NUMBER", .read = value_cpus,
	 .variable = "SANDBOX_CPU_LIMIT", .help = "CPU time, in CPUs [1.0]"},
	{.name = "pids-limit", .argument = "N", .read = value_count,
	 FIELD(spec.limits.pids), .min = 2, .max = 4194304,
	 .variable = "SANDBOX_PIDS_LIMIT", .help = "processes and threads [256]"},
	{.name = "disk", .argument = "SIZE", .read = value_bytes,
	 FIELD(spec.disk.bytes), .min = MIB, .max = 16 * TIB,
	 .variable = "SANDBOX_DISK_LIMIT", .help = "bytes that can be written [1g]"},
	{.name = "inodes", .argument = "N", .read = value_count,
	 FIELD(spec.disk.inodes), .min = 64, .max = 1 << 30,
	 .variable = "SANDBOX_INODES_LIMIT", .help = "files and directories on it [200000]"},
	{.name = "disk-backing", .argument = "KIND", .read = value_backing,
	 .help = "auto, image or tmpfs [auto]"},
	{.name = "timeout", .argument = "TIME", .read = value_duration,
	 FIELD(spec.timeout_ms), .min = 0, .max = 8760 * HOUR_MS,
	 .variable = "SANDBOX_TIMEOUT_SECONDS",
	 .help = "for the command; 0: no limit [120]"},
	{.name = "grace", .argument = "TIME", .read = value_duration,
	 FIELD(spec.grace_ms), .min = 0, .max = HOUR_MS,
	 .help = "between TERM and KILL [5]"},
	{.name = "drain", .argument = "TIME", .read = value_duration,
	 FIELD(spec.drain_ms), .min = 0, .max = HOUR_MS,
	 .help = "for background processes, after it [1]"},
	{.name = "start-timeout", .argument = "TIME", .read = value_duration,
	 FIELD(spec.start_timeout_ms), .min = 100, .max = HOUR_MS,
	 .help = "until the command starts, copying included [120]"},
	{.name = "max-output", .argument = "SIZE", .read = value_bytes,
	 FIELD(spec.max_output_bytes), .min = 2, .max = GIB,
	 .variable = "SANDBOX_MAX_OUTPUT_BYTES",
	 .help = "kept of each stream in the report [256000]"},
	{.name = "ulimit", .argument = "NAME=SOFT[:HARD]", .read = value_ulimit,
	 .help = "a resource limit, as nofile=1024:2048"},
	{.name = "oom-group", .read = value_flag, FIELD(spec.limits.oom_group),
	 .help = "an OOM kill takes every process (cgroup v2)"},
	{.name = "allow-missing", .argument = "LIST", .read = value_allow_missing,
	 .help = "cpu, memory, pids, userns: not on this host"},

	{.help = "what the command is and sees"},
	{.name = "user", .letter = 'u', .argument = "UID[:GID]", .read = value_user,
	 .help = "numbers; GID is UID if not given [10001:10001]"},
	{.name = "env", .letter = 'e', .argument = "KEY[=VALUE]", .read = value_env,
	 .help = "set a variable; KEY alone: as it is here"},
	{.name = "env-file", .argument = "FILE", .read = value_env_file,
	 .help = "such assignments, one a line"},
	{.name = "entrypoint", .argument = "PROGRAM", .read = value_entrypoint,
	 .help = "instead of the image's; '' for none"},
	{.name = "workdir", .letter = 'w', .argument = "DIR", .read = value_workdir,
	 .help = "in /workspace, or absolute [/workspace]"},
	{.name = "hostname", .argument = "NAME", .read = value_hostname,
	 .help = "host name inside [sandbox]"},
	{.name = "read-only", .read = value_flag, FIELD(spec.read_only_root),
	 .help = "the root file system cannot be written"},
	{.name = "tmpfs", .argument = "PATH[:OPTIONS]", .read = value_tmpfs,
	 .help = "a tmpfs there; options: size=64m,mode=1777,exec"},
	{.name = "network", .argument = "none", .read = value_network,
	 .help = "there is no other: loopback only"},
	{.name = "seccomp", .argument = "FILE", .read = value_text,
	 FIELD(seccomp_profile), .help = "a profile (JSON), not the built-in one"},

	{.help = "what goes in"},
	{.name = "image", .argument = "NAME", .read = value_text, FIELD(image),
	 .help = "root file system, name or digest [default]"},
	{.name = "workspace", .argument = "DIR", .read = value_text, FIELD(spec.workspace),
	 .help = "copy DIR to /workspace; nothing comes back"},
	{.name = "fixture", .read = value_flag, FIELD(fixture),
	 .help = "copy the sample repository of agentdock"},
	{.name = "stdin", .argument = "FILE", .read = value_text, FIELD(spec.stdin_path),
	 .help = "standard input; - is ours [/dev/null]"},

	{.help = "what comes out"},
	{.name = "json", .read = value_flag, FIELD(json),
	 .help = "print the report as JSON, and nothing else"},
	{.name = "meta", .argument = "FILE", .read = value_text, FIELD(meta),
	 .help = "write the same JSON to FILE"},
	{.name = "label", .argument = "KEY=VALUE", .read = value_label,
	 .help = "carried into the report"},
	{.name = "explain", .read = value_flag, FIELD(explain),
	 .help = "print what each step of the start took"},
	{.name = "keep", .read = value_flag, FIELD(spec.keep),
	 .help = "keep the disk (an ext4 image) and say where"},
	{.name = "quiet", .letter = 'q', .read = value_flag, FIELD(quiet),
	 .help = "no summary, but where a disk is kept"},
	{.name = "help", .letter = 'h', .read = value_flag, FIELD(help),
	 .help = "print this"},
#ifdef AGENTDOCK_UNSAFE

	{.help = "for tests of the walls"},
	{.name = "unsafe-without", .argument = "WALL", .read = value_unsafe_without,
	 .help = "a row of the score, or another wall, is left out"},
#endif
};
/* clang-format on */
enum { ROWS = sizeof(table) / sizeof(table[0]), LONG_VALUE = 256 };

void run_options_help(void)
{
	printf("usage: agentdock run [options] -- COMMAND [ARG...]\n\n"
	       "Runs COMMAND (or else what the image's config names) in a sandbox of its own, as\n"
	       "that config says where no option does. Exit status: the command's; 124 time-out,\n"
	       "125 our fault, 126 cannot be executed, 127 not found, 128+n ended by signal n.\n");
	for (const struct run_option *row = table; row < table + ROWS; row++) {
		char left[64];

		if (!row->name) {
			printf("\n%s:\n", row->help);
			continue;
		}
		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", row->letter ? '-' : ' ',
		         row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
		         row->argument ? " " : "", row->argument ? row->argument : "");
		printf("  %-30s%s%s\n", left, strlen(left) < 30 ? "" : "  ", row->help);
	}
	printf("\nVariables that give a default:\n");
	for (const struct run_option *row = table; row < table + ROWS; row++)
		if (row->variable)
			printf("  %-30s--%s\n", row->variable, row->name);
	printf("\nSIZE is a number with b, k, m, g or t; TIME one with ms, s, m or h (bare: "
	       "s).\n");
}

/* getopt_long returns a row's index above LONG_VALUE for its long name, the letter for its letter.
 */
static void getopt_arrays(struct option long_names[ROWS + 1], char letters[2 * ROWS + 3])
{
	*letters++ = '+'; /* stop at the first word that is no option: the command */
	*letters++ = ':'; /* tell a missing value from an unknown option */
	for (int i = 0; i < ROWS; i++) {
		if (!table[i].name)
			continue;
		*long_names++ = (struct option){
			.name = table[i].name,
			.has_arg = table[i].argument ? required_argument : no_argument,
			.val = LONG_VALUE + i,
		};
		if (table[i].letter) {
			*letters++ = (char)table[i].letter;
			if (table[i].argument)
				*letters++ = ':';
		}
	}
	*long_names = (struct option){0};
	*letters = '\0';
}

/* NULL for '?', getopt's answer to what it does not know. */
static const struct run_option *row_of(int value)
{
	if (value >= LONG_VALUE)
		return &table[value - LONG_VALUE];
	for (const struct run_option *row = table; row < table + ROWS; row++)
		if (row->letter == value)
			return row;
	return NULL;
}

#define NO_TERMINAL   "a sandbox has no terminal; --stdin - hands standard input on"
#define NO_MOUNT      "nothing of the host is mounted; --workspace DIR copies a directory in"
#define NO_CAPABILITY "no sandbox has a capability, nor can it be given one"
#define NO_PORT       "a sandbox has no network, so it has no ports"
#define NO_DETACH     "leave it out: run waits for the command; the shell's & does not"

/* What people know from docker run and its kin. */
static const struct habit {
	const char *option, *hint;
} habits[] = {
	{"-i", NO_TERMINAL},
	{"--interactive", NO_TERMINAL},
	{"-t", NO_TERMINAL},
	{"--tty", NO_TERMINAL},
	{"--rm", "leave it out: nothing stays of a sandbox"},
	{"-v", NO_MOUNT},
	{"--volume", NO_MOUNT},
	{"--mount", NO_MOUNT},
	{"--name", "sandboxes have no names; --label KEY=VALUE is carried into the report"},
	{"--privileged", NO_CAPABILITY},
	{"--cap-add", NO_CAPABILITY},
	{"-p", NO_PORT},
	{"--publish", NO_PORT},
	{"-d", NO_DETACH},
	{"--detach", NO_DETACH},
};

static const char *habit_hint(const char *option)
{
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		if (strcmp(habits[i].option, option) == 0)
			return habits[i].hint;
	return NULL;
}

/* WORD as it stands in argv, or the LETTER in it that is not known. */
static int unknown_option(const char *word, int letter, struct err *e)
{
	const char *names[ROWS + 1] = {0};
	const char *hint, *suggestion = NULL;
	size_t count = 0;
	char name[40];

	for (const struct run_option *row = table; row < table + ROWS; row++)
		if (row->name)
			names[count++] = row->name;
	if (letter)
		snprintf(name, sizeof(name), "-%c", letter);
	else
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	hint = habit_hint(name);
	if (hint)
		return err_set(e, EINVAL, "unknown option %s; %s", name, hint);
	if (!letter)
		suggestion = cli_suggest(name + 2, names);
	if (suggestion)
		return err_set(e, EINVAL, "unknown option %s; did you mean --%s?", name,
		               suggestion);
	return err_set(e, EINVAL, "unknown option %s; see agentdock run --help", name);
}

static int apply_variables(struct run_options *options, struct err *e)
{
	const char *disabled = cli_setting("SANDBOX_NETWORK_DISABLED", "true");

	if (strcmp(disabled, "true") != 0)
		return err_set(e, EINVAL,
		               "SANDBOX_NETWORK_DISABLED: '%s': only true is possible, a sandbox "
		               "has no network; unset it",
		               disabled);
	for (const struct run_option *row = table; row < table + ROWS; row++) {
		const char *value = row->variable ? cli_setting(row->variable, NULL) : NULL;

		if (value && row->read(options, row, value, e) < 0)
			return err_in(e, "%s", row->variable);
	}
	return 0;
}

/* VALUE is getopt_long's answer. */
static int apply_option(struct run_options *options, char **argv, int value, struct err *e)
{
	const struct run_option *row = row_of(value == ':' ? optopt : value);
	const char *text = optarg;

	if (value == '?' && optopt >= LONG_VALUE)
		return err_set(e, EINVAL, "--%s takes no value", row_of(optopt)->name);
	if (!row)
		return unknown_option(argv[optind - 1], optopt, e);
	if (value == ':')
		return err_set(e, EINVAL, "--%s needs a value: %s", row->name, row->argument);
	/* -m=512m, which others take */
	if (value < LONG_VALUE && text && text[0] == '=' && text != argv[optind - 1])
		text++;
	if (row->read(options, row, text, e) < 0)
		return err_in(e, "--%s", row->name);
	return 0;
}

/* The first error counts; what stands behind it is read all the same, because --json says in which
 * form the error is wanted. FAILED: there was one before. */
static int apply_options(struct run_options *options, int argc, char **argv, int failed,
                         struct err *e)
{
	struct option long_names[ROWS + 1];
	char letters[2 * ROWS + 3];
	struct err later;
	int value;

	getopt_arrays(long_names, letters);
	opterr = 0;
	optind = 0; /* glibc: start afresh, also the scan inside a word */
	while ((value = getopt_long(argc, argv, letters, long_names, NULL)) != -1) {
		int result = apply_option(options, argv, value, failed < 0 ? &later : e);

		if (failed == 0)
			failed = result;
	}
	return failed;
}

static int check_workspace(struct run_options *options, struct err *e)
{
	struct stat st;

	if (options->fixture && options->spec.workspace)
		return err_set(e, EINVAL, "--fixture and --workspace exclude each other");
	if (options->fixture)
		TRY(cli_fixture(&options->spec.workspace, e));
	if (!options->spec.workspace)
		return 0;
	if (stat(options->spec.workspace, &st) < 0)
		return err_sys(e, "--workspace: %s", options->spec.workspace);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "--workspace: %s is not a directory",
		               options->spec.workspace);
	return cli_archiver_check(e);
}

static int check_stdin(const char *path, struct err *e)
{
	struct stat st;

	if (!path || strcmp(path, "-") == 0)
		return 0;
	if (stat(path, &st) < 0 || access(path, R_OK) < 0)
		return err_sys(e, "--stdin: %s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, EISDIR, "--stdin: %s is a directory", path);
	return 0;
}

/* A report that has nowhere to go is to be known before the command runs, not after. */
static int check_meta(const char *path, struct err *e)
{
	scoped_mem char *copy = NULL;
	const char *dir;
	struct stat st;

	if (!path)
		return 0;
	if (strcmp(path, "-") == 0)
		return err_set(e, EINVAL,
		               "--meta: '-': want a file; --json prints the report on standard "
		               "output");
	copy = strdup(path);
	if (!copy)
		return err_set(e, ENOMEM, "--meta: out of memory");
	dir = dirname(copy);
	if (access(dir, W_OK | X_OK) < 0)
		return err_sys(e, "--meta: %s: writing in %s", path, dir);
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "--meta: %s is not a regular file", path);
	return 0;
}

static int check_command(char *const *argv, struct err *e)
{
	if (!argv[0])
		return err_set(
			e, EINVAL,
			"no command given; usage: agentdock run [options] -- COMMAND [ARG...]");
	if (!argv[0][0])
		return err_set(e, EINVAL, "the command is an empty word");
	return 0;
}

static int check_together(struct run_options *options, struct err *e)
{
	if (options->spec.argv[0])
		TRY(check_command(options->spec.argv, e));
	if (options->spec.keep && options->spec.disk.backing == DISK_TMPFS)
		return err_set(e, EINVAL,
		               "--keep needs --disk-backing image: a tmpfs is gone "
		               "with its sandbox");
	TRY(check_workspace(options, e));
	TRY(check_stdin(options->spec.stdin_path, e));
	return check_meta(options->meta, e);
}

/* ---- what the image asks for ---- */

/* Our own defaults, then the image's, then what was given. IMAGE may be NULL. */
static int compose_environment(struct run_options *options, const struct image *image,
                               struct err *e)
{
	string_list_release(&options->env);
	TRY(environment_start(&options->env, e));
	for (size_t i = 0; image && i < image->env.count; i++)
		if (environment_add_image(&options->env, image->env.items[i], e) < 0)
			return err_in(e, "image %s: env", options->image);
	for (size_t i = 0; i < options->given_env.count; i++)
		TRY(string_list_set(&options->env, options->given_env.items[i], e));
	options->spec.envp = options->env.items;
	return 0;
}

static int take_user(struct run_options *options, const struct image *image, struct err *e)
{
	struct identity *identity = &options->spec.identity;

	if (options->user_given || !*image->user)
		return 0;
	if (!image->has_ids)
		return err_set(e, EINVAL,
		               "image %s wants to be run as the user '%s', which it does not "
		               "have; give --user UID[:GID]",
		               options->image, image->user);
	if (image->uid > RUN_ID_MAX || image->gid > RUN_ID_MAX)
		return err_set(e, EINVAL,
		               "image %s wants to be run as the user '%s', which is %u:%u, and "
		               "%d is the last that there is; give --user UID[:GID]",
		               options->image, image->user, image->uid, image->gid, RUN_ID_MAX);
	identity->uid = image->uid;
	identity->gid = image->gid;
	return 0;
}

/* A workspace that was given is where its command starts, whatever the image is made for. */
static int take_workdir(struct run_options *options, const struct image *image, struct err *e)
{
	if (options->spec.cwd == options->cwd || options->spec.workspace || !*image->workdir)
		return 0;
	TRY(text_format(options->cwd, sizeof(options->cwd), e, "%s%s",
	                image->workdir[0] == '/' ? "" : "/", image->workdir));
	options->spec.cwd = options->cwd;
	return 0;
}

static int add_words(struct string_list *list, char *const *words, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++)
		TRY(string_list_add(list, words[i], e));
	return 0;
}

/* As docker does: the entrypoint, then the words that were given, or else the image's own; these
 * go with the image's own entrypoint only. */
static int take_command(struct run_options *options, const struct image *image, struct err *e)
{
	char *const *given = options->spec.argv;
	char *entrypoint[] = {(char *)(uintptr_t)options->entrypoint};

	string_list_release(&options->command);
	if (!options->entrypoint)
		TRY(add_words(&options->command, image->entrypoint.items, image->entrypoint.count,
		              e));
	else if (*options->entrypoint)
		TRY(add_words(&options->command, entrypoint, 1, e));
	if (given[0])
		TRY(add_words(&options->command, given, words_count(given), e));
	else if (!options->entrypoint)
		TRY(add_words(&options->command, image->cmd.items, image->cmd.count, e));
	if (options->command.count)
		options->spec.argv = options->command.items;
	return check_command(options->spec.argv, e);
}

int run_options_take_image(struct run_options *options, const struct image *image, struct err *e)
{
	if (!image)
		return check_command(options->spec.argv, e);
	options->spec.image = image;
	TRY(take_user(options, image, e));
	TRY(take_workdir(options, image, e));
	TRY(take_command(options, image, e));
	return compose_environment(options, image, e);
}

int run_options_parse(struct run_options *options, int argc, char **argv, struct err *e)
{
	*options = (struct run_options){.image = "default"};
	sandbox_spec_defaults(&options->spec);
	TRY(apply_options(options, argc, argv, apply_variables(options, e), e));
	if (options->help)
		return 0;
	options->spec.argv = argv + optind;
	options->spec.labels = &options->labels;
	TRY(compose_environment(options, NULL, e));
	return check_together(options, e);
}

void run_options_release(struct run_options *options)
{
	string_list_release(&options->given_env);
	string_list_release(&options->env);
	string_list_release(&options->command);
	string_list_release(&options->labels);
	string_list_release(&options->tmpfs_paths);
}
