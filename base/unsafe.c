/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what a test leaves out. Written once, before anything is built; read by all. */
#include "base/unsafe.h"

#ifdef AGENTDOCK_UNSAFE
#include <stdlib.h>
#include <string.h>

static const char *left_out[32];
static size_t left_out_count;

void unsafe_leave_out(const char *name)
{
	if (left_out_count == sizeof left_out / sizeof *left_out)
		abort();
	left_out[left_out_count++] = name;
}

bool unsafe_without(const char *name)
{
	for (size_t i = 0; i < left_out_count; i++) {
		if (strcmp(left_out[i], name) == 0)
			return true;
	}
	return false;
}
#endif
