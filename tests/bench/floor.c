/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's floor: a sandbox of bare system calls, for `make bench` to measure others against.
 *
 *	floor [-m] [-d TEMPLATE] LAYER PROGRAM
 *
 * It makes what a launcher of this kind cannot do without: limited cgroups; user, mount, pid,
 * network, ipc, uts and cgroup namespaces; an overlay of LAYER (idmapped) and a tmpfs; /proc, /dev,
 * devpts, shm, mqueue; loopback; pivot_root; a user without capabilities; no_new_privs; the default
 * filter; exec; wait; removal. With -m it covers the paths of /proc that AgentDock covers, too; with -d
 * the overlay lies on a copy of TEMPLATE, an ext4 that limits bytes and inodes, as AgentDock's. It
 * checks nothing twice, cleans nothing up after a failure, keeps no output, and has no pid 1 of its
 * own: it is no product, it says what the kernel takes for these calls.
 *
 * What makes it quick: the child shares memory and descriptors with its parent (no page table is
 * copied, no descriptor sent), and both work at the same time. The parent maps ids, makes the groups
 * that hold the limits, stacks the overlay, fills /dev; the child meanwhile makes its other
 * namespaces (the network's takes longest), joins the groups, makes its own file systems, then
 * attaches all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define default_notifies unused_notifies __attribute__((unused))
#include "seccomp_default.inc"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PARENT       "agentdock-floor"

enum { BASE = 1879048192, RANGE = 65536, USER = 10001, SPINS = 20000 };
enum stage { MAPPED = 1, ROOT_READY };

/* shared with the child, which runs in this memory until it executes */
static _Atomic uint32_t stage;
static int group_tasks[4], rootfd = -1, devfd = -1;
static char *program;
static bool covers_proc;
static pid_t child_pid;
static char child_stack[64 * 1024] __attribute__((aligned(16)));

static _Noreturn void die(const char *what)
{
	char line[160];
	int n = snprintf(line, sizeof line, "floor: %s: %s\n", what, strerrordesc_np(errno));

	if (child_pid > 0 && getpid() != 1) /* not in the child: it would wait for ever */
		kill(child_pid, SIGKILL);
	if (write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line) < 0)
		_exit(126);
	_exit(125);
}

static int must(long result, const char *what)
{
	if (result < 0)
		die(what);
	return (int)result;
}

