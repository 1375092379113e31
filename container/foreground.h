/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who stays beside a process of a container until its end: `run` and `exec` without --detach. They
 * pass signals on, and between its terminal and their own all that is written.
 */
#ifndef CONTAINER_FOREGROUND_H
#define CONTAINER_FOREGROUND_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/err.h"

struct container;

/* What was read and not yet written. */
struct stream {
	char bytes
		[4096]; /* PIPE_BUF: so much can be written where poll(2) says that something can */
	size_t length;
};

struct foreground {
	int signalfd; /* -1: there is nothing to end */
	sigset_t mask;
	int masterfd; /* of the process's terminal; -1: it has none */
	struct termios modes;
	bool is_raw, in_ended;
	struct stream in, out;
};

/* Blocks signals, before the process is made, so that none is lost that comes before the wait. */
int foreground_begin(struct foreground *foreground, struct err *e);
void foreground_end(struct foreground *foreground);

/* Until the process has ended, which is reaped: 128 + n for signal n. */
int foreground_wait(struct foreground *foreground, struct container *container, int *status,
                    struct err *e);

/* The exit code for one that did not start: enum channel_fault. */
int status_of_fault(int fault);

#endif
