/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times whole processes, from posix_spawn to reaped, for `make bench`.
 *
 *	spawn [-r ROUNDS] [-w WARMUP] [-j AT_ONCE] [-b MIB] [-f FILE] [-n NULL] COMMANDS
 *
 * Each line of the file COMMANDS is NAME, PLACE and the words of a command, separated by tabs. PLACE
 * is "host", or "v1": a mount namespace of its own without the v2 tree of a hybrid host, which some
 * runtimes trip over. The commands take turns; after WARMUP rounds each run of ROUNDS prints NAME,
 * microseconds, peak memory in KiB (of the largest process of its tree, which wait4 tells), exit
 * status. With -j the first command alone is run ROUNDS times, AT_ONCE at a time, and a last line
 * says how long all of it took. With -b this process holds MIB of memory while it spawns. Each command
 * finds FILE open as descriptor 9, and NULL (/dev/null) as its standard input and output: a node of
 * the bench's own, for there are runtimes that give what they find there to the container's user.
 *
 * A program that is spawned inherits the peak of the process that spawned it, so this one is static
 * and small.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMMANDS_MAX = 16, WORDS_MAX = 64, AT_ONCE_MAX = 4096, FILE_FD = 9, SETTLE_MS = 10 };

struct command {
	char *name;
	int nsfd;
	char *argv[WORDS_MAX];
};

struct running {
	pid_t pid;
	uint64_t began_us;
};

static struct command commands[COMMANDS_MAX];
static int commands_count, here_nsfd = -1;
static struct running running[AT_ONCE_MAX];
static posix_spawn_file_actions_t quiet;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "spawn: %s: %s\n", what, strerrordesc_np(errno));
	exit(125);
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A namespace where the v2 tree beside the v1 ones is not mounted; this process returns from it. */
static int v1_namespace(void)
{
	int fd;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("a mount namespace");
	if (umount2("/sys/fs/cgroup/unified", MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
		die("hiding the v2 tree");
	fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(here_nsfd, CLONE_NEWNS) < 0)
		die("returning from the mount namespace");
	return fd;
}

static void parse(char *line, int v1_nsfd)
{
	struct command *command = &commands[commands_count++];
	char *place, *word;
	int count = 0;

	command->name = strtok(line, "\t\n");
	place = strtok(NULL, "\t\n");
	while ((word = strtok(NULL, "\t\n")) && count < WORDS_MAX - 1)
		command->argv[count++] = word;
	if (!place || count == 0) {
		errno = EINVAL;
		die("a line of the commands");
	}
	command->nsfd = strcmp(place, "v1") == 0 ? v1_nsfd : -1;
}

static void read_commands(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int v1_nsfd;

	if (!file)
		die(path);
	here_nsfd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	v1_nsfd = v1_namespace();
	while (commands_count < COMMANDS_MAX && getline(&line, &size, file) > 0) {
		parse(line, v1_nsfd);
		line = NULL; /* the words are in it */
		size = 0;
	}
	fclose(file);
}

static pid_t start(const struct command *command)
{
	int code;
	pid_t pid;

	code = posix_spawn(&pid, command->argv[0], &quiet, NULL, command->argv, environ);
	if (code) {
		errno = code;
		die(command->argv[0]);
	}
	return pid;
}

static void print(const char *name, uint64_t us, const struct rusage *usage, int status)
{
	printf("%s\t%llu\t%ld\t%d\n", name, (unsigned long long)us, usage->ru_maxrss,
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void run_in_turn(int rounds, int warmup)
{
	for (int round = -warmup; round < rounds; round++) {
		for (int i = 0; i < commands_count; i++) {
			const struct command *command = &commands[i];
			struct rusage usage;
			uint64_t began_us, us;
			int status;
			pid_t pid;

			if (command->nsfd >= 0 && setns(command->nsfd, CLONE_NEWNS) < 0)
				die("entering the mount namespace");
			began_us = now_us();
			pid = start(command);
			if (wait4(pid, &status, 0, &usage) < 0)
				die("wait4");
			us = now_us() - began_us;
			if (command->nsfd >= 0 && setns(here_nsfd, CLONE_NEWNS) < 0)
				die("leaving the mount namespace");
			if (round >= 0)
				print(command->name, us, &usage, status);
			/* what the kernel or a process of the command's does after its end is
			 * not to slow down the next */
			poll(NULL, 0, SETTLE_MS);
		}
	}
}

static struct running *running_as(pid_t pid, int at_once)
{
	for (int i = 0; i < at_once; i++)
		if (running[i].pid == pid)
			return &running[i];
	errno = ECHILD;
	die("a process that was not started here");
}

static void run_at_once(int rounds, int at_once)
{
	uint64_t first_us = now_us(), us;
	int started = 0, ended = 0, status;
	struct rusage usage;

	if (commands[0].nsfd >= 0 && setns(commands[0].nsfd, CLONE_NEWNS) < 0)
		die("entering the mount namespace");
	while (ended < rounds) {
		struct running *slot;
		pid_t pid;

		while (started < rounds && started - ended < at_once) {
			slot = running_as(0, at_once);
			slot->began_us = now_us();
			slot->pid = start(&commands[0]);
			started++;
		}
		pid = wait4(-1, &status, 0, &usage);
		if (pid < 0)
			die("wait4");
		us = now_us();
		slot = running_as(pid, at_once);
		print(commands[0].name, us - slot->began_us, &usage, status);
		slot->pid = 0;
		ended++;
	}
	printf("wall\t%llu\t0\t0\n", (unsigned long long)(now_us() - first_us));
}

static void hold(size_t mib)
{
	char *memory = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                    -1, 0);

	if (memory == MAP_FAILED)
		die("memory to hold");
	memset(memory, 1, mib << 20);
}

static int number(const char *text, int max)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*end || end == text || value < 0 || value > max) {
		errno = ERANGE;
		die(text);
	}
	return (int)value;
}

int main(int argc, char *argv[])
{
	int rounds = 100, warmup = 5, at_once = 0, option;
	const char *file = NULL, *null = "/dev/null";

	while ((option = getopt(argc, argv, "r:w:j:b:f:n:")) != -1) {
		switch (option) {
		case 'r':
			rounds = number(optarg, 1000000);
			break;
		case 'w':
			warmup = number(optarg, 1000);
			break;
		case 'j':
			at_once = number(optarg, AT_ONCE_MAX);
			break;
		case 'b':
			hold((size_t)number(optarg, 65536));
			break;
		case 'f':
			file = optarg;
			break;
		case 'n':
			null = optarg;
			break;
		default:
			return 125;
		}
	}
	if (optind + 1 != argc) {
		fputs("usage: spawn [-r ROUNDS] [-w WARMUP] [-j AT_ONCE] [-b MIB] [-f FILE] "
		      "[-n NULL] COMMANDS\n",
		      stderr);
		return 125;
	}
	read_commands(argv[optind]);
	if (posix_spawn_file_actions_init(&quiet) ||
	    posix_spawn_file_actions_addopen(&quiet, 0, null, O_RDONLY, 0) ||
	    posix_spawn_file_actions_addopen(&quiet, 1, null, O_WRONLY, 0) ||
	    (file && posix_spawn_file_actions_addopen(&quiet, FILE_FD, file, O_RDONLY, 0)))
		die("posix_spawn");
	if (at_once)
		run_at_once(rounds, at_once);
	else
		run_in_turn(rounds, warmup);
	return fflush(stdout) ? 125 : 0;
}
