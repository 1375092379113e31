/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the container's process is: "process" of config.json and what linux.* has of it. What a document
 * asks for and cannot be had is refused before the process is cloned, where that can be told; the rows
 * of the inside act on the calling process, which has one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/number_list.h"
#include "runtime/identity/identity.h"

enum { UMASK_DEFAULT = 0022, CPUS_MAX = 8192, NODES_MAX = 1024 };

/* ---- outside: what can be told before ---- */

/* 0: the process will be in a user namespace, where it has all that there are. */
static int held_capabilities(const struct container *container, uint64_t *held, struct err *e)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

	*held = 0;
	if (oci_config_namespace(container->config, CLONE_NEWUSER))
		return 0;
	if (syscall(SYS_capget, &header, words) < 0)
		return err_sys(e, "reading the capabilities");
	*held = ((uint64_t)words[1].permitted << 32 | words[0].permitted) & identity_bounding_set();
	return 0;
}

/*
 * Raises those hard limits of the runtime's own that are below what is asked for: the process
 * inherits them, and in a user namespace it could not raise them itself.
 */
static int raise_hard_limits(const struct oci_rlimits *rlimits, struct err *e)
{
	struct identity raised = {0};

	for (size_t i = 0; i < rlimits->count; i++) {
		const struct oci_rlimit *want = &rlimits->items[i];
		struct rlimit own;

		if (getrlimit((__rlimit_resource_t)want->type, &own) < 0)
			return err_sys(e, "process.rlimits[%zu]", i);
		if (want->hard > own.rlim_max)
			raised.rlimits[raised.rlimits_count++] = (struct rlimit_spec){
				.resource = want->type, .soft = own.rlim_cur, .hard = want->hard};
	}
	return identity_set_rlimits(&raised, e) < 0 ? err_in(e, "process.rlimits") : 0;
}

static const char *apparmor_profile(const struct container *container)
{
	const char *given = container->joins ? container->options->apparmor : NULL;

	return given ? given : container->process->apparmor_profile;
}

static const char *selinux_label(const struct container *container)
{
	const char *given = container->joins ? container->options->process_label : NULL;

	return given ? given : container->process->selinux_label;
}

static bool is_set(const char *text)
{
	return text && *text;
}

/* Where nothing confines, "unconfined" is what all are. */
static bool wants_apparmor(const struct container *container, bool enabled)
{
	const char *profile = apparmor_profile(container);

	return is_set(profile) && (enabled || strcmp(profile, "unconfined") != 0);
}

static bool has_apparmor(void)
{
	char text[8];
	struct err ignored;

	return file_read(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", text, sizeof text,
	                 &ignored) > 0 &&
	       text[0] == 'Y';
}

static int check_labels(const struct container *container, struct err *e)
{
	struct statfs status;

	if (wants_apparmor(container, false) && !has_apparmor())
		return err_set(e, ENOTSUP,
		               "process.apparmorProfile: AppArmor is not enabled on this host; "
		               "leave the key out, or start the kernel with apparmor=1");
	if (is_set(selinux_label(container)) &&
	    (statfs("/sys/fs/selinux", &status) < 0 || (uint32_t)status.f_type != SELINUX_MAGIC))
		return err_set(e, ENOTSUP,
		               "process.selinuxLabel: SELinux is not enabled on this host; leave "
		               "the key out, or start the kernel with selinux=1");
	return 0;
}

static int set_cpus(const char *key, const char *list, struct err *e)
{
	unsigned long bits[CPUS_MAX / NUMBER_LIST_WORD];

	if (number_list_parse(list, bits, CPUS_MAX, e) < 0)
		return err_in(e, "process.execCPUAffinity.%s", key);
	if (syscall(SYS_sched_setaffinity, 0, sizeof bits, bits) < 0)
		return err_sys(e, "process.execCPUAffinity.%s: running on the CPUs %s", key, list);
	return 0;
}

OUTSIDE(check_process)
{
	const struct oci_process *process = container->process;
	uint64_t held;

	if (!process)
		return 0;
	TRY(held_capabilities(container, &held, e));
	TRY(capability_sets_read(process->capabilities, held, &container->capabilities, e));
	TRY(raise_hard_limits(&process->rlimits, e));
	TRY(check_labels(container, e));
	/* before the group is joined, which the clone does: it inherits these */
	if (container->joins && process->exec_cpu_affinity &&
	    is_set(process->exec_cpu_affinity->initial))
		TRY(set_cpus("initial", process->exec_cpu_affinity->initial, e));
	return 0;
}

/* ---- priorities ---- */

