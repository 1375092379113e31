/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's environment. A runtime that hands its own on, or that shows a process which still
 * has it, gives away tokens of the CI job that called it. The host's half puts a secret there; the
 * inside looks for it in its own environment and in whatever /proc shows of others. The environment
 * is built from nothing, and pid 1 is executed with an empty one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"

#define VARIABLE "AGENTDOCK_PROBE_TOKEN"
#define SECRET   "correct-horse-battery-staple"

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (setenv(VARIABLE, SECRET, 1) == 0)
		return 0;
	verdict(evidence, UNTRIED, "setenv failed");
	return -1;
}

/* Whether /proc/NAME/environ has the secret; COUNT: how many could be read at all. */
static int shows_it(const char *name, int *count)
{
	static char data[65536];
	char path[300];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%s/environ", name);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	length = read(fd, data, sizeof(data));
	if (length < 0)
		return 0;
	++*count;
	return memmem(data, (size_t)length, SECRET, strlen(SECRET)) != NULL;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	scoped_dir proc = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	(void)argv;
	if (getenv(VARIABLE))
		return verdict(evidence, BROKEN, "%s is in the environment", VARIABLE);
	while (proc && (entry = readdir(proc)) != NULL) {
		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
			continue;
		if (shows_it(entry->d_name, &count))
			return verdict(evidence, BROKEN, "/proc/%s/environ has the caller's secret",
			               entry->d_name);
	}
	return verdict(evidence, HELD,
	               "not in our environment, nor in the %d of /proc that can be read", count);
}

ATTACK(secrets_in_environment) = {
	.name = "secrets_in_environment",
	.what = "read a token out of the environment of who called the sandbox",
	.seen = "MITRE ATT&CK T1552.001; npm worms that collect CI tokens",
	.wall = "the environment is built from nothing",
	.no_control =
		"the environment is built from nothing: there is no copy that could be let through",
	.before = before,
	.inside = inside,
};
