/* SPDX-License-Identifier: Apache-2.0 */
/* Names and numbers of the system calls of the native ABI. */
#ifndef SECCOMP_CALLS_H
#define SECCOMP_CALLS_H

enum {
	CALL_UNKNOWN = -1,   /* nobody knows this name: a misspelling */
	CALL_ELSEWHERE = -2, /* a call of another architecture */
};

/* The number of NAME, CALL_UNKNOWN or CALL_ELSEWHERE. */
int seccomp_call_number(const char *name);

/* From this number (Linux 5.1) on, all architectures have the same calls. */
enum { CALLS_ALIKE = 424 };

/* The name of a call of this machine that is newer than libseccomp may be, or NULL. */
const char *seccomp_newer_call(int number);

#endif
