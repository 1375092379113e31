/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's terminals: kernel.pty.max of them for all of its devpts together, 4096 by default. Who
 * takes them all leaves nobody one, and each login wants one. The sandbox's devpts gives 256; the
 * attempt wants 600, and has to get some before it is told that there are no more (ENOSPC). The host
 * still has to get one afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"

enum { WANTED = 600, LEAST = 64 };

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	int count = 0;

	(void)argv;
	while (count < WANTED && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
		count++;
	if (count == WANTED)
		return verdict(evidence, BROKEN, "%d terminals", count);
	return verdict(evidence, count < LEAST || errno != ENOSPC ? UNTRIED : HELD,
	               "%s after %d terminals", strerrorname_np(errno), count);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	scoped_fd fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	(void)status;
	if (fd < 0)
		return verdict(evidence, BROKEN, "the host gets no terminal: %s",
		               strerrorname_np(errno));
	return inside;
}

ATTACK(pty_exhaustion) = {
	.name = "pty_exhaustion",
	.what = "take all terminals of the host",
	.seen = "kernel.pty.max, pts(4); lxc sets lxc.pty.max for it",
	.wall = "a devpts of its own with max=256",
	.control = WORDS(WITHOUT("pty limit")),
	.inside = inside,
	.after = after,
};
