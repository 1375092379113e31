/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespaces of a container's first process, and of one that is added: which are joined, which are
 * new, and in what order. namespaces(7), user_namespaces(7), clone(2), setns(2).
 *
 *  - A pid namespace is entered only by being born there, and a namespace that is another's must be
 *    entered before one gives up the privilege for it by a user namespace. Where either is the case a
 *    process goes ahead, joins, and clones the inside as our child (CLONE_PARENT), so that who waits
 *    for it and dies with it is the same in each case.
 *  - A cgroup namespace is joined by the inside itself: who is in one can be cloned only into groups
 *    beneath its root, and its own group is not.
 *  - What is new, and need not be cloned into, is made inside, by the root of the new user namespace, whom
 *    the kernel makes the owner of an IPC namespace's message queues, and while we go on.
 *  - Nobody who shares a namespace with us can read or trace us (PR_SET_DUMPABLE off): our files in
 *    /proc are root's, and we are root until we change user. Who makes a user namespace without that
 *    is dumpable until then, for its files in /proc would not be its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"

/* In the order in which they are joined: the user namespace last, with the privilege of all before. */
static const struct namespace_type {
	int flag;
	const char *name, *file;
} types[NAMESPACES] = {
	{CLONE_NEWPID, "pid", "pid"},          {CLONE_NEWNET, "network", "net"},
	{CLONE_NEWIPC, "ipc", "ipc"},          {CLONE_NEWUTS, "uts", "uts"},
	{CLONE_NEWNS, "mount", "mnt"},         {CLONE_NEWUSER, "user", "user"},
	{CLONE_NEWCGROUP, "cgroup", "cgroup"}, {CLONE_NEWTIME, "time", "time"},
};

/* See above. */
enum { JOINED_INSIDE = CLONE_NEWCGROUP };

bool has_new_namespace(const struct oci_config *config, int type)
{
	const struct oci_namespace *namespace = oci_config_namespace(config, type);

	return namespace && !namespace->path;
}

static unsigned all_flags(const struct oci_config *config)
{
	unsigned flags = 0;

	for (size_t i = 0; i < config->linux_part->namespaces.count; i++)
		flags |= (unsigned)config->linux_part->namespaces.items[i].type;
	return flags;
}

static unsigned new_flags(const struct container *container)
{
	const struct oci_namespaces *list = &container->config->linux_part->namespaces;
	unsigned flags = 0;

	for (size_t i = 0; !container->joins && i < list->count; i++)
		if (!list->items[i].path)
			flags |= (unsigned)list->items[i].type;
	return flags;
}

/* ---- which are joined ---- */

static int refused(const char *what, struct err *e)
{
	err_sys(e, "%s", what);
	if (e->code == ENOSPC || e->code == EUSERS)
		return err_hint(
			e, "a limit in /proc/sys/user/max_*_namespaces is reached or 0: raise it");
	if (e->code == EINVAL)
		return err_hint(e, "this kernel was built without one that is asked for");
	if (e->code == EPERM)
		return err_hint(e, "run as root, or name a new user namespace in linux.namespaces");
	return -e->code;
}

static int check_type(int fd, const char *path, const struct namespace_type *type, struct err *e)
{
	struct statfs st;
	int found;

	if (fstatfs(fd, &st))
		return err_sys(e, "%s", path);
	found = st.f_type == NSFS_MAGIC ? ioctl(fd, NS_GET_NSTYPE) : 0;
	if (found != type->flag)
		return err_set(e, EINVAL, "%s is not a %s namespace", path, type->name);
	return 0;
}

