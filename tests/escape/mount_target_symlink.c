/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount whose target is a link of the image: the runtime, root on the host, follows it and mounts,
 * or first makes directories, outside of the root (CVE-2021-30465: the link was put there between the
 * check and the mount; nothing of the guest's runs yet when ours are made, so here it simply lies
 * there). The link leads to a directory of the host by a descriptor that the launcher inherits. A
 * target is opened beneath the root, one name after the other, without links; the mount is attached
 * by descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

enum { LEAKED = 47 };

static int host_fd = -1;

static int root(int rootfd)
{
	return symlinkat("/proc/self/fd/47", rootfd, "links/out");
}

static int before(const char *words[8], struct evidence *evidence)
{
	const char *directory;

	(void)words;
	host_fd = try_host_directory(&directory);
	/* whoever follows the link may write there, in whatever user namespace */
	if (host_fd >= 0 && fchmod(host_fd, 0777) == 0 && dup2(host_fd, LEAKED) >= 0)
		return 0;
	verdict(evidence, UNTRIED, "a directory on the host: %s", strerror(errno));
	return -1;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	(void)argv;
	return verdict(evidence, HELD, "the command runs, and the host's directory is empty");
}

static enum outcome after(enum outcome said, int status, struct evidence *evidence)
{
	struct stat st;

	(void)status;
	if (fstatat(host_fd, "made", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return verdict(evidence, BROKEN, "a directory was made on the host, by the link");
	return said;
}

ATTACK(mount_target_symlink) = {
	.name = "mount_target_symlink",
	.what = "have the runtime mount outside of the root, by a link at a mount's target",
	.seen = "CVE-2021-30465, CVE-2019-16884, CVE-2023-28642",
	.wall = "targets are opened beneath the root without links; attached by descriptor",
	.control = WORDS(WITHOUT("closed descriptors"), WITHOUT("mount targets")),
	.options = WORDS("--tmpfs", "/links/out/made"),
	.root = root,
	.before = before,
	.inside = inside,
	.after = after,
	.refusals = WORDS("symbolic link", "/links/out/made", "openat2 `links/out`"),
};
