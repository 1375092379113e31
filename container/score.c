/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The score of a container and its two players: what runtime/score.c is for a sandbox of ours. Both
 * sides walk the same table. Where a row has both halves, the inside waits for the outside's GO, and
 * where they meet, the outside for the inside before its own half; else neither waits. `exec` plays the
 * rows that are marked so, `create` ends at the gate, `run` has none.
 *
 * There are two tables and two players because little of them is common: a sandbox is watched by who
 * built it until its end, a container is left alone at its gate and meets another runtime there.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "container/container.h"
#include "runtime/channel.h"

static bool starts_new(const struct container *container)
{
	return !container->joins;
}

static bool joins(const struct container *container)
{
	return container->joins;
}

static bool comes_later(const struct container *container)
{
	return container->comes_later;
}

static bool wants_terminal(const struct container *container)
{
	return container->process && container->process->terminal;
}

/* One without can be created, and not started. */
static bool has_process(const struct container *container)
{
	return container->process;
}

static bool wants_keyring(const struct container *container)
{
	return !container->options->no_new_keyring;
}

static bool wants_net_devices(const struct container *container)
{
	return starts_new(container) && container->config->linux_part->net_devices.count > 0;
}

static bool wants_runtime_hooks(const struct container *container)
{
	const struct oci_hooks *hooks = &container->config->hooks;

	return starts_new(container) && hooks->prestart.count + hooks->create_runtime.count > 0;
}

static bool wants_notify(const struct container *container)
{
	return starts_new(container) && container->options->notify_socket;
}

static bool wants_start_hooks(const struct container *container)
{
	return starts_new(container) && container->config->hooks.start_container.count > 0;
}

/* A new one or one that is joined. */
static bool wants_user_namespace(const struct container *container)
{
	return oci_config_namespace(container->config, CLONE_NEWUSER);
}

static bool wants_time_namespace(const struct container *container)
{
	return starts_new(container) && has_new_namespace(container->config, CLONE_NEWTIME);
}

static bool joins_later(const struct container *container)
{
	return container->joins_later;
}

static bool wants_cgroup_namespace(const struct container *container)
{
	return starts_new(container) && has_new_namespace(container->config, CLONE_NEWCGROUP);
}

/* What there is to wait for is waited for in play_inside_row. */
static INSIDE(await_outside)
{
	(void)in;
	(void)e;
	return 0;
}

/* Nor here, but at a row with this half the outside waits as well, and finds all that comes before. */
static INSIDE(meet_outside)
{
	return await_outside(in, e);
}

struct container_step {
	const char *name;
	int (*outside)(struct container *container, struct err *e);
	int (*inside)(struct inside *in, struct err *e);
	bool (*wanted)(const struct container *container); /* NULL: always */
};

