/* SPDX-License-Identifier: Apache-2.0 */
/* Columns for people: widths fit the content, numbers are set right, the last column is not
 * padded. Cell text is made printable. Zero-initialised is an empty table. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

struct table {
	size_t columns;
	size_t cells_count;
	char **cells;           /* row by row, the header first */
	unsigned right_aligned; /* bit per column */
};

/* HEADER: NULL-terminated titles; a title that starts with '>' makes its column right-aligned. */
int table_start(struct table *table, const char *const header[], struct err *e);
PRINTF_LIKE(3, 4) int table_cell(struct table *table, struct err *e, const char *fmt, ...);
void table_print(const struct table *table, FILE *out);
void table_release(struct table *table);

#endif
