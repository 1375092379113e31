/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every archive of hostile_archives.py, as a checkout and as an image, twice:
 *
 *	SCRATCH/outside/canary   must never change
 *	SCRATCH/archives/        what the generator writes
 *	SCRATCH/in/target/       where it is unpacked
 */
#include "tests/unit/archive_fixture.h"

struct canary {
	struct stat file, dir;
};

static void look_at_canary(struct canary *canary)
{
	memset(canary, 0, sizeof *canary);
	OK(fstatat(scratchfd, "outside/canary", &canary->file, 0));
	OK(fstatat(scratchfd, "outside", &canary->dir, 0));
	expect_content(scratchfd, "outside/canary", "canary");
}

static void expect_canary(const struct canary *before, const char *archive)
{
	struct canary now;

	look_at_canary(&now);
	if (now.file.st_ctim.tv_sec != before->file.st_ctim.tv_sec ||
	    now.file.st_ctim.tv_nsec != before->file.st_ctim.tv_nsec || now.file.st_nlink != 1 ||
	    now.dir.st_ctim.tv_sec != before->dir.st_ctim.tv_sec ||
	    now.dir.st_ctim.tv_nsec != before->dir.st_ctim.tv_nsec)
		fail_msg("%s has changed something outside", archive);
	if (faccessat(scratchfd, "escaped", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    faccessat(scratchfd, "in/escaped", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		fail_msg("%s has made a file outside", archive);
}

enum mode { CHECKOUT, IMAGE, LAYER };
static const char *const modes[] = {"checkout", "image", "layer"};

/* None in a checkout; none of overlayfs's in an image. */
static void expect_harmless_attributes(int fd, enum mode mode, const char *archive)
{
	char list[4096];
	ssize_t length = flistxattr(fd, list, sizeof list - 1);

	assert_in_range(length, 0, sizeof list - 1);
	list[length] = '\0';
	for (char *name = list; name < list + length; name += strlen(name) + 1)
		if (mode == CHECKOUT || strstr(name, "overlay"))
			fail_msg("%s has set %s", archive, name);
}

/* No device but a layer's whiteouts, and in a checkout nothing that gives a privilege or that is a
 * stranger's. */
static void expect_harmless(int dirfd, enum mode mode, const char *archive)
{
	scoped_dir dir = fdopendir(fcntl(dirfd, F_DUPFD_CLOEXEC, 0));
	struct dirent *entry;
	struct stat st;

	assert_non_null(dir);
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		OK(fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW));
		if (S_ISBLK(st.st_mode) ||
		    (S_ISCHR(st.st_mode) && (mode != LAYER || st.st_rdev != 0)))
			fail_msg("%s has made a device", archive);
		if (mode == CHECKOUT && !S_ISLNK(st.st_mode) &&
		    (st.st_mode & 07022 || st.st_uid != geteuid() || S_ISFIFO(st.st_mode)))
			fail_msg("%s: mode %o, owner %u in a checkout", archive, st.st_mode,
			         st.st_uid);
		if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) {
			scoped_fd fd = openat(dirfd, entry->d_name,
			                      O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

			OK(fd);
			expect_harmless_attributes(fd, mode, archive);
			if (S_ISDIR(st.st_mode))
				expect_harmless(fd, mode, archive);
		}
	}
}

static void unpack_hostile(const char *archive, enum mode mode, const char *expected)
{
	static const char *const kinds[] = {"", "ok", "bad", "limit"};
	int prints[2];
	char path[600];
	struct canary before;
	struct run runs[2];

	look_at_canary(&before);
	for (int i = 0; i < 2; i++) {
		scoped_fd targetfd = -1, infd = -1;
		scoped_fd opaquefd = memory_file();

		close(make_dir("in"));
		targetfd = make_dir("in/target");
		snprintf(path, sizeof path, "archives/%s", archive);
		OK(infd = openat(scratchfd, path, O_RDONLY | O_CLOEXEC));
		run_program(&runs[i], targetfd, infd, opaquefd,
		            ARGS("unpack", "--mode", modes[mode], LIMITS, "--result-fd", "3",
		                 "--opaque-fd", "1"));
		if (runs[i].result.kind < 1 || runs[i].result.kind > 3 ||
		    strcmp(kinds[runs[i].result.kind], expected) != 0)
			fail_msg("%s as %s: expected %s, got %d: %s", archive, modes[mode],
			         expected, runs[i].result.kind, runs[i].text);
		assert_int_equal(runs[i].status, strcmp(expected, "ok") == 0 ? 0 : 1);
		assert_int_equal(runs[i].result.text[0] == '\0', runs[i].status == 0);
		expect_canary(&before, archive);
		expect_harmless(targetfd, mode, archive);
		prints[i] = fingerprint(targetfd);
	}
	assert_string_equal(runs[0].result.text, runs[1].result.text);
	if (!same_bytes(prints[0], prints[1]))
		fail_msg("%s as %s: two runs, two trees", archive, modes[mode]);
	close(prints[0]);
	close(prints[1]);
}

static void test_hostile(void **state)
{
	char archives[PATH_MAX + 16], outside[PATH_MAX + 16], path[PATH_MAX + 32];
	char archive[200], expected_as[3][16];
	const char *const argv[] = {"python3", generator, archives, outside, NULL};
	scoped_fd outsidefd = make_dir("outside");
	int cases = 0;
	FILE *expected;

	(void)state;
	close(make_dir("archives"));
	put_file(outsidefd, "canary", "canary", 0644);
	snprintf(archives, sizeof archives, "%s/archives", scratch);
	snprintf(outside, sizeof outside, "%s/outside", scratch);
	OK(process_run(argv, NULL, -1, -1, &e));
	snprintf(path, sizeof path, "%s/expected", archives);
	expected = fopen(path, "re");
	assert_non_null(expected);
	for (; fscanf(expected, "%199s %15s %15s %15s", archive, expected_as[CHECKOUT],
	              expected_as[IMAGE], expected_as[LAYER]) == 4;
	     cases++)
		for (enum mode mode = CHECKOUT; mode <= LAYER; mode++)
			unpack_hostile(archive, mode, expected_as[mode]);
	fclose(expected);
	assert_true(cases > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
