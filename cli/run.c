/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `agentdock run`: options -> spec -> sandbox -> report. Standard output belongs to the command
 * (or, with --json, to the report); everything that we say goes to standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "cli/cli.h"
#include "cli/run_options.h"
#include "cli/summary.h"

enum { PROFILE_LIMIT_BYTES = 1 << 20 };

/* Everything that a run holds; released in one place. */
struct run {
	struct run_options options;
	struct sandbox_host host;
	struct image image;
	struct seccomp_filter filter;
	struct report report;
	bool host_is_open;
	int cancelfd;
};

static void run_release(struct run *run)
{
	report_release(&run->report);
	seccomp_filter_release(&run->filter);
	image_release(&run->image);
	if (run->host_is_open)
		sandbox_host_release(&run->host);
	run_options_release(&run->options);
	close_fd(&run->cancelfd);
}

/*
 * From here on an interrupt is a request to cancel, which the supervisor reads; there is no moment
 * at which it could end us and leave something behind. A signal that was ignored (nohup) stays so.
 */
static int cancel_open(int *cancelfd, struct err *e)
{
	static const int canceling[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof canceling / sizeof *canceling; i++) {
		struct sigaction action;

		/* a blocked signal is queued even where it is ignored */
		if (sigaction(canceling[i], NULL, &action) < 0)
			return err_sys(e, "sigaction");
		if (action.sa_handler != SIG_IGN)
			sigaddset(&signals, canceling[i]);
	}
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return err_sys(e, "blocking signals");
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "signalfd");
	*cancelfd = fd;
	return 0;
}

static int load_profile(const char *path, struct seccomp_filter *filter, struct err *e)
{
	scoped_mem char *json = NULL;
	size_t length;

	if (file_read_all(AT_FDCWD, path, PROFILE_LIMIT_BYTES, &json, &length, e) < 0)
		return err_in(e, "--seccomp");
	if (seccomp_filter_compile(json, length, filter, e) < 0)
		return err_in(e, "--seccomp: %s", path);
	return 0;
}

static int prepare(struct run *run, struct err *e)
{
	struct run_options *options = &run->options;

	if (options->seccomp_profile) {
		TRY(load_profile(options->seccomp_profile, &run->filter, e));
		options->spec.filter = &run->filter;
	}
	TRY(cli_host_open(&run->host, e));
	run->host_is_open = true;
	TRY(image_find(&run->host.store, options->image, &run->image, e));
	options->spec.image = &run->image;
	return cancel_open(&run->cancelfd, e);
}

static int write_report(const struct run_options *options, const struct report *report,
                        struct err *e)
{
	scoped_json object = report_to_json(report);
	const char *text;
	int style = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;

	if (options->meta) {
		scoped_mem char *line = NULL;

		if (asprintf(&line, "%s\n", json_object_to_json_string_ext(object, style)) < 0)
			return err_set(e, ENOMEM, "--meta: out of memory");
		if (file_replace(AT_FDCWD, options->meta, line, strlen(line), 0644, e) < 0)
			return err_in(e, "--meta");
	}
	if (!options->json)
		return 0;
	if (isatty(STDOUT_FILENO))
		style = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
		        JSON_C_TO_STRING_NOSLASHESCAPE;
	text = json_object_to_json_string_ext(object, style);
	if (fd_write_all(STDOUT_FILENO, text, strlen(text), e) < 0 ||
	    fd_write_all(STDOUT_FILENO, "\n", 1, e) < 0)
		return err_in(e, "writing the report to standard output");
	return 0;
}

/* A pipeline is told of what went wrong only; a person at a terminal, of all that matters. */
static void tell(const struct run_options *options, const struct report *report)
{
	bool person = isatty(STDERR_FILENO);
	bool plain = report->reason == REPORT_EXITED && !report->kept[0];

	if (options->quiet || options->json || (plain && !person))
		return;
	summary_print(report, person, cli_colours(STDERR_FILENO), stderr);
}

static int run(struct run *run, struct err *e)
{
	const struct run_options *options = &run->options;
	struct sandbox_watch watch = {.livefds = {STDOUT_FILENO, STDERR_FILENO}};
	struct report *report = &run->report;
	int status;

	TRY(prepare(run, e));
	if (options->json)
		watch.livefds[0] = watch.livefds[1] = -1;
	watch.cancelfd = run->cancelfd;
	if (sandbox_run(&run->host, &options->spec, &watch, report, e) < 0)
		cli_fail(&report->error);
	else
		tell(options, report);
	status = report_exit_status(report);
	TRY(write_report(options, report, e));
	if (options->explain)
		TRY(summary_explain(report, stderr, e));
	return status;
}

int cmd_run(int argc, char **argv)
{
	/* static for its size: a report and an image are too large for a stack frame */
	static struct run state = {.cancelfd = -1};
	struct err e = {0};
	int status;

	if (run_options_parse(&state.options, argc, argv, &e) < 0)
		status = -1;
	else if (state.options.help) {
		run_options_help();
		status = cli_finish_stdout();
	} else
		status = run(&state, &e);
	run_release(&state);
	return status < 0 ? cli_fail(&e) : status;
}
