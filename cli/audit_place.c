/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an audit happens: runs agentdock-probes, makes images of what it prepares, and puts the
 * launcher's command line together. Owns STATE/audit. What comes back is one bounded line that
 * agentdock-probes wrote; it has made printable what came out of a sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "cli/audit.h"
#include "cli/cli.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

const char *audit_text(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) : "";
}

static bool is_true(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) && json_object_get_boolean(value);
}

/* Runs agentdock-probes by ARGV; what it prints goes to FD. */
static int run_probes(const struct audit *audit, const char *const argv[], int fd, struct err *e)
{
	return process_run(argv, (const char *const *)audit->environment.items, -1, fd, e);
}

static int read_answer(const struct audit *audit, int fd, struct json_object **answer,
                       struct err *e)
{
	scoped_mem char *text = NULL;
	char path[32];
	size_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	TRY(file_read_all(AT_FDCWD, path, ANSWER_BYTES_MAX, &text, &length, e));
	if (json_parse(text, length, answer, e) < 0)
		return err_in(e, "%s", audit->probes);
	return 0;
}

/* The same; ANSWER is the JSON that it printed. */
static int ask(const struct audit *audit, const char *const argv[], struct json_object **answer,
               struct err *e)
{
	scoped_fd fd = memfd_create("answer", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "making a file in memory");
	TRY(run_probes(audit, argv, fd, e));
	return read_answer(audit, fd, answer, e);
}

/* ---- the place ---- */

static int find_programs(struct audit *audit, struct err *e)
{
	ssize_t length = readlink("/proc/self/exe", audit->own_program,
	                          sizeof(audit->own_program) - 1);

	if (length < 0)
		return err_sys(e, "/proc/self/exe");
	audit->own_program[length] = '\0';
	TRY(cli_archiver_check(e));
	TRY(text_format(audit->probes, sizeof(audit->probes), e, "%s/agentdock-probes",
	                cli_libexec_dir()));
	if (access(audit->probes, X_OK) == 0)
		return 0;
	err_sys(e, "%s", audit->probes);
	return err_hint(e, "make install, or set AGENTDOCK_LIBEXEC to the directory that has it");
}

/* Sandboxes of an audit know the audit's images; all else of the environment is the caller's. */
static int make_environment(struct audit *audit, struct err *e)
{
	char state[PATH_MAX + 32];

	for (char **variable = environ; *variable; variable++)
		TRY(string_list_add(&audit->environment, *variable, e));
	TRY(text_format(state, sizeof(state), e, "AGENTDOCK_STATE_DIR=%s", audit->place));
	return string_list_set(&audit->environment, state, e);
}

