/* SPDX-License-Identifier: Apache-2.0 */
/* "mounts" of config.json ("Mounts", "POSIX-platform Mounts"), and lists of id mappings, which
 * mounts and user namespaces have. */
#include "oci/parts.h"
#include "oci/texts.h"

#include <inttypes.h>

/* What a mapping of one id can have at most (user_namespaces(7)). */
enum { MAPPINGS_MAX = 340 };

static int mapping_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_mapping *mapping = object;
	uint32_t highest = mapping->host_id > mapping->container_id ? mapping->host_id
	                                                            : mapping->container_id;

	if (mapping->size == 0)
		return shape_refuse(place, "size", e, "must be at least 1");
	if (mapping->size - 1 > UINT32_MAX - highest)
		return shape_refuse(place, "size", e,
		                    "%" PRIu32 " ids from %" PRIu32 " on do not fit into 32 bits",
		                    mapping->size, highest);
	return 0;
}

static bool overlap(uint32_t first, uint32_t size, uint32_t other_first, uint32_t other_size)
{
	return first <= other_first ? other_first - first < size : first - other_first < other_size;
}

int oci_mappings_check(const struct oci_mappings *mappings, const struct shape_place *place,
                       const char *key, struct err *e)
{
	const struct shape_place list = {place, SHAPE_KEY, .key = key};

	if (mappings->count > MAPPINGS_MAX)
		return shape_refuse(&list, NULL, e, "%zu entries, the kernel takes %d",
		                    mappings->count, MAPPINGS_MAX);
	for (size_t i = 0; i < mappings->count; i++)
		for (size_t j = 0; j < i; j++) {
			const struct shape_place at = {&list, SHAPE_INDEX, .index = i};
			const struct oci_mapping *one = &mappings->items[j];
			const struct oci_mapping *other = &mappings->items[i];

			if (overlap(one->container_id, one->size, other->container_id, other->size))
				return shape_refuse(&at, "containerID", e,
				                    "its ids are those of entry %zu as well", j);
			if (overlap(one->host_id, one->size, other->host_id, other->size))
				return shape_refuse(&at, "hostID", e,
				                    "its ids are those of entry %zu as well", j);
		}
	return 0;
}

static const struct shape_field mapping_fields[] = {
	FIELD_U32(struct oci_mapping, "containerID", container_id, UINT32_MAX, .required = true),
	FIELD_U32(struct oci_mapping, "hostID", host_id, UINT32_MAX, .required = true),
	FIELD_U32(struct oci_mapping, "size", size, UINT32_MAX, .required = true),
	FIELD_END,
};
const struct shape oci_shape_mapping = {mapping_fields, sizeof(struct oci_mapping), mapping_check};

static int mount_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_mount *mount = object;

	if (!mount->uid_mappings.count != !mount->gid_mappings.count)
		return shape_refuse(place,
		                    mount->uid_mappings.count ? "gidMappings" : "uidMappings", e,
		                    "is missing; a mount has both mappings or none");
	TRY(oci_mappings_check(&mount->uid_mappings, place, "uidMappings", e));
	return oci_mappings_check(&mount->gid_mappings, place, "gidMappings", e);
}

static const struct shape_field mount_fields[] = {
	FIELD_TEXT(struct oci_mount, "destination", destination, .required = true,
                   .check = oci_text_filled),
	FIELD_TEXT(struct oci_mount, "type", type),
	FIELD_TEXT(struct oci_mount, "source", source),
	FIELD_TEXTS(struct oci_mount, "options", options),
	FIELD_OBJECTS(struct oci_mount, "uidMappings", uid_mappings, struct oci_mapping,
                      oci_shape_mapping),
	FIELD_OBJECTS(struct oci_mount, "gidMappings", gid_mappings, struct oci_mapping,
                      oci_shape_mapping),
	FIELD_END,
};
const struct shape oci_shape_mount = {mount_fields, sizeof(struct oci_mount), mount_check};
