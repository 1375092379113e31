/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults of a sandbox, and what makes no sense on any host. */
#include "runtime/spec.h"

#include <errno.h>
#include <string.h>

static const rlim_t FILE_BYTES = 1ULL << 40;
enum {
	DEFAULT_UID = 10001,
	MIB = 1024 * 1024,
	NOFILE = 4096,
	STACK_BYTES = 8 * MIB,
	SIGPENDING = 4096,
	MSGQUEUE_BYTES = 800 * 1024,
	MEMLOCK_BYTES = 8 * MIB,
};

/* LIMIT, or the caller's own where that is lower: it may not be able to raise it. */
static struct rlimit_spec at_most(int resource, rlim_t limit)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) == 0 && now.rlim_max < limit)
		limit = now.rlim_max;
	return (struct rlimit_spec){resource, limit, limit};
}

void sandbox_spec_defaults(struct sandbox_spec *spec)
{
	*spec = (struct sandbox_spec){
		.cwd = "/workspace",
		.hostname = "sandbox",
		.identity = {.uid = DEFAULT_UID, .gid = DEFAULT_UID, .umask = 022},
		.limits = {.cpu_millis = 1000, .memory_bytes = 512ull * MIB, .pids = 256},
		.disk = {.bytes = 1024ull * MIB, .inodes = 200000},
		.filter = seccomp_default_filter(),
		.start_timeout_ms = 120 * 1000,
		.timeout_ms = 120 * 1000,
		.grace_ms = 5 * 1000,
		.drain_ms = 1000,
		.max_output_bytes = 256000,
	};
	struct rlimit_spec *rlimits = spec->identity.rlimits;
	int n = 0;

	rlimits[n++] = (struct rlimit_spec){RLIMIT_CORE, 0, 0};
	rlimits[n++] = (struct rlimit_spec){RLIMIT_NOFILE, NOFILE, NOFILE};
	rlimits[n++] = (struct rlimit_spec){RLIMIT_STACK, STACK_BYTES, STACK_BYTES};

	/* the disk bounds what a file takes; this bounds what a sparse one claims */
	rlimits[n++] = at_most(RLIMIT_FSIZE, FILE_BYTES);
	rlimits[n++] = at_most(RLIMIT_SIGPENDING, SIGPENDING);
	rlimits[n++] = at_most(RLIMIT_MSGQUEUE, MSGQUEUE_BYTES);
	rlimits[n++] = at_most(RLIMIT_MEMLOCK, MEMLOCK_BYTES);
	spec->identity.rlimits_count = n;
}

/* The bounds of the numbers in a spec: below the lower ones nothing can run. */
struct bound {
	const char *name;
	uint64_t value, min, max;
};

static int check_bounds(const struct bound *bounds, size_t count, struct err *e)
{
	for (const struct bound *b = bounds; b < bounds + count; b++) {
		if (b->value < b->min || b->value > b->max)
			return err_set(e, EINVAL, "%s: %llu is not within %llu and %llu", b->name,
			               (unsigned long long)b->value, (unsigned long long)b->min,
			               (unsigned long long)b->max);
	}
	return 0;
}

static int check_text(const char *name, const char *text, size_t max, struct err *e)
{
	if (!text || !text[0] || strlen(text) > max)
		return err_set(e, EINVAL, "%s: wanted 1 to %zu bytes", name, max);
	return 0;
}

/* pid 1 and the listener need a few descriptors of their own before the command has any. */
static int check_rlimits(const struct identity *identity, struct err *e)
{
	const rlim_t least = 8;

	for (int i = 0; i < identity->rlimits_count; i++) {
		if (identity->rlimits[i].resource == RLIMIT_NOFILE &&
		    identity->rlimits[i].soft < least)
			return err_set(e, EINVAL,
			               "nofile: %llu open files are too few; wanted %llu or more",
			               (unsigned long long)identity->rlimits[i].soft,
			               (unsigned long long)least);
	}
	return 0;
}

static int check_command(const struct sandbox_spec *spec, struct err *e)
{
	if (!spec->argv || !spec->argv[0] || !spec->argv[0][0])
		return err_set(e, EINVAL, "no command: name the program to run and its arguments");
	if (!spec->envp)
		return err_set(e, EINVAL, "a command needs an environment");
	TRY(check_text("working directory", spec->cwd, 4095, e));
	if (spec->cwd[0] != '/')
		return err_set(e, EINVAL, "working directory '%s': wanted an absolute path",
		               spec->cwd);
	return 0;
}

int sandbox_spec_check(const struct sandbox_spec *spec, struct err *e)
{
	const uint64_t tebibytes = 1024ull * 1024 * MIB * 64, day_ms = 24ull * 3600 * 1000;
	const struct bound bounds[] = {
		{"user id", spec->identity.uid, 0, IDENTITY_RANGE - 1},
		{"group id", spec->identity.gid, 0, IDENTITY_RANGE - 1},
		{"disk bytes", spec->disk.bytes, MIB, tebibytes},
		{"disk inodes", spec->disk.inodes, 64, 1 << 30},
		{"pids", spec->limits.pids, 0, 4194304},
		{"time-out in ms", spec->timeout_ms, 0, 365 * day_ms},
		{"start time-out in ms", spec->start_timeout_ms, 1, day_ms},
		{"grace in ms", spec->grace_ms, 0, day_ms},
		{"drain in ms", spec->drain_ms, 0, day_ms},
		{"kept output bytes", spec->max_output_bytes, 2, 1024ull * MIB},
		{"tmpfs mounts", (uint64_t)spec->tmpfs_count, 0, SPEC_TMPFS_MAX},
	};

	if (!spec->image || !spec->filter)
		return err_set(e, EINVAL, "a spec needs an image and a filter");
	if (!spec->command_later)
		TRY(check_command(spec, e));
	TRY(check_text("hostname", spec->hostname, 64, e));
	TRY(check_bounds(bounds, sizeof bounds / sizeof *bounds, e));
	return check_rlimits(&spec->identity, e);
}
