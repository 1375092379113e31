/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What belongs to a sandbox's process by inheritance and must not: the resource limits, the
 * priorities and the session keyring of whoever started it. Owns nothing; acts on the calling
 * process.
 */
#include "runtime/identity/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"

static const char *const rlimit_names[RLIM_NLIMITS] = {
	[RLIMIT_AS] = "RLIMIT_AS",
	[RLIMIT_CORE] = "RLIMIT_CORE",
	[RLIMIT_CPU] = "RLIMIT_CPU",
	[RLIMIT_DATA] = "RLIMIT_DATA",
	[RLIMIT_FSIZE] = "RLIMIT_FSIZE",
	[RLIMIT_LOCKS] = "RLIMIT_LOCKS",
	[RLIMIT_MEMLOCK] = "RLIMIT_MEMLOCK",
	[RLIMIT_MSGQUEUE] = "RLIMIT_MSGQUEUE",
	[RLIMIT_NICE] = "RLIMIT_NICE",
	[RLIMIT_NOFILE] = "RLIMIT_NOFILE",
	[RLIMIT_NPROC] = "RLIMIT_NPROC",
	[RLIMIT_RSS] = "RLIMIT_RSS",
	[RLIMIT_RTPRIO] = "RLIMIT_RTPRIO",
	[RLIMIT_RTTIME] = "RLIMIT_RTTIME",
	[RLIMIT_SIGPENDING] = "RLIMIT_SIGPENDING",
	[RLIMIT_STACK] = "RLIMIT_STACK",
};

enum { LIMIT_TEXT_SIZE = 24 };

static const char *limit_text(rlim_t limit, char buffer[LIMIT_TEXT_SIZE])
{
	if (limit == RLIM_INFINITY)
		return "unlimited";
	snprintf(buffer, LIMIT_TEXT_SIZE, "%" PRIu64, (uint64_t)limit);
	return buffer;
}

/* Why the kernel said EPERM: the hard limit of the caller, or, for descriptors, the system's. */
static int refused(const struct rlimit_spec *want, const char *name, const struct rlimit *old,
                   struct err *e)
{
	char hard[LIMIT_TEXT_SIZE], held[LIMIT_TEXT_SIZE];

	err_sys(e, "%s: setting it to %s", name, limit_text(want->hard, hard));
	if (want->hard > old->rlim_max)
		return err_hint(e,
		                "the hard limit here is %s, and only CAP_SYS_RESOURCE may raise "
		                "it: ask for no more, or raise it for who starts us",
		                limit_text(old->rlim_max, held));
	if (want->resource == RLIMIT_NOFILE)
		return err_hint(e, "ask for no more than the sysctl fs.nr_open");
	return -e->code;
}

static int set_rlimit(const struct rlimit_spec *want, struct err *e)
{
	const struct rlimit new = {.rlim_cur = want->soft, .rlim_max = want->hard};
	struct rlimit old, now;
	const char *name;

	if (want->resource < 0 || want->resource >= RLIM_NLIMITS || !rlimit_names[want->resource])
		return err_set(e, EINVAL, "rlimit %d: this system has no such limit",
		               want->resource);
	name = rlimit_names[want->resource];
	if (want->soft > want->hard)
		return err_set(e, EINVAL, "%s: the soft limit is above the hard one; lower it",
		               name);
	if (getrlimit((__rlimit_resource_t)want->resource, &old) < 0)
		return err_sys(e, "%s: reading it", name);
	if (setrlimit((__rlimit_resource_t)want->resource, &new) < 0)
		return refused(want, name, &old, e);
	if (getrlimit((__rlimit_resource_t)want->resource, &now) < 0)
		return err_sys(e, "%s: reading it back", name);
	if (now.rlim_cur != want->soft || now.rlim_max != want->hard)
		return err_set(e, EPERM, "%s: the kernel set another limit than asked for", name);
	return 0;
}

int identity_set_rlimits(const struct identity *identity, struct err *e)
{
	if (identity->rlimits_count < 0 || identity->rlimits_count > RLIMITS_MAX)
		return err_set(e, EINVAL, "rlimits: there are %d; at most %d can be set",
		               identity->rlimits_count, RLIMITS_MAX);
	for (int i = 0; i < identity->rlimits_count; i++)
		TRY(set_rlimit(&identity->rlimits[i], e));
	return 0;
}

/* A service may be the last that the host's memory killer takes; its sandboxes must not be. */
static int forget_oom_adjustment(struct err *e)
{
	static const char path[] = "/proc/self/oom_score_adj";
	char text[16];

	TRY((int)file_read(AT_FDCWD, path, text, sizeof text, e));
	return text[0] == '-' ? file_write(AT_FDCWD, path, "0", e) : 0;
}

static int forget_scheduling(struct err *e)
{
	const struct sched_param plain = {0};
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	long io = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);

	if ((policy == SCHED_FIFO || policy == SCHED_RR) &&
	    sched_setscheduler(0, SCHED_OTHER, &plain) < 0)
		return err_sys(e, "giving up real-time scheduling");
	if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0)
		return err_sys(e, "giving up a nice value below zero");
	if (io >= 0 && IOPRIO_PRIO_CLASS((unsigned)io) == IOPRIO_CLASS_RT &&
	    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0) < 0)
		return err_sys(e, "giving up real-time I/O");
	return 0;
}

int identity_forget_privileges(struct err *e)
{
	TRY(forget_oom_adjustment(e));
	TRY(forget_scheduling(e));
	if (personality(PER_LINUX) < 0)
		return err_sys(e, "personality(PER_LINUX)");
	return 0;
}

int identity_session_keyring(struct err *e)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) >= 0)
		return 0;
	if (errno == ENOSYS)
		return 0;
	err_sys(e, "making a session keyring for the sandbox");
	if (e->code == EDQUOT)
		return err_hint(e, "this user's quota of keys is used up: raise the sysctl "
		                   "kernel.keys.root_maxkeys (for root) or kernel.keys.maxkeys, or "
		                   "see in /proc/key-users who holds them");
	return -e->code;
}
