/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_event_open: counts and samples what the machine does, other sandboxes among it, and is one of
 * the largest entries of the kernel (CVE-2013-2094, CVE-2020-14351, CVE-2023-2235, CVE-2023-5717).
 * The attempt counts its own instructions of user mode, which kernels let everybody do, and the
 * whole machine's. The filter forbids the call.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

static int count_events(struct perf_event_attr attributes, pid_t pid, int cpu)
{
	uint64_t count;

	attributes.size = sizeof(attributes);
	scoped_fd fd = (int)syscall(SYS_perf_event_open, &attributes, pid, cpu, -1,
	                            PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? errno : code_of(read(fd, &count, sizeof(count)));
}

static const struct perf_event_attr own = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_TASK_CLOCK,
	.exclude_kernel = 1,
};
static const struct perf_event_attr all = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_CPU_CLOCK,
};
static const struct perf_event_attr samples = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_PAGE_FAULTS,
	.sample_period = 1,
	.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
};
static const struct perf_event_attr breakpoint = {
	.type = PERF_TYPE_BREAKPOINT,
	.bp_type = HW_BREAKPOINT_W,
	.bp_addr = 0x400000,
	.bp_len = HW_BREAKPOINT_LEN_4,
	.exclude_kernel = 1,
};

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (count_events(own, 0, -1) == 0)
		return 0;
	verdict(evidence, ABSENT, "this kernel has no performance events");
	return 1;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};
	int mine = count_events(own, 0, -1);

	(void)argv;
	/* Debian's own setting 3 of the sysctl; 2 is the kernel's highest, and lets one's own through */
	if (mine == EACCES)
		return verdict(evidence, ABSENT,
		               "kernel.perf_event_paranoid keeps everybody but root from them");
	tally_add(&tally, "own time", mine);
	tally_add(&tally, "the time of CPU 0", count_events(all, -1, 0));
	tally_add(&tally, "samples of the kernel", count_events(samples, 0, -1));
	tally_add(&tally, "a breakpoint", count_events(breakpoint, 0, -1));
	return tally_verdict(&tally, evidence);
}

ATTACK(perf_event) = {
	.name = "perf_event",
	.what = "watch the machine by performance events, and reach their code",
	.seen = "CVE-2013-2094, CVE-2020-14351, CVE-2023-2235",
	.wall = "filter: perf_event_open",
	.control = WORDS(WITHOUT("seccomp")),
	.before = before,
	.inside = inside,
};
