/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the kernel and of our rights to it. What can be tried is tried, in a child process or
 * on a mount that is attached nowhere, so that even a killed doctor leaves nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "cli/doctor.h"
#include "rootfs/mounts.h"
#include "runtime/identity/identity.h"
#include "runtime/network/loopback.h"
#include "seccomp/filter.h"

enum {
	WANTED_MAJOR = 5,
	WANTED_MINOR = 19,
	SCRATCH_HOST_ID = 0x70000000, /* where a range of ids can begin; any will do */
	DISK_BYTES = 4 << 20,
	DISK_INODES = 64,
};

static const char newer[] = "use kernel 5.19 or newer";

/* ---- who we are ---- */

static void look_kernel(struct doctor *doctor, struct finding *finding)
{
	struct utsname name;
	unsigned long major, minor;
	char *end;

	(void)doctor;
	uname(&name);
	major = strtoul(name.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	if (major < WANTED_MAJOR || (major == WANTED_MAJOR && minor < WANTED_MINOR))
		finding_lacks(finding, FINDING_DEGRADED, newer, "Linux %s, %s", name.release,
		              name.machine);
	else
		finding_ok(finding, "Linux %s, %s", name.release, name.machine);
}

static bool has_capability(cap_t held, cap_value_t capability)
{
	cap_flag_value_t value = CAP_CLEAR;

	return held && cap_get_flag(held, capability, CAP_EFFECTIVE, &value) == 0 &&
	       value == CAP_SET;
}

static void look_privileges(struct doctor *doctor, struct finding *finding)
{
	static const struct {
		cap_value_t value;
		const char *name;
	} needed[] = {
		{CAP_SYS_ADMIN, "sys_admin"},
		{CAP_SETUID, "setuid"},
		{CAP_SETGID, "setgid"},
		{CAP_SETPCAP, "setpcap"},
		{CAP_SETFCAP, "setfcap"},
		{CAP_CHOWN, "chown"},
		{CAP_DAC_OVERRIDE, "dac_override"},
		{CAP_FOWNER, "fowner"},
		{CAP_MKNOD, "mknod"},
		{CAP_KILL, "kill"},
	};
	cap_t held = cap_get_proc();
	char lacking[200] = "";
	size_t used = 0;

	(void)doctor;
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!has_capability(held, needed[i].value))
			used += (size_t)snprintf(lacking + used, sizeof lacking - used, " %s",
			                         needed[i].name);
	cap_free(held);
	if (geteuid() != 0)
		finding_lacks(finding, FINDING_MISSING, "run agentdock as root (sudo)",
		              "user id %u", geteuid());
	else if (used)
		finding_lacks(finding, FINDING_MISSING,
		              "give the container or unit that we are in "
		              "these capabilities",
		              "root without%s", lacking);
	else
		finding_ok(finding, "root, with every capability that is needed");
}

/* ---- namespaces ---- */

static int nothing(void *data)
{
	(void)data;
	return 0;
}

static int bring_loopback_up(void *data)
{
	struct err e;

	(void)data;
	return -loopback_up(&e);
}

static void look_namespaces(struct doctor *doctor, struct finding *finding)
{
	static const struct {
		uint64_t flag;
		const char *name;
	} kinds[] = {
		{CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"}, {CLONE_NEWNET, "net"},
		{CLONE_NEWIPC, "ipc"},  {CLONE_NEWUTS, "uts"}, {CLONE_NEWCGROUP, "cgroup"},
	};

	(void)doctor;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		int code = doctor_try(kinds[i].flag, nothing, NULL);

		if (code != 0) {
			finding_lacks(finding, FINDING_MISSING,
			              "run as root on a kernel that has all namespaces",
			              "no new %s namespace: %s", kinds[i].name, strerror(code));
			return;
		}
	}
	finding_ok(finding, "mount, pid, net, ipc, uts, cgroup");
}

static void look_network(struct doctor *doctor, struct finding *finding)
{
	int code = doctor_try(CLONE_NEWNET, bring_loopback_up, NULL);

	(void)doctor;
	if (code != 0)
		finding_lacks(finding, FINDING_MISSING, "see that net namespaces work",
		              "loopback does not come up: %s", strerror(code));
	else
		finding_ok(finding, "loopback only; no device of /dev/net is needed");
}

