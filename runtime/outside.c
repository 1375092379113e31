/* SPDX-License-Identifier: Apache-2.0 */
/* The outside halves of the score: what only the process that holds the host can do. */
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "base/unsafe.h"
#include "rootfs/mounts.h"
#include "runtime/init_memfd.h"
#include "runtime/score.h"

OUTSIDE(make_cgroup)
{
	struct sandbox_host *host = sandbox->host;

	return cgroup_create(&sandbox->cgroup, &host->cgroups, host->cgroup_parent,
	                     sandbox->report->id, e);
}

OUTSIDE(set_limits)
{
	return cgroup_limit(&sandbox->cgroup, &sandbox->spec->limits, e);
}

OUTSIDE(open_layers)
{
	TRY(image_open(&sandbox->host->store, sandbox->spec->image, sandbox->layerfds,
	               sandbox->lockfds, e));
	sandbox->layers_count = sandbox->spec->image->layers_count;
	return 0;
}

OUTSIDE(make_disk)
{
	const struct identity *identity = &sandbox->identity;

	TRY(disk_create(sandbox->host->store.statefd, &sandbox->spec->disk, identity->host_base,
	                &sandbox->disk, e));
	return disk_own_workspace(&sandbox->disk, identity->host_base + identity->uid,
	                          identity->host_base + identity->gid, e);
}

OUTSIDE(make_devices)
{
	sandbox->handedfd = devices_create(sandbox->identity.host_base, e);
	return sandbox->handedfd < 0 ? sandbox->handedfd : 0;
}

/* A pipe whose inside end belongs to the command's user, so that it can open /dev/stdout again. */
static int user_pipe(const struct sandbox *sandbox, int *readfd, int *writefd, struct err *e)
{
	uint32_t base = sandbox->identity.host_base;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return err_sys(e, "pipe2");
	*readfd = ends[0];
	*writefd = ends[1];
	if (fchown(ends[0], base + sandbox->identity.uid, base + sandbox->identity.gid))
		return err_sys(e, "handing a pipe to the sandbox's user");
	return 0;
}

static int open_stdin(struct sandbox *sandbox, struct err *e)
{
	const char *path = sandbox->spec->stdin_path;
	struct stat status;

	if (!path)
		return 0; /* the inside opens its own /dev/null */
	if (path[0] == '-' && !path[1]) {
		sandbox->stdin_sourcefd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		if (sandbox->stdin_sourcefd < 0)
			return err_sys(e, "standard input");
	} else {
		sandbox->stdin_sourcefd = file_open(AT_FDCWD, path,
		                                    O_RDONLY | O_NOCTTY | O_NONBLOCK, 0, e);
		TRY(sandbox->stdin_sourcefd);
	}
	if (fstat(sandbox->stdin_sourcefd, &status) == 0 && S_ISDIR(status.st_mode)) {
		sandbox->fault = FAULT_GUEST;
		return err_set(e, EISDIR, "standard input '%s' is a directory; name a file", path);
	}
	TRY(user_pipe(sandbox, &sandbox->insidefds[0], &sandbox->stdin_pipefd, e));
	if (fcntl(sandbox->stdin_pipefd, F_SETFL, O_NONBLOCK))
		return err_sys(e, "fcntl");
	return 0;
}

OUTSIDE(open_streams)
{
	TRY(open_stdin(sandbox, e));
	for (int i = 0; i < 2; i++) {
		TRY(user_pipe(sandbox, &sandbox->outputfds[i], &sandbox->insidefds[i + 1], e));
		if (fcntl(sandbox->outputfds[i], F_SETFL, O_NONBLOCK))
			return err_sys(e, "fcntl");
	}
	return 0;
}

OUTSIDE(load_init)
{
	sandbox->initfd = init_memfd(e);
	return sandbox->initfd < 0 ? sandbox->initfd : 0;
}

int namespaces_refused(const char *what, struct err *e)
{
	err_sys(e, "%s", what);
	if (e->code == ENOSPC || e->code == EUSERS)
		return err_hint(
			e, "a limit in /proc/sys/user/max_*_namespaces is reached or 0: raise it");
	if (e->code == EINVAL)
		return err_hint(e, "this kernel lacks one of them; see agentdock doctor");
	return -e->code;
}

static int clone_refused(const struct sandbox *sandbox, struct err *e)
{
	namespaces_refused("making the sandbox's first process", e);
	if (e->code == EPERM)
		err_hint(e, "run as real root%s",
		         sandbox->identity.user_namespace
		                 ? ", and allow user namespaces or say --allow-missing userns"
		                 : "");
	return -e->code;
}

/*
 * The kernel charges a user namespace, and what its users hold of per-user quotas (inotify
 * instances, queued signals, message queues, ...), to the user who makes it. That must not be the
 * host's root, whose quotas all sandboxes would share: it is the first id of the slot. The
 * capabilities stay with us meanwhile (SECBIT_NO_SETUID_FIXUP), for CLONE_INTO_CGROUP.
 */
