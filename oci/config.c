/* SPDX-License-Identifier: Apache-2.0 */
/* The document config.json: its top, and the rules that concern several of its parts. */
#include "oci/config.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "oci/parts.h"
#include "oci/texts.h"

static const struct shape_field root_fields[] = {
	FIELD_TEXT(struct oci_root, "path", path, .required = true, .check = oci_text_filled),
	FIELD_BOOL(struct oci_root, "readonly", readonly),
	FIELD_END,
};
static const struct shape root_shape = {root_fields, sizeof(struct oci_root), NULL};

/* ---- namespaces that other keys need ---- */

const struct oci_namespace *oci_config_namespace(const struct oci_config *config, int type)
{
	const struct oci_linux *part = config->linux_part;

	for (size_t i = 0; part && i < part->namespaces.count; i++)
		if (part->namespaces.items[i].type == type)
			return &part->namespaces.items[i];
	return NULL;
}

static int need_namespace(const struct oci_config *config, bool needed, int type, const char *name,
                          const struct shape_place *place, const char *key, struct err *e)
{
	if (!needed || oci_config_namespace(config, type))
		return 0;
	return shape_refuse(place, key, e,
	                    "needs an entry {\"type\": \"%s\"} in \"linux.namespaces\"", name);
}

static bool has_option(const struct oci_mount *mount, const char *option)
{
	for (size_t i = 0; i < mount->options.count; i++)
		if (strcmp(mount->options.items[i], option) == 0)
			return true;
	return false;
}

/* "Linux mount options": idmap and ridmap without a mapping of their own take the container's. */
static int idmaps_check(const struct oci_config *config, struct err *e)
{
	const struct shape_place list = {NULL, SHAPE_KEY, .key = "mounts"};

	for (size_t i = 0; i < config->mounts.count; i++) {
		const struct oci_mount *mount = &config->mounts.items[i];
		const struct shape_place at = {&list, SHAPE_INDEX, .index = i};

		if (mount->uid_mappings.count > 0 ||
		    (!has_option(mount, "idmap") && !has_option(mount, "ridmap")))
			continue;
		if (!oci_config_namespace(config, CLONE_NEWUSER))
			return shape_refuse(
				&at, "options", e,
				"idmap needs \"uidMappings\" and \"gidMappings\", or "
				"an entry {\"type\": \"user\"} in \"linux.namespaces\"");
	}
	return 0;
}

static int config_check(void *object, const struct shape_place *place, struct err *e)
{
	static const struct shape_place inner = {NULL, SHAPE_KEY, .key = "linux"};
	const struct oci_config *config = object;
	const struct oci_linux *part = config->linux_part;
	const struct oci_time_offsets *offsets;

	if (!part)
		return 0;
	offsets = &part->time_offsets;
	TRY(need_namespace(config, config->hostname, CLONE_NEWUTS, "uts", place, "hostname", e));
	TRY(need_namespace(config, config->domainname, CLONE_NEWUTS, "uts", place, "domainname",
	                   e));
	TRY(need_namespace(config, part->uid_mappings.count > 0, CLONE_NEWUSER, "user", &inner,
	                   "uidMappings", e));
	TRY(need_namespace(config, part->gid_mappings.count > 0, CLONE_NEWUSER, "user", &inner,
	                   "gidMappings", e));
	TRY(need_namespace(config, offsets->boottime || offsets->monotonic, CLONE_NEWTIME, "time",
	                   &inner, "timeOffsets", e));
	return idmaps_check(config, e);
}

/* ---- the document ---- */

static const struct shape_field config_fields[] = {
	FIELD_TEXT(struct oci_config, "ociVersion", version, .required = true,
                   .check = oci_text_version),
	FIELD_OBJECT(struct oci_config, "root", root, struct oci_root, root_shape),
	FIELD_OBJECTS(struct oci_config, "mounts", mounts, struct oci_mount, oci_shape_mount),
	FIELD_OBJECT(struct oci_config, "process", process, struct oci_process, oci_shape_process),
	FIELD_TEXT(struct oci_config, "hostname", hostname),
	FIELD_TEXT(struct oci_config, "domainname", domainname),
	FIELD_INSIDE(struct oci_config, "hooks", hooks, struct oci_hooks, oci_shape_hooks),
	FIELD_MAP(struct oci_config, "annotations", annotations, .check = oci_text_filled),
	FIELD_OBJECT(struct oci_config, "linux", linux_part, struct oci_linux, oci_shape_linux),
	FIELD_OBJECT(struct oci_config, "freebsd", freebsd, struct oci_unkept, oci_shape_freebsd),
	FIELD_OBJECT(struct oci_config, "zos", zos, struct oci_unkept, oci_shape_zos),
	FIELD_PRESENT(struct oci_config, "solaris", solaris),
	FIELD_PRESENT(struct oci_config, "vm", vm),
	FIELD_PRESENT(struct oci_config, "windows", windows),
	FIELD_END,
};
static const struct shape config_shape = {config_fields, sizeof(struct oci_config), config_check};

int oci_config_parse(const char *json, size_t length, struct oci_config *config, struct err *e)
{
	struct oci_config parsed = {0};
	int result = shape_parse(json, length, &config_shape, &parsed, &parsed.store, e);

	*config = parsed;
	return result < 0 ? err_in(e, "config.json") : 0;
}

void oci_config_release(struct oci_config *config)
{
	oci_store_release(&config->store);
	*config = (struct oci_config){0};
}

/* ---- is it for this runtime? ---- */

static const char *other_platform(const struct oci_config *config)
{
	const struct {
		const char *key;
		bool there;
	} platforms[] = {
		{"freebsd", config->freebsd}, {"solaris", config->solaris}, {"vm", config->vm},
		{"windows", config->windows}, {"zos", config->zos},
	};

	for (size_t i = 0; i < sizeof platforms / sizeof *platforms; i++)
		if (platforms[i].there)
			return platforms[i].key;
	return NULL;
}

int oci_config_check_linux(const struct oci_config *config, struct err *e)
{
	const char *other = other_platform(config);

	if (!config->linux_part && other)
		return err_set(
			e, EINVAL,
			"config.json: linux: is missing; this document is for another "
			"platform (it has \"%s\"), and this runtime makes containers of Linux",
			other);
	if (!config->linux_part)
		return err_set(e, EINVAL,
		               "config.json: linux: is missing; without namespaces of its own a "
		               "container would be the host, so say which (\"linux.namespaces\")");
	if (!config->root)
		return err_set(e, EINVAL,
		               "config.json: root: is missing; every container of Linux has one");
	return 0;
}
