/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd as the one who makes the group: a transient scope by org.freedesktop.systemd1.Manager, called
 * through busctl(1). A scope must have a process when it begins and ends with its last, so one of ours
 * waits in it until the container's own is there. What systemd does not know of linux.resources is
 * written to the files all the same; what it knows is told, so that it does not undo it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/group_internal.h"

enum { START_TIMEOUT_US = 30000000, START_PAUSE_US = 2000 };

static const char service[] = "org.freedesktop.systemd1";
static const char object[] = "/org/freedesktop/systemd1";
static const char interface[] = "org.freedesktop.systemd1.Manager";

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

/* "SLICE:PREFIX:NAME", or nothing: the defaults of runc. */
int group_systemd_path(const char *cgroups_path, const char *id, char **path, char **unit,
                       struct err *e)
{
	scoped_mem char *copy = strdup(cgroups_path ? cgroups_path : ""), *made = NULL;
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
	if (asprintf(&made, "%s%s%s.scope", prefix, *prefix ? "-" : "", name) < 0)
		return err_set(e, ENOMEM, "linux.cgroupsPath: no memory");
	if (strlen(made) > 255)
		return err_set(e, ENAMETOOLONG, "linux.cgroupsPath: \"%s\" is too long for a unit",
		               made);
	TRY(slice_path(*slice ? slice : geteuid() == 0 ? "system.slice" : "user.slice", path, e));
	*unit = take_mem(&made);
	return 0;
}

/* ---- calls ---- */

/* The words of a busctl command: COUNT properties are in it. */
struct call {
	struct string_list words;
	int count;
};

static int add(struct call *call, struct err *e, const char *const words[])
{
	for (; *words; words++)
		TRY(string_list_add(&call->words, *words, e));
	return 0;
}
#define ADD(call, e, ...) add(call, e, (const char *const[]){__VA_ARGS__, NULL})

static int add_u64(struct call *call, const char *property, uint64_t value, struct err *e)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, value);
	call->count++;
	return ADD(call, e, property, "t", text);
}

static int begin(struct call *call, const char *method, const char *signature, struct err *e)
{
	if (access("/run/systemd/system", F_OK) < 0)
		return err_set(e, ENOTSUP,
		               "systemd does not run here (there is no /run/systemd/system), so it "
		               "cannot make the container's cgroup; leave --systemd-cgroup away");
	TRY(ADD(call, e, "busctl"));
	if (geteuid() != 0)
		TRY(ADD(call, e, "--user"));
	return ADD(call, e, "call", service, object, interface, method, signature);
}

