/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.resources as the properties of a scope (systemd.resource-control(5)), on v2. systemd writes all
 * files of a controller when one of its properties changes or it starts anew, so whatever it has a property
 * for is told to it, from `unified` too. It rounds some: the files are written exactly after that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "container/group_internal.h"
#include "container/systemd_bus.h"

enum { PERIOD_US = 100000, QUOTA_STEP_US = 10000 };

static void put_number(struct bus_body *body, const char *name, uint64_t value)
{
	bus_put_property(body, name, "t");
	bus_put_u64(body, value);
}

static uint64_t unlimited(int64_t value)
{
	return value < 0 ? UINT64_MAX : (uint64_t)value;
}

static bool is_set(const struct oci_int *value)
{
	return value->set && value->value != 0;
}

static void put_memory(struct bus_body *body, const struct oci_memory *memory)
{
	if (is_set(&memory->limit))
		put_number(body, "MemoryMax", unlimited(memory->limit.value));
	if (is_set(&memory->reservation))
		put_number(body, "MemoryLow", unlimited(memory->reservation.value));
	if (is_set(&memory->swap) && memory->swap.value < 0)
		put_number(body, "MemorySwapMax", UINT64_MAX);
	else if (is_set(&memory->swap) && is_set(&memory->limit) && memory->limit.value > 0 &&
	         memory->swap.value >= memory->limit.value)
		put_number(body, "MemorySwapMax",
		           (uint64_t)(memory->swap.value - memory->limit.value));
}

/* systemd keeps what a second has, in steps of 10 ms. */
static uint64_t quota_of_second(int64_t quota, uint64_t period)
{
	unsigned __int128 us;

	if (quota <= 0)
		return UINT64_MAX;
	us = (unsigned __int128)quota * 1000000 / period;
	us = (us + QUOTA_STEP_US - 1) / QUOTA_STEP_US * QUOTA_STEP_US;
	return us < UINT64_MAX ? (uint64_t)us : UINT64_MAX;
}

static void put_quota(struct bus_body *body, int64_t quota, uint64_t period)
{
	if (period)
		put_number(body, "CPUQuotaPeriodUSec", period);
	if (quota)
		put_number(body, "CPUQuotaPerSecUSec",
		           quota_of_second(quota, period ? period : PERIOD_US));
}

/* A list such as "0-3,7" as bytes of bits. */
static void put_list(struct bus_body *body, const char *name, const char *list)
{
	unsigned char bits[128] = {0};
	struct bus_array array;
	size_t bytes = 0;

	for (unsigned i = 0; i < sizeof bits * 8; i++) {
		char number[16];

		snprintf(number, sizeof number, "%u", i);
		if (!group_list_within(number, list))
			continue;
		bits[i / 8] |= (unsigned char)(1U << i % 8);
		bytes = i / 8 + 1;
	}
	bus_put_property(body, name, "ay");
	array = bus_begin_array(body, 1);
	for (size_t i = 0; i < bytes; i++)
		bus_put_byte(body, bits[i]);
	bus_end_array(body, array);
}

static void put_cpu(struct bus_body *body, const struct oci_cpu *cpu)
{
	if (cpu->shares.set && cpu->shares.value)
		put_number(body, "CPUWeight", group_weight_of_shares(cpu->shares.value));
	put_quota(body, cpu->quota.set ? cpu->quota.value : 0,
	          cpu->period.set ? cpu->period.value : 0);
	if (cpu->cpus && *cpu->cpus)
		put_list(body, "AllowedCPUs", cpu->cpus);
	if (cpu->mems && *cpu->mems)
		put_list(body, "AllowedMemoryNodes", cpu->mems);
}

/* ---- unified ---- */

/* "max" or a number at the begin of TEXT; what is behind it. */
static const char *limit_of(const char *text, uint64_t *value)
{
	char *end;

	if (strncmp(text, "max", 3) == 0) {
		*value = UINT64_MAX;
		return text + 3;
	}
	if (*text < '0' || *text > '9')
		return NULL;
	*value = strtoull(text, &end, 10);
	return end;
}

static void put_limit(struct bus_body *body, const char *name, const char *text)
{
	uint64_t value;
	const char *end = limit_of(text, &value);

	if (end && (*end == '\0' || *end == '\n'))
		put_number(body, name, value);
}

/* "QUOTA [PERIOD]" */
static void put_cpu_max(struct bus_body *body, const char *name, const char *text)
{
	uint64_t quota, period = 0;
	const char *end = limit_of(text, &quota);

	(void)name;
	if (end && *end == ' ')
		end = limit_of(end + 1, &period);
	if (end && period != UINT64_MAX)
		put_quota(body, quota > INT64_MAX ? -1 : (int64_t)quota, period);
}

/* "WEIGHT" or "default WEIGHT" */
static void put_io_weight(struct bus_body *body, const char *name, const char *text)
{
	put_limit(body, name, strncmp(text, "default ", 8) == 0 ? text + 8 : text);
}

/* What the kernel takes no such value for is refused by it when the file is written. */
static const struct {
	const char *file, *name;
	void (*put)(struct bus_body *body, const char *name, const char *text);
} unified_rows[] = {
	{"cpu.max", "", put_cpu_max},
	{"cpu.weight", "CPUWeight", put_limit},
	{"cpuset.cpus", "AllowedCPUs", put_list},
	{"cpuset.mems", "AllowedMemoryNodes", put_list},
	{"io.weight", "IOWeight", put_io_weight},
	{"memory.high", "MemoryHigh", put_limit},
	{"memory.low", "MemoryLow", put_limit},
	{"memory.max", "MemoryMax", put_limit},
	{"memory.min", "MemoryMin", put_limit},
	{"memory.swap.max", "MemorySwapMax", put_limit},
	{"pids.max", "TasksMax", put_limit},
};

static void put_unified(struct bus_body *body, const struct oci_map *unified)
{
	for (size_t i = 0; i < unified->count; i++)
		for (size_t j = 0; j < sizeof unified_rows / sizeof *unified_rows; j++)
			if (strcmp(unified->items[i].key, unified_rows[j].file) == 0)
				unified_rows[j].put(body, unified_rows[j].name,
				                    unified->items[i].value);
}

void group_systemd_put_limits(struct bus_body *body, const struct oci_resources *resources)
{
	if (resources->memory)
		put_memory(body, resources->memory);
	if (resources->cpu)
		put_cpu(body, resources->cpu);
	if (resources->pids)
		put_number(body, "TasksMax",
		           resources->pids->limit == 0 ? 1 : unlimited(resources->pids->limit));
	if (resources->block_io && resources->block_io->weight.set &&
	    resources->block_io->weight.value)
		put_number(body, "IOWeight",
		           group_weight_of_block_io(resources->block_io->weight.value));
	put_unified(body, &resources->unified);
}
