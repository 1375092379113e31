/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of values. A number out of bounds is told with its bounds; a word that is not known,
 * with those that are. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "base/unsafe.h"
#include "cli/environment.h"
#include "cli/run_values.h"

enum { LABELS_MAX = 64 };

static void *field(struct run_options *options, const struct run_option *option)
{
	return (char *)options + option->offset;
}

int value_flag(struct run_options *options, const struct run_option *option, const char *value,
               struct err *e)
{
	(void)value;
	(void)e;
	*(bool *)field(options, option) = true;
	return 0;
}

int value_text(struct run_options *options, const struct run_option *option, const char *value,
               struct err *e)
{
	if (!*value)
		return err_set(e, EINVAL, "an empty value; want %s", option->argument);
	*(const char **)field(options, option) = value;
	return 0;
}

int value_bytes(struct run_options *options, const struct run_option *option, const char *value,
                struct err *e)
{
	char low[32], high[32];
	uint64_t bytes;

	TRY(parse_bytes(value, &bytes, e));
	if (bytes < option->min || bytes > option->max)
		return err_set(e, ERANGE, "'%s' is out of bounds: %s to %s", value,
		               format_bytes(option->min, low, sizeof(low)),
		               format_bytes(option->max, high, sizeof(high)));
	*(uint64_t *)field(options, option) = bytes;
	return 0;
}

int value_count(struct run_options *options, const struct run_option *option, const char *value,
                struct err *e)
{
	uint64_t count;

	TRY(parse_u64(value, UINT64_MAX, &count, e));
	if (count < option->min || count > option->max)
		return err_set(e, ERANGE, "'%s' is out of bounds: %" PRIu64 " to %" PRIu64, value,
		               option->min, option->max);
	*(uint64_t *)field(options, option) = count;
	return 0;
}

int value_duration(struct run_options *options, const struct run_option *option, const char *value,
                   struct err *e)
{
	uint64_t ms;

	TRY(parse_duration_ms(value, &ms, e));
	if (ms < option->min || ms > option->max)
		return err_set(e, ERANGE, "'%s' is out of bounds: %gs to %gh", value,
		               (double)option->min / 1000, (double)option->max / 3600000);
	*(uint64_t *)field(options, option) = ms;
	return 0;
}

/* The kernel's shortest quota is 1 ms of a period of 100 ms: 0.01 CPUs. */
int value_cpus(struct run_options *options, const struct run_option *option, const char *value,
               struct err *e)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t millis;
	char text[32];

	(void)option;
	if (value[0] == '.' && isdigit((unsigned char)value[1])) {
		TRY(text_format(text, sizeof(text), e, "0%s", value));
		value = text;
	}
	TRY(parse_millis(value, &millis, e));
	if (online > 0 && (millis < 10 || millis > (uint64_t)online * 1000))
		return err_set(e, ERANGE,
		               "'%s' is out of bounds: 0.01 to %ld, the CPUs of this host", value,
		               online);
	options->spec.limits.cpu_millis = millis;
	return 0;
}

int value_user(struct run_options *options, const struct run_option *option, const char *value,
               struct err *e)
{
	const char *colon = strchr(value, ':');
	uint64_t uid, gid;
	char text[16];

	(void)option;
	if (colon && colon > value && !colon[1])
		return err_set(e, EINVAL,
		               "'%s': no GID behind the colon; want %.*s for both, or UID:GID",
		               value, (int)(colon - value), value);
	if (text_format(text, sizeof(text), e, "%.*s", (int)strcspn(value, ":"), value) < 0 ||
	    parse_u64(text, RUN_ID_MAX, &uid, e) < 0 ||
	    parse_u64(colon ? colon + 1 : text, RUN_ID_MAX, &gid, e) < 0)
		return err_set(
			e, EINVAL,
			"'%s': want UID or UID:GID in numbers, 0 to %d; names are not looked "
			"up",
			value, RUN_ID_MAX);
	options->spec.identity.uid = (uint32_t)uid;
	options->spec.identity.gid = (uint32_t)gid;
	options->user_given = true;
	return 0;
}

