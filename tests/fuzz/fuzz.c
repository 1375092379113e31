/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ground that the harnesses stand on. Owns the scratch directory, a tmpfs that is attached
 * nowhere. All mounts that the process sees are read-only from then on, so that neither a path that
 * the fuzzer makes up nor a fault that it finds changes anything of the host.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"

void fuzz_fail(const char *fmt, ...)
{
	va_list args;

	fputs("fuzz: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

void fuzz_check_err(int result, const struct err *e)
{
	CHECK(result < 0 && result == -e->code, "the result is %d, the error's code %d", result,
	      e->code);
	CHECK(e->text[0] && memchr(e->text, '\0', sizeof e->text), "an error without a text");
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text, "no memory for %zu bytes", size);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

uint32_t fuzz_take(struct fuzz_bytes *bytes, int count)
{
	uint32_t value = 0;

	for (int i = 0; i < count && bytes->left; i++, bytes->left--)
		value |= (uint32_t)*bytes->data++ << (8 * i);
	return value;
}

int fuzz_next_fd(void)
{
	int fd = fcntl(fuzz_scratch(), F_DUPFD_CLOEXEC, 0);

	CHECK(fd >= 0, "no descriptor is left: %m");
	close(fd);
	return fd;
}

/* ---- confinement ---- */

static int memory_file_system(void)
{
	scoped_fd fd = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fd < 0 || fsconfig(fd, FSCONFIG_SET_STRING, "size", "64m", 0) < 0 ||
	    fsconfig(fd, FSCONFIG_SET_STRING, "nr_inodes", "20000", 0) < 0 ||
	    fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
}

/* All but the working directory, which is mounted over itself, and the scratch directory. */
static int mounts_read_only(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV};
	char cwd[PATH_MAX];
	scoped_fd cwdfd = -1;

	if (!getcwd(cwd, sizeof cwd) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	cwdfd = open_tree(AT_FDCWD, cwd, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (cwdfd < 0 || mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr) < 0 ||
	    move_mount(cwdfd, "", AT_FDCWD, cwd, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	return chdir(cwd);
}

/* Those with which a fault in what writes files would show: devices, owners, setuid bits. */
static int keep_capabilities(void)
{
	static const cap_value_t kept[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,
	                                   CAP_FSETID, CAP_SETFCAP,      CAP_MKNOD};
	cap_t caps = cap_init();
	int result = -1;

	if (caps && cap_set_flag(caps, CAP_PERMITTED, 6, kept, CAP_SET) == 0 &&
	    cap_set_flag(caps, CAP_EFFECTIVE, 6, kept, CAP_SET) == 0)
		result = cap_set_proc(caps);
	cap_free(caps);
	return result;
}

int fuzz_scratch(void)
{
	static int scratchfd = -1;

	if (scratchfd >= 0)
		return scratchfd;
	CHECK(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) == 0,
	      "namespaces: %m; run as root");
	CHECK(mounts_read_only() == 0, "making the host's mounts read-only: %m");
	scratchfd = memory_file_system();
	CHECK(scratchfd >= 0, "a tmpfs: %m");
	CHECK(keep_capabilities() == 0, "dropping capabilities: %m");
	umask(0); /* as agentdock-archive does */
	return scratchfd;
}

/* Before libFuzzer has threads, which would keep what this process drops. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_scratch();
	return 0;
}

/* ---- files of the scratch directory ---- */

void fuzz_put(const char *path, const void *data, size_t size)
{
	struct err e;
	scoped_fd fd = file_open(fuzz_scratch(), path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &e);

	CHECK(fd >= 0, "%s", e.text);
	CHECK(fd_write_all(fd, data, size, &e) == 0, "%s: %s", path, e.text);
}

void fuzz_make_dir(const char *path)
{
	struct err e;

	CHECK(dir_make_all(fuzz_scratch(), path, 0755, &e) == 0, "%s", e.text);
}

void fuzz_remove(const char *name)
{
	struct err e;

	CHECK(tree_remove(fuzz_scratch(), name, &e) == 0, "%s", e.text);
}
