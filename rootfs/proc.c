/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc: the sandbox's own pid namespace, without the parts that tell of the host or steer it.
 *
 * Covers are bound by name, one call each, from within the root of the procfs: all names here are
 * entries of that root, none of them is a link or a directory's below, and nobody but us is in this
 * mount namespace before the command is, so nothing can be exchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/detached.h"
#include "rootfs/mounts.h"

enum cover { HIDDEN_FILE, HIDDEN_DIRECTORY, READ_ONLY };

/*
 * runtime-spec's defaults, what container engines added to them after CVEs (interrupts leaks the
 * timing of the host's keys and packets), and more of the same kinds: kernel addresses and physical
 * memory (kallsyms to vmallocinfo, iomem, ioports, modules), keyrings of others (keys, key-users),
 * triggers of the host's pressure, which are charged to nobody and take long to go (pressure), the
 * host's boot parameters, which are known to carry passwords (cmdline), how its kernel was
 * built (config.gz), how full its memory is by zone, devices and their drivers. A process that is
 * root only inside could not open many of these anyway; a sandbox without a user namespace has that
 * from here.
 */
static const struct {
	const char *path;
	enum cover cover;
} covers[] = {
	{"kcore", HIDDEN_FILE},         {"keys", HIDDEN_FILE},
	{"key-users", HIDDEN_FILE},     {"latency_stats", HIDDEN_FILE},
	{"timer_list", HIDDEN_FILE},    {"timer_stats", HIDDEN_FILE},
	{"sched_debug", HIDDEN_FILE},   {"interrupts", HIDDEN_FILE},
	{"partitions", HIDDEN_FILE},    {"diskstats", HIDDEN_FILE},
	{"softirqs", HIDDEN_FILE},      {"zoneinfo", HIDDEN_FILE},
	{"buddyinfo", HIDDEN_FILE},     {"consoles", HIDDEN_FILE},
	{"misc", HIDDEN_FILE},          {"config.gz", HIDDEN_FILE},
	{"kallsyms", HIDDEN_FILE},      {"kmsg", HIDDEN_FILE},
	{"kpagecount", HIDDEN_FILE},    {"kpageflags", HIDDEN_FILE},
	{"kpagecgroup", HIDDEN_FILE},   {"vmallocinfo", HIDDEN_FILE},
	{"slabinfo", HIDDEN_FILE},      {"allocinfo", HIDDEN_FILE},
	{"pagetypeinfo", HIDDEN_FILE},  {"iomem", HIDDEN_FILE},
	{"ioports", HIDDEN_FILE},       {"modules", HIDDEN_FILE},
	{"mtrr", HIDDEN_FILE},          {"cmdline", HIDDEN_FILE},
	{"acpi", HIDDEN_DIRECTORY},     {"asound", HIDDEN_DIRECTORY},
	{"scsi", HIDDEN_DIRECTORY},     {"bus", HIDDEN_DIRECTORY},
	{"driver", HIDDEN_DIRECTORY},   {"dynamic_debug", HIDDEN_DIRECTORY},
	{"fs", HIDDEN_DIRECTORY},       {"irq", HIDDEN_DIRECTORY},
	{"pressure", HIDDEN_DIRECTORY}, {"sys", READ_ONLY},
	{"sysrq-trigger", READ_ONLY},
};

int proc_attach(int rootfd, struct err *e)
{
	static const struct fs_option options[] = {{.key = "source", .text = "proc"}};
	scoped_fd mountfd = -1, targetfd = mount_target(rootfd, "/proc", e);

	TRY(targetfd);
	mountfd = detached_mount("proc", options, 1,
	                         MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
	if (mountfd == -EPERM)
		return err_hint(e, "the kernel gives a user namespace a new /proc only where the "
		                   "present one is whole: is this a container with parts of /proc "
		                   "masked?");
	TRY(mountfd);
	return detached_attach(mountfd, targetfd, "procfs", "/proc", e);
}

/* The /proc that we attached, not what an image may have there. */
static int procfs_open(int rootfd, struct err *e)
{
	scoped_fd fd = file_open2(rootfd, "proc", O_PATH | O_DIRECTORY, 0, BENEATH_ROOT, e);
	struct statfs fs;

	TRY(fd);
	if (fstatfs(fd, &fs) < 0)
		return err_sys(e, "asking what /proc is");
	if (fs.f_type != PROC_SUPER_MAGIC)
		return err_set(e, EINVAL, "/proc is not procfs: refusing to mask anything there");
	return take_fd(&fd);
}

static int null_open(int rootfd, struct err *e)
{
	scoped_fd fd = file_open2(rootfd, "dev/null", O_PATH | O_NOFOLLOW, 0, BENEATH_ROOT, e);
	struct stat st;

	TRY(fd);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "asking what /dev/null is");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		return err_set(e, EINVAL, "/dev/null is not the null device");
	return take_fd(&fd);
}

static int covering(const char *path, struct err *e)
{
	return err_sys(e, "covering /proc/%s", path);
}

/* SOURCE and PATH are names in /proc itself, where we are: a path that this kernel lacks is skipped. */
static int cover_with(const char *source, const char *path, struct err *e)
{
	if (mount(source, path, NULL, MS_BIND, NULL) == 0)
		return 1;
	return errno == ENOENT ? 0 : covering(path, e);
}

/* An empty, read-only tmpfs: made for the first directory, bound from there to the others. */
static int hide_directory(const char *path, const char **first, struct err *e)
{
	static const struct fs_option options[] = {
		{.key = "source", .text = "masked"},
		{.key = "nr_inodes", .text = "1"},
		{.key = "mode", .text = "0555"},
	};
	unsigned attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	                      MOUNT_ATTR_NOEXEC;
	scoped_fd mountfd = -1;

	if (*first)
		return cover_with(*first, path, e);
	if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : covering(path, e);
	mountfd = detached_mount("tmpfs", options, sizeof options / sizeof options[0], attributes,
	                         e);
	TRY(mountfd);
	if (move_mount(mountfd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return covering(path, e);
	*first = path;
	return 0;
}

static int write_protect(const char *path, struct err *e)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	int covered = cover_with(path, path, e);

	if (covered == 1 && mount_setattr(AT_FDCWD, path, 0, &attributes, sizeof attributes) < 0)
		return covering(path, e);
	return covered;
}

int proc_mask(int rootfd, struct err *e)
{
	scoped_fd procfd = procfs_open(rootfd, e), nullfd = -1;
	const char *hidden = NULL;
	int r = 0;

	TRY(procfd);
	nullfd = null_open(rootfd, e);
	TRY(nullfd);
	if (fchdir(procfd) < 0)
		return err_sys(e, "entering /proc");
	for (size_t i = 0; i < sizeof covers / sizeof covers[0] && r >= 0; i++) {
		const char *path = covers[i].path;

		if (covers[i].cover == HIDDEN_FILE)
			r = cover_with("../dev/null", path, e);
		else if (covers[i].cover == HIDDEN_DIRECTORY)
			r = hide_directory(path, &hidden, e);
		else
			r = write_protect(path, e);
	}
	return r < 0 ? r : 0;
}
