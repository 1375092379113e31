/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and links of /dev ("Devices" and "Default Devices" in config-linux.md, "Dev symbolic links" in
 * runtime-linux.md). Nodes are made where the kernel lets us; in a user namespace the host's own node
 * is bound, whose owner and mode stay as they are. A /dev that is the host's is left alone. No state.
 */
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "container/mounts.h"
#include "rootfs/detached.h"

enum { MODE_DEFAULT = 0666 };

static const struct oci_device defaults[] = {
#define CHARACTER(name, major_, minor_)                                                            \
	{                                                                                          \
		.type = 'c', .path = name, .major = {true, major_}, .minor = {true, minor_},       \
	}
	/* Documentation/admin-guide/devices.txt */
	CHARACTER("/dev/null", 1, 3),    CHARACTER("/dev/zero", 1, 5),
	CHARACTER("/dev/full", 1, 7),    CHARACTER("/dev/random", 1, 8),
	CHARACTER("/dev/urandom", 1, 9), CHARACTER("/dev/tty", 5, 0),
#undef CHARACTER
};

static const struct {
	const char *name, *target, *only_if; /* only_if: this is there on the host */
} links[] = {
	{"fd", "/proc/self/fd", NULL},          {"stdin", "/proc/self/fd/0", NULL},
	{"stdout", "/proc/self/fd/1", NULL},    {"stderr", "/proc/self/fd/2", NULL},
	{"core", "/proc/kcore", "/proc/kcore"}, {"ptmx", "pts/ptmx", NULL},
};

enum { MAJOR_MAX = (1 << 12) - 1, MINOR_MAX = (1 << 20) - 1 }; /* dev_t of the kernel */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static mode_t node_type(const struct oci_device *device)
{
	return device->type == 'b' ? S_IFBLK : device->type == 'p' ? S_IFIFO : S_IFCHR;
}

static dev_t node_number(const struct oci_device *device)
{
	return device->type == 'p'
	               ? 0
	               : makedev((unsigned)device->major.value, (unsigned)device->minor.value);
}

/* Of larger numbers makedev(3) would make others. */
static int check_number(const struct oci_device *device, struct err *e)
{
	if (device->type == 'p' ||
	    (device->major.value <= MAJOR_MAX && device->minor.value <= MINOR_MAX))
		return 0;
	return err_set(e, EINVAL, "Linux has no device %" PRId64 ":%" PRId64 "; at most %d:%d",
	               device->major.value, device->minor.value, MAJOR_MAX, MINOR_MAX);
}

static bool is_device(const struct stat *st, const struct oci_device *device)
{
	return (st->st_mode & S_IFMT) == node_type(device) &&
	       (device->type == 'p' || st->st_rdev == node_number(device));
}

/* The directory that a device is to be in: /dev, or one that is opened for it. */
struct place {
	int rootfd, devfd;
	int openedfd;
	bool bind; /* nodes cannot be made here */
};

static int open_directory(struct place *place, const char *path, const char **name, struct err *e)
{
	static const char dev[] = "/dev/";
	char parent[4096];

	*name = strrchr(path, '/') + 1;
	if (!**name)
		return err_set(e, EINVAL, "%s: a device has a name", path);
	if (strncmp(path, dev, strlen(dev)) == 0 && *name == path + strlen(dev))
		return place->devfd;
	TRY(text_format(parent, sizeof parent, e, "%.*s", (int)(*name - path), path));
	place->openedfd = target_open(place->rootfd, parent, false, e);
	return place->openedfd;
}

/* There is something: 0 if it is what is wanted. */
static int check_there(int dirfd, const char *name, const struct oci_device *device, struct err *e)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "asking what %s is", device->path);
	if (is_device(&st, device))
		return 0;
	return err_set(e, EEXIST,
	               "%s: there is a file that is not this device; remove it from the image, or "
	               "mount a tmpfs over its directory",
	               device->path);
}