/* setns(2) refuses a user namespace that one is in. */
static int is_own(int fd, int hostprocfd, const char *file, struct err *e)
{
	char path[32];
	struct stat own, other;

	snprintf(path, sizeof path, "self/ns/%s", file);
	if (fstatat(hostprocfd, path, &own, 0) || fstat(fd, &other))
		return err_sys(e, "comparing namespaces");
	return own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static int open_by_path(struct container *container, const struct oci_namespace *namespace,
                        struct err *e)
{
	scoped_fd fd = file_open(AT_FDCWD, namespace->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, e);
	int own = 0, i = 0;

	TRY(fd);
	while (types[i].flag != namespace->type)
		i++;
	TRY(check_type(fd, namespace->path, &types[i], e));
	if (types[i].flag == CLONE_NEWUSER)
		TRY(own = is_own(fd, container->hostprocfd, types[i].file, e));
	if (!own)
		container->nsfds[i] = take_fd(&fd);
	return 0;
}

int has_own_namespace(const struct container *container, int type, struct err *e)
{
	const struct oci_namespace *namespace = oci_config_namespace(container->config, type);
	int own, i = 0;

	if (!namespace || !namespace->path)
		return namespace != NULL;
	while (types[i].flag != type)
		i++;
	TRY(own = is_own(container->nsfds[i], container->hostprocfd, types[i].file, e));
	return !own;
}

/* From here on, and so is each child, also one that only lends its user namespace. */
static int hide(struct err *e)
{
	if (geteuid() != 0 || !process_has_host_ids() || prctl(PR_SET_DUMPABLE, 0) == 0)
		return 0;
	return err_sys(e, "prctl(PR_SET_DUMPABLE)");
}

OUTSIDE(open_namespaces)
{
	TRY(hide(e));
	const struct oci_namespaces *list = &container->config->linux_part->namespaces;

	container->hostprocfd = file_open(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0, e);
	TRY(container->hostprocfd);
	for (size_t i = 0; i < list->count && !container->joins; i++)
		if (list->items[i].path && open_by_path(container, &list->items[i], e) < 0)
			return err_in(e, "linux.namespaces[%zu].path", i);
	return 0;
}

/* Of the container that exec joins; not its user namespace, where that is ours. */
static int target_flags(const struct container *container, unsigned *flags, struct err *e)
{
	char path[32];
	struct stat own, other;

	*flags = all_flags(container->config);
	if (!(*flags & CLONE_NEWUSER))
		return 0;
	snprintf(path, sizeof path, "%d/ns/user", container->entry->record.pid);
	if (fstatat(container->hostprocfd, "self/ns/user", &own, 0) ||
	    fstatat(container->hostprocfd, path, &other, 0))
		return err_sys(e, "comparing user namespaces");
	if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
		*flags &= ~(unsigned)CLONE_NEWUSER;
	return 0;
}

static unsigned joined_flags(const struct container *container)
{
	unsigned flags = 0;

	for (int i = 0; i < NAMESPACES; i++)
		if (container->nsfds[i] >= 0)
			flags |= (unsigned)types[i].flag;
	return flags;
}

static int join(const struct container *container, unsigned flags, struct err *e)
{
	if (container->joins) {
		if (flags && setns(container->targetfd, (int)flags))
			return refused("joining the container's namespaces", e);
		return 0;
	}
	for (int i = 0; i < NAMESPACES; i++) {
		char what[64];

		if (container->nsfds[i] < 0 || !(flags & (unsigned)types[i].flag))
			continue;
		snprintf(what, sizeof what, "joining the %s namespace of linux.namespaces",
		         types[i].name);
		if (setns(container->nsfds[i], types[i].flag))
			return refused(what, e);
	}
	return 0;
}

INSIDE(join_namespaces)
{
	return join(in->container, in->joins, e);
}

/* ---- the clone ---- */

/* The one that goes ahead. It lies in memory that it and we share, all else is a copy of ours. */
struct forerunner {
	struct container *container;
	struct clone_args args;
	unsigned joins, joins_inside;
	int pidfd;
	pid_t pid;        /* 0: it did not get there */
	struct err error; /* code 0: none */
};

static _Noreturn void run_ahead(struct forerunner *ahead)
{
	pid_t pid;

	if (join(ahead->container, ahead->joins, &ahead->error) < 0)
		_exit(1);
	pid = process_clone3(&ahead->args);
	if (pid == 0)
		score_play_inside(ahead->container, ahead->joins_inside);
	ahead->pid = pid;
	_exit(0);
}

/* Its table of descriptors is ours, so that the pidfd is in there. */
static int send_ahead(struct forerunner *ahead, struct err *e)
{
	const struct clone_args args = {.flags = CLONE_FILES, .exit_signal = SIGCHLD};
	pid_t pid;

	ahead->args.flags |= CLONE_PARENT;
	ahead->args.exit_signal = 0; /* as its own: SIGCHLD */
	pid = process_clone3(&args);
	if (pid == 0)
		run_ahead(ahead);
	if (pid < 0) {
		errno = -pid;
		return err_sys(e, "making a process that joins namespaces");
	}
	process_end(&pid, false);
	if (ahead->error.code) {
		*e = ahead->error;
		return -e->code;
	}
	return ahead->pid ? 0 : err_set(e, ECHILD, "the process that joins namespaces was killed");
}

/* The others are made inside, see above. */
enum { AT_CLONE = CLONE_NEWUSER | CLONE_NEWPID };

static int open_channel(struct container *container, struct err *e)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_sys(e, "socketpair");
	container->channelfd = ends[0];
	container->inside_channelfd = ends[1];
	return 0;
}

