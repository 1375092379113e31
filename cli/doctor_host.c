/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what stands around the kernel: the cgroup hierarchies as they are mounted, the state
 * directory, our own files, the default image. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "runtime/init_memfd.h"

static const uint64_t FREE_WANTED_BYTES = 4ULL << 30;

/* ---- the state directory ---- */

/* The directory, or the nearest one above it that is there. */
static int nearest_open(const char *path)
{
	char at[PATH_MAX];
	struct err ignored;

	if ((size_t)snprintf(at, sizeof at, "%s", path) >= sizeof at)
		return -1;
	for (;;) {
		int fd = file_open(AT_FDCWD, at, O_PATH | O_DIRECTORY, 0, &ignored);
		char *slash = strrchr(at, '/');

		if (fd >= 0 || !slash || strcmp(at, "/") == 0)
			return fd;
		slash[slash == at] = '\0';
	}
}

void look_state_directory(struct doctor *doctor, struct finding *finding)
{
	const char *path = cli_state_dir();
	struct statvfs fs;
	struct err e;
	uint64_t free_bytes;
	char text[32];

	if (cli_paths_check(&e) < 0) {
		finding_error(finding, FINDING_MISSING, "unset it, or name one from /", &e);
		return;
	}
	doctor->statefd = nearest_open(path);
	if (doctor->statefd < 0 || fstatvfs(doctor->statefd, &fs) < 0) {
		finding_lacks(finding, FINDING_MISSING, "set AGENTDOCK_STATE_DIR", "%s: %s", path,
		              strerror(errno));
		return;
	}
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	format_bytes(free_bytes, text, sizeof text);
	if (fs.f_flag & ST_RDONLY)
		finding_lacks(finding, FINDING_MISSING, "set AGENTDOCK_STATE_DIR",
		              "%s is on a read-only file system", path);
	else if (free_bytes < FREE_WANTED_BYTES)
		finding_lacks(finding, FINDING_DEGRADED, "make room, or set AGENTDOCK_STATE_DIR",
		              "%s: only %s free", path, text);
	else
		finding_ok(finding, "%s: %s free", path, text);
}

static void look_run_directory(struct doctor *doctor, struct finding *finding)
{
	const char *path = cli_run_dir();
	struct stat status;

	(void)doctor;
	if (stat(path, &status) < 0 && errno == ENOENT)
		finding_ok(finding, "%s: the first run makes it", path);
	else if (stat(path, &status) < 0)
		finding_lacks(finding, FINDING_MISSING, "set AGENTDOCK_RUN_DIR", "%s: %s", path,
		              strerror(errno));
	else if (!S_ISDIR(status.st_mode))
		finding_lacks(finding, FINDING_MISSING, "set AGENTDOCK_RUN_DIR",
		              "%s is not a directory", path);
	else if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)))
		finding_lacks(finding, FINDING_MISSING,
		              "chown it to root and chmod go-w it, or set AGENTDOCK_RUN_DIR",
		              "%s can be written by others than root", path);
	else
		finding_ok(finding, "%s is root's alone", path);
}

/* ---- cgroups ---- */

/* A scratch group beside the parent of the sandboxes, so that delegation is tried down to there. */
static int scratch_group(struct doctor *doctor, struct err *e)
{
	TRY(text_format(doctor->cgroup_parent, sizeof doctor->cgroup_parent, e, "%s-doctor-%d",
	                cli_cgroup_parent(), getpid()));
	return cgroup_create(&doctor->cgroup, &doctor->host, doctor->cgroup_parent, "try", e);
}

static void look_cgroups(struct doctor *doctor, struct finding *finding)
{
	static const char way_out[] = "run as root, with cgroup v2 mounted read-write (boot with "
				      "systemd.unified_cgroup_hierarchy=1)";
	struct err e;

	if (cgroup_host_probe(&doctor->host, &e) < 0)
		finding_error(finding, FINDING_MISSING, way_out, &e);
	else if (doctor->host.mode == CGROUP_NONE)
		finding_lacks(finding, FINDING_MISSING, way_out,
		              "no cgroup v2 hierarchy is mounted");
	else if (scratch_group(doctor, &e) < 0)
		finding_error(finding, FINDING_MISSING, way_out, &e);
	else if (doctor->host.mode == CGROUP_HYBRID)
		finding_ok(finding, "hybrid: v2 at %s, limits through v1", doctor->host.v2_mount);
	else
		finding_ok(finding, "v2 at %s", doctor->host.v2_mount);
}

/* A limit is had when the kernel takes it and reads it back. */
static void look_limit(struct doctor *doctor, struct finding *finding, const char *name,
                       struct cgroup_limits limits)
{
	char way_out[128];
	struct err e;

