/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and usage as tables: a row is a control file, its controller, and how its value is written
 * and checked. The rows here are those of v2; hybrid.c has those of v1. A limit counts as set only
 * when reading it back gives what was asked for.
 */
#include "runtime/cgroup/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"

uint64_t limit_cpu_quota_us(const struct cgroup_limits *limits)
{
	return limits->cpu_millis * (CPU_PERIOD_US / 1000);
}

static bool cpu_max(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64 " %d", limit_cpu_quota_us(limits), CPU_PERIOD_US);
	return limits->cpu_millis != 0;
}

bool limit_memory(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64, limits->memory_bytes);
	return limits->memory_bytes != 0;
}

static bool no_swap(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "0");
	return limits->memory_bytes != 0;
}

static bool oom_group(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "%d", limits->oom_group ? 1 : 0);
	return limits->memory_bytes != 0 || limits->oom_group;
}

bool limit_pids(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64, limits->pids);
	return limits->pids != 0;
}

static const struct limit_row v2_limits[] = {
	{CGROUP_CPU, "cpu.max", cpu_max, LIMIT_EXACT, false, false},
	{CGROUP_MEMORY, "memory.max", limit_memory, LIMIT_PAGES, false, false},
	{CGROUP_MEMORY, "memory.swap.max", no_swap, LIMIT_EXACT, true, false},
	{CGROUP_MEMORY, "memory.oom.group", oom_group, LIMIT_EXACT, false, true},
	{CGROUP_PIDS, "pids.max", limit_pids, LIMIT_EXACT, false, false},
};

#define USAGE(member) offsetof(struct cgroup_usage, member)
static const struct usage_row v2_usages[] = {
	{0, "cpu.stat", "usage_usec", USAGE(cpu_us), 1},
	{0, "cpu.stat", "user_usec", USAGE(cpu_user_us), 1},
	{0, "cpu.stat", "system_usec", USAGE(cpu_system_us), 1},
	{CGROUP_CPU, "cpu.stat", "throttled_usec", USAGE(throttled_us), 1},
	{CGROUP_MEMORY, "memory.peak", NULL, USAGE(memory_peak_bytes), 1},
	{CGROUP_MEMORY, "memory.events", "oom_kill", USAGE(oom_kills), 1},
	{CGROUP_PIDS, "pids.peak", NULL, USAGE(pids_peak), 1},
	{CGROUP_PIDS, "pids.events", "max", USAGE(pids_refused), 1},
};

/* ---- limits ---- */

static bool as_asked(const struct limit_row *row, const char *asked, char *got)
{
	uint64_t want, have, page = (uint64_t)sysconf(_SC_PAGESIZE);

	got[strcspn(got, "\n")] = '\0';
	if (row->check == LIMIT_LIFTED || strcmp(asked, got) == 0)
		return true;
	return row->check == LIMIT_PAGES && control_number(asked, NULL, &want) &&
	       control_number(got, NULL, &have) && have == want - want % page;
}

int host_has_swap(struct err *e)
{
	char text[512];
	const char *first;
	scoped_fd fd = file_open(AT_FDCWD, "/proc/swaps", O_RDONLY, 0, e);
	ssize_t length;

	TRY(fd);
	length = read(fd, text, sizeof text - 1);
	if (length < 0)
		return err_sys(e, "reading /proc/swaps");
	text[length] = '\0';
	first = strchr(text, '\n');
	return first && first[1] != '\0';
}

/* Without swap in the host there is nothing that memory.swap.max could forbid. */
static int host_has_no_swap(const struct cgroup *cgroup, const char *file, struct err *e)
{
	int has = host_has_swap(e);

	if (has <= 0)
		return has;
	return err_set(e, ENOTSUP,
	               "memory limit: cgroup %s has no %s, and this host has swap that the limit "
	               "would not cover; boot with swapaccount=1, or turn swap off (swapoff -a)",
	               cgroup->path, file);
}

static const char *way_out(const struct limit_row *row, int code)
{
	if (code == EINVAL && row->controller == CGROUP_CPU)
		return "the kernel takes no less than 0.01 CPU, and on v1 no more than the group "
		       "above has";
	if (code == EBUSY)
		return "the group uses more than that already";
	if (code == EACCES || code == EPERM || code == EROFS)
		return "agentdock must be able to write the cgroup tree; see agentdock doctor";
	return "see agentdock doctor";
}

/* 1: set; 0: nothing to set; -ENOENT, without a text: there is no such file. */
static int limit_apply(const struct cgroup *cgroup, int dirfd, const struct limit_row *row,
                       const struct cgroup_limits *limits, struct err *e)
{
	char asked[48], got[64];
	scoped_fd fd = -1;
	ssize_t length;

	if (!row->value(limits, asked, sizeof asked))
		return 0;
	fd = openat(dirfd, row->file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT && row->swap)
		return host_has_no_swap(cgroup, row->file, e);
	if (fd < 0 && errno == ENOENT && !row->fails_old)
		return -ENOENT;
	if (fd < 0 || pwrite(fd, asked, strlen(asked), 0) < 0) {
		err_sys(e, "cgroup %s: setting %s to %s", cgroup->path, row->file, asked);
		return err_hint(e, "%s", way_out(row, e->code));
	}
	length = pread(fd, got, sizeof got - 1, 0);
	if (length < 0)
		return err_sys(e, "cgroup %s: reading %s back", cgroup->path, row->file);
	got[length] = '\0';
	if (as_asked(row, asked, got))
		return 1;
	return err_set(e, ERANGE,
	               "cgroup %s: %s was set to %s, but the kernel made it %s; ask for a limit "
	               "that this host can hold",
	               cgroup->path, row->file, asked, got);
}

