/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces for idmapped mounts. The kernel takes mappings only in the shape of a user
 * namespace, and makes one only together with a process: a child that does nothing lends its own.
 * mount_setattr(2), user_namespaces(7).
 *
 * The child has what we have open and our root, and whoever is our user, a container that sees the
 * host's processes too, has all capabilities over its namespace: so it is undumpable from its first
 * moment, and its files in /proc are root's alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/mounts.h"

enum { LINE_SIZE = 36 /* three numbers of ten digits, blanks, a newline */ };

static int write_map(pid_t pid, const char *file, const struct oci_mappings *mappings,
                     struct err *e)
{
	scoped_mem char *text = malloc(mappings->count * LINE_SIZE + 1);
	char path[64];
	size_t length = 0;

	if (!text)
		return err_set(e, ENOMEM, "%s: no memory", file);
	for (size_t i = 0; i < mappings->count; i++) {
		const struct oci_mapping *line = &mappings->items[i];

		length += (size_t)snprintf(text + length, LINE_SIZE, "%u %u %u\n",
		                           line->container_id, line->host_id, line->size);
	}
	snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	return file_write(AT_FDCWD, path, text, e);
}

/* As process_clone3, but the child cannot be looked into, at no time. */
static pid_t clone_undumpable(const struct clone_args *args)
{
	int before = prctl(PR_GET_DUMPABLE);
	pid_t pid;

	if (before < 0 || prctl(PR_SET_DUMPABLE, 0))
		return -errno;
	pid = process_clone3(args);
	if (pid != 0)
		prctl(PR_SET_DUMPABLE, before == 1);
	return pid;
}

/* A child in a new user namespace, which is there until we close *HOLDFD or end ourselves. */
static int lend(int *holdfd, struct err *e)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	scoped_fd readfd = -1, writefd = -1;
	int ends[2];
	pid_t pid;
	char byte;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "making a pipe");
	readfd = ends[0];
	writefd = ends[1];
	pid = clone_undumpable(&args);
	if (pid == 0) {
		close(writefd);
		_exit(read(readfd, &byte, 1) != 0);
	}
	if (pid < 0)
		return err_set(e, -pid, "making a user namespace for the mappings: %s",
		               strerror(-pid));
	*holdfd = take_fd(&writefd);
	return pid;
}

static int namespace_of(pid_t pid, const struct oci_mappings *uids, const struct oci_mappings *gids,
                        struct err *e)
{
	char path[64];

	TRY(write_map(pid, "uid_map", uids, e));
	TRY(write_map(pid, "gid_map", gids, e));
	snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
	return file_open(AT_FDCWD, path, O_RDONLY, 0, e);
}

static int make_namespace(const struct oci_mappings *uids, const struct oci_mappings *gids,
                          struct err *e)
{
	scoped_fd holdfd = -1;
	pid_t pid = lend(&holdfd, e);
	int fd;

	TRY(pid);
	fd = namespace_of(pid, uids, gids, e);
	close_fd(&holdfd);
	process_end(&pid, false);
	return fd;
}

int idmap_open(const struct oci_config *config, const struct oci_mount *mount, struct err *e)
{
	const struct oci_namespace *own = oci_config_namespace(config, CLONE_NEWUSER);
	const struct oci_linux *part = config->linux_part;

	if (mount->uid_mappings.count)
		return make_namespace(&mount->uid_mappings, &mount->gid_mappings, e);
	if (!own)
		return err_set(e, EINVAL,
		               "uidMappings: is missing, and \"idmap\" in options wants it, or a "
		               "user namespace of the container");
	if (own->path)
		return file_open(AT_FDCWD, own->path, O_RDONLY, 0, e);
	return make_namespace(&part->uid_mappings, &part->gid_mappings, e);
}
