/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox from its spec to its report: build (score.c), supervise (supervise.c), collect,
 * tear down. Invariant: whatever fails, tear_down leaves no process, cgroup, label or descriptor of
 * this sandbox; mounts, namespaces and the disk go with their last process and descriptor.
 */
#include "runtime/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/unsafe.h"
#include "runtime/internal.h"
#include "runtime/score.h"

enum { DEATH_TIMEOUT_MS = 10000, MEMORY_LIKELY_ENOUGH = 2 << 20 };

enum { DESCRIPTORS = 18 + 2 * IMAGE_LAYERS_MAX };

/* Every descriptor that is the sandbox's own, but the disk's, the cgroup's and the label's. */
static void list_descriptors(struct sandbox *sandbox, int *list[DESCRIPTORS])
{
	int *const descriptors[] = {
		&sandbox->initfd,           &sandbox->stdin_sourcefd, &sandbox->stdin_pipefd,
		&sandbox->outputfds[0],     &sandbox->outputfds[1],   &sandbox->insidefds[0],
		&sandbox->insidefds[1],     &sandbox->insidefds[2],   &sandbox->archiverfd,
		&sandbox->packfd,           &sandbox->pack_resultfd,  &sandbox->channelfd,
		&sandbox->inside_channelfd, &sandbox->pidfd,          &sandbox->procfd,
		&sandbox->handedfd,         &sandbox->listenerfd,     &sandbox->mountnsfd,
	};
	size_t count = sizeof descriptors / sizeof *descriptors;

	_Static_assert(sizeof descriptors / sizeof *descriptors + 2 * IMAGE_LAYERS_MAX ==
	                       DESCRIPTORS,
	               "the list has room for all");
	memcpy(list, descriptors, sizeof descriptors);
	for (int i = 0; i < IMAGE_LAYERS_MAX; i++) {
		list[count++] = &sandbox->layerfds[i];
		list[count++] = &sandbox->lockfds[i];
	}
}

static struct sandbox *sandbox_new(struct sandbox_host *host, const struct sandbox_spec *spec,
                                   const struct sandbox_watch *watch, struct report *report,
                                   struct err *e)
{
	struct sandbox *sandbox = malloc(sizeof *sandbox);
	int *descriptors[DESCRIPTORS];

	if (!sandbox) {
		err_set(e, ENOMEM, "no memory for a sandbox");
		return NULL;
	}
	*sandbox = (struct sandbox){
		.spec = spec,
		.watch = watch,
		.host = host,
		.report = report,
		.identity = spec->identity,
		.turns = -1,
		.slot = -1,
		.labelfd = -1,
		.pid = -1,
		.packer = -1,
	};
	list_descriptors(sandbox, descriptors);
	for (int i = 0; i < DESCRIPTORS; i++)
		*descriptors[i] = -1;
	cgroup_init(&sandbox->cgroup);
	disk_init(&sandbox->disk);
	for (int i = 0; i < 2; i++)
		output_init(&sandbox->outputs[i], spec->max_output_bytes);
	return sandbox;
}

/* ---- tear down ---- */

/* Ends every process of the sandbox. The first error stays; the rest is tried all the same. */
static int end_processes(struct sandbox *sandbox, bool finished, struct err *e)
{
	int r = 0;

	turn_give_back(sandbox);
	process_end(&sandbox->packer, true);
	if (sandbox->pid > 0 && !finished)
		kill(sandbox->pid, SIGKILL);
	if (sandbox->cgroup.v2fd >= 0 && !finished)
		r = cgroup_kill(&sandbox->cgroup, e);
	process_end(&sandbox->pid, false);
	return r;
}

static int remove_cgroup(struct sandbox *sandbox, struct err *e)
{
	int r = 0;

	if (sandbox->cgroup.v2fd >= 0) {
		r = cgroup_wait_empty(&sandbox->cgroup, DEATH_TIMEOUT_MS, e);
		if (r == 0)
			r = cgroup_remove(&sandbox->cgroup, &sandbox->host->cgroups, e);
	}
	cgroup_release(&sandbox->cgroup);
	return r;
}

