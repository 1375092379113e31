/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where this installation keeps things. Owns no resource: each path is computed once, into memory
 * of the process. The environment is the operator's own word (the program is never setuid).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

const char *cli_setting(const char *variable, const char *fallback)
{
	const char *value = getenv(variable);

	return value && *value ? value : fallback;
}

const char *cli_state_dir(void)
{
	return cli_setting("AGENTDOCK_STATE_DIR", "/var/lib/agentdock");
}

const char *cli_run_dir(void)
{
	return cli_setting("AGENTDOCK_RUN_DIR", "/run/agentdock");
}

const char *cli_cgroup_parent(void)
{
	return cli_setting("AGENTDOCK_CGROUP_PARENT", "agentdock");
}

/* The directory of /proc/self/exe; "" where /proc does not tell, which no path is built from. */
static const char *executable_dir(void)
{
	static char dir[PATH_MAX];
	char *slash;
	ssize_t length;

	if (dir[0])
		return dir;
	length = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	dir[length > 0 ? length : 0] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	return dir;
}

static bool archiver_in(const char *dir)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/agentdock-archive", dir);
	return access(path, X_OK) == 0;
}

const char *cli_libexec_dir(void)
{
	static char beside[PATH_MAX + 32];
	const char *const candidates[] = {executable_dir(), beside, "/usr/local/libexec/agentdock",
	                                  "/usr/libexec/agentdock"};
	const char *chosen = cli_setting("AGENTDOCK_LIBEXEC", NULL);
	size_t i = 0;

	if (chosen)
		return chosen;
	snprintf(beside, sizeof(beside), "%s/../libexec/agentdock", executable_dir());
	while (i < 3 && !archiver_in(candidates[i]))
		i++;
	return candidates[i];
}

const char *cli_archiver(void)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/agentdock-archive", cli_libexec_dir());
	return path;
}

int cli_archiver_check(struct err *e)
{
	if (access(cli_archiver(), X_OK) == 0)
		return 0;
	err_sys(e, "%s", cli_archiver());
	return err_hint(e, "make install, or set AGENTDOCK_LIBEXEC to the directory that has it");
}

int cli_paths_check(struct err *e)
{
	static const char *const variables[] = {"AGENTDOCK_STATE_DIR", "AGENTDOCK_RUN_DIR"};

	for (int i = 0; i < 2; i++) {
		const char *path = cli_setting(variables[i], "/");

		if (path[0] != '/')
			return err_set(e, EINVAL, "%s: '%s': want a path that begins with /",
			               variables[i], path);
	}
	return 0;
}

int cli_fixture(const char **path, struct err *e)
{
	static char found[PATH_MAX + 64];

	snprintf(found, sizeof(found), "%s/../fixtures/sample-repo", executable_dir());
	if (access(found, R_OK | X_OK) < 0)
		snprintf(found, sizeof(found), "%s/fixtures/sample-repo", cli_libexec_dir());
	if (access(found, R_OK | X_OK) < 0)
		return err_set(e, ENOENT,
		               "--fixture: no fixtures/sample-repo in %s/.. or %s; make install, "
		               "or set AGENTDOCK_LIBEXEC to the directory that has it",
		               executable_dir(), cli_libexec_dir());
	*path = found;
	return 0;
}

int cli_host_open(struct sandbox_host *host, struct err *e)
{
	const struct sandbox_host_paths paths = {
		.state = cli_state_dir(),
		.run = cli_run_dir(),
		.cgroup_parent = cli_cgroup_parent(),
		.archiver = cli_archiver(),
	};

	TRY(cli_paths_check(e));
	return sandbox_host_open(host, &paths, e);
}

int cli_store_open(struct image_store *store, struct err *e)
{
	TRY(cli_paths_check(e));
	return image_store_open(store, cli_state_dir(), cli_archiver(), e);
}
