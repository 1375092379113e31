/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confinement of this process, in an order that matters: rlimits, namespaces and the new root while
 * there is still a privilege to make them with, then capabilities, no_new_privs, Landlock, and the
 * system call filter, which forbids all that came before it.
 *
 * The filter refuses to open anything relative to the working directory (AT_FDCWD): only this
 * program's own code names a directory descriptor, so that a library that would look for a
 * configuration file or a module (iconv does) finds none in a tree that the archive wrote.
 */
#include "archive/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/landlock.h"
#include "base/strings.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

enum {
	NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
	OPEN_FILES_MAX = 256,
	PLAN_SECONDS = 30,
	/* xz and zstd ask for what the archive's header says, up to gigabytes */
	MEMORY_MAX = 512 << 20,
	/* the result and the message may go to a file as well */
	FILE_SIZE_MIN = 64 << 10,
};

#define LANDLOCK_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_WRITE                                                                             \
	(LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |                             \
	 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                          \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM | \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE)

/* What any of the verbs calls: memory, open descriptors, its own end. */
static const int calls_common[] = {
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(lseek),
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(getrandom),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
#ifdef SANITIZED
	SCMP_SYS(sigaltstack),
#endif
	-1,
};
static const int calls_pack[] = {
	SCMP_SYS(openat2),
	SCMP_SYS(getdents64),
	SCMP_SYS(readlinkat),
	SCMP_SYS(flistxattr),
	SCMP_SYS(fgetxattr),
	SCMP_SYS(fcntl),
	-1,
};
static const int calls_unpack[] = {
	SCMP_SYS(openat2),
	SCMP_SYS(mkdirat),
	SCMP_SYS(linkat),
	SCMP_SYS(symlinkat),
	SCMP_SYS(unlinkat),
	SCMP_SYS(fchmod),
	SCMP_SYS(fchown),
	SCMP_SYS(fchownat),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fsetxattr),
	SCMP_SYS(pwrite64),
	SCMP_SYS(utimensat),
	-1,
};
static const int calls_plan[] = {SCMP_SYS(openat2), -1};
static const int calls_none[] = {-1};

static const int caps_image[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,
                                 CAP_FSETID, CAP_SETFCAP,      -1};
static const int caps_pack[] = {CAP_DAC_READ_SEARCH, -1};
static const int caps_none[] = {-1};

static const struct walls {
	bool namespaces;
	bool may_be_missing; /* another wall stands around us already */
	bool beneath_cwd;
	bool makes_fifos, makes_whiteouts;
	const int *caps;
	const int *calls;
	uint64_t landlock;
} all_walls[] = {
	[CONFINE_PACK] = {.caps = caps_pack, .calls = calls_pack, .landlock = LANDLOCK_READ},
	[CONFINE_CAT] = {.caps = caps_none, .calls = calls_none},
	[CONFINE_CHECKOUT] = {.may_be_missing = true,
                              .beneath_cwd = true,
                              .caps = caps_image,
                              .calls = calls_unpack,
                              .landlock = LANDLOCK_WRITE},
	[CONFINE_IMAGE] = {.namespaces = true,
                           .beneath_cwd = true,
                           .makes_fifos = true,
                           .caps = caps_image,
                           .calls = calls_unpack,
                           .landlock = LANDLOCK_WRITE},
	[CONFINE_LAYER] = {.namespaces = true,
                           .beneath_cwd = true,
                           .makes_fifos = true,
                           .makes_whiteouts = true,
                           .caps = caps_image,
                           .calls = calls_unpack,
                           .landlock = LANDLOCK_WRITE | LANDLOCK_ACCESS_FS_MAKE_CHAR},
	[CONFINE_PLAN] = {.caps = caps_pack, .calls = calls_plan, .landlock = LANDLOCK_READ},
};

static int lower_limit(int resource, const char *name, rlim_t wanted, struct err *e)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return err_sys(e, "reading the %s limit", name);
	/* only ever down: raising a hard limit would need a privilege */
	if (limit.rlim_max > wanted)
		limit.rlim_max = wanted;
	if (limit.rlim_cur > limit.rlim_max || resource == RLIMIT_NOFILE)
		limit.rlim_cur = limit.rlim_max;
	if (setrlimit(resource, &limit) < 0)
		return err_sys(e, "lowering the %s limit", name);
	return 0;
}

