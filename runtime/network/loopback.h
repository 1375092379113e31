/* SPDX-License-Identifier: Apache-2.0 */
/* The empty network namespace: lo is brought up (which gives it 127.0.0.1 and ::1), nothing else is
 * there. netdevice(7). */
#ifndef RUNTIME_NETWORK_LOOPBACK_H
#define RUNTIME_NETWORK_LOOPBACK_H

#include "base/err.h"

int loopback_up(struct err *e);

#endif
