/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace whose links lead out: the program that copies it is root on the host and must not read
 * what they lead to, or a pull request reads /etc/shadow. Links are absolute, relative, to the
 * directory above, through /proc/self; there is a FIFO, which must not be waited for; and while it is
 * copied, directories and links to the directory outside change places without end. All is opened
 * beneath the workspace without links, and described by what was opened.
 * Each file of the workspace has the same text and can be read by all. What came in and is none of
 * them is from outside, be it what was planted there, /etc/shadow, or any other file of the host that
 * a link leads to. The packer has no options to leave its wall out, so the control shows the other
 * half: that what lies outside would be noticed, were it copied.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define SECRET "what lies outside of the workspace\n"
#define DECOY  "what lies inside of the workspace\n"
#define PLACE  "/proc/self/fd/46"
enum { LEAKED = 46, RACES = 16 };

static const struct {
	const char *name, *target;
} links[] = {
	{"relative", "../outside/secret"},
	{"unreadable", "../outside/shadow"},
	{"directory", "../outside"},
	{"up", ".."},
	{"far-up", "../../../../../../../.."},
	{"loop", "loop"},
	{"absolute", "/etc/shadow"},
	{"by-descriptor", PLACE "/outside/secret"},
	{"by-cwd", "/proc/self/cwd/../outside/secret"},
	{"by-root", "/proc/self/root/etc/shadow"},
};

static int workspace_fd = -1;

static int fill_workspace(int fd)
{
	char name[32];

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (symlinkat(links[i].target, fd, links[i].name) < 0)
			return -1;
	}
	for (int i = 0; i < RACES; i++) {
		snprintf(name, sizeof(name), "race%d", i);
		if (mkdirat(fd, name, 0755) < 0)
			return -1;
		scoped_fd dirfd = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dirfd < 0 || try_write_file(dirfd, "secret", DECOY, 0644) < 0)
			return -1;
		snprintf(name, sizeof(name), "link%d", i);
		if (symlinkat("../outside", fd, name) < 0)
			return -1;
	}
	if (mkfifoat(fd, "fifo", 0666) < 0)
		return -1;
	return try_write_file(fd, "decoy", DECOY, 0644);
}

static int make_place(void)
{
	const char *directory;
	scoped_fd placefd = try_host_directory(&directory);
	scoped_fd outsidefd = -1;

	if (placefd < 0 || dup2(placefd, LEAKED) < 0 || mkdirat(placefd, "outside", 0755) < 0 ||
	    mkdirat(placefd, "inside", 0755) < 0)
		return -1;
	outsidefd = openat(placefd, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	workspace_fd = openat(placefd, "inside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (outsidefd < 0 || workspace_fd < 0)
		return -1;
	if (try_write_file(outsidefd, "shadow", SECRET, 0600) < 0)
		return -1;
	return try_write_file(outsidefd, "secret", SECRET, 0644);
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (make_place() == 0 && fill_workspace(workspace_fd) == 0)
		return 0;
	verdict(evidence, UNTRIED, "a workspace on the host: %s", strerror(errno));
	return -1;
}

/* Until it is killed. */
static void during(void)
{
	char directory[32], link[32];

	for (unsigned i = 0;; i = (i + 1) % RACES) {
		snprintf(directory, sizeof(directory), "race%u", i);
		snprintf(link, sizeof(link), "link%u", i);
		renameat2(workspace_fd, directory, workspace_fd, link, RENAME_EXCHANGE);
	}
}

static struct {
	unsigned files, links, strangers;
	char stranger[128]; /* the path of one, or "" */
} found;

/* Is it the one file that the workspace has? The FIFO is not taken along. */
static bool is_ours(const char *path, const struct stat *st)
{
	scoped_fd fd = -1;

	if (!S_ISREG(st->st_mode) || st->st_size != (off_t)strlen(DECOY))
		return false;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && try_reads(fd, DECOY);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)walk;
	found.links += type == FTW_SL;
	found.files += type == FTW_F;
	if (type == FTW_D || type == FTW_SL || (type == FTW_F && is_ours(path, st)))
		return 0;
	/* a directory that cannot be read as well */
	found.strangers++;
	snprintf(found.stranger, sizeof(found.stranger), "%s", path);
	return 0;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	(void)argv;
	nftw("/workspace", visit, 16, FTW_PHYS);
	if (found.strangers)
		return verdict(evidence, BROKEN, "%u of what came in lay outside: %s",
		               found.strangers, found.stranger);
	if (!found.files)
		return verdict(evidence, ABSENT, "no workspace was copied");
	return verdict(evidence, HELD, "%u files and %u links came in, nothing from outside",
	               found.files, found.links);
}

ATTACK(workspace_links) = {
	.name = "workspace_links",
	.what = "have files of the host copied in, by links in the workspace",
	.seen = "CVE-2018-15664 (docker cp), CVE-2024-23651 (BuildKit)",
	.wall = "objects are described by what was opened, beneath the workspace without links",
	.control = WORDS("--workspace", PLACE "/outside"),
	.options = WORDS("--workspace", PLACE "/inside"),
	.before = before,
	.during = during,
	.inside = inside,
};