static void reach(enum stage reached)
{
	atomic_store(&stage, reached);
	syscall(SYS_futex, &stage, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await(enum stage wanted)
{
	uint32_t now;

	for (int i = 0; i < SPINS && atomic_load(&stage) < wanted; i++)
		__builtin_ia32_pause();
	while ((now = atomic_load(&stage)) < wanted)
		syscall(SYS_futex, &stage, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

/* ---- cgroups: v2 beside v1 controllers, or v2 alone ---- */

struct limit {
	const char *file, *text;
};

static const struct limit cpu_limits[] = {{"cpu.cfs_quota_us", "100000"}, {NULL, NULL}};
static const struct limit memory_limits[] = {
	{"memory.limit_in_bytes", "536870912"},
	{"memory.memsw.limit_in_bytes", "536870912"},
	{NULL, NULL},
};
static const struct limit pids_limits[] = {{"pids.max", "256"}, {NULL, NULL}};
static const struct limit no_limits[] = {{NULL, NULL}};
static const struct limit v2_limits[] = {
	{"cpu.max", "100000"},
	{"memory.max", "536870912"},
	{"memory.swap.max", "0"},
	{"pids.max", "256"},
	{NULL, NULL},
};

struct tree {
	const char *mount;
	const struct limit *limits;
};

static const struct tree hybrid_trees[] = {
	{"/sys/fs/cgroup/unified", no_limits},
	{"/sys/fs/cgroup/cpu", cpu_limits},
	{"/sys/fs/cgroup/memory", memory_limits},
	{"/sys/fs/cgroup/pids", pids_limits},
};
static const struct tree v2_trees[] = {{"/sys/fs/cgroup", v2_limits}};

static const struct tree *trees = hybrid_trees;
static int trees_count = COUNT(hybrid_trees);
static int parentfds[COUNT(hybrid_trees)];
static char group_name[24];

static void write_at(int dirfd, const char *name, const char *text)
{
	int fd = must(openat(dirfd, name, O_WRONLY | O_CLOEXEC), name);

	if (write(fd, text, strlen(text)) < 0 && errno != ENOENT)
		die(name);
	close(fd);
}

static void parents_open(void)
{
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0) {
		trees = v2_trees;
		trees_count = COUNT(v2_trees);
	}
	snprintf(group_name, sizeof group_name, "%d", getpid());
	for (int i = 0; i < trees_count; i++) {
		char path[96];

		snprintf(path, sizeof path, "%s/" PARENT, trees[i].mount);
		parentfds[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (parentfds[i] >= 0)
			continue;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			die(path);
		parentfds[i] = must(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), path);
		if (trees == v2_trees)
			write_at(parentfds[i], "cgroup.subtree_control", "+cpu +memory +pids");
	}
}

static int group_make(int i)
{
	/* one that a failed floor of the same pid left will do */
	if (mkdirat(parentfds[i], group_name, 0755) < 0 && errno != EEXIST)
		die("a group");
	return must(openat(parentfds[i], group_name, O_PATH | O_DIRECTORY | O_CLOEXEC), "a group");
}

/* Those that hold the limits in a hybrid tree; the child joins them by their tasks files. */
static void limit_groups(int v2fd)
{
	for (int i = 0; i < trees_count; i++) {
		int fd = i ? group_make(i) : v2fd;

		for (const struct limit *limit = trees[i].limits; limit->file; limit++)
			write_at(fd, limit->file, limit->text);
		if (i)
			group_tasks[i] = must(openat(fd, "tasks", O_WRONLY | O_CLOEXEC), "tasks");
	}
}

static void groups_remove(void)
{
	for (int i = trees_count - 1; i >= 0; i--)
		must(unlinkat(parentfds[i], group_name, AT_REMOVEDIR), "removing a group");
}

/* ---- file systems ---- */

static void set(int fsfd, const char *key, const char *value)
{
	must(fsconfig(fsfd, FSCONFIG_SET_STRING, key, value, 0), key);
}

static int make_mount(int fsfd, unsigned attributes)
{
	int fd;

	must(fsconfig(fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "creating a file system");
	fd = must(fsmount(fsfd, FSMOUNT_CLOEXEC, attributes), "fsmount");
	close(fsfd);
	return fd;
}

static int mount_of(const char *type, const char *options[][2], unsigned attributes)
{
	int fsfd = must(fsopen(type, FSOPEN_CLOEXEC), type);

	for (; options && (*options)[0]; options++)
		set(fsfd, (*options)[0], (*options)[1]);
	return make_mount(fsfd, attributes);
}

static void attach(int mountfd, const char *path)
{
	must(move_mount(mountfd, "", rootfd, path, MOVE_MOUNT_F_EMPTY_PATH), path);
}

static void make_dev(void)
{
	static const char *options[][2] = {{"mode", "0755"}, {"size", "64k"}, {NULL, NULL}};
	static const struct {
		const char *name;
		unsigned major, minor;
	} nodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
	             {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
	static const char *const links[][2] = {{"pts/ptmx", "ptmx"},
	                                       {"/proc/self/fd", "fd"},
	                                       {"/proc/self/fd/0", "stdin"},
	                                       {"/proc/self/fd/1", "stdout"},
	                                       {"/proc/self/fd/2", "stderr"}};
	static const char *const directories[] = {"pts", "shm", "mqueue"};

	devfd = mount_of("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	for (size_t i = 0; i < COUNT(nodes); i++)
		must(mknodat(devfd, nodes[i].name, S_IFCHR | 0666,
		             makedev(nodes[i].major, nodes[i].minor)),
		     nodes[i].name);
	for (size_t i = 0; i < COUNT(links); i++)
		must(symlinkat(links[i][0], devfd, links[i][1]), links[i][1]);
	for (size_t i = 0; i < COUNT(directories); i++)
		must(mkdirat(devfd, directories[i], 0755), directories[i]);
}

/* A copy of TEMPLATE, which has all that make_disk makes, on a loop device: AgentDock's way. */
static int make_disk_of(const char *template)
{
	static const char *const flags[] = {"noinit_itable", "nobarrier", "noauto_da_alloc"};
	struct loop_config config = {.block_size = 4096, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
	int controlfd = must(open("/dev/loop-control", O_RDWR | O_CLOEXEC), "/dev/loop-control");
	int templatefd = must(open(template, O_RDONLY | O_CLOEXEC), template);
	int imagefd = must(open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), "/var/tmp");
	off_t size = lseek(templatefd, 0, SEEK_END), start = 0, end;
	char path[32];
	int loopfd, fsfd, fd;

	must(ftruncate(imagefd, size), "truncate");
	snprintf(path, sizeof path, "/dev/loop%d",
	         must(ioctl(controlfd, LOOP_CTL_GET_FREE), "free"));
	loopfd = must(open(path, O_RDWR | O_CLOEXEC), path);
	config.fd = (uint32_t)imagefd;
	must(ioctl(loopfd, LOOP_CONFIGURE, &config), "LOOP_CONFIGURE");
	while ((start = lseek(templatefd, start, SEEK_DATA)) >= 0) {
		static char block[16384];

		end = lseek(templatefd, start, SEEK_HOLE);
		for (ssize_t n; start < end; start += n) {
			n = pread(templatefd, block, sizeof block, start);
			must((int)pwrite(loopfd, block, (size_t)n, start), "copying the template");
		}
	}
	fsfd = must(fsopen("ext4", FSOPEN_CLOEXEC), "ext4");
	set(fsfd, "source", path);
	for (size_t i = 0; i < COUNT(flags); i++)
		must(fsconfig(fsfd, FSCONFIG_SET_FLAG, flags[i], NULL, 0), flags[i]);
	fd = make_mount(fsfd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
	must(fchownat(fd, "upper", BASE, BASE, 0), "upper");
	must(fchownat(fd, "upper/workspace", BASE + USER, BASE + USER, 0), "upper/workspace");
	close(loopfd);
	close(controlfd);
	return fd;
}

static int make_disk(void)
{
	static const char *options[][2] = {
		{"mode", "0755"}, {"size", "1g"}, {"nr_inodes", "200003"}, {NULL, NULL}};
	int fd = mount_of("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	must(mkdirat(fd, "upper", 0755), "upper");
	must(mkdirat(fd, "work", 0700), "work");
	must(fchownat(fd, "upper", BASE, BASE, 0), "upper");
	must(mkdirat(fd, "upper/workspace", 0755), "upper/workspace");
	must(fchownat(fd, "upper/workspace", BASE + USER, BASE + USER, 0), "upper/workspace");
	return fd;
}

static int stack_overlay(int layerfd, int diskfd, int usernsfd)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	                    MOUNT_ATTR_IDMAP,
		.userns_fd = (unsigned)usernsfd,
	};
	int upperfd = must(openat(diskfd, "upper", O_PATH | O_CLOEXEC), "upper");
	int workfd = must(openat(diskfd, "work", O_PATH | O_CLOEXEC), "work");
	int fsfd = must(fsopen("overlay", FSOPEN_CLOEXEC), "overlay");

	must(mount_setattr(layerfd, "", AT_EMPTY_PATH, &attributes, sizeof attributes), "idmap");
	must(fsconfig(fsfd, FSCONFIG_SET_FD, "lowerdir+", NULL, layerfd), "lowerdir");
	must(fsconfig(fsfd, FSCONFIG_SET_FD, "upperdir", NULL, upperfd), "upperdir");
	must(fsconfig(fsfd, FSCONFIG_SET_FD, "workdir", NULL, workfd), "workdir");
	must(fsconfig(fsfd, FSCONFIG_SET_FLAG, "volatile", NULL, 0), "volatile");
	return make_mount(fsfd, 0);
}

static bool cover(const char *source, const char *path)
{
	if (mount(source, path, NULL, MS_BIND, NULL) == 0)
		return true;
	if (errno != ENOENT)
		die(path);
	return false;
}

/* Those of runtime-spec that most kernels have, and what AgentDock adds to them. */
static void cover_proc(void)
{
	static const char *const files[] = {
		"kcore",        "keys",       "key-users",   "timer_list",  "interrupts",
		"partitions",   "diskstats",  "softirqs",    "zoneinfo",    "buddyinfo",
		"consoles",     "misc",       "config.gz",   "kallsyms",    "kmsg",
		"kpagecount",   "kpageflags", "kpagecgroup", "vmallocinfo", "slabinfo",
		"pagetypeinfo", "iomem",      "ioports",     "modules",     "mtrr",
		"cmdline",
	};
	static const char *const directories[] = {"acpi", "driver", "fs", "irq", "scsi"};
	static const char *options[][2] = {{"nr_inodes", "1"}, {"mode", "0555"}, {NULL, NULL}};
	int procfd = must(openat(rootfd, "proc", O_PATH | O_CLOEXEC), "proc");
	int emptyfd = mount_of("tmpfs", options, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID);
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	static const char *const write_protected[] = {"sys", "sysrq-trigger"};

	must(fchdir(procfd), "proc");
	for (size_t i = 0; i < COUNT(files); i++)
		cover("../dev/null", files[i]);
	must(move_mount(emptyfd, "", procfd, "bus", MOVE_MOUNT_F_EMPTY_PATH), "bus");
	for (size_t i = 0; i < COUNT(directories); i++)
		cover("bus", directories[i]);
	for (size_t i = 0; i < COUNT(write_protected); i++)
		if (cover(write_protected[i], write_protected[i]))
			must(mount_setattr(procfd, write_protected[i], 0, &read_only,
			                   sizeof read_only),
			     "ro");
}

/* ---- inside ---- */

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo"};
	int fd = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");

	request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
	must(ioctl(fd, SIOCSIFFLAGS, &request), "loopback");
	close(fd);
}

static void drop_everything(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	const struct sock_fprog filter = {
		.len = COUNT(default_instructions),
		.filter = (struct sock_filter *)(uintptr_t)default_instructions,
	};

	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	must(prctl(PR_SET_SECUREBITS, 0xef), "securebits");
	must(syscall(SYS_setgroups, 0, NULL), "setgroups");
	must(syscall(SYS_setresgid, USER, USER, USER), "setresgid");
	must(syscall(SYS_setresuid, USER, USER, USER), "setresuid");
	must(syscall(SYS_capset, &header, none), "capset");
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	must(chdir("/workspace"), "/workspace");
	must(close_range(3, ~0U, CLOSE_RANGE_UNSHARE), "close_range");
	must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter), "seccomp");
}

static void inside(void)
{
	static const char *pts_options[][2] = {
		{"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"}, {NULL, NULL}};
	static const char *shm_options[][2] = {{"size", "64m"}, {"mode", "1777"}, {NULL, NULL}};
	static char path[] = "PATH=/bin", home[] = "HOME=/workspace", ci[] = "CI=true";
	static char *const envp[] = {path, home, ci, NULL};
	char *const argv[] = {program, NULL};
	unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	int procfd, ptsfd, shmfd, mqueuefd, fsfd;

	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "pdeathsig");
	setsid();
	must(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS), "unshare");
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
	must(sethostname("sandbox", 7), "sethostname");
	loopback_up();
	await(MAPPED);
	for (int i = 1; i < trees_count; i++)
		must(write(group_tasks[i], "0", 1), "joining a group");
	must(unshare(CLONE_NEWCGROUP), "cgroup namespace");
	must(syscall(SYS_setresgid, 0, 0, 0), "setresgid");
	must(syscall(SYS_setresuid, 0, 0, 0), "setresuid");
	procfd = mount_of("proc", NULL, attributes);
	fsfd = must(fsopen("devpts", FSOPEN_CLOEXEC), "devpts");
	for (int i = 1; pts_options[i][0]; i++)
		set(fsfd, pts_options[i][0], pts_options[i][1]);
	ptsfd = make_mount(fsfd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	shmfd = mount_of("tmpfs", shm_options, attributes);
	mqueuefd = mount_of("mqueue", NULL, attributes);
	await(ROOT_READY);
	must(move_mount(rootfd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH), "root");
	attach(procfd, "proc");
	attach(devfd, "dev");
	attach(ptsfd, "dev/pts");
	attach(shmfd, "dev/shm");
	attach(mqueuefd, "dev/mqueue");
	if (covers_proc)
		cover_proc();
	must(fchdir(rootfd), "root");
	must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
	must(umount2(".", MNT_DETACH), "the old root");
	drop_everything();
	execve(program, argv, envp);
	die(program);
}

/* ---- outside ---- */

static pid_t clone_sharing(const struct clone_args *args)
{
	long result;

	__asm__ volatile("syscall\n"
	                 "	testq %%rax, %%rax\n"
	                 "	jnz 1f\n"
	                 "	xorl %%ebp, %%ebp\n"
	                 "	call *%[run]\n"
	                 "	hlt\n"
	                 "1:"
	                 : "=a"(result)
	                 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args), [run] "r"(inside)
	                 : "rcx", "r11", "memory");
	if (result < 0)
		errno = (int)-result;
	return (pid_t)result;
}

static void map_ids(int procfd)
{
	char line[32];

	snprintf(line, sizeof line, "0 %d %d", BASE, RANGE);
	write_at(procfd, "uid_map", line);
	write_at(procfd, "gid_map", line);
}

int main(int argc, char *argv[])
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_FILES | CLONE_INTO_CGROUP | CLONE_NEWUSER | CLONE_NEWPID,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)child_stack,
		.stack_size = sizeof child_stack,
	};
	int procfd, usernsfd, diskfd, layerfd, status, v2fd, option;
	const char *template = NULL;
	char path[32];
	pid_t pid;

	while ((option = getopt(argc, argv, "md:")) != -1) {
		covers_proc |= option == 'm';
		if (option == 'd')
			template = optarg;
	}
	if (argc - optind != 2) {
		fputs("usage: floor [-m] [-d TEMPLATE] LAYER PROGRAM\n", stderr);
		return 125;
	}
	program = argv[optind + 1];
	umask(0);
	parents_open();
	v2fd = group_make(0);
	args.cgroup = (unsigned)v2fd;
	pid = must(clone_sharing(&args), "clone3");
	child_pid = pid;

	snprintf(path, sizeof path, "/proc/%d", pid);
	procfd = must(open(path, O_PATH | O_CLOEXEC), path);
	map_ids(procfd);
	usernsfd = must(openat(procfd, "ns/user", O_RDONLY | O_CLOEXEC), "ns/user");
	limit_groups(v2fd);
	reach(MAPPED);
	diskfd = template ? make_disk_of(template) : make_disk();
	layerfd = must(open_tree(AT_FDCWD, argv[optind], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
	               argv[optind]);
	rootfd = stack_overlay(layerfd, diskfd, usernsfd);
	make_dev();
	reach(ROOT_READY);
	if (waitpid(pid, &status, 0) < 0)
		die("waitpid");
	groups_remove();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
