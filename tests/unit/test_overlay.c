/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay, with both ways to name its layers: order, copies, whiteouts, ids, bounds. */
#include "tests/unit/rootfs_fixture.h"

#include "rootfs/detached.h"
#include "rootfs/disk.h"
#include "rootfs/image.h"
#include "rootfs/mounts.h"
#include "rootfs/overlay_internal.h"

static struct scratch scratch;
static int layers[3];

static int setup(void **state)
{
	(void)state;
	scratch_open(&scratch);
	for (int i = 0; i < 3; i++) {
		char name[16], text[16];

		snprintf(name, sizeof name, "layer%d", i);
		snprintf(text, sizeof text, "from %d", i);
		layers[i] = make_layer(&scratch, name);
		write_file(layers[i], "same", text, 0644);
		write_file(layers[i], name, text, 0644);
	}
	assert_int_equal(mkdirat(layers[0], "tree", 0755), 0);
	write_file(layers[0], "tree/leaf", "leaf", 0644);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		close(layers[i]);
	scratch_close(&scratch);
	return 0;
}

static struct disk make_disk(uint32_t owner)
{
	const struct disk_limits limits = {
		.bytes = 16 << 20, .inodes = 1000, .backing = DISK_IMAGE};
	struct disk disk;
	struct err e;

	assert_ok(disk_create(scratch.fd, &limits, owner, &disk, &e));
	return disk;
}

static bool lacks_descriptors(enum overlay_naming naming)
{
	struct err e;
	int fd = overlay_create_by(OVERLAY_BY_DESCRIPTOR, layers, 3, -1, -1, &e);

	if (fd >= 0)
		close(fd);
	return naming == OVERLAY_BY_DESCRIPTOR && fd == -EOPNOTSUPP;
}

static void write_above(enum overlay_naming naming)
{
	struct disk disk;
	struct err e;
	int fd;

	if (lacks_descriptors(naming))
		skip();
	disk = make_disk(0);
	fd = overlay_create_by(naming, layers, 3, disk.mountfd, -1, &e);
	assert_ok(fd);
	assert_file(fd, "same", "from 2");
	assert_file(fd, "layer0", "from 0");
	assert_file(fd, "layer1", "from 1");

	write_file(fd, "same", "changed", 0644);
	assert_file(fd, "same", "changed");
	assert_int_equal(unlinkat(fd, "layer1", 0), 0);
	assert_int_equal(faccessat(fd, "layer1", F_OK, 0), -1);
	assert_int_equal(renameat(fd, "tree", fd, "moved"), 0);
	assert_file(fd, "moved/leaf", "leaf");
	assert_int_equal(faccessat(fd, "tree", F_OK, 0), -1);
	write_file(fd, "moved/leaf", "new", 0644);

	close(fd);
	disk_release(&disk);
	assert_file(layers[2], "same", "from 2");
	assert_file(layers[1], "layer1", "from 1");
	assert_file(layers[0], "tree/leaf", "leaf");
	assert_int_equal(loops_left(&scratch), 0);
}

static void write_above_by_descriptor(void **state)
{
	(void)state;
	write_above(OVERLAY_BY_DESCRIPTOR);
}

static void write_above_by_name(void **state)
{
	char before[256], after[256];

	(void)state;
	assert_non_null(getcwd(before, sizeof before));
	write_above(OVERLAY_BY_NAME);
	assert_non_null(getcwd(after, sizeof after));
	assert_string_equal(before, after);
}

