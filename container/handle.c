/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with a container that is there: signals, freezing, limits, its end. Owns
 * nothing between two calls.
 *
 *  - The first process is signalled by pidfd, and needs no lock: kill works whoever holds it.
 *  - A group is found by its path, which may be another container's by now: it is used when it has the
 *    container's mark only. Where no mark can be had, under the lock only, and not at all when the first
 *    process is gone and all others with it.
 *  - `delete --force` waits for nobody without end: who makes the container, or waits for it, is ended.
 *  - Where the container has no pid namespace of its own, its processes outlive the first one; the
 *    group knows them all.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/group.h"
#include "container/lifecycle.h"
#include "container/store.h"
#include "container/warn.h"

enum {
	END_MS = 10000,     /* how long SIGKILL may take */
	LEFTOVER_MS = 1000, /* how long a create's processes may outlive it */
};

static int not_running(const char *id, struct err *e)
{
	return err_set(e, ESRCH, "container not running: %s", id);
}

/* ---- with its group, under the lock ---- */

struct handle {
	struct store_entry entry;
	struct group group;
	int status; /* enum oci_status */
	int pidfd;  /* -1: stopped */
};

static int handle_look(const struct lifecycle_options *options, int patience_ms,
                       struct handle *handle, struct err *e)
{
	*handle = (struct handle){.pidfd = -1};
	group_init(&handle->group);
	TRY(store_open(options->root, options->id, patience_ms, &handle->entry, e));
	if (store_status(&handle->entry, &handle->status, &handle->pidfd, e) < 0) {
		store_release(&handle->entry);
		return -e->code;
	}
	return 0;
}

static void handle_release(struct handle *handle)
{
	close_fd(&handle->pidfd);
	group_release(&handle->group);
	store_release(&handle->entry);
}

/* Has it a pid namespace of its own, and so no process that outlives the first? */
static bool ends_with_first(struct handle *handle)
{
	struct err unread;

	return store_config(&handle->entry, &unread) == 0 &&
	       has_new_namespace(&handle->entry.config, CLONE_NEWPID);
}

static bool is_ours(struct handle *handle)
{
	enum group_whose whose = handle->group.whose;

	return whose == GROUP_OURS ||
	       (whose == GROUP_UNSURE && (handle->pidfd >= 0 || !ends_with_first(handle)));
}

/*
 * A record without a process says where a group was to be, not that it was made: who is in there may be
 * others', and is left alone.
 */
static int handle_group(struct handle *handle, struct err *e)
{
	const struct store_entry *entry = &handle->entry;

	if (!entry->record.group || entry->record.pid <= 0)
		return not_running(entry->id, e);
	TRY(group_open(&handle->group, entry->record.group, e));
	if (is_ours(handle))
		return 0;
	return err_set(
		e, EOWNERDEAD,
		"container %s: its group is gone, and the one that is there now is another's",
		entry->id);
}

/* What has the mark is the container's, whatever is done meanwhile; else nobody may change it. */
static int lock_unmarked(struct handle *handle, struct err *e)
{
	if (handle->group.whose == GROUP_OURS || handle->entry.locked)
		return 0;
	return store_lock(&handle->entry, STORE_BOUNDED, e);
}

/* Does ACT with a container and its group. */
static int with_group(const struct lifecycle_options *options, int patience_ms,
                      int (*act)(struct handle *handle, const void *wanted, void *found,
                                 struct err *e),
                      const void *wanted, void *found, struct err *e)
{
	struct handle handle;
	int r;

	TRY(handle_look(options, patience_ms, &handle, e));
	r = handle_group(&handle, e);
	if (r >= 0)
		r = lock_unmarked(&handle, e);
	if (r >= 0)
		r = act(&handle, wanted, found, e);
	handle_release(&handle);
	return r < 0 ? r : 0;
}

/* ---- kill ---- */

static int signal_group(struct handle *handle, int signo, struct err *e)
{
	scoped_mem pid_t *pids = NULL;
	size_t count;

	TRY(handle_group(handle, e));
	TRY(lock_unmarked(handle, e));
	if (group_processes(&handle->group, &pids, &count, e) < 0 || count == 0)
		return not_running(handle->entry.id, e);
	if (signo == SIGKILL)
		return group_kill(&handle->group, e);
	return group_signal(&handle->group, signo, e);
}

/* A frozen v1 group keeps even SIGKILL waiting; the container may have frozen ones of its own in it. */
static int thaw(struct handle *handle, struct err *e)
{
	bool frozen, held;

	TRY(handle_group(handle, e));
	TRY(group_is_frozen(&handle->group, &frozen, e));
	held = group_is_held(&handle->group);
	if (!frozen && !held)
		return 0;
	TRY(lock_unmarked(handle, e));
	if (held)
		group_let_go(&handle->group);
	return frozen ? group_freeze(&handle->group, false, e) : 0;
}

