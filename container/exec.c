/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: one more process in a container that runs. It plays the rows of the score that are its own; who
 * the container is comes from its first process, by pidfd, and from the document that was kept.
 */
#include <errno.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "container/container.h"
#include "container/foreground.h"

/* The first process, by a pidfd that is known to be its own. */
static int open_target(struct container *container, struct err *e)
{
	struct store_entry *entry = container->entry;
	int status;

	TRY(store_status(entry, &status, &container->targetfd, e));
	if (status == OCI_RUNNING || status == OCI_CREATED)
		return 0;
	return err_set(e, EINVAL, "cannot exec in a container that is %s: %s",
	               status == OCI_STOPPED ? "stopped" : "not created yet", entry->id);
}

/* Who is added to a frozen group stands still as well, and we with it. */
OUTSIDE(refuse_paused)
{
	bool frozen = false;

	if (container->options->ignore_paused)
		return 0;
	TRY(group_is_frozen(&container->group, &frozen, e));
	if (!frozen)
		return 0;
	return err_set(e, EBUSY, "container %s is paused; resume it, or say --ignore-paused",
	               container->entry->id);
}

static int enter(struct container *container, int *fault, struct err *e)
{
	struct store_entry *entry = container->entry;

	TRY(store_config(entry, e));
	container->config = &entry->config;
	TRY(open_target(container, e));
	return score_play(container, fault, e);
}

/* After it runs. */
static int attend(struct container *container, struct foreground *foreground, int *status,
                  struct err *e)
{
	const struct lifecycle_options *options = container->options;

	*status = 0;
	if (options->pid_file)
		TRY(pid_file_write(options->pid_file, container->pid, e));
	return options->detach ? 0 : foreground_wait(foreground, container, status, e);
}

static int add(struct container *container, struct foreground *foreground, int *status,
               struct err *e)
{
	int fault = 0, r;

	*status = status_of_fault(fault);
	TRY(preserved_check(container->options, e));
	r = enter(container, &fault, e);
	if (r < 0)
		*status = status_of_fault(fault);
	else
		r = attend(container, foreground, status, e);
	if (r < 0)
		process_end(&container->pid, true);
	return r;
}

int container_exec(const struct lifecycle_options *options, const struct oci_process *process,
                   int *status, struct err *e)
{
	struct foreground foreground = {.signalfd = -1};
	struct store_entry entry;
	struct container container;
	int r;

	*status = status_of_fault(0);
	TRY(store_open(options->root, options->id, STORE_UNLOCKED, &entry, e));
	container_init(&container, options, &entry);
	container.joins = true;
	container.process = process;
	container.bundle = entry.record.bundle;
	container.rootfs = entry.record.rootfs;
	r = options->detach ? 0 : foreground_begin(&foreground, e);
	if (r == 0)
		r = add(&container, &foreground, status, e);
	foreground_end(&foreground);
	container_release(&container);
	store_release(&entry);
	return r;
}