/* ---- collect ---- */

static void collect_limits(struct sandbox *sandbox)
{
	const struct sandbox_spec *spec = sandbox->spec;
	struct report *report = sandbox->report;

	report->memory_limit_bytes = spec->limits.memory_bytes;
	report->pids_limit = spec->limits.pids;
	report->cpu_limit_millis = spec->limits.cpu_millis;
	report->disk_limit_bytes = spec->disk.bytes;
	report->inodes_limit = spec->disk.inodes;
	report->timeout_ms = spec->timeout_ms;
	report->user_namespace = sandbox->identity.user_namespace;
	report->host_uid_base = sandbox->identity.host_base;
	snprintf(report->cgroup_mode, sizeof report->cgroup_mode, "%s",
	         cgroup_mode_name(sandbox->host->cgroups.mode));
	snprintf(report->image, sizeof report->image, "%s", spec->image->digest);
	if (sandbox->disk.mountfd >= 0)
		snprintf(report->disk_backing, sizeof report->disk_backing, "%s",
		         disk_backing_name(sandbox->disk.backing));
}

/* A limit that is not in force is none, whatever was asked for. */
static void collect_missing(struct sandbox *sandbox)
{
	struct report *report = sandbox->report;
	const struct {
		unsigned bit;
		const char *name;
		uint64_t *limit;
	} controllers[] = {
		{CGROUP_CPU, "cpu", &report->cpu_limit_millis},
		{CGROUP_MEMORY, "memory", &report->memory_limit_bytes},
		{CGROUP_PIDS, "pids", &report->pids_limit},
	};
	char *text = report->missing;

	for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
		if (!*controllers[i].limit || (sandbox->cgroup.enforced & controllers[i].bit))
			continue;
		*controllers[i].limit = 0;
		snprintf(text + strlen(text), sizeof report->missing - strlen(text), "%s%s",
		         *text ? "," : "", controllers[i].name);
	}
	if (!sandbox->identity.user_namespace)
		snprintf(text + strlen(text), sizeof report->missing - strlen(text), "%suserns",
		         *text ? "," : "");
}

static int collect_usage(struct sandbox *sandbox, struct disk_usage *disk, struct err *e)
{
	struct report *report = sandbox->report;
	struct cgroup_usage usage = {0};

	TRY(cgroup_usage(&sandbox->cgroup, &usage, e));
	TRY(disk_check(&sandbox->disk, sandbox->host->store.statefd, e));
	TRY(disk_measure(&sandbox->disk, disk, e));
	report->oom_kills = usage.oom_kills;
	report->pids_refused = usage.pids_refused;
	report->cpu_user_us = usage.cpu_user_us;
	report->cpu_system_us = usage.cpu_system_us;
	report->throttled_us = usage.throttled_us;
	report->memory_peak_bytes = usage.memory_peak_bytes;
	report->pids_peak = usage.pids_peak;
	report->disk_used_bytes = disk->bytes;
	report->inodes_used = disk->inodes;
	return 0;
}

static void collect_denials(struct sandbox *sandbox)
{
	struct report *report = sandbox->report;
	const struct seccomp_denials *denials = &sandbox->denials;

	for (int i = 0; i < denials->calls_count && i < REPORT_DENIED_MAX; i++) {
		char name[sizeof report->denied[i].name];

		snprintf(report->denied[i].name, sizeof report->denied[i].name, "%s",
		         seccomp_call_name(denials->calls[i].number, name, sizeof name));
		report->denied[i].count = denials->calls[i].count;
		report->denied_count = i + 1;
	}
	report->denied_total = denials->total;
}

