/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values: formatting only, no state. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The analyzers' model of these functions (tests/analyzer_model.h) is not for their definitions. */
#undef err_set
#undef err_sys
#undef err_in
#undef err_hint

/* A failure must never look like a success, even one whose errno is not set. */
static int code_of(int code)
{
	return code > 0 ? code : EIO;
}

PRINTF_LIKE(2, 0)
static void append_va(struct err *e, const char *fmt, va_list args)
{
	size_t used = strlen(e->text);

	vsnprintf(e->text + used, sizeof e->text - used, fmt, args);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list args;

	e->code = code_of(code);
	e->text[0] = '\0';
	va_start(args, fmt);
	append_va(e, fmt, args);
	va_end(args);
	return -e->code;
}

int err_sys(struct err *e, const char *fmt, ...)
{
	int code = code_of(errno);
	const char *text = strerrordesc_np(code);
	va_list args;
	size_t used;

	e->code = code;
	e->text[0] = '\0';
	va_start(args, fmt);
	append_va(e, fmt, args);
	va_end(args);
	used = strlen(e->text);
	if (text)
		snprintf(e->text + used, sizeof e->text - used, ": %s", text);
	else
		snprintf(e->text + used, sizeof e->text - used, ": error %d", code);
	return -code;
}

int err_in(struct err *e, const char *where_fmt, ...)
{
	char old[ERR_TEXT_SIZE];
	va_list args;
	size_t used;

	memcpy(old, e->text, sizeof old);
	e->text[0] = '\0';
	va_start(args, where_fmt);
	append_va(e, where_fmt, args);
	va_end(args);
	used = strlen(e->text);
	snprintf(e->text + used, sizeof e->text - used, ": %.*s", (int)(sizeof old - 1), old);
	return -code_of(e->code);
}

int err_hint(struct err *e, const char *fmt, ...)
{
	va_list args;
	size_t used = strlen(e->text);

	snprintf(e->text + used, sizeof e->text - used, "; ");
	va_start(args, fmt);
	append_va(e, fmt, args);
	va_end(args);
	return -code_of(e->code);
}
