/* SPDX-License-Identifier: Apache-2.0 */
/* "linux.resources" of config.json ("Control groups" in config-linux.md). */
#include "oci/parts.h"
#include "oci/texts.h"

#include <inttypes.h>
#include <string.h>

/* ---- the list of devices ---- */

static const struct shape_word rule_types[] = {{"a", 'a'}, {"c", 'c'}, {"b", 'b'}, {NULL, 0}};

static int access_check(const char *text, const struct shape_place *place, struct err *e)
{
	if (text[strspn(text, "rwm")])
		return shape_refuse(place, NULL, e, "must be made of \"r\", \"w\" and \"m\"");
	return 0;
}

static int rule_check(void *object, const struct shape_place *place, struct err *e)
{
	struct oci_device_rule *rule = object;

	(void)place;
	(void)e;
	if (!rule->type)
		rule->type = 'a';
	return 0;
}

/* -1 stands for "all" in documents of several engines, as an absent number does */
static const struct shape_field rule_fields[] = {
	FIELD_BOOL(struct oci_device_rule, "allow", allow, .required = true),
	FIELD_WORD(struct oci_device_rule, "type", type, rule_types),
	FIELD_MAYBE_I64(struct oci_device_rule, "major", major, -1, INT64_MAX),
	FIELD_MAYBE_I64(struct oci_device_rule, "minor", minor, -1, INT64_MAX),
	FIELD_TEXT(struct oci_device_rule, "access", access, .check = access_check),
	FIELD_END,
};
static const struct shape rule_shape = {rule_fields, sizeof(struct oci_device_rule), rule_check};

/* ---- memory, cpu, pids ---- */

#define BYTES(key, member) FIELD_MAYBE_I64(struct oci_memory, key, member, -1, INT64_MAX)
static const struct shape_field memory_fields[] = {
	BYTES("limit", limit),
	BYTES("reservation", reservation),
	BYTES("swap", swap),
	BYTES("kernel", kernel),
	BYTES("kernelTCP", kernel_tcp),
	FIELD_MAYBE_U64(struct oci_memory, "swappiness", swappiness, 100),
	FIELD_MAYBE_BOOL(struct oci_memory, "disableOOMKiller", disable_oom_killer),
	FIELD_MAYBE_BOOL(struct oci_memory, "useHierarchy", use_hierarchy),
	FIELD_MAYBE_BOOL(struct oci_memory, "checkBeforeUpdate", check_before_update),
	FIELD_END,
};
static const struct shape memory_shape = {memory_fields, sizeof(struct oci_memory), NULL};

static int cpu_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_cpu *cpu = object;

	if (cpu->quota.value > 0 && cpu->burst.value > (uint64_t)cpu->quota.value)
		return shape_refuse(place, "burst", e,
		                    "must not be above \"quota\", as %" PRIu64 " is above %" PRId64,
		                    cpu->burst.value, cpu->quota.value);
	return 0;
}

static const struct shape_field cpu_fields[] = {
	FIELD_MAYBE_U64(struct oci_cpu, "shares", shares, UINT64_MAX),
	FIELD_MAYBE_I64(struct oci_cpu, "quota", quota, INT64_MIN, INT64_MAX),
	FIELD_MAYBE_U64(struct oci_cpu, "burst", burst, UINT64_MAX),
	FIELD_MAYBE_U64(struct oci_cpu, "period", period, UINT64_MAX),
	FIELD_MAYBE_I64(struct oci_cpu, "realtimeRuntime", realtime_runtime, INT64_MIN, INT64_MAX),
	FIELD_MAYBE_U64(struct oci_cpu, "realtimePeriod", realtime_period, UINT64_MAX),
	FIELD_TEXT(struct oci_cpu, "cpus", cpus),
	FIELD_TEXT(struct oci_cpu, "mems", mems),
	FIELD_MAYBE_I64(struct oci_cpu, "idle", idle, 0, 1),
	FIELD_END,
};
static const struct shape cpu_shape = {cpu_fields, sizeof(struct oci_cpu), cpu_check};

static const struct shape_field pids_fields[] = {
	FIELD_I64(struct oci_pids, "limit", limit, INT64_MIN, INT64_MAX, .required = true),
	FIELD_END,
};
static const struct shape pids_shape = {pids_fields, sizeof(struct oci_pids), NULL};

/* ---- block IO ---- */

#define NUMBERS(S)                                                                                 \
	FIELD_I64(S, "major", major, INT64_MIN, INT64_MAX, .required = true),                      \
		FIELD_I64(S, "minor", minor, INT64_MIN, INT64_MAX, .required = true)

static int weight_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_weight_device *device = object;

	if (!device->weight.set && !device->leaf_weight.set)
		return shape_refuse(place, NULL, e,
		                    "must have \"weight\", \"leafWeight\" or both of them");
	return 0;
}

static const struct shape_field weight_fields[] = {
	NUMBERS(struct oci_weight_device),
	FIELD_MAYBE_U64(struct oci_weight_device, "weight", weight, UINT16_MAX),
	FIELD_MAYBE_U64(struct oci_weight_device, "leafWeight", leaf_weight, UINT16_MAX),
	FIELD_END,
};
static const struct shape weight_shape = {weight_fields, sizeof(struct oci_weight_device),
                                          weight_check};

