/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside halves of the score, all but the last (spawn.c). They run in a child of the builder that
 * has not executed anything yet: pid 1 of the new namespaces, still trusted, with the host's mounts in
 * sight until "pivot". Nothing of the guest's runs before "exec", but the image's tree is already
 * hostile ground.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "base/unsafe.h"
#include "init/protocol.h"
#include "rootfs/landlock.h"
#include "rootfs/mounts.h"
#include "runtime/network/loopback.h"
#include "runtime/score.h"

/*
 * Our death is tied to the outside's. The kernel forgets that with each change of user, so it is
 * said again after each; the outside may have died meanwhile.
 */
static int tie_to_outside(const struct inside *in, struct err *e)
{
	struct pollfd poller = {.fd = in->channelfd, .events = 0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return err_sys(e, "prctl(PR_SET_PDEATHSIG)");
	if (poll(&poller, 1, 0) == 1 && (poller.revents & (POLLHUP | POLLERR)))
		_exit(125);
	return 0;
}

INSIDE(join_cgroup)
{
	/* first: a v1 cpu controller takes no real-time process */
	TRY(identity_forget_privileges(e));
	return cgroup_join(&in->sandbox->cgroup, e);
}

INSIDE(make_namespaces)
{
	int flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

	(void)in;
	if (unsafe_without("ipc namespace"))
		flags &= ~CLONE_NEWIPC;
	if (unshare(flags) == 0)
		return 0;
	return namespaces_refused("making the sandbox's namespaces", e);
}

INSIDE(new_session)
{
	process_default_signals();
	if (setsid() < 0)
		return err_sys(e, "setsid");
	umask(in->sandbox->identity.umask);
	return 0;
}

INSIDE(session_keyring)
{
	(void)in;
	return identity_session_keyring(e);
}

INSIDE(private_mounts)
{
	(void)in;
	return mounts_make_private(e);
}

INSIDE(set_hostname)
{
	if (sethostname(in->spec->hostname, strlen(in->spec->hostname)))
		return err_sys(e, "hostname '%s'", in->spec->hostname);
	return 0;
}

/* After "user ids", to whose root it belongs, and "cgroup membership", to which it is charged. */
INSIDE(make_network)
{
	(void)in;
	if (unsafe_without("network namespace"))
		return 0;
	if (unshare(CLONE_NEWNET))
		return namespaces_refused("making a network namespace", e);
	return loopback_up(e);
}

INSIDE(become_root)
{
	if (in->sandbox->identity.user_namespace)
		TRY(identity_become_root(e));
	return tie_to_outside(in, e);
}

INSIDE(cgroup_namespace)
{
	(void)in;
	if (unshare(CLONE_NEWCGROUP))
		return err_sys(e, "making a cgroup namespace");
	return 0;
}

/*
 * An error that comes of what lies in the image (a link, a file where a directory belongs) is the
 * image's fault, not ours. Returns -e->code.
 */
static int blame_image(struct inside *in, const struct err *e)
{
	static const int codes[] = {ELOOP, ENOTDIR, EISDIR, ENXIO, EFBIG, EINVAL};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (e->code == codes[i])
			in->fault = FAULT_GUEST;
	}
	return -e->code;
}

INSIDE(attach_proc)
{
	in->hostrootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	TRY(in->hostrootfd);
	return proc_attach(in->hostrootfd, e);
}

/* Its pages are memory of the sandbox's: it must be full before that is. */
static uint64_t shm_bytes(const struct sandbox_spec *spec)
{
	uint64_t half = spec->limits.memory_bytes / 2;

	return half && half < SHM_BYTES ? half : SHM_BYTES;
}

INSIDE(attach_devices)
{
	scoped_fd devicesfd = take_fd(&in->receivedfd);

	return devices_attach(in->hostrootfd, devicesfd, shm_bytes(in->spec), e);
}

INSIDE(mask_proc)
{
	return proc_mask(in->hostrootfd, e);
}

INSIDE(attach_root)
{
	in->rootfd = take_fd(&in->receivedfd);
	TRY(root_attach(in->rootfd, e));
	if (mount_move(in->hostrootfd, in->rootfd, "/proc", e) < 0 ||
	    mount_move(in->hostrootfd, in->rootfd, "/dev", e) < 0)
		return blame_image(in, e);
	close_fd(&in->hostrootfd);
	return 0;
}

INSIDE(attach_tmpfs)
{
	for (int i = 0; i < in->spec->tmpfs_count; i++) {
		if (tmpfs_attach(in->rootfd, &in->spec->tmpfs[i], e) < 0)
			return blame_image(in, e);
	}
	return 0;
}

INSIDE(pivot)
{
	return root_pivot(in->rootfd, e);
}

INSIDE(ensure_account)
{
	if (account_ensure(in->spec->identity.uid, in->spec->identity.gid, "/workspace", e) < 0 ||
	    hosts_write(in->spec->hostname, e) < 0)
		return blame_image(in, e);
	return 0;
}

INSIDE(read_only_root)
{
	(void)in;
	return root_make_readonly(e);
}

INSIDE(set_rlimits)
{
	return identity_set_rlimits(&in->sandbox->identity, e);
}

INSIDE(drop_bounding)
{
	(void)in;
	return identity_drop_bounding(e);
}

