/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `features` (features.md, features-linux.md): what this program knows, whatever the host can do. Each
 * list is one of the tables by which documents are read, so that it can't say what isn't so.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/json.h"
#include "container/mounts.h"
#include "oci/parts.h"
#include "verbs/verbs.h"

static void add_text(struct json_object *list, const char *text)
{
	json_object_array_add(list, json_object_new_string(text));
}

/* ---- the tables of oci/ ---- */

static const struct shape_field *field_of(const struct shape *shape, const char *key)
{
	for (const struct shape_field *field = shape->fields; field->key; field++)
		if (strcmp(field->key, key) == 0)
			return field;
	abort();
}

/* The words of the member that KEYS lead to, those only that WANTED says yes to. */
static void add_words(struct json_object *object, const char *name, const struct shape *shape,
                      const char *const keys[], bool (*wanted)(const struct shape_word *word))
{
	struct json_object *list = json_add_array(object, name);
	const struct shape_field *field = field_of(shape, *keys);

	while (*++keys)
		field = field_of(field->shape, *keys);
	for (const struct shape_word *word = field->words; word->name; word++)
		if (!wanted || wanted(word))
			add_text(list, word->name);
}
#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void add_hooks(struct json_object *features)
{
	struct json_object *list = json_add_array(features, "hooks");

	for (const struct shape_field *field = oci_shape_hooks.fields; field->key; field++)
		add_text(list, field->key);
}

static void add_mount_options(struct json_object *features)
{
	struct json_object *list = json_add_array(features, "mountOptions");
	const char *name;

	for (size_t i = 0; (name = mount_option_name(i)); i++)
		add_text(list, name);
}

/* ---- what libraries and the kernel know of it ---- */

/* libseccomp's names are the spec's in small letters, without what comes first in all of them. */
static bool is_known_architecture(const struct shape_word *word)
{
	static const char prefix[] = "SCMP_ARCH_";
	char name[32];
	size_t i = 0;

	for (const char *at = word->name + sizeof prefix - 1; *at && i < sizeof name - 1; at++)
		name[i++] = (char)tolower(*at);
	name[i] = '\0';
	return seccomp_arch_resolve_name(name) != 0;
}

/* Asked with a filter that can't be read: a flag that the kernel lacks is what it tells of first. */
static bool is_supported_flag(const struct shape_word *word)
{
	unsigned long flags = word->value;

	if (flags == SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER; /* one needs the other */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

static void add_capabilities(struct json_object *linux_part)
{
	struct json_object *list = json_add_array(linux_part, "capabilities");

	for (cap_value_t i = 0; i < cap_max_bits(); i++) {
		char *name = cap_to_name(i);

		if (!name)
			abort();
		/* a number is one that libcap has no name for */
		if (isalpha(*name)) {
			for (char *at = name; *at; at++)
				*at = (char)toupper(*at);
			add_text(list, name);
		}
		cap_free(name);
	}
}

static void add_cgroup(struct json_object *linux_part)
{
	struct json_object *cgroup = json_add_object(linux_part, "cgroup");

	json_add_bool(cgroup, "v1", true);
	json_add_bool(cgroup, "v2", true);
	json_add_bool(cgroup, "systemd", true);
	json_add_bool(cgroup, "systemdUser", true);
	json_add_bool(cgroup, "rdma", true);
}

static void add_seccomp(struct json_object *linux_part)
{
	struct json_object *seccomp = json_add_object(linux_part, "seccomp");
	const struct shape *shape = &oci_shape_seccomp;

	json_add_bool(seccomp, "enabled", true);
	add_words(seccomp, "actions", shape, KEYS("defaultAction"), NULL);
	add_words(seccomp, "operators", shape, KEYS("syscalls", "args", "op"), NULL);
	add_words(seccomp, "archs", shape, KEYS("architectures"), is_known_architecture);
	add_words(seccomp, "knownFlags", shape, KEYS("flags"), NULL);
	add_words(seccomp, "supportedFlags", shape, KEYS("flags"), is_supported_flag);
}

static void add_enabled(struct json_object *object, const char *name)
{
	json_add_bool(json_add_object(object, name), "enabled", true);
}

static void add_linux(struct json_object *features)
{
	struct json_object *linux_part = json_add_object(features, "linux");

	add_words(linux_part, "namespaces", &oci_shape_linux, KEYS("namespaces", "type"), NULL);
	add_capabilities(linux_part);
	add_cgroup(linux_part);
	add_seccomp(linux_part);
	add_enabled(linux_part, "apparmor");
	add_enabled(linux_part, "selinux");
	add_enabled(linux_part, "intelRdt");
	add_enabled(json_add_object(linux_part, "mountExtensions"), "idmap");
	add_enabled(linux_part, "netDevices");
}

static void add_annotations(struct json_object *features)
{
	struct json_object *annotations = json_add_object(features, "annotations");
	const struct scmp_version *version = seccomp_version();
	char text[64];

	snprintf(text, sizeof text, "%u.%u.%u", version->major, version->minor, version->micro);
	json_add_string(annotations, "io.github.seccomp.libseccomp.version", text);
	/* as containerd 2 asks whether it may try to checkpoint */
	json_add_string(annotations, "org.opencontainers.runc.checkpoint.enabled", "false");
}

int verb_features(struct request *request, struct err *e)
{
	scoped_json features = json_object_new_object();

	(void)request;
	if (!features)
		return err_set(e, ENOMEM, "no memory for the features");
	json_add_string(features, "ociVersionMin", "1.0.0");
	json_add_string(features, "ociVersionMax", "1.3.0");
	add_hooks(features);
	add_mount_options(features);
	add_linux(features);
	add_annotations(features);
	return print_json(features, e);
}
