/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox's disk: exact limits, nothing left on the host whatever happens, templates, keeping.
 */
#include "tests/unit/rootfs_fixture.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/statfs.h>

#include "rootfs/disk.h"

static const uint64_t mib = 1 << 20;
static struct scratch scratch;

static int setup(void **state)
{
	(void)state;
	scratch_open(&scratch);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_close(&scratch);
	return 0;
}

static struct disk make_disk(enum disk_backing backing, uint64_t bytes, uint64_t inodes)
{
	const struct disk_limits limits = {.bytes = bytes, .inodes = inodes, .backing = backing};
	struct disk disk;
	struct err e;

	assert_ok(disk_create(scratch.fd, &limits, 1234, &disk, &e));
	return disk;
}

/* Writes to upper/NAME until it fails; the bytes that went in. */
static uint64_t fill_bytes(const struct disk *disk, const char *name)
{
	static char block[4096] = {1};
	int fd = openat(disk->mountfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	uint64_t written = 0;
	ssize_t got;

	assert_true(fd >= 0);
	while ((got = write(fd, block, sizeof block)) > 0)
		written += (uint64_t)got;
	assert_int_equal(errno, ENOSPC);
	close(fd);
	return written;
}

static uint64_t fill_inodes(const struct disk *disk)
{
	uint64_t made = 0;
	char name[32];

	for (;;) {
		snprintf(name, sizeof name, "upper/f%d", (int)made);
		if (mknodat(disk->mountfd, name, S_IFREG | 0600, 0) < 0)
			break;
		made++;
	}
	assert_int_equal(errno, ENOSPC);
	return made;
}

static void check_limits_of(enum disk_backing backing)
{
	struct disk disk = make_disk(backing, 16 * mib, 500);
	struct disk_usage usage;
	struct stat st;
	uint64_t written, made;
	struct err e;

	assert_int_equal(disk.backing, backing);
	assert_int_equal(fstatat(disk.mountfd, "upper", &st, 0), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 1234);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(fstatat(disk.mountfd, "work", &st, 0), 0);
	assert_int_equal(entries_in(disk.mountfd, "."), 2);

	assert_ok(disk_measure(&disk, &usage, &e));
	assert_int_equal(usage.bytes, 0);
	assert_int_equal(usage.bytes_limit, 16 * mib);
	assert_int_equal(usage.inodes, 1); /* workspace/ */
	assert_in_range(usage.inodes_limit, 500, 515);
	assert_false(usage.full);

	written = fill_bytes(&disk, "upper/big");
	assert_in_range(written, 16 * mib - 64 * 1024, 16 * mib);
	assert_ok(disk_measure(&disk, &usage, &e));
	assert_true(usage.full);
	assert_true(usage.bytes >= written && usage.bytes <= usage.bytes_limit);

	assert_int_equal(unlinkat(disk.mountfd, "upper/big", 0), 0);
	made = fill_inodes(&disk);
	assert_in_range(made, 499, usage.inodes_limit - 1);
	assert_ok(disk_measure(&disk, &usage, &e));
	assert_true(usage.full);
	assert_int_equal(usage.inodes, made + 1);
	disk_release(&disk);
	disk_release(&disk);
}

static void image_has_its_limits(void **state)
{
	(void)state;
	check_limits_of(DISK_IMAGE);
	assert_int_equal(loops_left(&scratch), 0);
}

static void tmpfs_has_its_limits(void **state)
{
	(void)state;
	check_limits_of(DISK_TMPFS);
	assert_int_equal(entries_in(scratch.fd, "."), 0);
}

static void sizes_from_tiny_to_wide(void **state)
{
	static const struct {
		uint64_t mib, inodes;
	} sizes[] = {{1, 16},    {16, 200000},   {64, 200000},  {128, 1000},
	             {300, 200}, {512, 1000000}, {1024, 200000}};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct disk disk = make_disk(DISK_IMAGE, sizes[i].mib * mib, sizes[i].inodes);
		struct disk_usage usage;
		struct stat st;
		struct err e;

		assert_ok(disk_measure(&disk, &usage, &e));
		assert_in_range(usage.bytes_limit, sizes[i].mib * mib - 32 * 1024,
		                sizes[i].mib * mib);
		assert_true(usage.inodes_limit >= sizes[i].inodes);
		/* the inode tables were not written: a disk costs next to nothing */
		assert_int_equal(fstat(disk.imagefd, &st), 0);
		assert_true((uint64_t)st.st_blocks * 512 < mib);
		disk_release(&disk);
	}
}

