/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image store's directories, its lock, and slots: places for what is not whole yet. A slot
 * outlives its process only with its lock file unlocked, and then image_slots_clean removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

#define LOCK_SUFFIX ".lock"
enum { IMAGE_SLOT_LOCK_SIZE = 16 + sizeof(LOCK_SUFFIX) };

static const char *const directories[] = {
	"images/names",
	"images/sha256",
	"layers/sha256",
	"tmp",
};

/* Whoever can rename in STATE can give us another store. */
static int check_owner(const struct image_store *store, struct err *e)
{
	struct stat st;

	if (fstat(store->statefd, &st) < 0)
		return err_sys(e, "%s", store->path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, EPERM,
		               "%s belongs to user %u, who could change the images in it; "
		               "chown it or choose another state directory",
		               store->path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, EPERM,
		               "%s can be written by others; chmod go-w it or choose "
		               "another state directory",
		               store->path);
	return 0;
}

int image_store_open(struct image_store *store, const char *state, const char *archiver,
                     struct err *e)
{
	struct image_store opened = {.statefd = -1};
	scoped_fd statefd = -1;
	scoped_fd lockfd = -1;

	TRY(text_format(opened.path, sizeof(opened.path), e, "%s", state));
	TRY(text_format(opened.archiver, sizeof(opened.archiver), e, "%s", archiver));
	if (dir_make_all(AT_FDCWD, state, 0711, e) < 0)
		return err_in(e, "state directory %s (AGENTDOCK_STATE_DIR)", state);
	statefd = file_open(AT_FDCWD, state, O_RDONLY | O_DIRECTORY, 0, e);
	TRY(statefd);
	opened.statefd = statefd;
	TRY(check_owner(&opened, e));
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (dir_make_all(statefd, directories[i], 0700, e) < 0)
			return err_in(e, "image store %s", state);
	lockfd = file_open(statefd, "images/lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600, e);
	if (lockfd < 0)
		return err_in(e, "image store %s", state);
	opened.statefd = take_fd(&statefd);
	*store = opened;
	return 0;
}

void image_store_release(struct image_store *store)
{
	close_fd(&store->statefd);
}

static int lock_fd(int fd, int operation)
{
	int result;

	do
		result = flock(fd, operation);
	while (result < 0 && errno == EINTR);
	return result;
}

int image_store_lock(const struct image_store *store, int operation, struct err *e)
{
	scoped_fd fd = file_open(store->statefd, "images/lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
	                         0, e);

	TRY(fd);
	if (lock_fd(fd, operation) < 0)
		return err_sys(e, "locking %s/images/lock", store->path);
	return take_fd(&fd);
}

int image_dir_sync(int dirfd, const char *path, struct err *e)
{
	scoped_fd fd = file_open(dirfd, path, O_RDONLY | O_DIRECTORY, 0, e);

	TRY(fd);
	if (fsync(fd) < 0)
		return err_sys(e, "writing %s to the disk", path);
	return 0;
}

int image_dir_visit(int dirfd, const char *path,
                    int (*visit)(void *data, const char *name, struct err *e), void *data,
                    struct err *e)
{
	scoped_fd fd = file_open(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	scoped_dir dir = NULL;
	struct dirent *entry;

	TRY(fd);
	dir = fdopendir(fd);
	if (!dir)
		return err_sys(e, "listing %s", path);
	(void)take_fd(&fd);
	while (errno = 0, (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			TRY(visit(data, entry->d_name, e));
	if (errno)
		return err_sys(e, "listing %s", path);
	return 0;
}

static int slot_name(char name[17], struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[8];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(e, "random bytes");
	for (size_t i = 0; i < sizeof(bytes); i++) {
		name[2 * i] = digits[bytes[i] >> 4];
		name[2 * i + 1] = digits[bytes[i] & 15];
	}
	name[16] = '\0';
	return 0;
}

/* The lock file comes first and goes last, so that no slot is ever without one. */
static int make_locked(int tmpfd, const char *lock_name, struct err *e)
{
	scoped_fd lockfd = -1;

	/* Keeps image_slots_clean out between the file's making and its lock. */
	if (lock_fd(tmpfd, LOCK_SH) < 0)
		return err_sys(e, "locking tmp");
	lockfd = file_open(tmpfd, lock_name, O_RDONLY | O_CREAT | O_EXCL, 0600, e);
	if (lockfd >= 0 && lock_fd(lockfd, LOCK_EX | LOCK_NB) < 0) {
		err_sys(e, "locking tmp/%s", lock_name);
		unlinkat(tmpfd, lock_name, 0);
		close_fd(&lockfd);
	}
	lock_fd(tmpfd, LOCK_UN);
	return lockfd < 0 ? -e->code : take_fd(&lockfd);
}

int image_slot_make(const struct image_store *store, struct image_slot *slot, struct err *e)
{
	struct image_slot made = IMAGE_SLOT_NONE;
	char lock_name[IMAGE_SLOT_LOCK_SIZE];

	TRY(slot_name(made.name, e));
	snprintf(lock_name, sizeof(lock_name), "%s" LOCK_SUFFIX, made.name);
	made.tmpfd = file_open(store->statefd, "tmp", O_RDONLY | O_DIRECTORY, 0, e);
	TRY(made.tmpfd);
	made.lockfd = make_locked(made.tmpfd, lock_name, e);
	if (made.lockfd >= 0 && mkdirat(made.tmpfd, made.name, 0700) < 0)
		err_sys(e, "making %s/tmp/%s", store->path, made.name);
	else if (made.lockfd >= 0)
		made.fd = file_open(made.tmpfd, made.name, O_RDONLY | O_DIRECTORY, 0, e);
	if (made.fd < 0) {
		image_slot_release(&made);
		return -e->code;
	}
	*slot = made;
	return 0;
}

void image_slot_release(struct image_slot *slot)
{
	char lock_name[IMAGE_SLOT_LOCK_SIZE];
	struct err ignored; /* what stays is found unlocked by the next image_slots_clean */

	if (slot->lockfd >= 0 && tree_remove(slot->tmpfd, slot->name, &ignored) == 0) {
		snprintf(lock_name, sizeof(lock_name), "%s" LOCK_SUFFIX, slot->name);
		unlinkat(slot->tmpfd, lock_name, 0);
	}
	close_fd(&slot->fd);
	close_fd(&slot->lockfd);
	close_fd(&slot->tmpfd);
}

struct cleaning {
	int tmpfd;
	uint64_t *freed_bytes;
};

/* LOCKFD is the slot's lock, now ours; -1 where its process is alive or it has gone. */
static int claim_dead(int tmpfd, const char *lock_name, int *lockfd, struct err *e)
{
	scoped_fd fd = -1;
	bool dead;

	*lockfd = -1;
	if (lock_fd(tmpfd, LOCK_EX) < 0)
		return err_sys(e, "locking tmp");
	fd = openat(tmpfd, lock_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	dead = fd >= 0 && lock_fd(fd, LOCK_EX | LOCK_NB) == 0;
	lock_fd(tmpfd, LOCK_UN);
	if (dead)
		*lockfd = take_fd(&fd);
	return 0;
}

static int clean_slot(void *data, const char *lock_name, struct err *e)
{
	struct cleaning *cleaning = data;
	char name[sizeof(((struct image_slot *)0)->name)];
	scoped_fd lockfd = -1;
	uint64_t bytes = 0;

	if (strlen(lock_name) != IMAGE_SLOT_LOCK_SIZE - 1 ||
	    strcmp(lock_name + sizeof(name) - 1, LOCK_SUFFIX) != 0)
		return 0;
	TRY(claim_dead(cleaning->tmpfd, lock_name, &lockfd, e));
	if (lockfd < 0)
		return 0;
	snprintf(name, sizeof(name), "%s", lock_name);
	if (faccessat(cleaning->tmpfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		TRY(tree_measure(cleaning->tmpfd, name, &bytes, NULL, e));
	TRY(tree_remove(cleaning->tmpfd, name, e));
	unlinkat(cleaning->tmpfd, lock_name, 0);
	*cleaning->freed_bytes += bytes;
	return 0;
}

int image_slots_clean(const struct image_store *store, uint64_t *freed_bytes, struct err *e)
{
	scoped_fd tmpfd = file_open(store->statefd, "tmp", O_RDONLY | O_DIRECTORY, 0, e);
	struct cleaning cleaning = {.freed_bytes = freed_bytes};

	TRY(tmpfd);
	cleaning.tmpfd = tmpfd;
	if (image_dir_visit(store->statefd, "tmp", clean_slot, &cleaning, e) < 0)
		return err_in(e, "clearing %s/tmp", store->path);
	return 0;
}
