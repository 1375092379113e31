/* SPDX-License-Identifier: Apache-2.0 */
/* base/table.h: columns as a person sees them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/scoped.h"
#include "base/table.h"

static void assert_prints(const struct table *table, const char *expected)
{
	scoped_mem char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	table_print(table, out);
	fclose(out);
	assert_string_equal(text, expected);
}

static void test_columns(void **state)
{
	static const char *const header[] = {"NAME", ">SIZE", "WHEN", NULL};
	struct table table = {0};
	struct err e;

	(void)state;
	assert_int_equal(table_start(&table, header, &e), 0);
	assert_prints(&table, "NAME  SIZE  WHEN\n");
	assert_int_equal(table_cell(&table, &e, "python:%d", 3), 0);
	assert_int_equal(table_cell(&table, &e, "%d", 12345), 0);
	assert_int_equal(table_cell(&table, &e, "now"), 0);
	assert_int_equal(table_cell(&table, &e, "caf\xc3\xa9"), 0);
	assert_int_equal(table_cell(&table, &e, "%d", 7), 0);
	assert_int_equal(table_cell(&table, &e, "a long time ago"), 0);
	assert_prints(&table, "NAME       SIZE  WHEN\n"
	                      "python:3  12345  now\n"
	                      "caf\xc3\xa9          7  a long time ago\n");
	table_release(&table);
	assert_null(table.cells);
}

static void test_last_column_may_be_right_aligned(void **state)
{
	static const char *const header[] = {"K", ">V", NULL};
	struct table table = {0};
	struct err e;

	(void)state;
	table_start(&table, header, &e);
	table_cell(&table, &e, "a");
	table_cell(&table, &e, "100");
	assert_prints(&table, "K    V\na  100\n");
	table_release(&table);
}

static void test_cells_are_printable(void **state)
{
	static const char *const header[] = {"NAME", "X", NULL};
	struct table table = {0};
	struct err e;

	(void)state;
	table_start(&table, header, &e);
	table_cell(&table, &e, "%s", "a\n\x1b[2J");
	table_cell(&table, &e, "x");
	assert_prints(&table, "NAME          X\na\\x0a\\x1b[2J  x\n");
	table_release(&table);
}

static void test_limits(void **state)
{
	const char *header[34] = {NULL};
	struct table table = {0};
	struct err e;

	(void)state;
	for (int i = 0; i < 33; i++)
		header[i] = "C";
	assert_int_equal(table_start(&table, header, &e), -EINVAL);
	table_release(&table);
	assert_prints(&table, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_last_column_may_be_right_aligned),
		cmocka_unit_test(test_cells_are_printable),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