static int kill_first(struct handle *handle, int signo, struct err *e)
{
	struct err ignored;

	if (handle->pidfd < 0)
		return not_running(handle->entry.id, e);
	/* which might take it for a lack of memory, and make it again */
	if (signo == SIGKILL && handle->status == OCI_CREATED)
		store_end_creator(&handle->entry);
	if (pidfd_send_signal(handle->pidfd, signo, NULL, 0) < 0)
		return errno == ESRCH ? not_running(handle->entry.id, e)
		                      : err_sys(e, "signalling container %s", handle->entry.id);
	if (signo != SIGKILL)
		return 0;
	/* the signal is sent: what comes now may find it deleted already */
	if (store_config(&handle->entry, &ignored) < 0)
		return 0;
	if (!has_new_namespace(&handle->entry.config, CLONE_NEWPID)) {
		if (signal_group(handle, signo, e) < 0 && e->code != ESRCH && e->code != ENOENT)
			return -e->code;
		return 0;
	}
	if (thaw(handle, e) < 0 && e->code != ESRCH && e->code != ENOENT)
		return -e->code;
	return 0;
}

int container_kill(const struct lifecycle_options *options, int signo, bool all, struct err *e)
{
	struct handle handle;
	int r;

	TRY(handle_look(options, STORE_UNLOCKED, &handle, e));
	if (handle.status == OCI_CREATING)
		r = err_set(e, ESRCH,
		            "container not running: %s is being created; wait for that, or end it "
		            "by delete --force",
		            options->id);
	else if (all)
		r = signal_group(&handle, signo, e);
	else
		r = kill_first(&handle, signo, e);
	handle_release(&handle);
	return r < 0 ? r : 0;
}

/* ---- delete ---- */

static int await_end(int pidfd, const char *id, struct err *e)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	int r;

	do
		r = poll(&ended, 1, END_MS);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_sys(e, "waiting for the end of container %s", id);
	return r > 0 ? 0
	             : err_set(e, ETIMEDOUT,
	                       "container %s: its first process does not end; look where it hangs "
	                       "in "
	                       "the kernel (/proc/PID/stack)",
	                       id);
}

/*
 * Of a create that was killed: its processes died with it. A group that has some all the same was there
 * before and is others'; so is what refuses to be removed.
 */
static void remove_leftover_group(struct handle *handle)
{
	const char *saved = handle->entry.record.group;
	struct err e;

	if (!saved || group_open(&handle->group, saved, &e) < 0)
		return;
	if (handle->group.whose == GROUP_OTHERS)
		container_warn("container %s: its group is another's and left alone",
		               handle->entry.id);
	else if (group_wait_empty(&handle->group, LEFTOVER_MS, &e) < 0 ||
	         group_remove(&handle->group, &e) < 0)
		container_warn("container %s: its group is not removed: %s", handle->entry.id,
		               e.text);
}

/* Ends whoever is in there, and removes it. One that is gone is as good. */
static int end_group(struct handle *handle, struct err *e)
{
	if (handle_group(handle, e) < 0) {
		if (e->code == EOWNERDEAD)
			container_warn("%s: it is left alone", e->text);
		return e->code == ENOENT || e->code == ESRCH || e->code == EOWNERDEAD ? 0
		                                                                      : -e->code;
	}
	/* a user who may make none: all end with the first, whose pid namespace it is */
	if (handle->group.count == 0)
		return 0;
	/* to remove one with processes in it is tried for long, because they may be on their way out */
	if (handle->pidfd < 0 && group_wait_empty(&handle->group, 0, e) == 0)
		return group_remove(&handle->group, e);
	TRY(group_kill(&handle->group, e));
	TRY(group_wait_empty(&handle->group, END_MS, e));
	if (handle->pidfd >= 0)
		TRY(await_end(handle->pidfd, handle->entry.id, e));
	return group_remove(&handle->group, e);
}

static int end(struct handle *handle, struct err *e)
{
	const struct store_record *record = &handle->entry.record;

	if (handle->pidfd >= 0 && pidfd_send_signal(handle->pidfd, SIGKILL, NULL, 0) < 0 &&
	    errno != ESRCH)
		return err_sys(e, "ending container %s", handle->entry.id);
	if (record->pid > 0)
		TRY(end_group(handle, e));
	else
		remove_leftover_group(handle);
	if (handle->pidfd >= 0)
		TRY(await_end(handle->pidfd, handle->entry.id, e));
	if (record->rdt_group && rmdir(record->rdt_group) < 0 && errno != ENOENT)
		return err_sys(e, "removing %s", record->rdt_group);
	return 0;
}