static void bad_limits_are_refused(void **state)
{
	static const struct disk_limits bad[] = {
		{.bytes = 0, .inodes = 100, .backing = DISK_TMPFS},
		{.bytes = UINT64_MAX, .inodes = 100, .backing = DISK_TMPFS},
		{.bytes = 1 << 20, .inodes = 0, .backing = DISK_TMPFS},
		{.bytes = 1 << 20, .inodes = UINT64_MAX, .backing = DISK_IMAGE},
	};
	struct disk disk;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(disk_create(scratch.fd, &bad[i], 0, &disk, &e), -EINVAL);
}

static void no_room_on_the_host(void **state)
{
	const struct disk_limits limits = {
		.bytes = 8ULL << 40, .inodes = 1000, .backing = DISK_IMAGE};
	struct disk disk;
	struct err e;

	(void)state;
	assert_int_equal(disk_create(scratch.fd, &limits, 0, &disk, &e), -ENOSPC);
	assert_text(e.text, "8.0 TiB");
	assert_text(e.text, "lower the limit of bytes or of inodes");
	assert_int_equal(entries_in(scratch.fd, "disks"), 0);
}

static void the_host_gets_its_space_back(void **state)
{
	struct disk disk = make_disk(DISK_IMAGE, 64 * mib, 100);
	struct stat st;
	int pin = dup(disk.imagefd);

	(void)state;
	fill_bytes(&disk, "upper/big");
	assert_int_equal(loops_left(&scratch), 1);
	disk_release(&disk);
	assert_int_equal(loops_left(&scratch), 0);
	/* only the descriptor kept here holds the file: it has no name */
	assert_int_equal(fstat(pin, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	close(pin);
	assert_int_equal(entries_in(scratch.fd, "disks"), 1);
}

/* A process that makes disks until it is killed; it says so before each. */
static pid_t start_maker(int *readyfd, bool fresh_sizes)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (uint64_t i = 0;; i++) {
			const struct disk_limits limits = {.bytes = (4 + (fresh_sizes ? i : 0)) *
			                                            mib,
			                                   .inodes = 100,
			                                   .backing = DISK_IMAGE};
			struct disk disk;
			struct err e;

			if (disk_create(scratch.fd, &limits, 0, &disk, &e) < 0 ||
			    write(fds[1], "x", 1) != 1)
				_exit(1);
			disk_release(&disk);
		}
	}
	close(fds[1]);
	*readyfd = fds[0];
	return pid;
}

static void killed_at_any_moment(void **state)
{
	(void)state;
	for (int round = 0; round < 12; round++) {
		int readyfd, status;
		char bytes[4];
		pid_t pid = start_maker(&readyfd, round % 2);

		for (int i = 0; i < round / 2; i++)
			assert_int_equal(read(readyfd, bytes, 1), 1);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		close(readyfd);
	}
	assert_int_equal(loops_left(&scratch), 0);
	if (faccessat(scratch.fd, "disks", F_OK, 0) == 0) {
		int fd = openat(scratch.fd, "disks", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *dir = fdopendir(fd);
		struct dirent *entry;

		assert_non_null(dir);
		while ((entry = readdir(dir)))
			if (entry->d_name[0] != '.')
				assert_text(entry->d_name, "ext4-");
		closedir(dir);
	}
	/* and each template that is there is whole */
	for (uint64_t size = 4; size < 10; size++) {
		struct disk disk = make_disk(DISK_IMAGE, size * mib, 100);

		assert_int_equal(faccessat(disk.mountfd, "upper", F_OK, 0), 0);
		disk_release(&disk);
	}
}

static void broken_template_is_made_anew(void **state)
{
	const char *name = "disks/ext4-4194304-100.img";
	struct disk disk;

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_true(mkdirat(scratch.fd, "disks", 0700) == 0 || errno == EEXIST);
		write_file(scratch.fd, name, round ? "not a file system" : "", 0600);
		if (round == 2) {
			assert_int_equal(unlinkat(scratch.fd, name, 0), 0);
			assert_int_equal(mkfifoat(scratch.fd, name, 0600), 0);
		}
		disk = make_disk(DISK_IMAGE, 4 * mib, 100);
		assert_int_equal(faccessat(disk.mountfd, "upper", F_OK, 0), 0);
		disk_release(&disk);
	}
}

