/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packed image to a plan: the JSON of an OCI layout (image-spec: oci-layout, index, manifest,
 * config; docker's media types, too) or of a docker-archive (manifest.json). What is read is
 * bounded, and checked against its digest before it is parsed. Layers are not read here.
 */
#include "archive/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/archive.h"
#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "rootfs/image_store.h"

enum {
	DOCUMENT_MAX = 1 << 20, /* of one JSON text: json-c takes up to a hundred times as much */
	DOCUMENTS_MAX = 256,    /* a hostile index could name millions */
	INDEX_DEPTH_MAX = 4,
	NAMES_SHOWN = 200,
};

static const char *const index_types[] = {
	"application/vnd.oci.image.index.v1+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
	NULL,
};
static const char *const manifest_types[] = {
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.v2+json",
	NULL,
};
static const char *const config_types[] = {
	"application/vnd.oci.image.config.v1+json",
	"application/vnd.docker.container.image.v1+json",
	NULL,
};
/* How a layer is compressed is told from its bytes. */
static const char *const layer_types[] = {
	"application/vnd.oci.image.layer.v1.tar",
	"application/vnd.oci.image.layer.v1.tar+gzip",
	"application/vnd.oci.image.layer.v1.tar+zstd",
	"application/vnd.oci.image.layer.nondistributable.v1.tar",
	"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
	"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
	"application/vnd.docker.image.rootfs.diff.tar",
	"application/vnd.docker.image.rootfs.diff.tar.gzip",
	"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
	NULL,
};

struct planner {
	int dirfd;
	const struct plan_options *options;
	struct image_plan *plan;
	size_t text_used;
	int documents;                    /* read so far */
	bool chosen;                      /* PLAN is made of an image */
	char manifest[IMAGE_DIGEST_SIZE]; /* of which, in a layout */
	char others[NAMES_SHOWN]; /* machines that there are images for, and they are not wanted */
	char names[NAMES_SHOWN];  /* what the images are called */
};

/* ---- files ---- */

/* All that JSON can be wrong about is the image's fault. */
static int image_fault(struct err *e)
{
	if (e->code == EINVAL || e->code == ENOENT || e->code == ERANGE)
		e->code = EBADMSG;
	return -e->code;
}

/* A regular file of the layout. Links may be followed where they stay in it: docker save makes
 * some of layers that two images share. */
static int open_file(const struct planner *planner, const char *path, struct stat *st,
                     struct err *e)
{
	char shown[SHOWN_SIZE];
	scoped_fd fd = file_open2(planner->dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0,
	                          RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, e);

	path_shown(path, shown);
	if (fd == -ENOENT)
		return err_set(e, EBADMSG, "%s is missing", shown);
	if (fd == -EXDEV || fd == -ELOOP || fd == -ENOTDIR || fd == -ENXIO || fd == -ENAMETOOLONG)
		return err_set(e, EBADMSG, "%s leads out of the image, or is no file", shown);
	TRY(fd);
	if (fstat(fd, st) < 0)
		return err_sys(e, "%s", shown);
	if (!S_ISREG(st->st_mode))
		return err_set(e, EBADMSG, "%s is no file", shown);
	return take_fd(&fd);
}

static int read_file(const struct planner *planner, const char *path, char **text, size_t *length,
                     struct err *e)
{
	scoped_mem char *data = NULL;
	char shown[SHOWN_SIZE];
	struct stat st = {0};
	scoped_fd fd = open_file(planner, path, &st, e);
	size_t used = 0;

	TRY(fd);
	if (st.st_size > DOCUMENT_MAX)
		return err_set(e, EFBIG, "%s has %jd bytes; a document of an image may have %d",
		               path_shown(path, shown), (intmax_t)st.st_size, DOCUMENT_MAX);
	data = malloc(DOCUMENT_MAX + 1);
	if (!data)
		return err_set(e, EFBIG, "no memory for %s", path_shown(path, shown));
	while (used <= DOCUMENT_MAX) {
		ssize_t got = read(fd, data + used, DOCUMENT_MAX + 1 - used);

		if (got < 0)
			return err_sys(e, "reading %s", path_shown(path, shown));
		if (got == 0)
			break;
		used += (size_t)got;
	}
	if (used > DOCUMENT_MAX)
		return err_set(e, EFBIG, "%s grew while it was read", path_shown(path, shown));
	*text = take_mem(&data);
	*length = used;
	return 0;
}

/* DIGEST "": it is not known. */
static int read_document(struct planner *planner, const char *path, const char *digest,
                         struct json_object **document, struct err *e)
{
	scoped_mem char *text = NULL;
	char found[IMAGE_DIGEST_SIZE], shown[SHOWN_SIZE];
	struct sha256_ctx hash;
	size_t length = 0;

	if (++planner->documents > DOCUMENTS_MAX)
		return err_set(e, EFBIG, "more than %d indexes, manifests and configs",
		               DOCUMENTS_MAX);
	TRY(read_file(planner, path, &text, &length, e));
	sha256_init(&hash);
	sha256_update(&hash, length, (const uint8_t *)text);
	image_hash_finish(&hash, found);
	if (*digest && strcmp(found, digest) != 0)
		return err_set(e, EBADMSG, "%s is damaged: its digest is %s",
		               path_shown(path, shown), found);
	if (json_parse(text, length, document, e) < 0) {
		err_in(e, "%s", path_shown(path, shown));
		return image_fault(e);
	}
	return 0;
}

static bool has_file(const struct planner *planner, const char *path)
{
	struct err ignored;
	struct stat st;
	scoped_fd fd = open_file(planner, path, &st, &ignored);

	return fd >= 0;
}

/* ---- the plan ---- */

/* STRING NULL: the empty one. */
static int put_text(struct planner *planner, const char *text, struct err *e)
{
	size_t size = text ? strlen(text) + 1 : 1;

	if (size > IMAGE_PLAN_TEXT_SIZE - planner->text_used)
		return err_set(e, EFBIG,
		               "the config's user, env, entrypoint and cmd take more "
		               "than %d KiB",
		               IMAGE_PLAN_TEXT_SIZE >> 10);
	memcpy(planner->plan->text + planner->text_used, text ? text : "", size);
	planner->text_used += size;
	return 0;
}

/* null is what docker writes for none. */
static bool is_absent(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	return !json_object_object_get_ex(object, key, &value) || !value;
}

static int optional_string(struct json_object *object, const char *key, const char **text,
                           struct err *e)
{
	return is_absent(object, key) ? 0 : json_get_string(object, key, true, text, e);
}

static int put_string(struct planner *planner, struct json_object *config, const char *key,
                      struct err *e)
{
	const char *text = NULL;

	TRY(optional_string(config, key, &text, e));
	return put_text(planner, text, e);
}

static int put_words(struct planner *planner, struct json_object *config, const char *key,
                     uint32_t *count, struct err *e)
{
	struct json_object *words = NULL;
	const char *text;
	size_t length;

	*count = 0;
	if (is_absent(config, key))
		return 0;
	TRY(json_get_array(config, key, true, &words, e));
	length = json_object_array_length(words);
	if (length > IMAGE_PLAN_WORDS_MAX)
		return err_set(e, EFBIG, "%s has %zu entries; %d are the most", key, length,
		               IMAGE_PLAN_WORDS_MAX);
	for (size_t i = 0; i < length; i++) {
		struct json_object *word = json_object_array_get_idx(words, i);

		if (!json_object_is_type(word, json_type_string))
			return err_set(e, EBADMSG, "%s: entry %zu is no string", key, i);
		text = json_object_get_string(word);
		if (strcmp(key, "Env") == 0 && (!strchr(text, '=') || *text == '='))
			return err_set(e, EBADMSG, "Env: entry %zu is no KEY=VALUE", i);
		TRY(put_text(planner, text, e));
	}
	*count = (uint32_t)length;
	return 0;
}

static int plan_settings(struct planner *planner, struct json_object *document, struct err *e)
{
	struct image_plan *plan = planner->plan;
	struct json_object *config = NULL;

	if (is_absent(document, "config"))
		config =
			document; /* of which none of the keys below is one: they begin with a capital */
	else
		TRY(json_get_object(document, "config", true, &config, e));
	TRY(put_string(planner, config, "User", e));
	TRY(put_string(planner, config, "WorkingDir", e));
	TRY(put_words(planner, config, "Env", &plan->env_count, e));
	TRY(put_words(planner, config, "Entrypoint", &plan->entrypoint_count, e));
	return put_words(planner, config, "Cmd", &plan->cmd_count, e);
}

static int plan_diff_ids(struct planner *planner, struct json_object *document, struct err *e)
{
	struct image_plan *plan = planner->plan;
	struct json_object *rootfs = NULL, *ids = NULL;
	size_t count;

	TRY(json_get_object(document, "rootfs", true, &rootfs, e));
	TRY(json_get_array(rootfs, "diff_ids", true, &ids, e));
	count = json_object_array_length(ids);
	if (count != (size_t)plan->layers_count)
		return err_set(e, EBADMSG, "the manifest has %d layers and the config %zu",
		               plan->layers_count, count);
	for (size_t i = 0; i < count; i++) {
		struct json_object *id = json_object_array_get_idx(ids, i);

		if (!json_object_is_type(id, json_type_string) ||
		    !image_digest_valid(json_object_get_string(id)))
			return err_set(e, EBADMSG, "diff_ids: entry %zu is no sha256 digest", i);
		memcpy(plan->layers[i].diff_id, json_object_get_string(id), IMAGE_DIGEST_SIZE);
	}
	return 0;
}

/* Adds WORD to a list for a message, where there is room. */
static void note(char list[NAMES_SHOWN], const char *word)
{
	size_t used = strlen(list);
	char shown[100];

	text_printable(word, shown, sizeof shown);
	if (!strstr(list, shown) && used + strlen(shown) + 3 < NAMES_SHOWN)
		snprintf(list + used, NAMES_SHOWN - used, "%s%s", used ? ", " : "", shown);
}

static bool wants(struct planner *planner, const char *os, const char *architecture)
{
	if (os && strcmp(os, "linux") != 0)
		return false;
	if (strcmp(architecture, planner->options->architecture) == 0)
		return true;
	note(planner->others, architecture);
	return false;
}

/* Is the image of this config for the machine that is wanted? */
static int wants_config(struct planner *planner, struct json_object *document, struct err *e)
{
	const char *architecture = NULL, *os = NULL;

	TRY(json_get_string(document, "architecture", true, &architecture, e));
	TRY(optional_string(document, "os", &os, e));
	return wants(planner, os, architecture);
}

/* PLAN has the layers of the manifest, and DOCUMENT is what wants_config() wants. */
static int plan_config(struct planner *planner, struct json_object *document, struct err *e)
{
	TRY(text_format(planner->plan->architecture, sizeof planner->plan->architecture, e, "%s",
	                planner->options->architecture));
	TRY(plan_diff_ids(planner, document, e));
	return plan_settings(planner, document, e);
}

/* A second image that is wanted as well as the one that PLAN has. */
static int check_only(const struct planner *planner, struct err *e)
{
	if (!planner->chosen)
		return 0;
	return err_set(e, EBADMSG, "it holds several images for %s%s%s; choose one with --ref",
	               planner->options->architecture, *planner->names ? ": " : "", planner->names);
}

static int check_chosen(const struct planner *planner, struct err *e)
{
	const struct plan_options *options = planner->options;

	if (planner->chosen)
		return 0;
	if (options->ref)
		return err_set(e, EBADMSG, "no image for %s is called %s in it%s%s",
		               options->architecture, options->ref,
		               *planner->names ? ", but: " : "", planner->names);
	return err_set(e, EBADMSG, "no image for linux on %s is in it%s%s%s", options->architecture,
	               *planner->others ? ", but for: " : "", planner->others,
	               *planner->others ? " (--arch)" : "");
}

static int check_layers_count(size_t count, struct err *e)
{
	if (count >= 1 && count <= IMAGE_LAYERS_MAX)
		return 0;
	return err_set(e, EBADMSG, "%zu layers: there must be 1 to %d", count, IMAGE_LAYERS_MAX);
}

/* ---- OCI layouts ---- */

struct descriptor {
	const char *type; /* "": not said */
	char digest[IMAGE_DIGEST_SIZE], path[sizeof "blobs/sha256/" + 64];
	uint64_t size;
};

static int read_descriptor(struct json_object *object, struct descriptor *descriptor, struct err *e)
{
	const char *digest = NULL;
	char shown[100];

	descriptor->type = "";
	TRY(optional_string(object, "mediaType", &descriptor->type, e));
	TRY(json_get_string(object, "digest", true, &digest, e));
	TRY(json_get_u64(object, "size", true, &descriptor->size, e));
	if (!image_digest_valid(digest))
		return err_set(e, EBADMSG, "%s: no sha256 digest, others are not supported",
		               text_printable(digest, shown, sizeof shown));
	memcpy(descriptor->digest, digest, IMAGE_DIGEST_SIZE);
	snprintf(descriptor->path, sizeof descriptor->path, "blobs/sha256/%s",
	         image_digest_hex(digest));
	return 0;
}

static bool is_one_of(const char *type, const char *const types[])
{
	for (; *types; types++)
		if (strcmp(type, *types) == 0)
			return true;
	return false;
}

static int check_type(const char *what, const char *type, const char *const types[], struct err *e)
{
	char shown[100];

	if (!*type || is_one_of(type, types))
		return 0;
	return err_set(e, EBADMSG, "%s of type %s is not supported", what,
	               text_printable(type, shown, sizeof shown));
}

static int check_size(const struct planner *planner, const struct descriptor *descriptor,
                      struct err *e)
{
	struct stat st;
	scoped_fd fd = open_file(planner, descriptor->path, &st, e);

	TRY(fd);
	if ((uint64_t)st.st_size == descriptor->size)
		return 0;
	return err_set(e, EBADMSG, "%s is damaged: it has %jd bytes and not %llu", descriptor->path,
	               (intmax_t)st.st_size, (unsigned long long)descriptor->size);
}

static int plan_layer(struct planner *planner, struct json_object *object,
                      struct image_plan_layer *layer, struct err *e)
{
	struct descriptor descriptor;

	TRY(read_descriptor(object, &descriptor, e));
	TRY(check_type("a layer", descriptor.type, layer_types, e));
	TRY(check_size(planner, &descriptor, e));
	memcpy(layer->digest, descriptor.digest, sizeof layer->digest);
	return text_format(layer->path, sizeof layer->path, e, "%s", descriptor.path);
}

static int plan_layers(struct planner *planner, struct json_object *layers, struct err *e)
{
	size_t count = json_object_array_length(layers);

	TRY(check_layers_count(count, e));
	for (size_t i = 0; i < count; i++)
		if (plan_layer(planner, json_object_array_get_idx(layers, i),
		               &planner->plan->layers[i], e) < 0)
			return err_in(e, "layer %zu", i + 1);
	planner->plan->layers_count = (int32_t)count;
	return 0;
}

static int consider_manifest(struct planner *planner, const struct descriptor *from,
                             struct json_object *manifest, struct err *e)
{
	struct json_object *object = NULL, *layers = NULL;
	scoped_json config = NULL;
	struct descriptor descriptor;
	int wanted;

	if (planner->chosen && strcmp(planner->manifest, from->digest) == 0)
		return 0;
	TRY(json_get_object(manifest, "config", true, &object, e));
	TRY(read_descriptor(object, &descriptor, e));
	if (!is_one_of(descriptor.type, config_types)) {
		/* signatures and the like lie beside images */
		note(planner->others, descriptor.type);
		return 0;
	}
	TRY(read_document(planner, descriptor.path, descriptor.digest, &config, e));
	TRY(wanted = wants_config(planner, config, e));
	if (!wanted)
		return 0;
	TRY(check_only(planner, e));
	TRY(json_get_array(manifest, "layers", true, &layers, e));
	TRY(plan_layers(planner, layers, e));
	TRY(plan_config(planner, config, e));
	planner->chosen = true;
	memcpy(planner->manifest, from->digest, sizeof planner->manifest);
	return 0;
}

static int consider_index(struct planner *planner, struct json_object *index, int depth,
                          struct err *e);

/* An index or a manifest, which a descriptor without a type leaves open. */
static int consider_blob(struct planner *planner, const struct descriptor *descriptor, int depth,
                         struct err *e)
{
	scoped_json document = NULL;

	TRY(read_document(planner, descriptor->path, descriptor->digest, &document, e));
	if (is_one_of(descriptor->type, index_types) ||
	    (!*descriptor->type && !is_absent(document, "manifests")))
		return consider_index(planner, document, depth + 1, e);
	return consider_manifest(planner, descriptor, document, e);
}

/* Is the entry of an index for the machine that is wanted, or may it be? */
static int wants_platform(struct planner *planner, struct json_object *entry, struct err *e)
{
	struct json_object *platform = NULL;
	const char *architecture = NULL, *os = NULL;

	if (is_absent(entry, "platform"))
		return 1;
	TRY(json_get_object(entry, "platform", true, &platform, e));
	TRY(optional_string(platform, "architecture", &architecture, e));
	TRY(optional_string(platform, "os", &os, e));
	return !architecture || wants(planner, os, architecture);
}

/* Is the entry of the outermost index called what is wanted? */
static int wants_name(struct planner *planner, struct json_object *entry, struct err *e)
{
	static const char *const keys[] = {"io.containerd.image.name",
	                                   "org.opencontainers.image.ref.name"};
	struct json_object *annotations = NULL;
	const char *wanted = planner->options->ref;
	bool same = !wanted;

	if (is_absent(entry, "annotations"))
		return same;
	TRY(json_get_object(entry, "annotations", true, &annotations, e));
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		const char *name = NULL;

		TRY(optional_string(annotations, keys[i], &name, e));
		if (name)
			note(planner->names, name);
		same |= name && wanted && strcmp(name, wanted) == 0;
	}
	return same;
}

