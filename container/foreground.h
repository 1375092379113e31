/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who stays beside a process of a container until its end: `run` and `exec` without --detach. They
 * pass signals on, and between its terminal and their own all that is written.
 */
#ifndef CONTAINER_FOREGROUND_H
#define CONTAINER_FOREGROUND_H

#include "base/err.h"

struct container;

/* Blocks signals, so that none is lost that comes before the wait; returns a signalfd of them. */
int signals_take(struct err *e);
void signals_give_back(int *signalfd);

/* Until the process has ended, which is reaped: 128 + n for signal n. */
int foreground_wait(struct container *container, int signalfd, int *status, struct err *e);

/* The exit code for one that did not start: enum channel_fault. */
int status_of_fault(int fault);

#endif
