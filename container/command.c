/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of the container: found with its user's own eyes, in its working directory, with its
 * descriptors and no other. What is at the names inside is hostile: no name is followed to a
 * descriptor of ours, of which none is left when the program is opened (CVE-2024-21626).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/mounts.h"
#include "runtime/channel.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- the user's eyes ---- */

static bool overrides_files(const struct oci_process *process)
{
	const struct oci_strings *list = process->capabilities ? &process->capabilities->effective
	                                                       : NULL;

	for (size_t i = 0; list && i < list->count; i++)
		if (!strcmp(list->items[i], "CAP_DAC_OVERRIDE") ||
		    !strcmp(list->items[i], "CAP_DAC_READ_SEARCH"))
			return true;
	return false;
}

/* Files are seen as USER sees them, until a call with NULL. EPERM: groups that nobody can change. */
static int see_as(const struct oci_user *user, struct err *e)
{
	const struct oci_ids *groups = user ? &user->additional_gids : NULL;

	if (syscall(SYS_setgroups, groups ? groups->count : 0, groups ? groups->items : NULL) &&
	    errno != EPERM)
		return err_sys(e, "taking the groups of process.user");
	setfsgid(user ? user->gid : getegid());
	setfsuid(user ? user->uid : geteuid());
	return 0;
}

/* ---- the working directory ---- */

/* Not by links of procfs, one of which may lead to a descriptor of ours. */
static int enter(const char *path, struct err *e)
{
	scoped_fd fd = file_open2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS,
	                          e);
	char seen[PATH_MAX];

	TRY(fd);
	if (fchdir(fd))
		return err_sys(e, "entering %s", path);
	/* a directory outside of the root has no path */
	if (!getcwd(seen, sizeof seen) || seen[0] != '/')
		return err_set(e, EXDEV, "%s is outside of the container's root", path);
	return 0;
}

static int make(const char *path, struct err *e)
{
	scoped_fd rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	scoped_fd fd = -1;

	TRY(rootfd);
	fd = target_open(rootfd, path, false, e);
	return fd < 0 ? fd : 0;
}

INSIDE(working_directory)
{
	const char *path = in->process->cwd;
	int r = enter(path, e);

	if (r == -ENOENT && !in->container->joins)
		r = make(path, e) < 0 ? -e->code : enter(path, e);
	if (r == -EACCES && in->process->user) {
		TRY(see_as(in->process->user, e));
		r = enter(path, e);
		see_as(NULL, e);
	}
	if (r == 0)
		return 0;
	in->fault = FAULT_GUEST;
	return err_in(e, "process.cwd");
}

/* ---- the program ---- */

static const char *variable(const struct oci_strings *env, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = env->count; i-- > 0;)
		if (!strncmp(env->items[i], name, length) && env->items[i][length] == '=')
			return env->items[i] + length + 1;
	return NULL;
}

/* In words that engines look for. */
static int not_found(struct inside *in, int reason, struct err *e)
{
	const char *name = in->process->args.items[0];
	char shown[200];

	text_printable(name, shown, sizeof shown);
	in->fault = reason == ENOENT || reason == ENOTDIR ? FAULT_NOT_FOUND : FAULT_CANT_EXECUTE;
	if (reason == ENOENT && !strchr(name, '/'))
		return err_set(e, reason, "exec: \"%s\": executable file not found in $PATH",
		               shown);
	if (reason == ENOENT || reason == ENOTDIR)
		return err_set(e, reason, "exec: \"%s\": stat %s: %s", shown, shown,
		               reason == ENOENT ? "no such file or directory" : "not a directory");
	if (reason == EISDIR)
		return err_set(e, reason, "exec: \"%s\": is a directory", shown);
	if (reason == EACCES)
		return err_set(e, reason, "exec: \"%s\": permission denied", shown);
	errno = reason;
	return err_sys(e, "exec: \"%s\"", shown);
}

static int look(const struct inside *in, char *program, size_t size)
{
	const char *name = in->process->args.items[0];
	const char *path = variable(&in->process->env, "PATH");

	if (!*name)
		return ENOENT;
	if (!strchr(name, '/'))
		return program_search(name, path ? path : DEFAULT_PATH, program, size);
	if (snprintf(program, size, "%s", name) >= (int)size)
		return ENAMETOOLONG;
	return program_executable(program);
}

