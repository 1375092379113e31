/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of an image's user. The files that have them are the image's: they are found here,
 * opened without links and without blocking, and parsed by agentdock-archive.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/archiver.h"
#include "rootfs/image_store.h"

enum { IDS_SIZE = 32 };

/* A layer that has something else of that name hides those below it. */
static int look_in_layer(int rootfd, const char *path, struct err *e)
{
	return file_open2(
		rootfd, path, O_PATH | O_NOFOLLOW, 0,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV, e);
}

static bool etc_is_opaque(int rootfd)
{
	struct err ignored;
	scoped_fd fd = look_in_layer(rootfd, "etc", &ignored);

	return fd >= 0 && image_dir_is_opaque(fd);
}

/* The file PATH of the topmost layer that says something of it; -1 where it is no file, or in none
 * of them. Links are not followed, so that what it is does not depend on the order of layers. */
static int find_file(const struct image_layers *layers, int count, const char *path)
{
	struct err ignored;
	char self[32];
	struct stat st;

	for (int i = count - 1; i >= 0; i--) {
		scoped_fd fd = look_in_layer(layers->layers[i].rootfd, path, &ignored);

		if (fd == -ENOENT && !etc_is_opaque(layers->layers[i].rootfd))
			continue;
		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			return -1;
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		return file_open(AT_FDCWD, self, O_RDONLY, 0, &ignored);
	}
	return -1;
}

/* "UID:GID", as the child has left it in OUTFD; not for certain. */
static bool read_ids(int outfd, struct image *image)
{
	char line[IDS_SIZE + 1] = {0}, *colon;
	uint64_t uid, gid;
	struct err ignored;

	if (pread(outfd, line, IDS_SIZE, 0) < 0 || !(colon = strchr(line, ':')))
		return false;
	*colon = '\0';
	if (parse_u64(line, UINT32_MAX - 1, &uid, &ignored) < 0 ||
	    parse_u64(colon + 1, UINT32_MAX - 1, &gid, &ignored) < 0)
		return false;
	image->uid = (uint32_t)uid;
	image->gid = (uint32_t)gid;
	return true;
}

int image_user_resolve(const struct image_store *store, const struct image_layers *layers,
                       struct image *image, struct err *e)
{
	__attribute__((cleanup(archiver_release))) struct archiver child = ARCHIVER_NONE;
	const char *argv[] = {"agentdock-archive", "ids", "--user", image->user, NULL, NULL, NULL};
	int fds[ARCHIVER_FDS] = {-1, -1, -1, -1, -1, -1, -1, -1};
	scoped_fd passwdfd = -1, groupfd = -1, outfd = -1;

	if (!*image->user)
		return 0;
	passwdfd = find_file(layers, image->layers_count, "etc/passwd");
	groupfd = find_file(layers, image->layers_count, "etc/group");
	outfd = archiver_memory("ids", IDS_SIZE, e);
	TRY(outfd);
	TRY(archiver_complaint(&child, e));
	if (groupfd >= 0) {
		argv[4] = "--group-fd";
		argv[5] = "6";
	}
	if (passwdfd < 0)
		TRY(passwdfd = file_open(AT_FDCWD, "/dev/null", O_RDONLY, 0, e));
	fds[ARCHIVER_STDIN] = passwdfd;
	fds[ARCHIVER_STDOUT] = outfd;
	fds[ARCHIVER_STDERR] = child.complaintfd;
	fds[ARCHIVER_EXTRA] = groupfd;
	TRY(archiver_start(&child, store->archiver, argv, -1, fds, e));
	TRY(archiver_wait(&child, e));
	image->has_ids = archiver_ok(&child) && read_ids(outfd, image);
	return 0;
}
