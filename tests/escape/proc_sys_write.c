/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's settings: who writes core_pattern, modprobe's path or the uevent helper has the
 * kernel start his own program as root of the host; sysrq reboots; the settings of memory and of
 * the network are the host's peace. They are opened for writing, by each path to them, and never
 * written. /proc/sys and sysrq-trigger are mounted read-only, and root inside is not the kernel's
 * root: it takes both walls down to open one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const settings[] = {
	"sysrq-trigger",
	"sys/kernel/core_pattern",
	"sys/kernel/core_pipe_limit",
	"sys/kernel/modprobe",
	"sys/kernel/poweroff_cmd",
	"sys/kernel/hotplug",
	"sys/kernel/usermodehelper/bset",
	"sys/kernel/sysrq",
	"sys/kernel/panic",
	"sys/kernel/panic_on_oops",
	"sys/kernel/kptr_restrict",
	"sys/kernel/dmesg_restrict",
	"sys/kernel/randomize_va_space",
	"sys/kernel/unprivileged_bpf_disabled",
	"sys/kernel/perf_event_paranoid",
	"sys/kernel/modules_disabled",
	"sys/kernel/ns_last_pid",
	"sys/kernel/shmmax",
	"sys/kernel/msgmax",
	"sys/kernel/hostname",
	"sys/kernel/keys/maxkeys",
	"sys/fs/binfmt_misc/register",
	"sys/fs/suid_dumpable",
	"sys/fs/protected_symlinks",
	"sys/fs/file-max",
	"sys/fs/mqueue/queues_max",
	"sys/user/max_user_namespaces",
	"sys/vm/overcommit_memory",
	"sys/vm/drop_caches",
	"sys/vm/mmap_min_addr",
	"sys/vm/panic_on_oom",
	"sys/vm/swappiness",
	"sys/net/ipv4/ip_forward",
	"sys/net/core/bpf_jit_limit",
	"sys/net/ipv4/conf/all/rp_filter",
	"sys/debug/exception-trace",
	"sys/dev/cdrom/autoeject",
	"acpi/wakeup",
	"irq/default_smp_affinity",
	"bus/pci/devices",
	"scsi/scsi",
	"mtrr",
	"timer_stats",
};

/* A device is a cover, which takes what is written and does nothing: no errno stands for it. */
static long opened(const char *base, const char *setting, int flags)
{
	char path[160];
	scoped_fd fd = -1;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", base, setting);
	fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	errno = 0;
	return S_ISCHR(st.st_mode) ? -1 : 0;
}

static void open_all(struct tries *tries, const char *base)
{
	for (size_t i = 0; i < COUNT(settings); i++) {
		tried(tries, opened(base, settings[i], O_WRONLY), "%s/%s can be opened for writing",
		      base, settings[i]);
		tried(tries, opened(base, settings[i], O_RDWR), "%s/%s can be opened for writing",
		      base, settings[i]);
	}
}

/* An open for reading that is turned into one for writing. */
static void reopen_all(struct tries *tries)
{
	char path[160];

	for (size_t i = 0; i < COUNT(settings); i++) {
		snprintf(path, sizeof(path), "/proc/%s", settings[i]);
		scoped_fd fd = open(path, O_PATH | O_CLOEXEC);

		if (fd < 0)
			continue;
		snprintf(path, sizeof(path), "self/fd/%d", fd);
		tried(tries, opened("/proc", path, O_WRONLY),
		      "/proc/%s can be opened again for writing", settings[i]);
	}
}

static void attempt(struct tries *tries)
{
	open_all(tries, "/proc");
	open_all(tries, "/proc/self/root/proc");
	open_all(tries, "/proc/1/root/proc");
	reopen_all(tries);
	if (umount2("/proc/sys", MNT_DETACH) == 0 ||
	    mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL) == 0)
		open_all(tries, "/proc");
	if (mount("attack", try_directory(), "proc", 0, NULL) == 0)
		open_all(tries, try_directory());
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	(void)argv;
	try_everywhere(tries, CLONE_NEWNS | CLONE_NEWPID, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(proc_sys_write) = {
	.name = "proc_sys_write",
	.what = "write a setting of the kernel: core_pattern, modprobe, sysrq and forty more",
	.seen = "CVE-2022-0811 (cr8escape), the classic core_pattern escape",
	.wall = "/proc/sys and sysrq-trigger read-only; root inside is not the kernel's",
	.control = WORDS(WITHOUT("masked paths"), WITHOUT("user namespace"), WITHOUT("user")),
	.inside = inside,
};