static void makers_at_the_same_time(void **state)
{
	enum { MAKERS = 4, DISKS = 8 };
	pid_t pids[MAKERS];

	(void)state;
	for (int i = 0; i < MAKERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		for (int n = 0; pids[i] == 0 && n <= DISKS; n++) {
			const struct disk_limits limits = {
				.bytes = 4 * mib, .inodes = 100, .backing = DISK_IMAGE};
			struct disk disk;
			struct err e;

			if (n == DISKS)
				_exit(0);
			if (disk_create(scratch.fd, &limits, 0, &disk, &e) < 0) {
				print_error("%s\n", e.text);
				_exit(1);
			}
			disk_release(&disk);
		}
	}
	for (int i = 0; i < MAKERS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(loops_left(&scratch), 0);
	assert_int_equal(entries_in(scratch.fd, "disks"), 1);
}

static void kept_disk_can_be_read(void **state)
{
	struct disk disk = make_disk(DISK_IMAGE, 4 * mib, 100);
	char path[128];
	const char *const fsck[] = {"e2fsck", "-f", "-n", path, NULL};
	const char *const cat[] = {"debugfs", "-R", "cat upper/result", path, NULL};
	char text[16];
	int textfd;
	struct err e;

	(void)state;
	write_file(disk.mountfd, "upper/result", "kept", 0644);
	assert_int_equal(disk_keep(&disk, scratch.fd, "../out", &e), -EINVAL);
	assert_int_equal(disk_keep(&disk, scratch.fd, "", &e), -EINVAL);
	assert_ok(disk_keep(&disk, scratch.fd, "job1", &e));
	assert_int_equal(disk_keep(&disk, scratch.fd, "job1", &e), -EEXIST);
	disk_release(&disk);
	assert_int_equal(loops_left(&scratch), 0);

	snprintf(path, sizeof path, "%s/kept/job1.ext4", scratch.path);
	assert_ok(process_run(fsck, NULL, -1, -1, &e));
	textfd = memfd_create("text", MFD_CLOEXEC);
	assert_true(textfd >= 0);
	assert_ok(process_run(cat, NULL, -1, textfd, &e));
	assert_int_equal(pread(textfd, text, sizeof text, 0), strlen("kept"));
	assert_memory_equal(text, "kept", strlen("kept"));
	close(textfd);
}

static void memory_cannot_be_kept(void **state)
{
	struct disk disk = make_disk(DISK_TMPFS, 4 * mib, 100);
	struct err e;

	(void)state;
	assert_int_equal(disk_keep(&disk, scratch.fd, "job1", &e), -EINVAL);
	assert_text(e.text, "image");
	disk_release(&disk);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(image_has_its_limits),    TEST(tmpfs_has_its_limits),
		TEST(sizes_from_tiny_to_wide), TEST(bad_limits_are_refused),
		TEST(no_room_on_the_host),     TEST(the_host_gets_its_space_back),
		TEST(killed_at_any_moment),    TEST(broken_template_is_made_anew),
		TEST(makers_at_the_same_time), TEST(kept_disk_can_be_read),
		TEST(memory_cannot_be_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
