/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a group uses, in the units of `events`: a table of single numbers for v1 and for v2, and the lists
 * (devices, huge pages, memory.stat). A file that this kernel or host has not is no error: its number
 * stays 0.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scoped.h"
#include "container/group_internal.h"

enum { STAT_TEXT_SIZE = 65536 };

struct stats_row {
	const char *controller, *file, *key; /* NULL: the file is one number */
	size_t offset;                       /* in struct group_stats */
	uint64_t factor;
};

#define STAT(member) offsetof(struct group_stats, member)

static const struct stats_row v1_rows[] = {
	{"cpuacct", "cpuacct.usage", NULL, STAT(cpu.usage_ns), 1},
	{"cpuacct", "cpuacct.usage_user", NULL, STAT(cpu.user_ns), 1},
	{"cpuacct", "cpuacct.usage_sys", NULL, STAT(cpu.system_ns), 1},
	{"cpu", "cpu.stat", "nr_periods", STAT(cpu.periods), 1},
	{"cpu", "cpu.stat", "nr_throttled", STAT(cpu.throttled_periods), 1},
	{"cpu", "cpu.stat", "throttled_time", STAT(cpu.throttled_ns), 1},
	{"memory", "memory.usage_in_bytes", NULL, STAT(memory.usage), 1},
	{"memory", "memory.max_usage_in_bytes", NULL, STAT(memory.max_usage), 1},
	{"memory", "memory.limit_in_bytes", NULL, STAT(memory.limit), 1},
	{"memory", "memory.failcnt", NULL, STAT(memory.failcnt), 1},
	{"memory", "memory.stat", "total_cache", STAT(memory.cache), 1},
	{"memory", "memory.stat", "total_swap", STAT(memory.swap_usage), 1},
	{"memory", "memory.memsw.limit_in_bytes", NULL, STAT(memory.swap_limit), 1},
	{"memory", "memory.kmem.usage_in_bytes", NULL, STAT(memory.kernel_usage), 1},
	{"memory", "memory.oom_control", "oom_kill", STAT(oom_kills), 1},
	{"pids", "pids.current", NULL, STAT(pids.current), 1},
	{"pids", "pids.max", NULL, STAT(pids.limit), 1},
};

static const struct stats_row v2_rows[] = {
	{"cpu", "cpu.stat", "usage_usec", STAT(cpu.usage_ns), 1000},
	{"cpu", "cpu.stat", "user_usec", STAT(cpu.user_ns), 1000},
	{"cpu", "cpu.stat", "system_usec", STAT(cpu.system_ns), 1000},
	{"cpu", "cpu.stat", "nr_periods", STAT(cpu.periods), 1},
	{"cpu", "cpu.stat", "nr_throttled", STAT(cpu.throttled_periods), 1},
	{"cpu", "cpu.stat", "throttled_usec", STAT(cpu.throttled_ns), 1000},
	{"memory", "memory.current", NULL, STAT(memory.usage), 1},
	{"memory", "memory.peak", NULL, STAT(memory.max_usage), 1},
	{"memory", "memory.max", NULL, STAT(memory.limit), 1},
	{"memory", "memory.events", "max", STAT(memory.failcnt), 1},
	{"memory", "memory.events", "oom_kill", STAT(oom_kills), 1},
	{"memory", "memory.stat", "file", STAT(memory.cache), 1},
	{"memory", "memory.stat", "kernel", STAT(memory.kernel_usage), 1},
	{"memory", "memory.swap.current", NULL, STAT(memory.swap_usage), 1},
	{"memory", "memory.swap.max", NULL, STAT(memory.swap_limit), 1},
	{"pids", "pids.current", NULL, STAT(pids.current), 1},
	{"pids", "pids.max", NULL, STAT(pids.limit), 1},
};

/* What TEXT is of; rows of one file stand together. */
struct stats_reader {
	const char *file;
	int fd, length;
	char text[STAT_TEXT_SIZE];
};

static bool read_file(struct stats_reader *reader, int fd, const char *file)
{
	if (!reader->file || reader->fd != fd || strcmp(reader->file, file) != 0) {
		reader->file = file;
		reader->fd = fd;
		reader->length = control_read(fd, file, reader->text, sizeof reader->text);
	}
	return reader->length >= 0;
}

