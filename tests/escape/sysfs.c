/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /sys and its relatives: the uevent helper, the settings of devices and of the firmware, debugfs
 * and tracefs, which watch and steer the kernel. Whoever has a new network namespace and the right
 * to mount may have a sysfs of his own. Nothing of the kind is mounted in a sandbox, and nobody
 * inside can mount; a user namespace gets no sysfs where none is in sight. A sysfs that can only be
 * read is not held against a sandbox here.
 * What keeps one from being mounted is enough each by itself, but for the dropping of capabilities,
 * which cannot be had without the bounding set, and for Landlock, which lets fsmount make one that it
 * then lets nobody attach. That none is mounted to begin with cannot be left out.
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

/* Opened for writing and left as they are. */
static const char *const switches[] = {
	"/sys/kernel/uevent_helper",
	"/sys/kernel/profiling",
	"/sys/kernel/mm/transparent_hugepage/enabled",
	"/sys/kernel/mm/ksm/run",
	"/sys/kernel/kexec_crash_size",
	"/sys/power/state",
	"/sys/power/pm_test",
	"/sys/devices/system/cpu/cpu1/online",
	"/sys/bus/pci/rescan",
	"/sys/module/kernel/parameters/panic",
	"/sys/block/loop0/uevent",
	"/sys/class/mem/null/uevent",
	"/sys/fs/cgroup/cgroup.procs",
	"/sys/firmware/acpi/pm_profile",
	"/sys/kernel/tracing/trace_marker",
	"/sys/kernel/debug/tracing/trace_marker",
};

/* What is worth a look already. */
static const struct {
	const char *path;
	long magic;
	const char *what;
} worth[] = {
	{"/sys/kernel/debug", DEBUGFS_MAGIC, "debugfs"},
	{"/sys/kernel/tracing", TRACEFS_MAGIC, "tracefs"},
	{"/sys/kernel/debug/tracing", TRACEFS_MAGIC, "tracefs"},
	{"/sys/kernel/security", SECURITYFS_MAGIC, "securityfs"},
	{"/sys/fs/bpf", BPF_FS_MAGIC, "bpf"},
	{"/sys/firmware/efi/efivars", EFIVARFS_MAGIC, "efivarfs"},
};

static const char *const types[] = {
	"sysfs", "debugfs", "tracefs", "securityfs", "configfs", "efivarfs",
};

static long opened(const char *path)
{
	scoped_fd fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -1 : 0;
}

static void look(struct tries *tries)
{
	struct statfs fs;

	for (size_t i = 0; i < COUNT(switches); i++)
		tried(tries, opened(switches[i]), "%s can be opened for writing", switches[i]);
	for (size_t i = 0; i < COUNT(worth); i++) {
		if (statfs(worth[i].path, &fs) < 0)
			tried(tries, -1, "%s", worth[i].path);
		else if ((long)fs.f_type == worth[i].magic)
			tried(tries, 0, "%s is mounted on %s", worth[i].what, worth[i].path);
		else
			tried_in_vain(tries);
	}
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
	.what = "write to sysfs, mount one, or reach debugfs and tracefs: they steer the kernel",
	.seen = "the uevent_helper escape of privileged containers",
	.wall = "no /sys; no capability, and the filter",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.alone = WORDS(NO_CAPABILITY_ALONE, "seccomp"),
	.inside = inside,
};
