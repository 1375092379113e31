/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the analyzers of tests/lint cannot see from one file: the functions of base/err.h always
 * return a negative number, so that nothing goes on behind TRY() with an output that was not
 * written. Included in front of every file by them, and by nothing else.
 */
#ifndef TESTS_ANALYZER_MODEL_H
#define TESTS_ANALYZER_MODEL_H

#include "base/err.h"

static inline int analyzer_negative(int result)
{
	if (result >= 0)
		__builtin_unreachable();
	return result;
}

#define err_set(...)  analyzer_negative(err_set(__VA_ARGS__))
#define err_sys(...)  analyzer_negative(err_sys(__VA_ARGS__))
#define err_in(...)   analyzer_negative(err_in(__VA_ARGS__))
#define err_hint(...) analyzer_negative(err_hint(__VA_ARGS__))

#endif
