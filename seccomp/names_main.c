/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp-names: the names of system calls and their numbers as C, for seccomp/names.c to include.
 * Runs while AgentDock is built, on a machine of the architecture that it is built for.
 */
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scoped.h"
#include "seccomp/calls.h"
#include "seccomp/names.h"

enum {
	NAMES_MAX = 2048,
	NUMBERS = 1024,
	X32_BIT = 0x40000000,
	ARM_PRIVATE = 0x0f0000, /* set_tls and the like */
};

static const uint32_t arches[NAMES_ARCHES_COUNT] = NAMES_ARCHES;
static struct call_numbers names[NAMES_MAX];
static int names_count;

static struct call_numbers *entry(const char *name)
{
	struct call_numbers *new = &names[names_count];

	for (int i = 0; i < names_count; i++)
		if (!strcmp(names[i].name, name))
			return &names[i];
	if (names_count == NAMES_MAX || !(new->name = strdup(name)))
		exit(1);
	memset(new->numbers, -1, sizeof new->numbers);
	names_count++;
	return new;
}

static void take(int arch, int number)
{
	scoped_mem char *name = seccomp_syscall_resolve_num_arch(arches[arch], number);
	const char *newer = name ? name : seccomp_newer_call(number & (NUMBERS - 1));

	if (name || (newer && (number & (NUMBERS - 1)) >= CALLS_ALIKE) || (newer && arch == 0))
		entry(newer)->numbers[arch] = number;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct call_numbers *)a)->name,
	              ((const struct call_numbers *)b)->name);
}

int main(void)
{
	for (int arch = 0; arch < NAMES_ARCHES_COUNT; arch++) {
		int base = arches[arch] == NAMES_X32 ? X32_BIT : 0;

		for (int number = 0; number < NUMBERS; number++) {
			take(arch, base + number);
			if (arches[arch] == AUDIT_ARCH_ARM)
				take(arch, ARM_PRIVATE + number);
		}
	}
	qsort(names, (size_t)names_count, sizeof *names, compare);
	puts("static const struct call_numbers call_names[] = {");
	for (int i = 0; i < names_count; i++) {
		printf("\t{\"%s\", {", names[i].name);
		for (int arch = 0; arch < NAMES_ARCHES_COUNT; arch++)
			printf("%s%d", arch ? ", " : "", names[i].numbers[arch]);
		puts("}},");
	}
	puts("};");
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
