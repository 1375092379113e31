/* SPDX-License-Identifier: Apache-2.0 */
/* The book of attempts, and the places that they are made from. */
#include "tests/escape/try.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"

struct tries *tries_new(void)
{
	struct tries *tries = mmap(NULL, sizeof(*tries), PROT_READ | PROT_WRITE,
	                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (tries == MAP_FAILED) {
		perror("memory for the attempts");
		_exit(125);
	}
	tries->place = "directly";
	return tries;
}

static void refused(struct tries *tries, int code)
{
	int i = 0;

	tries->count++;
	while (i < TRIES_ERRNOS - 1 && tries->refused[i].count && tries->refused[i].code != code)
		i++;
	tries->refused[i].code = code;
	tries->refused[i].count++;
}

bool tried(struct tries *tries, long result, const char *format, ...)
{
	int code = errno;
	char what[sizeof(tries->what)];
	va_list args;

	if (result < 0) {
		refused(tries, code);
		return false;
	}
	tries->count++;
	if (!tries->worked) {
		va_start(args, format);
		vsnprintf(what, sizeof(what), format, args);
		va_end(args);
		snprintf(tries->what, sizeof(tries->what), "%s, %.200s", tries->place, what);
	}
	tries->worked = true;
	return true;
}

void tried_in_vain(struct tries *tries)
{
	refused(tries, 0);
}

static const char *errno_name(int code)
{
	const char *name = code ? strerrorname_np(code) : "nothing there";

	return name ? name : "?";
}

enum outcome tries_verdict(const struct tries *tries, struct evidence *evidence)
{
	char text[200] = "";
	size_t used = 0;

	if (tries->worked)
		return verdict(evidence, BROKEN, "%s", tries->what);
	for (int i = 0; i < TRIES_ERRNOS && tries->refused[i].count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %u", i ? ", " : "",
		                         errno_name(tries->refused[i].code),
		                         tries->refused[i].count);
	return verdict(evidence, HELD, "%u attempts: %s", tries->count, text);
}

/* ---- places ---- */

struct attempt {
	struct tries *tries;
	void (*make)(struct tries *tries);
};

static void *make_in_thread(void *argument)
{
	const struct attempt *attempt = argument;

	attempt->make(attempt->tries);
	return NULL;
}

static void from_thread(struct attempt *attempt)
{
	pthread_t thread;

	attempt->tries->place = "in a thread";
	if (pthread_create(&thread, NULL, make_in_thread, attempt) == 0)
		pthread_join(thread, NULL);
}

static void wait_for_child(pid_t pid)
{
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void write_text(const char *path, const char *text)
{
	scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);

	/* what is not mapped shows in what the attempts get */
	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		errno = 0;
}

static void map_to_root(uid_t uid, gid_t gid)
{
	char line[32];

	write_text("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "0 %u 1", uid);
	write_text("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "0 %u 1", gid);
	write_text("/proc/self/gid_map", line);
}

/* A second child, for the sake of a pid namespace, which its maker does not enter. */
static void make_in_namespaces(const struct attempt *attempt, int flags)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	pid_t pid;

	if (unshare(flags) < 0) {
		refused(attempt->tries, errno);
		return;
	}
	if (flags & CLONE_NEWUSER)
		map_to_root(uid, gid);
	pid = fork();
	if (pid == 0) {
		attempt->make(attempt->tries);
		_exit(0);
	}
	wait_for_child(pid);
}

static void from_namespaces(const struct attempt *attempt, int flags, const char *place)
{
	pid_t pid;

	attempt->tries->place = place;
	pid = fork();
	if (pid == 0) {
		make_in_namespaces(attempt, flags);
		_exit(0);
	}
	wait_for_child(pid);
}

void try_everywhere(struct tries *tries, int flags, void (*make)(struct tries *tries))
{
	struct attempt attempt = {.tries = tries, .make = make};

	tries->place = "directly";
	make(tries);
	if (!tries->worked)
		from_thread(&attempt);
	if (!tries->worked && flags)
		from_namespaces(&attempt, flags, "in new namespaces");
	if (!tries->worked)
		from_namespaces(&attempt, flags | CLONE_NEWUSER, "in a new user namespace");
}

/* ---- scratch ---- */

const char *try_directory(void)
{
	static char path[64];
	static const char *const places[] = {"/tmp", "/dev/shm", "/workspace"};

	for (size_t i = 0; !path[0] && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/attack-XXXXXX", places[i]);
		if (!mkdtemp(path))
			path[0] = '\0';
	}
	return path[0] ? path : places[0];
}

bool try_reads(int fd, const char *expected)
{
	char data[256];
	size_t length = strlen(expected);

	return length <= sizeof(data) && pread(fd, data, length, 0) == (ssize_t)length &&
	       memcmp(data, expected, length) == 0;
}

/* ---- on the host ---- */

static char host_directory[] = "/tmp/agentdock-probe-XXXXXX";
static pid_t host_directory_owner;

/* Not in a child, which inherits what is registered. */
static void remove_host_directory(void)
{
	struct err ignored;

	if (getpid() == host_directory_owner)
		tree_remove(AT_FDCWD, host_directory, &ignored);
}

int try_host_directory(const char **path)
{
	if (!mkdtemp(host_directory))
		return -1;
	host_directory_owner = getpid();
	*path = host_directory;
	if (atexit(remove_host_directory) != 0 || chmod(host_directory, 0755) < 0)
		return -1;
	return open(host_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int try_write_file(int dirfd, const char *name, const char *text, mode_t mode)
{
	size_t length = strlen(text);
	scoped_fd fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, length) != (ssize_t)length)
		return -1;
	return fchmod(fd, mode);
}
