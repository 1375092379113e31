/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs and of memory nodes as people write them ("0-3,7"), as bits. cpuset(7), "List format". */
#ifndef CONTAINER_NUMBER_LIST_H
#define CONTAINER_NUMBER_LIST_H

#include <stddef.h>

#include "base/err.h"

enum { NUMBER_LIST_WORD = 8 * sizeof(unsigned long) };

/* BITS has room for COUNT, a multiple of NUMBER_LIST_WORD. EINVAL for text that is no such list. */
int number_list_parse(const char *text, unsigned long *bits, size_t count, struct err *e);

#endif
