/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as values.
 *
 * A function that can fail returns 0 (or a positive value) when it worked and -errno when it did
 * not; its last parameter is a struct err in which it leaves the text a person reads. No heap,
 * nothing to free. The text names the thing, the cause and the way out. A failing function writes
 * the err exactly once; clean-up that fails later never overwrites the first error.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum { ERR_TEXT_SIZE = 500 };

struct err {
	int code; /* positive errno, 0 when nothing failed */
	char text[ERR_TEXT_SIZE];
};

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* Sets the code and the text; returns -code. */
PRINTF_LIKE(3, 4) int err_set(struct err *e, int code, const char *fmt, ...);

/* Like err_set with code = errno, and appends ": " and the errno's description; returns -errno. */
PRINTF_LIKE(2, 3) int err_sys(struct err *e, const char *fmt, ...);

/* Prefixes "WHERE: " to the text that is there; returns -e->code, so it can end a function. */
PRINTF_LIKE(2, 3) int err_in(struct err *e, const char *where_fmt, ...);

/* Appends "; WAY OUT" to the text that is there; returns -e->code. */
PRINTF_LIKE(2, 3) int err_hint(struct err *e, const char *fmt, ...);

/* Returns early with the error of EXPR. Safe because every resource is a scoped variable. */
#define TRY(expr)                                                                                  \
	do {                                                                                       \
		int try_result_ = (expr);                                                          \
		if (__builtin_expect(try_result_ < 0, 0))                                          \
			return try_result_;                                                        \
	} while (0)

#endif
