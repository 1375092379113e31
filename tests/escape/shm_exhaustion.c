/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that outlives who made it: segments of System V, files in /dev/shm. Their makers end, one
 * after the other, and are not there to be killed for it when the memory runs out; what they made
 * may even outlive the sandbox, or be seen by the host. The pages stay charged to the sandbox, whose
 * limit is 64 MiB; segments belong to its ipc namespace. A segment with a key is left behind, and the
 * host looks for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/host.h"
#include "tests/escape/tally.h"

enum { PIECE = 8 << 20, PIECES = 15 };

static key_t key;

static key_t key_of(const char *word)
{
	unsigned hash = 5381;

	for (; *word; word++)
		hash = hash * 33 + (unsigned char)*word;
	return (key_t)(hash | 1); /* 0 is IPC_PRIVATE */
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)evidence;
	words[0] = unique_word();
	key = key_of(words[0]);
	return 0;
}

static int fill_segment(const void *id)
{
	void *memory = shmat(*(const int *)id, NULL, 0);

	if (memory == (void *)-1)
		return errno;
	memset(memory, 1, PIECE);
	return 0;
}

static int fill_file(const void *path)
{
	scoped_fd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int code = fd < 0 ? errno : posix_fallocate(fd, 0, PIECE);
	void *memory;

	if (code)
		return code;
	memory = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return errno;
	memset(memory, 1, PIECE);
	return 0;
}

/* By makers that have all ended. 0 when all pieces are there at once. */
static int segments(void)
{
	int ids[PIECES], count = 0, code = 0;

	while (count < PIECES && code == 0) {
		ids[count] = shmget(IPC_PRIVATE, PIECE, IPC_CREAT | 0600);
		if (ids[count] < 0)
			code = errno;
		else
			code = try_apart(fill_segment, &ids[count++]);
	}
	while (count > 0)
		shmctl(ids[--count], IPC_RMID, NULL);
	return code;
}

static int files(void)
{
	char path[32];
	int count = 0, code = 0;

	while (count < PIECES && code == 0) {
		snprintf(path, sizeof(path), "/dev/shm/attack-%d", count++);
		code = try_apart(fill_file, path);
	}
	while (count > 0) {
		snprintf(path, sizeof(path), "/dev/shm/attack-%d", --count);
		unlink(path);
	}
	return code;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	if (shmget(key_of(argv[0]), 1, IPC_CREAT | 0600) < 0)
		return verdict(evidence, ABSENT, "no segment can be made: %s",
		               strerrorname_np(errno));
	tally_add(&tally, "120 MiB in segments", segments());
	tally_add(&tally, "120 MiB in /dev/shm", files());
	return tally_verdict(&tally, evidence);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	int id = shmget(key, 0, 0);

	(void)status;
	if (id < 0)
		return inside;
	shmctl(id, IPC_RMID, NULL);
	return verdict(evidence, BROKEN, "the host has the segment that was made inside");
}

ATTACK(shm_exhaustion) = {
	.name = "shm_exhaustion",
	.what = "leave memory behind that no process is killed for",
	.seen = "shmget(2), sysvipc(7); docker run --ipc=host",
	.wall = "memory.max, a tmpfs with a size, the ipc namespace",
	.options = WORDS("--memory", "64m"),
	.control = WORDS("--memory", "1g", WITHOUT("ipc namespace")),
	.before = before,
	.inside = inside,
	.after = after,
};