	snprintf(way_out, sizeof way_out,
	         "enable the %s controller, or run with --allow-missing %s", name, name);
	if (doctor->cgroup.v2fd < 0)
		finding_untried(finding, "no cgroup");
	else if (cgroup_limit(&doctor->cgroup, &limits, &e) < 0)
		finding_error(finding, FINDING_MISSING, way_out, &e);
	else
		finding_ok(finding, "a limit was set and read back");
}

static void look_cpu(struct doctor *doctor, struct finding *finding)
{
	look_limit(doctor, finding, "cpu", (struct cgroup_limits){.cpu_millis = 500});
}

static void look_memory(struct doctor *doctor, struct finding *finding)
{
	look_limit(doctor, finding, "memory", (struct cgroup_limits){.memory_bytes = 64 << 20});
}

static void look_pids(struct doctor *doctor, struct finding *finding)
{
	look_limit(doctor, finding, "pids", (struct cgroup_limits){.pids = 8});
}

static void look_kill(struct doctor *doctor, struct finding *finding)
{
	if (doctor->cgroup.v2fd < 0)
		finding_untried(finding, "no cgroup");
	else if (faccessat(doctor->cgroup.v2fd, "cgroup.kill", W_OK, 0) < 0)
		finding_lacks(finding, FINDING_DEGRADED, "use kernel 5.14 or newer",
		              "processes are frozen and killed one by one");
	else
		finding_ok(finding, "there");
}

static void look_freeze(struct doctor *doctor, struct finding *finding)
{
	struct err e;

	if (doctor->cgroup.v2fd < 0)
		finding_untried(finding, "no cgroup");
	else if (cgroup_freeze(&doctor->cgroup, true, &e) < 0 ||
	         cgroup_freeze(&doctor->cgroup, false, &e) < 0)
		finding_error(finding, FINDING_DEGRADED, "use kernel 5.2 or newer", &e);
	else
		finding_ok(finding, "a group was frozen and thawed");
}

/* ---- our own files ---- */

static void look_archiver(struct doctor *doctor, struct finding *finding)
{
	struct err e;

	(void)doctor;
	if (cli_archiver_check(&e) < 0)
		finding_error(finding, FINDING_MISSING, "", &e);
	else
		finding_ok(finding, "%s", cli_archiver());
}

/* 1 lets whoever may signal a process read it, too, also where its program cannot be read (proc(5)). */
static bool may_be_traced(void)
{
	char text[8];
	struct err e;

	return file_read(AT_FDCWD, "/proc/sys/fs/suid_dumpable", text, sizeof text, &e) > 0 &&
	       text[0] == '1';
}

static void look_init(struct doctor *doctor, struct finding *finding)
{
	struct err e;
	scoped_fd fd = init_memfd(&e);

	(void)doctor;
	if (fd < 0)
		finding_error(finding, FINDING_MISSING, "see vm.memfd_noexec and its mounts", &e);
	else if (may_be_traced())
		finding_lacks(finding, FINDING_DEGRADED, "sysctl fs.suid_dumpable=0, or 2",
		              "fs.suid_dumpable is 1: a command can read the memory of its own "
		              "sandbox's pid 1");
	else
		finding_ok(finding, "embedded, in a sealed file without a name");
}

/* The store is opened only when it is there: opening makes it. */
static void look_image(struct doctor *doctor, struct finding *finding)
{
	static const char way_out[] = "make image, or agentdock image import SOURCE default";
	struct image_store store;
	struct image image;
	char names[PATH_MAX];
	struct err e;
	int result;

	(void)doctor;
	snprintf(names, sizeof names, "%s/images/names", cli_state_dir());
	if (access(names, R_OK | X_OK) < 0) {
		finding_lacks(finding, FINDING_MISSING, way_out, "no image store in %s: %s",
		              cli_state_dir(), strerror(errno));
		return;
	}
	if (cli_store_open(&store, &e) < 0) {
		finding_error(finding, FINDING_MISSING, way_out, &e);
		return;
	}
	result = image_find(&store, "default", &image, &e);
	if (result < 0) {
		finding_error(finding, FINDING_MISSING, way_out, &e);
	} else {
		finding_ok(finding, "%.19s, %s", image.digest, image.architecture);
		image_release(&image);
	}
	image_store_release(&store);
}

const struct check host_checks[] = {
	{"cgroups", look_cgroups, true},
	{"cpu controller", look_cpu, true},
	{"memory controller", look_memory, true},
	{"pids controller", look_pids, true},
	{"cgroup.kill", look_kill, true},
	{"cgroup.freeze", look_freeze, true},
	{"run directory", look_run_directory, false},
	{"agentdock-archive", look_archiver, false},
	{"agentdock-init", look_init, false},
	{"default image", look_image, true},
	{NULL, NULL, false},
};
