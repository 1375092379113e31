/* SPDX-License-Identifier: Apache-2.0 */
/* `agentdock image`: import, list, inspect, export, bundle, rm, gc. One table of verbs; all options stand after the
 * verb. People read tables, programs read --json; errors go to stderr in one line. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "base/table.h"
#include "cli/cli.h"
#include "rootfs/image.h"

struct request {
	struct image_store store;
	struct image_choice choice;
	bool json;
	char **arguments; /* NULL-terminated */
};

static void image_object(struct json_object *object, const struct image *image)
{
	struct json_object *array;

	json_add_strings(object, "names", &image->names);
	json_add_string(object, "digest", image->digest);
	json_add_string(object, "architecture", image->architecture);
	json_add_u64(object, "size_bytes", image->size_bytes);
	json_add_u64(object, "entries", image->entries);
	json_add_u64(object, "imported_at", (uint64_t)image->imported_at);
	array = json_add_array(object, "layers");
	for (int i = 0; i < image->layers_count; i++)
		json_object_array_add(array, json_object_new_string(image->layers[i]));
	json_add_strings(object, "env", &image->env);
	json_add_string(object, "user", image->user);
	if (image->has_ids) {
		json_add_u64(object, "uid", image->uid);
		json_add_u64(object, "gid", image->gid);
	}
	json_add_string(object, "workdir", image->workdir);
	json_add_strings(object, "entrypoint", &image->entrypoint);
	json_add_strings(object, "cmd", &image->cmd);
}

static void print_json(struct json_object *object)
{
	int pretty = isatty(STDOUT_FILENO) ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : 0;

	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE | pretty));
}

static const char *format_time(int64_t seconds, char *buffer, size_t size)
{
	time_t when = (time_t)seconds;
	struct tm tm;

	if (!localtime_r(&when, &tm) || !strftime(buffer, size, "%Y-%m-%d %H:%M", &tm))
		snprintf(buffer, size, "%" PRId64, seconds);
	return buffer;
}

/* ---- import ---- */

struct progress {
	const char *source;
	bool shown;
};

static void show_progress(void *data, uint64_t bytes, uint64_t entries)
{
	struct progress *progress = data;
	char size[32];

	fprintf(stderr, "\r\033[Kimporting %s: %s, %" PRIu64 " entries", progress->source,
	        format_bytes(bytes, size, sizeof(size)), entries);
	progress->shown = true;
}

/* The terminal's Ctrl-C ends the programs that pack and unpack; what we do then fails by itself
 * and takes back what it made, which it could not if we died too. */
static volatile sig_atomic_t interrupted;

static void survive(int signo)
{
	interrupted = signo;
}

static void survive_interrupts(void)
{
	const struct sigaction action = {.sa_handler = survive, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &action, NULL);
}

/* RESULT of DOING something with WHAT. */
static int unless_interrupted(int result, const char *doing, const char *what, struct err *e)
{
	if (result < 0 && interrupted)
		return err_set(e, ECANCELED, "%s %s: canceled", doing, what);
	return result;
}

static int verb_import(struct request *request, struct err *e)
{
	const char *source = request->arguments[0], *name = request->arguments[1];
	struct progress progress = {.source = source};
	struct image image;
	char size[32];
	int result;

	TRY(cli_archiver_check(e));
	if (strcmp(source, "-") == 0 && isatty(STDIN_FILENO))
		return err_set(e, EINVAL,
		               "image import -: standard input is a terminal; pipe a tar "
		               "into it");
	survive_interrupts();
	result = image_import(&request->store, source, name, &request->choice,
	                      isatty(STDERR_FILENO) ? show_progress : NULL, &progress, &image, e);
	if (progress.shown)
		fputs("\r\033[K", stderr);
	TRY(unless_interrupted(result, "importing", source, e));
	if (request->json) {
		scoped_json object = json_object_new_object();

		image_object(object, &image);
		print_json(object);
	} else {
		printf("%s: %s, %s, %" PRIu64 " entries, %s\n", image.names.items[0], image.digest,
		       image.architecture, image.entries,
		       format_bytes(image.size_bytes, size, sizeof(size)));
	}
	image_release(&image);
	return 0;
}

