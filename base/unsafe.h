/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walls that are left out by name, so that a test can show that the attack which a wall stops
 * succeeds without it. Only a build with UNSAFE=1 can leave anything out; in all others the answer
 * is a constant, and the compiler drops the question.
 */
#ifndef BASE_UNSAFE_H
#define BASE_UNSAFE_H

#include <stdbool.h>

#ifdef AGENTDOCK_UNSAFE
/* NAME is borrowed. More than 32 names end the program. */
void unsafe_leave_out(const char *name);
bool unsafe_without(const char *name);
#else
static inline bool unsafe_without(const char *name)
{
	(void)name;
	return false;
}
#endif

#endif