int value_entrypoint(struct run_options *options, const struct run_option *option,
                     const char *value, struct err *e)
{
	(void)option;
	(void)e;
	options->entrypoint = value;
	return 0;
}

int value_backing(struct run_options *options, const struct run_option *option, const char *value,
                  struct err *e)
{
	static const struct {
		const char *word;
		enum disk_backing backing;
	} words[] = {{"auto", DISK_AUTO}, {"image", DISK_IMAGE}, {"tmpfs", DISK_TMPFS}};

	(void)option;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(value, words[i].word) == 0) {
			options->spec.disk.backing = words[i].backing;
			return 0;
		}
	return err_set(e, EINVAL, "'%s': want auto, image or tmpfs", value);
}

int value_env(struct run_options *options, const struct run_option *option, const char *value,
              struct err *e)
{
	(void)option;
	return environment_add(&options->given_env, value, e);
}

int value_env_file(struct run_options *options, const struct run_option *option, const char *value,
                   struct err *e)
{
	(void)option;
	if (strcmp(value, "-") == 0)
		return err_set(e, EINVAL,
		               "'-': want a file; /dev/stdin is one where standard input is to "
		               "be read");
	return environment_add_file(&options->given_env, value, e);
}

static bool has_dotdot(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 2 && memcmp(path, "..", 2) == 0)
			return true;
		path += length;
		path += strspn(path, "/");
	}
	return false;
}

/* Without "//", "." and "..", so that one place has one spelling. */
static bool is_plain_path(const char *path)
{
	do {
		size_t length = strcspn(++path, "/");

		if (length == 0 || (length <= 2 && strncmp(path, "..", length) == 0))
			return false;
		path += length;
	} while (*path);
	return true;
}

int value_workdir(struct run_options *options, const struct run_option *option, const char *value,
                  struct err *e)
{
	(void)option;
	if (!*value)
		return err_set(e, EINVAL, "an empty value; want a directory inside");
	if (has_dotdot(value))
		return err_set(e, EINVAL,
		               "'%s': a path with .. is refused; name it from /workspace", value);
	TRY(text_format(options->cwd, sizeof(options->cwd), e, "%s%s",
	                value[0] == '/' ? "" : "/workspace/", value));
	options->spec.cwd = options->cwd;
	return 0;
}

int value_hostname(struct run_options *options, const struct run_option *option, const char *value,
                   struct err *e)
{
	size_t length = strlen(value);

	(void)option;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)value[i]) && value[i] != '-' && value[i] != '.')
			length = 0;
	if (length == 0 || length > 63 || strchr("-.", value[0]))
		return err_set(e, EINVAL,
		               "'%s': want 1 to 63 letters, digits, '-' or '.', a letter or digit "
		               "first",
		               value);
	options->spec.hostname = value;
	return 0;
}

int value_network(struct run_options *options, const struct run_option *option, const char *value,
                  struct err *e)
{
	(void)options;
	(void)option;
	if (strcmp(value, "none") != 0)
		return err_set(e, EINVAL, "'%s': only none is possible, a sandbox has no network",
		               value);
	return 0;
}

int value_label(struct run_options *options, const struct run_option *option, const char *value,
                struct err *e)
{
	(void)option;
	if (!strchr(value, '=') || value[0] == '=')
		return err_set(e, EINVAL, "'%s': want KEY=VALUE", value);
	if (strlen(value) != utf8_valid_prefix(value, strlen(value)))
		return err_set(e, EINVAL, "'%s': not UTF-8, which the report is", value);
	TRY(string_list_set(&options->labels, value, e));
	if (options->labels.count > LABELS_MAX)
		return err_set(e, E2BIG, "more than %d labels", LABELS_MAX);
	return 0;
}

