/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks ("POSIX-platform Hooks" in config.md): each is a program that gets the container's state on
 * its standard input, exactly the environment that the document says, our standard output, and the
 * bundle for a working directory, but inside of the container, where that is "/". One that fails ends
 * the list; who called it decides what that means.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/warn.h"
#include "runtime/channel.h"

/* A file, not a pipe: a hook that does not read it stops nobody. */
static int state_file(const char *text, struct err *e)
{
	scoped_fd fd = memfd_create("state", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "memfd_create");
	TRY(fd_write_all(fd, text, strlen(text), e));
	return take_fd(&fd);
}

static int run_one(const struct oci_hook *hook, const char *text, const char *cwd, struct err *e)
{
	static const char *const nothing[] = {NULL};
	const char *const name[] = {hook->path, NULL};
	scoped_fd fd = state_file(text, e);
	const struct process_tool tool = {
		.path = hook->path,
		.argv = hook->args.count ? hook->args.items : name,
		.envp = hook->env.count ? hook->env.items : nothing,
		.cwd = cwd,
		.stdinfd = fd,
		.stdoutfd = STDOUT_FILENO,
		.timeout_ms = hook->timeout.set ? hook->timeout.value * 1000 : 0,
	};

	TRY(fd);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "lseek");
	return process_run_tool(&tool, e);
}

static int run_list(const struct oci_hook_list *list, const char *key, const char *text,
                    const char *cwd, struct err *e)
{
	for (size_t i = 0; i < list->count; i++)
		if (run_one(&list->items[i], text, cwd, e) < 0)
			return err_in(e, "hooks.%s[%zu] (%s)", key, i, list->items[i].path);
	return 0;
}

OUTSIDE(run_create_runtime_hooks)
{
	const struct oci_hooks *hooks = &container->config->hooks;
	scoped_mem char *text = NULL;

	TRY(state_document(container->config, container->entry->id, container->bundle, OCI_CREATING,
	                   container->pid, &text, e));
	container->hook_failed = true;
	TRY(run_list(&hooks->prestart, "prestart", text, container->bundle, e));
	TRY(run_list(&hooks->create_runtime, "createRuntime", text, container->bundle, e));
	container->hook_failed = false;
	return 0;
}

INSIDE(note_pid)
{
	char link[16] = "";

	if (readlinkat(in->hostprocfd, "self", link, sizeof link - 1) < 0)
		return err_sys(e, "reading our process id in the host's /proc");
	in->host_pid = (pid_t)strtol(link, NULL, 10);
	return 0;
}

static int run_inside(struct inside *in, const struct oci_hook_list *list, const char *key,
                      int status, const char *cwd, struct err *e)
{
	const struct container *container = in->container;
	scoped_mem char *text = NULL;

	TRY(state_document(in->config, container->options->id, container->bundle, status,
	                   in->host_pid, &text, e));
	if (run_list(list, key, text, cwd, e) < 0) {
		in->fault = FAULT_HOOK;
		return -e->code;
	}
	return 0;
}

INSIDE(run_create_container_hooks)
{
	if (!in->config->hooks.create_container.count)
		return 0;
	TRY(note_pid(in, e));
	return run_inside(in, &in->config->hooks.create_container, "createContainer", OCI_CREATING,
	                  in->container->bundle, e);
}

/* Says so: who waits cannot tell our end from our exec. */
INSIDE(run_start_container_hooks)
{
	const struct channel_message started = {.kind = CHANNEL_STARTED};

	TRY(run_inside(in, &in->config->hooks.start_container, "startContainer", OCI_CREATED, "/",
	               e));
	return channel_send(in->channelfd, &started, -1, e);
}

int run_poststart_hooks(struct container *container, struct err *e)
{
	const struct oci_hook_list *list = &container->config->hooks.poststart;
	scoped_mem char *text = NULL;

	if (!list->count)
		return 0;
	TRY(state_document(container->config, container->entry->id, container->bundle, OCI_RUNNING,
	                   container->pid, &text, e));
	container->hook_failed = run_list(list, "poststart", text, container->bundle, e) < 0;
	return container->hook_failed ? -e->code : 0;
}

void run_poststop_hooks(const struct oci_config *config, const char *id, const char *bundle)
{
	const struct oci_hook_list *list = &config->hooks.poststop;
	scoped_mem char *text = NULL;
	struct err e = {0};

	if (!list->count)
		return;
	if (state_document(config, id, bundle, OCI_STOPPED, 0, &text, &e) < 0) {
		container_warn("%s", e.text);
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		if (run_one(&list->items[i], text, bundle, &e) < 0)
			container_warn("hooks.poststop[%zu] (%s): %s", i, list->items[i].path,
			               e.text);
}
