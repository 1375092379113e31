/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /sys and its relatives: the uevent helper, the settings of devices and of the firmware, debugfs
 * and tracefs, which watch and steer the kernel. Whoever has a new network namespace and the right
 * to mount may have a sysfs of his own. Nothing of the kind is mounted in a sandbox, and nobody
 * inside can mount; a user namespace gets no sysfs where none is in sight.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const paths[] = {
	"/sys/kernel/uevent_helper",
	"/sys/kernel/debug",
	"/sys/kernel/tracing",
	"/sys/kernel/security",
	"/sys/fs/cgroup",
	"/sys/firmware/efi",
	"/sys/devices/system/cpu",
	"/sys/class/net",
	"/sys/block",
	"/sys/module",
	"/sys/power/state",
	"/sys/kernel/profiling",
	"/debug",
};

static const char *const types[] = {
	"sysfs", "debugfs", "tracefs", "securityfs", "configfs", "efivarfs", "bpf", "binfmt_misc",
};

static void look(struct tries *tries)
{
	struct statfs fs;

	for (size_t i = 0; i < COUNT(paths); i++)
		tried(tries, access(paths[i], F_OK), "%s is there", paths[i]);
	if (statfs("/sys", &fs) == 0 && fs.f_type == SYSFS_MAGIC)
		tried(tries, 0, "sysfs is mounted on /sys");
}

static long by_new_door(const char *type)
{
	scoped_fd fsfd = fsopen(type, FSOPEN_CLOEXEC);
	scoped_fd mountfd = -1;

	if (fsfd < 0 || fsconfig(fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	mountfd = fsmount(fsfd, FSMOUNT_CLOEXEC, 0);
	return mountfd < 0 ? -1 : 0;
}

static void mount_all(struct tries *tries)
{
	const char *dir = try_directory();

	for (size_t i = 0; i < COUNT(types) && !tries->worked; i++) {
		tried(tries, mount("attack", dir, types[i], 0, NULL), "%s was mounted", types[i]);
		tried(tries, by_new_door(types[i]), "%s was mounted by fsmount", types[i]);
	}
}

static void attempt(struct tries *tries)
{
	look(tries);
	mount_all(tries);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS | CLONE_NEWNET, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(sysfs) = {
	.name = "sysfs",
	.what = "reach sysfs, debugfs or tracefs, by which the kernel is steered",
	.seen = "the uevent_helper escape of privileged containers",
	.wall = "no /sys; no capability, and the filter",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.inside = inside,
};
