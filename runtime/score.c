/* SPDX-License-Identifier: Apache-2.0 */
/* The score and its two players. */
#include "runtime/score.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "base/unsafe.h"

static bool wants_workspace(const struct sandbox_spec *spec)
{
	return spec->workspace != NULL;
}

static bool wants_tmpfs(const struct sandbox_spec *spec)
{
	return spec->tmpfs_count > 0;
}

static bool wants_read_only(const struct sandbox_spec *spec)
{
	return spec->read_only_root;
}

static bool comes_later(const struct sandbox_spec *spec)
{
	return spec->command_later;
}

/* clang-format off */
const struct step score[] = {
	/* name                  outside         inside               only when      */
	{ "turn",                take_turn,      NULL,                NULL            },
	{ "label",               claim_label,    NULL,                NULL            },
	{ "cgroup",              make_cgroup,    NULL,                NULL            },
	/* before anybody is in the group: v1 sets no limit below what is used already */
	{ "limits",              set_limits,     NULL,                NULL            },
	{ "streams",             open_streams,   NULL,                NULL            },
	{ "init program",        load_init,      NULL,                NULL            },
	{ "pack workspace",      start_packing,  NULL,                wants_workspace },
	{ "clone",               clone_inside,   NULL,                NULL            },
	/* from here to "root" both sides work at the same time */
	{ "cgroup membership",   NULL,           join_cgroup,         NULL            },
	{ "namespaces",          NULL,           make_namespaces,     NULL            },
	{ "session",             NULL,           new_session,         NULL            },
	{ "keyring",             NULL,           session_keyring,     NULL            },
	{ "private mounts",      NULL,           private_mounts,      NULL            },
	{ "hostname",            NULL,           set_hostname,        NULL            },
	{ "user ids",            map_ids,        become_root,         NULL            },
	/* after "cgroup membership": the namespace's root is the group we are in */
	{ "cgroup namespace",    NULL,           cgroup_namespace,    NULL            },
	{ "network",             NULL,           make_network,        NULL            },
	/* /proc and /dev are made in the host's places, which only we see, and moved by "root" */
	{ "proc",                NULL,           attach_proc,         NULL            },
	{ "devices",             make_devices,   attach_devices,      NULL            },
	/* after "devices": covers files with the null device of our own /dev */
	{ "masked paths",        NULL,           mask_proc,           NULL            },
	{ "bounding set",        NULL,           drop_bounding,       NULL            },
	{ "securebits",          NULL,           lock_securebits,     NULL            },
	{ "layers",              open_layers,    NULL,                NULL            },
	{ "disk",                make_disk,      NULL,                NULL            },
	{ "root",                assemble_root,  attach_root,         NULL            },
	{ "tmpfs mounts",        NULL,           attach_tmpfs,        wants_tmpfs     },
	{ "pivot",               NULL,           pivot,               NULL            },
	{ "account",             NULL,           ensure_account,      NULL            },
	{ "unpack workspace",    NULL,           unpack_workspace,    wants_workspace },
	{ "read-only root",      NULL,           read_only_root,      wants_read_only },
	/* from here on each row takes the process something away; unpack_workspace plays them for its child too */
	{ "user",                NULL,           become_user,         NULL            },
	{ "capabilities",        NULL,           drop_capabilities,   NULL            },
	{ "no new privileges",   NULL,           no_new_privs,        NULL            },
	/* after "no new privileges", which it needs; a second wall around the files */
	{ "landlock",            NULL,           restrict_files,      NULL            },
	/* a prepared sandbox waits here; nothing before depends on the command */
	{ "gate",                open_gate,      pass_gate,           comes_later     },
	{ "working directory",   NULL,           working_directory,   NULL            },
	{ "command",             NULL,           find_command,        NULL            },
	{ "descriptors",         NULL,           arrange_descriptors, NULL            },
	/* after "descriptors": RLIMIT_NOFILE may be lower than what we hold until then */
	{ "rlimits",             NULL,           set_rlimits,         NULL            },
	{ "seccomp",             NULL,           install_filter,      NULL            },
	{ "exec",                NULL,           execute,             NULL            },
	{ NULL,                  NULL,           NULL,                NULL            },
};
/* clang-format on */

enum { ROWS = sizeof score / sizeof *score - 1 };
_Static_assert((int)ROWS <= (int)REPORT_ROWS_MAX, "a report has a place for every row");

struct score_fault score_fault;

int score_rows(void)
{
	return ROWS;
}

static bool wanted(int row, const struct sandbox_spec *spec)
{
	return (!score[row].wanted || score[row].wanted(spec)) && !unsafe_without(score[row].name);
}

static int row_named(int (*inside)(struct inside *, struct err *))
{
	int row = 0;

	while (score[row].inside != inside)
		row++;
	return row;
}

/* ---- outside ---- */

static bool fault_is(enum score_fault_kind kind, int row)
{
	return score_fault.kind == kind && score_fault.row == row;
}

