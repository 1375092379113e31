/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of each system call in the architectures whose programs this machine can execute. The
 * table is made when the project is built (seccomp/names_main.c), of what libseccomp and
 * seccomp/calls.c know: libseccomp's own search is one of its whole list for each name, which for
 * a profile of 400 names takes longer than all else that starting a container needs.
 */
#ifndef SECCOMP_NAMES_H
#define SECCOMP_NAMES_H

#include <linux/audit.h>
#include <linux/elf-em.h>
#include <stdint.h>

/* Their tokens are AUDIT_ARCH_*; x32, which the kernel counts as x86-64, has libseccomp's. */
enum { NAMES_X32 = EM_X86_64 | __AUDIT_ARCH_LE };

#if defined(__x86_64__)
#define NAMES_ARCHES                                                                               \
	{                                                                                          \
		AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, NAMES_X32                                      \
	}
enum { NAMES_ARCHES_COUNT = 3 };
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NAMES_ARCHES                                                                               \
	{                                                                                          \
		AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM                                                 \
	}
enum { NAMES_ARCHES_COUNT = 2 };
#else
#error "this architecture has no AUDIT_ARCH here yet"
#endif

struct call_numbers {
	const char *name;
	int32_t numbers[NAMES_ARCHES_COUNT]; /* in the order of NAMES_ARCHES; -1: not there */
};

/* NULL: nobody here knows this name. */
const struct call_numbers *names_find(const char *name);

/* All of them, by name. */
const struct call_numbers *names_all(int *count);

#endif
