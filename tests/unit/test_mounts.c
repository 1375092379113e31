/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole of a root file system, as the sandbox sees it: assembled outside, attached inside, in
 * namespaces of its own, with and without a user namespace, with both ways to name layers. The
 * checks run inside, as root of the sandbox and as its user.
 */
#include "tests/unit/rootfs_fixture.h"

#include <mqueue.h>
#include <sys/mount.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "rootfs/disk.h"
#include "rootfs/mounts.h"
#include "rootfs/overlay_internal.h"

enum { GUEST = 10001 };

static struct scratch scratch;
static int lower, upper; /* two layers */

/* What is asked for, and what was made for it. */
struct play {
	bool user_namespace, read_only;
	enum overlay_naming naming;
	void (*checks)(int out);
	int usernsfd, rootfd, devicesfd;
	struct disk disk;
};

static void copy_busybox(int dirfd, const char *name, mode_t mode)
{
	char *data;
	size_t length;
	struct err e;
	int fd;

	assert_ok(file_read_all(AT_FDCWD, "/bin/busybox", 16 << 20, &data, &length, &e));
	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_ok(fd_write_all(fd, data, length, &e));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	free(data);
}

static int setup(void **state)
{
	(void)state;
	scratch_open(&scratch);
	lower = make_layer(&scratch, "lower");
	upper = make_layer(&scratch, "upper");
	assert_int_equal(mkdirat(lower, "bin", 0755), 0);
	assert_int_equal(mkdirat(lower, "etc", 0755), 0);
	assert_int_equal(mkdirat(lower, "proc", 0755), 0);
	assert_int_equal(mkdirat(lower, "tree", 0755), 0);
	copy_busybox(lower, "bin/busybox", 0755);
	copy_busybox(lower, "bin/suid", 04755);
	write_file(lower, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nsandbox:x:7:7::/:", 0644);
	write_file(lower, "etc/group", "root:x:0:\n", 0644);
	write_file(lower, "tree/leaf", "leaf", 0644);
	write_file(lower, "gone", "gone", 0644);
	write_file(upper, "above", "above", 0644);
	assert_int_equal(mknodat(lower, "node", S_IFCHR | 0666, 0x103), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(lower);
	close(upper);
	scratch_close(&scratch);
	return 0;
}

/* ---- what the sandbox sees ---- */

static void check_mount_table(int out)
{
	static const char *const expected[] = {
		"/", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/proc", "/tmp",
	};
	char text[32768], *line, *rest = text;
	int seen = 0;
	struct err e;

	REQUIRE(out, file_read(AT_FDCWD, "/proc/self/mountinfo", text, sizeof text, &e));
	CHECK(out, strstr(text, "agentdock") == NULL);
	CHECK(out, strstr(text, "/loop") == NULL);
	CHECK(out, strstr(text, "ext4") == NULL);
	while ((line = strsep(&rest, "\n")) && *line) {
		char root[256], target[256];
		bool known = false;

		CHECK(out, sscanf(line, "%*d %*d %*s %255s %255s", root, target) == 2);
		for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
			known = known || strcmp(target, expected[i]) == 0;
		seen += known;
		if (!known && strncmp(target, "/proc/", 6) != 0)
			dprintf(out, "unexpected mount: %s\n", line);
		if (strcmp(target, "/") == 0)
			CHECK(out,
			      strstr(line, "nosuid,nodev") && strstr(line, " overlay overlay "));
	}
	CHECK(out, seen == sizeof expected / sizeof expected[0]);
}

static bool can_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void check_devices(int out)
{
	char bytes[16] = {1};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	int full = open("/dev/full", O_RDWR | O_CLOEXEC);
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	char name[64];
	struct stat st;

	CHECK(out, write(null, "x", 1) == 1 && read(null, bytes, 1) == 0);
	CHECK(out, read(zero, bytes, 1) == 1 && bytes[0] == 0);
	CHECK(out, write(full, "x", 1) == -1 && errno == ENOSPC);
	CHECK(out, can_open("/dev/random", O_RDONLY) && can_open("/dev/urandom", O_RDONLY));
	CHECK(out, stat("/dev/tty", &st) == 0 && st.st_uid == 0 && (st.st_mode & 0777) == 0666);
	CHECK(out, !can_open("/node", O_RDONLY) && errno == EACCES);
	CHECK(out, master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	CHECK(out, ptsname_r(master, name, sizeof name) == 0 && strcmp(name, "/dev/pts/0") == 0);
	CHECK(out, can_open(name, O_RDWR));
	CHECK(out, readlink("/dev/fd", name, sizeof name) == 13);
	close(null);
	close(zero);
	close(full);
	close(master);
}

/* or is not there at all, in this kernel */
static bool reads_empty(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool empty;

	if (fd < 0)
		return errno == ENOENT;
	empty = read(fd, &byte, 1) == 0;
	close(fd);
	return empty;
}

static void check_proc(int out)
{
	static const char *const hidden[] = {
		"/proc/kcore",      "/proc/keys",       "/proc/kallsyms", "/proc/interrupts",
		"/proc/timer_list", "/proc/kmsg",       "/proc/cmdline",  "/proc/modules",
		"/proc/slabinfo",   "/proc/kpagecount", "/proc/iomem",    "/proc/sched_debug",
	};
	static const char *const empty[] = {"/proc/acpi", "/proc/scsi", "/proc/bus", "/proc/fs",
	                                    "/proc/irq"};
	struct statfs fs;

	CHECK(out, getpid() == 1 && can_open("/proc/1/comm", O_RDONLY));
	CHECK(out, can_open("/proc/meminfo", O_RDONLY) && can_open("/proc/cpuinfo", O_RDONLY));
	CHECK(out, reads_empty("/proc/meminfo") == false);
	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		if (!reads_empty(hidden[i]))
			dprintf(out, "%s is not hidden\n", hidden[i]);
	for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
		if (statfs(empty[i], &fs) == 0)
			CHECK(out, fs.f_type == TMPFS_MAGIC && (fs.f_flags & ST_RDONLY) &&
			                   entries_in(AT_FDCWD, empty[i]) == 0);
	CHECK(out, statfs("/proc/sys/kernel", &fs) == 0 && (fs.f_flags & ST_RDONLY));
	CHECK(out, !can_open("/proc/sys/kernel/core_pattern", O_WRONLY));
	CHECK(out, !can_open("/proc/sys/kernel/hostname", O_WRONLY));
	CHECK(out, !can_open("/proc/sysrq-trigger", O_WRONLY));
	CHECK(out, can_open("/proc/sys/kernel/hostname", O_RDONLY));
}

static void check_files(int out)
{
	struct stat st;
	int fd;

	CHECK(out, stat("/", &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 0755);
	CHECK(out, stat("/gone", &st) == 0 && st.st_uid == 0 && st.st_gid == 0);
	CHECK(out, access("/above", F_OK) == 0);
	CHECK(out, unlink("/gone") == 0 && access("/gone", F_OK) == -1);
	CHECK(out, rename("/tree", "/moved") == 0 && access("/moved/leaf", R_OK) == 0);
	CHECK(out, stat("/workspace", &st) == 0 && st.st_uid == GUEST && st.st_gid == GUEST &&
	                   st.st_mode == (S_IFDIR | 0755));
	CHECK(out, stat("/tmp", &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 01777);
	fd = open("/moved/leaf", O_WRONLY | O_TRUNC | O_CLOEXEC);
	CHECK(out, write(fd, "new", 3) == 3 && fsync(fd) == 0);
	close(fd);
}

static void check_accounts(int out)
{
	char text[1024];
	struct err e;

	REQUIRE(out, file_read(AT_FDCWD, "/etc/passwd", text, sizeof text, &e));
	CHECK(out, strcmp(text, "root:x:0:0:root:/root:/bin/sh\nsandbox:x:7:7::/:\n"
	                        "sandbox10001:x:10001:10001:sandbox:/workspace:/bin/sh\n") == 0);
	REQUIRE(out, file_read(AT_FDCWD, "/etc/group", text, sizeof text, &e));
	CHECK(out, strcmp(text, "root:x:0:\nsandbox:x:10001:\n") == 0);
	/* the entry that is there stands */
	REQUIRE(out, account_ensure(GUEST, GUEST, "/other", &e));
	REQUIRE(out, account_ensure(0, 0, "/other", &e));
	REQUIRE(out, file_read(AT_FDCWD, "/etc/passwd", text, sizeof text, &e));
	CHECK(out, strstr(text, "/other") == NULL);
}

/* ---- limits ---- */

static uint64_t fill(int fd)
{
	static char block[4096] = {1};
	uint64_t written = 0;
	ssize_t got;

	while ((got = write(fd, block, sizeof block)) > 0)
		written += (uint64_t)got;
	return errno == ENOSPC ? written : 0;
}

static void check_disk_limits(int out)
{
	int fd = open("/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int shm = open("/dev/shm/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	uint64_t written;
	char name[32];
	int made = 0;

	/* unlinked files count */
	CHECK(out, unlink("/big") == 0);
	written = fill(fd);
	CHECK(out, written > 15 << 20 && written <= 16 << 20);
	close(fd);
	for (;; made++) {
		snprintf(name, sizeof name, "/moved/f%d", made);
		if (mknod(name, S_IFREG | 0600, 0) < 0)
			break;
	}
	CHECK(out, errno == ENOSPC && made > 900 && made <= 1015);
	CHECK(out, fill(shm) == 1 << 20);
	close(shm);
	unlink("/dev/shm/big");
}

/* ---- the user's view ---- */

static void check_as_guest(int out)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
	char text[16] = "";
	int fds[2], status;
	mqd_t queue;

	CHECK(out, !can_open("/etc/passwd", O_WRONLY) && errno == EACCES);
	CHECK(out, !can_open("/proc/1/mem", O_RDONLY));
	CHECK(out, mkdir("/new", 0755) == -1 && errno == EACCES);
	CHECK(out, mkdir("/dev/new", 0755) == -1 && errno == EACCES);
	CHECK(out, mkdir("/workspace/new", 0755) == 0);
	CHECK(out, mkdir("/tmp/new", 0755) == 0);
	CHECK(out, can_open("/dev/null", O_RDWR) && can_open("/dev/ptmx", O_RDWR));
	queue = mq_open("/q", O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
	CHECK(out, queue >= 0 && access("/dev/mqueue/q", R_OK) == 0);
	mq_close(queue);

	CHECK(out, pipe2(fds, O_CLOEXEC) == 0);
	if (fork() == 0) {
		dup2(fds[1], 1);
		execl("/bin/suid", "id", "-u", NULL);
		_exit(99);
	}
	close(fds[1]);
	CHECK(out, read(fds[0], text, sizeof text - 1) > 0 && strcmp(text, "10001\n") == 0);
	CHECK(out, wait(&status) > 0 && status == 0);
}

static void as_guest(int out, void (*checks)(int out))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(out, setresgid(GUEST, GUEST, GUEST) == 0);
		CHECK(out, setresuid(GUEST, GUEST, GUEST) == 0);
		checks(out);
		_exit(0);
	}
	CHECK(out, waitpid(pid, &status, 0) == pid && status == 0);
}

static void check_everything(int out)
{
	check_mount_table(out);
	check_devices(out);
	check_proc(out);
	check_accounts(out);
	check_files(out);
	as_guest(out, check_as_guest);
	check_disk_limits(out);
}

static void check_read_only(int out)
{
	struct err e;

	CHECK(out, mkdir("/new", 0755) == -1 && errno == EROFS);
	CHECK(out, mkdir("/tmp/new", 0755) == 0);
	CHECK(out, mkdir("/workspace/new", 0755) == -1 && errno == EROFS);
	CHECK(out, account_ensure(20000, 20000, "/", &e) == -EROFS);
	CHECK(out, account_ensure(GUEST, GUEST, "/", &e) == 0);
}

/* ---- hostile images ---- */

static void check_hostile_accounts(int out)
{
	struct stat before, after;
	char text[256];
	struct err e;
	int fd;

	CHECK(out, unlink("/etc/passwd") == 0 && mkfifo("/etc/passwd", 0666) == 0);
	CHECK(out, account_ensure(GUEST, GUEST, "/w", &e) == -EINVAL);
	CHECK(out, strstr(e.text, "not a regular file") != NULL);
	CHECK(out, unlink("/etc/passwd") == 0 && symlink("/above", "/etc/passwd") == 0);
	CHECK(out, account_ensure(GUEST, GUEST, "/w", &e) == -ELOOP);
	CHECK(out, strstr(e.text, "symbolic link") != NULL);
	CHECK(out, unlink("/etc/passwd") == 0 && mkdir("/etc/passwd", 0755) == 0);
	CHECK(out, account_ensure(GUEST, GUEST, "/w", &e) == -EINVAL);
	CHECK(out, rmdir("/etc/passwd") == 0);
	fd = open("/etc/passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(out, ftruncate(fd, (1 << 20) + 1) == 0);
	CHECK(out, account_ensure(GUEST, GUEST, "/w", &e) == -EFBIG);
	/* NULs and no newline at all */
	CHECK(out, ftruncate(fd, 1 << 20) == 0);
	CHECK(out, account_ensure(GUEST, GUEST, "/w", &e) == 0);
	close(fd);
	CHECK(out, account_ensure(GUEST, GUEST, "/w:x", &e) == -EINVAL);
	CHECK(out, account_ensure(GUEST, GUEST, "/w\nroot::0:0::/:", &e) == -EINVAL);
	/* an image without /etc */
	CHECK(out, rename("/etc", "/old") == 0);
	REQUIRE(out, account_ensure(GUEST, GUEST, "/w", &e));
	REQUIRE(out, file_read(AT_FDCWD, "/etc/passwd", text, sizeof text, &e));
	CHECK(out, strcmp(text, "sandbox:x:10001:10001:sandbox:/w:/bin/sh\n") == 0);
	REQUIRE(out, hosts_write("here", &e));
	REQUIRE(out, file_read(AT_FDCWD, "/etc/hosts", text, sizeof text, &e));
	CHECK(out, strstr(text, "127.0.0.1 localhost\n") && strstr(text, "127.0.1.1 here\n"));
	/* what is right already is left alone, and nothing else */
	CHECK(out, stat("/etc/hosts", &before) == 0);
	REQUIRE(out, hosts_write("here", &e));
	CHECK(out, stat("/etc/hosts", &after) == 0);
	CHECK(out, memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim) == 0);
	CHECK(out, chmod("/etc/hosts", 0600) == 0);
	REQUIRE(out, hosts_write("here", &e));
	CHECK(out, stat("/etc/hosts", &after) == 0 && (after.st_mode & 07777) == 0644);
	REQUIRE(out, hosts_write("elsewhere", &e));
	REQUIRE(out, file_read(AT_FDCWD, "/etc/hosts", text, sizeof text, &e));
	CHECK(out, strstr(text, "127.0.1.1 elsewhere\n") != NULL);
	CHECK(out, unlink("/etc/hosts") == 0 && mkfifo("/etc/hosts", 0644) == 0);
	CHECK(out, hosts_write("here", &e) == -EINVAL);
}

static void symlinked_targets_are_refused(void **state)
{
	static const char *const names[] = {"dev", "proc", "tmp"};
	struct err e;

	(void)state;
	assert_int_equal(unlinkat(lower, "proc", AT_REMOVEDIR), 0);
	for (size_t i = 0; i < 3; i++) {
		char path[32];

		assert_int_equal(symlinkat("/etc", lower, names[i]), 0);
		snprintf(path, sizeof path, "/%s", names[i]);
		assert_int_equal(mount_target(lower, path, &e), -ELOOP);
		assert_text(e.text, path);
		assert_text(e.text, "symbolic link");
		snprintf(path, sizeof path, "/%s/below", names[i]);
		assert_int_equal(mount_target(lower, path, &e), -ELOOP);
	}
	assert_int_equal(mount_target(lower, "/gone", &e), -ENOTDIR);
	assert_int_equal(mount_target(lower, "/gone/x", &e), -ENOTDIR);
	assert_int_equal(mount_target(lower, "/new/../../x", &e), -EINVAL);
	assert_int_equal(proc_attach(lower, &e), -ELOOP);
	assert_true(proc_mask(lower, &e) < 0);
	assert_int_equal(entries_in(lower, "etc"), 2);
}

static void masking_wants_procfs(void **state)
{
	struct err e;

	(void)state;
	write_file(lower, "proc/kcore", "the image's own", 0644);
	assert_int_equal(proc_mask(lower, &e), -EINVAL);
	assert_text(e.text, "not procfs");
	assert_file(lower, "proc/kcore", "the image's own");
}

static void targets_are_made_whatever_the_umask(void **state)
{
	struct stat st;
	mode_t mask = umask(077);
	struct err e;
	int fd = mount_target(lower, "//a/b/./c/", &e);

	(void)state;
	umask(mask);
	assert_ok(fd);
	close(fd);
	assert_int_equal(fstatat(lower, "a/b/c", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
}

/* ---- the play ---- */

/* pid 1 inside: the rows of the score that are about files. */
static void inside(int out, const struct play *play)
{
	const struct tmpfs_mount tmp = {.path = "/tmp"};
	struct err e;

	umask(077);
	REQUIRE(out, mounts_make_private(&e));
	REQUIRE(out, root_attach(play->rootfd, &e));
	REQUIRE(out, devices_attach(play->rootfd, play->devicesfd, 1 << 20, &e));
	REQUIRE(out, proc_attach(play->rootfd, &e));
	REQUIRE(out, tmpfs_attach(play->rootfd, &tmp, &e));
	REQUIRE(out, proc_mask(play->rootfd, &e));
	REQUIRE(out, root_pivot(play->rootfd, &e));
	REQUIRE(out, account_ensure(GUEST, GUEST, "/workspace", &e));
	if (play->read_only)
		REQUIRE(out, root_make_readonly(&e));
	umask(022);
	play->checks(out);
}

static void enter(int out, void *data)
{
	const struct play *play = data;
	int namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	int status;
	pid_t pid;

	if (play->user_namespace) {
		CHECK(out, setns(play->usernsfd, CLONE_NEWUSER) == 0);
		CHECK(out, setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
	}
	CHECK(out, unshare(namespaces) == 0);
	pid = fork();
	if (pid == 0) {
		inside(out, play);
		_exit(0);
	}
	CHECK(out, waitpid(pid, &status, 0) == pid && status == 0);
}

static void run_play(struct play *play)
{
	const struct disk_limits limits = {
		.bytes = 16 << 20, .inodes = 1000, .backing = DISK_IMAGE};
	const int layerfds[] = {lower, upper};
	uint32_t owner = play->user_namespace ? HOST_BASE : 0;
	struct err e;

	play->usernsfd = play->user_namespace ? make_userns() : -1;
	assert_ok(disk_create(scratch.fd, &limits, owner, &play->disk, &e));
	assert_ok(disk_own_workspace(&play->disk, owner + GUEST, owner + GUEST, &e));
	play->rootfd = overlay_create_by(play->naming, layerfds, 2, play->disk.mountfd,
	                                 play->usernsfd, &e);
	if (play->rootfd < 0 &&
	    (play->rootfd == -EOPNOTSUPP || strstr(e.text, "idmapped mounts"))) {
		disk_release(&play->disk);
		close_fd(&play->usernsfd);
		skip();
	}
	assert_ok(play->rootfd);
	play->devicesfd = devices_create(owner, &e);
	assert_ok(play->devicesfd);
	run_child(enter, play);
	close(play->rootfd);
	close(play->devicesfd);
	close_fd(&play->usernsfd);
	disk_release(&play->disk);
}

/* The layers are as they were, and the host has no mount, no loop device and no file more. */
static void assert_nothing_left(void)
{
	static char text[1 << 20];
	struct err e;

	assert_file(lower, "gone", "gone");
	assert_file(lower, "tree/leaf", "leaf");
	assert_int_equal(entries_in(lower, "tree"), 1);
	assert_int_equal(entries_in(lower, "."), 6);
	assert_int_equal(entries_in(upper, "."), 1);
	assert_int_equal(entries_in(lower, "proc"), 0);
	assert_int_equal(loops_left(&scratch), 0);
	assert_int_equal(entries_in(scratch.fd, "disks"), 1);
	assert_ok(file_read(AT_FDCWD, "/proc/self/mountinfo", text, sizeof text, &e));
	assert_null(strstr(text, scratch.path));
}

static void whole_root(bool user_namespace, enum overlay_naming naming)
{
	struct play play = {
		.user_namespace = user_namespace, .naming = naming, .checks = check_everything};

	run_play(&play);
	assert_nothing_left();
}

static void root_by_descriptor(void **state)
{
	(void)state;
	whole_root(false, OVERLAY_BY_DESCRIPTOR);
}

static void root_by_name(void **state)
{
	(void)state;
	whole_root(false, OVERLAY_BY_NAME);
}

static void root_in_a_user_namespace_by_descriptor(void **state)
{
	(void)state;
	whole_root(true, OVERLAY_BY_DESCRIPTOR);
}

static void root_in_a_user_namespace_by_name(void **state)
{
	(void)state;
	whole_root(true, OVERLAY_BY_NAME);
}

static void read_only_root(void **state)
{
	struct play play = {
		.read_only = true, .naming = OVERLAY_BY_NAME, .checks = check_read_only};

	(void)state;
	run_play(&play);
	assert_nothing_left();
}

static void hostile_accounts(void **state)
{
	struct play play = {.naming = OVERLAY_BY_NAME, .checks = check_hostile_accounts};

	(void)state;
	run_play(&play);
	assert_nothing_left();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(symlinked_targets_are_refused),
		TEST(masking_wants_procfs),
		TEST(targets_are_made_whatever_the_umask),
		TEST(root_by_descriptor),
		TEST(root_by_name),
		TEST(root_in_a_user_namespace_by_descriptor),
		TEST(root_in_a_user_namespace_by_name),
		TEST(read_only_root),
		TEST(hostile_accounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
