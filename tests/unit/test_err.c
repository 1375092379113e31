/* SPDX-License-Identifier: Apache-2.0 */
/* base/err.h: what a person reads, and what it returns. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void test_set(void **state)
{
	struct err e = {.code = 7, .text = "old"};

	(void)state;
	assert_int_equal(err_set(&e, EINVAL, "%s: %d", "pids", 3), -EINVAL);
	assert_int_equal(e.code, EINVAL);
	assert_string_equal(e.text, "pids: 3");
}

static void test_sys_takes_errno(void **state)
{
	struct err e;

	(void)state;
	errno = ENOENT;
	assert_int_equal(err_sys(&e, "opening %s", "/x"), -ENOENT);
	assert_int_equal(e.code, ENOENT);
	assert_string_equal(e.text, "opening /x: No such file or directory");
}

/* The kernel's own, which reach programs all the same: ENOTSUPP is 524. */
static void test_an_errno_without_a_text(void **state)
{
	struct err e;

	(void)state;
	errno = 524;
	assert_int_equal(err_sys(&e, "x"), -524);
	assert_string_equal(e.text, "x: error 524");
}

static void test_in_and_hint_surround(void **state)
{
	struct err e;

	(void)state;
	err_set(&e, EPERM, "refused");
	assert_int_equal(err_in(&e, "row %d", 4), -EPERM);
	assert_int_equal(err_hint(&e, "run as %s", "root"), -EPERM);
	assert_string_equal(e.text, "row 4: refused; run as root");
	assert_int_equal(e.code, EPERM);
}

static void test_long_texts_are_cut(void **state)
{
	char long_text[2 * ERR_TEXT_SIZE];
	struct err e;

	(void)state;
	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = '\0';
	assert_int_equal(err_set(&e, EIO, "%s", long_text), -EIO);
	assert_int_equal(strlen(e.text), ERR_TEXT_SIZE - 1);
	assert_int_equal(err_in(&e, "%s", "where"), -EIO);
	assert_int_equal(strlen(e.text), ERR_TEXT_SIZE - 1);
	assert_memory_equal(e.text, "where: xxx", 10);
	assert_int_equal(err_hint(&e, "no room"), -EIO);
	errno = EIO;
	assert_int_equal(err_sys(&e, "%s", long_text), -EIO);
	assert_int_equal(strlen(e.text), ERR_TEXT_SIZE - 1);
}

static void test_a_failure_without_a_code_is_one(void **state)
{
	struct err e;

	(void)state;
	errno = 0;
	assert_int_equal(err_sys(&e, "x"), -EIO);
	assert_int_equal(e.code, EIO);
	assert_int_equal(err_set(&e, 0, "x"), -EIO);
	e.code = 0;
	assert_int_equal(err_in(&e, "x"), -EIO);
	assert_int_equal(err_hint(&e, "x"), -EIO);
}

static int fails_early(int result, int *reached, struct err *e)
{
	TRY(result < 0 ? err_set(e, -result, "early") : result);
	*reached = 1;
	return 42;
}

static void test_try(void **state)
{
	int reached = 0;
	struct err e;

	(void)state;
	assert_int_equal(fails_early(-ENOSPC, &reached, &e), -ENOSPC);
	assert_int_equal(reached, 0);
	assert_int_equal(fails_early(3, &reached, &e), 42);
	assert_int_equal(reached, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_sys_takes_errno),
		cmocka_unit_test(test_an_errno_without_a_text),
		cmocka_unit_test(test_in_and_hint_surround),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_a_failure_without_a_code_is_one),
		cmocka_unit_test(test_try),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