static void read_rows(struct stats_reader *reader, const struct group *group,
                      const struct stats_row *rows, size_t count, bool v1,
                      struct group_stats *stats)
{
	for (size_t i = 0; i < count; i++) {
		const struct stats_row *row = &rows[i];
		const struct group_hierarchy *of = v1 ? group_v1(group, row->controller)
		                                      : group_v2(group);
		uint64_t *value = (void *)((char *)stats + row->offset), number;

		if (!of || (!v1 && group_v1(group, row->controller)) ||
		    !read_file(reader, of->fd, row->file))
			continue;
		if (control_number(reader->text, row->key, &number))
			*value = number * row->factor;
		else if (!row->key && strncmp(reader->text, "max", 3) == 0)
			*value = UINT64_MAX;
	}
}

/* ---- lists ---- */

static int no_memory(struct err *e)
{
	return err_set(e, ENOMEM, "reading what the container uses: no memory");
}

/* The pairs and, behind them in the same block, their texts. */
static int read_raw(struct stats_reader *reader, const struct group *group,
                    struct group_stats *stats, struct err *e)
{
	const struct group_hierarchy *of = group_of(group, "memory");
	size_t lines = 0, pairs_size;
	struct oci_pair *pairs;
	char *next, *line;

	if (!of || !read_file(reader, of->fd, "memory.stat"))
		return 0;
	for (const char *c = reader->text; *c; c++)
		lines += *c == '\n';
	pairs_size = (lines + 1) * sizeof *pairs;
	pairs = malloc(pairs_size + (size_t)reader->length + 1);
	if (!pairs)
		return no_memory(e);
	next = (char *)pairs + pairs_size;
	memcpy(next, reader->text, (size_t)reader->length + 1);
	stats->memory.raw = (struct oci_map){.items = pairs};
	while ((line = strsep(&next, "\n")) && stats->memory.raw.count < lines) {
		const char *key = strsep(&line, " ");

		if (line)
			pairs[stats->memory.raw.count++] = (struct oci_pair){key, line};
	}
	return 0;
}

static int add_io(struct group_io **list, size_t *count, uint64_t major, uint64_t minor,
                  const char *op, uint64_t value, struct err *e)
{
	struct group_io *grown = reallocarray(*list, *count + 1, sizeof *grown);

	if (!grown)
		return no_memory(e);
	*list = grown;
	grown[*count] = (struct group_io){.major = major, .minor = minor, .value = value};
	snprintf(grown[(*count)++].op, sizeof grown->op, "%s", op);
	return 0;
}

/* Takes "MAJOR:MINOR " off *TEXT. */
static bool take_device(char **text, uint64_t *major, uint64_t *minor)
{
	char *end;

	*major = strtoull(*text, &end, 10);
	if (end == *text || *end != ':')
		return false;
	*text = end + 1;
	*minor = strtoull(*text, &end, 10);
	if (end == *text || *end != ' ')
		return false;
	*text = end + 1;
	return true;
}

/* Lines "MAJOR:MINOR OPERATION NUMBER", and the sum of all. */
static int read_io_v1(struct stats_reader *reader, int fd, const char *file, struct group_io **list,
                      size_t *count, struct err *e)
{
	char *next = reader->text, *line;

	if (!read_file(reader, fd, file))
		return 0;
	reader->file = NULL; /* its text is cut up */
	while ((line = strsep(&next, "\n"))) {
		uint64_t major, minor, value;
		char *number = line;
		const char *op;

		if (!take_device(&number, &major, &minor))
			continue;
		op = strsep(&number, " ");
		if (number && control_number(number, NULL, &value))
			TRY(add_io(list, count, major, minor, op, value, e));
	}
	return 0;
}

static const struct io_word {
	const char *word, *op;
	bool bytes;
} io_words[] = {
	{"rbytes=", "Read", true}, {"wbytes=", "Write", true}, {"dbytes=", "Discard", true},
	{"rios=", "Read", false},  {"wios=", "Write", false},  {"dios=", "Discard", false},
};

static int add_io_word(struct group_stats *stats, uint64_t major, uint64_t minor, const char *word,
                       struct err *e)
{
	for (size_t i = 0; i < sizeof io_words / sizeof *io_words; i++) {
		size_t length = strlen(io_words[i].word);
		uint64_t value;

		if (strncmp(word, io_words[i].word, length) != 0)
			continue;
		value = strtoull(word + length, NULL, 10);
		if (io_words[i].bytes)
			return add_io(&stats->io_bytes, &stats->io_bytes_count, major, minor,
			              io_words[i].op, value, e);
		return add_io(&stats->io_ops, &stats->io_ops_count, major, minor, io_words[i].op,
		              value, e);
	}
	return 0;
}