/* clang-format off */
static const struct container_step score[] = {
	/* name                     outside                   inside                      only when    */
	{ "namespaces",             open_namespaces,          NULL,                       NULL         },
	{ "sysctl",                 check_sysctls,            NULL,                       starts_new   },
	{ "process",                check_process,            NULL,                       NULL         },
	{ "seccomp",                compile_filter,           NULL,                       NULL         },
	{ "place of the cgroup",    place_group,              NULL,                       starts_new   },
	/* before it is made: what a kill leaves of it is found by the record */
	{ "record of the cgroup",   keep_record,              NULL,                       starts_new   },
	{ "cgroup",                 make_group,               NULL,                       NULL         },
	{ "pause",                  refuse_paused,            NULL,                       joins        },
	/* before anybody is in the group: v1 sets no limit below what is used already */
	{ "resources",              set_resources,            NULL,                       starts_new   },
	/* the group is one of them */
	{ "mount sources",          open_sources,             NULL,                       starts_new   },
	{ "console socket",         open_console_socket,      NULL,                       wants_terminal },
	{ "notify socket",          open_notify,              NULL,                       wants_notify },
	{ "gate",                   open_gate,                NULL,                       comes_later  },
	{ "clone",                  clone_inside,             NULL,                       NULL         },
	{ "mount sources",          close_sources,            NULL,                       starts_new   },
	{ "namespaces",             NULL,                     join_namespaces,            NULL         },
	/* while our files in /proc are ours: see namespaces.c */
	{ "time offsets",           NULL,                     own_time_namespace,         wants_time_namespace },
	{ "oom score",              NULL,                     set_oom_score,              has_process  },
	/* a cgroup namespace made before that would not be the group's */
	{ "cgroup membership",      move_into_group,          meet_outside,               joins_later  },
	{ "cgroup membership",      NULL,                     join_group,                 NULL         },
	{ "user ids",               map_ids,                  become_root,                wants_user_namespace },
	{ "namespaces",             NULL,                     new_namespaces,             starts_new   },
	{ "session",                NULL,                     new_session,                NULL         },
	{ "keyring",                NULL,                     session_keyring,            wants_keyring },
	{ "cgroup namespace",       NULL,                     own_cgroup_namespace,       wants_cgroup_namespace },
	{ "network devices",        move_net_devices,         meet_outside,               wants_net_devices },
	{ "intelRdt",               join_rdt,                 NULL,                       starts_new   },
	{ "loopback",               NULL,                     raise_loopback,             starts_new   },
	{ "names",                  NULL,                     set_names,                  starts_new   },
	{ "propagation",            NULL,                     set_propagation,            starts_new   },
	{ "root",                   NULL,                     attach_root,                starts_new   },
	{ "mounts",                 NULL,                     attach_mounts,              starts_new   },
	{ "notify socket",          NULL,                     attach_notify,              wants_notify },
	{ "devices",                NULL,                     make_devices,               starts_new   },
	{ "createRuntime hooks",    run_create_runtime_hooks, meet_outside,               wants_runtime_hooks },
	/* before the container's own can run: its hooks, and what `run` executes */
	{ "record",                 keep_record,              await_outside,              starts_new   },
	{ "createContainer hooks",  NULL,                     run_create_container_hooks, starts_new   },
	{ "pivot",                  NULL,                     pivot,                      starts_new   },
	{ "terminal",               NULL,                     open_console,               wants_terminal },
	{ "sysctl",                 NULL,                     set_sysctls,                starts_new   },
	{ "masked paths",           NULL,                     mask_paths,                 starts_new   },
	{ "read-only paths",        NULL,                     protect_paths,              starts_new   },
	{ "scheduler",              NULL,                     set_scheduler,              has_process  },
	{ "I/O priority",           NULL,                     set_io_priority,            has_process  },
	{ "memory policy",          NULL,                     set_memory_policy,          NULL         },
	{ "CPU affinity",           NULL,                     set_affinity,               joins        },
	{ "personality",            NULL,                     set_personality,            NULL         },
	/* before a limit of open files */
	{ "null device",            NULL,                     own_null_device,            NULL         },
	{ "rlimits",                NULL,                     set_rlimits,                has_process  },
	{ "working directory",      NULL,                     working_directory,          NULL         },
	/* after "working directory", which may have to be made */
	{ "read-only root",         NULL,                     protect_root,               starts_new   },
	{ "program",                NULL,                     find_program,               NULL         },
	{ "environment",            NULL,                     make_environment,           NULL         },
	{ "gate",                   NULL,                     pass_gate,                  comes_later  },
	{ "labels",                 NULL,                     set_labels,                 NULL         },
	{ "bounding set",           NULL,                     drop_bounding,              NULL         },
	{ "seccomp, privileged",    NULL,                     install_filter_early,       NULL         },
	{ "user",                   NULL,                     become_user,                NULL         },
	{ "capabilities",           NULL,                     set_capabilities,           NULL         },
	{ "no new privileges",      NULL,                     no_new_privs,               NULL         },
	{ "pid",                    NULL,                     note_pid,                   wants_start_hooks },
	{ "descriptors",            NULL,                     arrange_descriptors,        NULL         },
	{ "ready",                  NULL,                     say_ready,                  NULL         },
	{ "seccomp, unprivileged",  NULL,                     install_filter_late,        NULL         },
	/* behind all walls: their programs are the image's */
	{ "startContainer hooks",   NULL,                     run_start_container_hooks,  wants_start_hooks },
	{ "exec",                   NULL,                     execute,                    NULL         },
	{ NULL,                     NULL,                     NULL,                       NULL         },
};
/* clang-format on */

enum { ROWS = sizeof score / sizeof *score - 1 };

static bool meets(int row)
{
	return score[row].inside == meet_outside;
}

static bool wanted(int row, const struct container *container)
{
	return !score[row].wanted || score[row].wanted(container);
}

/* ---- outside ---- */

static int inside_failed(const struct channel_message *message, int *fault, struct err *e)
{
	int row = message->row;

	*e = message->error;
	e->text[sizeof e->text - 1] = '\0';
	if (e->code <= 0)
		e->code = EPROTO;
	*fault = message->fault;
	if (message->fault != FAULT_OURS)
		return -e->code;
	return err_in(e, "%s", row >= 0 && row < ROWS ? score[row].name : "inside");
}

/* At once: whatever of the inside's own calls notifies waits for the agent's answer, exec too. */
static int hand_over(struct container *container, int listenerfd, struct err *e)
{
	int r = filter_hand_over(container, listenerfd, e);

	if (r < 0)
		pidfd_send_signal(container->pidfd, SIGKILL, NULL, 0);
	return r;
}

/*
 * Until the inside says KIND, or says READY and is gone behind its exec. Where hooks come between the
 * two it says STARTED behind them.
 */
