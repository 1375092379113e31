/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of v1 hierarchies (Documentation/admin-guide/cgroup-v1): the table of single values. What
 * is a list in the document is in group_lists.c, device rules in group_devices.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "container/group_internal.h"

enum { SHARES_LEAST = 2, SHARES_MOST = 262144 };

/* Without swap in the host there is nothing that a kernel without swap accounting would let pass. */
static int swap_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	static const char file[] = "memory.memsw.limit_in_bytes";
	const struct oci_memory *memory = change->resources->memory;
	const struct group_hierarchy *of = group_v1(change->group, "memory");
	bool wanted = memory && memory->swap.set && memory->swap.value != 0;
	/* memory cannot be lifted above memory+swap */
	bool lifted = memory && !wanted && change->update && memory->limit.set &&
	              memory->limit.value == -1;
	int r;

	if (!wanted && !lifted)
		return 0;
	snprintf(text, size, "%" PRIi64, wanted ? memory->swap.value : -1);
	if (!of || faccessat(of->fd, file, F_OK, 0) == 0)
		return 1;
	r = lifted || memory->swap.value < 0 ? 0 : host_has_swap(e);
	return r;
}

static int oom_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;

	(void)e;
	if (!memory || !memory->disable_oom_killer.set)
		return 0;
	snprintf(text, size, "%d", memory->disable_oom_killer.value);
	return memory->disable_oom_killer.value || change->update;
}

/* Kernels since 5.11 have nothing else than hierarchies, and refuse 0. */
static int hierarchy_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;

	(void)e;
	if (!memory || !memory->use_hierarchy.set)
		return 0;
	snprintf(text, size, "%d", memory->use_hierarchy.value);
	return 1;
}

/* The kernel would take another value without a word. */
static int shares_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_cpu *cpu = change->resources->cpu;

	if (!cpu || !cpu->shares.set || cpu->shares.value == 0)
		return 0;
	if (cpu->shares.value < SHARES_LEAST || cpu->shares.value > SHARES_MOST)
		return err_set(e, ERANGE,
		               "linux.resources.cpu.shares: %" PRIu64 "; the kernel takes %d to %d",
		               cpu->shares.value, SHARES_LEAST, SHARES_MOST);
	snprintf(text, size, "%" PRIu64, cpu->shares.value);
	return 1;
}

int group_pids_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_pids *pids = change->resources->pids;

	(void)e;
	if (!pids)
		return 0;
	/* of 0 the container's own process could not be started; 1 lets it be the only one */
	if (pids->limit < 0)
		snprintf(text, size, "max");
	else
		snprintf(text, size, "%" PRIi64, pids->limit ? pids->limit : 1);
	return 1;
}

const struct group_row group_v1_rows[] = {
	{{MEMORY("limit"), "memory.limit_in_bytes"}, OF_MEMORY(limit)},
	{{MEMORY("swap"), "memory.memsw.limit_in_bytes"}, .text = swap_text},
	{{MEMORY("reservation"), "memory.soft_limit_in_bytes"}, OF_MEMORY(reservation)},
	/* kernels since 5.16 take any value and do nothing */
	{{MEMORY("kernel"), "memory.kmem.limit_in_bytes"}, OF_MEMORY(kernel), .read_back = true},
	{{MEMORY("kernelTCP"), "memory.kmem.tcp.limit_in_bytes"}, OF_MEMORY(kernel_tcp)},
	{{MEMORY("swappiness"), "memory.swappiness"},
         OF_MEMORY(swappiness),
         .type = VALUE_UNSIGNED,
         .zero = true},
	{{MEMORY("disableOOMKiller"), "memory.oom_control"}, .text = oom_text},
	{{MEMORY("useHierarchy"), "memory.use_hierarchy"}, .text = hierarchy_text},
	{{CPU("shares", "cpu"), "cpu.shares"}, .text = shares_text},
	{{CPU("period", "cpu"), "cpu.cfs_period_us"}, OF_CPU(period), .type = VALUE_UNSIGNED},
	{{CPU("quota", "cpu"), "cpu.cfs_quota_us"}, OF_CPU(quota)},
	{{CPU("burst", "cpu"), "cpu.cfs_burst_us"}, OF_CPU(burst), .type = VALUE_UNSIGNED},
	{{CPU("realtimePeriod", "cpu"), "cpu.rt_period_us"},
         OF_CPU(realtime_period),
         .type = VALUE_UNSIGNED},
	{{CPU("realtimeRuntime", "cpu"), "cpu.rt_runtime_us"}, OF_CPU(realtime_runtime)},
	{{CPU("idle", "cpu"), "cpu.idle"}, OF_CPU(idle), .default_zero = true},
	{{CPU("cpus", "cpuset"), "cpuset.cpus"}, OF_CPU(cpus), .type = VALUE_WORD},
	{{CPU("mems", "cpuset"), "cpuset.mems"}, OF_CPU(mems), .type = VALUE_WORD},
	{{"linux.resources.pids.limit", "pids", "pids.max"}, .text = group_pids_text},
};
const size_t group_v1_rows_count = sizeof group_v1_rows / sizeof *group_v1_rows;