static int lock(struct audit *audit, struct err *e)
{
	char path[PATH_MAX + 8];

	TRY(text_format(path, sizeof(path), e, "%s/lock", audit->place));
	audit->lockfd = file_open(AT_FDCWD, path, O_RDWR | O_CREAT, 0600, e);
	TRY(audit->lockfd);
	if (flock(audit->lockfd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (isatty(STDERR_FILENO))
		fputs("waiting for another audit to end\n", stderr);
	/* a signal ends the waiting, as it ends an audit */
	if (flock(audit->lockfd, LOCK_EX) == 0)
		return 0;
	if (errno == EINTR)
		return err_set(e, EINTR, "audit: interrupted while another audit was waited for");
	return err_sys(e, "locking %s", path);
}

static int clear_scratch(const struct audit *audit, struct err *e)
{
	scoped_fd placefd = file_open(AT_FDCWD, audit->place, O_PATH | O_DIRECTORY, 0, e);

	TRY(placefd);
	return tree_remove(placefd, "scratch", e);
}

int audit_list(struct audit *audit, struct err *e)
{
	const char *const list[] = {audit->probes, "list", NULL};

	TRY(cli_paths_check(e));
	TRY(find_programs(audit, e));
	TRY(text_format(audit->place, sizeof(audit->place), e, "%s/audit", cli_state_dir()));
	TRY(make_environment(audit, e));
	return ask(audit, list, &audit->attacks, e);
}

int audit_take_place(struct audit *audit, struct err *e)
{
	TRY(dir_make_all(AT_FDCWD, audit->place, 0700, e));
	TRY(lock(audit, e));
	TRY(clear_scratch(audit, e));
	return image_store_open(&audit->store, audit->place, cli_archiver(), e);
}

void audit_close(struct audit *audit)
{
	uint64_t freed_bytes, layers;
	struct err ignored;

	if (audit->store.path[0]) {
		clear_scratch(audit, &ignored);
		/* images of an older agentdock-probes */
		image_gc(&audit->store, &freed_bytes, &layers, &ignored);
		image_store_release(&audit->store);
	}
	json_release(&audit->attacks);
	string_list_release(&audit->environment);
	close_fd(&audit->lockfd);
}

/* ---- one attack ---- */

/* What an attack is given: paths below STATE/audit/scratch. */
struct stage {
	char root[PATH_MAX + 64];
	char bundle[PATH_MAX + 64];
	char workspace[PATH_MAX + 64]; /* "" where it wants none */
	char digest[IMAGE_DIGEST_SIZE];
	char id[64];
};

static int make_tree(const struct audit *audit, const char *part, const char *path,
                     const char *attack, struct err *e)
{
	TRY(dir_make_all(AT_FDCWD, path, 0755, e));
	return run_probes(audit, (const char *[]){audit->probes, part, path, attack, NULL}, -1, e);
}

/* An image of the attack's root; one for all that add nothing to it. */
static int make_image(struct audit *audit, struct json_object *attack, struct stage *stage,
                      struct err *e)
{
	bool own = is_true(attack, "root");
	struct image image;
	char name[128];

	if (!own && audit->common_digest[0]) {
		memcpy(stage->digest, audit->common_digest, sizeof(stage->digest));
		return 0;
	}
	TRY(make_tree(audit, "root", stage->root, audit_text(attack, "attack"), e));
	TRY(text_format(name, sizeof(name), e, "%s",
	                own ? audit_text(attack, "attack") : "common"));
	TRY(image_import(&audit->store, stage->root, name, NULL, NULL, NULL, &image, e));
	memcpy(stage->digest, image.digest, sizeof(stage->digest));
	if (!own)
		memcpy(audit->common_digest, image.digest, sizeof(audit->common_digest));
	image_release(&image);
	return 0;
}

static int set_stage(struct audit *audit, struct json_object *attack, struct stage *stage,
                     struct err *e)
{
	const char *name = audit_text(attack, "attack");
	const char *scratch = audit->place;

	TRY(text_format(stage->bundle, sizeof(stage->bundle), e, "%s/scratch/bundle", scratch));
	TRY(text_format(stage->root, sizeof(stage->root), e, "%s/rootfs", stage->bundle));
	TRY(text_format(stage->id, sizeof(stage->id), e, "agentdock-audit-%d", (int)getpid()));
	stage->workspace[0] = '\0';
	if (is_true(attack, "workspace")) {
		TRY(text_format(stage->workspace, sizeof(stage->workspace), e,
		                "%s/scratch/workspace", scratch));
		TRY(make_tree(audit, "workspace", stage->workspace, name, e));
	}
	if (audit->runtime)
		return make_tree(audit, "root", stage->root, name, e);
	return make_image(audit, attack, stage, e);
}

static int add_words(struct string_list *list, const char *const words[], struct err *e)
{
	for (; *words; words++)
		TRY(string_list_add(list, *words, e));
	return 0;
}

static int add_array(struct string_list *list, struct json_object *attack, const char *key,
                     struct err *e)
{
	struct json_object *array = NULL;

	TRY(json_get_array(attack, key, true, &array, e));
	for (size_t i = 0; i < json_object_array_length(array); i++)
		TRY(string_list_add(
			list, json_object_get_string(json_object_array_get_idx(array, i)), e));
	return 0;
}

static int add_control(const struct audit *audit, struct json_object *attack,
                       struct string_list *list, struct err *e)
{
	struct string_list words = {0};
	int result = add_array(&words, attack, "control", e);

	for (size_t i = 0; i + 1 < words.count && result >= 0; i += 2) {
		const char *const option[] = {words.items[i], words.items[i + 1], NULL};

		if (!audit->alone || strcmp(audit->alone, option[1]) != 0)
			result = add_words(list, option, e);
	}
	string_list_release(&words);
	return result;
}

static int add_launcher(const struct audit *audit, struct json_object *attack,
                        const struct stage *stage, struct string_list *list, struct err *e)
{
	if (audit->runtime)
		return add_words(list,
		                 (const char *[]){audit->probes, "bundle", stage->bundle, stage->id,
		                                  audit->runtime, stage->workspace,
		                                  audit->config ? audit->config : "", "--", NULL},
		                 e);
	TRY(add_words(list,
	              (const char *[]){audit->own_program, "run", "--timeout", "60", "--image",
	                               stage->digest, NULL},
	              e));
	if (stage->workspace[0])
		TRY(add_words(list, (const char *[]){"--workspace", stage->workspace, NULL}, e));
	TRY(add_array(list, attack, "options", e));
	if (audit->control)
		TRY(add_control(audit, attack, list, e));
	return string_list_add(list, "--", e);
}

static int attack_on(const struct audit *audit, struct json_object *attack,
                     const struct stage *stage, struct json_object **verdict, struct err *e)
{
	__attribute__((cleanup(string_list_release))) struct string_list argv = {0};

	TRY(add_words(
		&argv,
		(const char *[]){audit->probes, "around", audit_text(attack, "attack"), "--", NULL},
		e));
	TRY(add_launcher(audit, attack, stage, &argv, e));
	return ask(audit, (const char *const *)argv.items, verdict, e);
}

int audit_attack(struct audit *audit, struct json_object *attack, struct json_object **verdict,
                 struct err *e)
{
	struct stage stage = {0};
	struct err ignored;
	int result = set_stage(audit, attack, &stage, e);

	if (result >= 0)
		result = attack_on(audit, attack, &stage, verdict, e);
	if (clear_scratch(audit, result < 0 ? &ignored : e) < 0 && result >= 0)
		return -e->code;
	return result;
}
