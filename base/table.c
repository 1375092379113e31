/* SPDX-License-Identifier: Apache-2.0 */
/* Columns for people. Owns the cells' text, which is printable from the moment it is stored. */
#include "base/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/scoped.h"
#include "base/strings.h"

enum { COLUMNS_MAX = 8 * sizeof(unsigned) };

static int add_cell(struct table *table, const char *text, struct err *e)
{
	size_t size = 4 * strlen(text) + 1; /* every byte could become \xNN */
	scoped_mem char *printable = malloc(size);
	char **cells;

	if (!printable)
		return err_set(e, ENOMEM, "no memory for a cell of a table");
	text_printable(text, printable, size);
	cells = reallocarray(table->cells, table->cells_count + 1, sizeof *cells);
	if (!cells)
		return err_set(e, ENOMEM, "no memory for a table");
	cells[table->cells_count++] = take_mem(&printable);
	table->cells = cells;
	return 0;
}

int table_start(struct table *table, const char *const header[], struct err *e)
{
	table_release(table);
	for (size_t i = 0; header[i]; i++) {
		bool right = header[i][0] == '>';

		if (i == COLUMNS_MAX)
			return err_set(e, EINVAL, "a table has at most %d columns", COLUMNS_MAX);
		if (right)
			table->right_aligned |= 1U << i;
		TRY(add_cell(table, header[i] + right, e));
		table->columns++;
	}
	return 0;
}

int table_cell(struct table *table, struct err *e, const char *fmt, ...)
{
	scoped_mem char *text = NULL;
	va_list args;
	int length;

	va_start(args, fmt);
	length = vasprintf(&text, fmt, args);
	va_end(args);
	if (length < 0) {
		text = NULL; /* undefined after a failure */
		return err_set(e, ENOMEM, "no memory for a cell of a table");
	}
	return add_cell(table, text, e);
}

/* Columns that the text takes on a terminal, where each character takes one. */
static int cell_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void table_print(const struct table *table, FILE *out)
{
	int widths[COLUMNS_MAX] = {0};

	for (size_t i = 0; i < table->cells_count; i++) {
		int width = cell_width(table->cells[i]);

		if (width > widths[i % table->columns])
			widths[i % table->columns] = width;
	}
	for (size_t i = 0; i < table->cells_count; i++) {
		size_t column = i % table->columns;
		bool last = column + 1 == table->columns || i + 1 == table->cells_count;
		bool right = table->right_aligned & 1U << column;
		int gap = widths[column] - cell_width(table->cells[i]);

		fprintf(out, "%*s%s%*s%s", right ? gap : 0, "", table->cells[i],
		        right || last ? 0 : gap, "", last ? "\n" : "  ");
	}
}

void table_release(struct table *table)
{
	for (size_t i = 0; i < table->cells_count; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (struct table){0};
}
