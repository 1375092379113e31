/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More than the resource limits give: raise a hard limit, go ahead of others by priority or a
 * real-time class (which can starve a host for good), lock more memory than is allowed, be the last
 * to be killed when memory runs out. Each takes a capability in the host's user namespace, and no
 * process of a sandbox has one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"
#include "tests/escape/try.h"

enum { LOCKED = 16 << 20, RUNTIME_NS = 1000000, PERIOD_NS = 100000000, POLICY_DEADLINE = 6 };

/* glibc has it from 2.41 on, and the kernel's header cannot be had beside <sched.h> */
struct deadline {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static const struct limit {
	const char *name;
	int resource;
} limits[] = {
	{"open files", RLIMIT_NOFILE},
	{"core dumps", RLIMIT_CORE},
	{"stack", RLIMIT_STACK},
	{"file size", RLIMIT_FSIZE},
	{"queued signals", RLIMIT_SIGPENDING},
	{"message queues", RLIMIT_MSGQUEUE},
	{"locked memory", RLIMIT_MEMLOCK},
	{"priority", RLIMIT_NICE},
	{"real-time priority", RLIMIT_RTPRIO},
};

/* ENODATA where there is no limit to raise. */
static int raise_limit(const void *limit)
{
	__rlimit_resource_t resource = (__rlimit_resource_t)((const struct limit *)limit)->resource;
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		return errno;
	if (now.rlim_max == RLIM_INFINITY)
		return ENODATA;
	now.rlim_max++;
	return code_of(setrlimit(resource, &now));
}

static int raise_priority(const void *unused)
{
	(void)unused;
	return code_of(setpriority(PRIO_PROCESS, 0, -20));
}

static int be_real_time(const void *policy)
{
	const struct sched_param parameters = {.sched_priority = 1};

	return code_of(sched_setscheduler(0, *(const int *)policy, &parameters));
}

static int have_deadline(const void *unused)
{
	const struct deadline attributes = {
		.size = sizeof(attributes),
		.policy = POLICY_DEADLINE,
		.runtime = RUNTIME_NS,
		.deadline = PERIOD_NS,
		.period = PERIOD_NS,
	};

	(void)unused;
	return code_of(syscall(SYS_sched_setattr, 0, &attributes, 0));
}

static int real_time_io(const void *unused)
{
	(void)unused;
	return code_of(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
	                       IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)));
}

static int lock_memory(const void *unused)
{
	void *memory = mmap(NULL, LOCKED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                    0);

	(void)unused;
	return memory == MAP_FAILED ? errno : code_of(mlock(memory, LOCKED));
}

static int be_last_to_be_killed(const void *unused)
{
	scoped_fd fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	(void)unused;
	return code_of(fd < 0 ? fd : write(fd, "-1000", 5));
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	static const int fifo = SCHED_FIFO, round_robin = SCHED_RR;
	struct tally tally = {0};

	(void)argv;
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		tally_add(&tally, limits[i].name, try_apart(raise_limit, &limits[i]));
	tally_add(&tally, "nice -20", try_apart(raise_priority, NULL));
	tally_add(&tally, "SCHED_FIFO", try_apart(be_real_time, &fifo));
	tally_add(&tally, "SCHED_RR", try_apart(be_real_time, &round_robin));
	tally_add(&tally, "SCHED_DEADLINE", try_apart(have_deadline, NULL));
	tally_add(&tally, "real-time I/O", try_apart(real_time_io, NULL));
	tally_add(&tally, "16 MiB locked", try_apart(lock_memory, NULL));
	tally_add(&tally, "oom_score_adj -1000", try_apart(be_last_to_be_killed, NULL));
	return tally_verdict(&tally, evidence);
}

ATTACK(rlimits) = {
	.name = "rlimits",
	.what = "raise one's limits, priority or class above those of others",
	.seen = "setrlimit(2), sched(7), proc_pid_oom_score_adj(5)",
	.wall = "no capability; rlimits",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.inside = inside,
};
