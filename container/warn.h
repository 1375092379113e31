/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person should know of and what is no failure: a capability that no kernel has, a poststart
 * hook that failed. Warnings go where the program wants them; to standard error until it says so.
 */
#ifndef CONTAINER_WARN_H
#define CONTAINER_WARN_H

#include "base/err.h"

PRINTF_LIKE(1, 2) void container_warn(const char *fmt, ...);

/* TELL is given one line without its end. */
void container_warn_to(void (*tell)(const char *text));

#endif
