/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may change a container: the lock of its directory, and who it is that holds it. Owns nothing.
 *
 * The lock itself is flock(2)'s: it ends with its last descriptor, and a record lock with any. But that
 * one knows whose it is, so the holder takes it besides, of the byte that says what it does.
 */
#include "container/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/scoped.h"

enum { STEP_MS = 5 }; /* between two tries */

static void tell_holder(int fd, enum store_holder who)
{
	struct flock own = {.l_type = F_RDLCK, .l_start = who, .l_len = 1};

	fcntl(fd, F_SETLK, &own); /* without it nobody knows whom to end */
}

/* 0: nobody, or nobody whom we see. */
static pid_t holder(int fd, enum store_holder who)
{
	struct flock asked = {.l_type = F_WRLCK, .l_start = who, .l_len = 1};

	if (fcntl(fd, F_GETLK, &asked) < 0 || asked.l_type == F_UNLCK || asked.l_pid < 0)
		return 0;
	return asked.l_pid;
}

void store_end_creator(const struct store_entry *entry)
{
	pid_t pid = holder(entry->fd, HOLDER_CREATOR);
	scoped_fd fd = pid > 0 ? pidfd_open(pid, 0) : -1;

	/* asked again: then it is who the descriptor is of */
	if (fd >= 0 && holder(entry->fd, HOLDER_CREATOR) == pid)
		pidfd_send_signal(fd, SIGKILL, NULL, 0);
}

static int is_held(const struct store_entry *entry, struct err *e)
{
	pid_t creator = holder(entry->fd, HOLDER_CREATOR), other = holder(entry->fd, HOLDER_OTHER);

	return err_set(e, ETIMEDOUT,
	               "container %s is in the hands of another command (process %d), which does "
	               "not end; wait for it or end it, and give a hook that hangs a timeout",
	               entry->id, creator ? creator : other);
}

static int wait_for_lock(const struct store_entry *entry, int patience_ms, struct err *e)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
	int operation = patience_ms == STORE_PATIENT ? LOCK_EX : LOCK_EX | LOCK_NB;

	for (int waited_ms = 0; flock(entry->fd, operation) < 0; waited_ms += STEP_MS) {
		if (errno != EINTR && errno != EWOULDBLOCK)
			return err_sys(e, "locking container %s", entry->id);
		if (errno == EINTR)
			continue;
		if (waited_ms >= patience_ms)
			return is_held(entry, e);
		nanosleep(&step, NULL);
	}
	return 0;
}

int store_lock_as(struct store_entry *entry, enum store_holder who, int patience_ms, struct err *e)
{
	struct stat st;

	TRY(wait_for_lock(entry, patience_ms, e));
	tell_holder(entry->fd, who);
	if (fstat(entry->fd, &st) < 0)
		return err_sys(e, "looking at the directory of container %s", entry->id);
	entry->locked = st.st_nlink > 0;
	return entry->locked;
}