INSIDE(set_oom_score)
{
	char text[16];

	if (!in->process->oom_score_adj.set)
		return 0;
	snprintf(text, sizeof text, "%d", (int)in->process->oom_score_adj.value);
	if (file_write(in->hostprocfd, "self/oom_score_adj", text, e) == 0)
		return 0;
	err_in(e, "process.oomScoreAdj: %s", text);
	if (e->code == EACCES)
		return err_hint(e, "only CAP_SYS_RESOURCE, outside of user namespaces, may make it "
		                   "lower than it is");
	return -e->code;
}

/* sched_setattr(2)'s, of which glibc has none and whose header excludes glibc's own. */
struct scheduler_attributes {
	uint32_t size, sched_policy;
	uint64_t sched_flags;
	int32_t sched_nice;
	uint32_t sched_priority;
	uint64_t sched_runtime, sched_deadline, sched_period;
};

INSIDE(set_scheduler)
{
	const struct oci_scheduler *wanted = in->process->scheduler;
	struct scheduler_attributes attributes = {.size = sizeof attributes};

	if (!wanted)
		return 0;
	attributes.sched_policy = (uint32_t)wanted->policy;
	attributes.sched_flags = wanted->flags;
	attributes.sched_nice = (int32_t)wanted->nice;
	attributes.sched_priority = (uint32_t)wanted->priority;
	attributes.sched_runtime = wanted->runtime;
	attributes.sched_deadline = wanted->deadline;
	attributes.sched_period = wanted->period;
	if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0)
		return 0;
	err_sys(e, "process.scheduler");
	switch (e->code) {
	case EPERM:
		return err_hint(e, "this needs CAP_SYS_NICE outside of user namespaces and, for "
		                   "real-time policies, time of that kind for its cgroup: "
		                   "cpu.rt_runtime_us on v1; none on v2 if the kernel was built "
		                   "with CONFIG_RT_GROUP_SCHED");
	case EINVAL:
		return err_hint(e, "priority is from 1 to 99 for SCHED_FIFO and SCHED_RR and 0 for "
		                   "others; SCHED_DEADLINE needs runtime <= deadline <= period");
	case EBUSY:
		return err_hint(e, "the CPUs cannot keep such a deadline");
	}
	return -e->code;
}

INSIDE(set_io_priority)
{
	const struct oci_io_priority *wanted = in->process->io_priority;

	if (!wanted)
		return 0;
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
	            IOPRIO_PRIO_VALUE(wanted->class, (int)wanted->priority)) == 0)
		return 0;
	err_sys(e, "process.ioPriority");
	if (e->code == EPERM)
		return err_hint(e, "IOPRIO_CLASS_RT needs CAP_SYS_ADMIN or CAP_SYS_NICE outside of "
		                   "user namespaces");
	return -e->code;
}

INSIDE(set_memory_policy)
{
	const struct oci_memory_policy *wanted = in->config->linux_part->memory_policy;
	unsigned long nodes[NODES_MAX / NUMBER_LIST_WORD];
	bool named = wanted && is_set(wanted->nodes);

	if (!wanted)
		return 0;
	if (named && number_list_parse(wanted->nodes, nodes, NODES_MAX, e) < 0)
		return err_in(e, "linux.memoryPolicy.nodes");
	/* the kernel takes one from the number of bits */
	if (syscall(SYS_set_mempolicy, wanted->mode | (int)wanted->flags, named ? nodes : NULL,
	            named ? NODES_MAX + 1UL : 0UL) == 0)
		return 0;
	err_sys(e, "linux.memoryPolicy");
	if (e->code == ENOSYS)
		return err_hint(e, "this kernel has no CONFIG_NUMA");
	if (e->code == EINVAL)
		return err_hint(e, "the mode and the flags must be the kernel's, and nodes must be "
		                   "there (/sys/devices/system/node/online), allowed by the "
		                   "cpuset, and none for MPOL_DEFAULT and MPOL_LOCAL");
	return -e->code;
}

/* Without "final" it is the container's own: what the kernel leaves of all CPUs. */
INSIDE(set_affinity)
{
	const struct oci_affinity *wanted = in->process->exec_cpu_affinity;
	unsigned long all[CPUS_MAX / NUMBER_LIST_WORD];

	if (!wanted)
		return 0;
	if (is_set(wanted->final))
		return set_cpus("final", wanted->final, e);
	if (!is_set(wanted->initial))
		return 0;
	memset(all, 0xff, sizeof all);
	if (syscall(SYS_sched_setaffinity, 0, sizeof all, all) < 0)
		return err_sys(e, "process.execCPUAffinity.final: running on the container's CPUs");
	return 0;
}