/* ---- export, bundle ---- */

static int open_output(const char *path, struct err *e)
{
	if (strcmp(path, "-") != 0)
		return file_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0644, e);
	if (isatty(STDOUT_FILENO))
		return err_set(e, EINVAL,
		               "image export -: standard output is a terminal; redirect it");
	return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
}

static int verb_export(struct request *request, struct err *e)
{
	const char *path = request->arguments[1];
	scoped_fd fd = -1;
	int result;

	TRY(cli_archiver_check(e));
	fd = open_output(path, e);
	if (fd == -EEXIST)
		return err_set(e, EEXIST, "%s is there; remove it, or give another name", path);
	TRY(fd);
	survive_interrupts();
	result = image_export(&request->store, request->arguments[0], fd, e);
	if (result < 0 && strcmp(path, "-") != 0)
		unlink(path);
	return unless_interrupted(result, "exporting", request->arguments[0], e);
}

static int verb_bundle(struct request *request, struct err *e)
{
	TRY(cli_archiver_check(e));
	survive_interrupts();
	return unless_interrupted(
		image_bundle(&request->store, request->arguments[0], request->arguments[1], e),
		"making a bundle of", request->arguments[0], e);
}

/* ---- list ---- */

static int add_row(struct table *table, const struct image *image, const char *name, struct err *e)
{
	char size[32], when[32];

	TRY(table_cell(table, e, "%s", name));
	TRY(table_cell(table, e, "%.12s", image->digest + strlen("sha256:")));
	TRY(table_cell(table, e, "%s", image->architecture));
	TRY(table_cell(table, e, "%s", format_bytes(image->size_bytes, size, sizeof(size))));
	TRY(table_cell(table, e, "%" PRIu64, image->entries));
	return table_cell(table, e, "%s", format_time(image->imported_at, when, sizeof(when)));
}

static int list_table(const struct image *images, size_t count, struct err *e)
{
	static const char *const header[] = {"NAME",     "DIGEST",   "MACHINE", ">SIZE",
	                                     ">ENTRIES", "IMPORTED", NULL};
	__attribute__((cleanup(table_release))) struct table table = {0};

	TRY(table_start(&table, header, e));
	for (size_t i = 0; i < count; i++) {
		const struct image *image = &images[i];

		if (image->names.count == 0)
			TRY(add_row(&table, image, "-", e));
		for (size_t j = 0; j < image->names.count; j++)
			TRY(add_row(&table, image, image->names.items[j], e));
	}
	table_print(&table, stdout);
	return 0;
}

static void list_json(const struct image *images, size_t count)
{
	scoped_json array = json_object_new_array();

	for (size_t i = 0; i < count; i++) {
		struct json_object *object = json_object_new_object();

		image_object(object, &images[i]);
		json_object_array_add(array, object);
	}
	print_json(array);
}

static int verb_list(struct request *request, struct err *e)
{
	struct image *images = NULL;
	size_t count = 0;
	int result = 0;

	TRY(image_list(&request->store, &images, &count, e));
	if (request->json)
		list_json(images, count);
	else
		result = list_table(images, count, e);
	for (size_t i = 0; i < count; i++)
		image_release(&images[i]);
	free(images);
	return result;
}

/* ---- inspect, rm, gc ---- */

/* TEXT is the image's own. */
static void inspect_line(const char *key, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	char *shown = malloc(size);

	if (shown)
		printf("%-9s %s\n", key, text_printable(text, shown, size));
	free(shown);
}

static void inspect_words(const char *key, const struct string_list *words)
{
	for (size_t i = 0; i < words->count; i++)
		inspect_line(key, words->items[i]);
}

