/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the v2 tree (Documentation/admin-guide/cgroup-v2.rst): the table of single values, and
 * the conversions from what the document means, which is v1. A key without a file has no counterpart.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"
#include "container/group_internal.h"

enum {
	SHARES_LEAST = 2,
	SHARES_MOST = 262144,
	WEIGHT_MOST = 10000,
	PERIOD_US = 100000,
};

/* 2, 1024 and 262144, the ends and the default, become 1, 100 and 10000, those of v2: what runc (1.3.2)
 * and crun (1.23) compute. */
uint64_t group_weight_of_shares(uint64_t shares)
{
	double l;

	if (shares <= SHARES_LEAST)
		return 1;
	if (shares >= SHARES_MOST)
		return WEIGHT_MOST;
	l = log2((double)shares);
	return (uint64_t)ceil(pow(10, (l * l + 125 * l) / 612 - 7.0 / 34));
}

uint64_t group_weight_of_block_io(uint64_t weight)
{
	return weight < 10 ? 1 : 1 + (weight - 10) * 9999 / 990;
}

/* ---- memory ---- */

static int bytes_text(int64_t bytes, char *text, size_t size)
{
	if (bytes < 0)
		snprintf(text, size, "max");
	else
		snprintf(text, size, "%" PRIi64, bytes);
	return 1;
}

static bool is_set(const struct oci_int *value)
{
	return value->set && value->value != 0;
}

/* Reads FILE of the group: a number, -1 for "max". False: there is none. */
static bool group_number(const struct group_change *change, const char *file, int64_t *number)
{
	char text[64];
	uint64_t value;

	if (control_read(group_v2(change->group)->fd, file, text, sizeof text) < 0)
		return false;
	*number = -1;
	if (control_number(text, NULL, &value))
		*number = (int64_t)value;
	return true;
}

static int limit_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;
	int64_t usage;

	if (!memory || !is_set(&memory->limit))
		return 0;
	if (memory->check_before_update.set && memory->check_before_update.value &&
	    memory->limit.value >= 0 && group_number(change, "memory.current", &usage) &&
	    usage > memory->limit.value)
		return err_set(e, EBUSY,
		               "linux.resources.memory.limit: the container uses %" PRIi64
		               " bytes already, more than %" PRIi64 ", and checkBeforeUpdate is "
		               "set; end some of it, or ask for more",
		               usage, memory->limit.value);
	return bytes_text(memory->limit.value, text, size);
}

static int reservation_text(const struct group_change *change, char *text, size_t size,
                            struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;

	(void)e;
	if (!memory || !is_set(&memory->reservation))
		return 0;
	return bytes_text(memory->reservation.value, text, size);
}

/* The document has memory+swap, v2 has swap. */
static int swap_bytes(const struct group_change *change, int64_t *bytes, struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;
	int64_t limit = memory->limit.value;

	*bytes = -1;
	if (!is_set(&memory->swap)) /* no limit of memory: then none of swap */
		return change->update && is_set(&memory->limit) && limit < 0;
	if (memory->swap.value < 0)
		return 1;
	if (!is_set(&memory->limit) &&
	    (!change->update || !group_number(change, "memory.max", &limit)))
		limit = -1;
	if (limit < 0)
		return err_set(e, EINVAL,
		               "linux.resources.memory.swap: it is the limit of memory and swap "
		               "together, and there is none of memory; set "
		               "linux.resources.memory.limit as well, or swap to -1");
	if (memory->swap.value < limit)
		return err_set(e, EINVAL,
		               "linux.resources.memory.swap: %" PRIi64
		               " is less than the limit of memory, %" PRIi64
		               ", which it has in it; give at least as much",
		               memory->swap.value, limit);
	*bytes = memory->swap.value - limit;
	return 1;
}

/* Without swap in the host there is nothing that a kernel without swap accounting would let pass. */
static int swap_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	int64_t bytes;
	int r;

	if (!change->resources->memory)
		return 0;
	r = swap_bytes(change, &bytes, e);
	if (r <= 0)
		return r;
	bytes_text(bytes, text, size);
	if (faccessat(group_v2(change->group)->fd, "memory.swap.max", F_OK, 0) == 0 ||
	    faccessat(group_v2(change->group)->fd, "memory.max", F_OK, 0) < 0)
		return 1;
	return bytes < 0 ? 0 : host_has_swap(e);
}

