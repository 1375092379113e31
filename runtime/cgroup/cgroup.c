/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a group: create and delegate, freeze, kill, wait, remove. Owns the descriptors in
 * struct cgroup. The v2 group is made first and removed last, so that what a crash leaves can
 * always be found by its name in the v2 tree.
 */
#include "runtime/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "runtime/cgroup/internal.h"

enum {
	FREEZE_TIMEOUT_MS = 10000,
	PATH_ABOVE_SIZE = 3 * 64 + 1, /* "../" for each component that fits a path */
};

void cgroup_init(struct cgroup *cgroup)
{
	*cgroup = (struct cgroup){
		.mode = CGROUP_NONE, .v2fd = -1, .v1fds = {-1, -1, -1}, .tasksfds = {-1, -1, -1}};
}

void cgroup_release(struct cgroup *cgroup)
{
	close_fd(&cgroup->v2fd);
	for (int i = 0; i < CONTROLLERS; i++) {
		close_fd(&cgroup->v1fds[i]);
		close_fd(&cgroup->tasksfds[i]);
	}
}

/* ---- names ---- */

/* Components of letters, digits, "_", "-" and ".", none of which begins with "." */
static bool is_group_path(const char *path, bool slashes)
{
	bool start = true;

	for (const char *c = path; *c; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		             (*c >= '0' && *c <= '9') || *c == '_' || *c == '-';

		if (!plain && !(*c == '.' && !start) && !(*c == '/' && slashes && !start))
			return false;
		start = *c == '/';
	}
	return !start;
}

static int group_name(struct cgroup *cgroup, const struct cgroup_host *host, const char *parent,
                      const char *name, struct err *e)
{
	if (host->mode == CGROUP_NONE)
		return err_set(e, ENOTSUP,
		               "no cgroup v2 hierarchy is mounted (see /proc/self/mountinfo), and "
		               "without it a sandbox cannot be limited or killed for sure; mount "
		               "-t cgroup2 cgroup2 /sys/fs/cgroup/unified, or boot with "
		               "systemd.unified_cgroup_hierarchy=1");
	if (!is_group_path(parent, true))
		return err_set(e, EINVAL,
		               "AGENTDOCK_CGROUP_PARENT: '%s': want a path below the cgroup mounts "
		               "(no leading /, no ..), of letters, digits, '_', '-' and '.'",
		               parent);
	if (!is_group_path(name, false))
		return err_set(e, EINVAL,
		               "cgroup name \"%s\": give letters, digits, '_', '-' and '.'", name);
	TRY(text_format(cgroup->path, sizeof cgroup->path, e, "%s/%s", parent, name));
	cgroup->mode = host->mode;
	return 0;
}

/* ---- delegation ---- */

