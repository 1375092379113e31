/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create: from a bundle to a process that waits at the gate, or nothing. What is made is in the store
 * before anything of the container's can run, so whoever kills us leaves what `delete --force` removes;
 * the process inside dies with us until it is at the gate.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "runtime/channel.h"

enum { CONFIG_BYTES_MAX = 16 << 20 };

void container_init(struct container *container, const struct lifecycle_options *options,
                    struct store_entry *entry)
{
	*container = (struct container){
		.options = options,
		.entry = entry,
		.rootfd = -1,
		.gatefd = -1,
		.consolefd = -1,
		.terminalfd = -1,
		.notifyfd = -1,
		.notify_mountfd = -1,
		.channelfd = -1,
		.inside_channelfd = -1,
		.hostprocfd = -1,
		.targetfd = -1,
		.pid = -1,
		.pidfd = -1,
		.procfd = -1,
	};
	for (int i = 0; i < NAMESPACES; i++)
		container->nsfds[i] = -1;
	group_init(&container->group);
}

/* But for the entry, the group's own text and what the caller gave. */
void container_release(struct container *container)
{
	struct err ignored;
	int *fds[] = {
		&container->rootfd,     &container->gatefd,
		&container->consolefd,  &container->terminalfd,
		&container->notifyfd,   &container->notify_mountfd,
		&container->channelfd,  &container->inside_channelfd,
		&container->hostprocfd, &container->targetfd,
		&container->pidfd,      &container->procfd,
	};

	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		close_fd(fds[i]);
	for (int i = 0; i < NAMESPACES; i++)
		close_fd(&container->nsfds[i]);
	close_sources(container, &ignored);
	group_release(&container->group);
	filter_free(container->filter);
	container->filter = NULL;
	free(container->own_bundle);
	free(container->own_rdt_group);
	free(container->own_rootfs);
}

/* ---- the bundle ---- */

static int absolute(int dirfd, const char *path, const char *what, char **result, struct err *e)
{
	scoped_fd fd = file_open(dirfd, path, O_PATH | O_DIRECTORY, 0, e);
	char link[32], resolved[PATH_MAX];
	ssize_t length;

	if (fd < 0)
		return err_in(e, "%s", what);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, resolved, sizeof resolved - 1);
	if (length < 0)
		return err_sys(e, "%s: reading %s", what, link);
	resolved[length] = '\0';
	*result = strdup(resolved);
	return *result ? 0 : err_set(e, ENOMEM, "no memory for a path");
}

/* `start` refuses it. */
static const struct oci_process no_process = {.cwd = "/"};

/* What was read is what is kept: nobody can exchange it between the two. */
static int read_config(struct container *container, int bundlefd, struct err *e)
{
	struct store_entry *entry = container->entry;
	const char *file = container->options->config_file;
	scoped_mem char *text = NULL;
	size_t length;

	if (file_read_all(bundlefd, file ? file : "config.json", CONFIG_BYTES_MAX, &text, &length,
	                  e) < 0)
		return err_in(e, "the bundle %s", container->bundle);
	if (oci_config_parse(text, length, &entry->config, e) < 0 ||
	    oci_config_check_linux(&entry->config, e) < 0)
		return -e->code;
	container->config = &entry->config;
	container->process = entry->config.process ? entry->config.process : &no_process;
	return store_keep_config(entry, text, length, e);
}

static int open_bundle(struct container *container, struct err *e)
{
	const char *given = container->options->bundle ? container->options->bundle : ".";
	scoped_fd bundlefd = file_open(AT_FDCWD, given, O_PATH | O_DIRECTORY, 0, e);

	if (bundlefd < 0)
		return err_in(e, "the bundle");
	TRY(absolute(bundlefd, ".", "the bundle", &container->own_bundle, e));
	container->bundle = container->own_bundle;
	TRY(read_config(container, bundlefd, e));
	TRY(absolute(bundlefd, container->config->root->path, "root.path", &container->own_rootfs,
	             e));
	container->rootfs = container->own_rootfs;
	return 0;
}

/* What the caller has opened has no close-on-exec, and what we open has. */
int preserved_check(const struct lifecycle_options *options, struct err *e)
{
	int count = options->preserve_fds + options->listen_fds;

	for (int fd = 3; fd < 3 + count; fd++)
		if (fcntl(fd, F_GETFD) != 0)
			return err_set(e, EBADF,
			               "descriptor %d is to be preserved, and is not open", fd);
	return 0;
}

