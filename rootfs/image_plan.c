/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a packed image: has it made by agentdock-archive, and believes its shape only after
 * a look at all of it. */
#include "rootfs/image_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scoped.h"
#include "rootfs/archiver.h"
#include "rootfs/image_store.h"

/* The text behind TEXT, or NULL where it is not ended before END. */
static const char *next_text(const char *text, const char *end)
{
	const char *nul = memchr(text, '\0', (size_t)(end - text));

	return nul ? nul + 1 : NULL;
}

static int check_layer(const struct image_plan_layer *layer, int number, struct err *e)
{
	if (!memchr(layer->digest, '\0', sizeof layer->digest) ||
	    !memchr(layer->diff_id, '\0', sizeof layer->diff_id) ||
	    !memchr(layer->path, '\0', sizeof layer->path))
		return err_set(e, EBADMSG, "layer %d: a text that does not end", number);
	if (!image_digest_valid(layer->diff_id) ||
	    (*layer->digest && !image_digest_valid(layer->digest)) || !*layer->path)
		return err_set(e, EBADMSG, "layer %d: no digest or no path", number);
	return 0;
}

static int check_texts(const struct image_plan *plan, struct err *e)
{
	const char *end = plan->text + sizeof plan->text, *text = plan->text;
	uint32_t counts[] = {plan->env_count, plan->entrypoint_count, plan->cmd_count};
	uint32_t texts = 2;

	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		if (counts[i] > IMAGE_PLAN_WORDS_MAX)
			return err_set(e, EBADMSG, "%u words, and %d are the most", counts[i],
			               IMAGE_PLAN_WORDS_MAX);
		texts += counts[i];
	}
	for (uint32_t i = 0; i < texts; i++) {
		const char *next = next_text(text, end);

		if (!next)
			return err_set(e, EBADMSG, "a text that does not end");
		if (utf8_valid_prefix(text, (size_t)(next - text)) < (size_t)(next - text))
			return err_set(e, EBADMSG, "a text that is not UTF-8");
		if (i >= 2 && i < 2 + plan->env_count && (!strchr(text, '=') || *text == '='))
			return err_set(e, EBADMSG, "an env that is no KEY=VALUE");
		text = next;
	}
	return 0;
}

int image_plan_check(const struct image_plan *plan, struct err *e)
{
	if (!memchr(plan->architecture, '\0', sizeof plan->architecture) ||
	    !image_machine_known(plan->architecture))
		return err_set(e, EBADMSG, "no machine that is known");
	if (plan->layers_count < 1 || plan->layers_count > IMAGE_LAYERS_MAX)
		return err_set(e, EBADMSG, "%d layers", plan->layers_count);
	for (int i = 0; i < plan->layers_count; i++)
		TRY(check_layer(&plan->layers[i], i + 1, e));
	return check_texts(plan, e);
}

static int add_words(struct string_list *list, const char **text, uint32_t count, struct err *e)
{
	for (uint32_t i = 0; i < count; i++) {
		TRY(string_list_add(list, *text, e));
		*text += strlen(*text) + 1;
	}
	return 0;
}

static int take_text(char *into, size_t size, const char *what, const char **text, struct err *e)
{
	size_t length = strlen(*text);

	if (length >= size)
		return err_set(e, EINVAL, "the config's %s has %zu bytes; %zu are the most", what,
		               length, size - 1);
	memcpy(into, *text, length + 1);
	*text += length + 1;
	return 0;
}

int image_plan_config(const struct image_plan *plan, struct image *image, struct err *e)
{
	const char *text = plan->text;

	memcpy(image->architecture, plan->architecture, sizeof image->architecture);
	TRY(take_text(image->user, sizeof image->user, "user", &text, e));
	TRY(take_text(image->workdir, sizeof image->workdir, "working directory", &text, e));
	TRY(add_words(&image->env, &text, plan->env_count, e));
	TRY(add_words(&image->entrypoint, &text, plan->entrypoint_count, e));
	return add_words(&image->cmd, &text, plan->cmd_count, e);
}

/* ---- the child ---- */

struct planning {
	struct archiver child;
	int resultfd, planfd;
};

static void planning_release(struct planning *planning)
{
	archiver_release(&planning->child);
	close_fd(&planning->resultfd);
	close_fd(&planning->planfd);
}

static int start(struct planning *planning, const struct image_store *store, int dirfd,
                 const struct image_choice *choice, struct err *e)
{
	const char *const argv[] = {
		"agentdock-archive",
		"plan",
		"--from",
		"7",
		"--plan-fd",
		"6",
		"--result-fd",
		"3",
		"--arch",
		choice && choice->architecture ? choice->architecture : image_machine(),
		choice && choice->ref ? "--ref" : NULL,
		choice ? choice->ref : NULL,
		NULL,
	};
	int fds[ARCHIVER_FDS] = {-1, -1, -1, -1, -1, -1, -1, -1};

	TRY(archiver_complaint(&planning->child, e));
	planning->resultfd = archiver_memory("result", sizeof(struct archive_result), e);
	TRY(planning->resultfd);
	planning->planfd = archiver_memory("plan", sizeof(struct image_plan), e);
	TRY(planning->planfd);
	fds[ARCHIVER_STDIN] = fds[ARCHIVER_STDOUT] = planning->child.complaintfd;
	fds[ARCHIVER_STDERR] = planning->child.complaintfd;
	fds[ARCHIVER_RESULT] = planning->resultfd;
	fds[ARCHIVER_EXTRA] = planning->planfd;
	fds[ARCHIVER_FROM] = dirfd;
	return archiver_start(&planning->child, store->archiver, argv, -1, fds, e);
}

int image_plan_make(const struct image_store *store, int dirfd, const char *source,
                    const struct image_choice *choice, struct image_plan *plan, struct err *e)
{
	__attribute__((cleanup(planning_release))) struct planning planning = {
		.child = ARCHIVER_NONE,
		.resultfd = -1,
		.planfd = -1,
	};
	struct archive_result result = {0};

	TRY(start(&planning, store, dirfd, choice, e));
	TRY(archiver_wait(&planning.child, e));
	TRY(archiver_result(&planning.child, planning.resultfd, source, store->path, &result, e));
	if (pread(planning.planfd, plan, sizeof *plan, 0) != (ssize_t)sizeof *plan)
		return err_sys(e, "reading the plan of %s", source);
	if (image_plan_check(plan, e) < 0)
		return err_in(e, "%s: agentdock-archive plan said what cannot be", source);
	return 0;
}
