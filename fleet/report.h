/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run ended: one reason, its evidence, what was used, what came out. Filled by the runtime,
 * read by people and stored by the worker. A guest's ending and a fault of ours are different
 * reasons, everywhere.
 */
#ifndef FLEET_REPORT_H
#define FLEET_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum report_reason {
	REPORT_EXITED,   /* by itself, with exit_code */
	REPORT_SIGNALED, /* killed by signo, not by us */
	REPORT_TIMEOUT,
	REPORT_OOM,          /* the command was killed for the memory limit */
	REPORT_CANCELED,     /* by the caller */
	REPORT_DISK_FULL,    /* failed, and the disk had no byte or no inode left */
	REPORT_START_FAILED, /* the guest's fault: no such program, bad workspace, ... */
	REPORT_CHECKOUT_FAILED,
	REPORT_WORKER_LOST,
	REPORT_INTERNAL, /* our fault, or this host's */
};
enum { REPORT_REASONS = REPORT_INTERNAL + 1 };

enum report_phase {
	REPORT_QUEUE,
	REPORT_CHECKOUT,
	REPORT_UNPACK,
	REPORT_START,
	REPORT_RUN,
	REPORT_COLLECT,
};
enum { REPORT_PHASES = REPORT_COLLECT + 1 };

enum { REPORT_SIGNALS_MAX = 8, REPORT_DENIED_MAX = 32, REPORT_ROWS_MAX = 64, REPORT_ID_SIZE = 13 };

/* One captured stream: the first and the last bytes, and how many between were dropped. */
struct report_stream {
	unsigned char *head; /* owned */
	size_t head_bytes;
	unsigned char *tail; /* owned; in order */
	size_t tail_bytes;
	uint64_t total_bytes;   /* all that the command wrote */
	uint64_t dropped_bytes; /* total - head - tail; truncated when > 0 */
};

/* A row of the score: how long each side worked on it, in microseconds. */
struct report_row {
	char name[28];
	uint32_t outside_us, inside_us;
};

struct report {
	char id[REPORT_ID_SIZE];
	enum report_reason reason;
	struct err error;    /* start_failed, checkout_failed, internal: the cause and way out */
	int exit_code;       /* exited, disk_full: the command's own; else -1 */
	int signo;           /* signaled, oom, and what ended a timeout; else 0 */
	int start_exit_code; /* no start: 127 not found, 126 can't execute, else 125; else 0 */
	int cancel_signo;    /* canceled: the signal that we got; else 0 */

	struct {
		int signo;
		uint64_t at_ms; /* since the command started */
	} signals_sent[REPORT_SIGNALS_MAX];
	int signals_sent_count;

	uint64_t oom_kills, pids_refused;
	uint64_t wall_us, cpu_user_us, cpu_system_us, throttled_us;
	uint64_t memory_peak_bytes, memory_limit_bytes;
	uint64_t pids_peak, pids_limit;
	uint64_t cpu_limit_millis;
	uint64_t disk_used_bytes, disk_limit_bytes;
	uint64_t inodes_used, inodes_limit;
	uint64_t timeout_ms;
	struct {
		char name[28];
		uint64_t count;
	} denied[REPORT_DENIED_MAX];
	int denied_count;
	uint64_t denied_total;

	uint64_t phase_us[REPORT_PHASES];
	struct report_row rows[REPORT_ROWS_MAX];
	int rows_count;
	struct report_stream out, err;

	/* what this host gave the sandbox */
	char cgroup_mode[8]; /* "v2", "hybrid" */
	bool user_namespace;
	uint32_t host_uid_base;
	int landlock_abi;           /* 0: this kernel has none */
	char disk_backing[8];       /* "image", "tmpfs" */
	char image[80];             /* digest */
	char kept[256];             /* --keep: the file that holds the sandbox's disk; else "" */
	char missing[64];           /* limits that the operator allowed to be missing; else "" */
	struct json_object *labels; /* owned; may be NULL */
};

const char *report_reason_name(enum report_reason reason); /* "exited", "disk_full", ... */
const char *report_phase_name(enum report_phase phase);

/*
 * The exit status for the operator's shell: the command's own; 124 time-out; 125 ours; 126 can't
 * execute; 127 not found; 128+n signal (137 for oom; 128 + the signal for canceled, 130 without).
 */
int report_exit_status(const struct report *report);

/* The whole report; streams as {"text"|"base64", ...}. The caller puts the object. */
struct json_object *report_to_json(const struct report *report);

void report_release(struct report *report);

#endif