static int become_payer(uint32_t owner, struct err *e)
{
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) ||
	    syscall(SYS_setresuid, -1, owner, -1))
		return err_sys(e, "becoming user %u for the clone", owner);
	return 0;
}

static int become_ourselves(int securebits, struct err *e)
{
	if (syscall(SYS_setresuid, -1, 0, -1) || prctl(PR_SET_SECUREBITS, securebits))
		return err_sys(e, "becoming root again after the clone");
	return 0;
}

static pid_t clone_as(uint32_t owner, const struct clone_args *args, struct err *e)
{
	int securebits = prctl(PR_GET_SECUREBITS), r;
	pid_t pid;

	if (securebits < 0)
		return err_sys(e, "prctl(PR_GET_SECUREBITS)");
	r = become_payer(owner, e);
	pid = r < 0 ? r : process_clone3(args);
	if (pid == 0)
		return 0;
	if (become_ourselves(securebits, e) < 0) {
		if (pid > 0 && kill(pid, SIGKILL) == 0)
			waitpid(pid, NULL, 0);
		return -e->code;
	}
	return pid;
}

int keep_own_descriptors(const struct sandbox *sandbox, struct err *e)
{
	const struct cgroup *cgroup = &sandbox->cgroup;
	int keep[] = {
		sandbox->inside_channelfd, sandbox->insidefds[0], sandbox->insidefds[1],
		sandbox->insidefds[2],     sandbox->initfd,       sandbox->packfd,
		sandbox->archiverfd,       cgroup->v2fd,          cgroup->v1fds[0],
		cgroup->v1fds[1],          cgroup->v1fds[2],      cgroup->tasksfds[0],
		cgroup->tasksfds[1],       cgroup->tasksfds[2],
	};

	if (unsafe_without("closed descriptors"))
		return 0;
	return fds_close_others(keep, sizeof keep / sizeof *keep, e);
}

/*
 * Linux 6.14 to 6.18 at least kill who is cloned into a cgroup by one whose own cgroup was ever
 * killed (cgroup.kill): they compare how often with the cgroup that it goes to. Where that has
 * happened it joins after the clone, before it makes anything.
 */
OUTSIDE(clone_inside)
{
	bool join_later = sandbox->host->clone_into_kills;
	int ends[2];
	struct clone_args args = {
		/* the other namespaces are made inside, while we go on: see make_namespaces */
		.flags = CLONE_PIDFD | CLONE_INTO_CGROUP | CLONE_NEWPID,
		.pidfd = (uintptr_t)&sandbox->pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (unsigned)sandbox->cgroup.v2fd,
	};

	if (join_later)
		args.flags &= ~(unsigned long long)CLONE_INTO_CGROUP;
	if (sandbox->identity.user_namespace)
		args.flags |= CLONE_NEWUSER;
	if (unsafe_without("pid namespace"))
		args.flags &= ~(unsigned long long)CLONE_NEWPID;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_sys(e, "socketpair");
	sandbox->channelfd = ends[0];
	sandbox->inside_channelfd = ends[1];

	pid_t pid = sandbox->identity.user_namespace
	                    ? clone_as(sandbox->identity.host_base, &args, e)
	                    : process_clone3(&args);
	if (pid == 0)
		score_play_inside(sandbox);
	if (pid < 0) {
		errno = -pid;
		return clone_refused(sandbox, e);
	}
	sandbox->pid = pid;
	close_fd(&sandbox->inside_channelfd);
	close_fd(&sandbox->packfd);
	for (int i = 0; i < 3; i++)
		close_fd(&sandbox->insidefds[i]);

	if (join_later)
		TRY(cgroup_take_in(&sandbox->cgroup, pid, e));
	char path[32];
	snprintf(path, sizeof path, "/proc/%d", pid);
	sandbox->procfd = file_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, e);
	return sandbox->procfd < 0 ? sandbox->procfd : 0;
}

OUTSIDE(map_ids)
{
	if (!sandbox->identity.user_namespace)
		return 0;
	return identity_map_ids(sandbox->procfd, sandbox->identity.host_base, e);
}

OUTSIDE(assemble_root)
{
	scoped_fd usernsfd = -1;

	if (sandbox->identity.user_namespace) {
		usernsfd = file_open(sandbox->procfd, "ns/user", O_RDONLY, 0, e);
		TRY(usernsfd);
	}
	sandbox->handedfd = overlay_create(sandbox->layerfds, sandbox->layers_count,
	                                   sandbox->disk.mountfd, usernsfd, e);
	if (sandbox->handedfd == -EOPNOTSUPP && usernsfd >= 0)
		sandbox->again = AGAIN_WITHOUT_IDMAP;
	return sandbox->handedfd < 0 ? sandbox->handedfd : 0;
}