static bool is_wanted(const struct cgroup_limits *limits, unsigned controller)
{
	switch (controller) {
	case CGROUP_CPU:
		return limits->cpu_millis != 0;
	case CGROUP_MEMORY:
		return limits->memory_bytes != 0 || limits->oom_group;
	default:
		return limits->pids != 0;
	}
}

static int limits_check(const struct cgroup *cgroup, const struct cgroup_limits *limits,
                        struct err *e)
{
	if (limits->cpu_millis > UINT64_MAX / (CPU_PERIOD_US / 1000) ||
	    (limits->cpu_millis != 0 && limit_cpu_quota_us(limits) < CPU_QUOTA_LEAST_US))
		return err_set(e, EINVAL,
		               "cgroup %s: a cpu limit of %" PRIu64 " thousandths of a CPU; the "
		               "kernel takes no less than 10",
		               cgroup->path, limits->cpu_millis);
	if (limits->oom_group && cgroup->v1fds[1] >= 0)
		return err_set(
			e, ENOTSUP,
			"cgroup %s: memory.oom.group is not available while this host's "
			"memory controller is on cgroup v1; run without --oom-group, or boot "
			"with systemd.unified_cgroup_hierarchy=1",
			cgroup->path);
	return 0;
}

static int rows_apply(const struct cgroup *cgroup, int dirfd, const struct limit_row *rows,
                      size_t count, unsigned controller, const struct cgroup_limits *limits,
                      struct err *e)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].controller == controller)
			TRY(limit_apply(cgroup, dirfd, &rows[i], limits, e));
	return 0;
}

static int controller_apply(const struct cgroup *cgroup, int i, const struct cgroup_limits *limits,
                            struct err *e)
{
	unsigned controller = 1U << i;

	e->code = 0;
	if (cgroup->v1fds[i] >= 0)
		return rows_apply(cgroup, cgroup->v1fds[i], hybrid_limits, hybrid_limits_count,
		                  controller, limits, e);
	return rows_apply(cgroup, cgroup->v2fd, v2_limits, sizeof v2_limits / sizeof *v2_limits,
	                  controller, limits, e);
}

/* The files are not there although cgroup_create has tried: says why, unless it works by now. */
static int controller_missing(const struct cgroup *cgroup, int i,
                              const struct cgroup_limits *limits, struct err *e)
{
	if (cgroup->v1fds[i] < 0 && controller_enable(cgroup, i, e) < 0)
		return err_in(e, "%s limit of cgroup %s", controller_names[i], cgroup->path);
	if (controller_apply(cgroup, i, limits, e) < 0 && e->code == 0)
		return err_set(e, ENOENT,
		               "%s limit of cgroup %s: the %s controller is there, but not the "
		               "files of its limits; the kernel was built without them",
		               controller_names[i], cgroup->path, controller_names[i]);
	return -e->code;
}

int cgroup_limit(struct cgroup *cgroup, const struct cgroup_limits *limits, struct err *e)
{
	unsigned enforced = 0;

	TRY(limits_check(cgroup, limits, e));
	for (int i = 0; i < CONTROLLERS; i++) {
		unsigned controller = 1U << i;
		int result;

		if (!is_wanted(limits, controller))
			continue;
		result = controller_apply(cgroup, i, limits, e);
		if (result == -ENOENT && e->code == 0) {
			result = controller_missing(cgroup, i, limits, e);
			if (result < 0 && (limits->may_be_missing & controller))
				continue;
		}
		TRY(result);
		enforced |= controller;
	}
	cgroup->enforced = enforced;
	return 0;
}

/* ---- usage ---- */

struct usage_reader {
	int dirfd;
	const char *file; /* what TEXT is of; rows of one file stand together */
	char text[CONTROL_TEXT_SIZE];
	int length;
};

static int usage_read(struct usage_reader *reader, const struct cgroup *cgroup,
                      const struct usage_row *row, struct cgroup_usage *usage, struct err *e)
{
	uint64_t number;

	if (!reader->file || strcmp(reader->file, row->file) != 0) {
		reader->file = row->file;
		reader->length = control_read(reader->dirfd, row->file, reader->text,
		                              sizeof reader->text);
	}
	/* A controller that is missing, or a kernel before the file: it does not say. */
	if (reader->length == -ENOENT && row->controller != 0)
		return 0;
	if (reader->length < 0) {
		errno = -reader->length;
		return err_sys(e, "cgroup %s: reading %s", cgroup->path, row->file);
	}
	if (control_number(reader->text, row->key, &number))
		*(uint64_t *)(void *)((char *)usage + row->offset) = number / row->divisor;
	return 0;
}

int cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *usage, struct err *e)
{
	struct cgroup_usage found = {0};
	struct usage_reader reader = {.dirfd = cgroup->v2fd};

	for (size_t i = 0; i < sizeof v2_usages / sizeof *v2_usages; i++)
		TRY(usage_read(&reader, cgroup, &v2_usages[i], &found, e));
	for (size_t i = 0; i < hybrid_usages_count; i++) {
		const struct usage_row *row = &hybrid_usages[i];
		int dirfd = cgroup->v1fds[__builtin_ctz(row->controller)];

		if (dirfd < 0)
			continue;
		if (dirfd != reader.dirfd)
			reader.file = NULL;
		reader.dirfd = dirfd;
		TRY(usage_read(&reader, cgroup, row, &found, e));
	}
	*usage = found;
	return 0;
}