/* Without a disk nothing can be written, with one layer as with several. */
static void read_only(void **state)
{
	(void)state;
	for (int naming = OVERLAY_BY_DESCRIPTOR; naming <= OVERLAY_BY_NAME; naming++) {
		if (lacks_descriptors((enum overlay_naming)naming))
			continue;
		for (int count = 1; count <= 3; count++) {
			char text[16];
			struct err e;
			int fd = overlay_create_by((enum overlay_naming)naming, layers, count, -1,
			                           -1, &e);

			assert_ok(fd);
			snprintf(text, sizeof text, "from %d", count - 1);
			assert_file(fd, "same", text);
			assert_int_equal(openat(fd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
			                 -1);
			assert_int_equal(errno, EROFS);
			close(fd);
		}
	}
}

static void as_many_layers_as_an_image_has(void **state)
{
	(void)state;
	for (int naming = OVERLAY_BY_DESCRIPTOR; naming <= OVERLAY_BY_NAME; naming++) {
		int many[IMAGE_LAYERS_MAX + 1], fd;
		struct disk disk;
		struct err e;

		if (lacks_descriptors((enum overlay_naming)naming))
			continue;
		disk = make_disk(0);
		for (int i = 0; i <= IMAGE_LAYERS_MAX; i++) {
			char name[32];

			snprintf(name, sizeof name, "many%d-%d", naming, i);
			many[i] = make_layer(&scratch, name);
			write_file(many[i], "number", name, 0644);
		}
		fd = overlay_create_by((enum overlay_naming)naming, many, IMAGE_LAYERS_MAX,
		                       disk.mountfd, -1, &e);
		assert_ok(fd);
		assert_file(fd, "number", naming ? "many1-63" : "many0-63");
		close(fd);
		assert_int_equal(overlay_create_by((enum overlay_naming)naming, many,
		                                   IMAGE_LAYERS_MAX + 1, disk.mountfd, -1, &e),
		                 -EINVAL);
		assert_int_equal(overlay_create_by((enum overlay_naming)naming, many, 0,
		                                   disk.mountfd, -1, &e),
		                 -EINVAL);
		for (int i = 0; i <= IMAGE_LAYERS_MAX; i++)
			close(many[i]);
		disk_release(&disk);
	}
}

/* The host sees the sandbox's ids: the layers' root is root of the range, what is copied up stays
 * so. */
static void layers_are_idmapped(void **state)
{
	int usernsfd = make_userns();
	struct disk disk = make_disk(HOST_BASE);
	struct stat st;
	struct err e;
	int fd;

	(void)state;
	assert_int_equal(fchownat(layers[0], "layer0", 33, 34, 0), 0);
	fd = overlay_create(layers, 3, disk.mountfd, usernsfd, &e);
	if (fd == -EOPNOTSUPP && strstr(e.text, "lacks idmapped mounts"))
		skip();
	assert_ok(fd);
	assert_int_equal(fstatat(fd, "same", &st, 0), 0);
	assert_int_equal(st.st_uid, HOST_BASE);
	assert_int_equal(fstatat(fd, "layer0", &st, 0), 0);
	assert_int_equal(st.st_uid, HOST_BASE + 33);
	assert_int_equal(st.st_gid, HOST_BASE + 34);
	assert_int_equal(fstatat(fd, ".", &st, 0), 0);
	assert_int_equal(st.st_uid, HOST_BASE);
	assert_int_equal(fchmodat(fd, "layer0", 0600, 0), 0);
	assert_int_equal(fstatat(fd, "layer0", &st, 0), 0);
	assert_int_equal(st.st_uid, HOST_BASE + 33);
	close(fd);
	close(usernsfd);
	assert_int_equal(fstatat(disk.mountfd, "upper/layer0", &st, 0), 0);
	assert_int_equal(st.st_uid, HOST_BASE + 33);
	disk_release(&disk);
	assert_int_equal(fstatat(layers[0], "layer0", &st, 0), 0);
	assert_int_equal(st.st_uid, 33);
	assert_int_equal(st.st_mode & 0777, 0644);
}

/* What --allow-missing userns goes by. ramfs is of those that cannot be idmapped. */
static void a_layer_that_cannot_be_idmapped_is_told(void **state)
{
	int usernsfd = make_userns(), fd, copy;
	struct err e;

	(void)state;
	fd = detached_mount("ramfs", NULL, 0, 0, &e);
	assert_ok(fd);
	copy = detached_clone(fd, "", &e);
	if (copy < 0) {
		close(fd);
		close(usernsfd);
		print_message("this kernel cannot copy a detached mount\n");
		skip();
	}
	close(copy);
	assert_int_equal(overlay_create(&fd, 1, -1, usernsfd, &e), -EOPNOTSUPP);
	assert_text(e.text, "lacks idmapped mounts");
	close(fd);
	close(usernsfd);
}

/* The mark of a volatile overlay would make a kept disk useless. */
static void kept_disk_can_be_stacked_again(void **state)
{
	struct disk disk = make_disk(0);
	struct err e;
	int fd;

	(void)state;
	if (lacks_descriptors(OVERLAY_BY_DESCRIPTOR)) {
		disk_release(&disk);
		skip();
	}
	fd = overlay_create(layers, 3, disk.mountfd, -1, &e);
	assert_ok(fd);
	write_file(fd, "result", "kept", 0644);
	close(fd);
	assert_int_equal(overlay_create(layers, 3, disk.mountfd, -1, &e), -EINVAL);
	assert_ok(disk_keep(&disk, scratch.fd, "job1", &e));
	fd = overlay_create(layers, 3, disk.mountfd, -1, &e);
	assert_ok(fd);
	assert_file(fd, "result", "kept");
	close(fd);
	disk_release(&disk);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write_above_by_descriptor),
		TEST(write_above_by_name),
		TEST(read_only),
		TEST(as_many_layers_as_an_image_has),
		TEST(layers_are_idmapped),
		TEST(a_layer_that_cannot_be_idmapped_is_told),
		TEST(kept_disk_can_be_stacked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
