/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes that somebody else believes: overlayfs takes trusted.overlay.* of a layer for its own
 * (redirect: this directory lies elsewhere; metacopy: this file's bytes do; opaque; whiteout), and
 * the kernel takes security.capability of a program for its privileges (CVE-2021-3493: a mount in a
 * user namespace let them through to the layer). They are set on files of each file system that can
 * be written, by each call. trusted.* wants CAP_SYS_ADMIN of the host, security.capability
 * CAP_SETFCAP; there is neither, nor a user namespace to get the second in.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif

static const struct vfs_cap_data all_capabilities = {
	.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
	.data = {{UINT32_MAX, 0}, {UINT32_MAX, 0}},
};

static const struct {
	const char *name;
	const void *value;
	size_t size;
} attributes[] = {
	{"trusted.overlay.redirect", "/etc", 4},
	{"trusted.overlay.opaque", "y", 1},
	{"trusted.overlay.metacopy", "", 0},
	{"trusted.overlay.whiteout", "", 0},
	{"trusted.overlay.origin", "\0\xfb", 2},
	{"trusted.overlay.overlay.redirect", "/etc", 4},
	{"trusted.anything", "1", 1},
	{"security.capability", &all_capabilities, sizeof(all_capabilities)},
	{"security.ima", "\x01", 1},
	{"security.anything", "1", 1},
};

static const char *const places[] = {"/tmp", "/workspace", "/dev/shm", "/dev", "/"};

/* struct xattr_args of Linux 6.13, which the headers of libc may lack. */
struct set_args {
	uint64_t value;
	uint32_t size, flags;
};

static void set_all(struct tries *tries, const char *path)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		const char *name = attributes[i].name;
		const void *value = attributes[i].value;
		size_t size = attributes[i].size;
		struct set_args args = {.value = (uintptr_t)value, .size = (uint32_t)size};

		tried(tries, setxattr(path, name, value, size, 0), "%s was set on %s", name, path);
		tried(tries, lsetxattr(path, name, value, size, XATTR_CREATE),
		      "%s was set on %s by lsetxattr", name, path);
		tried(tries, fsetxattr(fd, name, value, size, 0), "%s was set on %s by fsetxattr",
		      name, path);
		tried(tries, syscall(SYS_setxattrat, AT_FDCWD, path, 0, name, &args, sizeof(args)),
		      "%s was set on %s by setxattrat", name, path);
	}
}

static void attempt(struct tries *tries)
{
	char path[64];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/attack-xattr", places[i]);
		scoped_fd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);

		if (fd >= 0)
			set_all(tries, path);
		unlink(path);
		if (mkdir(path, 0755) == 0)
			set_all(tries, path);
		rmdir(path);
	}
	/* a file of a lower layer, which would be copied up with it */
	set_all(tries, "/probe");
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(overlay_xattrs) = {
	.name = "overlay_xattrs",
	.what = "set attributes that overlayfs or exec believe: trusted.overlay.*, capabilities",
	.seen = "CVE-2021-3493, CVE-2023-0386",
	.wall = "no capability; the filter, for new user namespaces",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.inside = inside,
};