static int consider_entry(struct planner *planner, struct json_object *entry, int depth,
                          struct err *e)
{
	struct descriptor descriptor;
	int wanted;

	TRY(read_descriptor(entry, &descriptor, e));
	if (*descriptor.type && !is_one_of(descriptor.type, index_types) &&
	    !is_one_of(descriptor.type, manifest_types)) {
		note(planner->others, descriptor.type);
		return 0;
	}
	TRY(wanted = wants_platform(planner, entry, e));
	if (wanted && depth == 0)
		TRY(wanted = wants_name(planner, entry, e));
	return wanted ? consider_blob(planner, &descriptor, depth, e) : 0;
}

static int consider_index(struct planner *planner, struct json_object *index, int depth,
                          struct err *e)
{
	struct json_object *manifests = NULL;

	if (depth == INDEX_DEPTH_MAX)
		return err_set(e, EBADMSG, "more than %d indexes within each other",
		               INDEX_DEPTH_MAX);
	TRY(json_get_array(index, "manifests", true, &manifests, e));
	for (size_t i = 0; i < json_object_array_length(manifests); i++)
		TRY(consider_entry(planner, json_object_array_get_idx(manifests, i), depth, e));
	return 0;
}

static int plan_layout(struct planner *planner, struct err *e)
{
	scoped_json layout = NULL;
	scoped_json index = NULL;
	const char *version = NULL;
	char shown[40];

	TRY(read_document(planner, "oci-layout", "", &layout, e));
	if (json_get_string(layout, "imageLayoutVersion", true, &version, e) < 0)
		return err_in(e, "oci-layout");
	if (strncmp(version, "1.", 2) != 0)
		return err_set(e, EBADMSG, "an OCI layout of version %s; 1.0 is supported",
		               text_printable(version, shown, sizeof shown));
	TRY(read_document(planner, "index.json", "", &index, e));
	return consider_index(planner, index, 0, e);
}

