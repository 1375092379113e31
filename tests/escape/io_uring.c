/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring: the kernel opens files, makes sockets and sends data for entries in a ring, and no
 * filter sees any of it. It has also been one of the richest sources of privilege escalation
 * (CVE-2022-29582, CVE-2023-2598; most of what Google's kCTF was sent).
 * The filter forbids its calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum { RING_BYTES = 16384 };

static int setup(struct io_uring_params *params)
{
	return (int)syscall(SYS_io_uring_setup, 4, params);
}

static void *map(int fd, off_t offset)
{
	return mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

/* Has the ring do ENTRY: its result, or minus an errno. */
static int perform(int fd, const struct io_uring_params *params, const struct io_uring_sqe *entry)
{
	char *submission = map(fd, IORING_OFF_SQ_RING), *completion = map(fd, IORING_OFF_CQ_RING);
	struct io_uring_sqe *entries = map(fd, IORING_OFF_SQES);
	const struct io_uring_cqe *done;

	if (submission == MAP_FAILED || completion == MAP_FAILED || entries == MAP_FAILED)
		return -errno;
	entries[0] = *entry;
	((unsigned *)(submission + params->sq_off.array))[0] = 0;
	__atomic_store_n((unsigned *)(submission + params->sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	done = (const struct io_uring_cqe *)(completion + params->cq_off.cqes);
	return done->res;
}

static int open_by_ring(void)
{
	static const char path[] = "/";
	struct io_uring_params params = {0};
	struct io_uring_sqe entry = {
		.opcode = IORING_OP_OPENAT,
		.fd = AT_FDCWD,
		.addr = (uintptr_t)path,
		.open_flags = O_RDONLY | O_DIRECTORY,
	};
	scoped_fd ring = setup(&params);
	int result;

	if (ring < 0)
		return errno;
	result = perform(ring, &params, &entry);
	return result < 0 ? -result : 0;
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (open_by_ring() == 0)
		return 0;
	verdict(evidence, ABSENT, "io_uring does not work on this host: %s",
	        strerrorname_np(errno));
	return 1;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct io_uring_params none = {.flags = ~0U};
	struct tally tally = {0};

	(void)argv;
	tally_add(&tally, "a file opened by the ring", open_by_ring());
	tally_add(&tally, "io_uring_setup", code_of(setup(&none)));
	tally_add(&tally, "io_uring_enter",
	          code_of(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0)));
	tally_add(&tally, "io_uring_register",
	          code_of(syscall(SYS_io_uring_register, -1, IORING_REGISTER_PROBE, NULL, 0)));
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
