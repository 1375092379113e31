/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root file system that an attack is made in: this program, copies of it that would give
 * privilege if a sandbox let them, an account, and links to where hostile ground likes to lead.
 * Owns nothing that stays; everything is made beneath one directory by descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/driver.h"

static const struct {
	const char *path;
	mode_t mode;
} directories[] = {
	{"bin", 0755},  {"dev", 0755}, {"etc", 0755},  {"links", 0755},
	{"proc", 0755}, {"sys", 0755}, {"tmp", 01777}, {"workspace", 01777},
};

static const struct {
	const char *path, *text;
} files[] = {
	{"etc/passwd", "root:x:0:0::/:/probe\nsandbox:x:10001:10001::/workspace:/probe\n"},
	{"etc/group", "root:x:0:\nsandbox:x:10001:\n"},
	{"etc/shadow", "root:*:1::::::\n"},
};

static const struct {
	const char *path, *target;
} links[] = {
	{"links/root", "/"},
	{"links/up", "../../../../../../../.."},
	{"links/proc", "/proc"},
	{"links/proc-root", "/proc/1/root"},
	{"links/proc-exe", "/proc/self/exe"},
	{"links/dev", "/dev"},
	{"links/shadow", "/etc/shadow"},
};

/* bin/sh is there to be looked at: by it an image is known to be for this machine. */
static const struct {
	const char *path;
	mode_t mode;
} programs[] = {
	{"probe", 0755},         {"bin/sh", 0755},        {"probe-setuid", 04755},
	{"probe-setgid", 02755}, {"probe-filecap", 0755},
};

static int copy_self(int rootfd, const char *path, mode_t mode)
{
	scoped_fd from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	scoped_fd to = openat(rootfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ssize_t sent;

	if (from < 0 || to < 0)
		return -1;
	do {
		sent = sendfile(to, from, NULL, 1 << 30);
	} while (sent > 0);
	return sent < 0 || fchmod(to, mode) < 0 ? -1 : 0;
}

static int write_file(int rootfd, const char *path, const char *text)
{
	scoped_fd fd = openat(rootfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -1;
	return fchmod(fd, 0644);
}

/* Not every file system keeps them; the attack says so then. */
static int give_capabilities(int rootfd, const char *path)
{
	const struct vfs_cap_data caps = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1u << CAP_SYS_ADMIN | 1u << CAP_NET_RAW,
	};
	scoped_fd fd = openat(rootfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (fsetxattr(fd, "security.capability", &caps, sizeof(caps), 0) < 0 &&
	    errno != EOPNOTSUPP && errno != EPERM)
		return -1;
	return 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int fill_root(int rootfd)
{
	for (size_t i = 0; i < COUNT(directories); i++)
		if (mkdirat(rootfd, directories[i].path, 0755) < 0 ||
		    fchmodat(rootfd, directories[i].path, directories[i].mode, 0) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(files); i++)
		if (write_file(rootfd, files[i].path, files[i].text) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlinkat(links[i].target, rootfd, links[i].path) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(programs); i++)
		if (copy_self(rootfd, programs[i].path, programs[i].mode) < 0)
			return -1;
	return give_capabilities(rootfd, "probe-filecap");
}

static int failed(const char *path)
{
	fprintf(stderr, "agentdock-probes: making what the attack needs in %s: %s\n", path,
	        strerror(errno));
	return PROBE_ERROR;
}

int make_root(const struct attack *attack, const char *path)
{
	scoped_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fill_root(fd) < 0 || (attack->root && attack->root(fd) < 0))
		return failed(path);
	return 0;
}

int make_workspace(const struct attack *attack, const char *path)
{
	scoped_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || (attack->workspace && attack->workspace(fd) < 0))
		return failed(path);
	return 0;
}