static void inspect_text(const struct image *image)
{
	char size[32], when[32];

	printf("digest    %s\n", image->digest);
	for (size_t i = 0; i < image->names.count; i++)
		printf("name      %s\n", image->names.items[i]);
	printf("machine   %s\n", image->architecture);
	printf("size      %s, %" PRIu64 " entries\n",
	       format_bytes(image->size_bytes, size, sizeof(size)), image->entries);
	printf("imported  %s\n", format_time(image->imported_at, when, sizeof(when)));
	for (int i = 0; i < image->layers_count; i++)
		printf("layer     %s\n", image->layers[i]);
	inspect_words("env", &image->env);
	if (*image->user)
		inspect_line("user", image->user);
	if (*image->workdir)
		inspect_line("workdir", image->workdir);
	inspect_words("entry", &image->entrypoint);
	inspect_words("cmd", &image->cmd);
}

static int verb_inspect(struct request *request, struct err *e)
{
	struct image image;

	TRY(image_find_names(&request->store, request->arguments[0], &image, e));
	if (request->json) {
		scoped_json object = json_object_new_object();

		image_object(object, &image);
		print_json(object);
	} else {
		inspect_text(&image);
	}
	image_release(&image);
	return 0;
}

static int verb_rm(struct request *request, struct err *e)
{
	scoped_json removed = json_object_new_array();

	for (char **reference = request->arguments; *reference; reference++) {
		TRY(image_remove(&request->store, *reference, e));
		json_object_array_add(removed, json_object_new_string(*reference));
		if (!request->json)
			printf("removed %s\n", *reference);
	}
	if (request->json)
		print_json(removed);
	return 0;
}

static int verb_gc(struct request *request, struct err *e)
{
	uint64_t freed_bytes = 0, layers = 0;
	char size[32];

	TRY(image_gc(&request->store, &freed_bytes, &layers, e));
	if (request->json) {
		scoped_json object = json_object_new_object();

		json_add_u64(object, "freed_bytes", freed_bytes);
		json_add_u64(object, "layers", layers);
		print_json(object);
	} else {
		printf("freed %s in %" PRIu64 " layer%s\n",
		       format_bytes(freed_bytes, size, sizeof(size)), layers,
		       layers == 1 ? "" : "s");
	}
	return 0;
}

/* ---- the command ---- */

static const struct verb {
	const char *name;
	int (*function)(struct request *request, struct err *e);
	int arguments_min, arguments_max;
	const char *usage;
	const char *help;
	const char *details; /* of --help of the verb itself */
} verbs[] = {
	{"import", verb_import, 2, 2, "import SOURCE NAME [--arch MACHINE] [--ref REF] [--json]",
         "take in a root file system, or an image of OCI or docker",
         "  SOURCE          a directory, or a tar (plain, gzip, xz, zstd, bzip2);\n"
         "                  - is standard input. It holds a root file system, an OCI\n"
         "                  layout, or what docker save has written\n"
         "  NAME            NAME[:TAG], for run --image; one that is there is moved\n"
         "  --arch MACHINE  what it is for, as Go names it (amd64, arm64, ...);\n"
         "                  else what its /bin/sh or /usr/bin/env is built for. Of OCI's\n"
         "                  and docker's, which one to take, else this machine's\n"
         "  --ref REF       which one, by its name in there, where there are several\n"
         "  --json          print name, digest, size, ... as one JSON object\n"},
	{"list", verb_list, 0, 0, "list [--json]", "all images",
         "  --json          print an array with one JSON object for each image\n"},
	{"inspect", verb_inspect, 1, 1, "inspect REF [--json]", "one image, by name or digest",
         "  REF             a name, or the first digits of a digest\n"
         "  --json          print it as one JSON object\n"},
	{"export", verb_export, 2, 2, "export REF FILE", "write an image as an OCI archive",
         "  REF             a name, or the first digits of a digest\n"
         "  FILE            is made; - is standard output\n"},
	{"bundle", verb_bundle, 2, 2, "bundle REF DIR", "make an OCI bundle of an image",
         "  REF             a name, or the first digits of a digest\n"
         "  DIR             is made; it gets rootfs/, and a config.json for runc and crun\n"},
	{"rm", verb_rm, 1, 1 << 16, "rm REF... [--json]", "remove names; gc frees the disk",
         "  REF             a name, or the first digits of a digest that has but one\n"
         "  --json          print an array of what was removed\n"},
	{"gc", verb_gc, 0, 0, "gc [--json]",
         "remove the layers that no image needs and no sandbox uses",
         "  --json          print freed_bytes and layers as one JSON object\n"},
};
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