/* ---- docker-archives ---- */

/* Docker names a config by its digest: HEX.json, or blobs/sha256/HEX. */
static void digest_of_name(const char *path, char digest[IMAGE_DIGEST_SIZE])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	snprintf(digest, IMAGE_DIGEST_SIZE, "sha256:%.64s", name);
	if (!image_digest_valid(digest) || (name[64] && strcmp(name + 64, ".json") != 0))
		digest[0] = '\0';
}

static int consider_docker(struct planner *planner, struct json_object *entry, struct err *e)
{
	struct json_object *layers = NULL;
	scoped_json config = NULL;
	const char *path = NULL;
	char digest[IMAGE_DIGEST_SIZE];
	size_t count;
	int wanted;

	TRY(json_get_string(entry, "Config", true, &path, e));
	TRY(json_get_array(entry, "Layers", true, &layers, e));
	digest_of_name(path, digest);
	TRY(read_document(planner, path, digest, &config, e));
	TRY(wanted = wants_config(planner, config, e));
	if (!wanted)
		return 0;
	TRY(check_only(planner, e));
	count = json_object_array_length(layers);
	TRY(check_layers_count(count, e));
	planner->plan->layers_count = (int32_t)count;
	for (size_t i = 0; i < count; i++) {
		struct json_object *layer = json_object_array_get_idx(layers, i);
		struct stat st;
		scoped_fd fd = -1;

		if (!json_object_is_type(layer, json_type_string))
			return err_set(e, EBADMSG, "Layers: entry %zu is no string", i);
		TRY(fd = open_file(planner, json_object_get_string(layer), &st, e));
		TRY(text_format(planner->plan->layers[i].path, IMAGE_PLAN_PATH_SIZE, e, "%s",
		                json_object_get_string(layer)));
	}
	TRY(plan_config(planner, config, e));
	planner->chosen = true;
	return 0;
}