/* How the process inside died without a word: the memory limit is the usual cause. */
static int inside_died(struct sandbox *sandbox, struct err *e)
{
	struct cgroup_usage usage = {0};
	struct err ignored;
	int status = 0;

	if (process_wait(sandbox->pidfd, &status, e) < 0)
		return -e->code;
	sandbox->pid = -1;
	if (cgroup_usage(&sandbox->cgroup, &usage, &ignored) == 0 && usage.oom_kills > 0) {
		sandbox->fault = FAULT_GUEST;
		return err_set(e, ENOMEM,
		               "the memory limit of %llu bytes is too low to start anything; raise "
		               "--memory",
		               (unsigned long long)sandbox->spec->limits.memory_bytes);
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !sandbox->host->clone_into_kills)
		sandbox->again = AGAIN_JOINING_LATER;
	return err_set(e, ECHILD, "the process inside died while it was built (wait status 0x%x)",
	               (unsigned)status);
}

static int inside_failed(struct sandbox *sandbox, const struct channel_message *message,
                         struct err *e)
{
	int row = message->row;

	*e = message->error;
	e->text[sizeof e->text - 1] = '\0';
	if (e->code <= 0)
		e->code = EPROTO;
	sandbox->fault = (enum channel_fault)message->fault;
	/* the guest's own mistakes read best without the name of a row */
	if (sandbox->fault != FAULT_OURS)
		return -e->code;
	return err_in(e, "%s", row >= 0 && row < ROWS ? score[row].name : "inside");
}

/* When the outside's own half failed, what the inside said before is the first cause. */
static int first_cause(struct sandbox *sandbox, struct err *e)
{
	struct pollfd poller = {.fd = sandbox->channelfd, .events = POLLIN};
	struct channel_message message;
	struct err ignored;
	int fd = -1;

	while (sandbox->channelfd >= 0 && poll(&poller, 1, 0) == 1 &&
	       channel_receive(sandbox->channelfd, &message, &fd, &ignored) == 1) {
		close_fd(&fd);
		if (message.kind == CHANNEL_FAILED)
			return inside_failed(sandbox, &message, e);
	}
	if (sandbox->pidfd >= 0 && (e->code == EPIPE || e->code == ECONNRESET))
		return inside_died(sandbox, e);
	return -e->code;
}

static int play_outside_row(struct sandbox *sandbox, int row, struct err *e)
{
	const struct step *step = &score[row];
	uint64_t began = clock_us();
	int r;

	if (fault_is(SCORE_KILL_OUTSIDE, row))
		kill(getpid(), SIGKILL);
	r = fault_is(SCORE_FAIL_OUTSIDE, row) ? err_set(e, EIO, "injected")
	                                      : step->outside(sandbox, e);
	sandbox->report->rows[row].outside_us = (uint32_t)(clock_us() - began);
	if (r < 0)
		return err_in(e, "%s", step->name);
	if (step->inside) {
		struct channel_message go = {.kind = CHANNEL_GO, .row = row};

		TRY(channel_send(sandbox->channelfd, &go, sandbox->handedfd, e));
		close_fd(&sandbox->handedfd);
	}
	return 0;
}

static void ready(struct sandbox *sandbox, const struct channel_message *message, int *fd)
{
	struct err ended;

	for (int row = 0; row < ROWS; row++)
		sandbox->report->rows[row].inside_us = message->row_us[row];
	sandbox->report->landlock_abi = message->landlock_abi;
	sandbox->listenerfd = take_fd(fd);
	sandbox->mountnsfd = file_open(sandbox->procfd, "ns/mnt", O_RDONLY, 0, &ended);
}

static int unexpected(const struct channel_message *message, struct err *e)
{
	return err_set(e, EPROTO, "an unexpected message (%d) from inside", message->kind);
}

/* From the last outside half to the command's first instruction. */
static int await_start(struct sandbox *sandbox, struct err *e)
{
	struct channel_message message;
	uint64_t ready_us = 0;

	for (;;) {
		scoped_fd fd = -1;
		int r = supervise_building(sandbox, &message, &fd, e);

		TRY(r);
		if (r == 0)
			return inside_died(sandbox, e);
		switch (message.kind) {
		case CHANNEL_AT: /* only sent for the injected fault */
			if (score_fault.kind == SCORE_KILL_INSIDE)
				kill(getpid(), SIGKILL);
			break;
		case CHANNEL_FAILED:
			return inside_failed(sandbox, &message, e);
		case CHANNEL_READY:
			if (ready_us)
				return unexpected(&message, e);
			ready(sandbox, &message, &fd);
			ready_us = clock_us();
			break;
		case CHANNEL_STARTED:
			if (!ready_us)
				return unexpected(&message, e);
			sandbox->report->rows[ROWS - 1].inside_us = (uint32_t)(clock_us() -
			                                                       ready_us);
			return 0;
		default:
			return unexpected(&message, e);
		}
	}
}