/* What other tools call them. */
static const struct {
	const char *word, *verb;
} synonyms[] = {
	{"ls", "list"},    {"images", "list"}, {"show", "inspect"}, {"remove", "rm"},
	{"rmi", "rm"},     {"delete", "rm"},   {"prune", "gc"},     {"load", "import"},
	{"add", "import"}, {"save", "export"},
};

static void usage(FILE *out)
{
	fputs("usage: agentdock image VERB ...\n\n", out);
	for (int i = 0; i < VERBS; i++)
		fprintf(out, "  agentdock image %s\n                %s\n", verbs[i].usage,
		        verbs[i].help);
	fputs("\nagentdock image VERB --help explains a verb and its options. Images are kept in\n"
	      "the state directory (AGENTDOCK_STATE_DIR, or /var/lib/agentdock).\n",
	      out);
}

static const struct verb *verb_find(const char *name, struct err *e)
{
	const char *names[VERBS + 1] = {0};
	const char *suggestion;

	for (int i = 0; i < VERBS; i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
		names[i] = verbs[i].name;
	}
	suggestion = cli_suggest(name, names);
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (strcmp(synonyms[i].word, name) == 0)
			suggestion = synonyms[i].verb;
	if (suggestion)
		err_set(e, EINVAL, "image: unknown verb %s; did you mean %s?", name, suggestion);
	else
		err_set(e, EINVAL, "image: unknown verb %s; see agentdock image --help", name);
	return NULL;
}

enum { OPTION_ARCH = 256, OPTION_REF, OPTION_JSON, OPTION_HELP };

/* 1: only help was wanted. */
static int parse(const struct verb *verb, int argc, char **argv, struct request *request,
                 struct err *e)
{
	static const struct option options[] = {
		{"arch", required_argument, NULL, OPTION_ARCH},
		{"ref", required_argument, NULL, OPTION_REF},
		{"json", no_argument, NULL, OPTION_JSON},
		{"help", no_argument, NULL, OPTION_HELP},
		{0},
	};
	int option;

	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == OPTION_HELP)
			return 1;
		if (option == OPTION_JSON && strstr(verb->usage, "--json"))
			request->json = true;
		else if (option == OPTION_ARCH && verb->function == verb_import)
			request->choice.architecture = optarg;
		else if (option == OPTION_REF && verb->function == verb_import)
			request->choice.ref = optarg;
		else
			return err_set(e, EINVAL,
			               "image %s: unknown or incomplete option %s; usage: "
			               "agentdock image %s",
			               verb->name, argv[optind - 1], verb->usage);
	}
	if (argc - optind < verb->arguments_min || argc - optind > verb->arguments_max)
		return err_set(e, EINVAL, "image %s: got %d argument%s; usage: agentdock image %s",
		               verb->name, argc - optind, argc - optind == 1 ? "" : "s",
		               verb->usage);
	request->arguments = argv + optind;
	return 0;
}

static int run_verb(const struct verb *verb, struct request *request, struct err *e)
{
	int result;

	TRY(cli_store_open(&request->store, e));
	result = verb->function(request, e);
	image_store_release(&request->store);
	return result;
}

int cmd_image(int argc, char **argv)
{
	struct request request = {0};
	const struct verb *verb;
	struct err e;
	int parsed;

	if (argc < 2) {
		usage(stderr);
		return CLI_FAILED;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return cli_finish_stdout();
	}
	verb = verb_find(argv[1], &e);
	if (!verb)
		return cli_fail(&e);
	parsed = parse(verb, argc - 1, argv + 1, &request, &e);
	if (parsed < 0)
		return cli_fail(&e);
	if (parsed > 0) {
		printf("usage: agentdock image %s\n\n%s\n\n%s", verb->usage, verb->help,
		       verb->details);
		return cli_finish_stdout();
	}
	if (run_verb(verb, &request, &e) < 0) {
		fflush(stdout);
		cli_fail(&e);
		return e.code == ECANCELED ? 128 + SIGINT : CLI_FAILED;
	}
	return cli_finish_stdout();
}
