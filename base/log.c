/* SPDX-License-Identifier: Apache-2.0 */
/* Debug lines, for a person who set AGENTDOCK_DEBUG=1. Owns no state. One line is one write(2), so
 * that lines of several processes do not mix. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"

void log_debug(const char *fmt, ...)
{
	char text[1000], printable[1100], line[1200];
	const char *wanted = secure_getenv("AGENTDOCK_DEBUG");
	int keep = errno, length;
	va_list args;

	if (!wanted || strcmp(wanted, "1") != 0)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	length = snprintf(line, sizeof line, "agentdock[%d]: %s\n", getpid(),
	                  text_printable(text, printable, sizeof printable));
	/* a debug line that cannot be written has nobody to be told to */
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		errno = keep;
	errno = keep;
}
