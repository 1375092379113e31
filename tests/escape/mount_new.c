/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New mounts, and other flags for the present ones: whoever can mount lays his own files over
 * /etc/passwd, makes /proc/sys writable again or takes a cover off. Both doors are tried, mount(2)
 * and the calls of Linux 5.2 (CVE-2022-0185 was in fsconfig, reached from a user namespace). The
 * filter forbids all of them, there is no capability, and no user namespace to get one in; behind
 * these stands Landlock, under which nobody changes the mount table.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

static void old_door(struct tries *tries)
{
	const char *dir = try_directory();

	tried(tries, mount("attack", dir, "tmpfs", 0, NULL), "a tmpfs was mounted on %s", dir);
	tried(tries, mount("/", dir, NULL, MS_BIND | MS_REC, NULL), "/ was bound to %s", dir);
	tried(tries, mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL),
	      "/proc/sys was mounted writable again");
	tried(tries, mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL),
	      "/ lost nosuid and nodev by a remount");
	tried(tries, mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL), "/ was made shared");
	tried(tries, mount("/dev/shm", dir, NULL, MS_MOVE, NULL), "/dev/shm was moved");
	tried(tries, umount2("/proc/sys", MNT_DETACH), "the cover of /proc/sys was taken off");
	tried(tries, umount2("/", MNT_DETACH), "/ was detached");
}

static void new_door(struct tries *tries)
{
	struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV};
	const char *dir = try_directory();
	scoped_fd fsfd = fsopen("tmpfs", FSOPEN_CLOEXEC);
	scoped_fd mountfd = -1, treefd = -1, pickfd = -1;

	if (tried(tries, fsfd, "fsopen gave the context of a tmpfs")) {
		fsconfig(fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
		mountfd = fsmount(fsfd, FSMOUNT_CLOEXEC, 0);
		tried(tries, mountfd, "fsmount gave a tmpfs");
		tried(tries, move_mount(mountfd, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH),
		      "a tmpfs was attached to %s", dir);
	}
	treefd = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE | OPEN_TREE_CLOEXEC);
	tried(tries, treefd, "open_tree copied the mounts beneath /");
	pickfd = fspick(AT_FDCWD, "/", FSPICK_CLOEXEC);
	tried(tries, pickfd, "fspick gave the file system of /");
	tried(tries, mount_setattr(AT_FDCWD, "/proc/sys", 0, &attributes, sizeof(attributes)),
	      "mount_setattr made /proc/sys writable");
}

static void attempt(struct tries *tries)
{
	old_door(tries);
	new_door(tries);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(mount_new) = {
	.name = "mount_new",
	.what = "mount something, or take the protection off what is mounted",
	.seen = "CVE-2022-0185 (fsconfig in a user namespace), CVE-2022-0492",
	.wall = "no capability, and the filter",
	.control = WORDS(WITHOUT("seccomp"), WITHOUT("landlock")),
	.inside = inside,
};
