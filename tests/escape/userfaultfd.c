/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userfaultfd: holds the kernel at a page fault for as long as the attacker likes, in the middle of
 * a copy from memory, which wins races that are otherwise lost (used in exploits of CVE-2016-6187,
 * CVE-2019-18683 and others). The attempt has a thread fault in a page and answers the fault
 * itself. The filter forbids the call; /dev has no userfaultfd.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { PAGE = 4096, PATIENCE_MS = 5000 };

static int create(int flags)
{
	return (int)syscall(SYS_userfaultfd, flags | O_CLOEXEC | O_NONBLOCK);
}

static void *touch(void *page)
{
	return (void *)(uintptr_t) * (volatile char *)page;
}

/* 0 when a fault of another thread was ours to answer. */
static int answer_a_fault(int fd)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.range = {(uintptr_t)page, PAGE},
	                               .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_zeropage zero = {.range = {(uintptr_t)page, PAGE}};
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	pthread_t thread;
	int held;

	if (page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0 ||
	    ioctl(fd, UFFDIO_REGISTER, &area) < 0)
		return errno;
	if (pthread_create(&thread, NULL, touch, page))
		return EAGAIN;
	held = poll(&poller, 1, PATIENCE_MS) == 1;
	if (ioctl(fd, UFFDIO_ZEROPAGE, &zero) < 0)
		return errno; /* the thread stays where it is */
	pthread_join(thread, NULL);
	munmap(page, PAGE);
	return held ? 0 : ETIMEDOUT;
}

static int by_call(int flags)
{
	scoped_fd fd = create(flags);

	return fd < 0 ? errno : answer_a_fault(fd);
}

static int by_device(void)
{
	scoped_fd device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	scoped_fd fd = -1;

	if (device < 0)
		return errno;
	fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? errno : answer_a_fault(fd);
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (by_call(UFFD_USER_MODE_ONLY) == 0)
		return 0;
	verdict(evidence, ABSENT, "this kernel has no userfaultfd");
	return 1;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	tally_add(&tally, "faults of user mode", by_call(UFFD_USER_MODE_ONLY));
	tally_add(&tally, "faults of the kernel", by_call(0));
	tally_add(&tally, "/dev/userfaultfd", by_device());
	return tally_verdict(&tally, evidence);
}

ATTACK(userfaultfd) = {
	.name = "userfaultfd",
	.what = "hold the kernel at a page fault, to win races in it",
	.seen = "userfaultfd(2); exploits of CVE-2016-6187, CVE-2019-18683",
	.wall = "filter: userfaultfd",
	.control = WORDS(WITHOUT("seccomp")),
	.before = before,
	.inside = inside,
};
