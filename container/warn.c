/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings. Owns who is told. */
#include "container/warn.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/strings.h"

static void tell_standard_error(const char *text)
{
	char printable[2 * ERR_TEXT_SIZE];

	fprintf(stderr, "agentdock-runtime: warning: %s\n",
	        text_printable(text, printable, sizeof printable));
}

static void (*tell)(const char *text) = tell_standard_error;

void container_warn_to(void (*program_tells)(const char *text))
{
	tell = program_tells;
}

void container_warn(const char *fmt, ...)
{
	char text[2 * ERR_TEXT_SIZE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	tell(text);
}