/* Until the inside waits for its command. */
static int await_gate(struct sandbox *sandbox, struct err *e)
{
	struct channel_message message;
	scoped_fd fd = -1;
	int r = supervise_building(sandbox, &message, &fd, e);

	TRY(r);
	if (r == 0)
		return inside_died(sandbox, e);
	if (message.kind == CHANNEL_FAILED)
		return inside_failed(sandbox, &message, e);
	if (message.kind != CHANNEL_AT)
		return unexpected(&message, e);
	if (score_fault.kind == SCORE_KILL_INSIDE && message.row != row_named(pass_gate))
		kill(getpid(), SIGKILL);
	return 0;
}

/* Names the rows that were played and leaves out the others. */
static void report_rows(struct sandbox *sandbox)
{
	struct report *report = sandbox->report;
	int count = 0;

	for (int row = 0; row < ROWS; row++) {
		if (!wanted(row, sandbox->spec))
			continue;
		report->rows[count] = report->rows[row];
		snprintf(report->rows[count].name, sizeof report->rows[count].name, "%s",
		         score[row].name);
		if (score[row].inside == unpack_workspace)
			report->phase_us[REPORT_UNPACK] = report->rows[row].inside_us;
		if (score[row].outside == take_turn)
			report->phase_us[REPORT_QUEUE] = report->rows[row].outside_us;
		count++;
	}
	report->rows_count = count;
}

/* The outside halves of the rows from FROM up to TO. */
static int play_outside_rows(struct sandbox *sandbox, int from, int to, struct err *e)
{
	for (int row = from; row < to; row++) {
		if (wanted(row, sandbox->spec) && score[row].outside &&
		    play_outside_row(sandbox, row, e) < 0)
			return first_cause(sandbox, e);
	}
	return 0;
}

int score_play_from_gate(struct sandbox *sandbox, struct err *e)
{
	int r = play_outside_rows(sandbox, row_named(pass_gate), ROWS, e);

	if (r == 0)
		r = await_start(sandbox, e);
	report_rows(sandbox);
	return r;
}

/* Up to the gate; what comes then is the inside's. */
static int play_building(struct sandbox *sandbox, struct err *e)
{
	TRY(play_outside_rows(sandbox, 0, row_named(pass_gate), e));
	turn_give_back(sandbox);
	return 0;
}

int score_play(struct sandbox *sandbox, struct err *e)
{
	int r = play_building(sandbox, e);

	if (r == 0)
		return score_play_from_gate(sandbox, e);
	report_rows(sandbox);
	return r;
}

int score_play_to_gate(struct sandbox *sandbox, struct err *e)
{
	TRY(play_building(sandbox, e));
	return await_gate(sandbox, e);
}

/* ---- inside ---- */

/* The outside is gone, or knows why it gave up. */
static _Noreturn void give_up(void)
{
	_exit(125);
}

static int play_inside_row(struct inside *in, int row, struct err *e)
{
	struct channel_message message;
	const struct step *step = &score[row];

	if (step->inside == pass_gate) {
		message = (struct channel_message){.kind = CHANNEL_AT, .row = row};
		TRY(channel_send(in->channelfd, &message, -1, e));
	}
	if (step->outside) {
		if (channel_receive(in->channelfd, &message, &in->receivedfd, e) != 1 ||
		    message.kind != CHANNEL_GO || message.row != row)
			give_up();
	}
	if (fault_is(SCORE_KILL_INSIDE, row)) {
		message = (struct channel_message){.kind = CHANNEL_AT, .row = row};
		channel_send(in->channelfd, &message, -1, e);
		pause();
	}
	if (fault_is(SCORE_FAIL_INSIDE, row))
		return err_set(e, EIO, "injected");
	uint64_t began = clock_us();
	TRY(step->inside(in, e));
	in->row_us[row] = (uint32_t)(clock_us() - began);
	return 0;
}

_Noreturn void score_play_inside(struct sandbox *sandbox)
{
	struct inside in = {
		.sandbox = sandbox,
		.spec = sandbox->spec,
		.channelfd = sandbox->inside_channelfd,
		.receivedfd = -1,
		.hostrootfd = -1,
		.rootfd = -1,
		.listenerfd = -1,
	};
	struct err e = {0};

	/* dumpable, so that /proc/self is ours to write; it ends when we become root inside */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 1))
		give_up();
	if (keep_own_descriptors(sandbox, &e) < 0)
		give_up();
	for (int row = 0; row < ROWS; row++) {
		if (!score[row].inside || !wanted(row, in.spec))
			continue;
		if (play_inside_row(&in, row, &e) < 0) {
			struct channel_message failed = {
				.kind = CHANNEL_FAILED, .row = row, .fault = in.fault, .error = e};

			channel_send(in.channelfd, &failed, -1, &e);
			give_up();
		}
	}
	give_up(); /* not reached: the last row replaces this program */
}

int score_drop(struct inside *in, struct err *e)
{
	for (int row = row_named(become_user); row <= row_named(no_new_privs); row++)
		TRY(score[row].inside(in, e));
	return 0;
}
