/* SPDX-License-Identifier: Apache-2.0 */
/* The mount API of kernel 5.2 in one call each. No state; every mount is made detached. */
#include "rootfs/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/scoped.h"

/* The last line of the context's log, or "". The kernel prefixes each with its level, "e ". */
static const char *fs_log(int fsfd, char *buffer, size_t size)
{
	size_t used = 0;
	ssize_t length;

	while ((length = read(fsfd, buffer, size - 1)) > 0)
		used = (size_t)length;
	buffer[used] = '\0';
	buffer[strcspn(buffer, "\n")] = '\0';
	return used > 2 && buffer[1] == ' ' ? buffer + 2 : buffer;
}

static int fs_error(int fsfd, const char *type, const char *what, struct err *e)
{
	int code = errno;
	char line[200];
	const char *text = fs_log(fsfd, line, sizeof line);

	errno = code;
	err_sys(e, "%s: %s", type, what);
	return *text ? err_hint(e, "the kernel says: %s", text) : -code;
}

int fs_open(const char *type, struct err *e)
{
	int fd = fsopen(type, FSOPEN_CLOEXEC);

	if (fd >= 0)
		return fd;
	err_sys(e, "opening the file system type %s", type);
	if (e->code == ENODEV)
		return err_hint(e, "this kernel lacks it; load its module (modprobe %s)", type);
	return -e->code;
}

int fs_set(int fsfd, const char *type, const struct fs_option *option, struct err *e)
{
	int result;

	if (option->text)
		result = fsconfig(fsfd, FSCONFIG_SET_STRING, option->key, option->text, 0);
	else if (option->fd > 0)
		result = fsconfig(fsfd, FSCONFIG_SET_FD, option->key, NULL, option->fd);
	else
		result = fsconfig(fsfd, FSCONFIG_SET_FLAG, option->key, NULL, 0);
	if (result == 0)
		return 0;
	fs_error(fsfd, type, option->key, e);
	return -e->code;
}

int fs_create(int fsfd, const char *type, unsigned attributes, struct err *e)
{
	int fd;

	if (fsconfig(fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fs_error(fsfd, type, "creating the file system", e);
	fd = fsmount(fsfd, FSMOUNT_CLOEXEC, attributes);
	if (fd < 0)
		return fs_error(fsfd, type, "creating the mount", e);
	return fd;
}

int detached_mount(const char *type, const struct fs_option options[], size_t count,
                   unsigned attributes, struct err *e)
{
	scoped_fd fsfd = fs_open(type, e);

	TRY(fsfd);
	for (size_t i = 0; i < count; i++)
		TRY(fs_set(fsfd, type, &options[i], e));
	return fs_create(fsfd, type, attributes, e);
}

int detached_clone(int pathfd, const char *name, struct err *e)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
	int fd = open_tree(pathfd, name, flags | (*name ? 0 : AT_EMPTY_PATH));

	if (fd < 0)
		return err_sys(e, "copying the mount of %s", *name ? name : "a directory");
	return fd;
}

int detached_attach(int mountfd, int targetfd, const char *what, const char *where, struct err *e)
{
	if (move_mount(mountfd, "", targetfd, "",
	               MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "attaching %s on %s", what, where);
	return 0;
}
