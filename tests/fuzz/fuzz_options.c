/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `agentdock run` (cli/run_options.c, cli/run_values.c), the variables that
 * stand for options, and files of assignments (cli/environment.c). The input is one word a line; a
 * line "$NAME=VALUE" sets a variable. What stands behind an empty line is a file of assignments.
 *
 * Holds: what is accepted is within the documented bounds, and a spec that can be built; numbers
 * with units mean what they say; no name of a secret gets through; an error is one whole text.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "cli/environment.h"
#include "cli/run_options.h"

enum { WORDS_MAX = 200 };
#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

/* ---- numbers ---- */

struct factor {
	const char *suffix;
	uint64_t factor;
};
static const struct factor sizes[] = {
	{"", 1},
	{"b", 1},
	{"k", 1ULL << 10},
	{"kb", 1ULL << 10},
	{"kib", 1ULL << 10},
	{"m", 1ULL << 20},
	{"mb", 1ULL << 20},
	{"mib", 1ULL << 20},
	{"g", 1ULL << 30},
	{"gb", 1ULL << 30},
	{"gib", 1ULL << 30},
	{"t", 1ULL << 40},
	{"tb", 1ULL << 40},
	{"tib", 1ULL << 40},
	{NULL, 0},
};
static const struct factor spans[] = {
	{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}, {NULL, 0},
};
static const struct factor thousandths[] = {{"", 1000}, {NULL, 0}};

/*
 * What TEXT means: digits, a point and up to DECIMALS digits where wanted, a suffix; rounded down.
 * False when it has no such form, or means more than 64 bits hold, or a part of the smallest unit.
 */
static bool meaning(const char *text, const struct factor *factors, size_t decimals,
                    uint64_t *value)
{
	size_t whole = strspn(text, "0123456789"), part = 0;
	unsigned __int128 number = 0, scale = 1;
	const char *suffix = text + whole;

	if (*suffix == '.') {
		part = strspn(++suffix, "0123456789");
		if (!part || part > decimals)
			return false;
		suffix += part;
	}
	if (!whole)
		return false;
	for (const char *c = text; c < suffix; c++) {
		if (*c == '.')
			continue;
		if (number >> 100)
			return false;
		number = number * 10 + (unsigned)(*c - '0');
	}
	for (size_t i = 0; i < part; i++)
		scale *= 10;
	while (factors->suffix && strcasecmp(factors->suffix, suffix) != 0)
		factors++;
	if (!factors->suffix || (factors->factor == 1 && number % scale) || number / scale >> 64)
		return false;
	number = number * factors->factor / scale;
	*value = (uint64_t)number;
	return number >> 64 == 0;
}

static void compare(const char *what, const char *text, bool expected, uint64_t wanted, int result,
                    uint64_t got, const struct err *e)
{
	if (result < 0)
		fuzz_check_err(result, e);
	CHECK(expected == (result == 0), "%s '%s' is %s", what, text,
	      expected ? "refused" : "taken");
	CHECK(!expected || wanted == got, "%s '%s' is %llu, not %llu", what, text,
	      (unsigned long long)got, (unsigned long long)wanted);
}

static void try_numbers(const char *text)
{
	uint64_t wanted = 0, got = 0;
	char *end, shown[32];
	struct err e;
	bool is;
	int result;

	result = parse_bytes(text, &got, &e);
	is = meaning(text, sizes, 6, &wanted);
	compare("size", text, is, wanted, result, got, &e);
	if (result == 0)
		CHECK(strlen(format_bytes(got, shown, sizeof shown)) >= 3, "%s", shown);
	result = parse_duration_ms(text, &got, &e);
	is = meaning(text, spans, 6, &wanted);
	compare("time", text, is, wanted, result, got, &e);
	result = parse_millis(text, &got, &e);
	is = meaning(text, thousandths, 3, &wanted) && wanted > 0;
	compare("thousandths", text, is, wanted, result, got, &e);
	result = parse_u64(text, UINT32_MAX, &got, &e);
	wanted = strtoull(text, &end, 10);
	is = *text && strspn(text, "0123456789") == strlen(text) && wanted <= UINT32_MAX;
	compare("number", text, is, wanted, result, got, &e);
}