INSIDE(set_personality)
{
	const struct oci_personality *wanted = in->config->linux_part->personality;

	if (!wanted)
		return 0;
	if (personality((unsigned long)wanted->domain | wanted->flags) < 0)
		return err_sys(e, "linux.personality");
	return 0;
}

INSIDE(set_rlimits)
{
	const struct oci_rlimits *rlimits = &in->process->rlimits;
	struct identity identity = {.rlimits_count = (int)rlimits->count};

	for (size_t i = 0; i < rlimits->count; i++)
		identity.rlimits[i] = (struct rlimit_spec){.resource = rlimits->items[i].type,
		                                           .soft = rlimits->items[i].soft,
		                                           .hard = rlimits->items[i].hard};
	return identity_set_rlimits(&identity, e) < 0 ? err_in(e, "process.rlimits") : 0;
}

/* ---- labels ---- */

static int set_apparmor(const struct inside *in, const char *profile, struct err *e)
{
	char text[4200];

	TRY(text_format(text, sizeof text, e, "exec %s", profile));
	if (file_write(in->hostprocfd, "self/attr/apparmor/exec", text, e) == 0)
		return 0;
	/* before Linux 5.8 there was one for all security modules */
	if (e->code == ENOENT && file_write(in->hostprocfd, "self/attr/exec", text, e) == 0)
		return 0;
	err_in(e, "process.apparmorProfile: %s", profile);
	return e->code == ENOENT ? err_hint(e, "load the profile with apparmor_parser") : -e->code;
}

INSIDE(set_labels)
{
	const char *label = selinux_label(in->container);

	/* the files are those of the host: /sys may be the container's by now */
	if (wants_apparmor(in->container, false))
		TRY(set_apparmor(in, apparmor_profile(in->container), e));
	if (is_set(label) && file_write(in->hostprocfd, "self/attr/exec", label, e) < 0)
		return err_in(e, "process.selinuxLabel: %s", label);
	return 0;
}

/* Keys are labelled as their maker is told to; those that are made later are the process's own. */
INSIDE(session_keyring)
{
	const char *label = in->process ? selinux_label(in->container) : NULL;

	if (is_set(label) && file_write(in->hostprocfd, "self/attr/keycreate", label, e) < 0)
		return err_in(e, "process.selinuxLabel: %s", label);
	if (identity_session_keyring(e) < 0)
		return err_hint(e, "or do without (--no-new-keyring)");
	if (is_set(label) && file_write(in->hostprocfd, "self/attr/keycreate", "\n", e) < 0)
		return err_in(e, "process.selinuxLabel");
	return 0;
}

/* ---- who it is ---- */

INSIDE(drop_bounding)
{
	return capabilities_drop_bounding(&in->container->capabilities, e);
}

/* True where groups cannot be set because who made the user namespace may not give up his own. */
static bool groups_are_denied(const struct inside *in)
{
	char text[16];
	struct err ignored;

	return file_read(in->hostprocfd, "self/setgroups", text, sizeof text, &ignored) > 0 &&
	       !strncmp(text, "deny", 4);
}

static int set_groups(const struct inside *in, const struct oci_ids *groups, struct err *e)
{
	if (identity_set_groups(groups->items, groups->count, e) == 0)
		return 0;
	if (e->code != EPERM || !groups_are_denied(in))
		return groups->count ? err_in(e, "process.user.additionalGids") : -e->code;
	if (!groups->count)
		return 0; /* those of who started us stay, as he may give none of them up */
	return err_set(e, EPERM,
	               "process.user.additionalGids: a user namespace that was made without "
	               "privileges cannot set groups; leave them out, or map ids with "
	               "newgidmap(1) (/etc/subgid)");
}

INSIDE(become_user)
{
	static const struct oci_user root = {0};
	const struct oci_user *user = in->process->user ? in->process->user : &root;

	umask(user->umask.set ? (mode_t)(user->umask.value & 0777) : UMASK_DEFAULT);
	if (prctl(PR_SET_KEEPCAPS, user->uid != 0, 0, 0, 0) < 0)
		return err_sys(e, "prctl(PR_SET_KEEPCAPS)");
	TRY(set_groups(in, &user->additional_gids, e));
	if (identity_set_ids(user->uid, user->gid, e) < 0)
		return err_in(e, "process.user");
	return stay_tied(in, e);
}

INSIDE(set_capabilities)
{
	TRY(capabilities_set(&in->container->capabilities, e));
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return err_sys(e, "prctl(PR_SET_KEEPCAPS)");
	return 0;
}

INSIDE(no_new_privs)
{
	return in->process->no_new_privileges ? identity_no_new_privs(e) : 0;
}