INSIDE(find_program)
{
	const struct oci_process *process = in->process;
	bool as_user = process->user && process->user->uid != 0 && !overrides_files(process);
	char program[PATH_MAX];
	int reason;

	if (!process->args.count)
		return 0; /* `start` refuses it */
	if (as_user)
		TRY(see_as(process->user, e));
	reason = look(in, program, sizeof program);
	if (as_user) {
		TRY(see_as(NULL, e));
		TRY(stay_tied(in, e));
	}
	if (reason)
		return not_found(in, reason, e);
	in->program = strdup(program);
	return in->program ? 0 : err_set(e, ENOMEM, "no memory for the program's name");
}

/* ---- its descriptors ---- */

static bool is_null(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* The container's own, if it has one. Looked at before it is opened: it may be anything. */
static int find_null(int *nullfd, struct stat *st, struct err *e)
{
	scoped_fd rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	scoped_fd fd = -1;
	struct err absent;

	TRY(rootfd);
	fd = target_find(rootfd, "dev/null", 0, 0, &absent);
	if (fd < 0)
		return 0;
	if (fstat(fd, st))
		return err_sys(e, "asking what /dev/null is");
	if (is_null(st))
		*nullfd = take_fd(&fd);
	return 0;
}

/* FD, one of 0, 1, 2, becomes NULLFD opened in the same way. */
static int replace(const struct inside *in, int fd, int nullfd, struct err *e)
{
	int flags = fcntl(fd, F_GETFL);
	scoped_fd newfd = -1;
	char path[32];

	if (flags < 0)
		return err_sys(e, "asking how descriptor %d is open", fd);
	snprintf(path, sizeof path, "self/fd/%d", nullfd);
	newfd = file_open(in->hostprocfd, path, flags & O_ACCMODE, 0, e);
	if (newfd < 0)
		return err_hint(e,
		                "descriptor %d is the host's /dev/null and becomes the "
		                "container's; let linux.resources.devices and the mount allow "
		                "it (1:3), or give the container other descriptors",
		                fd);
	return dup2(newfd, fd) < 0 ? err_sys(e, "dup2") : 0;
}

INSIDE(own_null_device)
{
	struct stat own, st[STDERR_FILENO + 1];
	scoped_fd nullfd = -1;
	bool any = false;

	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fstat(fd, &st[fd]))
			st[fd].st_mode = 0;
		any |= is_null(&st[fd]);
	}
	if (!any)
		return 0;
	TRY(find_null(&nullfd, &own, e));
	for (int fd = 0; fd <= STDERR_FILENO && nullfd >= 0; fd++)
		if (is_null(&st[fd]) &&
		    (st[fd].st_dev != own.st_dev || st[fd].st_ino != own.st_ino))
			TRY(replace(in, fd, nullfd, e));
	return 0;
}

INSIDE(arrange_descriptors)
{
	const struct lifecycle_options *options = in->container->options;
	int first = 3 + options->preserve_fds + options->listen_fds;

	/* from here on it is its own */
	if (prctl(PR_SET_PDEATHSIG, 0))
		return err_sys(e, "prctl(PR_SET_PDEATHSIG)");
	if (in->channelfd != first && dup3(in->channelfd, first, O_CLOEXEC) < 0)
		return err_sys(e, "dup3");
	in->channelfd = first;
	in->hostprocfd = in->rootfd = -1;
	if (close_range((unsigned)first + 1, ~0u, 0))
		return err_sys(e, "close_range");
	return 0;
}

/* ---- exec ---- */

/* Before the last filter, which may forbid it. */
INSIDE(say_ready)
{
	const struct channel_message ready = {.kind = CHANNEL_READY};

	return channel_send(in->channelfd, &ready, -1, e);
}

INSIDE(execute)
{
	char shown[200];

	execve(in->program, (char **)(uintptr_t)in->process->args.items, in->envp);
	text_printable(in->program, shown, sizeof shown);
	in->fault = errno == ENOENT ? FAULT_NOT_FOUND : FAULT_CANT_EXECUTE;
	if (errno == ENOENT)
		return err_set(e, ENOENT,
		               "exec %s: no such file or directory: its interpreter (#! line or "
		               "ELF loader) is not there",
		               shown);
	return errno == ENOEXEC  ? err_set(e, ENOEXEC, "exec %s: exec format error", shown)
	       : errno == EACCES ? err_set(e, EACCES, "exec %s: permission denied", shown)
	                         : err_sys(e, "exec %s", shown);
}