#ifdef SANITIZED
/* The address space cannot be limited, because the shadow memory takes terabytes of it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=512";
}
#endif

static int limit_resources(enum confinement kind, uint64_t limit_bytes, struct err *e)
{
	/* a write beyond the limit is to be an error with a name, not a death by signal */
	signal(SIGXFSZ, SIG_IGN);
	TRY(lower_limit(RLIMIT_CORE, "core", 0, e));
	/* documents whose keys fall on one place of a hash */
	if (kind == CONFINE_PLAN)
		TRY(lower_limit(RLIMIT_CPU, "CPU time", PLAN_SECONDS, e));
	TRY(lower_limit(RLIMIT_NOFILE, "nofile", OPEN_FILES_MAX, e));
#ifndef SANITIZED
	TRY(lower_limit(RLIMIT_AS, "address space", MEMORY_MAX, e));
#endif
	return lower_limit(RLIMIT_FSIZE, "fsize",
	                   limit_bytes > FILE_SIZE_MIN ? limit_bytes : FILE_SIZE_MIN, e);
}

/* A map of a user namespace: every id of the present one onto itself. */
struct id_map {
	const char *file;
	char text[1024];
};

static int read_map(int procfd, struct id_map *map, struct err *e)
{
	char present[1024], *at = present, *line;
	size_t used = 0;

	TRY((int)file_read(procfd, map->file, present, sizeof present, e));
	/* lines of: first id inside, first id outside, how many */
	while ((line = strsep(&at, "\n")) && *line) {
		unsigned long inside = strtoul(line, &line, 10);
		unsigned long count;
		int length;

		strtoul(line, &line, 10);
		count = strtoul(line, &line, 10);
		length = text_format(map->text + used, sizeof map->text - used, e, "%lu %lu %lu\n",
		                     inside, inside, count);
		TRY(length);
		used += (size_t)length;
	}
	if (!used)
		return err_set(e, EPERM, "%s is empty: this process has no ids to give", map->file);
	return 0;
}

/* The child: it has stayed in the old user namespace, whose privilege the maps need. */
static int write_maps(int procfd, int gofd, const struct id_map maps[2], struct err *e)
{
	char go;

	if (read(gofd, &go, 1) != 1)
		return err_set(e, ECANCELED, "no namespace to map ids in");
	for (int i = 0; i < 2; i++)
		TRY(file_write(procfd, maps[i].file, maps[i].text, e));
	return 0;
}

/* Unshares once the child stands ready, tells it, and waits for what it did. */
static int unshare_and_map(pid_t child, int gofd, struct err *e)
{
	int status, result = unshare(NAMESPACES);

	if (result < 0)
		err_sys(e, "unshare (user, mount, network, ipc, uts namespaces)");
	else
		result = fd_write_all(gofd, "", 1, e);
	close(gofd);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "waiting for the process that maps ids");
	if (result < 0)
		return err_hint(e, "images are unpacked in a user namespace of their own: see "
		                   "user.max_user_namespaces in sysctl");
	if (status != 0)
		return err_set(e, EPERM,
		               "mapping the ids of the user namespace failed%s%s; run as root",
		               WIFEXITED(status) ? ": " : "",
		               WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "");
	return 0;
}

static int enter_namespaces(struct err *e)
{
	scoped_fd procfd = file_open(AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY, 0, e);
	struct id_map maps[2] = {{.file = "uid_map"}, {.file = "gid_map"}};
	int pipefds[2];
	pid_t child;

	TRY(procfd);
	for (int i = 0; i < 2; i++)
		TRY(read_map(procfd, &maps[i], e));
	if (pipe2(pipefds, O_CLOEXEC) < 0)
		return err_sys(e, "a pipe");
	scoped_fd readfd = pipefds[0], writefd = pipefds[1];

	child = fork();
	if (child < 0)
		return err_sys(e, "fork");
	if (child == 0) {
		close_fd(&writefd);
		_exit(-write_maps(procfd, readfd, maps, e) & 0xff);
	}
	return unshare_and_map(child, take_fd(&writefd), e);
}

