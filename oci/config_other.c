/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "freebsd" and "zos" of config.json (config-freebsd.md, config-zos.md): checked, so that a document
 * is right or not wherever it is looked at, and not kept.
 */
#include "oci/parts.h"

#define UNKEPT struct oci_unkept

static const struct shape_word modes[] = {{"disable", 1}, {"new", 2}, {"inherit", 3}, {NULL, 0}};
static const struct shape_word modes_enabled[] = {{"new", 2}, {"inherit", 3}, {NULL, 0}};

static const struct shape_field device_fields[] = {
	FIELD_TEXT(UNKEPT, "path", text),
	FIELD_MAYBE_U64(UNKEPT, "mode", number, 0777),
	FIELD_END,
};
static const struct shape device_shape = {device_fields, sizeof(UNKEPT), NULL};

static const struct shape_field allow_fields[] = {
	FIELD_BOOL(UNKEPT, "setHostname", yes), FIELD_BOOL(UNKEPT, "rawSockets", yes),
	FIELD_BOOL(UNKEPT, "chflags", yes),     FIELD_TEXTS(UNKEPT, "mount", texts),
	FIELD_BOOL(UNKEPT, "quotas", yes),      FIELD_BOOL(UNKEPT, "socketAf", yes),
	FIELD_BOOL(UNKEPT, "mlock", yes),       FIELD_BOOL(UNKEPT, "reservedPorts", yes),
	FIELD_BOOL(UNKEPT, "suser", yes),       FIELD_END,
};
static const struct shape allow_shape = {allow_fields, sizeof(UNKEPT), NULL};

static const struct shape_field jail_fields[] = {
	FIELD_TEXT(UNKEPT, "parent", text),
	FIELD_WORD(UNKEPT, "host", word, modes_enabled),
	FIELD_WORD(UNKEPT, "ip4", word, modes),
	FIELD_TEXTS(UNKEPT, "ip4Addr", texts),
	FIELD_WORD(UNKEPT, "ip6", word, modes),
	FIELD_TEXTS(UNKEPT, "ip6Addr", texts),
	FIELD_WORD(UNKEPT, "vnet", word, modes_enabled),
	FIELD_TEXT(UNKEPT, "interface", text),
	FIELD_TEXTS(UNKEPT, "vnetInterfaces", texts),
	FIELD_WORD(UNKEPT, "sysvmsg", word, modes),
	FIELD_WORD(UNKEPT, "sysvsem", word, modes),
	FIELD_WORD(UNKEPT, "sysvshm", word, modes),
	FIELD_MAYBE_U64(UNKEPT, "enforceStatfs", number, UINT8_MAX),
	FIELD_OBJECT(UNKEPT, "allow", object, UNKEPT, allow_shape),
	FIELD_END,
};
static const struct shape jail_shape = {jail_fields, sizeof(UNKEPT), NULL};

static const struct shape_field freebsd_fields[] = {
	FIELD_OBJECTS(UNKEPT, "devices", objects, UNKEPT, device_shape),
	FIELD_OBJECT(UNKEPT, "jail", object, UNKEPT, jail_shape),
	FIELD_END,
};
const struct shape oci_shape_freebsd = {freebsd_fields, sizeof(UNKEPT), NULL};

static const struct shape_word zos_types[] = {
	{"mount", 1}, {"pid", 2}, {"uts", 3}, {"ipc", 4}, {NULL, 0},
};
static const struct shape_field zos_namespace_fields[] = {
	FIELD_WORD(UNKEPT, "type", word, zos_types, .required = true),
	FIELD_TEXT(UNKEPT, "path", text),
	FIELD_END,
};
static const struct shape zos_namespace_shape = {zos_namespace_fields, sizeof(UNKEPT), NULL};

static const struct shape_field zos_fields[] = {
	FIELD_OBJECTS(UNKEPT, "namespaces", objects, UNKEPT, zos_namespace_shape),
	FIELD_END,
};
const struct shape oci_shape_zos = {zos_fields, sizeof(UNKEPT), NULL};
