/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output without end: who keeps it all in memory for the report runs out of it, outside of any
 * sandbox's limit. A part at the beginning and one at the end are kept, the rest is counted. The host
 * asks the kernel how much memory the launcher ever had while 100 MiB came.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack.h"

enum { CHUNK = 65536, FLOOD_MIB = 100, MODEST_MIB = 64 };

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	static char chunk[CHUNK];

	(void)argv;
	memset(chunk, 'x', sizeof(chunk));
	chunk[CHUNK - 1] = '\n';
	for (size_t left = (size_t)FLOOD_MIB << 20; left > 0; left -= CHUNK)
		if (write(STDOUT_FILENO, chunk, CHUNK) != CHUNK)
			return verdict(evidence, HELD, "the output was cut off: %s",
			               strerrorname_np(errno));
	return verdict(evidence, HELD, "%d MiB were taken", FLOOD_MIB);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	struct rusage usage = {0};
	long mib;

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return verdict(evidence, BROKEN, "the launcher ended with wait status 0x%x",
		               (unsigned)status);
	if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
		return verdict(evidence, UNTRIED, "getrusage: %s", strerrorname_np(errno));
	mib = usage.ru_maxrss >> 10;
	if (mib > MODEST_MIB)
		return verdict(evidence, BROKEN, "the launcher's memory grew to %ld MiB", mib);
	if (inside == HELD)
		verdict(evidence, HELD, "%d MiB came out, the launcher had %ld MiB at most",
		        FLOOD_MIB, mib);
	return inside;
}

ATTACK(output_flood) = {
	.name = "output_flood",
	.what = "have the supervisor run out of memory by output",
	.seen = "Docker's json-file logs without max-size; runners that keep a log in memory",
	.wall = "the output's head and tail are kept, the rest is counted",
	.control = WORDS("--max-output", "1g"),
	.inside = inside,
	.after = after,
};
