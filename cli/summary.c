/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report in words, in lines that fit a terminal of 80 columns. What this host could not measure
 * (0) is left out rather than shown as nothing used.
 */
#include "cli/summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "base/table.h"

enum { LINE_SIZE = 1024, NUMBER_SIZE = 32 };

/* A line that is put together bit by bit; what does not fit is cut. */
struct line {
	char text[LINE_SIZE];
	size_t used;
};

PRINTF_LIKE(2, 3) static void line_add(struct line *line, const char *fmt, ...)
{
	size_t left = sizeof(line->text) - line->used;
	va_list args;
	int length;

	va_start(args, fmt);
	length = vsnprintf(line->text + line->used, left, fmt, args);
	va_end(args);
	if (length > 0)
		line->used += (size_t)length < left ? (size_t)length : left - 1;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* ---- how it ended ---- */

static void add_cause(struct line *line, const struct report *report)
{
	char cause[4 * ERR_TEXT_SIZE + 1];

	if (report->error.text[0])
		line_add(line, ": %s", text_printable(report->error.text, cause, sizeof(cause)));
}

static bool inodes_are_gone(const struct report *report)
{
	return report->inodes_limit && report->inodes_used >= report->inodes_limit;
}

static void add_ending(struct line *line, const struct report *report)
{
	char name[NUMBER_SIZE], time[NUMBER_SIZE];

	switch (report->reason) {
	case REPORT_EXITED:
		line_add(line, "exited %d", report->exit_code);
		break;
	case REPORT_SIGNALED:
		line_add(line, "killed by %s", signal_name(report->signo, name, sizeof(name)));
		break;
	case REPORT_TIMEOUT:
		line_add(line, "timed out after %s",
		         format_duration_us(report->timeout_ms * 1000, time, sizeof(time)));
		break;
	case REPORT_OOM:
		line_add(line, "out of memory");
		break;
	case REPORT_CANCELED:
		line_add(line, "canceled");
		if (report->cancel_signo)
			line_add(line, " by %s",
			         signal_name(report->cancel_signo, name, sizeof(name)));
		break;
	case REPORT_DISK_FULL:
		line_add(line, "exited %d with %s", report->exit_code,
		         inodes_are_gone(report) ? "no inode left" : "its disk full");
		break;
	case REPORT_START_FAILED:
		line_add(line, "could not start");
		add_cause(line, report);
		break;
	case REPORT_CHECKOUT_FAILED:
	case REPORT_WORKER_LOST:
	case REPORT_INTERNAL:
		line_add(line, "%s", report_reason_name(report->reason));
		add_cause(line, report);
		break;
	}
}

/* ---- what it used ---- */

static void add_time(struct line *line, const struct report *report)
{
	char time[NUMBER_SIZE];

	line_add(line, " in %s", format_duration_us(report->wall_us, time, sizeof(time)));
	line_add(line, " · cpu %s",
	         format_duration_us(report->cpu_user_us + report->cpu_system_us, time,
	                            sizeof(time)));
}

static const char *separator(const struct line *line)
{
	return line->used ? " · " : "";
}

static void add_bytes(struct line *line, const char *what, uint64_t used, uint64_t limit)
{
	char amount[NUMBER_SIZE], bound[NUMBER_SIZE];

	if (!used)
		return;
	line_add(line, "%s%s %s", separator(line), what,
	         format_bytes(used, amount, sizeof(amount)));
	if (limit)
		line_add(line, " of %s", format_bytes(limit, bound, sizeof(bound)));
}

static void print_usage(const struct report *report, FILE *out)
{
	struct line line = {.used = 0};

	add_bytes(&line, "memory", report->memory_peak_bytes, report->memory_limit_bytes);
	if (report->pids_peak)
		line_add(&line, "%spids %" PRIu64 " of %" PRIu64, separator(&line),
		         report->pids_peak, report->pids_limit);
	if (inodes_are_gone(report))
		line_add(&line, "%sinodes %" PRIu64 " of %" PRIu64, separator(&line),
		         report->inodes_used, report->inodes_limit);
	else
		add_bytes(&line, "disk", report->disk_used_bytes, report->disk_limit_bytes);
	if (line.used)
		fprintf(out, "  %s\n", line.text);
}

static bool has_run(const struct report *report)
{
	return report->reason != REPORT_START_FAILED && report->reason != REPORT_INTERNAL &&
	       report->reason != REPORT_CHECKOUT_FAILED;
}

/* ---- what is worth knowing beside it ---- */

static void print_truncated(const struct report_stream *stream, const char *name, FILE *out)
{
	char dropped[NUMBER_SIZE], total[NUMBER_SIZE];

	if (stream->dropped_bytes)
		fprintf(out, "  %s: the report keeps its ends; %s of %s between are not in it\n",
		        name, format_bytes(stream->dropped_bytes, dropped, sizeof(dropped)),
		        format_bytes(stream->total_bytes, total, sizeof(total)));
}

static void print_limits(const struct report *report, FILE *out)
{
	char time[NUMBER_SIZE];

	if (report->oom_kills)
		fprintf(out, "  memory: %" PRIu64 " process%s killed at the limit\n",
		        report->oom_kills, report->oom_kills == 1 ? "" : "es");
	if (report->pids_refused)
		fprintf(out,
		        "  pids: %" PRIu64 " new process%s refused at the limit of %" PRIu64 "\n",
		        report->pids_refused, report->pids_refused == 1 ? "" : "es",
		        report->pids_limit);
	/* a moment of it is usual: only what a person would feel is worth a line */
	if (report->throttled_us > 100000 && report->throttled_us > report->wall_us / 10)
		fprintf(out, "  cpu: held back for %s by the limit of %g CPUs\n",
		        format_duration_us(report->throttled_us, time, sizeof(time)),
		        (double)report->cpu_limit_millis / 1000);
	if (report->missing[0])
		fprintf(out, "  not limited, as allowed: %s\n", report->missing);
}

static void print_denied(const struct report *report, FILE *out)
{
	struct line line = {.used = 0};
	char name[4 * sizeof(report->denied[0].name) + 1];
	uint64_t named = 0;

	if (!report->denied_total)
		return;
	for (int i = 0; i < report->denied_count; i++) {
		named += report->denied[i].count;
		line_add(&line, "%s%s", i ? ", " : "",
		         text_printable(report->denied[i].name, name, sizeof(name)));
		if (report->denied[i].count > 1)
			line_add(&line, " (%" PRIu64 ")", report->denied[i].count);
	}
	if (report->denied_total > named)
		line_add(&line, "%s%" PRIu64 " of other kinds", named ? ", " : "",
		         report->denied_total - named);
	fprintf(out, "  denied system calls: %s\n", line.text);
}

static void print_signals(const struct report *report, FILE *out)
{
	struct line line = {.used = 0};
	char name[NUMBER_SIZE], time[NUMBER_SIZE];

	if (!report->signals_sent_count)
		return;
	if (report->reason != REPORT_TIMEOUT && report->reason != REPORT_CANCELED) {
		/* --drain, but for the time that it took to act on it */
		uint64_t at_us = report->signals_sent[0].at_ms * 1000;
		uint64_t killed_us = at_us > report->wall_us ? at_us - report->wall_us : 0;

		killed_us = (killed_us + 5000) / 10000 * 10000;
		fprintf(out,
		        "  %s after the command its background processes were killed (--drain)\n",
		        format_duration_us(killed_us, time, sizeof(time)));
		return;
	}
	for (int i = 0; i < report->signals_sent_count; i++)
		line_add(&line, "%s%s at %s", i ? ", " : "",
		         signal_name(report->signals_sent[i].signo, name, sizeof(name)),
		         format_duration_us(report->signals_sent[i].at_ms * 1000, time,
		                            sizeof(time)));
	fprintf(out, "  signal%s sent: %s\n", plural((uint64_t)report->signals_sent_count),
	        line.text);
}

static const char *colour_of(const struct report *report)
{
	return report->reason == REPORT_EXITED && report->exit_code == 0 ? "\033[32m" : "\033[31m";
}

void summary_print(const struct report *report, bool details, bool colours, FILE *out)
{
	struct line line = {.used = 0};
	size_t ending;

	add_ending(&line, report);
	ending = line.used;
	if (has_run(report))
		add_time(&line, report);
	fprintf(out, "%s%.*s%s%s\n", colours ? colour_of(report) : "", (int)ending, line.text,
	        colours ? "\033[0m" : "", line.text + ending);
	if (has_run(report))
		print_usage(report, out);
	if (report->kept[0])
		fprintf(out, "  disk kept: %s\n", report->kept);
	if (!details)
		return;
	print_limits(report, out);
	print_denied(report, out);
	print_signals(report, out);
	print_truncated(&report->out, "stdout", out);
	print_truncated(&report->err, "stderr", out);
}

/* ---- --explain ---- */

static void release_table(struct table *table)
{
	table_release(table);
}

static int explain_row(struct table *table, const char *name, uint64_t outside_us,
                       uint64_t inside_us, struct err *e)
{
	const uint64_t times[] = {outside_us, inside_us, outside_us + inside_us};
	char time[NUMBER_SIZE];

	TRY(table_cell(table, e, "%s", name));
	for (int i = 0; i < 3; i++)
		TRY(table_cell(table, e, "%s",
		               times[i] ? format_duration_us(times[i], time, sizeof(time)) : "-"));
	return 0;
}

int summary_explain(const struct report *report, FILE *out, struct err *e)
{
	static const char *const header[] = {"step", ">outside", ">inside", ">total", NULL};
	__attribute__((cleanup(release_table))) struct table table = {0};
	uint64_t outside_us = 0, inside_us = 0;

	TRY(table_start(&table, header, e));
	for (int i = 0; i < report->rows_count; i++) {
		const struct report_row *row = &report->rows[i];

		outside_us += row->outside_us;
		inside_us += row->inside_us;
		TRY(explain_row(&table, row->name, row->outside_us, row->inside_us, e));
	}
	TRY(explain_row(&table, "all", outside_us, inside_us, e));
	table_print(&table, out);
	return 0;
}
