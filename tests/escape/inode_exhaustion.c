/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's inodes: empty files, directories, links, FIFOs, sockets, of which millions take next to
 * no bytes. A file system whose inodes are used up takes no new file, however empty it is. The
 * sandbox's own has 500 here; each attempt wants 2000 at once, and has to get some before it is told
 * that there are no more (ENOSPC, or EDQUOT where somebody limits them by a quota).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

enum { WANTED = 2000, LEAST = 100 };

static const int walls[] = {ENOSPC, EDQUOT, 0};

static int make_file(const char *name)
{
	scoped_fd fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -1 : 0;
}

static int make_directory(const char *name)
{
	return mkdir(name, 0700);
}

static int make_link(const char *name)
{
	return symlink("nowhere", name);
}

static int make_fifo(const char *name)
{
	return mkfifo(name, 0600);
}

static int make_socket(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
}

/* Whose file system was full at once did not come near the limit. */
static int told_after(int count, int code)
{
	return (code == ENOSPC || code == EDQUOT) && count < LEAST ? TOO_SOON : code;
}

static int make_many(int (*make)(const char *name))
{
	int count = 0, code = 0;
	char name[16];

	while (count < WANTED && code == 0) {
		snprintf(name, sizeof(name), "many-%d", count);
		code = code_of(make(name));
		count += code == 0;
	}
	code = told_after(count, code);
	while (count-- > 0) {
		snprintf(name, sizeof(name), "many-%d", count);
		if (unlink(name) < 0)
			rmdir(name);
	}
	return code;
}

/* Without a name each, held open. */
static int make_nameless(void)
{
	int fds[WANTED], count = 0, code = 0;

	while (count < WANTED && code == 0) {
		fds[count] = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
		code = code_of(fds[count]);
		count += code == 0;
	}
	code = told_after(count, code);
	while (count > 0)
		close(fds[--count]);
	return code;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};
	int nameless;

	(void)argv;
	tally_add_limit(&tally, "files", make_many(make_file), walls);
	tally_add_limit(&tally, "directories", make_many(make_directory), walls);
	tally_add_limit(&tally, "symbolic links", make_many(make_link), walls);
	tally_add_limit(&tally, "FIFOs", make_many(make_fifo), walls);
	tally_add_limit(&tally, "sockets", make_many(make_socket), walls);
	nameless = make_nameless();
	if (nameless != EOPNOTSUPP) /* of overlayfs before Linux 6.1 */
		tally_add_limit(&tally, "nameless files", nameless, walls);
	return tally_verdict(&tally, evidence);
}

ATTACK(inode_exhaustion) = {
	.name = "inode_exhaustion",
	.what = "use up the inodes of the host's file system",
	.seen = "Kubernetes, which evicts for it: nodefs.inodesFree",
	.wall = "a file system of its own, limited in inodes",
	.options = WORDS("--inodes", "500"),
	.control = WORDS("--inodes", "200000"),
	.inside = inside,
};
