/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, in every form that a kernel forgot to charge at some time: pages of one's own, files in
 * memory, /dev/shm, what waits in pipes and sockets, page tables (each was a way past a memory limit
 * once; the buffers of sockets are counted apart by cgroup v1). The limit is 40 MiB, each attempt
 * wants to hold 60 MiB, in a process of its own. All of it is charged to the sandbox: the process is
 * killed, or refused more by an errno that says that memory is used up. Any other end is an error:
 * something else came first, and what it stopped says nothing of the limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum {
	WANTED = 60 << 20,
	CHUNK = 65536,
	PIPE_BYTES = 1 << 20, /* what anybody may make of a pipe, until all of them hold too much */
	DESCRIPTORS = 3800,
	CONNECTIONS = 200,
	TABLE_COVERS = 2 << 20, /* by one page of page table */
	LEAST = 1 << 20,
	PAGE = 4096,
};

static char chunk[CHUNK];

/* What a limit of memory does to each. */
static const int killed[] = {-SIGKILL, 0};
static const int killed_or_refused[] = {-SIGKILL, ENOMEM, ENOBUFS, 0};
static const int killed_or_full[] = {-SIGKILL, ENOMEM, ENOSPC, 0}; /* a tmpfs has a size, too */

static int touch_pages(int kind)
{
	char *memory = mmap(NULL, WANTED, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return errno;
	memset(memory, 1, WANTED);
	return 0;
}

static int own_pages(const void *unused)
{
	(void)unused;
	return touch_pages(MAP_PRIVATE);
}

static int shared_pages(const void *unused)
{
	(void)unused;
	return touch_pages(MAP_SHARED);
}

static int fill_file(int fd)
{
	if (fd < 0)
		return errno;
	for (size_t done = 0; done < WANTED;) {
		ssize_t written = write(fd, chunk, CHUNK);

		if (written < 0)
			return errno;
		done += (size_t)written;
	}
	return 0;
}

static int file_in_memory(const void *unused)
{
	(void)unused;
	return fill_file(memfd_create("attack", MFD_CLOEXEC));
}

/* Without a name, so that nothing is left of it. */
static int shm(const void *unused)
{
	(void)unused;
	return fill_file(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

/* Writes until nothing more goes in, and adds what did to TOTAL; what refused more than its buffer. */
static int stuff(int fd, size_t *total)
{
	ssize_t written;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((written = write(fd, chunk, CHUNK)) > 0)
		*total += (size_t)written;
	return errno == EAGAIN ? 0 : errno;
}

/* What became of TOTAL bytes that were stuffed until CODE. */
static int stuffed(size_t total, int code)
{
	if (total >= WANTED)
		return 0;
	return total < LEAST ? TOO_SOON : code;
}

static int pipes(const void *unused)
{
	size_t total = 0;
	int ends[2], code = 0;

	(void)unused;
	for (int open = 0; open < DESCRIPTORS && total < WANTED && !code; open += 2) {
		if (pipe2(ends, O_CLOEXEC) < 0)
			return errno;
		fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
		code = stuff(ends[1], &total);
	}
	return stuffed(total, code ? code : EMFILE);
}

static int sockets(const void *unused)
{
	size_t total = 0;
	int pair[2], code = 0;

	(void)unused;
	for (int open = 0; open < DESCRIPTORS && total < WANTED && !code; open += 2) {
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
			return errno;
		code = stuff(pair[0], &total);
	}
	return stuffed(total, code ? code : EMFILE);
}

static int connected(int listener, const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0)
		return -1;
	return fd;
}

/* Of which nobody reads the other end. At its limit of memory TCP takes no more than a buffer does. */
static int tcp(const void *unused)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t total = 0;
	int code = 0;

	(void)unused;
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(listener, 8) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		return errno;
	for (int open = 0; open < CONNECTIONS && total < WANTED && !code; open++) {
		int fd = connected(listener, &address);

		if (fd < 0)
			return errno;
		code = stuff(fd, &total);
	}
	return stuffed(total, code ? code : ENOBUFS);
}

/* One page of zeroes for each page of page table: only the tables are new memory. */
static int page_tables(const void *unused)
{
	size_t length = (size_t)WANTED / PAGE * TABLE_COVERS;
	volatile char *memory = mmap(NULL, length, PROT_READ,
	                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char sum = 0;

	(void)unused;
	if (memory == MAP_FAILED)
		return errno;
	/* a kernel that has no huge pages does not know the advice */
	if (madvise((void *)(uintptr_t)memory, length, MADV_NOHUGEPAGE) < 0 && errno != EINVAL)
		return errno;
	for (size_t at = 0; at < length; at += TABLE_COVERS)
		sum |= memory[at];
	return sum;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	memset(chunk, 1, sizeof(chunk));
	tally_add_limit(&tally, "own pages", try_apart(own_pages, NULL), killed);
	tally_add_limit(&tally, "shared pages", try_apart(shared_pages, NULL), killed);
	tally_add_limit(&tally, "a file in memory", try_apart(file_in_memory, NULL),
	                killed_or_refused);
	tally_add_limit(&tally, "/dev/shm", try_apart(shm, NULL), killed_or_full);
	tally_add_limit(&tally, "pipes", try_apart(pipes, NULL), killed_or_refused);
	tally_add_limit(&tally, "sockets", try_apart(sockets, NULL), killed_or_refused);
	tally_add_limit(&tally, "TCP", try_apart(tcp, NULL), killed_or_refused);
	tally_add_limit(&tally, "page tables", try_apart(page_tables, NULL), killed);
	return tally_verdict(&tally, evidence);
}

ATTACK(memory) = {
	.name = "memory",
	.what = "hold more memory than the limit, in a form that is not counted",
	.seen = "cgroup-v1/memory.txt (kernel memory, tcp apart); CVE-2013-4312 (descriptors in "
		"flight)",
	.wall = "memory.max, which everything is charged to",
	.options = WORDS("--memory", "40m"),
	.control = WORDS("--memory", "1g"),
	.inside = inside,
};
