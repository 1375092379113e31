/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd as the one who makes the group: a transient scope, one call (systemd_bus.h). A scope must have a
 * process when it begins and ends with its last, so one of ours waits in it until the container's own is
 * there. Device rules are not told to systemd, which then leaves the group's program alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/group_internal.h"
#include "container/systemd_bus.h"

static const char manager[] = "org.freedesktop.systemd1.Manager";

/* Is it the user's own manager that we ask? The root of a user namespace is a user as well. */
static bool is_users(void)
{
	return geteuid() != 0 || !process_has_host_ids();
}

/* ---- names ---- */

static bool is_unit_name(const char *name)
{
	for (; *name; name++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.-",
		            *name))
			return false;
	return true;
}

/* "a-b.slice" is at a.slice/a-b.slice, "-.slice" at the top. */
static int slice_path(const char *slice, char **path, struct err *e)
{
	static const char suffix[] = ".slice";
	size_t length = strlen(slice), stem = length - (sizeof suffix - 1), size = 0;
	scoped_mem char *text = NULL;
	FILE *out;

	if (length <= sizeof suffix - 1 || strcmp(slice + stem, suffix) != 0 ||
	    !is_unit_name(slice) || (strcmp(slice, "-.slice") != 0 && strstr(slice, "--")) ||
	    (strcmp(slice, "-.slice") != 0 && (slice[0] == '-' || slice[stem - 1] == '-')))
		return err_set(e, EINVAL,
		               "linux.cgroupsPath: \"%s\" is no name of a slice; give "
		               "\"slice:prefix:name\", with a slice such as \"system.slice\"",
		               slice);
	out = open_memstream(&text, &size);
	if (!out)
		return err_sys(e, "linux.cgroupsPath");
	for (size_t i = 1; i <= stem && slice[0] != '-'; i++)
		if (slice[i] == '-' || i == stem)
			fprintf(out, "%s%.*s%s", size || ftell(out) ? "/" : "", (int)i, slice,
			        suffix);
	if (fclose(out) != 0)
		return err_set(e, ENOMEM, "linux.cgroupsPath: no memory");
	*path = take_mem(&text);
	return 0;
}

static char *scope_name(const char *prefix, const char *name)
{
	char *made;

	return asprintf(&made, "%s%s%s.scope", prefix, *prefix ? "-" : "", name) < 0 ? NULL : made;
}

/* "SLICE:PREFIX:NAME", or nothing: the defaults of runc. */
int group_systemd_path(const char *cgroups_path, const char *id, char **path, char **unit,
                       struct err *e)
{
	scoped_mem char *copy = strdup(cgroups_path ? cgroups_path : "");
	char *next = copy, *slice, *prefix, *name;
	bool is_slice;

	if (!copy)
		return err_set(e, ENOMEM, "linux.cgroupsPath: no memory");
	slice = strsep(&next, ":");
	prefix = *copy || next ? strsep(&next, ":") : (char *)(uintptr_t) "agentdock";
	name = next;
	if (!prefix || (cgroups_path && *cgroups_path && (!name || strchr(name, ':'))))
		return err_set(e, EINVAL,
		               "linux.cgroupsPath: \"%s\": with --systemd-cgroup give "
		               "\"slice:prefix:name\"",
		               cgroups_path);
	if (!name || !*name)
		name = (char *)(uintptr_t)id;
	is_slice = strlen(name) > 6 && strcmp(name + strlen(name) - 6, ".slice") == 0;
	if (is_slice || !is_unit_name(name) || !is_unit_name(prefix))
		return err_set(e, EINVAL,
		               "linux.cgroupsPath: \"%s\" and \"%s\" make no name of a scope; give "
		               "letters, digits, '_', '-', '.'",
		               prefix, name);
	scoped_mem char *made = scope_name(prefix, name);
	if (!made)
		return err_set(e, ENOMEM, "linux.cgroupsPath: no memory");
	if (strlen(made) > 255)
		return err_set(e, ENAMETOOLONG, "linux.cgroupsPath: \"%s\" is too long for a unit",
		               made);
	TRY(slice_path(*slice ? slice : is_users() ? "user.slice" : "system.slice", path, e));
	*unit = take_mem(&made);
	return 0;
}

/* ---- place ---- */

