/* SPDX-License-Identifier: Apache-2.0 */
/* run: create and start in one, without a gate; and unless it is detached, delete. */
#include "base/process.h"
#include "container/container.h"
#include "container/foreground.h"

/* After it runs. */
static int attend(struct container *container, struct foreground *foreground, int *status,
                  struct err *e)
{
	const struct lifecycle_options *options = container->options;

	if (options->pid_file)
		TRY(pid_file_write(options->pid_file, container->pid, e));
	TRY(container_started(container, e));
	store_release(container->entry); /* others may change it now */
	if (options->detach)
		return notify_await(container, e);
	return foreground_wait(foreground, container, status, e);
}

static int run(struct container *container, struct foreground *foreground, int *status,
               struct err *e)
{
	const struct lifecycle_options *options = container->options;
	struct err ignored;
	int fault, r;

	r = container_build(container, &fault, e);
	if (r < 0) {
		*status = status_of_fault(fault);
		return r;
	}
	*status = 0;
	r = attend(container, foreground, status, e);
	process_end(r < 0 ? &container->pid : &(pid_t){-1}, true);
	store_release(container->entry);
	if (r < 0 || (!options->detach && !options->keep)) {
		if (container_delete(options, true, r < 0 ? &ignored : e) < 0 && r == 0)
			r = -e->code;
	}
	return r;
}

int container_run(const struct lifecycle_options *options, int *status, struct err *e)
{
	struct store_entry entry = {.fd = -1};
	struct container container;
	struct foreground foreground = {.signalfd = -1};
	int r;

	if (!options->detach)
		TRY(foreground_begin(&foreground, e));
	container_init(&container, options, &entry);
	r = run(&container, &foreground, status, e);
	foreground_end(&foreground);
	container_release(&container);
	return r;
}
