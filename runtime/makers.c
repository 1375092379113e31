/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makers: processes of a moment that make a part of the sandbox which takes the kernel long, while
 * both sides go on. Nothing that they make has a name, so a maker that dies leaves nothing; what is
 * made crosses by descriptor. The row that takes it waits until its maker is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/unsafe.h"
#include "runtime/network/loopback.h"
#include "runtime/score.h"

/* Makes the part and sends it. */
typedef int make_part(struct sandbox *sandbox, int socketfd, struct err *e);

/* The builder may have died meanwhile. */
static int die_with(pid_t builder, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return err_sys(e, "prctl(PR_SET_PDEATHSIG)");
	return getppid() == builder ? 0 : err_set(e, ECANCELED, "the builder died");
}

static _Noreturn void be_maker(struct sandbox *sandbox, pid_t builder, int socketfd,
                               make_part *make)
{
	struct channel_message failed = {.kind = CHANNEL_FAILED};
	struct err e = {0};

	/* the label's lock is among what is closed, which must not outlive the builder */
	if (die_with(builder, &e) == 0 && keep_own_descriptors(sandbox, socketfd, &e) == 0 &&
	    make(sandbox, socketfd, &e) == 0)
		_exit(0);
	failed.error = e;
	_exit(channel_send(socketfd, &failed, -1, &e) < 0);
}

static int maker_start(struct sandbox *sandbox, struct maker *maker, struct clone_args args,
                       make_part *make, struct err *e)
{
	pid_t builder = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_sys(e, "socketpair");
	maker->fd = ends[0];
	scoped_fd makerfd = ends[1];
	args.exit_signal = SIGCHLD;
	maker->pid = process_clone3(&args);
	if (maker->pid == 0)
		be_maker(sandbox, builder, makerfd, make);
	if (maker->pid < 0) {
		errno = -maker->pid;
		return err_sys(e, "starting a process to make it");
	}
	return 0;
}

static int maker_receive(struct sandbox *sandbox, struct maker *maker,
                         struct channel_message *message, int *fd, struct err *e)
{
	int r = supervise_building(sandbox, maker->fd, message, fd, e);

	TRY(r);
	if (r == 1 && message->kind == CHANNEL_FAILED) {
		*e = message->error;
		return -e->code;
	}
	if (r == 0 || *fd < 0)
		return err_set(e, ECHILD, "the process that makes it was killed");
	return 0;
}

void maker_end(struct maker *maker, bool kill_first)
{
	process_end(&maker->pid, kill_first);
	close_fd(&maker->fd);
}

/* ---- the disk ---- */

static int make_disk(struct sandbox *sandbox, int socketfd, struct err *e)
{
	const struct identity *identity = &sandbox->identity;
	struct channel_message message = {.kind = CHANNEL_MADE};
	struct disk *disk = &message.disk;

	TRY(disk_create(sandbox->host->store.statefd, &sandbox->spec->disk, identity->host_base,
	                disk, e));
	TRY(disk_add_directory(disk, "workspace", identity->host_base + identity->uid,
	                       identity->host_base + identity->gid, e));
	TRY(channel_send(socketfd, &message, disk->mountfd, e));
	return disk->imagefd < 0 ? 0 : channel_send(socketfd, &message, disk->imagefd, e);
}

OUTSIDE(start_disk)
{
	return maker_start(sandbox, &sandbox->disk_maker, (struct clone_args){0}, make_disk, e);
}

OUTSIDE(take_disk)
{
	struct maker *maker = &sandbox->disk_maker;
	struct channel_message message;
	scoped_fd mountfd = -1, imagefd = -1;

	TRY(maker_receive(sandbox, maker, &message, &mountfd, e));
	if (message.disk.imagefd >= 0)
		TRY(maker_receive(sandbox, maker, &message, &imagefd, e));
	sandbox->disk = message.disk;
	sandbox->disk.mountfd = take_fd(&mountfd);
	sandbox->disk.imagefd = take_fd(&imagefd);
	maker_end(maker, false);
	return 0;
}

/* ---- the network namespace ---- */

/*
 * In the sandbox's user namespace and cgroups, to whom it belongs and is charged; the host's root
 * still, but nothing of the guest's runs yet.
 */
static int make_network(struct sandbox *sandbox, int socketfd, struct err *e)
{
	const struct channel_message message = {.kind = CHANNEL_MADE};

	TRY(identity_forget_privileges(e));
	TRY(cgroup_join(&sandbox->cgroup, e));
	if (sandbox->identity.user_namespace) {
		scoped_fd usernsfd = file_open(sandbox->procfd, "ns/user", O_RDONLY, 0, e);

		TRY(usernsfd);
		if (setns(usernsfd, CLONE_NEWUSER))
			return err_sys(e, "entering the sandbox's user namespace");
		if (prctl(PR_SET_PDEATHSIG, SIGKILL)) /* forgotten with the change */
			return err_sys(e, "prctl(PR_SET_PDEATHSIG)");
	}
	if (unshare(CLONE_NEWNET))
		return namespaces_refused("making a network namespace", e);
	scoped_fd netfd = file_open(AT_FDCWD, "/proc/self/ns/net", O_RDONLY, 0, e);
	TRY(netfd);
	TRY(loopback_up(e));
	return channel_send(socketfd, &message, netfd, e);
}

OUTSIDE(start_network)
{
	const struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.cgroup = (unsigned)sandbox->cgroup.v2fd,
	};

	if (unsafe_without("network namespace"))
		return 0;
	return maker_start(sandbox, &sandbox->network_maker, args, make_network, e);
}

OUTSIDE(take_network)
{
	struct maker *maker = &sandbox->network_maker;
	struct channel_message message;

	if (maker->pid <= 0)
		return 0;
	TRY(maker_receive(sandbox, maker, &message, &sandbox->handedfd, e));
	maker_end(maker, false);
	return 0;
}
