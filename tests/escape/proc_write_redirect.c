/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's own writes to /proc, led astray: in CVE-2025-52881 (and CVE-2019-19921 before it)
 * /proc was a place of the attacker's when runc wrote its LSM label to /proc/self/attr, and the
 * bytes went to sysrq-trigger or core_pattern instead. This image has at /proc a link to a directory
 * with such files and links. A link at /proc is refused before anything is mounted; what is masked
 * must be procfs; and no row of the score writes to /proc once the image is in sight.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define FAKE "/links/fake-proc"
static const char untouched[] = "as the image has it\n";

static const char *const directories[] = {
	"links/fake-proc",           "links/fake-proc/self",
	"links/fake-proc/self/attr", "links/fake-proc/thread-self",
	"links/fake-proc/sys",       "links/fake-proc/sys/kernel",
};

static const char *const files[] = {
	"self/oom_score_adj", "self/setgroups",      "self/uid_map",  "self/gid_map",
	"self/attr/exec",     "self/attr/keycreate", "sysrq-trigger", "sys/kernel/hostname",
};

static int root(int rootfd)
{
	char path[96];

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		if (mkdirat(rootfd, directories[i], 0755) < 0)
			return -1;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "links/fake-proc/%s", files[i]);
		if (try_write_file(rootfd, path, untouched, 0666) < 0)
			return -1;
	}
	if (symlinkat("/proc/sysrq-trigger", rootfd, "links/fake-proc/thread-self/attr") < 0 ||
	    unlinkat(rootfd, "proc", AT_REMOVEDIR) < 0)
		return -1;
	return symlinkat("links/fake-proc", rootfd, "proc");
}

/* procfs where the link leads, and not covered: the checks, too, were led astray. */
static enum outcome judge_procfs(struct evidence *evidence)
{
	scoped_fd fd = open(FAKE "/interrupts", O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd >= 0 && read(fd, &byte, 1) == 1)
		return verdict(evidence, BROKEN, "procfs without covers is where the link leads");
	return verdict(evidence, HELD, "procfs is where the link leads, and covered");
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct statfs fs;
	char path[96];

	(void)argv;
	if (statfs(FAKE, &fs) < 0)
		return verdict(evidence, UNTRIED, "the image has lost " FAKE);
	if (fs.f_type == PROC_SUPER_MAGIC)
		return judge_procfs(evidence);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", FAKE, files[i]);
		scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != (off_t)strlen(untouched) ||
		    !try_reads(fd, untouched))
			return verdict(evidence, BROKEN, "%s was written by the runtime", path);
	}
	return verdict(evidence, HELD, "the files at the link's target are untouched");
}

ATTACK(proc_write_redirect) = {
	.name = "proc_write_redirect",
	.what = "have the runtime write to, or mount at, a /proc of the image's making",
	.seen = "CVE-2025-52881, CVE-2019-19921",
	.wall = "no link at a mount's target; what is masked must be procfs",
	.control = WORDS(WITHOUT("mount targets"), WITHOUT("masked paths")),
	.root = root,
	.inside = inside,
	.refusals = WORDS("symbolic link", "must be mounted on ordinary directory",
                          "the target `/proc` is invalid"),
};
