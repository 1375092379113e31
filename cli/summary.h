/* SPDX-License-Identifier: Apache-2.0 */
/* What a person is told about a run, on stderr, after the output of the command. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "fleet/report.h"

/*
 * Two lines on how it ended and what it used; DETAILS: one more for each thing that is worth
 * knowing. Text that came out of the sandbox is made printable.
 */
void summary_print(const struct report *report, bool details, bool colours, FILE *out);

/* --explain: the steps of the start, with the time each side took. */
int summary_explain(const struct report *report, FILE *out, struct err *e);

#endif
