/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The score: the whole building of a sandbox on one screen, a table in order, two halves a row. The
 * process outside and the process inside walk the same table.
 *
 * The outside plays its halves as early as it can and says GO after each that has an inside half;
 * the inside waits for that GO and only then plays its own. Rows up to "clone" have no inside. An
 * error crosses as one message that names its row.
 */
#ifndef RUNTIME_SCORE_H
#define RUNTIME_SCORE_H

#include "runtime/internal.h"

struct step {
	const char *name;
	int (*outside)(struct sandbox *sandbox, struct err *e);
	int (*inside)(struct inside *in, struct err *e);
	bool (*wanted)(const struct sandbox_spec *spec); /* NULL: always */
};

/* Ends with a row without a name. */
extern const struct step score[];
int score_rows(void);

/*
 * Fault injection, for tests only: no option or variable of a program reaches it. At ROW the named
 * side fails, or (KILL) the outside kills itself when the named side has come to that row. What goes
 * wrong with INIT does so at no row: the command runs already.
 */
enum score_fault_kind {
	SCORE_NO_FAULT,
	SCORE_FAIL_OUTSIDE,
	SCORE_FAIL_INSIDE,
	SCORE_KILL_OUTSIDE,
	SCORE_KILL_INSIDE,
	SCORE_LATE_INIT, /* pid 1 executes agentdock-init only when the command has ended */
	SCORE_NO_INIT,   /* that exec fails */
};
struct score_fault {
	enum score_fault_kind kind;
	int row;
};
extern struct score_fault score_fault;

#endif