static int kernel_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;

	(void)e;
	(void)text;
	(void)size;
	return memory && memory->kernel.set && memory->kernel.value > 0;
}

static int kernel_tcp_text(const struct group_change *change, char *text, size_t size,
                           struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;

	(void)e;
	(void)text;
	(void)size;
	return memory && memory->kernel_tcp.set && memory->kernel_tcp.value > 0;
}

static int oom_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;

	(void)e;
	(void)text;
	(void)size;
	return memory && memory->disable_oom_killer.set && memory->disable_oom_killer.value;
}

/* There is nothing else than hierarchies. */
static int hierarchy_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_memory *memory = change->resources->memory;

	(void)e;
	(void)text;
	(void)size;
	return memory && memory->use_hierarchy.set && !memory->use_hierarchy.value;
}

/* ---- cpu ---- */

static int weight_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_cpu *cpu = change->resources->cpu;

	(void)e;
	if (!cpu || !cpu->shares.set || cpu->shares.value == 0)
		return 0;
	snprintf(text, size, "%" PRIu64, group_weight_of_shares(cpu->shares.value));
	return 1;
}

/* "QUOTA PERIOD". What is not said stays as it is. */
static int max_text(const struct group_change *change, char *text, size_t size, struct err *e)
{
	const struct oci_cpu *cpu = change->resources->cpu;
	char now[64] = "max", *period = NULL;

	(void)e;
	if (!cpu || (!is_set(&cpu->quota) && !(cpu->period.set && cpu->period.value)))
		return 0;
	if (change->update &&
	    control_read(group_v2(change->group)->fd, "cpu.max", now, sizeof now) > 0) {
		period = strchr(now, ' ');
		if (period)
			*period++ = '\0';
	}
	if (is_set(&cpu->quota))
		bytes_text(cpu->quota.value, now, sizeof now - 32);
	if (cpu->period.set && cpu->period.value)
		snprintf(text, size, "%s %" PRIu64, now, cpu->period.value);
	else
		snprintf(text, size, "%s %lu", now, period ? strtoul(period, NULL, 10) : PERIOD_US);
	return 1;
}

const struct group_row group_v2_rows[] = {
	{{MEMORY("limit"), "memory.max"}, .text = limit_text},
	{{MEMORY("swap"), "memory.swap.max"}, .text = swap_text},
	{{MEMORY("reservation"), "memory.low"}, .text = reservation_text},
	{{MEMORY("kernel"), NULL}, .text = kernel_text},
	{{MEMORY("kernelTCP"), NULL}, .text = kernel_tcp_text},
	{{MEMORY("swappiness"), NULL}, OF_MEMORY(swappiness), .type = VALUE_UNSIGNED, .zero = true},
	{{MEMORY("disableOOMKiller"), NULL}, .text = oom_text},
	{{MEMORY("useHierarchy"), NULL}, .text = hierarchy_text},
	{{CPU("shares", "cpu"), "cpu.weight"}, .text = weight_text},
	{{CPU("quota", "cpu"), "cpu.max"}, .text = max_text},
	{{CPU("burst", "cpu"), "cpu.max.burst"}, OF_CPU(burst), .type = VALUE_UNSIGNED},
	{{CPU("realtimePeriod", "cpu"), NULL}, OF_CPU(realtime_period), .type = VALUE_UNSIGNED},
	{{CPU("realtimeRuntime", "cpu"), NULL}, OF_CPU(realtime_runtime)},
	{{CPU("idle", "cpu"), "cpu.idle"}, OF_CPU(idle), .default_zero = true},
	{{CPU("cpus", "cpuset"), "cpuset.cpus"},
         OF_CPU(cpus),
         .type = VALUE_WORD,
         .effective = "cpuset.cpus.effective"},
	{{CPU("mems", "cpuset"), "cpuset.mems"},
         OF_CPU(mems),
         .type = VALUE_WORD,
         .effective = "cpuset.mems.effective"},
	{{"linux.resources.pids.limit", "pids", "pids.max"}, .text = group_pids_text},
};
const size_t group_v2_rows_count = sizeof group_v2_rows / sizeof *group_v2_rows;