/* Makes the working directory the root; nothing else is mounted afterwards. */
static int pivot_to_cwd(struct err *e)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	                                      MOUNT_ATTR_NOEXEC};
	scoped_fd treefd = -1;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "making mounts private");
	treefd = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (treefd < 0)
		return err_sys(e, "cloning the mount of the working directory");
	if (mount_setattr(treefd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0)
		return err_sys(e, "nosuid, nodev, noexec on the new root");
	if (move_mount(treefd, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "attaching the new root");
	if (fchdir(treefd) < 0)
		return err_sys(e, "entering the new root");
	/* the old root is stacked over the new one, where "." finds it */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(e, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys(e, "detaching the old root");
	if (chdir("/") < 0)
		return err_sys(e, "entering /");
	return 0;
}

static int drop_capabilities(const struct walls *walls, struct err *e)
{
	cap_t had = cap_get_proc(), caps = cap_init();
	cap_flag_value_t permitted, may_bound;
	bool keep[CAP_LAST_CAP + 1] = {false};
	int result = 0;

	if (!had || !caps)
		return err_sys(e, "reading capabilities");
	for (const int *cap = walls->caps; *cap >= 0; cap++)
		keep[*cap] = true;
	cap_get_flag(had, CAP_SETPCAP, CAP_EFFECTIVE, &may_bound);
	for (cap_value_t cap = 0; cap < cap_max_bits() && result == 0; cap++) {
		bool kept = cap <= CAP_LAST_CAP && keep[cap];

		/* without CAP_SETPCAP the set stays: it only matters to an exec, which the filter
		 * forbids */
		if (!kept && may_bound == CAP_SET && cap_drop_bound(cap) < 0)
			result = err_sys(e, "dropping capability %d from the bounding set", cap);
		if (kept && cap_get_flag(had, cap, CAP_PERMITTED, &permitted) == 0 &&
		    permitted == CAP_SET) {
			cap_set_flag(caps, CAP_PERMITTED, 1, &cap, CAP_SET);
			cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_SET);
		}
	}
	if (result == 0 && cap_set_proc(caps) < 0)
		result = err_sys(e, "dropping capabilities");
	cap_free(had);
	cap_free(caps);
	return result;
}

static int restrict_files(const struct walls *walls, int dirfd, struct err *e)
{
	const struct landlock_rule rule = {.parentfd = dirfd, .allowed = walls->landlock};
	int abi = landlock_restrict(&rule, walls->landlock ? 1 : 0, e);

	return abi < 0 ? abi : 0;
}

static int filter_rules(scmp_filter_ctx filter, const struct walls *walls)
{
	const int *const lists[] = {calls_common, walls->calls};
	/* file descriptors only: AT_FDCWD is negative */
	const struct scmp_arg_cmp is_fd = SCMP_A0(SCMP_CMP_MASKED_EQ, 0x80000000U, 0);
	const struct scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	const struct scmp_arg_cmp fifo = SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFIFO);
	const struct scmp_arg_cmp device = SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFCHR);
	const struct scmp_arg_cmp zero = SCMP_A3(SCMP_CMP_MASKED_EQ, 0xffffffffU, 0);
	int result = 0;

	for (size_t i = 0; i < 2; i++)
		for (const int *call = lists[i]; *call != -1 && result == 0; call++)
			result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, *call, 0);
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, no_exec);
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, no_exec);
	if (result == 0 && walls->beneath_cwd)
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, is_fd);
	if (result == 0 && walls->makes_fifos)
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mknodat), 1, fifo);
	if (result == 0 && walls->makes_whiteouts)
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mknodat), 2, device,
		                          zero);
	return result;
}

static int filter_calls(const struct walls *walls, struct err *e)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int result;

	if (!filter)
		return err_set(e, ENOMEM, "making a system call filter");
	/* of the kernel's errno seccomp_load makes ECANCELED otherwise */
	result = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (result == 0)
		result = filter_rules(filter, walls);
	if (result < 0)
		err_set(e, -result, "composing the system call filter: %s", strerror(-result));
	if (result == 0 && (result = seccomp_load(filter)) < 0) {
		if (walls->may_be_missing)
			result = 0;
		else
			err_set(e, -result, "installing the system call filter: %s",
			        strerror(-result));
	}
	seccomp_release(filter);
	return result;
}

static int die_with_parent(struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(e, "PR_SET_PDEATHSIG");
	return 0;
}

int confine_self(enum confinement kind, int dirfd, uint64_t limit_bytes, int *rootfd, struct err *e)
{
	const struct walls *walls = &all_walls[kind];
	pid_t parent = getppid();
	scoped_fd cwdfd = -1;

	TRY(die_with_parent(e));
	if (getppid() != parent)
		return err_set(e, ECANCELED, "the parent has gone");
	TRY(limit_resources(kind, limit_bytes, e));
	if (walls->namespaces) {
		TRY(enter_namespaces(e));
		if (setgroups(0, NULL) < 0)
			return err_sys(e, "dropping supplementary groups");
		TRY(pivot_to_cwd(e));
	}
	if (walls->beneath_cwd)
		TRY(cwdfd = file_open(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0, e));
	TRY(drop_capabilities(walls, e));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	TRY(restrict_files(walls, walls->beneath_cwd ? cwdfd : dirfd, e));
	/* a change of credentials has cleared it */
	TRY(die_with_parent(e));
	if (getppid() != parent)
		return err_set(e, ECANCELED, "the parent has gone");
	TRY(filter_calls(walls, e));
	*rootfd = take_fd(&cwdfd);
	return 0;
}
