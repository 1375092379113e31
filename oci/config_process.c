/* SPDX-License-Identifier: Apache-2.0 */
/* "process" ("Process", "POSIX process", "Linux Process", "User") and "hooks" of config.json. */
#include "oci/parts.h"
#include "oci/texts.h"

#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

static const struct shape_field console_fields[] = {
	FIELD_U64(struct oci_console_size, "height", height, UINT64_MAX, .required = true),
	FIELD_U64(struct oci_console_size, "width", width, UINT64_MAX, .required = true),
	FIELD_END,
};
static const struct shape console_shape = {console_fields, sizeof(struct oci_console_size), NULL};

static const struct shape_field user_fields[] = {
	FIELD_U32(struct oci_user, "uid", uid, UINT32_MAX, .required = true),
	FIELD_U32(struct oci_user, "gid", gid, UINT32_MAX, .required = true),
	FIELD_MAYBE_U64(struct oci_user, "umask", umask, UINT32_MAX),
	FIELD_IDS(struct oci_user, "additionalGids", additional_gids, .max = UINT32_MAX),
	FIELD_END,
};
static const struct shape user_shape = {user_fields, sizeof(struct oci_user), NULL};

static const struct shape_field capability_fields[] = {
	FIELD_TEXTS(struct oci_capabilities, "bounding", bounding),
	FIELD_TEXTS(struct oci_capabilities, "effective", effective),
	FIELD_TEXTS(struct oci_capabilities, "inheritable", inheritable),
	FIELD_TEXTS(struct oci_capabilities, "permitted", permitted),
	FIELD_TEXTS(struct oci_capabilities, "ambient", ambient),
	FIELD_END,
};
static const struct shape capabilities_shape = {capability_fields, sizeof(struct oci_capabilities),
                                                NULL};

/* ---- rlimits ---- */

