/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classic ways out of a root: "..", chroot below a directory that was opened before and fchdir
 * to it, pivot_root, and what may lie under or over "/". A root that is only chroot(2), or whose old
 * root stayed mounted, is left by them. Ours is pivoted and the old one is detached, so that no
 * mount of the host is anywhere in the namespace; Landlock lets nothing else be opened, chroot and
 * pivot_root are forbidden. The host's half makes a file that is nowhere but on the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define MARK "this file is on the host\n"

static const char *host_path; /* inside: what the host's half made */

static int before(const char *words[8], struct evidence *evidence)
{
	static char marker[64];
	const char *directory;
	scoped_fd fd = try_host_directory(&directory);

	if (fd < 0 || try_write_file(fd, "marker", MARK, 0644) < 0) {
		verdict(evidence, UNTRIED, "a file on the host: %s", strerror(errno));
		return -1;
	}
	snprintf(marker, sizeof(marker), "%s/marker", directory);
	words[0] = marker;
	return 0;
}

/* From BASE, a path with a number of "..": does it lead to the file of the host? */
static long found_below(const char *base)
{
	char path[256];
	scoped_fd fd = -1;

	snprintf(path, sizeof(path), "%s%s", base, host_path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	errno = 0;
	return try_reads(fd, MARK) ? 0 : -1;
}

static void look(struct tries *tries, const char *how)
{
	static const char *const bases[] = {
		"",
		"/..",
		"/../../../../../../../..",
		".",
		"./../../../../../../../..",
		"/proc/self/root",
		"/proc/self/root/..",
		"/proc/self/cwd/../../../../../../../..",
		"/proc/1/root",
		"/proc/1/cwd",
		"/dev/..",
		"/proc/..",
		"/links/up",
	};

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		tried(tries, found_below(bases[i]), "%s: %s%s is the host's", how, bases[i],
		      host_path);
}

/* The directory that was opened before the chroot stays outside of it. */
static void by_chroot(struct tries *tries)
{
	const char *dir = try_directory();
	scoped_fd rootfd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!tried(tries, chroot(dir) < 0 ? -1 : rootfd, "chroot is allowed"))
		return;
	tries->worked = false; /* it is only a means; what counts is where it leads */
	if (fchdir(rootfd) < 0 || chdir("../../../../../../../..") < 0 || chroot(".") < 0)
		tried(tries, -1, "climbing");
	look(tries, "after chroot and fchdir");
}

static void by_pivot_root(struct tries *tries)
{
	const char *dir = try_directory();

	if (tried(tries, syscall(SYS_pivot_root, dir, dir), "pivot_root is allowed") ||
	    tried(tries, syscall(SYS_pivot_root, ".", "."), "pivot_root of . is allowed"))
		return;
	if (umount2("/", MNT_DETACH) == 0)
		look(tries, "with / taken off");
}

static void attempt(struct tries *tries)
{
	look(tries, "by a path");
	if (chdir("/..") == 0)
		look(tries, "after chdir to /..");
	by_pivot_root(tries);
	by_chroot(tries);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	if (!argv[0])
		return verdict(evidence, UNTRIED, "the host's half said no path");
	host_path = argv[0];
	try_everywhere(tries, CLONE_NEWNS, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(chroot_escape) = {
	.name = "chroot_escape",
	.what = "leave the root by .., chroot and fchdir, or pivot_root",
	.seen = "chroot(2) itself tells how; containers without pivot_root (--no-pivot)",
	.wall = "the root is pivoted and the old one detached; Landlock, filter",
	.control = WORDS(WITHOUT("detached root"), WITHOUT("landlock")),
	.before = before,
	.inside = inside,
};
