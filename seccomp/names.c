/* SPDX-License-Identifier: Apache-2.0 */
/* The table that seccomp/names_main.c has made, and the search in it. */
#include "seccomp/names.h"

#include <stdlib.h>
#include <string.h>

#include "seccomp_names.inc"

enum { NAMES = sizeof call_names / sizeof *call_names };

static int compare(const void *name, const void *entry)
{
	return strcmp(name, ((const struct call_numbers *)entry)->name);
}

const struct call_numbers *names_find(const char *name)
{
	return bsearch(name, call_names, NAMES, sizeof *call_names, compare);
}

const struct call_numbers *names_all(int *count)
{
	*count = NAMES;
	return call_names;
}
