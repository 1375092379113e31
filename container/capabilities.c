/* SPDX-License-Identifier: Apache-2.0 */
/* process.capabilities: from names to the sets of the calling process. Owns nothing. */
#include "container/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strings.h"
#include "container/warn.h"
#include "runtime/identity/identity.h"

static const char *const names[] = {
	[CAP_CHOWN] = "CAP_CHOWN",
	[CAP_DAC_OVERRIDE] = "CAP_DAC_OVERRIDE",
	[CAP_DAC_READ_SEARCH] = "CAP_DAC_READ_SEARCH",
	[CAP_FOWNER] = "CAP_FOWNER",
	[CAP_FSETID] = "CAP_FSETID",
	[CAP_KILL] = "CAP_KILL",
	[CAP_SETGID] = "CAP_SETGID",
	[CAP_SETUID] = "CAP_SETUID",
	[CAP_SETPCAP] = "CAP_SETPCAP",
	[CAP_LINUX_IMMUTABLE] = "CAP_LINUX_IMMUTABLE",
	[CAP_NET_BIND_SERVICE] = "CAP_NET_BIND_SERVICE",
	[CAP_NET_BROADCAST] = "CAP_NET_BROADCAST",
	[CAP_NET_ADMIN] = "CAP_NET_ADMIN",
	[CAP_NET_RAW] = "CAP_NET_RAW",
	[CAP_IPC_LOCK] = "CAP_IPC_LOCK",
	[CAP_IPC_OWNER] = "CAP_IPC_OWNER",
	[CAP_SYS_MODULE] = "CAP_SYS_MODULE",
	[CAP_SYS_RAWIO] = "CAP_SYS_RAWIO",
	[CAP_SYS_CHROOT] = "CAP_SYS_CHROOT",
	[CAP_SYS_PTRACE] = "CAP_SYS_PTRACE",
	[CAP_SYS_PACCT] = "CAP_SYS_PACCT",
	[CAP_SYS_ADMIN] = "CAP_SYS_ADMIN",
	[CAP_SYS_BOOT] = "CAP_SYS_BOOT",
	[CAP_SYS_NICE] = "CAP_SYS_NICE",
	[CAP_SYS_RESOURCE] = "CAP_SYS_RESOURCE",
	[CAP_SYS_TIME] = "CAP_SYS_TIME",
	[CAP_SYS_TTY_CONFIG] = "CAP_SYS_TTY_CONFIG",
	[CAP_MKNOD] = "CAP_MKNOD",
	[CAP_LEASE] = "CAP_LEASE",
	[CAP_AUDIT_WRITE] = "CAP_AUDIT_WRITE",
	[CAP_AUDIT_CONTROL] = "CAP_AUDIT_CONTROL",
	[CAP_SETFCAP] = "CAP_SETFCAP",
	[CAP_MAC_OVERRIDE] = "CAP_MAC_OVERRIDE",
	[CAP_MAC_ADMIN] = "CAP_MAC_ADMIN",
	[CAP_SYSLOG] = "CAP_SYSLOG",
	[CAP_WAKE_ALARM] = "CAP_WAKE_ALARM",
	[CAP_BLOCK_SUSPEND] = "CAP_BLOCK_SUSPEND",
	[CAP_AUDIT_READ] = "CAP_AUDIT_READ",
	[CAP_PERFMON] = "CAP_PERFMON",
	[CAP_BPF] = "CAP_BPF",
	[CAP_CHECKPOINT_RESTORE] = "CAP_CHECKPOINT_RESTORE",
};

enum {
	NAMES = sizeof names / sizeof *names,
	CAPABILITIES_MAX = 64, /* two words of 32 in capset's version 3 */
};

/* ---- reading ---- */

