/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's halves of attacks share: memory that they have in common, and the inside's
 * processes as the host sees them. Owns nothing.
 */
#ifndef TESTS_ESCAPE_HOST_H
#define TESTS_ESCAPE_HOST_H

#include <stddef.h>

#include "tests/escape/attack.h"

/* Says that WHAT failed for errno, for `before`, which returns it. */
int unprepared(struct evidence *evidence, const char *what);

/* Zeroed memory that `before` makes, so that `after` sees what `during` writes there; or NULL. */
void *shared_memory(size_t size);

/* A WORD that no other run has. */
const char *unique_word(void);

/* How many processes of the inside this host has that were given WORD; SIGNO is sent to each. */
int inside_processes(const char *word, int signo);

#endif