/* Where this manager's groups begin: for the system's that is the root, unless it is in a container. */
static int ask_root(char *root, size_t size, struct err *e)
{
	struct bus_body body = {0};
	struct bus bus;
	int r;

	TRY(bus_open(&bus, is_users(), e));
	bus_put_string(&body, manager);
	bus_put_string(&body, "ControlGroup");
	r = bus_ask(&bus, &(struct bus_call){"org.freedesktop.DBus.Properties", "Get", "ss", &body},
	            root, size, e);
	bus_body_release(&body);
	bus_close(&bus);
	return r;
}

int group_systemd_place(struct group *group, const char *cgroups_path, const char *id, char **path,
                        struct err *e)
{
	scoped_mem char *below = NULL;
	char root[CONTROL_TEXT_SIZE];

	TRY(group_systemd_path(cgroups_path, id, &below, &group->unit, e));
	TRY(ask_root(root, sizeof root, e));
	if (asprintf(path, "%s/%s/%s", strcmp(root, "/") == 0 ? "" : root, below, group->unit) < 0)
		return err_set(e, ENOMEM, "%s: no memory", group->unit);
	return 0;
}

/* ---- start ---- */

static int start_placeholder(struct group *group, struct err *e)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	pid_t pid = process_clone3(&args);

	if (pid < 0) {
		errno = -pid;
		return err_sys(e, "systemd: a process for the scope to begin with");
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(0, ~0U, 0);
		for (;;)
			pause();
	}
	group->placeholder = pid;
	return 0;
}

void group_systemd_end_placeholder(struct group *group)
{
	pid_t pid = group->placeholder;

	group->placeholder = 0;
	if (pid > 0)
		process_end(&pid, true);
}

static void put_flag(struct bus_body *body, const char *name)
{
	bus_put_property(body, name, "b");
	bus_put_u32(body, 1);
}

static void put_text(struct bus_body *body, const char *name, const char *text)
{
	bus_put_property(body, name, "s");
	bus_put_string(body, text);
}

static void put_scope(struct bus_body *body, const struct group *group, const char *slice,
                      const struct oci_resources *resources)
{
	struct bus_array properties, list;

	bus_put_string(body, group->unit);
	bus_put_string(body, "fail");
	properties = bus_begin_array(body, 8);
	put_text(body, "Description", "container of agentdock-runtime");
	put_text(body, "Slice", slice);
	put_text(body, "CollectMode", "inactive-or-failed");
	bus_put_property(body, "PIDs", "au");
	list = bus_begin_array(body, 4);
	bus_put_u32(body, (uint32_t)group->placeholder);
	bus_end_array(body, list);
	put_flag(body, "Delegate");
	put_flag(body, "CPUAccounting");
	put_flag(body, "MemoryAccounting");
	put_flag(body, "TasksAccounting");
	bus_put_property(body, "DefaultDependencies", "b");
	bus_put_u32(body, 0);
	if (resources)
		group_systemd_put_limits(body, resources);
	bus_end_array(body, properties);
	bus_end_array(body, bus_begin_array(body, 8));
}

static int failed(const struct group *group, const char *what, struct err *e)
{
	err_in(e, "%s the unit %s", what, group->unit);
	if (e->code == EEXIST)
		return err_hint(e,
		                "delete the container whose it is, stop it (systemctl stop %s), or "
		                "give another id or linux.cgroupsPath",
		                group->unit);
	if (e->code == ETIMEDOUT || e->code == EIO)
		return err_hint(e, "see systemctl status %s, and journalctl", group->unit);
	return -e->code;
}

/* systemd gives a group another name where the unit's is one of the kernel's: "memory.slice". */
static int check_place(const struct group *group, struct err *e)
{
	const struct group_hierarchy *of = group_v1(group, "name=systemd");
	char file[32], text[CONTROL_TEXT_SIZE];
	int r;

	if (!of)
		of = group_v2(group);
	snprintf(file, sizeof file, "/proc/%d/cgroup", group->placeholder);
	r = control_read(AT_FDCWD, file, text, sizeof text);
	if (of && r >= 0 && group_is_named(text, of->controllers, of->path))
		return 0;
	return err_set(e, ENOTSUP,
	               "systemd: the unit %s is not at %s; give a slice and a name in "
	               "linux.cgroupsPath that begin with a letter and are not a controller's, and "
	               "have the tree that systemd keeps its groups in mounted here",
	               group->unit, of ? of->place : "a cgroup that can be seen");
}