static int number_of(const char *name)
{
	for (int i = 0; i < NAMES; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static void read_set(const struct oci_strings *list, const char *key, uint64_t *set)
{
	char shown[64];

	*set = 0;
	for (size_t i = 0; i < list->count; i++) {
		int number = number_of(list->items[i]);

		if (number >= 0)
			*set |= UINT64_C(1) << number;
		else
			container_warn("process.capabilities.%s[%zu]: \"%s\" is no capability, and "
			               "left out",
			               key, i, text_printable(list->items[i], shown, sizeof shown));
	}
}

static int must_be_in(uint64_t set, const char *key, uint64_t limit, const char *why, struct err *e)
{
	uint64_t beyond = set & ~limit;

	if (!beyond)
		return 0;
	return err_set(e, EPERM, "process.capabilities.%s: %s %s", key,
	               names[__builtin_ctzll(beyond)], why);
}

static const char not_held[] =
	"cannot be given: the runtime does not have it itself, or the kernel "
	"knows it not";

/* The spec wants no failure where a runtime that has little is asked for more. */
static void leave_out_beyond(struct capability_sets *sets, uint64_t held)
{
	uint64_t *const each[] = {&sets->bounding, &sets->permitted, &sets->effective,
	                          &sets->inheritable, &sets->ambient};
	uint64_t beyond = 0;

	for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
		beyond |= *each[i] & ~held;
		*each[i] &= held;
	}
	for (unsigned cap = 0; cap < NAMES; cap++)
		if (beyond >> cap & 1)
			container_warn("process.capabilities: %s %s; it is left out", names[cap],
			               not_held);
}

/* buildah asks for what no kernel grants; a program without it has less, never more. */
static void leave_out_of_ambient(struct capability_sets *sets, uint64_t out)
{
	out &= sets->ambient;
	sets->ambient &= ~out;
	if (out)
		container_warn("process.capabilities.ambient: %s%s left out: must be in "
		               "\"permitted\" and in \"inheritable\" too",
		               names[__builtin_ctzll(out)],
		               out & (out - 1) ? " and others are" : " is");
}

int capability_sets_read(const struct oci_capabilities *capabilities, uint64_t held,
                         struct capability_sets *sets, struct err *e)
{
	*sets = (struct capability_sets){0};
	if (!capabilities)
		return 0;
	read_set(&capabilities->bounding, "bounding", &sets->bounding);
	read_set(&capabilities->permitted, "permitted", &sets->permitted);
	read_set(&capabilities->effective, "effective", &sets->effective);
	read_set(&capabilities->inheritable, "inheritable", &sets->inheritable);
	read_set(&capabilities->ambient, "ambient", &sets->ambient);
	if (held)
		leave_out_beyond(sets, held);
	TRY(must_be_in(sets->effective, "effective", sets->permitted,
	               "must be in \"permitted\" too", e));
	TRY(must_be_in(sets->inheritable, "inheritable", sets->bounding,
	               "must be in \"bounding\" too", e));
	leave_out_of_ambient(sets, ~(sets->permitted & sets->inheritable));
	return 0;
}

/* ---- setting ---- */

/* One that is wanted and not there was named before, but for those of user namespaces. */
int capabilities_drop_bounding(const struct capability_sets *sets, struct err *e)
{
	for (unsigned cap = 0; cap < CAPABILITIES_MAX; cap++) {
		bool wanted = sets->bounding >> cap & 1;
		int r = wanted ? prctl(PR_CAPBSET_READ, (unsigned long)cap, 0, 0, 0)
		               : prctl(PR_CAPBSET_DROP, (unsigned long)cap, 0, 0, 0);

		/* the first that the kernel does not know; those with a name it does: 5.9 had them */
		if (r < 0 && errno == EINVAL && cap >= NAMES)
			break;
		if (r == 0 && wanted)
			return err_set(e, EPERM, "process.capabilities.bounding: %s %s", names[cap],
			               not_held);
		if (r < 0)
			return err_sys(e, "process.capabilities.bounding: capability %u", cap);
	}
	if (identity_bounding_set() & ~sets->bounding)
		return err_set(
			e, EPERM,
			"process.capabilities.bounding: the kernel kept more than is wanted");
	return 0;
}

static int raise_ambient(uint64_t ambient, struct err *e)
{
	for (unsigned cap = 0; cap < NAMES; cap++) {
		if (ambient >> cap & 1 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, (unsigned long)cap, 0, 0) < 0)
			return err_sys(e, "process.capabilities.ambient: %s", names[cap]);
	}
	return 0;
}

static int set_error(const struct capability_sets *sets, uint64_t permitted, uint64_t bounding,
                     struct err *e)
{
	err_sys(e, "process.capabilities: setting them");
	TRY(must_be_in(sets->permitted, "permitted", permitted, not_held, e));
	TRY(must_be_in(sets->inheritable, "inheritable", bounding, not_held, e));
	return -e->code;
}

int capabilities_set(const struct capability_sets *sets, struct err *e)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
	uint64_t permitted;

	if (syscall(SYS_capget, &header, words) < 0)
		return err_sys(e, "reading the capabilities");
	permitted = (uint64_t)words[1].permitted << 32 | words[0].permitted;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		words[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(sets->effective >> 32 * i),
			.permitted = (uint32_t)(sets->permitted >> 32 * i),
			.inheritable = (uint32_t)(sets->inheritable >> 32 * i),
		};
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(e, "clearing the ambient capabilities");
	if (syscall(SYS_capset, &header, words) < 0)
		return set_error(sets, permitted, identity_bounding_set(), e);
	return raise_ambient(sets->ambient, e);
}
