/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of agentdock-runtime. Each is given its options and words, prints what is asked for, and
 * returns the exit code or -errno with a text that main tells.
 */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include "base/err.h"
#include "container/store.h"
#include "verbs/options.h"

struct json_object;

#define VERB(name) int verb_##name(struct request *request, struct err *e)

/* life.c */
VERB(create);
VERB(start);
VERB(run);
VERB(kill);
VERB(delete);
VERB(pause);
VERB(resume);
VERB(update); /* update.c */
VERB(exec);   /* exec.c */
VERB(state);  /* state.c */
VERB(list);
VERB(ps);       /* ps.c */
VERB(events);   /* events.c */
VERB(spec);     /* spec.c */
VERB(features); /* features.c */

#undef VERB

/* The document as JSON, indented for people and with a line's end, on standard output. */
int print_json(struct json_object *json, struct err *e);

/* So that what couldn't be written whole is no success. */
int finish_stdout(struct err *e);

/* The caller frees. PATH "-" is standard input. */
int read_document(const char *path, char **text, size_t *length, struct err *e);

/* The status, and whether an administrator froze it, as a word: what `state` and `list` say. */
int status_word(const struct store_entry *entry, const char **word, int *pidfd, struct err *e);

#endif
