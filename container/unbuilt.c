/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are being written: whoever writes one overrides it here. Goes when all are there. */
#include "container/container.h"
#include <errno.h>
#include <string.h>
#include "base/strings.h"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define TODO __attribute__((weak))

TODO int move_net_devices(struct container *container, struct err *e)
{
	return 0;
}

TODO int join_rdt(struct container *container, struct err *e)
{
	return 0;
}

TODO int raise_loopback(struct inside *in, struct err *e)
{
	return 0;
}

TODO int set_names(struct inside *in, struct err *e)
{
	return 0;
}

TODO int set_sysctls(struct inside *in, struct err *e)
{
	return 0;
}