/* ---- the record ---- */

static const char *owner_name(char *buffer, size_t size)
{
	if (geteuid() == 0)
		return "root";
	snprintf(buffer, size, "%u", geteuid());
	return buffer;
}

static void now_as_text(char *text, size_t size)
{
	char seconds[TEXT_TIME_SIZE];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	text_time(seconds, (uint64_t)now.tv_sec);
	snprintf(text, size, "%s.%09ldZ", seconds, now.tv_nsec);
}

/* Twice: what is to be removed, before anything is done with it; and with the process, when it is. */
OUTSIDE(keep_record)
{
	struct store_record record = container->entry->record;
	scoped_mem char *group = NULL;
	char created[64], owner[16];

	/* anew: where none could be made, it is none */
	TRY(group_save(&container->group, &group, e));
	record.group = group;
	if (!record.created) {
		now_as_text(created, sizeof created);
		record.bundle = container->bundle;
		record.rootfs = container->rootfs;
		record.created = created;
		record.owner = owner_name(owner, sizeof owner);
	}
	if (container->pid > 0) {
		record.pid = container->pid;
		TRY(store_pid_start(container->pid, &record.pid_start, e));
	}
	return store_save(container->entry, &record, e);
}

int pid_file_write(const char *path, pid_t pid, struct err *e)
{
	char temporary[PATH_MAX], text[16];
	scoped_fd fd = -1;
	int length = snprintf(text, sizeof text, "%d", pid);

	TRY(text_format(temporary, sizeof temporary, e, "%s.%d", path, getpid()));
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_sys(e, "--pid-file %s", path);
	if (fchmod(fd, 0644) == 0 && write(fd, text, (size_t)length) == length &&
	    rename(temporary, path) == 0)
		return 0;
	err_sys(e, "--pid-file %s", path);
	unlink(temporary);
	return -e->code;
}

/* ---- create ---- */

void container_undo(struct container *container)
{
	struct err ignored;
	int keep = errno;

	process_end(&container->pid, true);
	if (container->group.count > 0) {
		group_kill(&container->group, &ignored);
		group_remove(&container->group, &ignored);
	}
	if (container->own_rdt_group)
		rmdir(container->own_rdt_group);
	if (container->entry->fd >= 0)
		store_remove(container->options->root, container->entry, &ignored);
	errno = keep;
}

static bool was_killed(struct container *container)
{
	siginfo_t info = {0};

	return container->pid > 0 && !container->joins_later && container->group.v2fd >= 0 &&
	       waitid(P_PID, (id_t)container->pid, &info, WEXITED | WNOWAIT) == 0 &&
	       info.si_code != CLD_EXITED && info.si_status == SIGKILL;
}

static int build_once(struct container *container, int *fault, bool *again, struct err *e)
{
	int r;

	*fault = FAULT_OURS;
	TRY(store_create(container->options->root, container->options->id, container->entry, e));
	r = open_bundle(container, e);
	if (r == 0)
		r = score_play(container, fault, e);
	if (r < 0) {
		*again = (e->code == ECHILD || e->code == ESRCH || e->code == EPIPE) &&
		         was_killed(container);
		container_undo(container);
		if (container->hook_failed || *fault == FAULT_HOOK)
			run_poststop_hooks(container->config, container->entry->id,
			                   container->bundle);
		store_release(container->entry);
	}
	return r;
}

int container_build(struct container *container, int *fault, struct err *e)
{
	const struct lifecycle_options *options = container->options;
	struct store_entry *entry = container->entry;
	bool later = container->comes_later, again = false;
	int r;

	TRY(preserved_check(options, e));
	r = build_once(container, fault, &again, e);
	if (!again)
		return r;
	container_release(container);
	container_init(container, options, entry);
	container->comes_later = later;
	container->joins_later = true;
	return build_once(container, fault, &again, e);
}

int container_create(const struct lifecycle_options *options, struct err *e)
{
	struct store_entry entry = {.fd = -1};
	struct container container;
	int fault, r;

	container_init(&container, options, &entry);
	container.comes_later = true;
	r = container_build(&container, &fault, e);
	if (r == 0 && options->pid_file) {
		r = pid_file_write(options->pid_file, container.pid, e);
		if (r < 0)
			container_undo(&container);
	}
	store_release(&entry);
	container_release(&container);
	return r;
}
