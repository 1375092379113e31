/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's halves share. */
#include "tests/escape/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "tests/escape/try.h"

int unprepared(struct evidence *evidence, const char *what)
{
	verdict(evidence, UNTRIED, "%s: %s", what, strerror(errno));
	return -1;
}

void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

const char *unique_word(void)
{
	static char word[32];
	unsigned long random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (unsigned long)getpid();
	snprintf(word, sizeof(word), "mark-%016lx", random);
	return word;
}

/* Pid 1 and the launcher have the words on their command lines as well, but not at the beginning. */
static int is_inside(const char *pid, const char *word)
{
	static const char begins[] = "/probe\0inside";
	char path[300], line[1024];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	length = fd >= 0 ? read(fd, line, sizeof(line)) : -1;
	return length > (ssize_t)sizeof(begins) && memcmp(line, begins, sizeof(begins)) == 0 &&
	       memmem(line, (size_t)length, word, strlen(word)) != NULL;
}

int inside_processes(const char *word, int signo)
{
	scoped_dir proc = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while (proc && (entry = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || !is_inside(entry->d_name, word))
			continue;
		count++;
		if (signo)
			kill(pid, signo);
	}
	return count;
}

static void sleep_ms(long ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* ---- who wants to survive ---- */

enum { DYING_US = 1000 * 1000 };

static const char *survivors_word;
static struct {
	volatile int most;
} * survivors;

int survivors_before(const char *words[8], struct evidence *evidence)
{
	survivors = shared_memory(sizeof(*survivors));
	survivors_word = words[0] = unique_word();
	return survivors ? 0 : unprepared(evidence, "memory");
}

void survivors_look(void)
{
	int now = inside_processes(survivors_word, 0);

	if (now > survivors->most)
		survivors->most = now;
}

void survivors_during(void)
{
	for (;;)
		survivors_look();
}

void survivors_leave_cgroup(void)
{
	const char *dir = try_directory();
	char path[80];

	if (mount("attack", dir, "cgroup2", 0, NULL) < 0)
		return;
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "0", 1) != 1)
		perror(path);
}

/* Who was killed is still there until it runs once more. Those that are left then are killed. */
static int survivors_left(void)
{
	uint64_t end = clock_us() + DYING_US;

	while (inside_processes(survivors_word, 0) && clock_us() < end)
		sleep_ms(1);
	return inside_processes(survivors_word, SIGKILL);
}

enum outcome survivors_after(enum outcome inside, int least, struct evidence *evidence)
{
	int left = survivors_left();

	if (left)
		return verdict(evidence, BROKEN, "%d processes are left after the launcher", left);
	if (inside != HELD)
		return inside;
	if (survivors->most < least)
		return verdict(evidence, UNTRIED, "the host saw nothing of it");
	return verdict(evidence, HELD, "the host saw up to %d processes, and none after the end",
	               survivors->most);
}

/* ---- where both halves meet ---- */

#define HOLDING "holding"

enum { HOLD_MS = 1000 };

static const char *held_word;
static int hold_writefd = -1;

int hold_prepare(const char *word)
{
	int ends[2];

	held_word = word;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	hold_writefd = ends[1];
	/* without close-on-exec, for the launcher to open */
	if (dup2(ends[0], HOLD_FD) < 0)
		return -1;
	return close(ends[0]);
}

static int is_holding(const char *pid)
{
	char path[300], name[16] = "";

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strcmp(name, HOLDING "\n") == 0 &&
	       is_inside(pid, held_word);
}

void hold_await(void)
{
	for (;; sleep_ms(1)) {
		scoped_dir proc = opendir("/proc");
		struct dirent *entry;

		while (proc && (entry = readdir(proc)) != NULL)
			if (is_holding(entry->d_name))
				return;
	}
}

void hold_end(void)
{
	if (write(hold_writefd, "\n", 1) < 0)
		perror("letting the inside go on");
}

void hold(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char byte;

	prctl(PR_SET_NAME, HOLDING);
	if (poll(&input, 1, 60 * HOLD_MS) != 1 || read(STDIN_FILENO, &byte, 1) != 1)
		sleep_ms(HOLD_MS);
}