/* The namespace of a child that waits until it is killed, with its ids mapped. */
static int userns_open(struct err *e)
{
	const struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	pid_t pid = process_clone3(&args);
	char path[32];
	int fd = -1;

	if (pid < 0) {
		errno = -pid;
		return err_sys(e, "no new user namespace");
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		poll(NULL, 0, 5000);
		_exit(0);
	}
	snprintf(path, sizeof path, "/proc/%d", pid);
	scoped_fd procfd = file_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, e);
	if (procfd >= 0 && identity_map_ids(procfd, SCRATCH_HOST_ID, e) == 0)
		fd = file_open(procfd, "ns/user", O_RDONLY, 0, e);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd >= 0 ? fd : -e->code;
}

static void look_userns(struct doctor *doctor, struct finding *finding)
{
	char most[32] = "unknown";
	struct err e;

	if (file_read(AT_FDCWD, "/proc/sys/user/max_user_namespaces", most, sizeof most, &e) > 0)
		most[strcspn(most, "\n")] = '\0';
	doctor->usernsfd = userns_open(&e);
	if (doctor->usernsfd < 0)
		finding_lacks(finding, FINDING_MISSING,
		              "raise user.max_user_namespaces, or run with --allow-missing userns",
		              "%s (user.max_user_namespaces is %s)", e.text, most);
	else
		finding_ok(finding, "with ids of their own; at most %s", most);
}

/* ---- system calls ---- */

static int have_openat2(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	scoped_fd fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);

	return fd >= 0;
}

static void look_openat2(struct doctor *doctor, struct finding *finding)
{
	(void)doctor;
	if (have_openat2())
		finding_ok(finding, "there");
	else
		finding_lacks(finding, FINDING_MISSING, newer, "openat2: %s", strerror(errno));
}

static void look_close_range(struct doctor *doctor, struct finding *finding)
{
	(void)doctor;
	/* a range in which nothing is open */
	if (syscall(SYS_close_range, ~0U - 1, ~0U, 0) == 0)
		finding_ok(finding, "there");
	else
		finding_lacks(finding, FINDING_MISSING, newer, "close_range: %s", strerror(errno));
}

static int install_filter(void *data)
{
	struct seccomp_filter filter = *seccomp_default_filter();
	int listenerfd = -1;
	struct err e;

	filter.notifies = *(bool *)data;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return -seccomp_filter_install(&filter, &listenerfd, &e);
}

static void look_seccomp(struct doctor *doctor, struct finding *finding)
{
	bool notifies = false;
	int code = doctor_try(0, install_filter, &notifies);

	(void)doctor;
	if (code != 0)
		finding_lacks(finding, FINDING_MISSING,
		              "use a kernel with CONFIG_SECCOMP_FILTER, outside of a sandbox that "
		              "forbids filters",
		              "the default profile cannot be installed: %s", strerror(code));
	else
		finding_ok(finding, "the default profile can be installed");
}

static void look_notify(struct doctor *doctor, struct finding *finding)
{
	bool notifies = true;
	int code = doctor_try(0, install_filter, &notifies);

	(void)doctor;
	if (code != 0)
		finding_lacks(finding,
		              seccomp_default_filter()->notifies ? FINDING_MISSING
		                                                 : FINDING_DEGRADED,
		              "use kernel 5.5 or newer, outside of another supervisor's sandbox",
		              "no listener for denied calls: %s", strerror(code));
	else
		finding_ok(finding, "denied calls are counted");
}

static void look_landlock(struct doctor *doctor, struct finding *finding)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	(void)doctor;
	if (abi >= 2)
		finding_ok(finding, "ABI %ld, a second wall around the files", abi);
	else
		finding_lacks(finding, FINDING_DEGRADED,
		              "use kernel 5.19 or newer with landlock in its lsm= list",
		              "not in this kernel: there is one wall around the files, not two");
}

