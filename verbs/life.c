/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that begin, change and end the life of a container. */
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/strings.h"
#include "container/lifecycle.h"
#include "container/store.h"
#include "verbs/journal.h"
#include "verbs/verbs.h"

/* Of the environment that systemd gives a service: sockets that it holds for us, and who to notify. */
static int take_environment(struct lifecycle_options *options, struct err *e)
{
	const char *count = getenv("LISTEN_FDS");
	uint64_t fds = 0;

	options->notify_socket = getenv("NOTIFY_SOCKET");
	if (options->notify_socket && !*options->notify_socket)
		options->notify_socket = NULL;
	if (count && *count && parse_u64(count, 1024, &fds, e) < 0)
		return err_in(e, "LISTEN_FDS");
	options->listen_fds = (int)fds;
	return 0;
}

int verb_create(struct request *request, struct err *e)
{
	TRY(take_environment(&request->lifecycle, e));
	return container_create(&request->lifecycle, e);
}

int verb_start(struct request *request, struct err *e)
{
	TRY(take_environment(&request->lifecycle, e));
	return container_start(&request->lifecycle, e);
}

int verb_run(struct request *request, struct err *e)
{
	int status = 125;

	TRY(take_environment(&request->lifecycle, e));
	if (container_run(&request->lifecycle, &status, e) < 0)
		journal_error(e->text);
	return status;
}

int verb_pause(struct request *request, struct err *e)
{
	return container_pause(&request->lifecycle, true, e);
}

int verb_resume(struct request *request, struct err *e)
{
	return container_pause(&request->lifecycle, false, e);
}

/* ---- kill, delete: of one or of several ---- */

typedef int act(struct request *request, int signo, struct err *e);

static int act_kill(struct request *request, int signo, struct err *e)
{
	return container_kill(&request->lifecycle, signo, request->all, e);
}

static int act_delete(struct request *request, int signo, struct err *e)
{
	(void)signo;
	return container_delete(&request->lifecycle, request->force, e);
}

/* Each of them is tried; the first failure is what is returned, the others are told at once. */
static int add_failure(const struct err *here, int so_far, struct err *e)
{
	if (so_far < 0)
		journal_error(here->text);
	else
		*e = *here;
	return so_far < 0 ? so_far : -here->code;
}

static int act_on(struct request *request, act *function, const char *id, int signo, int so_far,
                  struct err *e)
{
	struct err here;

	request->lifecycle.id = id;
	if (function(request, signo, &here) >= 0)
		return so_far;
	return add_failure(&here, so_far, e);
}

static int compile(regex_t *regex, const char *pattern, struct err *e)
{
	char why[200];
	int r = regcomp(regex, pattern, REG_EXTENDED);

	if (r == 0)
		return 0;
	regerror(r, regex, why, sizeof why);
	return err_set(e, EINVAL, "--regex: \"%s\": %s", pattern, why);
}

static int act_on_matching(struct request *request, act *function, const char *pattern, int signo,
                           int so_far, struct err *e)
{
	struct string_list ids = {0};
	struct err here;
	regex_t regex;
	int r = so_far;

	if (compile(&regex, pattern, &here) < 0)
		return add_failure(&here, so_far, e);
	if (store_list(request->lifecycle.root, &ids, &here) < 0)
		r = add_failure(&here, so_far, e);
	for (size_t i = 0; i < ids.count; i++) {
		regmatch_t match;

		if (regexec(&regex, ids.items[i], 1, &match, 0) == 0 && match.rm_so == 0 &&
		    ids.items[i][match.rm_eo] == '\0')
			r = act_on(request, function, ids.items[i], signo, r, e);
	}
	regfree(&regex);
	string_list_release(&ids);
	return r;
}

int verb_kill(struct request *request, struct err *e)
{
	const char *word = request->words_count > 1 ? request->words[1] : "TERM";
	int signo = strcmp(word, "0") == 0 ? 0 : signal_parse(word, e); /* 0 only asks: kill(2) */

	TRY(signo);
	if (request->regex)
		return act_on_matching(request, act_kill, request->words[0], signo, 0, e);
	return act_kill(request, signo, e);
}

int verb_delete(struct request *request, struct err *e)
{
	int r = 0;

	for (int i = 0; i < request->words_count; i++) {
		if (request->regex)
			r = act_on_matching(request, act_delete, request->words[i], 0, r, e);
		else
			r = act_on(request, act_delete, request->words[i], 0, r, e);
	}
	return r;
}