static int clone_it(struct container *container, struct forerunner *ahead, struct err *e)
{
	unsigned fresh = new_flags(container), joined = joined_flags(container);
	pid_t pid;

	if (container->joins)
		TRY(target_flags(container, &joined, e));
	ahead->args.flags = CLONE_PIDFD | (fresh & (unsigned)AT_CLONE);
	if (container->group.v2fd >= 0 && !container->joins_later) {
		ahead->args.flags |= CLONE_INTO_CGROUP;
		ahead->args.cgroup = (unsigned)container->group.v2fd;
	}
	ahead->joins = joined & ~(unsigned)JOINED_INSIDE;
	ahead->joins_inside = joined & JOINED_INSIDE;
	if ((joined & (CLONE_NEWPID | CLONE_NEWUSER)) || ((fresh & CLONE_NEWUSER) && ahead->joins))
		return send_ahead(ahead, e);
	pid = process_clone3(&ahead->args);
	if (pid == 0)
		score_play_inside(container, joined);
	ahead->pid = pid; /* here, where the inside does not come: the memory is shared */
	return 0;
}

static int clone_with_forerunner(struct container *container, struct err *e)
{
	struct forerunner *ahead = mmap(NULL, sizeof *ahead, PROT_READ | PROT_WRITE,
	                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (ahead == MAP_FAILED)
		return err_sys(e, "mmap");
	ahead->container = container;
	ahead->pidfd = -1;
	ahead->args.pidfd = (uintptr_t)&ahead->pidfd;
	ahead->args.exit_signal = SIGCHLD;
	r = clone_it(container, ahead, e);
	container->pid = ahead->pid;
	container->pidfd = ahead->pidfd;
	munmap(ahead, sizeof *ahead);
	if (r == 0 && container->pid < 0) {
		errno = -container->pid;
		r = refused("making the container's first process", e);
	}
	return r;
}

/*
 * Linux 6.14 to 6.18 at least kill who is cloned into a group by one whose own group was ever killed
 * (cgroup.kill). container_build plays again then, with JOINS_LATER.
 */
OUTSIDE(clone_inside)
{
	char pid[16];
	int r;

	TRY(open_channel(container, e));
	/* without privileges in a new user namespace not before "user ids", see above */
	if (!(new_flags(container) & CLONE_NEWUSER) && prctl(PR_SET_DUMPABLE, 0))
		return err_sys(e, "prctl(PR_SET_DUMPABLE)");
	r = clone_with_forerunner(container, e);
	if (r == -EACCES && container->group.manager == GROUP_SYSTEMD) {
		container->joins_later = true; /* systemd may move whom we may not */
		r = clone_with_forerunner(container, e);
	}
	TRY(r);
	close_fd(&container->inside_channelfd);
	close_fd(&container->gatefd);
	close_fd(&container->consolefd);
	snprintf(pid, sizeof pid, "%d", container->pid);
	container->procfd = file_open(container->hostprocfd, pid, O_PATH | O_DIRECTORY, 0, e);
	return container->procfd < 0 ? container->procfd : 0;
}

/* ---- new ones, inside ---- */

/* After "cgroup membership", to which they are charged, and "user ids", to whose root they belong. */
INSIDE(new_namespaces)
{
	unsigned flags = new_flags(in->container);

	flags &= ~(unsigned)(AT_CLONE | CLONE_NEWCGROUP | CLONE_NEWTIME);
	if (flags && unshare((int)flags))
		return refused("making the container's namespaces", e);
	return 0;
}

INSIDE(own_cgroup_namespace)
{
	(void)in;
	if (unshare(CLONE_NEWCGROUP))
		return refused("making a cgroup namespace", e);
	return 0;
}

static int write_offset(int fd, const char *clock, const struct oci_time_offset *offset,
                        struct err *e)
{
	char line[96];
	int length;

	if (!offset)
		return 0;
	length = snprintf(line, sizeof line, "%s %" PRId64 " %u\n", clock, offset->secs,
	                  offset->nanosecs);
	if (write(fd, line, (size_t)length) == length)
		return 0;
	err_sys(e, "linux.timeOffsets.%s: %" PRId64 " seconds, %u nanoseconds", clock, offset->secs,
	        offset->nanosecs);
	return e->code == ERANGE ? err_hint(e, "the clock would be before 0 or beyond 146 years")
	                         : -e->code;
}

/* A process is in its new time namespace only from its next child on, or by joining it. */
INSIDE(own_time_namespace)
{
	const struct oci_time_offsets *offsets = &in->config->linux_part->time_offsets;
	scoped_fd nsfd = -1;

	if (unshare(CLONE_NEWTIME))
		return refused("making a time namespace", e);
	if (offsets->boottime || offsets->monotonic) {
		scoped_fd fd = file_open(in->hostprocfd, "self/timens_offsets", O_WRONLY, 0, e);

		TRY(fd);
		TRY(write_offset(fd, "boottime", offsets->boottime, e));
		TRY(write_offset(fd, "monotonic", offsets->monotonic, e));
	}
	nsfd = file_open(in->hostprocfd, "self/ns/time_for_children", O_RDONLY, 0, e);
	TRY(nsfd);
	return setns(nsfd, CLONE_NEWTIME) ? refused("joining the new time namespace", e) : 0;
}

/* ---- user ids ---- */

enum { MAP_BYTES = 340 * 36 }; /* as many as the kernel takes */

static int format_map(const struct oci_mappings *mappings, char *text, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < mappings->count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%u %u %u\n",
		                           mappings->items[i].container_id,
		                           mappings->items[i].host_id, mappings->items[i].size);
	return (int)length;
}