static void look_keyrings(struct doctor *doctor, struct finding *finding)
{
	enum { GET_KEYRING_ID = 0, SESSION_KEYRING = -3 };

	(void)doctor;
	if (syscall(SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) < 0 && errno == ENOSYS)
		finding_ok(finding, "this kernel has none, so there is none to share");
	else
		finding_ok(finding, "each sandbox has a new session keyring");
}

/* ---- file systems ---- */

static void look_mount_api(struct doctor *doctor, struct finding *finding)
{
	scoped_fd fsfd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	if (fsfd >= 0 && syscall(SYS_fsconfig, fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		doctor->scratchfd = (int)syscall(SYS_fsmount, fsfd, FSMOUNT_CLOEXEC, 0);
	if (doctor->scratchfd < 0)
		finding_lacks(finding, FINDING_MISSING, "run as root on kernel 5.19 or newer",
		              "no detached tmpfs: %s", strerror(errno));
	else
		finding_ok(finding, "detached mounts work");
}

static void look_idmap(struct doctor *doctor, struct finding *finding)
{
	static const char way_out[] =
		"put the state directory on ext4, xfs or btrfs (kernel 5.19), "
		"or run with --allow-missing userns";
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP,
	                                .userns_fd = (uint64_t)doctor->usernsfd};
	scoped_fd tree = -1;

	if (doctor->usernsfd < 0 || doctor->statefd < 0) {
		finding_untried(finding, "no user namespace, or no state directory");
		return;
	}
	tree = (int)syscall(SYS_open_tree, doctor->statefd, "",
	                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree < 0 ||
	    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
		finding_lacks(finding, FINDING_MISSING, way_out,
		              "the state directory's file system cannot be idmapped: %s",
		              strerror(errno));
	else
		finding_ok(finding, "the state directory's file system can be idmapped");
}

static void look_disk(struct doctor *doctor, struct finding *finding)
{
	const struct disk_limits limits = {.bytes = DISK_BYTES, .inodes = DISK_INODES};
	struct err e;

	if (doctor->scratchfd < 0)
		finding_untried(finding, "no scratch file system");
	else if (disk_create(doctor->scratchfd, &limits, SCRATCH_HOST_ID, &doctor->disk, &e) < 0)
		finding_error(finding, FINDING_MISSING,
		              "apt-get install e2fsprogs; modprobe loop; or run with "
		              "--disk-backing tmpfs",
		              &e);
	else if (doctor->disk.backing == DISK_TMPFS)
		finding_lacks(finding, FINDING_DEGRADED, "modprobe loop",
		              "no loop device: disks are in memory, and charged to its limit");
	else
		finding_ok(finding, "an ext4 image on a loop device, limited in bytes and inodes");
}

static void look_overlay(struct doctor *doctor, struct finding *finding)
{
	struct err e;
	scoped_fd overlay = -1;

	if (doctor->disk.mountfd < 0 || doctor->statefd < 0) {
		finding_untried(finding, "no disk, or no state directory");
		return;
	}
	overlay = overlay_create(&doctor->statefd, 1, doctor->disk.mountfd, doctor->usernsfd, &e);
	if (overlay < 0)
		finding_error(finding, FINDING_MISSING, "modprobe overlay", &e);
	else
		finding_ok(finding, "of %slayers and a disk",
		           doctor->usernsfd < 0 ? "" : "idmapped ");
}

static void look_quota(struct doctor *doctor, struct finding *finding)
{
	(void)doctor;
	finding_ok(finding, "not used: each sandbox has a disk of its own");
}

const struct check kernel_checks[] = {
	{"kernel", look_kernel, false},
	{"privileges", look_privileges, false},
	{"namespaces", look_namespaces, true},
	{"user namespaces", look_userns, true},
	{"network", look_network, true},
	{"openat2", look_openat2, false},
	{"close_range", look_close_range, false},
	{"seccomp filter", look_seccomp, false},
	{"seccomp notification", look_notify, false},
	{"landlock", look_landlock, false},
	{"keyrings", look_keyrings, false},
	{"mount API", look_mount_api, true},
	{"state directory", look_state_directory, false},
	{"idmapped mounts", look_idmap, true},
	{"disk", look_disk, true},
	{"overlay", look_overlay, true},
	{"project quota", look_quota, false},
	{NULL, NULL, false},
};
