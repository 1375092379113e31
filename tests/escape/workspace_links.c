/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace whose links lead out: the program that copies it is root on the host and must not read
 * what they lead to, or a pull request reads /etc/shadow. Links are absolute, relative, to the
 * directory above, through /proc/self; there is a FIFO, which must not be waited for; and while it is
 * copied, directories and links to the directory outside change places without end. All is opened
 * beneath the workspace without links, and described by what was opened. The packer has no options
 * to leave that out, so the control shows the other half: that what lies outside would be noticed,
 * were it copied.
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
	return try_write_file(outsidefd, "secret", SECRET, 0644);
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (make_place() == 0 && fill_workspace(workspace_fd) == 0)
		return 0;
	verdict(evidence, ABSENT, "a workspace on the host: %s", strerror(errno));
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
	unsigned files, links;
	char secret[128]; /* the path of a copy, or "" */
} found;

static int visit(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	scoped_fd fd = -1;

	(void)st;
	(void)walk;
	found.links += type == FTW_SL;
	if (type != FTW_F)
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	found.files++;
	if (try_reads(fd, SECRET))
		snprintf(found.secret, sizeof(found.secret), "%s", path);
	return 0;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	(void)argv;
	nftw("/workspace", visit, 16, FTW_PHYS);
	if (found.secret[0])
		return verdict(evidence, BROKEN, "%s is what lay outside", found.secret);
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