/* newuidmap PID INSIDE OUTSIDE COUNT...: set-uid, and told by /etc/subuid what is ours. */
static int map_by_tool(const struct container *container, const char *tool,
                       const struct oci_mappings *mappings, struct err *e)
{
	char numbers[MAP_BYTES], pid[16];
	const char *argv[3 * 340 + 3];
	size_t count = 0;

	format_map(mappings, numbers, sizeof numbers);
	snprintf(pid, sizeof pid, "%d", container->pid);
	argv[count++] = tool;
	argv[count++] = pid;
	for (char *word = strtok(numbers, " \n"); word; word = strtok(NULL, " \n"))
		argv[count++] = word;
	argv[count] = NULL;
	return process_run(argv, NULL, -1, -1, e);
}

static const struct id_map {
	const char *file, *tool, *key;
} uid_map = {"uid_map", "newuidmap", "linux.uidMappings"},
  gid_map = {"gid_map", "newgidmap", "linux.gidMappings"};

static int map(const struct container *container, const struct id_map *how,
               const struct oci_mappings *mappings, bool own_only, struct err *e)
{
	char text[MAP_BYTES];

	if (!mappings->count)
		return err_set(e, EINVAL,
		               "%s: is missing, and must be there for a new user namespace",
		               how->key);
	format_map(mappings, text, sizeof text);
	/* without groups to give up, gid_map takes our own one */
	if (own_only && how == &gid_map &&
	    file_write(container->procfd, "setgroups", "deny", e) < 0)
		return err_in(e, "%s", how->key);
	if (file_write(container->procfd, how->file, text, e) == 0)
		return 0;
	if (e->code != EPERM || own_only)
		return err_in(e, "%s", how->key);
	if (map_by_tool(container, how->tool, mappings, e) < 0)
		return err_in(e, "%s", how->key);
	return 0;
}

static bool is_only(const struct oci_mappings *mappings, uint32_t id)
{
	return mappings->count == 1 && mappings->items[0].size == 1 &&
	       mappings->items[0].host_id == id;
}

OUTSIDE(map_ids)
{
	const struct oci_linux *config = container->config->linux_part;
	bool own_only = geteuid() != 0 && is_only(&config->uid_mappings, geteuid()) &&
	                is_only(&config->gid_mappings, getegid());

	if (container->joins || !has_new_namespace(container->config, CLONE_NEWUSER))
		return 0;
	TRY(map(container, &uid_map, &config->uid_mappings, own_only, e));
	return map(container, &gid_map, &config->gid_mappings, own_only, e);
}

/* An id that isn't mapped is nobody's: we stay who we are, with the capabilities that we have. */
static int become(long call, const char *what, struct err *e)
{
	if (syscall(call, 0, 0, 0) && errno != EINVAL)
		return err_sys(e, "becoming %s 0 of the user namespace", what);
	return 0;
}

INSIDE(become_root)
{
	/* EPERM: the namespace says "deny", and nobody in it can have groups of others */
	if (syscall(SYS_setgroups, 0, NULL) && errno != EPERM)
		return err_sys(e, "giving up the supplementary groups");
	TRY(become(SYS_setresgid, "group", e));
	TRY(become(SYS_setresuid, "user", e));
	if (prctl(PR_SET_DUMPABLE, 0))
		return err_sys(e, "prctl(PR_SET_DUMPABLE)");
	return stay_tied(in, e);
}
