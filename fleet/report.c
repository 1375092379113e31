/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report to JSON and to an exit status. Owns no state. What is not known (a peak that the kernel
 * does not tell) and what was not wanted (a limit of 0) is null, never 0. The bytes of a stream
 * always come back exactly.
 */
#include "fleet/report.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"

const char *report_reason_name(enum report_reason reason)
{
	static const char *const names[REPORT_REASONS] = {
		[REPORT_EXITED] = "exited",
		[REPORT_SIGNALED] = "signaled",
		[REPORT_TIMEOUT] = "timeout",
		[REPORT_OOM] = "oom",
		[REPORT_CANCELED] = "canceled",
		[REPORT_DISK_FULL] = "disk_full",
		[REPORT_START_FAILED] = "start_failed",
		[REPORT_CHECKOUT_FAILED] = "checkout_failed",
		[REPORT_WORKER_LOST] = "worker_lost",
		[REPORT_INTERNAL] = "internal",
	};

	return names[reason];
}

const char *report_phase_name(enum report_phase phase)
{
	static const char *const names[REPORT_PHASES] = {
		[REPORT_QUEUE] = "queue",   [REPORT_CHECKOUT] = "checkout",
		[REPORT_UNPACK] = "unpack", [REPORT_START] = "start",
		[REPORT_RUN] = "run",       [REPORT_COLLECT] = "collect",
	};

	return names[phase];
}

enum { STATUS_TIMEOUT = 124, STATUS_OURS = 125, STATUS_SIGNAL = 128 };

int report_exit_status(const struct report *report)
{
	switch (report->reason) {
	case REPORT_DISK_FULL:
		/* the workspace did not fit: no command has ended */
		if (report->start_exit_code)
			return report->start_exit_code;
		__attribute__((fallthrough));
	case REPORT_EXITED:
		/* a full disk can also end a command by a signal, such as SIGBUS */
		return report->exit_code >= 0 ? report->exit_code : STATUS_SIGNAL + report->signo;
	case REPORT_SIGNALED:
		return STATUS_SIGNAL + report->signo;
	case REPORT_TIMEOUT:
		return STATUS_TIMEOUT;
	case REPORT_OOM:
		return STATUS_SIGNAL + SIGKILL;
	case REPORT_CANCELED:
		return STATUS_SIGNAL + (report->cancel_signo ? report->cancel_signo : SIGINT);
	case REPORT_START_FAILED:
		return report->start_exit_code ? report->start_exit_code : STATUS_OURS;
	case REPORT_CHECKOUT_FAILED:
	case REPORT_WORKER_LOST:
	case REPORT_INTERNAL:
		break;
	}
	return STATUS_OURS;
}

/* ---- JSON: single values ---- */

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	if (json_object_object_add(object, key, value) < 0)
		abort();
}

static void add_null(struct json_object *object, const char *key)
{
	add(object, key, NULL);
}

static void add_text_or_null(struct json_object *object, const char *key, const char *text)
{
	if (*text)
		json_add_string(object, key, text);
	else
		add_null(object, key);
}

static void add_u64_or_null(struct json_object *object, const char *key, uint64_t value)
{
	if (value)
		json_add_u64(object, key, value);
	else
		add_null(object, key);
}

static void add_signal_or_null(struct json_object *object, const char *key, int signo)
{
	char name[16];

	if (signo)
		json_add_string(object, key, signal_name(signo, name, sizeof name));
	else
		add_null(object, key);
}

/* Thousandths as a number with three decimals. */
static void add_thousandths(struct json_object *object, const char *key, uint64_t value)
{
	struct json_object *number;
	char text[32];

	snprintf(text, sizeof text, "%" PRIu64 ".%03" PRIu64, value / 1000, value % 1000);
	number = json_object_new_double_s((double)value / 1000, text);
	if (!number)
		abort();
	add(object, key, number);
}

static struct json_object *append_object(struct json_object *array)
{
	struct json_object *child = json_object_new_object();