/* Opens the group that is LEVELS above CGROUP. */
static int open_above(const struct cgroup *cgroup, int levels)
{
	char path[PATH_ABOVE_SIZE];
	size_t used = 0;
	int fd;

	for (int i = 0; i < levels; i++)
		used += (size_t)snprintf(path + used, sizeof path - used, "../");
	fd = openat(cgroup->v2fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The path of the group that is LEVELS above CGROUP, below the mount; "/" is the root. */
static const char *group_above(const struct cgroup *cgroup, int levels, char *path, size_t size)
{
	char *slash;

	snprintf(path, size, "/%s", cgroup->path);
	while (levels-- > 0 && (slash = strrchr(path, '/')))
		slash[slash == path] = '\0';
	return path;
}

static int enable_failed(const struct cgroup *cgroup, const char *controller, int levels, int code,
                         struct err *e)
{
	char above[sizeof cgroup->path + 1];

	group_above(cgroup, levels, above, sizeof above);
	if (code == EBUSY)
		return err_set(e, EBUSY,
		               "the %s controller cannot be enabled in cgroup.subtree_control of "
		               "cgroup %s, because processes sit in that group itself; move them "
		               "into a group below it",
		               controller, above);
	errno = code;
	err_sys(e, "the %s controller cannot be enabled in cgroup.subtree_control of cgroup %s",
	        controller, above);
	return err_hint(e, "%s",
	                code == EINVAL ? "move real-time processes out of the groups below it"
	                               : "delegate it to agentdock, or see agentdock doctor");
}

int controller_enable(const struct cgroup *cgroup, int controller, struct err *e)
{
	const char *name = controller_names[controller];
	char text[CONTROL_TEXT_SIZE];
	int levels = 1;

	for (const char *c = cgroup->path; *c; c++)
		levels += *c == '/';
	for (int top = levels; levels > 0; levels--) {
		scoped_fd above = open_above(cgroup, levels);
		int result = above < 0 ? above : 0;

		if (levels == top && above >= 0 &&
		    control_read(above, "cgroup.controllers", text, sizeof text) >= 0 &&
		    !control_has_word(text, name))
			return err_set(e, ENOENT,
			               "the cgroup v2 tree of this host has no %s controller; look "
			               "at cgroup_disable= on the kernel's command line, delegate "
			               "it to this container, or allow the limit to be missing "
			               "(--allow-missing %s)",
			               name, name);
		if (result == 0)
			result = subtree_enable(above, name);
		if (result < 0)
			return enable_failed(cgroup, name, levels, -result, e);
	}
	return 0;
}

/* Enables what can be; a controller that cannot be is the error of a limit that wants it, when the
 * caller sets one (cgroup_limit tells the cause). */
static void delegate(const struct cgroup *cgroup)
{
	static const char *const files[CONTROLLERS] = {"cpu.max", "memory.max", "pids.max"};
	struct err ignored;

	for (int i = 0; i < CONTROLLERS; i++)
		if (cgroup->v1fds[i] < 0 && faccessat(cgroup->v2fd, files[i], F_OK, 0) < 0)
			controller_enable(cgroup, i, &ignored);
}

/* ---- create, open ---- */

/* A group below a frozen one begins frozen, and so would all that is put into it, without a word. */
static int check_thawed(const struct cgroup *cgroup, const char *parent, struct err *e)
{
	char text[CONTROL_TEXT_SIZE];
	uint64_t frozen;

	if (control_read(cgroup->v2fd, "cgroup.events", text, sizeof text) < 0 ||
	    !control_number(text, "frozen", &frozen) || !frozen)
		return 0;
	return err_set(e, EBUSY,
	               "cgroup %s is frozen, and nothing can start in it: write 0 to its "
	               "cgroup.freeze, or to that of the group above it which is frozen",
	               parent);
}

int cgroup_create(struct cgroup *cgroup, const struct cgroup_host *host, const char *parent,
                  const char *name, struct err *e)
{
	struct cgroup made;
	struct err ignored;

	cgroup_init(&made);
	TRY(group_name(&made, host, parent, name, e));
	made.v2fd = hierarchy_make(host->v2_mount, made.path, e);
	TRY(made.v2fd);
	if (check_thawed(&made, parent, e) < 0 || hybrid_create(&made, host, e) < 0) {
		hierarchy_remove(host->v2_mount, made.path, &ignored);
		cgroup_release(&made);
		return -e->code;
	}
	delegate(&made);
	*cgroup = made;
	return 0;
}

int cgroup_open(struct cgroup *cgroup, const struct cgroup_host *host, const char *parent,
                const char *name, struct err *e)
{
	struct cgroup found;

	cgroup_init(&found);
	TRY(group_name(&found, host, parent, name, e));
	found.v2fd = hierarchy_open(host->v2_mount, found.path, e);
	if (found.v2fd < 0 && e->code != ENOENT)
		return -e->code;
	if (found.v2fd < 0)
		found.v2fd = -1;
	if (hybrid_open(&found, host, e) < 0) {
		cgroup_release(&found);
		return -e->code;
	}
	*cgroup = found;
	return 0;
}

int cgroup_take_in(const struct cgroup *cgroup, pid_t pid, struct err *e)
{
	char text[16];
	int r;

	snprintf(text, sizeof text, "%d", pid);
	r = control_write(cgroup->v2fd, "cgroup.procs", text);
	if (r == 0)
		return 0;
	errno = -r;
	return err_sys(e, "cgroup %s: taking process %d in", cgroup->path, pid);
}

/* ---- freeze, kill, wait ---- */

static struct members members_of(const struct cgroup *cgroup)
{
	return (struct members){.fd = cgroup->v2fd, .controllers = "", .path = cgroup->path};
}

int cgroup_freeze(const struct cgroup *cgroup, bool frozen, struct err *e)
{
	struct members members = members_of(cgroup);
	int result = members_freeze(&members, frozen, FREEZE_TIMEOUT_MS);

	if (result == 0)
		return 0;
	errno = -result;
	err_sys(e, "cgroup %s: %s it", cgroup->path, frozen ? "freezing" : "thawing");
	if (result == -ETIMEDOUT)
		err_hint(e, "a process of it is stuck in the kernel; wait for it, or end the "
		            "sandbox");
	else if (result == -ENOENT)
		err_hint(e, "kernels from 5.2 on can freeze; see agentdock doctor");
	return -e->code;
}

int cgroup_signal(const struct cgroup *cgroup, int signo, pid_t spared, struct err *e)
{
	struct members members = members_of(cgroup);
	int result = members_signal(&members, signo, spared);

	if (result >= 0)
		return 0;
	errno = -result;
	return err_sys(e, "cgroup %s: sending a signal to its processes", cgroup->path);
}

int cgroup_kill_each(const struct cgroup *cgroup, struct err *e)
{
	struct members members = members_of(cgroup);

	return members_kill(&members, e);
}

int cgroup_kill(const struct cgroup *cgroup, struct err *e)
{
	int result;

	if (cgroup->v2fd < 0)
		return cgroup->path[0] ? 0 : err_set(e, EBADF, "killing a cgroup that is not open");
	result = control_write(cgroup->v2fd, "cgroup.kill", "1");
	if (result == 0 || result == -ENODEV)
		return 0;
	if (result == -ENOENT)
		return cgroup_kill_each(cgroup, e);
	errno = -result;
	return err_sys(e, "cgroup %s: writing cgroup.kill", cgroup->path);
}

int cgroup_wait_empty(const struct cgroup *cgroup, int timeout_ms, struct err *e)
{
	int result;

	if (cgroup->v2fd < 0)
		return cgroup->path[0] ? 0
		                       : err_set(e, EBADF, "waiting for a cgroup that is not open");
	result = control_await(cgroup->v2fd, "populated", 0, timeout_ms);
	if (result == 0 || result == -ENODEV)
		return 0;
	errno = -result;
	return err_sys(e, "cgroup %s: waiting until no process is in it", cgroup->path);
}

/* ---- remove ---- */

int cgroup_remove(struct cgroup *cgroup, const struct cgroup_host *host, struct err *e)
{
	if (cgroup->path[0] == '\0' || host->mode == CGROUP_NONE)
		return 0;
	TRY(hybrid_remove(cgroup->path, host, e));
	TRY(hierarchy_remove(host->v2_mount, cgroup->path, e));
	cgroup_release(cgroup);
	cgroup->path[0] = '\0';
	return 0;
}
