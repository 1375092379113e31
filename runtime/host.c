/* SPDX-License-Identifier: Apache-2.0 */
/* What this host keeps for all its sandboxes: the image store, RUN, the cgroup mounts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "runtime/sandbox.h"

static const char *or_default(const char *value, const char *standard)
{
	return value ? value : standard;
}

/* Who can write in RUN can plant a label, and have us kill a group of his choice. */
static int check_owner(const char *path, int fd, struct err *e)
{
	struct stat status;

	if (fstat(fd, &status))
		return err_sys(e, "%s", path);
	if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(
			e, EPERM,
			"run directory %s can be written by others than root; chown it to root "
			"and chmod go-w it, or set AGENTDOCK_RUN_DIR",
			path);
	return 0;
}

int sandbox_host_open(struct sandbox_host *host, const struct sandbox_host_paths *paths,
                      struct err *e)
{
	const char *state = or_default(paths->state, "/var/lib/agentdock");
	const char *run = or_default(paths->run, "/run/agentdock");
	const char *parent = or_default(paths->cgroup_parent, "agentdock");

	memset(host, 0, sizeof *host);
	host->runfd = -1;
	host->store.statefd = -1;
	if (geteuid() != 0)
		return err_set(e, EPERM,
		               "a sandbox needs root to be built; run agentdock as root (sudo)");
	if (parent[0] == '/' || strstr(parent, "..") || !parent[0])
		return err_set(e, EINVAL,
		               "AGENTDOCK_CGROUP_PARENT: '%s': want a path below the cgroup mounts "
		               "(no leading /, no ..), such as agentdock",
		               parent);
	TRY(text_format(host->run_path, sizeof host->run_path, e, "%s", run));
	TRY(text_format(host->cgroup_parent, sizeof host->cgroup_parent, e, "%s", parent));
	TRY(cgroup_host_probe(&host->cgroups, e));
	if (dir_make_all(AT_FDCWD, run, 0700, e) < 0)
		return err_in(e, "run directory %s (AGENTDOCK_RUN_DIR)", run);
	scoped_fd runfd = file_open(AT_FDCWD, run, O_RDONLY | O_DIRECTORY, 0, e);
	if (runfd < 0)
		return err_in(e, "run directory (AGENTDOCK_RUN_DIR)");
	TRY(check_owner(run, runfd, e));
	TRY(image_store_open(&host->store, state, paths->archiver, e));
	host->runfd = take_fd(&runfd);
	return 0;
}

void sandbox_host_release(struct sandbox_host *host)
{
	image_store_release(&host->store);
	close_fd(&host->runfd);
}