	if (!child || json_object_array_add(array, child) < 0)
		abort();
	return child;
}

/* ---- JSON: groups ---- */

static void add_ending(struct json_object *object, const struct report *report)
{
	json_add_string(object, "id", report->id);
	json_add_string(object, "reason", report_reason_name(report->reason));
	if (report->exit_code >= 0)
		json_add_u64(object, "exit_code", (uint64_t)report->exit_code);
	else
		add_null(object, "exit_code");
	json_add_u64(object, "exit_status", (uint64_t)report_exit_status(report));
	add_signal_or_null(object, "signal", report->signo);
	add_text_or_null(object, "error", report->error.text);
}

static void add_evidence(struct json_object *object, const struct report *report)
{
	struct json_object *evidence = json_add_object(object, "evidence");
	struct json_object *array, *row;
	char name[16];

	json_add_u64(evidence, "oom_kills", report->oom_kills);
	json_add_u64(evidence, "pids_refused", report->pids_refused);
	add_signal_or_null(evidence, "cancel_signal", report->cancel_signo);
	array = json_add_array(evidence, "signals_sent");
	for (int i = 0; i < report->signals_sent_count; i++) {
		row = append_object(array);
		json_add_string(row, "signal",
		                signal_name(report->signals_sent[i].signo, name, sizeof name));
		json_add_u64(row, "at_ms", report->signals_sent[i].at_ms);
	}
	array = json_add_array(evidence, "denied_calls");
	for (int i = 0; i < report->denied_count; i++) {
		row = append_object(array);
		json_add_string(row, "name", report->denied[i].name);
		json_add_u64(row, "count", report->denied[i].count);
	}
	json_add_u64(evidence, "denied_total", report->denied_total);
}

static void add_usage(struct json_object *object, const struct report *report)
{
	struct json_object *usage = json_add_object(object, "usage");

	add_thousandths(usage, "wall_ms", report->wall_us);
	add_thousandths(usage, "cpu_user_ms", report->cpu_user_us);
	add_thousandths(usage, "cpu_system_ms", report->cpu_system_us);
	add_thousandths(usage, "throttled_ms", report->throttled_us);
	add_u64_or_null(usage, "timeout_ms", report->timeout_ms);
	add_u64_or_null(usage, "memory_peak_bytes", report->memory_peak_bytes);
	add_u64_or_null(usage, "memory_limit_bytes", report->memory_limit_bytes);
	add_u64_or_null(usage, "pids_peak", report->pids_peak);
	add_u64_or_null(usage, "pids_limit", report->pids_limit);
	if (report->cpu_limit_millis)
		add_thousandths(usage, "cpu_limit", report->cpu_limit_millis);
	else
		add_null(usage, "cpu_limit");
	json_add_u64(usage, "disk_used_bytes", report->disk_used_bytes);
	add_u64_or_null(usage, "disk_limit_bytes", report->disk_limit_bytes);
	json_add_u64(usage, "inodes_used", report->inodes_used);
	add_u64_or_null(usage, "inodes_limit", report->inodes_limit);
}

static void add_phases(struct json_object *object, const struct report *report)
{
	struct json_object *phases = json_add_object(object, "phases_ms");

	for (int i = 0; i < REPORT_PHASES; i++)
		add_thousandths(phases, report_phase_name((enum report_phase)i),
		                report->phase_us[i]);
}

static void add_host(struct json_object *object, const struct report *report)
{
	struct json_object *host = json_add_object(object, "host");

	add_text_or_null(host, "cgroup", report->cgroup_mode);
	json_add_bool(host, "user_namespace", report->user_namespace);
	json_add_u64(host, "host_uid_base", report->host_uid_base);
	json_add_u64(host, "landlock_abi", (uint64_t)report->landlock_abi);
	add_text_or_null(host, "disk_backing", report->disk_backing);
	add_text_or_null(host, "image", report->image);
	add_text_or_null(host, "kept", report->kept);
	add_text_or_null(host, "missing", report->missing);
}