static int bind_device(int dirfd, const char *name, const struct oci_device *device, struct err *e)
{
	scoped_fd sourcefd = -1, targetfd = -1;
	struct stat st;

	sourcefd = open_tree(AT_FDCWD, device->path,
	                     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (sourcefd < 0 || fstat(sourcefd, &st) < 0)
		return err_sys(
			e,
			"%s: no device can be made here (a user namespace, or no CAP_MKNOD), "
			"and the host's own cannot be had",
			device->path);
	if (!is_device(&st, device))
		return err_set(e, ENXIO,
		               "%s: no device can be made here (a user namespace, or no "
		               "CAP_MKNOD), and the host's is another one",
		               device->path);
	targetfd = target_open(dirfd, name, true, e);
	TRY(targetfd);
	return detached_attach(sourcefd, targetfd, "the host's device", device->path, e);
}

/* The umask is 0. */
static int make_node(int dirfd, const char *name, const struct oci_device *device, struct err *e)
{
	mode_t mode = device->file_mode.set ? (mode_t)device->file_mode.value & 0777 : MODE_DEFAULT;
	uint32_t uid = (uint32_t)device->uid.value, gid = (uint32_t)device->gid.value;

	if (mknodat(dirfd, name, node_type(device) | mode, node_number(device)) < 0)
		return -errno;
	if ((uid || gid) && fchownat(dirfd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "setting the owner of %s", device->path);
	return 0;
}

static int make_device(struct place *place, const struct oci_device *device, struct err *e)
{
	const char *name;
	int dirfd = open_directory(place, device->path, &name, e), r = -EPERM;

	TRY(dirfd);
	e->code = 0;
	if (!place->bind || device->type == 'p')
		r = make_node(dirfd, name, device, e);
	if (r == -EEXIST)
		return check_there(dirfd, name, device, e);
	if (r == -EPERM && !e->code && device->type != 'p') {
		place->bind = true;
		return bind_device(dirfd, name, device, e);
	}
	if (r < 0 && !e->code)
		return err_set(e, -r, "making %s: %s", device->path, strerror(-r));
	return r;
}

static bool is_listed(const struct oci_devices *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return true;
	return false;
}

static int make_all_devices(struct place *place, const struct oci_devices *list, struct err *e)
{
	for (size_t i = 0; i < COUNT(defaults); i++)
		if (!is_listed(list, defaults[i].path))
			TRY(make_device(place, &defaults[i], e));
	for (size_t i = 0; i < list->count; i++) {
		int r = check_number(&list->items[i], e);

		if (r == 0)
			r = make_device(place, &list->items[i], e);

		close_fd(&place->openedfd);
		if (r < 0)
			return err_in(e, "linux.devices[%zu]", i);
	}
	return 0;
}

static int make_link(int devfd, const char *name, const char *target, struct err *e)
{
	int r = symlinkat(target, devfd, name);

	/* an image's own node would open the terminals of nobody */
	if (r < 0 && errno == EEXIST && strcmp(name, "ptmx") == 0) {
		if (unlinkat(devfd, name, 0) == 0)
			r = symlinkat(target, devfd, name);
	} else if (r < 0 && errno == EEXIST) {
		return 0;
	}
	return r < 0 ? err_sys(e, "making the link /dev/%s", name) : 0;
}

static int make_links(int devfd, struct err *e)
{
	for (size_t i = 0; i < COUNT(links); i++)
		if (!links[i].only_if || access(links[i].only_if, F_OK) == 0)
			TRY(make_link(devfd, links[i].name, links[i].target, e));
	return 0;
}

/* Whether /dev is a directory of the host's, whose nodes are not ours to make. */
static bool is_host_dev(const struct inside *in)
{
	for (size_t i = 0; i < in->config->mounts.count; i++) {
		const char *path = in->config->mounts.items[i].destination;

		if ((strcmp(path, "/dev") == 0 || strcmp(path, "/dev/") == 0) &&
		    in->container->mounts->items[i].options.bind)
			return true;
	}
	return false;
}

int make_devices(struct inside *in, struct err *e)
{
	struct place place = {
		.rootfd = in->rootfd,
		.openedfd = -1,
		.bind = oci_config_namespace(in->config, CLONE_NEWUSER) != NULL,
	};
	mode_t mask;
	int r;

	if (is_host_dev(in))
		return 0;
	place.devfd = target_open(in->rootfd, "/dev", false, e);
	TRY(place.devfd);
	mask = umask(0);
	r = make_all_devices(&place, &in->config->linux_part->devices, e);
	umask(mask);
	if (r == 0)
		r = make_links(place.devfd, e);
	close_fd(&place.devfd);
	close_fd(&place.openedfd);
	return r;
}
