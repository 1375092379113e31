/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a group in one hierarchy, and of the groups below it: listed, signalled, frozen,
 * killed. What a pid names is looked at again behind a pidfd before it is sent anything. Owns nothing.
 */
#include "runtime/cgroup/hierarchy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"

enum {
	KILL_FREEZE_TIMEOUT_MS = 500,
	KILL_TIMEOUT_US = 5000000,
	KILL_PAUSE_MS = 20,
	FREEZER_PAUSE_US = 1000,
};

/* The path of the line "N:CONTROLLERS:PATH" of TEXT, which is cut behind it, or NULL. */
static char *path_in(char *text, const char *controllers)
{
	size_t length = strlen(controllers);

	for (char *line = text; line; line = strchr(line, '\n')) {
		char *field = line += *line == '\n';

		field += strspn(field, "0123456789");
		if (*field++ != ':' || strncmp(field, controllers, length) != 0 ||
		    field[length] != ':' || (length == 0 && strncmp(line, "0:", 2) != 0))
			continue;
		field += length + 1;
		field[strcspn(field, "\n")] = '\0';
		return field;
	}
	return NULL;
}

bool group_is_named(char *text, const char *controllers, const char *path)
{
	size_t length = strlen(path);
	char *at = path_in(text, controllers);

	if (!at)
		return false;
	while ((at = strstr(at, path))) {
		if (at[-1] == '/' && (at[length] == '/' || at[length] == '\0'))
			return true;
		at++;
	}
	return false;
}

static bool is_member(const struct members *members, int pid)
{
	char file[32], text[CONTROL_TEXT_SIZE];

	snprintf(file, sizeof file, "/proc/%d/cgroup", pid);
	return control_read(AT_FDCWD, file, text, sizeof text) >= 0 &&
	       group_is_named(text, members->controllers, members->path);
}

/* A pid of the list may be another process by now: the pidfd pins one, which is then looked at. */
static void signal_member(const struct members *members, int pid, int signo)
{
	scoped_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 && is_member(members, pid))
		syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

struct list_pass {
	member_visit *visit;
	void *data;
	int listed;
};

static int list_group(int parentfd, const char *name, int fd, void *data)
{
	struct list_pass *pass = data;
	scoped_fd procs = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char line[24];
	FILE *list;
	int result = 0;

	(void)parentfd;
	(void)name;
	if (procs < 0)
		return errno == ENOENT || errno == ENODEV ? 0 : -errno;
	list = fdopen(procs, "r");
	if (!list)
		return -errno;
	take_fd(&procs);
	/* Pid 0 is a process outside of our pid namespace, which is no one of a group of ours. A
	 * threaded group lists nothing (EOPNOTSUPP): its processes are listed above it. */
	while (result == 0 && fgets(line, sizeof line, list)) {
		int pid = (int)strtol(line, NULL, 10);

		pass->listed++;
		if (pid > 0)
			result = pass->visit(pid, pass->data);
	}
	fclose(list);
	return result;
}

int members_list(const struct members *members, member_visit *visit, void *data)
{
	struct list_pass pass = {.visit = visit, .data = data};
	int result = hierarchy_walk(members->fd, list_group, &pass);

	return result < 0 && result != -ENOENT && result != -ENODEV ? result : pass.listed;
}

struct signal_pass {
	const struct members *members;
	int signo, spared;
};

static int signal_visit(int pid, void *data)
{
	const struct signal_pass *pass = data;

	if (pid != pass->spared)
		signal_member(pass->members, pid, pass->signo);
	return 0;
}

int members_signal(const struct members *members, int signo, pid_t spared)
{
	struct signal_pass pass = {.members = members, .signo = signo, .spared = spared};

	return members_list(members, signal_visit, &pass);
}

/* ---- freeze ---- */

