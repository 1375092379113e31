/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `agentdock run`: options -> spec -> sandbox -> report. Standard output belongs to the command
 * (or, with --json, to the report); everything that we say goes to standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
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
	sigset_t mask_before;
	struct sandbox *left; /* of the sandbox, when it is over */
};

/* All but the host, which what is left of the sandbox needs. */
static void run_release(struct run *run)
{
	report_release(&run->report);
	seccomp_filter_release(&run->filter);
	image_release(&run->image);
	run_options_release(&run->options);
	close_fd(&run->cancelfd);
}

/* A supervisor that is stopped (Ctrl-Z) would leave its sandbox running without any time-out. */
static void ignore_stops(void)
{
	static const int stopping[] = {SIGTSTP, SIGTTIN, SIGTTOU};

	for (size_t i = 0; i < sizeof stopping / sizeof *stopping; i++)
		signal(stopping[i], SIG_IGN);
}

/*
 * From here on an interrupt is a request to cancel, which the supervisor reads; there is no moment
 * at which it could end us and leave something behind. A signal that was ignored (nohup) stays so.
 */
static int cancel_open(struct run *run, struct err *e)
{
	static const int canceling[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
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
	if (sigprocmask(SIG_BLOCK, &signals, &run->mask_before) < 0)
		return err_sys(e, "blocking signals");
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "signalfd");
	run->cancelfd = fd;
	return 0;
}

/* The sandbox is gone: what has come is answered by the report, what comes from now on ends us,
 * also where nobody reads what we print. */
