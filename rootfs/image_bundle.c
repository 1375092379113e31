/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image as an OCI bundle, for other runtimes: one tree of all its layers, and a config.json that
 * gives the command no capability and no network but loopback. The tree is what the kernel makes of
 * the layers, packed and unpacked by agentdock-archive.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"
#include "rootfs/mounts.h"

/* What no image has a say in. */
static const char template[] =
	"{\"ociVersion\":\"1.0.2\",\"hostname\":\"sandbox\","
	"\"process\":{\"terminal\":false,\"capabilities\":{},\"noNewPrivileges\":true,"
	"\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"hard\":1024,\"soft\":1024}]},"
	"\"root\":{\"path\":\"rootfs\",\"readonly\":false},"
	"\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
	"\"options\":[\"nosuid\",\"strictatime\",\"mode=755\",\"size=65536k\"]},"
	"{\"destination\":\"/dev/pts\",\"type\":\"devpts\",\"source\":\"devpts\",\"options\":"
	"[\"nosuid\",\"noexec\",\"newinstance\",\"ptmxmode=0666\",\"mode=0620\",\"gid=5\"]},"
	"{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"source\":\"shm\",\"options\":"
	"[\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\",\"size=65536k\"]},"
	"{\"destination\":\"/dev/mqueue\",\"type\":\"mqueue\",\"source\":\"mqueue\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\"]},"
	"{\"destination\":\"/sys\",\"type\":\"sysfs\",\"source\":\"sysfs\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\",\"ro\"]}],"
	"\"linux\":{"
	"\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}]},"
	"\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
	"{\"type\":\"uts\"},{\"type\":\"mount\"}],"
	"\"maskedPaths\":[\"/proc/acpi\",\"/proc/asound\",\"/proc/kcore\",\"/proc/keys\","
	"\"/proc/latency_stats\",\"/proc/timer_list\",\"/proc/timer_stats\","
	"\"/proc/sched_debug\",\"/sys/firmware\",\"/proc/scsi\"],"
	"\"readonlyPaths\":[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\","
	"\"/proc/sysrq-trigger\"]}}";

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct bundle {
	const struct image_store *store;
	struct image image;
	int layerfds[IMAGE_LAYERS_MAX], lockfds[IMAGE_LAYERS_MAX];
};

static void bundle_release(struct bundle *bundle)
{
	for (int i = 0; i < IMAGE_LAYERS_MAX; i++) {
		close_fd(&bundle->layerfds[i]);
		close_fd(&bundle->lockfds[i]);
	}
	image_release(&bundle->image);
}

static void add_words(struct json_object *array, const struct string_list *words)
{
	for (size_t i = 0; i < words->count; i++)
		json_object_array_add(array, json_object_new_string(words->items[i]));
}

static void describe_process(struct json_object *process, const struct image *image)
{
	struct json_object *user = json_add_object(process, "user"), *array;
	char cwd[sizeof(image->workdir) + 1];

	json_add_u64(user, "uid", image->has_ids ? image->uid : 0);
	json_add_u64(user, "gid", image->has_ids ? image->gid : 0);
	/* as `run` takes one that is not absolute */
	snprintf(cwd, sizeof(cwd), "%s%s", image->workdir[0] == '/' ? "" : "/", image->workdir);
	json_add_string(process, "cwd", cwd);
	array = json_add_array(process, "args");
	add_words(array, &image->entrypoint);
	add_words(array, &image->cmd);
	if (!json_object_array_length(array))
		json_object_array_add(array, json_object_new_string("sh"));
	array = json_add_array(process, "env");
	if (!string_list_value(&image->env, "PATH"))
		json_object_array_add(array, json_object_new_string(DEFAULT_PATH));
	add_words(array, &image->env);
}

static int write_config(const struct bundle *bundle, int dirfd, struct err *e)
{
	scoped_json config = NULL;
	struct json_object *process = NULL;
	const char *text;

	TRY(json_parse(template, strlen(template), &config, e));
	TRY(json_get_object(config, "process", true, &process, e));
	describe_process(process, &bundle->image);
	text = json_object_to_json_string_ext(config, JSON_C_TO_STRING_PRETTY |
	                                                      JSON_C_TO_STRING_SPACED |
	                                                      JSON_C_TO_STRING_NOSLASHESCAPE);
	return file_replace(dirfd, "config.json", text, strlen(text), 0644, e);
}

static int write_tree(const struct bundle *bundle, int dirfd, const char *directory, struct err *e)
{
	scoped_fd rootfd = -1, treefd = -1;
	struct archive_result counts = {0};
	char digest[IMAGE_DIGEST_SIZE];
	struct image_stream stream = {
		.archiver = bundle->store->archiver,
		.source = directory,
		.store_path = directory,
		.is_directory = true,
		.lockfd = bundle->lockfds[0],
		.opaquefd = -1,
	};

	TRY(dir_make_all(dirfd, "rootfs", 0755, e));
	rootfd = file_open(dirfd, "rootfs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(rootfd);
	treefd = overlay_create(bundle->layerfds, bundle->image.layers_count, -1, -1, e);
	TRY(treefd);
	stream.sourcefd = treefd;
	stream.targetfd = rootfd;
	TRY(image_stream_run(&stream, &counts, digest, e));
	if (fchmod(rootfd, 0755) < 0)
		return err_sys(e, "%s/rootfs", directory);
	return 0;
}

static int refuse_entry(void *data, const char *name, struct err *e)
{
	(void)name;
	return err_set(e, ENOTEMPTY, "%s is not empty; give a directory that is not there yet",
	               (const char *)data);
}

static int open_place(const char *directory, struct err *e)
{
	scoped_fd fd = -1;
	char shown[256];

	TRY(text_format(shown, sizeof(shown), e, "%.200s", directory));
	TRY(dir_make_all(AT_FDCWD, directory, 0755, e));
	fd = file_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0, e);
	TRY(fd);
	TRY(image_dir_visit(fd, ".", refuse_entry, shown, e));
	/* the image's set-user-ID programs must be nobody's to run */
	if (fchmod(fd, 0700) < 0)
		return err_sys(e, "making %s its owner's alone", shown);
	return take_fd(&fd);
}

int image_bundle(struct image_store *store, const char *reference, const char *directory,
                 struct err *e)
{
	__attribute__((cleanup(bundle_release))) struct bundle bundle = {.store = store};
	scoped_fd dirfd = -1;
	struct err ignored;

	for (int i = 0; i < IMAGE_LAYERS_MAX; i++)
		bundle.layerfds[i] = bundle.lockfds[i] = -1;
	TRY(image_find(store, reference, &bundle.image, e));
	if (*bundle.image.user && !bundle.image.has_ids)
		return err_set(e, EINVAL,
		               "image %s wants to be run as the user '%s', which it does not have, "
		               "so no bundle can name its numbers; export it, and change the image",
		               reference, bundle.image.user);
	TRY(image_layers_open(store, &bundle.image, bundle.layerfds, bundle.lockfds, e));
	dirfd = open_place(directory, e);
	TRY(dirfd);
	if (write_tree(&bundle, dirfd, directory, e) < 0 || write_config(&bundle, dirfd, e) < 0) {
		tree_remove(dirfd, "rootfs", &ignored); /* a second try finds the place empty */
		return -e->code;
	}
	return 0;
}
