/* SPDX-License-Identifier: Apache-2.0 */
/* `spec`: writes verbs/spec.json as a config.json to begin with, or for who has no privileges what can
 * be made of it without them. An existing file is never replaced. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "verbs/verbs.h"

/* spec_text.S */
extern const char spec_text[];
extern const uint64_t spec_text_bytes;

static struct json_object *map_one(unsigned id)
{
	struct json_object *list = json_object_new_array(), *mapping = json_object_new_object();

	json_add_u64(mapping, "containerID", 0);
	json_add_u64(mapping, "hostID", id);
	json_add_u64(mapping, "size", 1);
	json_object_array_add(list, mapping);
	return list;
}

/* A user namespace with one user, and the network of the host, which nobody could set up. */
static void drop_network_add_user(struct json_object *linux_part)
{
	struct json_object *list = json_object_object_get(linux_part, "namespaces");
	struct json_object *user = json_object_new_object();

	for (size_t i = json_object_array_length(list); i-- > 0;) {
		struct json_object *namespace = json_object_array_get_idx(list, i);
		const char *type = json_object_get_string(
			json_object_object_get(namespace, "type"));

		if (strcmp(type, "network") == 0)
			json_object_array_del_idx(list, i, 1);
	}
	json_add_string(user, "type", "user");
	json_object_array_add(list, user);
	json_object_object_add(linux_part, "uidMappings", map_one(geteuid()));
	json_object_object_add(linux_part, "gidMappings", map_one(getegid()));
	json_object_object_del(linux_part, "resources");
}

/* sysfs can't be mounted without a network namespace of one's own: the host's, bound. */
static void bind_sys(struct json_object *mount)
{
	static const char *const words[] = {"rbind", "nosuid", "noexec", "nodev", "ro"};
	struct json_object *options = json_object_new_array();

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		json_object_array_add(options, json_object_new_string(words[i]));
	json_add_string(mount, "type", "none");
	json_add_string(mount, "source", "/sys");
	json_object_object_add(mount, "options", options);
}

/* The group 5 of terminals is not mapped. */
static void drop_gid(struct json_object *mount)
{
	struct json_object *options = json_object_object_get(mount, "options");

	for (size_t i = json_object_array_length(options); i-- > 0;)
		if (strncmp(json_object_get_string(json_object_array_get_idx(options, i)),
		            "gid=", 4) == 0)
			json_object_array_del_idx(options, i, 1);
}

static void make_rootless(struct json_object *document)
{
	struct json_object *mounts = json_object_object_get(document, "mounts");

	drop_network_add_user(json_object_object_get(document, "linux"));
	for (size_t i = 0; i < json_object_array_length(mounts); i++) {
		struct json_object *mount = json_object_array_get_idx(mounts, i);
		const char *type = json_object_get_string(json_object_object_get(mount, "type"));

		if (strcmp(type, "sysfs") == 0)
			bind_sys(mount);
		else if (strcmp(type, "devpts") == 0)
			drop_gid(mount);
	}
}

int verb_spec(struct request *request, struct err *e)
{
	const char *bundle = request->lifecycle.bundle ? request->lifecycle.bundle : ".";
	const char *name = request->file ? request->file : "config.json";
	scoped_json document = NULL;
	scoped_fd directory = file_open(AT_FDCWD, bundle, O_PATH | O_DIRECTORY, 0, e), fd = -1;
	const char *text;

	TRY(directory);
	TRY(json_parse(spec_text, spec_text_bytes, &document, e));
	if (request->rootless)
		make_rootless(document);
	text = json_object_to_json_string_ext(
		document, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_PRETTY_TAB |
				  JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
	fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return err_set(e, EEXIST, "%s already exists; remove it first", name);
	if (fd < 0)
		return err_sys(e, "making %s", name);
	TRY(fd_write_all(fd, text, strlen(text), e));
	return fd_write_all(fd, "\n", 1, e);
}
