/* SPDX-License-Identifier: Apache-2.0 */
/* start: the word at the gate, and what the process inside answers. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/scoped.h"
#include "container/container.h"
#include "runtime/channel.h"

static int check_status(const struct store_entry *entry, int *pidfd, struct err *e)
{
	static const char *const names[] = {
		[OCI_CREATING] = "being created",
		[OCI_CREATED] = "created",
		[OCI_RUNNING] = "running already",
		[OCI_STOPPED] = "stopped",
	};
	int status;

	TRY(store_status(entry, &status, pidfd, e));
	if (status == OCI_CREATED)
		return 0;
	return err_set(e, EINVAL,
	               "cannot start a container that is not created: container %s is %s",
	               entry->id, names[status]);
}

/* The word to one who stands still has no answer, and we would wait for it with the lock held. */
static int check_thawed(const struct store_entry *entry, struct err *e)
{
	bool frozen = false;

	if (entry->record.group)
		TRY(group_saved_is_frozen(entry->record.group, &frozen, e));
	return frozen ? err_set(e, EBUSY, "cannot start container %s: it is paused; resume it",
	                        entry->id)
	              : 0;
}

/* The socket goes at the word, not at the answer: nobody else is to say it. */
static int open_gate_and_wait(struct container *container, struct err *e)
{
	int fault, r;

	container->channelfd = gate_connect(container->entry, e);
	TRY(container->channelfd);
	TRY(score_open_gate(container->channelfd, e));
	unlinkat(container->entry->fd, "start", 0);
	r = score_start(container, &fault, e);
	container->hook_failed = r < 0 && fault == FAULT_HOOK;
	return r;
}

int container_started(struct container *container, struct err *e)
{
	int r = run_poststart_hooks(container, e);

	if (r < 0)
		pidfd_send_signal(container->pidfd, SIGKILL, NULL, 0);
	return r;
}

static int start(struct container *container, struct err *e)
{
	struct store_entry *entry = container->entry;

	TRY(check_status(entry, &container->pidfd, e));
	TRY(check_thawed(entry, e));
	TRY(store_config(entry, e));
	container->config = &entry->config;
	container->process = entry->config.process;
	if (!container->process)
		return err_set(e, EINVAL,
		               "container %s has nothing to start: its config.json has no process",
		               entry->id);
	container->bundle = entry->record.bundle;
	container->rootfs = entry->record.rootfs;
	container->pid = entry->record.pid;
	if (container->options->notify_socket && faccessat(entry->fd, "notify", F_OK, 0) == 0)
		TRY(notify_listen(container, e));
	TRY(open_gate_and_wait(container, e));
	return container_started(container, e);
}

int container_start(const struct lifecycle_options *options, struct err *e)
{
	struct store_entry entry;
	struct container container;
	struct err ignored;
	int r;

	TRY(store_open(options->root, options->id, STORE_PATIENT, &entry, e));
	container_init(&container, options, &entry);
	r = start(&container, e);
	store_release(&entry); /* others may change it while we wait */
	if (r == 0)
		r = notify_await(&container, e);
	/* the spec's lifecycle goes on at its end where a hook failed */
	if (r < 0 && container.hook_failed)
		container_delete(options, true, &ignored);
	container_release(&container);
	return r;
}
