/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring: the kernel opens files, makes sockets and sends data for entries in a ring, and no
 * filter sees any of it. It has also been one of the richest sources of privilege escalation
 * (CVE-2022-29582, CVE-2023-2598; most of what Google's kCTF was sent).
 * The filter forbids its calls. Each of them is tried by itself, too: where one is let through to the
 * kernel a ring that somebody else made would do.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum { RING_BYTES = 16384, NO_RING = 1 << 30 };

struct ring {
	int fd;
	struct io_uring_params params;
	char *submission, *completion;
	struct io_uring_sqe *entries;
};

static void *map(int fd, off_t offset)
{
	return mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

/* A CODE (tally.h), as all that follows. */
static int ring_make(struct ring *ring)
{
	ring->fd = (int)syscall(SYS_io_uring_setup, 4, &ring->params);
	if (ring->fd < 0)
		return errno;
	ring->submission = map(ring->fd, IORING_OFF_SQ_RING);
	ring->completion = map(ring->fd, IORING_OFF_CQ_RING);
	ring->entries = map(ring->fd, IORING_OFF_SQES);
	if (ring->submission == MAP_FAILED || ring->completion == MAP_FAILED ||
	    (void *)ring->entries == MAP_FAILED)
		return errno;
	return 0;
}

/* Has the ring do ENTRY, and takes its completion out. */
static int ring_perform(const struct ring *ring, const struct io_uring_sqe *entry)
{
	const struct io_uring_params *params = &ring->params;
	unsigned *tail = (unsigned *)(ring->submission + params->sq_off.tail);
	unsigned *head = (unsigned *)(ring->completion + params->cq_off.head);
	const unsigned *done = (const unsigned *)(ring->completion + params->cq_off.tail);
	const struct io_uring_cqe *completed = (const struct io_uring_cqe *)(ring->completion +
	                                                                     params->cq_off.cqes);
	unsigned at = *tail % params->sq_entries;
	int result;

	ring->entries[at] = *entry;
	((unsigned *)(ring->submission + params->sq_off.array))[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return errno;
	if (__atomic_load_n(done, __ATOMIC_ACQUIRE) == *head)
		return ENODATA;
	completed += *head % params->cq_entries;
	if (completed->user_data != entry->user_data)
		return EBADMSG;
	result = completed->res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result < 0 ? -result : 0;
}

static int do_nothing(const struct ring *ring)
{
	const struct io_uring_sqe entry = {.opcode = IORING_OP_NOP, .user_data = 1};

	return ring_perform(ring, &entry);
}

static int open_root(const struct ring *ring)
{
	static const char path[] = "/";
	const struct io_uring_sqe entry = {
		.opcode = IORING_OP_OPENAT,
		.fd = AT_FDCWD,
		.addr = (uintptr_t)path,
		.open_flags = O_RDONLY | O_DIRECTORY,
		.user_data = 2,
	};

	return ring_perform(ring, &entry);
}

/* A call on no ring: a kernel that gets to see it knows the descriptor to be none. */
static int comes_through(long result)
{
	return result < 0 && errno != EBADF ? errno : 0;
}

static int before(const char *words[8], struct evidence *evidence)
{
	struct ring ring = {.fd = -1};
	int code = ring_make(&ring);

	(void)words;
	if (code == 0)
		code = do_nothing(&ring);
	if (code == 0)
		code = open_root(&ring);
	if (ring.fd >= 0)
		close(ring.fd);
	if (code == 0)
		return 0;
	verdict(evidence, ABSENT, "io_uring does not work on this host: %s", strerrorname_np(code));
	return 1;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct ring ring = {.fd = -1};
	struct tally tally = {0};
	int code = ring_make(&ring);

	(void)argv;
	tally_add(&tally, "a ring", code);
	if (code == 0) {
		tally_add(&tally, "nothing done by it", do_nothing(&ring));
		tally_add(&tally, "a directory opened by it", open_root(&ring));
	}
	tally_add(&tally, "io_uring_enter",
	          comes_through(syscall(SYS_io_uring_enter, NO_RING, 0, 0, 0, NULL, 0)));
	tally_add(&tally, "io_uring_register",
	          comes_through(syscall(SYS_io_uring_register, NO_RING, IORING_UNREGISTER_BUFFERS,
	                                NULL, 0)));
	return tally_verdict(&tally, evidence);
}

ATTACK(io_uring) = {
	.name = "io_uring",
	.what = "have the kernel do by a ring what the filter refuses",
	.seen = "CVE-2022-29582, CVE-2023-2598; Google kCTF",
	.wall = "filter: io_uring_setup, io_uring_enter, io_uring_register",
	.control = WORDS(WITHOUT("seccomp")),
	.before = before,
	.inside = inside,
};