static int delete_handled(const struct lifecycle_options *options, struct handle *handle,
                          bool force, struct err *e)
{
	struct store_entry *entry = &handle->entry;
	struct err unread;
	bool has_config;

	if (handle->pidfd >= 0 && !force)
		return err_set(
			e, EBUSY,
			"cannot delete container %s that is not stopped: it is %s; kill it first, "
			"or delete it with --force",
			entry->id, handle->status == OCI_CREATED ? "created" : "running");
	TRY(end(handle, e));
	has_config = entry->has_record && store_config(entry, &unread) >= 0;
	if (entry->has_record && !has_config)
		container_warn("no poststop hooks are run: %s", unread.text);
	TRY(store_remove(options->root, entry, e));
	if (has_config)
		run_poststop_hooks(&entry->config, entry->id, entry->record.bundle);
	return 0;
}

/* Its creator first, which would make it again; then who is waited for by who holds the lock. */
static int end_and_look(const struct lifecycle_options *options, struct handle *handle,
                        struct err *e)
{
	TRY(handle_look(options, STORE_UNLOCKED, handle, e));
	store_end_creator(&handle->entry);
	if (handle->pidfd >= 0)
		pidfd_send_signal(handle->pidfd, SIGKILL, NULL, 0);
	handle_release(handle);
	return handle_look(options, STORE_BOUNDED, handle, e);
}

static int look_by_force(const struct lifecycle_options *options, struct handle *handle,
                         struct err *e)
{
	int r = handle_look(options, STORE_AT_ONCE, handle, e);

	return r == -ETIMEDOUT ? end_and_look(options, handle, e) : r;
}

/* With state.json nobody knows any more what else there is. */
static int discard(const struct lifecycle_options *options, const struct err *damage, struct err *e)
{
	container_warn("%s: the container's directory is removed; its group and its processes, if "
	               "there are any, are left",
	               damage->text);
	return store_discard(options->root, options->id, e);
}

int container_delete(const struct lifecycle_options *options, bool force, struct err *e)
{
	struct handle handle;
	struct err damage;
	int r = force ? look_by_force(options, &handle, e)
	              : handle_look(options, STORE_PATIENT, &handle, e);

	if (r == -EBADMSG && force) {
		damage = *e;
		r = discard(options, &damage, e);
		return r == -ENOENT ? 0 : r;
	}
	if (r == -ENOENT && force)
		return 0;
	TRY(r);
	r = delete_handled(options, &handle, force, e);
	handle_release(&handle);
	return r < 0 ? r : 0;
}

/* ---- pause, update ---- */

static int pause_handled(struct handle *handle, const void *wanted, void *found, struct err *e)
{
	const bool *paused = wanted;
	bool frozen;

	(void)found;
	if (handle->pidfd < 0)
		return not_running(handle->entry.id, e);
	TRY(group_is_frozen(&handle->group, &frozen, e));
	if (frozen == *paused)
		return err_set(e, EINVAL, "container %s is %s", handle->entry.id,
		               frozen ? "paused already" : "not paused");
	return group_freeze(&handle->group, *paused, e);
}

int container_pause(const struct lifecycle_options *options, bool paused, struct err *e)
{
	return with_group(options, STORE_PATIENT, pause_handled, &paused, NULL, e);
}

static int update_handled(struct handle *handle, const void *wanted, void *found, struct err *e)
{
	(void)found;
	if (handle->pidfd < 0)
		return not_running(handle->entry.id, e);
	return group_set(&handle->group, wanted, true, e);
}

int container_update(const struct lifecycle_options *options, const struct oci_resources *resources,
                     struct err *e)
{
	return with_group(options, STORE_PATIENT, update_handled, resources, NULL, e);
}

static int update_rdt(struct handle *handle, const char *schema, struct err *e)
{
	const char *directory = handle->entry.record.rdt_group;
	char path[4096];

	if (!directory)
		return err_set(
			e, ENOTSUP,
			"container %s has no Intel RDT group of its own; give it linux.intelRdt",
			handle->entry.id);
	TRY(text_format(path, sizeof path, e, "%s/schemata", directory));
	return file_write(AT_FDCWD, path, schema, e);
}

int container_update_rdt(const struct lifecycle_options *options, const char *schema, struct err *e)
{
	struct handle handle;
	int r;

	TRY(handle_look(options, STORE_PATIENT, &handle, e));
	r = update_rdt(&handle, schema, e);
	handle_release(&handle);
	return r < 0 ? r : 0;
}

/* ---- processes ---- */

struct processes {
	pid_t **pids;
	size_t *count;
};

static int list_handled(struct handle *handle, const void *wanted, void *found, struct err *e)
{
	struct processes *processes = found;

	(void)wanted;
	return group_processes(&handle->group, processes->pids, processes->count, e);
}

int container_processes(const struct lifecycle_options *options, pid_t **pids, size_t *count,
                        struct err *e)
{
	struct processes processes = {pids, count};

	return with_group(options, STORE_UNLOCKED, list_handled, NULL, &processes, e);
}