/* ---- lists ---- */

static void check_assignments(const struct string_list *list, const char *what)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *item = list->items[i];
		size_t length = strcspn(item, "=");

		CHECK(length && item[length] == '=', "%s: '%s' is no assignment", what, item);
		for (size_t j = 0; j < i; j++)
			CHECK(strncmp(list->items[j], item, length + 1) != 0, "%s: '%s' twice",
			      what, item);
	}
	CHECK(list->count == 0 || !list->items[list->count], "%s: the list does not end", what);
}

/* Independent of the table: what a name may never hold, whatever its case. */
static void check_environment(const struct string_list *env)
{
	static const char *const never[] = {"SECRET", "PASSWORD", "CREDENTIAL", "API_KEY"};

	check_assignments(env, "env");
	for (size_t i = 0; i < env->count; i++) {
		const char *item = env->items[i];
		size_t length = strcspn(item, "=");
		scoped_mem char *name = strndup(item, length);

		CHECK(name && strlen(item) < 128 * 1024, "env: longer than execve takes");
		CHECK(!environment_is_secret(name, length), "env: %s", name);
		for (size_t n = 0; n < sizeof never / sizeof *never; n++)
			CHECK(!strcasestr(name, never[n]), "env: %s", name);
		CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		                   "0123456789_.-") == length,
		      "env: a name with other characters");
	}
}

/* An absolute path with one spelling, so that it is compared for what it is. */
static bool is_plain(const char *path)
{
	size_t length = strlen(path);

	return path[0] == '/' && (length == 1 || path[length - 1] != '/') && !strstr(path, "//") &&
	       !strstr(path, "/./") && !strstr(path, "/../") &&
	       (length < 2 || strcmp(path + length - 2, "/.") != 0) &&
	       (length < 3 || strcmp(path + length - 3, "/..") != 0);
}

static void check_tmpfs(const struct sandbox_spec *spec)
{
	static const char *const taken[] = {"/proc", "/dev", "/sys"};

	CHECK(spec->tmpfs_count >= 0 && spec->tmpfs_count <= SPEC_TMPFS_MAX, "tmpfs: too many");
	for (int i = 0; i < spec->tmpfs_count; i++) {
		const struct tmpfs_mount *tmpfs = &spec->tmpfs[i];

		CHECK(is_plain(tmpfs->path) && strcmp(tmpfs->path, "/") != 0, "tmpfs: '%s'",
		      tmpfs->path);
		CHECK(strcmp(tmpfs->path, "/workspace") != 0, "tmpfs: over the workspace");
		CHECK(tmpfs->mode <= 01777, "tmpfs: mode %o", tmpfs->mode);
		CHECK(!tmpfs->size_bytes || tmpfs->size_bytes >= 4096, "tmpfs: no room");
		for (size_t t = 0; t < 3; t++) {
			size_t length = strlen(taken[t]);

			CHECK(strncmp(tmpfs->path, taken[t], length) != 0 ||
			              !strchr("/", tmpfs->path[length]),
			      "tmpfs: %s", tmpfs->path);
		}
		for (int j = 0; j < i; j++)
			CHECK(strcmp(tmpfs->path, spec->tmpfs[j].path) != 0, "tmpfs: %s twice",
			      tmpfs->path);
	}
}

static void check_rlimits(const struct identity *identity)
{
	CHECK(identity->rlimits_count >= 0 && identity->rlimits_count <= RLIMITS_MAX, "rlimits");
	for (int i = 0; i < identity->rlimits_count; i++) {
		CHECK(identity->rlimits[i].soft <= identity->rlimits[i].hard,
		      "rlimit %d: soft above hard", identity->rlimits[i].resource);
		for (int j = 0; j < i; j++)
			CHECK(identity->rlimits[i].resource != identity->rlimits[j].resource,
			      "rlimit %d twice", identity->rlimits[i].resource);
	}
}

/* ---- the whole ---- */

static void check_within(const char *what, uint64_t value, uint64_t min, uint64_t max)
{
	CHECK(value >= min && value <= max, "%s is %llu", what, (unsigned long long)value);
}

