/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and numbers of system calls: libseccomp's, and those that were added to Linux (up to 6.18)
 * after the libseccomp of Debian 12. A newer libseccomp knows them itself and is asked first.
 */
#include "seccomp/calls.h"

#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scoped.h"
#include "seccomp/notify.h"

enum { X86_64_ONLY = 1 };

/* From CALLS_ALIKE on, every architecture numbers its new calls alike. */
static const struct newer_call {
	const char *name;
	int number;
	int where;
} newer_calls[] = {
	{"uretprobe", 335, X86_64_ONLY}, {"uprobe", 336, X86_64_ONLY},
	{"statmount", 457, 0},           {"listmount", 458, 0},
	{"lsm_get_self_attr", 459, 0},   {"lsm_set_self_attr", 460, 0},
	{"lsm_list_modules", 461, 0},    {"mseal", 462, 0},
	{"setxattrat", 463, 0},          {"getxattrat", 464, 0},
	{"listxattrat", 465, 0},         {"removexattrat", 466, 0},
	{"open_tree_attr", 467, 0},      {"file_getattr", 468, 0},
	{"file_setattr", 469, 0},
};

static int is_here(const struct newer_call *call)
{
#ifdef __x86_64__
	(void)call;
	return 1;
#else
	return call->where != X86_64_ONLY;
#endif
}

int seccomp_call_number(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number >= 0)
		return number;
	/* libseccomp gives calls of other architectures numbers below -1 */
	if (number != __NR_SCMP_ERROR)
		return CALL_ELSEWHERE;
	for (size_t i = 0; i < sizeof newer_calls / sizeof newer_calls[0]; i++)
		if (!strcmp(newer_calls[i].name, name))
			return is_here(&newer_calls[i]) ? newer_calls[i].number : CALL_ELSEWHERE;
	return CALL_UNKNOWN;
}

const char *seccomp_newer_call(int number)
{
	for (size_t i = 0; i < sizeof newer_calls / sizeof newer_calls[0]; i++)
		if (newer_calls[i].number == number && is_here(&newer_calls[i]))
			return newer_calls[i].name;
	return NULL;
}

const char *seccomp_call_name(int number, char *buffer, int size)
{
	scoped_mem char *name = NULL;

	if (size <= 0)
		return "";
	if (number >= 0)
		name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
	if (name) {
		snprintf(buffer, (size_t)size, "%s", name);
		return buffer;
	}
	if (seccomp_newer_call(number))
		return seccomp_newer_call(number);
	snprintf(buffer, (size_t)size, "syscall %d", number);
	return buffer;
}
