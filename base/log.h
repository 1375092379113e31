/* SPDX-License-Identifier: Apache-2.0 */
/* Debug lines on stderr, off unless AGENTDOCK_DEBUG=1 is set; everything else is for files with a
 * main to print. A line never carries bytes from inside a sandbox unescaped. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

PRINTF_LIKE(1, 2) void log_debug(const char *fmt, ...);

#endif