static int await(struct container *container, int kind, int *fault, struct err *e)
{
	bool ready = false, started = !wants_start_hooks(container);

	for (;;) {
		struct channel_message message;
		scoped_fd fd = -1;
		int r = channel_receive(container->channelfd, &message, &fd, e);

		if (r == 0 && ready && started && kind != CHANNEL_AT)
			return 0;
		if (r == 0)
			return err_set(e, ECHILD,
			               "the container's process ended while it was %s; where the "
			               "memory limit is low, it may be that",
			               ready ? "at its startContainer hooks" : "built");
		TRY(r);
		if (message.kind == CHANNEL_FAILED)
			return inside_failed(&message, fault, e);
		if (message.kind == kind && kind == CHANNEL_AT)
			return 0;
		if (message.kind == CHANNEL_LISTENER) {
			TRY(hand_over(container, fd, e));
			continue;
		}
		if (message.kind == CHANNEL_STARTED && ready && !started) {
			started = true;
			continue;
		}
		if (message.kind != CHANNEL_READY || ready)
			return err_set(e, EPROTO, "an unexpected message (%d) from inside",
			               message.kind);
		ready = true;
	}
}

/* When the outside's own half failed, what the inside said before is the first cause. */
static int first_cause(struct container *container, int *fault, struct err *e)
{
	struct err said;
	int r;

	if (container->channelfd < 0 || (e->code != EPIPE && e->code != ECONNRESET))
		return -e->code;
	r = await(container, CHANNEL_AT, fault, &said);
	if (r < 0)
		*e = said;
	return -e->code;
}

static int play_outside_row(struct container *container, int row, struct err *e)
{
	if (score[row].outside(container, e) < 0)
		return err_in(e, "%s", score[row].name);
	if (score[row].inside) {
		struct channel_message go = {.kind = CHANNEL_GO, .row = row};

		return channel_send(container->channelfd, &go, -1, e);
	}
	return 0;
}

int score_play(struct container *container, int *fault, struct err *e)
{
	*fault = FAULT_OURS;
	for (int row = 0; row < ROWS; row++) {
		if (!score[row].outside || !wanted(row, container))
			continue;
		if (meets(row))
			TRY(await(container, CHANNEL_AT, fault, e));
		if (play_outside_row(container, row, e) < 0)
			return first_cause(container, fault, e);
	}
	return await(container, container->comes_later ? CHANNEL_AT : CHANNEL_READY, fault, e);
}

int score_open_gate(int channelfd, struct err *e)
{
	struct channel_message go = {.kind = CHANNEL_GO};

	return channel_send(channelfd, &go, -1, e);
}

int score_start(struct container *container, int *fault, struct err *e)
{
	*fault = FAULT_OURS;
	return await(container, CHANNEL_READY, fault, e);
}

/* ---- inside ---- */

static _Noreturn void give_up(void)
{
	_exit(125);
}

int stay_tied(const struct inside *in, struct err *e)
{
	struct pollfd poller = {.fd = in->channelfd, .events = 0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return err_sys(e, "prctl(PR_SET_PDEATHSIG)");
	if (poll(&poller, 1, 0) == 1 && (poller.revents & (POLLHUP | POLLERR)))
		give_up();
	return 0;
}

/* What is the outside's alone: with a copy of its end of the channel nobody would see it go. */
static int leave_outside(struct inside *in, struct err *e)
{
	const struct container *container = in->container;

	close(container->channelfd);
	if (container->entry)
		close(container->entry->fd);
	return stay_tied(in, e);
}

static int play_inside_row(struct inside *in, int row, struct err *e)
{
	struct channel_message message, at = {.kind = CHANNEL_AT, .row = row};
	int fd = -1;

	if (meets(row))
		TRY(channel_send(in->channelfd, &at, -1, e));
	if (score[row].outside && (channel_receive(in->channelfd, &message, &fd, e) != 1 ||
	                           message.kind != CHANNEL_GO || message.row != row))
		give_up();
	return score[row].inside(in, e);
}

_Noreturn void score_play_inside(struct container *container, unsigned joins)
{
	struct inside in = {
		.container = container,
		.config = container->config,
		.process = container->process,
		.joins = joins,
		.channelfd = container->inside_channelfd,
		.hostprocfd = container->hostprocfd,
		.rootfd = -1,
	};
	struct err e = {0};

	if (leave_outside(&in, &e) < 0)
		give_up();
	for (int row = 0; row < ROWS; row++) {
		struct channel_message failed = {.kind = CHANNEL_FAILED, .row = row};

		if (!score[row].inside || !wanted(row, container))
			continue;
		if (play_inside_row(&in, row, &failed.error) == 0)
			continue;
		failed.fault = in.fault;
		channel_send(in.channelfd, &failed, -1, &e);
		give_up();
	}
	give_up(); /* not reached: the last row replaces this program */
}
