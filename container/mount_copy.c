/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "tmpcopyup": a tree of the image into an empty tmpfs, with owners, modes, times, and what extended
 * attributes a tmpfs takes. By descriptors, no link is followed. The image may be hostile: its depth
 * is bounded here, its size by the tmpfs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "container/mounts.h"

enum { DEPTH_MAX = 100, ATTRIBUTES_SIZE = 65536 };

static int copy_directory(int fromfd, int tofd, int depth, struct err *e);

static int copy_bytes(int fromfd, int tofd, const char *name, struct err *e)
{
	ssize_t moved;

	do
		moved = sendfile(tofd, fromfd, NULL, INT_MAX);
	while (moved > 0 || (moved < 0 && errno == EINTR));
	return moved < 0 ? err_sys(e, "copying %s", name) : 0;
}

/* Names that a tmpfs, or a user namespace, does not take are left behind. */
static int copy_attributes(int fromfd, int tofd, const char *name, struct err *e)
{
	static char value[ATTRIBUTES_SIZE], names[ATTRIBUTES_SIZE];
	ssize_t length = flistxattr(fromfd, names, sizeof names), size;

	if (length < 0)
		return errno == ENOTSUP ? 0 : err_sys(e, "attributes of %s", name);
	for (const char *key = names; key < names + length; key += strlen(key) + 1) {
		size = fgetxattr(fromfd, key, value, sizeof value);
		if (size < 0)
			continue;
		if (fsetxattr(tofd, key, value, (size_t)size, 0) < 0 && errno != ENOTSUP &&
		    errno != EPERM)
			return err_sys(e, "attribute %s of %s", key, name);
	}
	return 0;
}

/* Of what is open. The owner comes first: a change of it takes setuid and capabilities away. */
static int finish(int fromfd, int tofd, const struct stat *st, const char *name, struct err *e)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (fchown(tofd, st->st_uid, st->st_gid) < 0 || fchmod(tofd, st->st_mode & 07777) < 0)
		return err_sys(e, "setting the owner and mode of %s", name);
	TRY(copy_attributes(fromfd, tofd, name, e));
	return futimens(tofd, times) < 0 ? err_sys(e, "setting the times of %s", name) : 0;
}

static int copy_file(int fromdirfd, int todirfd, const char *name, struct err *e)
{
	scoped_fd fromfd = file_open(fromdirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, e);
	scoped_fd tofd = -1;
	struct stat st;

	TRY(fromfd);
	if (fstat(fromfd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, EAGAIN, "%s: somebody exchanges it while it is copied", name);
	tofd = file_open(todirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, e);
	TRY(tofd);
	TRY(copy_bytes(fromfd, tofd, name, e));
	return finish(fromfd, tofd, &st, name, e);
}

static int copy_below(int fromdirfd, int todirfd, const char *name, int depth, struct err *e)
{
	scoped_fd fromfd = file_open(fromdirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	scoped_fd tofd = -1;
	struct stat st;

	TRY(fromfd);
	if (fstat(fromfd, &st) < 0 || mkdirat(todirfd, name, 0700) < 0)
		return err_sys(e, "making the directory %s", name);
	tofd = file_open(todirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(tofd);
	if (copy_directory(fromfd, tofd, depth + 1, e) < 0)
		return err_in(e, "%s", name);
	return finish(fromfd, tofd, &st, name, e);
}

static int copy_link(int fromdirfd, int todirfd, const char *name, struct err *e)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(fromdirfd, name, text, sizeof text - 1);

	if (length < 0)
		return err_sys(e, "reading the link %s", name);
	text[length] = '\0';
	return symlinkat(text, todirfd, name) < 0 ? err_sys(e, "making the link %s", name) : 0;
}

static int copy_entry(int fromfd, int tofd, const char *name, int depth, struct err *e)
{
	struct stat st;

	if (fstatat(fromfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "asking what %s is", name);
	if (S_ISDIR(st.st_mode))
		return copy_below(fromfd, tofd, name, depth, e);
	if (S_ISREG(st.st_mode))
		return copy_file(fromfd, tofd, name, e);
	if (S_ISLNK(st.st_mode))
		TRY(copy_link(fromfd, tofd, name, e));
	else if (mknodat(tofd, name, st.st_mode, st.st_rdev) < 0)
		return err_sys(e, "making %s", name);
	if (fchownat(tofd, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "setting the owner of %s", name);
	return 0;
}

static int copy_directory(int fromfd, int tofd, int depth, struct err *e)
{
	int listfd = fcntl(fromfd, F_DUPFD_CLOEXEC, 0);
	scoped_dir list = listfd < 0 ? NULL : fdopendir(listfd);
	struct dirent *entry;

	if (!list)
		return err_sys(e, "listing a directory");
	if (depth > DEPTH_MAX)
		return err_set(e, ELOOP, "directories are nested more than %d deep", DEPTH_MAX);
	for (errno = 0; (entry = readdir(list)); errno = 0) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		TRY(copy_entry(fromfd, tofd, entry->d_name, depth, e));
	}
	return errno ? err_sys(e, "listing a directory") : 0;
}

int tree_copy(int fromfd, int tofd, struct err *e)
{
	return copy_directory(fromfd, tofd, 0, e);
}