static const struct shape_word rlimit_types[] = {
	{"RLIMIT_AS", RLIMIT_AS},
	{"RLIMIT_CORE", RLIMIT_CORE},
	{"RLIMIT_CPU", RLIMIT_CPU},
	{"RLIMIT_DATA", RLIMIT_DATA},
	{"RLIMIT_FSIZE", RLIMIT_FSIZE},
	{"RLIMIT_LOCKS", RLIMIT_LOCKS},
	{"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
	{"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
	{"RLIMIT_NICE", RLIMIT_NICE},
	{"RLIMIT_NOFILE", RLIMIT_NOFILE},
	{"RLIMIT_NPROC", RLIMIT_NPROC},
	{"RLIMIT_RSS", RLIMIT_RSS},
	{"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
	{"RLIMIT_RTTIME", RLIMIT_RTTIME},
	{"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
	{"RLIMIT_STACK", RLIMIT_STACK},
	{NULL, 0},
};

/* setrlimit(2) refuses it, so that getrlimit could never tell what the document says. */
static int rlimit_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_rlimit *limit = object;

	if (limit->soft > limit->hard)
		return shape_refuse(place, "soft", e, "must not be above \"hard\"");
	return 0;
}

static const struct shape_field rlimit_fields[] = {
	FIELD_WORD(struct oci_rlimit, "type", type, rlimit_types, .required = true),
	FIELD_U64(struct oci_rlimit, "soft", soft, UINT64_MAX, .required = true),
	FIELD_U64(struct oci_rlimit, "hard", hard, UINT64_MAX, .required = true),
	FIELD_END,
};
static const struct shape rlimit_shape = {rlimit_fields, sizeof(struct oci_rlimit), rlimit_check};

static int rlimits_check(const struct oci_rlimits *limits, const struct shape_place *place,
                         struct err *e)
{
	const struct shape_place list = {place, SHAPE_KEY, .key = "rlimits"};
	uint64_t seen = 0;

	for (size_t i = 0; i < limits->count; i++) {
		const struct shape_place at = {&list, SHAPE_INDEX, .index = i};

		if (seen >> limits->items[i].type & 1)
			return shape_refuse(&at, "type", e,
			                    "is limited by an entry before it already");
		seen |= UINT64_C(1) << limits->items[i].type;
	}
	return 0;
}

/* ---- scheduling ---- */

static const struct shape_word policies[] = {
	{"SCHED_OTHER", SCHED_OTHER},
	{"SCHED_FIFO", SCHED_FIFO},
	{"SCHED_RR", SCHED_RR},
	{"SCHED_BATCH", SCHED_BATCH},
	{"SCHED_ISO", 4}, /* reserved: no kernel implements it */
	{"SCHED_IDLE", SCHED_IDLE},
	{"SCHED_DEADLINE", SCHED_DEADLINE},
	{NULL, 0},
};

static const struct shape_word scheduler_flags[] = {
	{"SCHED_FLAG_RESET_ON_FORK", SCHED_FLAG_RESET_ON_FORK},
	{"SCHED_FLAG_RECLAIM", SCHED_FLAG_RECLAIM},
	{"SCHED_FLAG_DL_OVERRUN", SCHED_FLAG_DL_OVERRUN},
	{"SCHED_FLAG_KEEP_POLICY", SCHED_FLAG_KEEP_POLICY},
	{"SCHED_FLAG_KEEP_PARAMS", SCHED_FLAG_KEEP_PARAMS},
	{"SCHED_FLAG_UTIL_CLAMP_MIN", SCHED_FLAG_UTIL_CLAMP_MIN},
	{"SCHED_FLAG_UTIL_CLAMP_MAX", SCHED_FLAG_UTIL_CLAMP_MAX},
	{NULL, 0},
};

static const struct shape_field scheduler_fields[] = {
	FIELD_WORD(struct oci_scheduler, "policy", policy, policies, .required = true),
	FIELD_I64(struct oci_scheduler, "nice", nice, INT32_MIN, INT32_MAX),
	FIELD_I64(struct oci_scheduler, "priority", priority, INT32_MIN, INT32_MAX),
	FIELD_FLAGS(struct oci_scheduler, "flags", flags, scheduler_flags),
	FIELD_U64(struct oci_scheduler, "runtime", runtime, UINT64_MAX),
	FIELD_U64(struct oci_scheduler, "deadline", deadline, UINT64_MAX),
	FIELD_U64(struct oci_scheduler, "period", period, UINT64_MAX),
	FIELD_END,
};
static const struct shape scheduler_shape = {scheduler_fields, sizeof(struct oci_scheduler), NULL};

static const struct shape_word io_classes[] = {
	{"IOPRIO_CLASS_RT", IOPRIO_CLASS_RT},
	{"IOPRIO_CLASS_BE", IOPRIO_CLASS_BE},
	{"IOPRIO_CLASS_IDLE", IOPRIO_CLASS_IDLE},
	{NULL, 0},
};

static const struct shape_field io_fields[] = {
	FIELD_WORD(struct oci_io_priority, "class", class, io_classes, .required = true),
	FIELD_I64(struct oci_io_priority, "priority", priority, 0, 7, .required = true),
	FIELD_END,
};
static const struct shape io_shape = {io_fields, sizeof(struct oci_io_priority), NULL};

static int cpu_list_check(const char *text, const struct shape_place *place, struct err *e)
{
	if (text[strspn(text, "0123456789, -")])
		return shape_refuse(place, NULL, e, "must be a list of CPUs such as \"0-3,7\"");
	return 0;
}

static const struct shape_field affinity_fields[] = {
	FIELD_TEXT(struct oci_affinity, "initial", initial, .check = cpu_list_check),
	FIELD_TEXT(struct oci_affinity, "final", final, .check = cpu_list_check),
	FIELD_END,
};
static const struct shape affinity_shape = {affinity_fields, sizeof(struct oci_affinity), NULL};

/* ---- process ---- */

static int process_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_process *process = object;

	if (process->args.count == 0)
		return shape_refuse(place, "args", e, "must name a command");
	return rlimits_check(&process->rlimits, place, e);
}

static const struct shape_field process_fields[] = {
	FIELD_BOOL(struct oci_process, "terminal", terminal),
	FIELD_OBJECT(struct oci_process, "consoleSize", console_size, struct oci_console_size,
                     console_shape),
	FIELD_OBJECT(struct oci_process, "user", user, struct oci_user, user_shape),
	FIELD_TEXTS(struct oci_process, "args", args),
	FIELD_TEXTS(struct oci_process, "env", env),
	FIELD_TEXT(struct oci_process, "cwd", cwd, .required = true, .check = oci_text_absolute),
	FIELD_OBJECT(struct oci_process, "capabilities", capabilities, struct oci_capabilities,
                     capabilities_shape),
	FIELD_OBJECTS(struct oci_process, "rlimits", rlimits, struct oci_rlimit, rlimit_shape),
	FIELD_TEXT(struct oci_process, "apparmorProfile", apparmor_profile),
	FIELD_BOOL(struct oci_process, "noNewPrivileges", no_new_privileges),
	FIELD_MAYBE_I64(struct oci_process, "oomScoreAdj", oom_score_adj, -1000, 1000),
	FIELD_OBJECT(struct oci_process, "scheduler", scheduler, struct oci_scheduler,
                     scheduler_shape),
	FIELD_TEXT(struct oci_process, "selinuxLabel", selinux_label),
	FIELD_OBJECT(struct oci_process, "ioPriority", io_priority, struct oci_io_priority,
                     io_shape),
	FIELD_OBJECT(struct oci_process, "execCPUAffinity", exec_cpu_affinity, struct oci_affinity,
                     affinity_shape),
	FIELD_END,
};
const struct shape oci_shape_process = {process_fields, sizeof(struct oci_process), process_check};

/* ---- hooks ---- */

static const struct shape_field hook_fields[] = {
	FIELD_TEXT(struct oci_hook, "path", path, .required = true, .check = oci_text_absolute),
	FIELD_TEXTS(struct oci_hook, "args", args),
	FIELD_TEXTS(struct oci_hook, "env", env),
	FIELD_MAYBE_I64(struct oci_hook, "timeout", timeout, 1, INT64_MAX),
	FIELD_END,
};
static const struct shape hook_shape = {hook_fields, sizeof(struct oci_hook), NULL};

#define HOOKS(key, member) FIELD_OBJECTS(struct oci_hooks, key, member, struct oci_hook, hook_shape)
static const struct shape_field hooks_fields[] = {
	HOOKS("prestart", prestart),
	HOOKS("createRuntime", create_runtime),
	HOOKS("createContainer", create_container),
	HOOKS("startContainer", start_container),
	HOOKS("poststart", poststart),
	HOOKS("poststop", poststop),
	FIELD_END,
};
const struct shape oci_shape_hooks = {hooks_fields, sizeof(struct oci_hooks), NULL};
