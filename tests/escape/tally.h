/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several different attempts that make one verdict, each told by its name; and an attempt in a
 * process of its own. (try.h counts attempts at one thing from many places.) Owns nothing but what
 * the caller passes in.
 */
#ifndef TESTS_ESCAPE_TALLY_H
#define TESTS_ESCAPE_TALLY_H

#include <errno.h>

#include "tests/escape/attack.h"

struct tally {
	struct {
		const char *name; /* borrowed */
		int code;
		const int *walls; /* borrowed; NULL: whatever refuses it is a wall */
	} attempts[64];
	int count;
};

/*
 * One attempt. CODE is 0 where it got what it wanted, else what refused it: an errno, or minus the
 * signal that ended it. NAME is shown to people.
 */
void tally_add(struct tally *tally, const char *name, int code);

/* The same where only a CODE of WALLS (ends with 0) is the wall; any other tells nothing of it. */
void tally_add_limit(struct tally *tally, const char *name, int code, const int walls[]);

/*
 * BROKEN if one of them got what it wanted, else UNTRIED if one was refused by what is not the wall.
 * Tells each by name, what decides first: "EPERM: bpf, mount", "got: ioperm; EPERM: bpf".
 */
enum outcome tally_verdict(const struct tally *tally, struct evidence *evidence);

/* Where WALLS are errnos of a limit: the CODE of who was refused before it had anything to speak of. */
enum { TOO_SOON = ENODATA };

/* The CODE of a system call that just returned RESULT. */
static inline int code_of(long result)
{
	return result < 0 ? errno : 0;
}

/*
 * Runs ATTEMPT in a child and returns what it returned (a CODE), minus the signal that ended the
 * child, or the errno for which there was no child. Where memory runs out the child is the one to
 * be killed.
 */
int try_apart(int (*attempt)(const void *data), const void *data);

#endif
