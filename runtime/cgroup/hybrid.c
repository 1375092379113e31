/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts whose cpu, memory or pids controller sits on a v1 hierarchy: the only file that knows v1.
 * Such a controller's group has the same path as the one in the v2 tree. Two controllers may share
 * one hierarchy; then its group is made once and both descriptors are of it.
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

static bool cpu_period(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "%d", CPU_PERIOD_US);
	return limits->cpu_millis != 0;
}

static bool cpu_quota(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64, limit_cpu_quota_us(limits));
	return limits->cpu_millis != 0;
}

static bool memory_lifted(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "-1");
	return limits->memory_bytes != 0;
}

/* v1 counts what lies in network buffers apart from all other memory; a quarter of the limit more. */
static bool network_buffers(const struct cgroup_limits *limits, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64, limits->memory_bytes / 4);
	return limits->memory_bytes != 0;
}

/* The kernel refuses memory above memory+swap at every moment, so memory+swap is lifted first, and
 * set to the same value last: no swap. */
const struct limit_row hybrid_limits[] = {
	{CGROUP_CPU, "cpu.cfs_period_us", cpu_period, LIMIT_EXACT, false, false},
	{CGROUP_CPU, "cpu.cfs_quota_us", cpu_quota, LIMIT_EXACT, false, false},
	{CGROUP_MEMORY, "memory.memsw.limit_in_bytes", memory_lifted, LIMIT_LIFTED, true, false},
	{CGROUP_MEMORY, "memory.limit_in_bytes", limit_memory, LIMIT_PAGES, false, false},
	{CGROUP_MEMORY, "memory.memsw.limit_in_bytes", limit_memory, LIMIT_PAGES, true, false},
	{CGROUP_MEMORY, "memory.kmem.tcp.limit_in_bytes", network_buffers, LIMIT_PAGES, false,
         true},
	{CGROUP_PIDS, "pids.max", limit_pids, LIMIT_EXACT, false, false},
};
const size_t hybrid_limits_count = sizeof hybrid_limits / sizeof *hybrid_limits;

#define USAGE(member) offsetof(struct cgroup_usage, member)
const struct usage_row hybrid_usages[] = {
	{CGROUP_CPU, "cpu.stat", "throttled_time", USAGE(throttled_us), 1000},
	{CGROUP_MEMORY, "memory.max_usage_in_bytes", NULL, USAGE(memory_peak_bytes), 1},
	{CGROUP_MEMORY, "memory.oom_control", "oom_kill", USAGE(oom_kills), 1},
	{CGROUP_PIDS, "pids.peak", NULL, USAGE(pids_peak), 1},
	{CGROUP_PIDS, "pids.events", "max", USAGE(pids_refused), 1},
};
const size_t hybrid_usages_count = sizeof hybrid_usages / sizeof *hybrid_usages;

static bool wants(const struct cgroup_host *host, int i, const char *options)
{
	return host->v1_mounts[i][0] == '\0' && has_option(options, controller_names[i]);
}

bool hybrid_wants(const struct cgroup_host *host, const char *options)
{
	for (int i = 0; i < CONTROLLERS; i++)
		if (wants(host, i, options))
			return true;
	return false;
}

void hybrid_note_mount(struct cgroup_host *host, const char *mount, const char *options)
{
	for (int i = 0; i < CONTROLLERS; i++) {
		if (!wants(host, i, options))
			continue;
		snprintf(host->v1_mounts[i], sizeof host->v1_mounts[i], "%s", mount);
		host->controllers |= 1U << i;
		host->mode = CGROUP_HYBRID;
	}
}

/* The controller before I that shares its hierarchy, or I. */
static int first_of_mount(const struct cgroup_host *host, int i)
{
	for (int j = 0; j < i; j++)
		if (strcmp(host->v1_mounts[j], host->v1_mounts[i]) == 0)
			return j;
	return i;
}

typedef int group_get(const char *mount, const char *path, struct err *e);

static int each_mount(struct cgroup *cgroup, const struct cgroup_host *host, group_get *get,
                      struct err *e)
{
	for (int i = 0; i < CONTROLLERS; i++) {
		int first = first_of_mount(host, i);

		if (host->v1_mounts[i][0] == '\0' || (first != i && cgroup->v1fds[first] < 0))
			continue;
		if (first == i)
			cgroup->v1fds[i] = get(host->v1_mounts[i], cgroup->path, e);
		else
			cgroup->v1fds[i] = fcntl(cgroup->v1fds[first], F_DUPFD_CLOEXEC, 0);
		if (cgroup->v1fds[i] >= 0)
			continue;
		if (first != i)
			return err_sys(e, "cgroup %s: duplicating its descriptor", cgroup->path);
		if (get == hierarchy_open && e->code == ENOENT) {
			cgroup->v1fds[i] = -1;
			continue;
		}
		cgroup->v1fds[i] = -1;
		return -e->code;
	}
	return 0;
}

/* Opened while we may: who joins by them has lost the right to open them. */
static int open_tasks(struct cgroup *cgroup, struct err *e)
{
	for (int i = 0; i < CONTROLLERS; i++) {
		if (cgroup->v1fds[i] < 0)
			continue;
		cgroup->tasksfds[i] = file_open(cgroup->v1fds[i], "tasks", O_WRONLY, 0, e);
		if (cgroup->tasksfds[i] < 0)
			return err_in(e, "cgroup %s", cgroup->path);
	}
	return 0;
}

/* On failure removes what it made, and not a group that it found. */
int hybrid_create(struct cgroup *cgroup, const struct cgroup_host *host, struct err *e)
{
	struct err ignored;

	if (each_mount(cgroup, host, hierarchy_make, e) == 0 && open_tasks(cgroup, e) == 0)
		return 0;
	for (int i = 0; i < CONTROLLERS; i++)
		if (cgroup->v1fds[i] >= 0)
			hierarchy_remove(host->v1_mounts[i], cgroup->path, &ignored);
	return -e->code;
}

int hybrid_open(struct cgroup *cgroup, const struct cgroup_host *host, struct err *e)
{
	return each_mount(cgroup, host, hierarchy_open, e);
}

int hybrid_remove(const char *path, const struct cgroup_host *host, struct err *e)
{
	for (int i = 0; i < CONTROLLERS; i++)
		if (host->v1_mounts[i][0] != '\0' && first_of_mount(host, i) == i)
			TRY(hierarchy_remove(host->v1_mounts[i], path, e));
	return 0;
}

int cgroup_join(const struct cgroup *cgroup, struct err *e)
{
	for (int i = 0; i < CONTROLLERS; i++) {
		/* a task that moves itself takes no lock: moving another costs a grace period */
		if (cgroup->tasksfds[i] >= 0 && write(cgroup->tasksfds[i], "0", 1) != 1)
			return err_sys(e, "cgroup %s: joining it under its %s controller",
			               cgroup->path, controller_names[i]);
	}
	return 0;
}