static int docker_is_called(struct planner *planner, struct json_object *entry, struct err *e)
{
	struct json_object *tags = NULL;
	const char *wanted = planner->options->ref;
	bool same = !wanted;

	if (is_absent(entry, "RepoTags"))
		return same;
	TRY(json_get_array(entry, "RepoTags", true, &tags, e));
	for (size_t i = 0; i < json_object_array_length(tags); i++) {
		struct json_object *tag = json_object_array_get_idx(tags, i);

		if (!json_object_is_type(tag, json_type_string))
			return err_set(e, EBADMSG, "RepoTags: entry %zu is no string", i);
		note(planner->names, json_object_get_string(tag));
		same |= wanted && strcmp(json_object_get_string(tag), wanted) == 0;
	}
	return same;
}

static int plan_docker(struct planner *planner, struct err *e)
{
	scoped_json manifest = NULL;

	TRY(read_document(planner, "manifest.json", "", &manifest, e));
	if (!json_object_is_type(manifest, json_type_array))
		return err_set(e, EBADMSG, "manifest.json is not docker's: it is no array");
	for (size_t i = 0; i < json_object_array_length(manifest); i++) {
		struct json_object *entry = json_object_array_get_idx(manifest, i);
		int called = docker_is_called(planner, entry, e);

		TRY(called);
		if (called)
			TRY(consider_docker(planner, entry, e));
	}
	return 0;
}

/* What a recent docker saves is both, and says more as a layout. */
int plan_image(int dirfd, const struct plan_options *options, struct image_plan *plan,
               struct err *e)
{
	struct planner planner = {.dirfd = dirfd, .options = options, .plan = plan};
	bool layout = has_file(&planner, "oci-layout");

	if ((layout ? plan_layout(&planner, e) : plan_docker(&planner, e)) < 0)
		return image_fault(e);
	return check_chosen(&planner, e);
}
