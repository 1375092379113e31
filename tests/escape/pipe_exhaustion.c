/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of pipes: a user who holds more than fs.pipe-user-pages-soft gets pipes of two pages, in
 * each of which programs block that never did before. It counts by the user's id on the host, so
 * sandboxes with the same one take them from each other. Each has a range of ids of its own. The
 * host's half is another sandbox's user without such a range, and looks at the size of its pipes
 * while the attacker holds all it can: so much that its own next pipe is small.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/host.h"

enum {
	USER = 10001,
	PIPES = 1500,
	BIG = 1 << 20,
	USUAL = 65536,
	PAGES_MOST = 100 << 8, /* what the attempt gets out of a thousand descriptors */
};

static struct {
	volatile int size;
} * seen;

static int pipe_size(void)
{
	int ends[2], size;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	size = fcntl(ends[0], F_GETPIPE_SZ);
	close(ends[0]);
	close(ends[1]);
	return size;
}

/* 0: none, or it cannot be read. */
static long soft_limit(void)
{
	scoped_fd fd = open("/proc/sys/fs/pipe-user-pages-soft", O_RDONLY | O_CLOEXEC);
	char text[24] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtol(text, NULL, 10) : 0;
}

static int before(const char *words[8], struct evidence *evidence)
{
	long limit = soft_limit();

	if (limit == 0 || limit > PAGES_MOST) {
		verdict(evidence, ABSENT, "fs.pipe-user-pages-soft is %ld here, and out of reach",
		        limit);
		return 1;
	}
	words[0] = unique_word();
	seen = shared_memory(sizeof(*seen));
	return seen && hold_prepare(words[0]) == 0 ? 0 : unprepared(evidence, "memory and a pipe");
}

static void during(void)
{
	hold_await();
	if (setresuid(USER, USER, USER) == 0)
		seen->size = pipe_size();
	hold_end();
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	long total = 0;
	int ends[2], size;

	(void)argv;
	for (int i = 0; i < PIPES && pipe2(ends, O_CLOEXEC) == 0; i++) {
		if (fcntl(ends[0], F_SETPIPE_SZ, BIG) < 0)
			continue;
		total += BIG;
	}
	/* with descriptors for one more */
	close(ends[0]);
	close(ends[1]);
	size = pipe_size();
	hold();
	return verdict(evidence, size > 0 && size < USUAL ? HELD : UNTRIED,
	               "%ld MiB of pipes were held, the next has %d bytes", total >> 20, size);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	(void)status;
	/* who has not come to the limit leaves others all they want */
	if (inside != HELD)
		return inside;
	if (seen->size == 0)
		return verdict(evidence, UNTRIED, "the host did not get to look");
	if (seen->size < USUAL)
		return verdict(evidence, BROKEN, "another sandbox's pipe has %d bytes", seen->size);
	return inside;
}

ATTACK(pipe_exhaustion) = {
	.name = "pipe_exhaustion",
	.what = "leave other sandboxes pipes of two pages",
	.seen = "pipe(7), fs.pipe-user-pages-soft; CVE-2016-2847",
	.wall = "a range of host ids of its own",
	.options = WORDS(HOLD_OPTIONS),
	.control = WORDS(WITHOUT("user namespace")),
	.before = before,
	.during = during,
	.inside = inside,
	.after = after,
};
