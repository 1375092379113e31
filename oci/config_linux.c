/* SPDX-License-Identifier: Apache-2.0 */
/* "linux" of config.json (config-linux.md), without "resources" and "seccomp". */
#include "oci/parts.h"
#include "oci/texts.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>

/* ---- namespaces ---- */

static const struct shape_word namespace_types[] = {
	{"mount", CLONE_NEWNS},      {"pid", CLONE_NEWPID},   {"network", CLONE_NEWNET},
	{"uts", CLONE_NEWUTS},       {"ipc", CLONE_NEWIPC},   {"user", CLONE_NEWUSER},
	{"cgroup", CLONE_NEWCGROUP}, {"time", CLONE_NEWTIME}, {NULL, 0},
};

static const struct shape_field namespace_fields[] = {
	FIELD_WORD(struct oci_namespace, "type", type, namespace_types, .required = true),
	FIELD_TEXT(struct oci_namespace, "path", path, .check = oci_text_absolute),
	FIELD_END,
};
static const struct shape namespace_shape = {namespace_fields, sizeof(struct oci_namespace), NULL};

static int namespaces_check(const struct oci_namespaces *namespaces,
                            const struct shape_place *place, struct err *e)
{
	const struct shape_place list = {place, SHAPE_KEY, .key = "namespaces"};
	int seen = 0;

	for (size_t i = 0; i < namespaces->count; i++) {
		const struct shape_place at = {&list, SHAPE_INDEX, .index = i};

		if (seen & namespaces->items[i].type)
			return shape_refuse(&at, "type", e,
			                    "is that of an entry before it already");
		seen |= namespaces->items[i].type;
	}
	return 0;
}

static const struct shape_field time_offset_fields[] = {
	FIELD_I64(struct oci_time_offset, "secs", secs, INT64_MIN, INT64_MAX),
	FIELD_U32(struct oci_time_offset, "nanosecs", nanosecs, UINT32_MAX),
	FIELD_END,
};
static const struct shape time_offset_shape = {time_offset_fields, sizeof(struct oci_time_offset),
                                               NULL};

static const struct shape_field time_offsets_fields[] = {
	FIELD_OBJECT(struct oci_time_offsets, "boottime", boottime, struct oci_time_offset,
                     time_offset_shape),
	FIELD_OBJECT(struct oci_time_offsets, "monotonic", monotonic, struct oci_time_offset,
                     time_offset_shape),
	FIELD_END,
};
static const struct shape time_offsets_shape = {time_offsets_fields,
                                                sizeof(struct oci_time_offsets), NULL};

/* ---- devices ---- */

static const struct shape_word device_types[] = {
	{"c", 'c'}, {"b", 'b'}, {"u", 'u'}, {"p", 'p'}, {NULL, 0},
};

static int device_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_device *device = object;

	if (device->type != 'p' && (!device->major.set || !device->minor.set))
		return shape_refuse(place, device->major.set ? "minor" : "major", e,
		                    "is missing; every device but one of type \"p\" has it");
	return 0;
}

static const struct shape_field device_fields[] = {
	FIELD_WORD(struct oci_device, "type", type, device_types, .required = true),
	FIELD_TEXT(struct oci_device, "path", path, .required = true, .check = oci_text_absolute),
	FIELD_MAYBE_I64(struct oci_device, "major", major, 0, INT64_MAX),
	FIELD_MAYBE_I64(struct oci_device, "minor", minor, 0, INT64_MAX),
	FIELD_MAYBE_U64(struct oci_device, "fileMode", file_mode, 0177777),
	FIELD_MAYBE_U64(struct oci_device, "uid", uid, UINT32_MAX),
	FIELD_MAYBE_U64(struct oci_device, "gid", gid, UINT32_MAX),
	FIELD_END,
};
static const struct shape device_shape = {device_fields, sizeof(struct oci_device), device_check};

static const struct shape_field net_device_fields[] = {
	FIELD_TEXT(struct oci_net_device, "name", name),
	FIELD_END,
};
static const struct shape net_device_shape = {net_device_fields, sizeof(struct oci_net_device),
                                              NULL};

/* ---- what the process is given ---- */

/*
 * "net.ipv4.ip_forward" or "net/ipv4/ip_forward": a path beneath /proc/sys, so no part of it may
 * be empty (which ".." is, where dots are separators).
 */
static int sysctl_check(const char *name, const struct shape_place *place, struct err *e)
{
	for (const char *part = name;; part++) {
		size_t length = strcspn(part, "./");

		if (length == 0)
			return shape_refuse(place, NULL, e,
			                    "is no name such as net.ipv4.ip_forward");
		part += length;
		if (!*part)
			return 0;
	}
}

static const struct shape_word memory_modes[] = {
	{"MPOL_DEFAULT", MPOL_DEFAULT},       {"MPOL_BIND", MPOL_BIND},
	{"MPOL_INTERLEAVE", MPOL_INTERLEAVE}, {"MPOL_WEIGHTED_INTERLEAVE", 6}, /* Linux 6.9 */
	{"MPOL_PREFERRED", MPOL_PREFERRED},   {"MPOL_PREFERRED_MANY", MPOL_PREFERRED_MANY},
	{"MPOL_LOCAL", MPOL_LOCAL},           {NULL, 0},
};