static void cancel_close(struct run *run)
{
	struct signalfd_siginfo come;

	while (read(run->cancelfd, &come, sizeof come) == sizeof come)
		;
	close_fd(&run->cancelfd);
	sigprocmask(SIG_SETMASK, &run->mask_before, NULL);
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

static void log_places(const struct run *run)
{
	log_debug("state %s, run %s, groups below %s, archives by %s", cli_state_dir(),
	          cli_run_dir(), cli_cgroup_parent(), cli_archiver());
	log_debug("cgroups %s; image %s is %s", cgroup_mode_name(run->host.cgroups.mode),
	          run->options.image, run->image.digest);
}

static int prepare(struct run *run, struct err *e)
{
	struct run_options *options = &run->options;

	if (options->seccomp_profile) {
		TRY(load_profile(options->seccomp_profile, &run->filter, e));
		options->spec.filter = &run->filter;
	}
	if (cli_host_open(&run->host, e) < 0) {
		run->report.reason = REPORT_INTERNAL;
		return -e->code;
	}
	run->host_is_open = true;
	if (image_find(&run->host.store, options->image, &run->image, e) < 0) {
		struct err no_command;

		/* without one, that is what is wrong with the command line */
		if (run_options_take_image(options, NULL, &no_command) < 0)
			*e = no_command;
		return -e->code;
	}
	TRY(run_options_take_image(options, &run->image, e));
	log_places(run);
	ignore_stops();
	return cancel_open(run, e);
}

static int write_meta(const char *path, struct json_object *object, struct err *e)
{
	scoped_mem char *line = NULL;
	const char *text = json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (asprintf(&line, "%s\n", text) < 0)
		return err_set(e, ENOMEM, "--meta: out of memory");
	if (file_replace(AT_FDCWD, path, line, strlen(line), 0644, e) < 0)
		return err_in(e, "--meta");
	return 0;
}

static int print_report(struct json_object *object, struct err *e)
{
	int pretty = isatty(STDOUT_FILENO) ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
	                                   : JSON_C_TO_STRING_PLAIN;
	const char *text = json_object_to_json_string_ext(object,
	                                                  JSON_C_TO_STRING_NOSLASHESCAPE | pretty);

	if (fd_write_all(STDOUT_FILENO, text, strlen(text), e) < 0 ||
	    fd_write_all(STDOUT_FILENO, "\n", 1, e) < 0)
		return err_in(e, "writing the report to standard output");
	return 0;
}

static int write_report(const struct run_options *options, const struct report *report,
                        struct err *e)
{
	scoped_json object = NULL;

	if (!options->meta && !options->json)
		return 0;
	object = report_to_json(report);
	if (options->meta)
		TRY(write_meta(options->meta, object, e));
	return options->json ? print_report(object, e) : 0;
}

/* Whether the last byte of STREAM, which FD has shown, leaves the cursor within a line. */
static bool line_is_open(int fd, const struct report_stream *stream)
{
	if (!isatty(fd) || !stream->total_bytes)
		return false;
	if (stream->tail_bytes)
		return stream->tail[stream->tail_bytes - 1] != '\n';
	return stream->dropped_bytes || stream->head[stream->head_bytes - 1] != '\n';
}

/* Ends what the command left of a line and of its colours on the terminal that we write to next. */
static void leave_output(const struct report *report, bool colours)
{
	if (colours)
		fputs("\033[0m", stderr);
	if (line_is_open(STDOUT_FILENO, &report->out) || line_is_open(STDERR_FILENO, &report->err))
		fputc('\n', stderr);
}

/* A pipeline is told of what went wrong only; a person at a terminal, of all that matters. */
static void tell(const struct run_options *options, const struct report *report)
{
	bool person = isatty(STDERR_FILENO), colours = cli_colours(STDERR_FILENO);
	bool plain = report->reason == REPORT_EXITED && !report->kept[0];
	/* `agentdock run ... | head`: a shell says nothing of it either */
	bool piped = report->reason == REPORT_SIGNALED && report->signo == SIGPIPE &&
	             cli_reader_is_gone(STDOUT_FILENO);

	if (options->quiet && report->kept[0])
		fprintf(stderr, "agentdock: disk kept: %s\n", report->kept);
	if (options->quiet || options->json || piped || (plain && !person))
		return;
	if (person)
		leave_output(report, colours);
	summary_print(report, person, colours, stderr);
}

static void log_report(const struct report *report)
{
	for (int i = 0; i < report->rows_count; i++)
		log_debug("%s: %u us outside, %u us inside", report->rows[i].name,
		          report->rows[i].outside_us, report->rows[i].inside_us);
	for (int i = 0; i < REPORT_PHASES; i++)
		log_debug("phase %s: %" PRIu64 " us", report_phase_name((enum report_phase)i),
		          report->phase_us[i]);
	log_debug("sandbox %s: %s, disk %s%s%s", report->id, report_reason_name(report->reason),
	          report->disk_backing, report->kept[0] ? ", kept at " : "", report->kept);
}

static int run(struct run *run, struct err *e)
{
	const struct run_options *options = &run->options;
	struct sandbox_watch watch = {.livefds = {STDOUT_FILENO, STDERR_FILENO}};
	struct report *report = &run->report;
	int status, ran;

	if (options->json)
		watch.livefds[0] = watch.livefds[1] = -1;
	watch.cancelfd = run->cancelfd;
	ran = sandbox_run(&run->host, &options->spec, &watch, report, &run->left, e);
	cancel_close(run);
	if (ran < 0)
		cli_fail(&report->error);
	else
		tell(options, report);
	log_report(report);
	status = report_exit_status(report);
	TRY(write_report(options, report, e));
	if (options->explain)
		TRY(summary_explain(report, stderr, e));
	return status;
}

/* There is no sandbox to report on, but who asked for JSON is to get some. */
static int refuse(struct run *run, const struct err *why)
{
	struct err e;

	cli_fail(why);
	if (!run->options.json)
		return CLI_FAILED;
	run->report.error = *why;
	scoped_json object = report_to_json(&run->report);
	return print_report(object, &e) < 0 ? cli_fail(&e) : CLI_FAILED;
}

int cmd_run(int argc, char **argv)
{
	/* static for its size: a report and an image are too large for a stack frame */
	static struct run state = {
		.cancelfd = -1,
		.report = {.reason = REPORT_START_FAILED,
	                   .exit_code = -1,
	                   .start_exit_code = CLI_FAILED},
	};
	struct err e = {0};
	int status;

	if (run_options_parse(&state.options, argc, argv, &e) < 0) {
		status = refuse(&state, &e);
	} else if (state.options.help) {
		run_options_help();
		status = cli_finish_stdout();
	} else if (prepare(&state, &e) < 0) {
		status = refuse(&state, &e);
	} else {
		status = run(&state, &e);
		if (status < 0)
			status = cli_fail(&e);
	}
	run_release(&state);
	if (state.left)
		sandbox_leave(state.left, status);
	if (state.host_is_open)
		sandbox_host_release(&state.host);
	return status;
}