static const struct shape_field throttle_fields[] = {
	NUMBERS(struct oci_throttle_device),
	FIELD_U64(struct oci_throttle_device, "rate", rate, UINT64_MAX, .required = true),
	FIELD_END,
};
static const struct shape throttle_shape = {throttle_fields, sizeof(struct oci_throttle_device),
                                            NULL};

#define THROTTLE(key, member)                                                                      \
	FIELD_OBJECTS(struct oci_block_io, key, member, struct oci_throttle_device, throttle_shape)
static const struct shape_field block_io_fields[] = {
	FIELD_MAYBE_U64(struct oci_block_io, "weight", weight, UINT16_MAX),
	FIELD_MAYBE_U64(struct oci_block_io, "leafWeight", leaf_weight, UINT16_MAX),
	FIELD_OBJECTS(struct oci_block_io, "weightDevice", weight_device, struct oci_weight_device,
                      weight_shape),
	THROTTLE("throttleReadBpsDevice", read_bps),
	THROTTLE("throttleWriteBpsDevice", write_bps),
	THROTTLE("throttleReadIOPSDevice", read_iops),
	THROTTLE("throttleWriteIOPSDevice", write_iops),
	FIELD_END,
};
static const struct shape block_io_shape = {block_io_fields, sizeof(struct oci_block_io), NULL};

/* ---- huge pages, network, rdma ---- */

/* [1-9][0-9]*[KMG]B */
static int page_size_check(const char *text, const struct shape_place *place, struct err *e)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || *text == '0' || !text[digits] || !strchr("KMG", text[digits]) ||
	    strcmp(text + digits + 1, "B") != 0)
		return shape_refuse(place, NULL, e,
		                    "must be a size such as \"64KB\", \"2MB\" or \"1GB\"");
	return 0;
}

static const struct shape_field hugepage_fields[] = {
	FIELD_TEXT(struct oci_hugepage_limit, "pageSize", page_size, .required = true,
                   .check = page_size_check),
	FIELD_U64(struct oci_hugepage_limit, "limit", limit, UINT64_MAX, .required = true),
	FIELD_END,
};
static const struct shape hugepage_shape = {hugepage_fields, sizeof(struct oci_hugepage_limit),
                                            NULL};

static const struct shape_field priority_fields[] = {
	FIELD_TEXT(struct oci_interface_priority, "name", name, .required = true),
	FIELD_U32(struct oci_interface_priority, "priority", priority, UINT32_MAX,
                  .required = true),
	FIELD_END,
};
static const struct shape priority_shape = {priority_fields, sizeof(struct oci_interface_priority),
                                            NULL};

static const struct shape_field network_fields[] = {
	FIELD_MAYBE_U64(struct oci_network, "classID", class_id, UINT32_MAX),
	FIELD_OBJECTS(struct oci_network, "priorities", priorities, struct oci_interface_priority,
                      priority_shape),
	FIELD_END,
};
static const struct shape network_shape = {network_fields, sizeof(struct oci_network), NULL};

static int rdma_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_rdma *rdma = object;

	if (!rdma->hca_handles.set && !rdma->hca_objects.set)
		return shape_refuse(place, NULL, e,
		                    "must have \"hcaHandles\", \"hcaObjects\" or both of them");
	return 0;
}

static const struct shape_field rdma_fields[] = {
	FIELD_MAYBE_U64(struct oci_rdma, "hcaHandles", hca_handles, UINT32_MAX),
	FIELD_MAYBE_U64(struct oci_rdma, "hcaObjects", hca_objects, UINT32_MAX),
	FIELD_END,
};
static const struct shape rdma_shape = {rdma_fields, sizeof(struct oci_rdma), rdma_check};

/* ---- resources ---- */

/* A file of the cgroup's directory, never one elsewhere. */
static int file_name_check(const char *name, const struct shape_place *place, struct err *e)
{
	if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return shape_refuse(place, NULL, e,
		                    "is no name of a control file such as memory.high");
	return 0;
}

static const struct shape_field resources_fields[] = {
	FIELD_MAP(struct oci_resources, "unified", unified, .check = file_name_check),
	FIELD_OBJECTS(struct oci_resources, "devices", devices, struct oci_device_rule, rule_shape),
	FIELD_OBJECT(struct oci_resources, "memory", memory, struct oci_memory, memory_shape),
	FIELD_OBJECT(struct oci_resources, "cpu", cpu, struct oci_cpu, cpu_shape),
	FIELD_OBJECT(struct oci_resources, "pids", pids, struct oci_pids, pids_shape),
	FIELD_OBJECT(struct oci_resources, "blockIO", block_io, struct oci_block_io,
                     block_io_shape),
	FIELD_OBJECTS(struct oci_resources, "hugepageLimits", hugepage_limits,
                      struct oci_hugepage_limit, hugepage_shape),
	FIELD_OBJECT(struct oci_resources, "network", network, struct oci_network, network_shape),
	FIELD_NAMED(struct oci_resources, "rdma", rdma, struct oci_rdma, rdma_shape,
                    .check = oci_text_filled),
	FIELD_END,
};
const struct shape oci_shape_resources = {resources_fields, sizeof(struct oci_resources), NULL};