static const struct shape_word memory_flags[] = {
	{"MPOL_F_NUMA_BALANCING", MPOL_F_NUMA_BALANCING},
	{"MPOL_F_RELATIVE_NODES", MPOL_F_RELATIVE_NODES},
	{"MPOL_F_STATIC_NODES", MPOL_F_STATIC_NODES},
	{NULL, 0},
};

static const struct shape_field memory_policy_fields[] = {
	FIELD_WORD(struct oci_memory_policy, "mode", mode, memory_modes, .required = true),
	FIELD_TEXT(struct oci_memory_policy, "nodes", nodes),
	FIELD_FLAGS(struct oci_memory_policy, "flags", flags, memory_flags),
	FIELD_END,
};
static const struct shape memory_policy_shape = {memory_policy_fields,
                                                 sizeof(struct oci_memory_policy), NULL};

static const struct shape_word personality_domains[] = {
	{"LINUX", PER_LINUX},
	{"LINUX32", PER_LINUX32},
	{NULL, 0},
};
static const struct shape_word personality_flags[] = {{NULL, 0}};

static const struct shape_field personality_fields[] = {
	FIELD_WORD(struct oci_personality, "domain", domain, personality_domains, .required = true),
	FIELD_FLAGS(struct oci_personality, "flags", flags, personality_flags),
	FIELD_END,
};
static const struct shape personality_shape = {personality_fields, sizeof(struct oci_personality),
                                               NULL};

static int bandwidth_check(const char *text, const struct shape_place *place, struct err *e)
{
	if (strncmp(text, "MB:", 3) != 0 || strchr(text, '\n'))
		return shape_refuse(place, NULL, e,
		                    "must begin with \"MB:\" and have no line break");
	return 0;
}

static const struct shape_field rdt_fields[] = {
	FIELD_TEXT(struct oci_intel_rdt, "closID", clos_id),
	FIELD_TEXTS(struct oci_intel_rdt, "schemata", schemata),
	FIELD_TEXT(struct oci_intel_rdt, "l3CacheSchema", l3_cache_schema),
	FIELD_TEXT(struct oci_intel_rdt, "memBwSchema", mem_bw_schema, .check = bandwidth_check),
	FIELD_BOOL(struct oci_intel_rdt, "enableMonitoring", enable_monitoring),
	FIELD_END,
};
static const struct shape rdt_shape = {rdt_fields, sizeof(struct oci_intel_rdt), NULL};

/* ---- linux ---- */

/* The spec has those without "r"; engines write the others, as runc knows them. */
static const struct shape_word propagations[] = {
	{"private", MS_PRIVATE},
	{"rprivate", MS_PRIVATE | MS_REC},
	{"shared", MS_SHARED},
	{"rshared", MS_SHARED | MS_REC},
	{"slave", MS_SLAVE},
	{"rslave", MS_SLAVE | MS_REC},
	{"unbindable", MS_UNBINDABLE},
	{"runbindable", MS_UNBINDABLE | MS_REC},
	{NULL, 0},
};

static int linux_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_linux *part = object;

	TRY(namespaces_check(&part->namespaces, place, e));
	TRY(oci_mappings_check(&part->uid_mappings, place, "uidMappings", e));
	return oci_mappings_check(&part->gid_mappings, place, "gidMappings", e);
}

static const struct shape_field linux_fields[] = {
	FIELD_OBJECTS(struct oci_linux, "namespaces", namespaces, struct oci_namespace,
                      namespace_shape),
	FIELD_OBJECTS(struct oci_linux, "uidMappings", uid_mappings, struct oci_mapping,
                      oci_shape_mapping),
	FIELD_OBJECTS(struct oci_linux, "gidMappings", gid_mappings, struct oci_mapping,
                      oci_shape_mapping),
	FIELD_INSIDE(struct oci_linux, "timeOffsets", time_offsets, struct oci_time_offsets,
                     time_offsets_shape),
	FIELD_OBJECTS(struct oci_linux, "devices", devices, struct oci_device, device_shape),
	FIELD_NAMED(struct oci_linux, "netDevices", net_devices, struct oci_net_device,
                    net_device_shape, .check = oci_text_filled),
	FIELD_MAP(struct oci_linux, "sysctl", sysctl, .check = sysctl_check),
	FIELD_TEXT(struct oci_linux, "cgroupsPath", cgroups_path),
	FIELD_OBJECT(struct oci_linux, "resources", resources, struct oci_resources,
                     oci_shape_resources),
	FIELD_WORD(struct oci_linux, "rootfsPropagation", rootfs_propagation, propagations),
	FIELD_OBJECT(struct oci_linux, "seccomp", seccomp, struct oci_seccomp, oci_shape_seccomp),
	FIELD_TEXTS(struct oci_linux, "maskedPaths", masked_paths, .check = oci_text_absolute),
	FIELD_TEXTS(struct oci_linux, "readonlyPaths", readonly_paths, .check = oci_text_absolute),
	FIELD_TEXT(struct oci_linux, "mountLabel", mount_label),
	FIELD_OBJECT(struct oci_linux, "intelRdt", intel_rdt, struct oci_intel_rdt, rdt_shape),
	FIELD_OBJECT(struct oci_linux, "personality", personality, struct oci_personality,
                     personality_shape),
	FIELD_OBJECT(struct oci_linux, "memoryPolicy", memory_policy, struct oci_memory_policy,
                     memory_policy_shape),
	FIELD_END,
};
const struct shape oci_shape_linux = {linux_fields, sizeof(struct oci_linux), linux_check};