/* One reason, from what is known. Time-outs and cancels were decided by the supervisor. */
/*
 * Pid 1 lives until nobody is left, and says before how the command ended; nothing but a SIGKILL takes
 * it away earlier. Did it end otherwise?
 */
static bool pid1_failed(const struct sandbox *sandbox)
{
	int status = sandbox->pid1_status;

	return !sandbox->command_ended && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static int judge_ending(struct sandbox *sandbox, bool disk_full, struct err *e)
{
	struct report *report = sandbox->report;
	int status = sandbox->command_ended ? sandbox->command_status : SIGKILL;
	bool decided = report->reason == REPORT_TIMEOUT || report->reason == REPORT_CANCELED;

	report->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	report->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (decided)
		return 0;
	if (pid1_failed(sandbox) && !report->oom_kills)
		return err_set(
			e, ECHILD,
			"the sandbox's pid 1 ended (wait status 0x%x) without saying how the "
			"command did: agentdock-init could not be executed (no memory, --ulimit "
			"as, or a --seccomp profile without execveat), or the command lowered the "
			"limits of pid 1 (prlimit)",
			(unsigned)sandbox->pid1_status);
	if (report->oom_kills && report->memory_limit_bytes < MEMORY_LIKELY_ENOUGH)
		err_set(&report->error, ENOMEM,
		        "the memory limit of %llu bytes is too low for most programs; raise "
		        "--memory",
		        (unsigned long long)report->memory_limit_bytes);
	if (report->oom_kills && (report->signo == SIGKILL || report->exit_code == 128 + SIGKILL))
		report->reason = REPORT_OOM;
	else if (report->signo)
		report->reason = REPORT_SIGNALED;
	else if (report->exit_code != 0 && disk_full)
		report->reason = REPORT_DISK_FULL;
	else
		report->reason = REPORT_EXITED;
	return 0;
}

static int finish_outputs(struct sandbox *sandbox, struct err *e)
{
	TRY(output_finish(&sandbox->outputs[0], &sandbox->report->out, e));
	return output_finish(&sandbox->outputs[1], &sandbox->report->err, e);
}

static int collect(struct sandbox *sandbox, struct err *e)
{
	struct report *report = sandbox->report;
	struct disk_usage disk = {0};

	TRY(collect_usage(sandbox, &disk, e));
	collect_denials(sandbox);
	report->wall_us = sandbox->ended_us - sandbox->started_us;
	report->phase_us[REPORT_RUN] = report->wall_us;
	return judge_ending(sandbox, disk.full, e);
}

static int keep_disk(struct sandbox *sandbox, struct err *e)
{
	const struct sandbox_host *host = sandbox->host;
	struct report *report = sandbox->report;

	if (!sandbox->spec->keep)
		return 0;
	TRY(disk_keep(&sandbox->disk, host->store.statefd, report->id, e));
	snprintf(report->kept, sizeof report->kept, "%.200s/kept/%s.ext4", host->store.path,
	         report->id);
	return 0;
}

static void phase(const struct sandbox *sandbox, enum report_phase which)
{
	if (sandbox->watch->phase)
		sandbox->watch->phase(sandbox->watch->data, which);
}

/* A start that failed: whose fault it is decides the reason. */
static void judge_start(struct sandbox *sandbox, const struct err *e)
{
	static const int exit_codes[] = {
		[FAULT_OURS] = 125,         [FAULT_GUEST] = 125,     [FAULT_NOT_FOUND] = 127,
		[FAULT_CANT_EXECUTE] = 126, [FAULT_DISK_FULL] = 125,
	};
	struct report *report = sandbox->report;
	unsigned fault = sandbox->fault;

	if (fault >= sizeof exit_codes / sizeof *exit_codes)
		fault = FAULT_OURS;
	report->error = *e;
	report->start_exit_code = exit_codes[fault];
	if (e->code == ECANCELED && report->cancel_signo)
		report->reason = REPORT_CANCELED;
	else if (fault == FAULT_OURS)
		report->reason = REPORT_INTERNAL;
	else
		report->reason = fault == FAULT_DISK_FULL ? REPORT_DISK_FULL : REPORT_START_FAILED;
}

typedef int play_score(struct sandbox *sandbox, struct err *e);

static int build(struct sandbox *sandbox, play_score *play, struct err *e)
{
	struct report *report = sandbox->report;
	int r;

	sandbox->began_us = clock_us();
	sandbox->deadline_us = sandbox->began_us + sandbox->spec->start_timeout_ms * 1000;
	phase(sandbox, REPORT_START);
	r = play(sandbox, e);
	sandbox->started_us = clock_us();
	report->phase_us[REPORT_START] = sandbox->started_us - sandbox->began_us;
	/* what was waited or unpacked before the command came is no part of this */
	if (!sandbox->spec->command_later)
		report->phase_us[REPORT_START] -= report->phase_us[REPORT_QUEUE] +
		                                  report->phase_us[REPORT_UNPACK];
	return r;
}

/* The kernel keeps no status where our caller ignores SIGCHLD: then it was killed, as far as we know. */
static void reap_pid1(struct sandbox *sandbox)
{
	struct err unknown;

	if (process_wait(sandbox->pidfd, &sandbox->pid1_status, &unknown) < 0)
		sandbox->pid1_status = SIGKILL;
	sandbox->pid = -1;
}

/*
 * Builds, runs and collects. What fails before the command starts is judged by whose fault it is;
 * what fails later is ours.
 */
static int run_it(struct sandbox *sandbox, play_score *play, struct err *e)
{
	struct report *report = sandbox->report;
	struct err reaping, late;
	int r = build(sandbox, play, e), reaped;

	collect_limits(sandbox);
	if (r < 0) {
		r = workspace_first_cause(sandbox, e);
		judge_start(sandbox, e);
		return r;
	}
	collect_missing(sandbox);
	phase(sandbox, REPORT_RUN);
	/* while the command runs: what others left behind is hardly anybody's waiting time */
	if (reap_some(sandbox->host, &reaped, &reaping) < 0)
		log_debug("%s", reaping.text);
	r = supervise_running(sandbox, e);
	if (finish_outputs(sandbox, r < 0 ? &late : e) < 0 && r == 0)
		r = -e->code;
	if (r == 0) {
		phase(sandbox, REPORT_COLLECT);
		reap_pid1(sandbox);
		r = collect(sandbox, e);
	}
	if (r == 0)
		r = keep_disk(sandbox, e);
	if (r < 0) {
		report->reason = REPORT_INTERNAL;
		report->error = *e;
	}
	return r;
}

static void sandbox_free(struct sandbox *sandbox)
{
	output_release(&sandbox->outputs[0]);
	output_release(&sandbox->outputs[1]);
	free(sandbox->own_report);
	free(sandbox);
}

int sandbox_tear_down(struct sandbox *left, struct err *e)
{
	struct err late = {0};
	int *descriptors[DESCRIPTORS];
	int r = 0, removed;

	if (!left)
		return 0;
	if (left->own_report) /* prepared, and not run */
		r = end_processes(left, false, e);
	list_descriptors(left, descriptors);
	for (int i = 0; i < DESCRIPTORS; i++)
		close_fd(descriptors[i]);
	disk_release(&left->disk);
	removed = remove_cgroup(left, &late);
	if (r == 0 && removed < 0) {
		*e = late;
		r = removed;
	}
	if (r == 0)
		label_drop(left);
	close_fd(&left->labelfd); /* a label that stays is reaped with what it covers */
	sandbox_free(left);
	return r;
}

int sandbox_highest_fd(struct sandbox *left)
{
	const struct cgroup *cgroup = &left->cgroup;
	const int others[] = {
		left->labelfd,       left->disk.mountfd,  left->disk.imagefd,
		cgroup->v2fd,        cgroup->v1fds[0],    cgroup->v1fds[1],
		cgroup->v1fds[2],    cgroup->tasksfds[0], cgroup->tasksfds[1],
		cgroup->tasksfds[2], left->host->runfd,   left->host->store.statefd,
	};
	int *descriptors[DESCRIPTORS];
	int highest = STDERR_FILENO;

	list_descriptors(left, descriptors);
	for (int i = 0; i < DESCRIPTORS; i++)
		highest = *descriptors[i] > highest ? *descriptors[i] : highest;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		highest = others[i] > highest ? others[i] : highest;
	return highest;
}

/*
 * The end of a run that ended with R: its processes go, and the rest unless LEFT is to have it. An
 * error on the way is the run's where that had none.
 */
static int finish(struct sandbox *sandbox, int r, struct sandbox **left, struct err *e)
{
	struct report *report = sandbox->report;
	uint64_t ended = sandbox->ended_us ? sandbox->ended_us : clock_us();
	struct err late = {0}, later;
	int finished = end_processes(sandbox, r == 0, &late);

	if (finished < 0)
		sandbox->slot = -1; /* the label stays, for the next start */
	if (r == 0 && finished == 0 && left)
		*left = sandbox;
	else if (sandbox_tear_down(sandbox, finished < 0 ? &later : &late) < 0)
		finished = -late.code;
	report->phase_us[REPORT_COLLECT] = clock_us() - ended;
	if (finished == 0 || r < 0)
		return r;
	*e = late;
	report->error = late;
	report->reason = REPORT_INTERNAL;
	return finished;
}

static struct json_object *labels_object(const struct string_list *labels)
{
	struct json_object *object = json_object_new_object();

	for (size_t i = 0; labels && i < labels->count; i++) {
		const char *equals = strchr(labels->items[i], '=');
		scoped_mem char *key = equals ? strndup(labels->items[i],
		                                        (size_t)(equals - labels->items[i]))
		                              : NULL;

		if (key)
			json_add_string(object, key, equals + 1);
	}
	return object;
}

/* Whoever reads what the command writes may go; returns what was before. */
static struct sigaction ignore_sigpipe(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

	sigaction(SIGPIPE, &ignore, &before);
	return before;
}

/* With and without a user namespace are different sandboxes, so they differ from the first row on. */
static struct sandbox *sandbox_for(struct sandbox_host *host, const struct sandbox_spec *spec,
                                   const struct sandbox_watch *watch, bool user_namespace,
                                   struct report *report, struct err *e)
{
	struct sandbox *sandbox = sandbox_new(host, spec, watch, report, e);

	if (sandbox)
		sandbox->identity.user_namespace = user_namespace &&
		                                   !unsafe_without("user namespace");
	return sandbox;
}

static int run_once(struct sandbox_host *host, const struct sandbox_spec *spec,
                    const struct sandbox_watch *watch, bool user_namespace, enum again *again,
                    struct report *report, struct sandbox **left, struct err *e)
{
	struct sandbox *sandbox = sandbox_for(host, spec, watch, user_namespace, report, e);
	int r;

	*again = AGAIN_NOT;
	if (!sandbox) {
		report->error = *e;
		return -e->code;
	}
	r = run_it(sandbox, score_play, e);
	*again = sandbox->again;
	return finish(sandbox, r, left, e);
}

/* Whether to play again, and how: each way once. */
static bool plan_otherwise(struct sandbox_host *host, const struct sandbox_spec *spec,
                           enum again again, bool *user_namespace)
{
	switch (again) {
	case AGAIN_NOT:
		return false;
	case AGAIN_WITHOUT_IDMAP:
		if (!*user_namespace || !spec->user_namespace_may_be_missing)
			return false;
		*user_namespace = false;
		return true;
	case AGAIN_JOINING_LATER:
		host->clone_into_kills = true;
		return true;
	}
	return false;
}

static const struct report new_report = {.exit_code = -1, .reason = REPORT_INTERNAL};

/* A spec that makes no sense. Returns -e->code. */
static int refuse(struct report *report, const struct err *e)
{
	report->reason = REPORT_START_FAILED;
	report->start_exit_code = 125;
	report->error = *e;
	return -e->code;
}

int sandbox_run(struct sandbox_host *host, const struct sandbox_spec *spec,
                const struct sandbox_watch *watch, struct report *report, struct sandbox **left,
                struct err *e)
{
	struct sigaction before;
	bool user_namespace = true;
	struct json_object *labels;
	enum again again;
	int r;

	if (left)
		*left = NULL;
	*report = new_report;
	r = sandbox_spec_check(spec, e);
	if (r < 0)
		return refuse(report, e);
	labels = labels_object(spec->labels);
	before = ignore_sigpipe();
	do {
		*report = new_report;
		report->labels = labels;
		r = run_once(host, spec, watch, user_namespace, &again, report, left, e);
	} while (r < 0 && plan_otherwise(host, spec, again, &user_namespace));
	sigaction(SIGPIPE, &before, NULL);
	return r;
}

/* ---- prepared ahead ---- */

static int prepare_once(struct sandbox_host *host, const struct sandbox_spec *spec,
                        bool user_namespace, enum again *again, struct sandbox **prepared,
                        struct err *e)
{
	static const struct sandbox_watch nobody = {.livefds = {-1, -1}, .cancelfd = -1};
	struct report *report = malloc(sizeof *report);
	struct sandbox *sandbox;
	struct err late;
	int r;

	*again = AGAIN_NOT;
	if (!report)
		return err_set(e, ENOMEM, "no memory for a sandbox");
	*report = new_report;
	sandbox = sandbox_for(host, spec, &nobody, user_namespace, report, e);
	if (!sandbox) {
		free(report);
		return -e->code;
	}
	sandbox->own_report = report;
	sandbox->own_spec = *spec;
	sandbox->spec = &sandbox->own_spec;
	r = build(sandbox, score_play_to_gate, e);
	if (r == 0) {
		*prepared = sandbox;
		return 0;
	}
	workspace_first_cause(sandbox, e);
	*again = sandbox->again;
	sandbox_tear_down(sandbox, &late);
	return -e->code;
}

int sandbox_prepare(struct sandbox_host *host, const struct sandbox_spec *spec,
                    struct sandbox **prepared, struct err *e)
{
	struct sandbox_spec gated = *spec;
	bool user_namespace = true;
	enum again again;
	int r;

	gated.command_later = true;
	TRY(sandbox_spec_check(&gated, e));
	do
		r = prepare_once(host, &gated, user_namespace, &again, prepared, e);
	while (r < 0 && plan_otherwise(host, spec, again, &user_namespace));
	return r;
}

int sandbox_run_prepared(struct sandbox *prepared, const struct sandbox_command *command,
                         const struct sandbox_watch *watch, struct report *report,
                         struct sandbox **left, struct err *e)
{
	struct sandbox_spec *spec = &prepared->own_spec;
	struct sandbox_spec whole;
	int r;

	if (left)
		*left = NULL;
	*report = *prepared->own_report;
	free(take_mem(&prepared->own_report));
	prepared->report = report;
	prepared->watch = watch;
	report->labels = labels_object(spec->labels);
	spec->argv = command->argv;
	spec->envp = command->envp;
	spec->cwd = command->cwd;
	whole = *spec;
	whole.command_later = false;
	r = sandbox_spec_check(&whole, e);
	if (r < 0)
		return finish(prepared, refuse(report, e), NULL, e);
	struct sigaction before = ignore_sigpipe();
	r = run_it(prepared, score_play_from_gate, e);
	sigaction(SIGPIPE, &before, NULL);
	return finish(prepared, r, left, e);
}