/* "FREEZING" may stay for good when a process was in the middle of a fork: asking again helps. */
static int freezer_set(int fd, bool frozen, int timeout_ms)
{
	const char *word = frozen ? "FROZEN" : "THAWED";
	const struct timespec pause = {.tv_nsec = FREEZER_PAUSE_US * 1000};
	uint64_t start_us = clock_us();

	for (;;) {
		char text[32];
		int result = control_write(fd, "freezer.state", word);

		if (result == 0)
			result = control_read(fd, "freezer.state", text, sizeof text);
		if (result < 0)
			return result;
		if (control_has_word(text, word))
			return 0;
		if (clock_us() - start_us > (uint64_t)timeout_ms * 1000)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

int members_freeze(const struct members *members, bool frozen, int timeout_ms)
{
	int result;

	if (members->controllers[0] != '\0')
		return freezer_set(members->fd, frozen, timeout_ms);
	result = control_write(members->fd, "cgroup.freeze", frozen ? "1" : "0");
	return result < 0 ? result : control_await(members->fd, "frozen", frozen, timeout_ms);
}

int members_are_frozen(const struct members *members, bool *frozen)
{
	char text[CONTROL_TEXT_SIZE];
	uint64_t value = 0;
	int result;

	if (members->controllers[0] != '\0') {
		result = control_read(members->fd, "freezer.state", text, sizeof text);
		/* "FREEZING" is on its way there */
		*frozen = result >= 0 && !control_has_word(text, "THAWED");
	} else {
		result = control_read(members->fd, "cgroup.events", text, sizeof text);
		*frozen = result >= 0 && control_number(text, "frozen", &value) && value;
	}
	return result < 0 ? result : 0;
}

static int look_at_group(int parentfd, const char *name, int fd, void *data)
{
	const struct members one = {.fd = fd, .controllers = "freezer", .path = name};
	bool *any = data, frozen;

	(void)parentfd;
	if (!*any && members_are_frozen(&one, &frozen) == 0)
		*any = frozen;
	return 0;
}

bool members_are_held(const struct members *members)
{
	bool frozen = false;

	if (members->controllers[0] != '\0')
		hierarchy_walk(members->fd, look_at_group, &frozen);
	return frozen;
}

static int thaw_group(int parentfd, const char *name, int fd, void *data)
{
	(void)parentfd;
	(void)name;
	(void)data;
	control_write(fd, "freezer.state", "THAWED");
	return 0;
}

void members_let_go(const struct members *members)
{
	if (members->controllers[0] != '\0')
		hierarchy_walk(members->fd, thaw_group, NULL);
	else
		control_write(members->fd, "cgroup.freeze", "0");
}

/* ---- kill ---- */

static void await_empty(const struct members *members)
{
	const struct timespec pause = {.tv_nsec = KILL_PAUSE_MS * 1000000 / 10};

	if (members->controllers[0] != '\0')
		nanosleep(&pause, NULL);
	else
		control_await(members->fd, "populated", 0, KILL_PAUSE_MS);
}

/*
 * Frozen, nothing can fork away from the signals; thawed, it dies of them. Freezing may fail (a
 * process stuck in the kernel), so passes are repeated until one finds nothing.
 */
int members_kill(const struct members *members, struct err *e)
{
	uint64_t start_us = clock_us();

	for (;;) {
		int listed;

		members_freeze(members, true, KILL_FREEZE_TIMEOUT_MS);
		listed = members_signal(members, SIGKILL, 0);
		/* does not wait: what dies of it is looked at by the next pass */
		members_let_go(members);
		if (listed < 0) {
			errno = -listed;
			return err_sys(e, "cgroup %s: killing its processes", members->path);
		}
		if (listed == 0)
			return 0;
		if (clock_us() - start_us > KILL_TIMEOUT_US)
			return err_set(e, EBUSY,
			               "cgroup %s: %d processes are still there after SIGKILL; one "
			               "may be stuck in the kernel (see its cgroup.procs), or the "
			               "group above be frozen",
			               members->path, listed);
		await_empty(members);
	}
}