int value_allow_missing(struct run_options *options, const struct run_option *option,
                        const char *value, struct err *e)
{
	static const struct {
		const char *word;
		unsigned controller; /* 0: the user namespace */
	} words[] = {{"cpu", CGROUP_CPU},
	             {"memory", CGROUP_MEMORY},
	             {"pids", CGROUP_PIDS},
	             {"userns", 0}};
	const char *word = value;

	(void)option;
	for (;;) {
		size_t length = strcspn(word, ","), i = 0;

		while (i < 4 && (strlen(words[i].word) != length ||
		                 memcmp(words[i].word, word, length) != 0))
			i++;
		if (i == 4)
			return err_set(e, EINVAL, "'%s': want a list of cpu, memory, pids, userns",
			               value);
		options->spec.limits.may_be_missing |= words[i].controller;
		if (!words[i].controller)
			options->spec.user_namespace_may_be_missing = true;
		if (!word[length])
			return 0;
		word += length + 1;
	}
}

/* ---- --tmpfs PATH[:size=,mode=,exec] ---- */

static int tmpfs_option(struct tmpfs_mount *tmpfs, const char *text, struct err *e)
{
	if (strncmp(text, "size=", 5) == 0) {
		TRY(parse_bytes(text + 5, &tmpfs->size_bytes, e));
		if (tmpfs->size_bytes < 4096)
			return err_set(e, ERANGE, "'%s' is out of bounds: 4 KiB or more", text);
		return 0;
	}
	if (strncmp(text, "mode=", 5) == 0) {
		size_t digits = strspn(text + 5, "01234567");

		tmpfs->mode = (uint32_t)strtoul(text + 5, NULL, 8);
		if (digits == 0 || digits > 4 || text[5 + digits] || tmpfs->mode == 0 ||
		    tmpfs->mode > 01777)
			return err_set(e, EINVAL, "'%s': want octal permissions, 1 to 1777", text);
		return 0;
	}
	if (strcmp(text, "exec") == 0 || strcmp(text, "noexec") == 0) {
		tmpfs->exec = text[0] == 'e';
		return 0;
	}
	return err_set(e, EINVAL, "'%s': want size=SIZE, mode=OCTAL, exec or noexec", text);
}

/* A tmpfs over these would hide what the sandbox itself puts there. */
static int tmpfs_path_check(const struct run_options *options, const char *path, struct err *e)
{
	static const char *const taken[] = {"/proc", "/dev", "/sys"};

	if (path[0] != '/' || !is_plain_path(path))
		return err_set(e, EINVAL, "'%s': want an absolute path inside, without . and ..",
		               path);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		size_t length = strlen(taken[i]);

		if (strncmp(path, taken[i], length) == 0 && (!path[length] || path[length] == '/'))
			return err_set(e, EINVAL, "%s: %s is the sandbox's own", path, taken[i]);
	}
	if (strcmp(path, "/workspace") == 0)
		return err_set(e, EINVAL, "%s: it would hide the workspace", path);
	for (int i = 0; i < options->spec.tmpfs_count; i++)
		if (strcmp(options->spec.tmpfs[i].path, path) == 0)
			return err_set(e, EEXIST, "%s: given twice", path);
	if (options->spec.tmpfs_count == SPEC_TMPFS_MAX)
		return err_set(e, E2BIG, "%s: more than %d of them", path, SPEC_TMPFS_MAX);
	return 0;
}

int value_tmpfs(struct run_options *options, const struct run_option *option, const char *value,
                struct err *e)
{
	scoped_mem char *path = strdup(value);
	struct tmpfs_mount tmpfs = {0};
	char *rest, *text;

	(void)option;
	if (!path)
		return err_set(e, ENOMEM, "%s: out of memory", value);
	rest = strchr(path, ':');
	if (rest)
		*rest++ = '\0';
	for (size_t length = strlen(path); length > 1 && path[length - 1] == '/'; length--)
		path[length - 1] = '\0';
	TRY(tmpfs_path_check(options, path, e));
	while ((text = strsep(&rest, ",")))
		TRY(tmpfs_option(&tmpfs, text, e));
	TRY(string_list_add(&options->tmpfs_paths, path, e));
	tmpfs.path = options->tmpfs_paths.items[options->tmpfs_paths.count - 1];
	options->spec.tmpfs[options->spec.tmpfs_count++] = tmpfs;
	return 0;
}

