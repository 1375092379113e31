/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's halves share. */
#include "tests/escape/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/scoped.h"

int unprepared(struct evidence *evidence, const char *what)
{
	verdict(evidence, ABSENT, "%s: %s", what, strerror(errno));
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
