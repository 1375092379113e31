/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is of the container's namespaces rather than of its process: loopback, names, sysctls. A sysctl
 * that is not of a namespace of the container's own would be the host's, and is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "runtime/network/loopback.h"

INSIDE(raise_loopback)
{
	return has_new_namespace(in->config, CLONE_NEWNET) ? loopback_up(e) : 0;
}

INSIDE(set_names)
{
	const char *host = in->config->hostname, *domain = in->config->domainname;

	if (host && *host && sethostname(host, strlen(host)) < 0) {
		err_sys(e, "hostname");
		return err_hint(e, "it has at most 64 bytes");
	}
	if (domain && *domain && setdomainname(domain, strlen(domain)) < 0) {
		err_sys(e, "domainname");
		return err_hint(e, "it has at most 64 bytes");
	}
	return 0;
}

/* ---- sysctls ---- */

/* Paths beneath /proc/sys; one that ends in "/" is all that is there. */
static const struct namespaced {
	const char *path;
	int namespace;
} namespaced[] = {
	{"net/", CLONE_NEWNET},
	{"fs/mqueue/", CLONE_NEWIPC},
	{"kernel/msgmax", CLONE_NEWIPC},
	{"kernel/msgmnb", CLONE_NEWIPC},
	{"kernel/msgmni", CLONE_NEWIPC},
	{"kernel/msg_next_id", CLONE_NEWIPC},
	{"kernel/sem", CLONE_NEWIPC},
	{"kernel/sem_next_id", CLONE_NEWIPC},
	{"kernel/shmall", CLONE_NEWIPC},
	{"kernel/shmmax", CLONE_NEWIPC},
	{"kernel/shmmni", CLONE_NEWIPC},
	{"kernel/shm_next_id", CLONE_NEWIPC},
	{"kernel/shm_rmid_forced", CLONE_NEWIPC},
	{"kernel/domainname", CLONE_NEWUTS},
};

/* As sysctl(8) has it: the first separator is the one; the other stands for it within a part. */
static int sysctl_path(const char *name, char path[PATH_MAX], struct err *e)
{
	char first = name[strcspn(name, "./")];

	TRY(text_format(path, PATH_MAX, e, "%s", name));
	for (char *c = path; first == '.' && *c; c++)
		*c = *c == '.' ? '/' : *c == '/' ? '.' : *c;
	return 0;
}

static int namespace_of(const char *path)
{
	for (size_t i = 0; i < sizeof namespaced / sizeof *namespaced; i++) {
		const char *known = namespaced[i].path;
		size_t length = strlen(known);

		if (known[length - 1] == '/' ? !strncmp(path, known, length) : !strcmp(path, known))
			return namespaced[i].namespace;
	}
	return 0;
}

static int check_sysctl(const struct container *container, const char *name, struct err *e)
{
	char path[PATH_MAX];
	int namespace, own;

	TRY(sysctl_path(name, path, e));
	if (!strcmp(path, "kernel/hostname") ||
	    (!strcmp(path, "kernel/domainname") && container->config->domainname))
		return err_set(e, EINVAL, "config.json has a key of its own for it: %s",
		               path + strlen("kernel/"));
	namespace = namespace_of(path);
	if (!namespace)
		return err_set(e, EINVAL,
		               "it is the whole host's, not a namespace's; set it on the host");
	TRY(own = has_own_namespace(container, namespace, e));
	if (own)
		return 0;
	return err_set(e, EINVAL,
	               "it is of the %s namespace, which is the runtime's own here; give the "
	               "container one of its own in linux.namespaces",
	               namespace == CLONE_NEWNET   ? "network"
	               : namespace == CLONE_NEWIPC ? "ipc"
	                                           : "uts");
}

OUTSIDE(check_sysctls)
{
	const struct oci_map *sysctls = &container->config->linux_part->sysctl;
	char shown[128];

	for (size_t i = 0; i < sysctls->count; i++)
		if (check_sysctl(container, sysctls->items[i].key, e) < 0)
			return err_in(e, "linux.sysctl[\"%s\"]",
			              text_printable(sysctls->items[i].key, shown, sizeof shown));
	return 0;
}

/*
 * What is mounted at or beneath /proc/sys is nobody's business here: a file that only looks like a
 * sysctl takes any value and changes nothing, or changes something else (CVE-2025-52881). The kernel
 * asks whose the values are when they are written, so the host's procfs sets the container's.
 */
static int open_sysctls(const struct inside *in, struct err *e)
{
	const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
	scoped_fd fd = file_open2(in->hostprocfd, "sys", O_PATH | O_DIRECTORY, 0, resolve, e);
	struct statfs status;

	TRY(fd);
	if (fstatfs(fd, &status) < 0)
		return err_sys(e, "/proc/sys");
	if (status.f_type != PROC_SUPER_MAGIC)
		return err_set(e, ENOTSUP, "/proc is no proc file system");
	return take_fd(&fd);
}

static int set_sysctl(int sysctlsfd, const struct oci_pair *sysctl, struct err *e)
{
	const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
	char path[PATH_MAX];
	scoped_fd fd = -1;

	TRY(sysctl_path(sysctl->key, path, e));
	fd = file_open2(sysctlsfd, path, O_WRONLY, 0, resolve, e);
	if (fd == -ENOENT)
		return err_hint(e, "this kernel has no such sysctl");
	TRY(fd);
	if (write(fd, sysctl->value, strlen(sysctl->value)) < 0)
		return err_sys(e, "setting it");
	return 0;
}

INSIDE(set_sysctls)
{
	const struct oci_map *sysctls = &in->config->linux_part->sysctl;
	scoped_fd fd = sysctls->count ? open_sysctls(in, e) : -1;
	char shown[128];

	if (sysctls->count)
		TRY(fd);
	for (size_t i = 0; i < sysctls->count; i++)
		if (set_sysctl(fd, &sysctls->items[i], e) < 0)
			return err_in(e, "linux.sysctl[\"%s\"]",
			              text_printable(sysctls->items[i].key, shown, sizeof shown));
	return 0;
}