/* ---- --ulimit NAME=SOFT[:HARD] ---- */

static const struct {
	const char *name;
	int resource;
} ulimits[] = {
	{"as", RLIMIT_AS},
	{"core", RLIMIT_CORE},
	{"cpu", RLIMIT_CPU},
	{"data", RLIMIT_DATA},
	{"fsize", RLIMIT_FSIZE},
	{"locks", RLIMIT_LOCKS},
	{"memlock", RLIMIT_MEMLOCK},
	{"msgqueue", RLIMIT_MSGQUEUE},
	{"nice", RLIMIT_NICE},
	{"nofile", RLIMIT_NOFILE},
	{"nproc", RLIMIT_NPROC},
	{"rss", RLIMIT_RSS},
	{"rtprio", RLIMIT_RTPRIO},
	{"rttime", RLIMIT_RTTIME},
	{"sigpending", RLIMIT_SIGPENDING},
	{"stack", RLIMIT_STACK},
};
enum { ULIMITS = sizeof(ulimits) / sizeof(ulimits[0]) };
_Static_assert((int)ULIMITS <= (int)RLIMITS_MAX, "each resource has room in struct identity");

static int ulimit_number(const char *text, rlim_t *limit, struct err *e)
{
	uint64_t number;

	if (strcmp(text, "unlimited") == 0) {
		*limit = RLIM_INFINITY;
		return 0;
	}
	TRY(parse_u64(text, RLIM_INFINITY - 1, &number, e));
	*limit = number;
	return 0;
}

static void ulimit_set(struct identity *identity, const struct rlimit_spec *limit)
{
	int i = 0;

	while (i < identity->rlimits_count && identity->rlimits[i].resource != limit->resource)
		i++;
	if (i == identity->rlimits_count)
		identity->rlimits_count++;
	identity->rlimits[i] = *limit;
}

int value_ulimit(struct run_options *options, const struct run_option *option, const char *value,
                 struct err *e)
{
	size_t length = strcspn(value, "="), i = 0;
	const char *limits = value + length + 1, *hard;
	struct rlimit_spec limit;
	char soft[32];

	(void)option;
	while (i < ULIMITS &&
	       (strlen(ulimits[i].name) != length || memcmp(ulimits[i].name, value, length) != 0))
		i++;
	if (i == ULIMITS)
		return err_set(e, EINVAL,
		               "'%s': no such resource; want one of as, core, cpu, data, "
		               "fsize, locks, memlock, msgqueue, nice, nofile, nproc, "
		               "rss, rtprio, rttime, sigpending, stack",
		               value);
	if (!value[length])
		return err_set(e, EINVAL, "'%s': want %s=SOFT[:HARD]", value, value);
	TRY(text_format(soft, sizeof(soft), e, "%.*s", (int)strcspn(limits, ":"), limits));
	hard = strchr(limits, ':');
	limit.resource = ulimits[i].resource;
	if (ulimit_number(soft, &limit.soft, e) < 0 ||
	    ulimit_number(hard ? hard + 1 : soft, &limit.hard, e) < 0)
		return err_in(e, "%s", ulimits[i].name);
	if (limit.soft > limit.hard)
		return err_set(e, EINVAL, "'%s': the soft limit is above the hard one", value);
	ulimit_set(&options->spec.identity, &limit);
	return 0;
}

#ifdef AGENTDOCK_UNSAFE
int value_unsafe_without(struct run_options *options, const struct run_option *option,
                         const char *value, struct err *e)
{
	(void)options;
	(void)option;
	(void)e;
	unsafe_leave_out(value);
	return 0;
}
#endif