/*
 * On v1 systemd allows every device again whenever it reloads, because it takes the devices hierarchy for
 * its own also where it delegated the group.
 */
static int check_devices(const struct group *group, struct err *e)
{
	if (!group_v1(group, "devices"))
		return 0;
	return err_set(e, ENOTSUP,
	               "systemd: devices are kept from containers by a v1 hierarchy here, and "
	               "systemd would allow them all again when it reloads; leave --systemd-cgroup "
	               "away, or boot with systemd.unified_cgroup_hierarchy=1");
}

/* The directory above the scope's; the root of all slices has none. */
static int slice_of(const struct group *group, char *slice, size_t size, struct err *e)
{
	const char *path = group->hierarchies[0].path, *end = strrchr(path, '/'), *start;

	if (!end)
		return text_format(slice, size, e, "-.slice");
	start = memrchr(path, '/', (size_t)(end - path));
	start = start ? start + 1 : path;
	return text_format(slice, size, e, "%.*s", (int)(end - start), start);
}

static int start(struct group *group, const char *slice, const struct oci_resources *resources,
                 struct err *e)
{
	struct bus_body body = {0};
	struct bus bus;
	int r;

	TRY(bus_open(&bus, is_users(), e));
	put_scope(&body, group, slice, resources);
	r = bus_do(&bus,
	           &(struct bus_call){manager, "StartTransientUnit", "ssa(sv)a(sa(sv))", &body}, e);
	bus_body_release(&body);
	bus_close(&bus);
	return r < 0 ? failed(group, "starting", e) : check_place(group, e);
}

int group_systemd_start(struct group *group, const struct oci_resources *resources, struct err *e)
{
	char slice[256];

	TRY(slice_of(group, slice, sizeof slice, e));
	TRY(check_devices(group, e));
	TRY(start_placeholder(group, e));
	return start(group, slice, resources, e);
}

/* ---- after that ---- */

int group_systemd_set(const struct group *group, const struct oci_resources *resources,
                      struct err *e)
{
	const struct bus_call ping = {"org.freedesktop.DBus.Peer", "Ping", NULL, NULL};
	struct bus_body body = {0};
	struct bus_array properties;
	struct bus bus;
	int r;

	TRY(bus_open(&bus, is_users(), e));
	bus_put_string(&body, group->unit);
	bus_put_u32(&body, 1); /* till it ends, not in /etc */
	properties = bus_begin_array(&body, 8);
	group_systemd_put_limits(&body, resources);
	bus_end_array(&body, properties);
	r = bus_ask(&bus, &(struct bus_call){manager, "SetUnitProperties", "sba(sv)", &body}, NULL,
	            0, e);
	/* it writes the files after it has answered, and before it looks at the next call */
	if (r == 0)
		r = bus_ask(&bus, &ping, NULL, 0, e);
	bus_body_release(&body);
	bus_close(&bus);
	return r < 0 ? failed(group, "setting the limits of", e) : 0;
}

int group_systemd_attach(const struct group *group, pid_t pid, struct err *e)
{
	struct bus_body body = {0};
	struct bus_array pids;
	struct bus bus;
	int r;

	TRY(bus_open(&bus, is_users(), e));
	bus_put_string(&body, group->unit);
	bus_put_string(&body, "");
	pids = bus_begin_array(&body, 4);
	bus_put_u32(&body, (uint32_t)pid);
	bus_end_array(&body, pids);
	r = bus_ask(&bus, &(struct bus_call){manager, "AttachProcessesToUnit", "ssau", &body}, NULL,
	            0, e);
	bus_body_release(&body);
	bus_close(&bus);
	return r < 0 ? failed(group, "putting a process into", e) : 0;
}

int group_systemd_stop(const struct group *group, struct err *e)
{
	struct bus_body body = {0};
	struct bus bus;
	int r;

	if (bus_open(&bus, is_users(), e) < 0)
		return e->code == ENOTSUP ? 0 : -e->code;
	bus_put_string(&body, group->unit);
	bus_put_string(&body, "replace");
	r = bus_do(&bus, &(struct bus_call){manager, "StopUnit", "ss", &body}, e);
	bus_body_release(&body);
	bus_close(&bus);
	if (r == 0 || e->code == ENOENT)
		return 0;
	return failed(group, "stopping", e);
}
