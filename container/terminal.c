/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "container/container.h"

INSIDE(new_session)
{
	(void)in;
	process_default_signals();
	process_block_signals(false);
	if (setsid() < 0)
		return err_sys(e, "setsid");
	return 0;
}