static int run(struct call *call, const char *what, const char *unit, struct err *e)
{
	/* of the user's own bus */
	const char *directory = getenv("XDG_RUNTIME_DIR"),
		   *bus = getenv("DBUS_SESSION_BUS_ADDRESS");
	scoped_mem char *first = NULL, *second = NULL;
	const char *environment[4] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
	int r;

	if (asprintf(&first, "XDG_RUNTIME_DIR=%s", directory ? directory : "") < 0 ||
	    asprintf(&second, "DBUS_SESSION_BUS_ADDRESS=%s", bus ? bus : "") < 0)
		return err_set(e, ENOMEM, "systemd: no memory");
	if (geteuid() != 0 && directory)
		environment[2] = bus ? second : first;
	r = process_run((const char *const *)call->words.items, environment, -1, -1, e);
	if (r == 0)
		return 0;
	err_in(e, "systemd: %s the unit %s", what, unit);
	return err_hint(e, "see systemctl status %s; without systemd: leave --systemd-cgroup away",
	                unit);
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

static int start_words(struct call *call, const struct group *group, const char *slice,
                       struct err *e)
{
	char pid[16];

	snprintf(pid, sizeof pid, "%d", group->placeholder);
	TRY(begin(call, "StartTransientUnit", "ssa(sv)a(sa(sv))", e));
	TRY(ADD(call, e, group->unit, "fail", "9"));
	TRY(ADD(call, e, "Description", "s", "container of agentdock-runtime"));
	TRY(ADD(call, e, "Slice", "s", slice));
	TRY(ADD(call, e, "PIDs", "au", "1", pid));
	TRY(ADD(call, e, "Delegate", "b", "true"));
	TRY(ADD(call, e, "DefaultDependencies", "b", "false"));
	TRY(ADD(call, e, "CPUAccounting", "b", "true"));
	TRY(ADD(call, e, "MemoryAccounting", "b", "true"));
	TRY(ADD(call, e, "TasksAccounting", "b", "true"));
	TRY(ADD(call, e, "CollectMode", "s", "inactive-or-failed"));
	return ADD(call, e, "0");
}

/* The call ends when the job is queued; its end shows in the tree that systemd keeps. */
static int await_start(const struct group *group, struct err *e)
{
	const struct timespec pause = {.tv_nsec = START_PAUSE_US * 1000};
	const struct group_hierarchy *of = group_v1(group, "name=systemd");
	uint64_t start_us = clock_us();
	char file[32], text[CONTROL_TEXT_SIZE];

	if (!of)
		of = group_v2(group);
	if (!of)
		return err_set(e, ENOTSUP,
		               "systemd: the tree that it keeps its groups in is not mounted here");
	snprintf(file, sizeof file, "/proc/%d/cgroup", group->placeholder);
	while (control_read(AT_FDCWD, file, text, sizeof text) < 0 ||
	       !group_is_named(text, of->controllers, of->path)) {
		if (clock_us() - start_us > START_TIMEOUT_US)
			return err_set(
				e, ETIMEDOUT,
				"systemd: the unit %s did not start; see systemctl status %s",
				group->unit, group->unit);
		nanosleep(&pause, NULL);
	}
	return 0;
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

int group_systemd_start(struct group *group, struct err *e)
{
	struct call call = {0};
	char slice[256];
	int r;

	TRY(slice_of(group, slice, sizeof slice, e));
	TRY(check_devices(group, e));
	r = start_placeholder(group, e);
	if (r == 0)
		r = start_words(&call, group, slice, e);
	if (r == 0)
		r = run(&call, "starting", group->unit, e);
	if (r == 0)
		r = await_start(group, e);
	string_list_release(&call.words);
	return r;
}

/* A unit that is gone cannot be stopped, and need not. */
void group_systemd_stop(const struct group *group)
{
	struct call call = {0};
	struct err ignored;

	if (group->manager == GROUP_SYSTEMD && group->unit &&
	    begin(&call, "StopUnit", "ss", &ignored) == 0 &&
	    ADD(&call, &ignored, group->unit, "replace") == 0)
		run(&call, "stopping", group->unit, &ignored);
	string_list_release(&call.words);
}

/* ---- resources ---- */

static uint64_t unlimited(int64_t value)
{
	return value < 0 ? UINT64_MAX : (uint64_t)value;
}

static int add_memory(struct call *call, const struct oci_memory *memory, struct err *e)
{
	if (memory->limit.set && memory->limit.value)
		TRY(add_u64(call, "MemoryMax", unlimited(memory->limit.value), e));
	if (memory->reservation.set && memory->reservation.value)
		TRY(add_u64(call, "MemoryLow", unlimited(memory->reservation.value), e));
	if (memory->swap.set && memory->swap.value < 0)
		return add_u64(call, "MemorySwapMax", UINT64_MAX, e);
	if (memory->swap.set && memory->limit.set && memory->limit.value > 0 &&
	    memory->swap.value >= memory->limit.value)
		return add_u64(call, "MemorySwapMax",
		               (uint64_t)(memory->swap.value - memory->limit.value), e);
	return 0;
}

/* systemd keeps what a second has, in steps of 10 ms. */
static uint64_t quota_of_second(int64_t quota, uint64_t period)
{
	uint64_t us;

	if (quota <= 0)
		return UINT64_MAX;
	us = (uint64_t)((unsigned __int128)quota * 1000000 / period);
	return (us + 9999) / 10000 * 10000;
}

/* A list such as "0-3,7" as bytes of bits. */
static int add_list(struct call *call, const char *property, const char *list, struct err *e)
{
	unsigned char bits[128] = {0};
	char text[24];
	size_t bytes = 0;

	for (unsigned i = 0; i < sizeof bits * 8; i++) {
		char number[16];

		snprintf(number, sizeof number, "%u", i);
		if (!group_list_within(number, list))
			continue;
		bits[i / 8] |= (unsigned char)(1U << i % 8);
		bytes = i / 8 + 1;
	}
	snprintf(text, sizeof text, "%zu", bytes);
	TRY(ADD(call, e, property, "ay", text));
	for (size_t i = 0; i < bytes; i++) {
		snprintf(text, sizeof text, "%u", bits[i]);
		TRY(ADD(call, e, text));
	}
	call->count++;
	return 0;
}

static int add_cpu(struct call *call, const struct oci_cpu *cpu, struct err *e)
{
	uint64_t period = cpu->period.set && cpu->period.value ? cpu->period.value : 100000;

	if (cpu->shares.set && cpu->shares.value)
		TRY(add_u64(call, "CPUWeight", group_weight_of_shares(cpu->shares.value), e));
	if (cpu->period.set && cpu->period.value)
		TRY(add_u64(call, "CPUQuotaPeriodUSec", period, e));
	if (cpu->quota.set && cpu->quota.value)
		TRY(add_u64(call, "CPUQuotaPerSecUSec", quota_of_second(cpu->quota.value, period),
		            e));
	if (cpu->cpus && *cpu->cpus)
		TRY(add_list(call, "AllowedCPUs", cpu->cpus, e));
	if (cpu->mems && *cpu->mems)
		TRY(add_list(call, "AllowedMemoryNodes", cpu->mems, e));
	return 0;
}

static int add_resources(struct call *call, const struct oci_resources *resources, struct err *e)
{
	if (resources->memory)
		TRY(add_memory(call, resources->memory, e));
	if (resources->cpu)
		TRY(add_cpu(call, resources->cpu, e));
	if (resources->pids)
		TRY(add_u64(call, "TasksMax",
		            resources->pids->limit == 0 ? 1 : unlimited(resources->pids->limit),
		            e));
	if (resources->block_io && resources->block_io->weight.set &&
	    resources->block_io->weight.value)
		TRY(add_u64(call, "IOWeight",
		            group_weight_of_block_io(resources->block_io->weight.value), e));
	return 0;
}

static int set(struct call *call, struct call *properties, const char *unit, struct err *e)
{
	char count[16];

	TRY(begin(call, "SetUnitProperties", "sba(sv)", e));
	snprintf(count, sizeof count, "%d", properties->count);
	TRY(ADD(call, e, unit, "true", count));
	for (size_t i = 0; i < properties->words.count; i++)
		TRY(string_list_add(&call->words, properties->words.items[i], e));
	return run(call, "setting the limits of", unit, e);
}

int group_systemd_set(const struct group *group, const struct oci_resources *resources,
                      struct err *e)
{
	struct call call = {0}, properties = {0};
	int r = add_resources(&properties, resources, e);

	if (r == 0 && properties.count > 0)
		r = set(&call, &properties, group->unit, e);
	string_list_release(&call.words);
	string_list_release(&properties.words);
	return r;
}
