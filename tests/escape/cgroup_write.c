/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups: release_agent of a v1 hierarchy is a program that the kernel starts as root of the
 * host; cgroup.procs and the limits of one's own group would end every limit. A user namespace with
 * a cgroup namespace may mount a cgroup file system (CVE-2022-0492: and could write release_agent).
 * None is mounted in a sandbox, and nobody inside can mount one. A mount here makes no hierarchy
 * that was not there, and nothing is written: the files are opened.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const controllers[] = {"memory", "pids", "cpu", "devices", "freezer"};

static const char *const files[] = {
	"cgroup.procs",          "memory.max",    "pids.max",
	"cgroup.kill",           "release_agent", "notify_on_release",
	"memory.limit_in_bytes", "devices.allow",
};

static long can_write(const char *base, const char *file)
{
	char path[200];
	scoped_fd fd = -1;

	snprintf(path, sizeof(path), "%s/%s", base, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -1 : 0;
}

static void write_in(struct tries *tries, const char *base)
{
	for (size_t i = 0; i < COUNT(files); i++)
		tried(tries, can_write(base, files[i]), "%s/%s can be opened for writing", base,
		      files[i]);
}

/* Where a mount of a cgroup file system shows in the table, that is where to look. */
static void look(struct tries *tries)
{
	char line[1024], point[256], type[64];
	FILE *table = fopen("/proc/self/mounts", "re");

	while (table && fgets(line, sizeof(line), table)) {
		if (sscanf(line, "%*s %255s %63s", point, type) != 2 ||
		    strncmp(type, "cgroup", 6) != 0)
			continue;
		write_in(tries, point);
	}
	if (table)
		fclose(table);
	write_in(tries, "/sys/fs/cgroup");
	write_in(tries, "/sys/fs/cgroup/unified");
}

static void mount_one(struct tries *tries, const char *type, const char *controller)
{
	const char *dir = try_directory();

	if (mount("attack", dir, type, 0, controller) == 0) {
		write_in(tries, dir);
		tried(tries, 0, "%s %s was mounted", type, controller ? controller : "");
		umount2(dir, MNT_DETACH);
	} else {
		tried(tries, -1, "%s", type);
	}
}

static void attempt(struct tries *tries)
{
	look(tries);
	mount_one(tries, "cgroup2", NULL);
	for (size_t i = 0; i < COUNT(controllers) && !tries->worked; i++)
		mount_one(tries, "cgroup", controllers[i]);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS | CLONE_NEWCGROUP, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(cgroup_write) = {
	.name = "cgroup_write",
	.what = "write a control group's files: release_agent, one's own limits, cgroup.procs",
	.seen = "CVE-2022-0492, the release_agent escape of privileged containers",
	.wall = "no cgroup file system inside, a cgroup namespace; no capability, filter",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.inside = inside,
};
