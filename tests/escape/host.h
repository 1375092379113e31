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

/* ---- who wants to survive ---- */

/*
 * `before` and `during` of an attack whose processes are to go on after the launcher; its one WORD
 * marks them. For `after`: ends those that are left and judges by them, and by what `during` saw,
 * which was nothing of the attack where it was fewer than LEAST at once.
 */
int survivors_before(const char *words[8], struct evidence *evidence);
void survivors_during(void);
void survivors_look(void); /* of what `during` does: once */
enum outcome survivors_after(enum outcome inside, int least, struct evidence *evidence);

/* For the inside: into the group that is the root of all, where it can mount what leads there. */
void survivors_leave_cgroup(void);

/* ---- where both halves meet ---- */

/*
 * For what is to be seen while the inside holds it: `during` waits until the inside holds, looks and
 * lets it go on. The way in is the command's standard input; an inside without one holds a second.
 */
#define HOLD_FD      60
#define HOLD_OPTIONS "--stdin", "/dev/fd/60"

/* For `before`: makes the way in, and WORD the word of the inside that holds. 0, or -1 with errno. */
int hold_prepare(const char *word);

/* For `during`: returns when the inside holds; hold_end lets it go on. */
void hold_await(void);
void hold_end(void);

/* For the inside: returns when the host has looked. */
void hold(void);

#endif
