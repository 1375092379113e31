/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that an archive becomes; see target.h for what holds. */
#include "archive/target.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"

enum {
	BENEATH = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	/* memory for the names of directories until their end */
	NAMES_MAX = 64 << 20,
};

struct pending_directory {
	size_t name; /* offset in names: a pointer would not survive its growth */
	struct attributes attributes;
};

/* What an archive can provoke, as opposed to what a host can fail at. */
static const struct {
	int code;
	const char *why;
} provoked[] = {
	{ELOOP, "a symbolic link is in its way"},
	{ENOTDIR, "a file is in its way"},
	{ENAMETOOLONG, "a name is too long for the file system"},
	{ENOTEMPTY, "it would replace a directory that is not empty"},
	{EXDEV, "a mount point is in its way"},
	{EILSEQ, "the file system does not take its name"},
	{EINVAL, "the file system does not take its name or owner"},
	{EMLINK, "the file has too many links"},
};

static int entry_fault(int code, const char *path, struct err *e)
{
	char shown[SHOWN_SIZE];

	for (size_t i = 0; i < sizeof provoked / sizeof provoked[0]; i++)
		if (provoked[i].code == code)
			return err_set(e, EBADMSG, "%s: %s", path_shown(path, shown),
			               provoked[i].why);
	errno = code;
	return err_sys(e, "%s", path_shown(path, shown));
}

void target_init(struct target *target, int rootfd, uint64_t *entries, uint64_t limit_entries,
                 const struct attributes *implied)
{
	memset(target, 0, sizeof *target);
	target->rootfd = rootfd;
	target->parentfd = -1;
	target->entries = entries;
	target->limit_entries = limit_entries;
	target->implied = *implied;
}

void target_release(struct target *target)
{
	close_fd(&target->parentfd);
	free(target->pending);
	free(target->names);
	target->pending = NULL;
	target->names = NULL;
}

int path_clean(const char *path, char clean[ARCHIVE_PATH_MAX], struct err *e)
{
	size_t used = 0;
	char shown[SHOWN_SIZE];

	for (const char *at = path; *at;) {
		size_t length = strcspn(at, "/");

		if (length == 2 && at[0] == '.' && at[1] == '.')
			return err_set(e, EBADMSG, "%s: a name with \"..\" is refused",
			               path_shown(path, shown));
		if (length && !(length == 1 && at[0] == '.')) {
			if (used + length + 2 > ARCHIVE_PATH_MAX)
				return err_set(e, EBADMSG, "%s: a path of more than %d bytes",
				               path_shown(path, shown), ARCHIVE_PATH_MAX - 2);
			if (used)
				clean[used++] = '/';
			memcpy(clean + used, at, length);
			used += length;
		}
		at += length;
		at += *at == '/';
	}
	clean[used] = '\0';
	return 0;
}