INSIDE(lock_securebits)
{
	(void)in;
	return identity_lock_securebits(e);
}

INSIDE(become_user)
{
	TRY(identity_become_user(in->spec->identity.uid, in->spec->identity.gid, e));
	return tie_to_outside(in, e);
}

INSIDE(drop_capabilities)
{
	(void)in;
	return identity_drop_capabilities(e);
}

INSIDE(no_new_privs)
{
	(void)in;
	return identity_no_new_privs(e);
}

/*
 * Nothing but what lies beneath our root, whatever descriptor of the host were to leak; no device
 * nodes; ioctls of devices in /dev alone. Message queues have a rule of their own, for mq_open
 * finds them in a mount of the kernel's, which is beneath no root.
 */
INSIDE(restrict_files)
{
	const uint64_t nowhere = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;
	const uint64_t in_dev = LANDLOCK_ACCESS_FS_IOCTL_DEV;
	scoped_fd rootfd = file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e);
	scoped_fd devfd = -1, queuesfd = -1;

	TRY(rootfd);
	devfd = file_open(AT_FDCWD, "/dev", O_PATH | O_DIRECTORY, 0, e);
	TRY(devfd);
	queuesfd = file_open(AT_FDCWD, "/dev/mqueue", O_PATH | O_DIRECTORY, 0, e);
	TRY(queuesfd);
	const struct landlock_rule rules[] = {
		{.parentfd = rootfd, .allowed = ~(nowhere | in_dev)},
		{.parentfd = queuesfd, .allowed = ~(nowhere | in_dev)},
		{.parentfd = devfd, .allowed = in_dev},
	};
	in->landlock_abi = landlock_restrict(rules, sizeof rules / sizeof *rules, e);
	return in->landlock_abi < 0 ? in->landlock_abi : 0;
}

INSIDE(working_directory)
{
	char resolved[PATH_MAX];

	if (chdir(in->spec->cwd)) {
		in->fault = FAULT_GUEST;
		return err_sys(e, "working directory '%s'", in->spec->cwd);
	}
	/* a directory outside of our root has no path (CVE-2024-21626) */
	if (unsafe_without("working directory check"))
		return 0;
	if (!getcwd(resolved, sizeof resolved) || resolved[0] != '/') {
		in->fault = FAULT_GUEST;
		return err_set(e, EXDEV, "working directory '%s' is outside of the root",
		               in->spec->cwd);
	}
	return 0;
}

static const char *path_of(char *const envp[])
{
	for (; *envp; envp++) {
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	}
	return "/usr/local/bin:/usr/bin:/bin";
}

INSIDE(find_command)
{
	const char *name = in->spec->argv[0];
	const char *path = path_of(in->spec->envp);
	char shown[128];
	int reason;

	if (strchr(name, '/')) {
		TRY(text_format(in->program, sizeof in->program, e, "%s", name));
		reason = program_executable(name);
	} else {
		reason = program_search(name, path, in->program, sizeof in->program);
	}
	if (reason == 0)
		return keep_words(in, e);
	text_printable(name, shown, sizeof shown);
	if (reason == ENOENT || reason == ENOTDIR) {
		in->fault = FAULT_NOT_FOUND;
		return err_set(e, reason, "%s: command not found in the sandbox%s%s", shown,
		               strchr(name, '/') ? "" : "; its PATH is ",
		               strchr(name, '/') ? "" : path);
	}
	in->fault = FAULT_CANT_EXECUTE;
	errno = reason;
	return err_sys(e, "%s: cannot be executed", shown);
}

int place_descriptors(const int from[PLACED_FDS], struct err *e)
{
	int lifted[PLACED_FDS];

	/* above all numbers that are handed out, so that none is overwritten before its turn */
	for (int i = 0; i < PLACED_FDS; i++) {
		lifted[i] = fcntl(from[i], F_DUPFD_CLOEXEC, PLACED_FDS);
		if (lifted[i] < 0)
			return err_sys(e, "fcntl(F_DUPFD_CLOEXEC)");
	}
	for (int i = 0; i < PLACED_FDS; i++) {
		if (dup3(lifted[i], i, i == PROGRAM_FD ? O_CLOEXEC : 0) < 0)
			return err_sys(e, "dup3");
	}
	if (!unsafe_without("closed descriptors") && close_range(PLACED_FDS, ~0u, 0))
		return err_sys(e, "close_range");
	return 0;
}

INSIDE(arrange_descriptors)
{
	const struct sandbox *sandbox = in->sandbox;
	int stdinfd = sandbox->insidefds[0];

	if (stdinfd < 0)
		stdinfd = file_open(AT_FDCWD, "/dev/null", O_RDONLY, 0, e);
	TRY(stdinfd);
	TRY(place_descriptors((const int[PLACED_FDS]){stdinfd, sandbox->insidefds[1],
	                                              sandbox->insidefds[2], in->channelfd,
	                                              sandbox->initfd},
	                      e));
	in->channelfd = INIT_FD;
	if (fcntl(INIT_FD, F_SETFD, FD_CLOEXEC))
		return err_sys(e, "fcntl(F_SETFD)");
	return close_memory(e);
}

INSIDE(install_filter)
{
	return seccomp_filter_install(in->spec->filter, &in->listenerfd, e);
}
