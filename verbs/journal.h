/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told beside the answer: errors and warnings, on standard error for people and in the file of
 * --log for engines, one line each: JSON with "level", "msg" and "time", or the same words as text.
 */
#ifndef VERBS_JOURNAL_H
#define VERBS_JOURNAL_H

#include "base/err.h"
#include "verbs/options.h"

/* Opens --log. On failure errors go to standard error only. */
int journal_open(const struct request *request, struct err *e);

void journal_error(const char *text);
void journal_warn(const char *text);

#endif