static int open_beneath(int dirfd, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC, .resolve = BENEATH};
	long fd;

	/* EAGAIN: something was renamed elsewhere meanwhile */
	for (int tries = 0; tries < 32; tries++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* Opens the directory PATH (LENGTH bytes) beneath DIRFD, in pieces that a system call takes. */
static int descend(int dirfd, const char *path, size_t length, int flags)
{
	char piece[PATH_MAX];
	scoped_fd atfd = -1;
	int from = dirfd;

	if (!length)
		return open_beneath(dirfd, ".", flags | O_DIRECTORY);
	while (length) {
		size_t take = length;
		int fd;

		if (take >= sizeof piece) {
			take = sizeof piece - 1;
			while (take && path[take] != '/')
				take--;
			if (!take)
				return -ENAMETOOLONG;
		}
		memcpy(piece, path, take);
		piece[take] = '\0';
		fd = open_beneath(from, piece, (take == length ? flags : O_PATH) | O_DIRECTORY);
		if (fd < 0)
			return fd;
		close_fd(&atfd);
		from = atfd = fd;
		take += take < length; /* the slash */
		path += take;
		length -= take;
	}
	return take_fd(&atfd);
}

/* Makes what is missing of the LENGTH bytes of PATH; returns the last directory. */
static int make_parents(struct target *target, const char *path, size_t length, struct err *e)
{
	char name[NAME_MAX + 1];
	scoped_fd atfd = -1;

	for (size_t at = 0; at < length;) {
		size_t take = strcspn(path + at, "/");
		int dirfd = atfd >= 0 ? atfd : target->rootfd, fd;

		if (take > NAME_MAX)
			return entry_fault(ENAMETOOLONG, path, e);
		memcpy(name, path + at, take);
		name[take] = '\0';
		if (mkdirat(dirfd, name, 0755) == 0) {
			if (++*target->entries > target->limit_entries)
				return err_set(e, EFBIG, "more than %llu entries",
				               (unsigned long long)target->limit_entries);
			if (target->implied.change_owner &&
			    fchownat(dirfd, name, target->implied.uid, target->implied.gid,
			             AT_SYMLINK_NOFOLLOW) < 0)
				return entry_fault(errno, path, e);
		} else if (errno != EEXIST) {
			return entry_fault(errno, path, e);
		}
		fd = open_beneath(dirfd, name, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return entry_fault(-fd, path, e);
		close_fd(&atfd);
		atfd = fd;
		at += take + 1;
	}
	return take_fd(&atfd);
}

/* The directory of PATH's last component, which *NAME becomes. The descriptor is the target's. */
static int open_parent(struct target *target, const char *path, const char **name, struct err *e)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0, known = target->parent_length;
	int fd;

	*name = slash ? slash + 1 : path;
	if (!length)
		return target->rootfd;
	if (target->parentfd >= 0 && known <= length && memcmp(path, target->parent, known) == 0) {
		if (known == length)
			return target->parentfd;
		if (path[known] == '/') {
			fd = descend(target->parentfd, path + known + 1, length - known - 1,
			             O_PATH);
			if (fd >= 0)
				goto found;
		}
	}
	fd = descend(target->rootfd, path, length, O_PATH);
	if (fd == -ENOENT)
		TRY(fd = make_parents(target, path, length, e));
	else if (fd < 0)
		return entry_fault(-fd, path, e);
found:
	close_fd(&target->parentfd);
	target->parentfd = fd;
	target->parent_length = length;
	memcpy(target->parent, path, length);
	return fd;
}

/* Removes what has the name that an entry wants. */
static int clear_way(struct target *target, int dirfd, const char *name, const char *path,
                     struct err *e)
{
	if (unlinkat(dirfd, name, 0) == 0)
		return 0;
	if (errno == EISDIR && unlinkat(dirfd, name, AT_REMOVEDIR) == 0) {
		/* it may be what parentfd stands for; otherwise that is dirfd itself */
		if (dirfd == target->rootfd)
			close_fd(&target->parentfd);
		return 0;
	}
	return entry_fault(errno, path, e);
}

int target_file(struct target *target, const char *path, struct err *e)
{
	const char *name;
	int dirfd = open_parent(target, path, &name, e), fd;

	TRY(dirfd);
	for (int tries = 0; tries < 2; tries++) {
		fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		            0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
		TRY(clear_way(target, dirfd, name, path, e));
	}
	return entry_fault(errno, path, e);
}

int target_finish_file(int fd, const char *path, const struct attributes *attributes, struct err *e)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, attributes->mtime};

	/* the owner first: a change of it takes the setuid bit and the capabilities away */
	if (attributes->change_owner && fchown(fd, attributes->uid, attributes->gid) < 0)
		return entry_fault(errno, path, e);
	if (fchmod(fd, attributes->mode) < 0)
		return entry_fault(errno, path, e);
	if (futimens(fd, times) < 0)
		return entry_fault(errno, path, e);
	return 0;
}