static void add_score(struct json_object *object, const struct report *report)
{
	struct json_object *score = json_add_array(object, "score"), *row;

	for (int i = 0; i < report->rows_count; i++) {
		row = append_object(score);
		json_add_string(row, "name", report->rows[i].name);
		json_add_u64(row, "outside_us", report->rows[i].outside_us);
		json_add_u64(row, "inside_us", report->rows[i].inside_us);
	}
}

/* ---- JSON: streams ---- */

enum { SPLIT_MAX = 3 }; /* bytes that a cut can leave of a UTF-8 character */

static bool is_text(const unsigned char *data, size_t length)
{
	return !length || (utf8_valid_prefix(data, length) == length && !memchr(data, 0, length));
}

/*
 * Adds DATA as KEY; where all of it but a few bytes at one end is text, those become a member
 * "split" of their own, so that a cut through one character does not turn a page into base64.
 */
static void add_cut(struct json_object *object, const char *key, const unsigned char *data,
                    size_t length, size_t text_at, size_t text_length)
{
	size_t split = length - text_length;

	if (split == 0 || split > SPLIT_MAX || !is_text(data + text_at, text_length)) {
		json_add_bytes(object, key, data, length);
		return;
	}
	json_add_bytes(object, key, data + text_at, text_length);
	json_add_bytes(json_object_object_get(object, key), "split",
	               text_at ? data : data + text_length, split);
}

/* The character that the cut splits begins at the end of the head... */
static void add_head(struct json_object *object, const struct report_stream *stream)
{
	size_t valid = utf8_valid_prefix(stream->head, stream->head_bytes);

	add_cut(object, "head", stream->head, stream->head_bytes, 0, valid);
}

/* ...and another one ends at the beginning of the tail. */
static void add_tail(struct json_object *object, const struct report_stream *stream)
{
	size_t split = 0;

	while (split < SPLIT_MAX && split < stream->tail_bytes &&
	       (stream->tail[split] & 0xc0) == 0x80)
		split++;
	add_cut(object, "tail", stream->tail, stream->tail_bytes, split,
	        stream->tail_bytes - split);
}

static void add_joined(struct json_object *object, const struct report_stream *stream)
{
	size_t length = stream->head_bytes + stream->tail_bytes;
	scoped_mem unsigned char *data = malloc(length + 1);

	if (!data)
		abort();
	if (stream->head_bytes)
		memcpy(data, stream->head, stream->head_bytes);
	if (stream->tail_bytes)
		memcpy(data + stream->head_bytes, stream->tail, stream->tail_bytes);
	json_add_bytes(object, "data", data, length);
}

static void add_stream(struct json_object *object, const char *key,
                       const struct report_stream *stream)
{
	struct json_object *child = json_add_object(object, key);

	if (stream->dropped_bytes) {
		add_head(child, stream);
		add_tail(child, stream);
	} else {
		add_joined(child, stream);
	}
	json_add_u64(child, "total_bytes", stream->total_bytes);
	json_add_u64(child, "dropped_bytes", stream->dropped_bytes);
	json_add_bool(child, "truncated", stream->dropped_bytes > 0);
}

struct json_object *report_to_json(const struct report *report)
{
	struct json_object *object = json_object_new_object();

	if (!object)
		abort();
	add_ending(object, report);
	add_evidence(object, report);
	add_usage(object, report);
	add_phases(object, report);
	add_stream(object, "stdout", &report->out);
	add_stream(object, "stderr", &report->err);
	add_host(object, report);
	if (report->labels)
		add(object, "labels", json_object_get(report->labels));
	else
		json_add_object(object, "labels");
	add_score(object, report);
	return object;
}

void report_release(struct report *report)
{
	free(report->out.head);
	free(report->out.tail);
	free(report->err.head);
	free(report->err.tail);
	json_object_put(report->labels);
	*report = (struct report){0};
}
