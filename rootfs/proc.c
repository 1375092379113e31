/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc: the sandbox's own pid namespace, without the parts that tell of the host or steer it.
 *
 * Targets are opened beneath the root of the procfs itself, without links and without crossing into
 * another mount, so that each is procfs's own; what covers them is attached by descriptor. Nothing
 * is resolved twice, so nothing can be exchanged in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/detached.h"
#include "rootfs/mounts.h"

enum { OWN_ENTRIES = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };

enum cover { HIDDEN_FILE, HIDDEN_DIRECTORY, READ_ONLY };

/*
 * runtime-spec's defaults, what container engines added to them after CVEs (interrupts leaks the
 * timing of the host's keys and packets), and more of the same kinds: kernel addresses and physical
 * memory (kallsyms to vmallocinfo, iomem, ioports, modules), keyrings of others (keys, key-users),
 * the host's boot parameters, which are known to carry passwords (cmdline), how its kernel was
 * built (config.gz), how full its memory is by zone, devices and their drivers. A process that is
 * root only inside could not open many of these anyway; a sandbox without a user namespace has that
 * from here.
 */
static const struct {
	const char *path;
	enum cover cover;
} covers[] = {
	{"kcore", HIDDEN_FILE},
	{"keys", HIDDEN_FILE},
	{"key-users", HIDDEN_FILE},
	{"latency_stats", HIDDEN_FILE},
	{"timer_list", HIDDEN_FILE},
	{"timer_stats", HIDDEN_FILE},
	{"sched_debug", HIDDEN_FILE},
	{"interrupts", HIDDEN_FILE},
	{"partitions", HIDDEN_FILE},
	{"diskstats", HIDDEN_FILE},
	{"softirqs", HIDDEN_FILE},
	{"zoneinfo", HIDDEN_FILE},
	{"buddyinfo", HIDDEN_FILE},
	{"consoles", HIDDEN_FILE},
	{"misc", HIDDEN_FILE},
	{"config.gz", HIDDEN_FILE},
	{"kallsyms", HIDDEN_FILE},
	{"kmsg", HIDDEN_FILE},
	{"kpagecount", HIDDEN_FILE},
	{"kpageflags", HIDDEN_FILE},
	{"kpagecgroup", HIDDEN_FILE},
	{"vmallocinfo", HIDDEN_FILE},
	{"slabinfo", HIDDEN_FILE},
	{"allocinfo", HIDDEN_FILE},
	{"pagetypeinfo", HIDDEN_FILE},
	{"iomem", HIDDEN_FILE},
	{"ioports", HIDDEN_FILE},
	{"modules", HIDDEN_FILE},
	{"mtrr", HIDDEN_FILE},
	{"cmdline", HIDDEN_FILE},
	{"acpi", HIDDEN_DIRECTORY},
	{"asound", HIDDEN_DIRECTORY},
	{"scsi", HIDDEN_DIRECTORY},
	{"bus", HIDDEN_DIRECTORY},
	{"driver", HIDDEN_DIRECTORY},
	{"dynamic_debug", HIDDEN_DIRECTORY},
	{"fs", HIDDEN_DIRECTORY},
	{"irq", HIDDEN_DIRECTORY},
	{"sys", READ_ONLY},
	{"sysrq-trigger", READ_ONLY},
};

/* What is laid over the paths. */
struct blanks {
	int filefd;              /* the null device of our own /dev, to copy */
	int directoryfd;         /* an empty, read-only tmpfs */
	bool directory_attached; /* from then on it is copied: older kernels copy no detached mount
	                          */
};

static void blanks_release(struct blanks *blanks)
{
	close_fd(&blanks->filefd);
	close_fd(&blanks->directoryfd);
}

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

static int blanks_open(int rootfd, struct blanks *blanks, struct err *e)
{
	static const struct fs_option options[] = {
		{.key = "source", .text = "masked"},
		{.key = "nr_inodes", .text = "1"},
		{.key = "mode", .text = "0555"},
	};
	unsigned attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	                      MOUNT_ATTR_NOEXEC;

	blanks->filefd = null_open(rootfd, e);
	TRY(blanks->filefd);
	blanks->directoryfd = detached_mount("tmpfs", options, sizeof options / sizeof options[0],
	                                     attributes, e);
	return blanks->directoryfd;
}

static int read_only_clone(int fd, struct err *e)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	scoped_fd clonefd = detached_clone(fd, "", e);

	TRY(clonefd);
	if (mount_setattr(clonefd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
		return err_sys(e, "write-protecting");
	return take_fd(&clonefd);
}

/* A mount to lay over TARGETFD; owned. */
static int cover_create(int targetfd, enum cover cover, struct blanks *blanks, struct err *e)
{
	int fd;

	if (cover == READ_ONLY)
		return read_only_clone(targetfd, e);
	if (cover == HIDDEN_FILE)
		return detached_clone(blanks->filefd, "", e);
	if (blanks->directory_attached)
		return detached_clone(blanks->directoryfd, "", e);
	blanks->directory_attached = true;
	fd = fcntl(blanks->directoryfd, F_DUPFD_CLOEXEC, 0);
	return fd >= 0 ? fd : err_sys(e, "copying a descriptor");
}

static int cover_path(int procfd, const char *path, enum cover cover, struct blanks *blanks,
                      struct err *e)
{
	int flags = O_PATH | (cover == HIDDEN_DIRECTORY ? O_DIRECTORY : 0);
	scoped_fd targetfd = file_open2(procfd, path, flags, 0, OWN_ENTRIES, e);
	scoped_fd coverfd = -1;

	if (targetfd == -ENOENT)
		return 0;
	TRY(targetfd);
	coverfd = cover_create(targetfd, cover, blanks, e);
	TRY(coverfd);
	return detached_attach(coverfd, targetfd, "a cover", path, e);
}

int proc_mask(int rootfd, struct err *e)
{
	__attribute__((cleanup(blanks_release))) struct blanks blanks = {-1, -1, false};
	scoped_fd procfd = procfs_open(rootfd, e);

	TRY(procfd);
	TRY(blanks_open(rootfd, &blanks, e));
	for (size_t i = 0; i < sizeof covers / sizeof covers[0]; i++)
		if (cover_path(procfd, covers[i].path, covers[i].cover, &blanks, e) < 0)
			return err_in(e, "/proc/%s", covers[i].path);
	return 0;
}