static int finish_node(int dirfd, const char *name, const char *path,
                       const struct attributes *attributes, struct err *e)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, attributes->mtime};

	if (attributes->change_owner &&
	    fchownat(dirfd, name, attributes->uid, attributes->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return entry_fault(errno, path, e);
	if (utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return entry_fault(errno, path, e);
	return 0;
}

int target_symlink(struct target *target, const char *path, const char *text,
                   const struct attributes *attributes, struct err *e)
{
	char shown[SHOWN_SIZE];
	const char *name;
	int dirfd = open_parent(target, path, &name, e);

	TRY(dirfd);
	if (!*text)
		return err_set(e, EBADMSG, "%s: a symbolic link to nothing",
		               path_shown(path, shown));
	if (symlinkat(text, dirfd, name) < 0) {
		if (errno != EEXIST)
			return entry_fault(errno, path, e);
		TRY(clear_way(target, dirfd, name, path, e));
		if (symlinkat(text, dirfd, name) < 0)
			return entry_fault(errno, path, e);
	}
	return finish_node(dirfd, name, path, attributes, e);
}

int target_fifo(struct target *target, const char *path, const struct attributes *attributes,
                struct err *e)
{
	const char *name;
	int dirfd = open_parent(target, path, &name, e);
	mode_t mode = S_IFIFO | (attributes->mode & 0777);

	TRY(dirfd);
	if (mknodat(dirfd, name, mode, 0) < 0) {
		if (errno != EEXIST)
			return entry_fault(errno, path, e);
		TRY(clear_way(target, dirfd, name, path, e));
		if (mknodat(dirfd, name, mode, 0) < 0)
			return entry_fault(errno, path, e);
	}
	return finish_node(dirfd, name, path, attributes, e);
}

int target_whiteout(struct target *target, const char *path, struct err *e)
{
	const char *name;
	int dirfd = open_parent(target, path, &name, e);
	struct stat st;

	TRY(dirfd);
	if (mknodat(dirfd, name, S_IFCHR, 0) == 0)
		return 0;
	if (errno != EEXIST || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return entry_fault(errno, path, e);
	return S_ISDIR(st.st_mode);
}

int target_make_directory(struct target *target, const char *path, struct err *e)
{
	int result = strcmp(path, ".") == 0 ? 0
	                                    : descend(target->rootfd, path, strlen(path), O_PATH);
	scoped_fd fd = result > 0 ? result : -1;

	if (result != -ENOENT)
		return result < 0 ? entry_fault(-result, path, e) : 0;
	TRY(fd = make_parents(target, path, strlen(path), e));
	return 0;
}

/* Do the two names stand for one file? Then a link is made already. */
static bool same_file(int dirfd1, const char *name1, int dirfd2, const char *name2)
{
	struct stat st1, st2;

	return fstatat(dirfd1, name1, &st1, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dirfd2, name2, &st2, AT_SYMLINK_NOFOLLOW) == 0 && st1.st_dev == st2.st_dev &&
	       st1.st_ino == st2.st_ino;
}

int target_hardlink(struct target *target, const char *path, const char *existing, struct err *e)
{
	const char *slash = strrchr(existing, '/'), *old = slash ? slash + 1 : existing, *name;
	int result = descend(target->rootfd, existing, slash ? (size_t)(slash - existing) : 0,
	                     O_PATH);
	scoped_fd olddirfd = result;
	char shown[SHOWN_SIZE], shown_old[SHOWN_SIZE];
	int dirfd;

	if (olddirfd >= 0) {
		TRY(dirfd = open_parent(target, path, &name, e));
		result = linkat(olddirfd, old, dirfd, name, 0) < 0 ? -errno : 0;
		if (result == -EEXIST && !same_file(olddirfd, old, dirfd, name)) {
			TRY(clear_way(target, dirfd, name, path, e));
			result = linkat(olddirfd, old, dirfd, name, 0) < 0 ? -errno : 0;
		}
	}
	if (result >= 0 || result == -EEXIST)
		return 0;
	/* EPERM: a directory */
	if (result == -ENOENT || result == -EPERM || result == -ELOOP || result == -ENOTDIR)
		return err_set(
			e, EBADMSG, "%s: a hard link to %s, which is no file in this archive",
			path_shown(path, shown), path_shown(*existing ? existing : ".", shown_old));
	return entry_fault(-result, path, e);
}

static int remember(struct target *target, const char *path, const struct attributes *attributes,
                    struct err *e)
{
	size_t length = strlen(path) + 1;

	if (target->names_used + length > NAMES_MAX)
		return err_set(e, EFBIG, "the names of the directories take more than %d MiB",
		               NAMES_MAX >> 20);
	if (!bytes_grow(&target->names, &target->names_room, target->names_used + length,
	                ARCHIVE_PATH_MAX))
		return err_set(e, EFBIG, "no memory for the names of the directories");
	if (target->pending_count == target->pending_room) {
		size_t room = target->pending_room * 2 + 256;
		struct pending_directory *pending = reallocarray(target->pending, room,
		                                                 sizeof *pending);

		if (!pending)
			return err_set(e, EFBIG, "no memory for so many directories");
		target->pending = pending;
		target->pending_room = room;
	}
	memcpy(target->names + target->names_used, path, length);
	target->pending[target->pending_count++] = (struct pending_directory){
		.name = target->names_used, .attributes = *attributes};
	target->names_used += length;
	return 0;
}

int target_directory(struct target *target, const char *path, const struct attributes *attributes,
                     struct err *e)
{
	const char *name;
	int dirfd;
	struct stat st;

	if (*path) {
		TRY(dirfd = open_parent(target, path, &name, e));
		if (mkdirat(dirfd, name, 0700) < 0) {
			if (errno != EEXIST)
				return entry_fault(errno, path, e);
			if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				return entry_fault(errno, path, e);
			if (!S_ISDIR(st.st_mode)) {
				TRY(clear_way(target, dirfd, name, path, e));
				if (mkdirat(dirfd, name, 0700) < 0)
					return entry_fault(errno, path, e);
			}
		}
	}
	return remember(target, path, attributes, e);
}

int target_open_directory(struct target *target, const char *path, struct err *e)
{
	int fd = descend(target->rootfd, path, strlen(path), O_RDONLY);

	return fd < 0 ? entry_fault(-fd, path, e) : fd;
}

/* By name, the later of two entries for one directory last. */
static int compare_pending(const void *p1, const void *p2, void *data)
{
	const struct pending_directory *d1 = p1, *d2 = p2;
	const char *names = data;
	int order = strcmp(names + d1->name, names + d2->name);

	return order ? order : (d1->name > d2->name) - (d1->name < d2->name);
}

static int finish_directory(struct target *target, const struct pending_directory *pending,
                            struct err *e)
{
	const char *path = target->names + pending->name;
	int result = descend(target->rootfd, path, strlen(path), O_RDONLY);
	scoped_fd fd = result;

	/* a later entry has replaced it */
	if (result == -ENOENT || result == -ENOTDIR || result == -ELOOP)
		return 0;
	if (result < 0)
		return entry_fault(-result, path, e);
	return target_finish_file(fd, path, &pending->attributes, e);
}

int target_finish(struct target *target, struct err *e)
{
	struct pending_directory *pending = target->pending;
	size_t count = target->pending_count;

	if (!count)
		return 0;
	qsort_r(pending, count, sizeof *pending, compare_pending, target->names);
	/* from the last name to the first: what is inside comes before what holds it */
	for (size_t i = count; i-- > 0;) {
		if (i + 1 < count && strcmp(target->names + pending[i].name,
		                            target->names + pending[i + 1].name) == 0)
			continue;
		TRY(finish_directory(target, &pending[i], e));
	}
	return 0;
}
