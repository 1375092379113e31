/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is covered in /proc: memory, keys, kernel addresses, the boot's parameters, interrupts; and
 * the write-protected rest (sysrq, core_pattern). In CVE-2025-31133 an image replaced /dev/null, the
 * cover, by a link, and the engine laid whatever that led to over the path, or nothing. Inside, the
 * same files are asked for by every other path to the same procfs, by a copy of it without its
 * covers (bind and open_tree without AT_RECURSIVE), by taking a cover off, and by another procfs, in
 * namespaces of one's own too. The covers are our own null device, attached by descriptor; nobody
 * inside can mount. The image that this runs on has links at /dev/null and its neighbours.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const secrets[] = {
	"kcore",       "keys",          "key-users",    "timer_list",
	"sched_debug", "latency_stats", "interrupts",   "softirqs",
	"partitions",  "diskstats",     "kallsyms",     "iomem",
	"ioports",     "modules",       "vmallocinfo",  "slabinfo",
	"allocinfo",   "cmdline",       "pagetypeinfo", "zoneinfo",
	"buddyinfo",   "kpagecount",    "kpageflags",   "config.gz",
	"acpi",        "scsi",          "asound",       "bus",
	"driver",      "irq",           "fs",           "dynamic_debug",
	"pressure",
};

/* Opened for writing and left as they are. */
static const char *const switches[] = {"sysrq-trigger", "sys/kernel/core_pattern", "pressure/cpu"};

static long entry_of(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry = NULL;

	if (!dir) {
		close(fd);
		return -1;
	}
	do
		entry = readdir(dir);
	while (entry && entry->d_name[0] == '.');
	closedir(dir);
	return entry ? 1 : 0;
}

/* 1: it has something to tell; 0: it is empty; -1: errno. */
static long tells(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	char byte;
	long got;

	if (fd < 0 || fstat(fd, &st) < 0) {
		close_fd(&fd);
		return -1;
	}
	if (S_ISDIR(st.st_mode))
		return entry_of(fd);
	got = read(fd, &byte, 1);
	close(fd);
	return got;
}

static long opens_for_writing(const char *path)
{
	scoped_fd fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -1 : 0;
}

/* BASE is said to be a /proc. */
static void look_in(struct tries *tries, const char *base)
{
	char path[160];

	for (size_t i = 0; i < COUNT(secrets); i++) {
		snprintf(path, sizeof(path), "%s/%s", base, secrets[i]);
		long told = tells(path);

		if (told == 0)
			tried_in_vain(tries);
		else
			tried(tries, told, "%s can be read", path);
	}
	for (size_t i = 0; i < COUNT(switches); i++) {
		snprintf(path, sizeof(path), "%s/%s", base, switches[i]);
		tried(tries, opens_for_writing(path), "%s can be opened for writing", path);
	}
}

static void look_in_descriptor(struct tries *tries, int fd)
{
	char base[64];

	if (fd < 0)
		return;
	snprintf(base, sizeof(base), "/proc/self/fd/%d", fd);
	look_in(tries, base);
}

static void other_paths(struct tries *tries)
{
	char task[64];
	scoped_fd fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	snprintf(task, sizeof(task), "/proc/self/task/%ld/root/proc", syscall(SYS_gettid));
	look_in(tries, "/proc");
	look_in(tries, "/proc/self/root/proc");
	look_in(tries, "/proc/self/task/../..");
	look_in(tries, task);
	look_in(tries, "/proc/1/root/proc");
	look_in(tries, "/../../proc");
	look_in_descriptor(tries, fd);
}

/* Takes the covers off that can be taken off. */
static void uncover(struct tries *tries)
{
	struct mount_attr writable = {.attr_clr = MOUNT_ATTR_RDONLY};
	char path[64];
	long done = 0;

	for (size_t i = 0; i < COUNT(secrets); i++) {
		snprintf(path, sizeof(path), "/proc/%s", secrets[i]);
		done |= umount2(path, MNT_DETACH) == 0;
	}
	done |= umount2("/proc/sys", MNT_DETACH) == 0;
	done |= umount2("/proc/sysrq-trigger", MNT_DETACH) == 0;
	done |= mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL) == 0;
	done |= mount_setattr(AT_FDCWD, "/proc/sys", 0, &writable, sizeof(writable)) == 0;
	if (done)
		look_in(tries, "/proc");
	else
		tried(tries, -1, "uncovering");
}

/* The same procfs without what is mounted on it, and another one. */
static void another_procfs(struct tries *tries)
{
	const char *dir = try_directory();
	scoped_fd treefd = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	scoped_fd fsfd = fsopen("proc", FSOPEN_CLOEXEC);
	scoped_fd mountfd = -1;

	look_in_descriptor(tries, treefd);
	if (fsfd >= 0 && fsconfig(fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mountfd = fsmount(fsfd, FSMOUNT_CLOEXEC, 0);
	look_in_descriptor(tries, mountfd);
	if (mount("/proc", dir, NULL, MS_BIND, NULL) == 0 ||
	    mount("attack", dir, "proc", 0, NULL) == 0)
		look_in(tries, dir);
	else
		tried(tries, -1, "another procfs");
}

static void attempt(struct tries *tries)
{
	other_paths(tries);
	uncover(tries);
	another_procfs(tries);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS | CLONE_NEWPID, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(masked_paths) = {
	.name = "masked_paths",
	.what = "read what /proc tells of the host, or write what steers it, by whatever path",
	.seen = "CVE-2025-31133, CVE-2023-27561, CVE-2019-19921",
	.wall = "masked paths: targets on procfs, covers by descriptor",
	.control = WORDS(WITHOUT("masked paths")),
	.inside = inside,
};
