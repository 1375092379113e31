/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `exec`: what process is to be added. It begins as --process says, or else as the container's own
 * first process, and each option changes a part of it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "container/lifecycle.h"
#include "container/store.h"
#include "oci/parts.h"
#include "verbs/journal.h"
#include "verbs/verbs.h"

/* A process that is changed in part: what is its own, and what the rest belongs to. */
struct added {
	struct oci_process process;
	struct oci_user user;
	struct oci_capabilities capabilities;
	const char **env, **bounding, **effective, **permitted; /* owned */
	uint32_t *groups;                                       /* owned */
	struct oci_store store;                                 /* of --process */
	struct store_entry entry;                               /* of the container */
};

static void added_release(struct added *added)
{
	free(added->env);
	free(added->bounding);
	free(added->effective);
	free(added->permitted);
	free(added->groups);
	oci_store_release(&added->store);
	store_release(&added->entry);
}

/* ---- where it begins ---- */

static int read_process(struct added *added, const char *path, struct err *e)
{
	scoped_mem char *text = NULL;
	size_t length;

	TRY(read_document(path, &text, &length, e));
	if (shape_parse(text, length, &oci_shape_process, &added->process, &added->store, e) < 0)
		return err_in(e, "--process %s: process", path);
	return 0;
}

static int copy_first_process(struct added *added, struct request *request, struct err *e)
{
	TRY(store_open(request->lifecycle.root, request->lifecycle.id, STORE_UNLOCKED,
	               &added->entry, e));
	TRY(store_config(&added->entry, e));
	if (!added->entry.config.process)
		return err_set(e, EINVAL,
		               "container %s: its config.json has no process to begin with",
		               request->lifecycle.id);
	added->process = *added->entry.config.process;
	added->process.terminal = false;
	added->process.console_size = NULL;
	added->process.args = (struct oci_strings){0};
	return 0;
}

/* ---- what options change ---- */

static int append(struct oci_strings *list, const struct string_list *more, const char ***owned,
                  struct err *e)
{
	const char **items = calloc(list->count + more->count + 1, sizeof *items);

	if (!items)
		return err_set(e, ENOMEM, "no memory for the process");
	if (list->count > 0)
		memcpy(items, list->items, list->count * sizeof *items);
	for (size_t i = 0; i < more->count; i++)
		items[list->count + i] = more->items[i];
	list->items = *owned = items;
	list->count += more->count;
	return 0;
}

/* Later assignments win where programs look from the end, and getenv(3) looks from the beginning: so
 * a variable that is set anew replaces what was there. */
static int change_env(struct added *added, const struct string_list *given, struct err *e)
{
	struct oci_strings kept = added->process.env;
	size_t left = 0;

	for (size_t i = 0; i < given->count; i++)
		if (!strchr(given->items[i], '=') || *given->items[i] == '=')
			return err_set(e, EINVAL, "--env: \"%s\" is not KEY=VALUE",
			               given->items[i]);
	TRY(append(&kept, given, &added->env, e));
	for (size_t i = 0; i < kept.count; i++) {
		size_t key = strcspn(kept.items[i], "=") + 1;
		bool again = false;

		for (size_t j = i + 1; j < kept.count && !again; j++)
			again = strncmp(kept.items[i], kept.items[j], key) == 0;
		if (!again)
			added->env[left++] = kept.items[i];
	}
	added->env[left] = NULL;
	added->process.env = (struct oci_strings){added->env, left};
	return 0;
}

/* The groups of another user are not this one's: they are left out. */
static int change_user(struct added *added, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	char uid[16] = "";
	uint64_t number;

	/* the largest of all means "no change" to the kernel */
	if (text_format(uid, sizeof uid, e, "%.*s", colon ? (int)(colon - text) : (int)strlen(text),
	                text) < 0 ||
	    parse_u64(uid, UINT32_MAX - 1, &number, e) < 0)
		return err_in(e, "--user: the number of a user is wanted; names are not looked up");
	added->user.uid = (uint32_t)number;
	added->user.additional_gids = (struct oci_ids){0};
	if (!colon)
		return 0;
	if (parse_u64(colon + 1, UINT32_MAX - 1, &number, e) < 0)
		return err_in(e,
		              "--user: the number of a group is wanted; names are not looked up");
	added->user.gid = (uint32_t)number;
	return 0;
}

static int add_groups(struct added *added, const struct string_list *given, struct err *e)
{
	struct oci_ids *ids = &added->user.additional_gids;
	uint64_t number;

	added->groups = calloc(ids->count + given->count, sizeof *added->groups);
	if (!added->groups)
		return err_set(e, ENOMEM, "no memory for groups");
	if (ids->count > 0)
		memcpy(added->groups, ids->items, ids->count * sizeof *ids->items);
	ids->items = added->groups;
	for (size_t i = 0; i < given->count; i++) {
		if (parse_u64(given->items[i], UINT32_MAX - 1, &number, e) < 0)
			return err_in(e, "--additional-gids");
		ids->items[ids->count++] = (uint32_t)number;
	}
	return 0;
}

/* Not inheritable nor ambient: only this process has them, as far as its user may. */
static int add_capabilities(struct added *added, const struct string_list *given, struct err *e)
{
	struct oci_capabilities *own = &added->capabilities;

	if (added->process.capabilities)
		*own = *added->process.capabilities;
	TRY(append(&own->bounding, given, &added->bounding, e));
	TRY(append(&own->effective, given, &added->effective, e));
	TRY(append(&own->permitted, given, &added->permitted, e));
	added->process.capabilities = own;
	return 0;
}

static int change(struct added *added, struct request *request, struct err *e)
{
	struct oci_process *process = &added->process;

	if (request->words_count > 1)
		process->args = (struct oci_strings){(const char **)(uintptr_t)(request->words + 1),
		                                     (size_t)request->words_count - 1};
	if (process->args.count == 0)
		return err_set(e, EINVAL, "exec: neither a command nor --process");
	process->terminal |= request->tty;
	process->no_new_privileges |= request->no_new_privs;
	if (request->cwd)
		process->cwd = request->cwd;
	if (*process->cwd != '/')
		return err_set(e, EINVAL, "--cwd: %s is not an absolute path", process->cwd);
	if (request->lifecycle.apparmor)
		process->apparmor_profile = request->lifecycle.apparmor;
	if (request->lifecycle.process_label)
		process->selinux_label = request->lifecycle.process_label;
	if (process->user)
		added->user = *process->user;
	process->user = &added->user;
	if (request->user)
		TRY(change_user(added, request->user, e));
	if (request->groups.count > 0)
		TRY(add_groups(added, &request->groups, e));
	if (request->env.count > 0)
		TRY(change_env(added, &request->env, e));
	if (request->capabilities.count > 0)
		TRY(add_capabilities(added, &request->capabilities, e));
	return 0;
}

int verb_exec(struct request *request, struct err *e)
{
	struct added added = {.entry.fd = -1};
	int r, status = 125;

	if (request->file)
		r = read_process(&added, request->file, e);
	else
		r = copy_first_process(&added, request, e);
	if (r >= 0)
		r = change(&added, request, e);
	if (r >= 0)
		r = container_exec(&request->lifecycle, &added.process, &status, e);
	if (r < 0)
		journal_error(e->text);
	added_release(&added);
	return status;
}
