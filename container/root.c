/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of a container: a copy of root.path, attached where it is on the host, in the container's own
 * mount namespace (hooks look for it there), which becomes "/". Acts on the calling process's mount
 * namespace. No state.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "container/container.h"
#include "container/mounts.h"
#include "rootfs/detached.h"
#include "rootfs/mounts.h"

enum { MOUNTINFO_BYTES_MAX = 16 << 20 };

/* A mount namespace by path is others' as well: their root and the propagation of their mounts stay. */
static bool is_of_others(const struct inside *in)
{
	return !has_new_namespace(in->config, CLONE_NEWNS);
}

int set_propagation(struct inside *in, struct err *e)
{
	/* Whatever rootfsPropagation says: this is the host's "/", which goes at the pivot. What of it
	 * the container is given was copied outside, with the propagation of there. */
	if (is_of_others(in))
		return 0;
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
		return 0;
	err_sys(e, "making the mounts that are inherited slaves of the host's");
	return e->code == EINVAL ? err_hint(e, "\"/\" is no mount here; is this a chroot?")
	                         : -e->code;
}

/*
 * Where the root is in our mount namespace; "/" where we may not go there any more (a user namespace),
 * and without a pivot: what covers "/" cannot be left by way of "..".
 */
static int open_place(const struct inside *in, struct err *e)
{
	int fd = -EACCES;

	if (!in->container->options->no_pivot || is_of_others(in))
		fd = file_open(AT_FDCWD, in->container->rootfs, O_PATH | O_DIRECTORY, 0, e);
	return fd == -EACCES && !is_of_others(in)
	               ? file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, e)
	               : fd;
}

/* Whether LINE of mountinfo is of the mount ID, and that is shared with others. */
static bool says_shared(const char *line, uint64_t id)
{
	const char *end = strstr(line, " - "), *shared = strstr(line, " shared:");

	return strtoull(line, NULL, 10) == id && end && shared && shared < end;
}

/* What is attached there would be attached in other namespaces too. */
static int check_not_shared(const struct inside *in, int placefd, struct err *e)
{
	scoped_mem char *text = NULL;
	char *rest, *line;
	struct statx st;
	size_t length;

	if (statx(placefd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return err_sys(e, "asking for the mount of %s", in->container->rootfs);
	TRY(file_read_all(in->hostprocfd, "self/mountinfo", MOUNTINFO_BYTES_MAX, &text, &length,
	                  e));
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (says_shared(line, st.stx_mnt_id))
			return err_set(e, EINVAL,
			               "linux.namespaces: in the mount namespace that is joined, "
			               "root.path is on a mount that is shared with others, who "
			               "would see the container's mounts: make it private there");
	return 0;
}

static int set_root_propagation(int fd, unsigned long what, bool tree, struct err *e)
{
	struct mount_attr attributes = {.propagation = what & ~(unsigned long)MS_REC};
	unsigned flags = AT_EMPTY_PATH | (tree ? AT_RECURSIVE : 0);

	if (mount_setattr(fd, "", flags, &attributes, sizeof attributes) < 0)
		return err_sys(e, "linux.rootfsPropagation");
	return 0;
}

int attach_root(struct inside *in, struct err *e)
{
	unsigned long wanted = (unsigned)in->config->linux_part->rootfs_propagation;
	scoped_fd placefd = open_place(in, e);

	TRY(placefd);
	if (is_of_others(in))
		TRY(check_not_shared(in, placefd, e));
	in->rootfd = in->container->rootfd;
	if (in->container->mounts->late)
		in->rootfd = source_copy(in->container, in->container->rootfs, true, e);
	TRY(in->rootfd);
	/* never a peer of the host's: what is mounted in it now would be mounted there as well */
	TRY(set_root_propagation(
		in->rootfd, wanted == 0 || wanted & MS_SLAVE ? MS_SLAVE : MS_PRIVATE, true, e));
	return detached_attach(in->rootfd, placefd, "root.path", in->config->root->path, e);
}

/*
 * Without a pivot the host's mounts stay below the root, out of sight. A whole procfs or sysfs among
 * them would let a user namespace inside mount another one, unmasked.
 */
static int drop_host_views(struct err *e)
{
	static const char *const places[] = {"/proc", "/sys"};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		while (umount2(places[i], MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
			;
	/* locked in a user namespace, where there is nothing more to be had from them */
	if (errno != EINVAL && errno != ENOENT && errno != EPERM)
		return err_sys(e, "detaching the host's /proc and /sys");
	return 0;
}

static int enter(int rootfd, struct err *e)
{
	if (fchdir(rootfd) < 0 || chroot(".") < 0)
		return err_sys(e, "entering the root");
	return 0;
}

int pivot(struct inside *in, struct err *e)
{
	unsigned long wanted = (unsigned)in->config->linux_part->rootfs_propagation;

	if (in->config->linux_part->masked_paths.count)
		TRY(mask_prepare(in, e));
	if (is_of_others(in)) {
		TRY(enter(in->rootfd, e));
	} else if (in->container->options->no_pivot) {
		TRY(drop_host_views(e));
		TRY(enter(in->rootfd, e));
	} else if (root_pivot(in->rootfd, e) < 0) {
		return e->code == EINVAL
		               ? err_hint(e, "is \"/\" the first root of the kernel (a ramdisk)? "
		                             "then --no-pivot is the way")
		               : -e->code;
	}
	if (wanted & (MS_SHARED | MS_UNBINDABLE))
		TRY(set_root_propagation(in->rootfd, wanted, wanted & MS_REC, e));
	return 0;
}

int protect_root(struct inside *in, struct err *e)
{
	return in->config->root->readonly ? root_make_readonly(e) : 0;
}
