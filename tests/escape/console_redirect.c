/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in /dev that the runtime itself opens or mounts on, as links of the image: in CVE-2025-52565
 * the target of the /dev/console mount was one, and led into procfs; in CVE-2025-31133 it was
 * /dev/null, which the runtime lays over what it hides and hands out as standard input. Each name in
 * this image's /dev is a link to a file or directory of the image. Ours lies over the image's /dev,
 * made on the host, so that no name of the image's is ever looked at. To see that a link is followed
 * where the image's /dev is left in place is the control.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

static const char untouched[] = "as the image has it\n";

static const char *const files[] = {"console", "null", "zero", "full", "random", "tty", "ptmx"};
static const char *const directories[] = {"pts", "shm", "mqueue", "fd"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int link_to(int rootfd, const char *target, const char *name)
{
	char text[80], path[64];

	snprintf(text, sizeof(text), "/%s", target);
	snprintf(path, sizeof(path), "dev/%s", name);
	return symlinkat(text, rootfd, path);
}

static int root(int rootfd)
{
	char target[64];

	for (size_t i = 0; i < COUNT(files); i++) {
		snprintf(target, sizeof(target), "links/dev-%s", files[i]);
		if (try_write_file(rootfd, target, untouched, 0666) < 0 ||
		    link_to(rootfd, target, files[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < COUNT(directories); i++) {
		snprintf(target, sizeof(target), "links/dev-%s", directories[i]);
		if (mkdirat(rootfd, target, 0755) < 0 ||
		    link_to(rootfd, target, directories[i]) < 0)
			return -1;
	}
	return 0;
}

/* Another device or another file than the directory around it: something was mounted there. */
static bool is_mounted_over(const char *path, dev_t around)
{
	struct stat st;

	return stat(path, &st) < 0 || st.st_dev != around;
}

static bool is_untouched(const char *path)
{
	scoped_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)strlen(untouched) &&
	       try_reads(fd, untouched);
}

/* A descriptor that the command was given is a file of the image. */
static bool is_given(const char *path, int *descriptor)
{
	struct stat st, given;

	for (int fd = 0; fd < 3; fd++) {
		*descriptor = fd;
		if (fstat(fd, &given) == 0 && stat(path, &st) == 0 && st.st_dev == given.st_dev &&
		    st.st_ino == given.st_ino)
			return true;
	}
	return false;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct stat links;
	char path[64];
	int fd;

	(void)argv;
	if (stat("/links", &links) < 0)
		return verdict(evidence, UNTRIED, "the image has lost /links");
	for (size_t i = 0; i < COUNT(files); i++) {
		snprintf(path, sizeof(path), "/links/dev-%s", files[i]);
		if (is_given(path, &fd))
			return verdict(evidence, BROKEN, "descriptor %d is %s of the image", fd,
			               path);
		if (!is_untouched(path))
			return verdict(evidence, BROKEN, "%s was written or mounted over", path);
	}
	for (size_t i = 0; i < COUNT(directories); i++) {
		snprintf(path, sizeof(path), "/links/dev-%s", directories[i]);
		if (is_mounted_over(path, links.st_dev))
			return verdict(evidence, BROKEN, "something is mounted on %s", path);
	}
	return verdict(evidence, HELD, "%zu links in the image's /dev, none was followed",
	               COUNT(files) + COUNT(directories));
}

ATTACK(console_redirect) = {
	.name = "console_redirect",
	.what = "lead what the runtime mounts on or opens in /dev elsewhere, by links in the image",
	.seen = "CVE-2025-52565, CVE-2025-31133",
	.wall = "/dev is made on the host and lies over the image's",
	.control = WORDS(WITHOUT("/dev")),
	.root = root,
	.inside = inside,
};