/* Lines "MAJOR:MINOR WORD=NUMBER...". */
static int read_io_v2(struct stats_reader *reader, int fd, struct group_stats *stats, struct err *e)
{
	char *next = reader->text, *line, *word;

	if (!read_file(reader, fd, "io.stat"))
		return 0;
	reader->file = NULL;
	while ((line = strsep(&next, "\n"))) {
		uint64_t major, minor;

		if (!take_device(&line, &major, &minor))
			continue;
		while ((word = strsep(&line, " ")))
			TRY(add_io_word(stats, major, minor, word, e));
	}
	return 0;
}

static int read_io(struct stats_reader *reader, const struct group *group,
                   struct group_stats *stats, struct err *e)
{
	const struct group_hierarchy *v1 = group_v1(group, "blkio"), *v2 = group_v2(group);

	if (!v1)
		return v2 ? read_io_v2(reader, v2->fd, stats, e) : 0;
	TRY(read_io_v1(reader, v1->fd, "blkio.throttle.io_service_bytes_recursive",
	               &stats->io_bytes, &stats->io_bytes_count, e));
	return read_io_v1(reader, v1->fd, "blkio.throttle.io_serviced_recursive", &stats->io_ops,
	                  &stats->io_ops_count, e);
}

static uint64_t huge_number(const struct group_hierarchy *of, const char *size, const char *end,
                            const char *key)
{
	char file[64], text[128];
	uint64_t value;

	snprintf(file, sizeof file, "hugetlb.%s.%s", size, end);
	if (control_read(of->fd, file, text, sizeof text) < 0 || !control_number(text, key, &value))
		return 0;
	return value;
}

/* "2048kB" -> "2MB", as the names of control files have it. */
static void huge_size(char *size, size_t room, unsigned long kib)
{
	static const char units[] = "KMG";
	size_t unit = 0;

	for (; kib >= 1024 && kib % 1024 == 0 && unit < 2; unit++)
		kib /= 1024;
	snprintf(size, room, "%lu%cB", kib, units[unit]);
}

static int read_huge(const struct group *group, struct group_stats *stats, struct err *e)
{
	const struct group_hierarchy *of = group_of(group, "hugetlb");
	static const char prefix[] = "hugepages-";
	bool v1 = group_v1(group, "hugetlb");
	scoped_dir dir = of ? opendir("/sys/kernel/mm/hugepages") : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		struct group_hugetlb one = {0}, *grown;

		if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0)
			continue;
		huge_size(one.size, sizeof one.size,
		          strtoul(entry->d_name + sizeof prefix - 1, NULL, 10));
		one.usage = huge_number(of, one.size, v1 ? "usage_in_bytes" : "current", NULL);
		one.max = v1 ? huge_number(of, one.size, "max_usage_in_bytes", NULL) : 0;
		one.failcnt = v1 ? huge_number(of, one.size, "failcnt", NULL)
		                 : huge_number(of, one.size, "events", "max");
		grown = reallocarray(stats->hugetlb, stats->hugetlb_count + 1, sizeof *grown);
		if (!grown)
			return no_memory(e);
		stats->hugetlb = grown;
		grown[stats->hugetlb_count++] = one;
	}
	return 0;
}

/* ---- all ---- */

void group_stats_release(struct group_stats *stats)
{
	free(stats->memory.raw.items);
	free(stats->io_bytes);
	free(stats->io_ops);
	free(stats->hugetlb);
	*stats = (struct group_stats){0};
}

static int read_lists(struct stats_reader *reader, const struct group *group,
                      struct group_stats *stats, struct err *e)
{
	TRY(read_raw(reader, group, stats, e));
	TRY(read_io(reader, group, stats, e));
	return read_huge(group, stats, e);
}

/* v1 limits memory and swap together. */
static void swap_apart(const struct group *group, struct group_stats *stats)
{
	if (group_v1(group, "memory") && stats->memory.swap_limit >= stats->memory.limit)
		stats->memory.swap_limit -= stats->memory.limit;
}

int group_stats(const struct group *group, struct group_stats *stats, struct err *e)
{
	scoped_mem struct stats_reader *reader = malloc(sizeof *reader);
	struct group_stats found = {0};

	if (!reader)
		return no_memory(e);
	if (group->count == 0)
		return err_set(e, ENOTSUP,
		               "what the container uses: it has no cgroup, because its user could "
		               "make none");
	reader->file = NULL;
	read_rows(reader, group, v1_rows, sizeof v1_rows / sizeof *v1_rows, true, &found);
	read_rows(reader, group, v2_rows, sizeof v2_rows / sizeof *v2_rows, false, &found);
	swap_apart(group, &found);
	if (read_lists(reader, group, &found, e) < 0) {
		group_stats_release(&found);
		return -e->code;
	}
	*stats = found;
	return 0;
}