static void check_options(struct run_options *options)
{
	static const struct image image = {.workdir = "/", .user = "x", .has_ids = true};
	struct sandbox_spec *spec = &options->spec;
	const uint64_t hour_ms = 3600 * 1000;
	struct err e;
	int result;

	check_within("memory", spec->limits.memory_bytes, 256 << 10, 16 * TIB);
	check_within("pids", spec->limits.pids, 2, 4194304);
	check_within("cpus", spec->limits.cpu_millis, 10,
	             (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000);
	check_within("disk", spec->disk.bytes, MIB, 16 * TIB);
	check_within("inodes", spec->disk.inodes, 64, 1 << 30);
	check_within("timeout", spec->timeout_ms, 0, 8760 * hour_ms);
	check_within("grace", spec->grace_ms, 0, hour_ms);
	check_within("drain", spec->drain_ms, 0, hour_ms);
	check_within("start-timeout", spec->start_timeout_ms, 100, hour_ms);
	check_within("max-output", spec->max_output_bytes, 2, 1 << 30);
	check_within("user", spec->identity.uid, 0, 65535);
	check_within("group", spec->identity.gid, 0, 65535);
	check_within("may be missing", spec->limits.may_be_missing, 0, 7);
	check_environment(&options->env);
	check_assignments(&options->labels, "labels");
	CHECK(options->labels.count <= 64, "%zu labels", options->labels.count);
	for (size_t i = 0; i < options->labels.count; i++)
		CHECK(utf8_valid_prefix(options->labels.items[i],
		                        strlen(options->labels.items[i])) ==
		              strlen(options->labels.items[i]),
		      "a label that is not UTF-8");
	CHECK(spec->cwd[0] == '/', "cwd '%s'", spec->cwd);
	check_tmpfs(spec);
	check_rlimits(&spec->identity);
	result = run_options_take_image(options, &image, &e);
	if (result < 0) {
		fuzz_check_err(result, &e);
		CHECK(!spec->argv[0] || !spec->argv[0][0], "a command that is refused: %s", e.text);
		return;
	}
	check_environment(&options->env);
	result = sandbox_spec_check(spec, &e);
	/* the one bound that the command line leaves to the spec */
	CHECK(result == 0 || strncmp(e.text, "nofile: ", 8) == 0, "accepted, and refused: %s",
	      e.text);
}

static void try_command_line(char *lines)
{
	char *argv[WORDS_MAX + 2] = {(char *)(uintptr_t) "run"}, *line;
	struct string_list variables = {0};
	struct run_options options;
	struct err e;
	int argc = 1, result;

	while ((line = strsep(&lines, "\n")) && argc <= WORDS_MAX) {
		char *equals = strchr(line, '=');

		if (strncmp(line, "$SANDBOX_", 9) != 0 || !equals) {
			try_numbers(line);
			argv[argc++] = line;
			continue;
		}
		*equals = '\0';
		CHECK(setenv(line + 1, equals + 1, 1) == 0, "setenv: %m");
		CHECK(string_list_add(&variables, line + 1, &e) == 0, "%s", e.text);
	}
	result = run_options_parse(&options, argc, argv, &e);
	if (result < 0)
		fuzz_check_err(result, &e);
	else if (!options.help)
		check_options(&options);
	run_options_release(&options);
	for (size_t i = 0; i < variables.count; i++)
		unsetenv(variables.items[i]);
	string_list_release(&variables);
}

static void try_file(const uint8_t *data, size_t size)
{
	struct string_list env = {0};
	char path[64];
	struct err e;
	int result;

	fuzz_put("env", data, size);
	snprintf(path, sizeof path, "/proc/self/fd/%d/env", fuzz_scratch());
	result = environment_add_file(&env, path, &e);
	if (result < 0)
		fuzz_check_err(result, &e);
	check_environment(&env);
	string_list_release(&env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *file = size ? memmem(data, size, "\n\n", 2) : NULL;
	scoped_mem char *lines = fuzz_text(data, file ? (size_t)(file - data) : size);
	int next_fd = fuzz_next_fd();

	try_command_line(lines);
	if (file)
		try_file(file + 2, size - (size_t)(file + 2 - data));
	CHECK(fuzz_next_fd() == next_fd, "a descriptor leaked");
	return 0;
}
