/* SPDX-License-Identifier: Apache-2.0 */
/* agentdock-archive: pack and back, limits, decompression, confinement, its end. Hostile archives are
 * in test_archive_hostile.c. */
#include "tests/unit/archive_fixture.h"

/* ---- pack and back ---- */

static void make_deep(int dirfd, int levels)
{
	scoped_fd fd = dup(dirfd);

	for (int i = 0; i < levels; i++) {
		int next;

		OK(mkdirat(fd, "deeper", 0755));
		OK(next = openat(fd, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		close(fd);
		fd = next;
	}
	put_file(fd, "bottom", "reached", 0644);
}

static void make_tree(int dirfd)
{
	const struct timespec times[2] = {{.tv_sec = 86400}, {.tv_sec = 86400}};
	char name[256], link[2001];

	memset(name, 'n', 255);
	name[255] = '\0';
	memset(link, 'l', 2000);
	link[2000] = '\0';
	put_file(dirfd, "empty", "", 0600);
	put_file(dirfd, "setuid", "#!/bin/sh\n", 04755);
	put_file(dirfd, "latin-\xe9", "x", 0644);
	put_file(dirfd, "new\nline", "x", 0644);
	put_file(dirfd, name, "255", 0644);
	name[250] = '\xff';
	put_file(dirfd, name, "255 bytes, not UTF-8", 0644);
	put_file(dirfd, "old", "x", 0644);
	OK(utimensat(dirfd, "old", times, 0));
	OK(linkat(dirfd, "setuid", dirfd, "a hard link", 0));
	OK(symlinkat("/etc", dirfd, "absolute"));
	OK(symlinkat(link, dirfd, "long link"));
	OK(linkat(dirfd, "absolute", dirfd, "another absolute", 0));
	OK(mkfifoat(dirfd, "fifo", 0644));
	OK(mkdirat(dirfd, "locked", 0755));
	put_file(dirfd, "locked/inside", "x", 0400);
	OK(fchownat(dirfd, "locked/inside", 5, 4000000, 0));
	OK(fchmodat(dirfd, "locked", 0111, 0));
	make_deep(dirfd, 900); /* 6300 bytes of path */
}

static void pack_to(int dirfd, int fd, struct run *run)
{
	run_program(run, dirfd, -1, fd,
	            ARGS("pack", "--keep-owner", "--xattrs", "--result-fd", "3"));
}

static void test_round_trip(void **state)
{
	scoped_fd sourcefd = make_dir("source"), targetfd = make_dir("target");
	scoped_fd firstfd = memory_file(), againfd = memory_file(), backfd = memory_file();
	struct stat st1, st2;
	struct run run;

	(void)state;
	make_tree(sourcefd);
	pack_to(sourcefd, firstfd, &run);
	expect_ok(&run);
	pack_to(sourcefd, againfd, &run);
	expect_ok(&run);
	assert_true(same_bytes(firstfd, againfd));
	run_program(&run, targetfd, rewound(firstfd), -1,
	            ARGS("unpack", "--mode", "image", LIMITS, "--result-fd", "3"));
	expect_ok(&run);
	assert_true(run.result.entries > 900);
	pack_to(targetfd, backfd, &run);
	expect_ok(&run);
	assert_true(same_bytes(firstfd, backfd));

	OK(fstatat(targetfd, "a hard link", &st1, 0));
	OK(fstatat(targetfd, "setuid", &st2, 0));
	assert_int_equal(st1.st_ino, st2.st_ino);
	assert_int_equal(st2.st_mode, S_IFREG | 04755);
	OK(fstatat(targetfd, "old", &st1, 0));
	assert_int_equal(st1.st_mtim.tv_sec, 86400);
	OK(fstatat(targetfd, "locked/inside", &st1, 0));
	assert_int_equal(st1.st_uid, 5);
	assert_int_equal(st1.st_gid, 4000000);
}

static void test_checkout(void **state)
{
	scoped_fd sourcefd = make_dir("source"), targetfd = make_dir("target");
	scoped_fd tarfd = memory_file();
	struct stat st;
	struct run run;

	(void)state;
	make_tree(sourcefd);
	pack_to(sourcefd, tarfd, &run);
	expect_ok(&run);
	run_program(&run, targetfd, rewound(tarfd), -1,
	            ARGS("unpack", "--mode", "checkout", LIMITS, "--owner", "10001:10002",
	                 "--result-fd", "3"));
	expect_ok(&run);
	assert_int_equal(run.result.skipped, 1); /* the FIFO */
	OK(fstatat(targetfd, "setuid", &st, 0));
	assert_int_equal(st.st_mode, S_IFREG | 0755);
	assert_int_equal(st.st_uid, 10001);
	assert_int_equal(st.st_gid, 10002);
	OK(fstatat(targetfd, "locked", &st, 0));
	assert_int_equal(st.st_mode, S_IFDIR | 0711);
	assert_int_equal(st.st_uid, 10001);
	OK(fstatat(targetfd, "locked/inside", &st, 0));
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	OK(fstatat(targetfd, "absolute", &st, AT_SYMLINK_NOFOLLOW));
	assert_int_equal(st.st_uid, 10001);
}

static void test_xattrs(void **state)
{
	/* VFS_CAP_REVISION_2, CAP_NET_RAW permitted and effective; linux/capability.h */
	static const uint32_t capability[5] = {0x02000001, 1 << 13};
	scoped_fd sourcefd = make_dir("source"), targetfd = make_dir("target");
	scoped_fd tarfd = memory_file(), fd = -1, backfd = -1;
	uint32_t back[6];
	char value[16];
	struct run run;

	(void)state;
	put_file(sourcefd, "ping", "x", 0755);
	OK(fd = openat(sourcefd, "ping", O_RDONLY | O_CLOEXEC));
	OK(fsetxattr(fd, "security.capability", capability, sizeof capability, 0));
	OK(fsetxattr(fd, "user.note", "hello", 5, 0));
	OK(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0));
	pack_to(sourcefd, tarfd, &run);
	expect_ok(&run);
	assert_false(holds(tarfd, "overlay"));
	run_program(&run, targetfd, rewound(tarfd), -1,
	            ARGS("unpack", "--mode", "image", LIMITS, "--result-fd", "3"));
	expect_ok(&run);
	OK(backfd = openat(targetfd, "ping", O_RDONLY | O_CLOEXEC));
	assert_int_equal(fgetxattr(backfd, "security.capability", back, sizeof back),
	                 sizeof capability);
	assert_memory_equal(back, capability, sizeof capability);
	assert_int_equal(fgetxattr(backfd, "user.note", value, sizeof value), 5);
	assert_int_equal(fgetxattr(backfd, "user.overlay.opaque", value, sizeof value), -1);
}

static void test_pack_skips(void **state)
{
	scoped_fd sourcefd = make_dir("source"), tarfd = memory_file();
	struct run run;

	(void)state;
	put_file(sourcefd, "file", "x", 0644);
	OK(mknodat(sourcefd, "null", S_IFCHR | 0666, 0x103));
	OK(mknodat(sourcefd, "socket", S_IFSOCK | 0666, 0));
	pack_to(sourcefd, tarfd, &run);
	expect_ok(&run);
	assert_int_equal(run.result.skipped, 2);
	assert_int_equal(run.result.entries, 1);
	assert_int_equal(run.result.bytes, 1);
}

/* Changes a tree as fast as it can, for ever: what is a file, a directory or a link to OUTSIDE
 * changes all the time. */
static void flip(int dirfd)
{
	for (;;) {
		put_file(dirfd, "f", "inside", 0644);
		unlinkat(dirfd, "f", 0);
		OK(symlinkat("../outside/canary", dirfd, "f"));
		unlinkat(dirfd, "f", 0);
		mkfifoat(dirfd, "f", 0644);
		unlinkat(dirfd, "f", 0);
		mkdirat(dirfd, "d", 0755);
		put_file(dirfd, "d/canary", "inside", 0644);
		renameat(dirfd, "d", dirfd, "moved");
		OK(symlinkat("../outside", dirfd, "d"));
		unlinkat(dirfd, "d", 0);
		unlinkat(dirfd, "moved/canary", 0);
		unlinkat(dirfd, "moved", AT_REMOVEDIR);
	}
}

static void test_changing_tree(void **state)
{
	scoped_fd sourcefd = make_dir("source"), outsidefd = make_dir("outside");
	pid_t child;
	struct run run;
	int packed = 0;

	(void)state;
	put_file(outsidefd, "canary", "SECRET", 0644);
	put_file(sourcefd, "stays", "x", 0644);
	child = fork();
	if (child == 0)
		flip(sourcefd);
	assert_true(child > 0);
	for (int i = 0; i < 200; i++) {
		scoped_fd tarfd = memory_file(), targetfd = make_dir("target");

		pack_to(sourcefd, tarfd, &run);
		if (run.status != 0) {
			assert_int_equal(run.result.code, EAGAIN);
			continue;
		}
		packed++;
		assert_false(holds(tarfd, "SECRET"));
		run_program(&run, targetfd, rewound(tarfd), -1,
		            ARGS("unpack", "--mode", "image", LIMITS, "--result-fd", "3"));
		expect_ok(&run);
		expect_content(targetfd, "stays", "x");
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(packed > 0);
}

/* ---- limits ---- */

static void test_limits(void **state)
{
	static const struct {
		const char *bytes, *entries;
		int kind;
	} rows[] = {
		{"30", "4", ARCHIVE_RESULT_OK},
		{"29", "4", ARCHIVE_RESULT_LIMIT},
		{"30", "3", ARCHIVE_RESULT_LIMIT},
		{"0", "0", ARCHIVE_RESULT_LIMIT},
	};
	scoped_fd sourcefd = make_dir("source"), tarfd = memory_file();
	struct run run;

	(void)state;
	OK(mkdirat(sourcefd, "d", 0755));
	put_file(sourcefd, "a", "0123456789", 0644);
	put_file(sourcefd, "b", "0123456789", 0644);
	put_file(sourcefd, "d/c", "0123456789", 0644);
	pack_to(sourcefd, tarfd, &run);
	expect_ok(&run);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		scoped_fd targetfd = make_dir("target");

		run_program(&run, targetfd, rewound(tarfd), -1,
		            ARGS("unpack", "--mode", "image", "--limit-bytes", rows[i].bytes,
		                 "--limit-entries", rows[i].entries, "--result-fd", "3"));
		assert_int_equal(run.result.kind, rows[i].kind);
		if (rows[i].kind == ARCHIVE_RESULT_OK) {
			assert_int_equal(run.result.bytes, 30);
			assert_int_equal(run.result.entries, 4);
		}
	}
}

/* In a child with a mount namespace of its own: unpacks onto a file system of 64 KiB. */
static int unpack_onto_small(int tarfd)
{
	char path[PATH_MAX + 16];
	struct run run;
	int fd;

	snprintf(path, sizeof path, "%s/target", scratch);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("small", path, "tmpfs", 0, "size=64k") < 0)
		return 1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	run_program(&run, fd, tarfd, -1,
	            ARGS("unpack", "--mode", "image", LIMITS, "--result-fd", "3"));
	return run.status == 125 && run.result.kind == ARCHIVE_RESULT_NO_SPACE ? 0 : 2;
}

static void test_no_space(void **state)
{
	scoped_fd sourcefd = make_dir("source");
	scoped_fd tarfd = memory_file(), bigfd = -1;
	struct run run;
	pid_t child;
	int status;

	(void)state;
	close(make_dir("target"));
	OK(bigfd = openat(sourcefd, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	OK(ftruncate(bigfd, 1 << 20));
	pack_to(sourcefd, tarfd, &run);
	expect_ok(&run);
	rewound(tarfd);
	child = fork();
	if (child == 0)
		_exit(unpack_onto_small(tarfd));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- cat ---- */

static int output_of(const char *command)
{
	const char *const argv[] = {"sh", "-c", command, NULL};
	int fd = memory_file();

	OK(process_run(argv, NULL, -1, fd, &e));
	return fd;
}

static void test_cat(void **state)
{
	static const char *const commands[] = {
		"seq 50000",
		"seq 50000 | gzip",
		"seq 50000 | xz",
		"seq 50000 | bzip2",
		"(seq 25000 | gzip; seq 25001 50000 | gzip)",
	};
	scoped_fd plainfd = output_of(commands[0]);
	char exact[24], less[24];
	struct run run;

	(void)state;
	snprintf(exact, sizeof exact, "%jd", (intmax_t)size_of(plainfd));
	snprintf(less, sizeof less, "%jd", (intmax_t)size_of(plainfd) - 1);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		scoped_fd infd = output_of(commands[i]), outfd = memory_file(),
			  cutfd = memory_file();

		run_program(&run, -1, rewound(infd), outfd,
		            ARGS("cat", "--limit-bytes", exact, "--result-fd", "3"));
		expect_ok(&run);
		assert_true(same_bytes(plainfd, outfd));
		assert_int_equal(run.result.bytes, size_of(plainfd));
		run_program(&run, -1, rewound(infd), cutfd,
		            ARGS("cat", "--limit-bytes", less, "--result-fd", "3"));
		assert_int_equal(run.status, 1);
		assert_int_equal(run.result.kind, ARCHIVE_RESULT_LIMIT);
		assert_true(size_of(cutfd) < size_of(plainfd));
	}
}

static void test_cat_damaged(void **state)
{
	scoped_fd infd = output_of("seq 50000 | gzip | head -c 5000"), outfd = memory_file();
	struct run run;

	(void)state;
	run_program(&run, -1, rewound(infd), outfd,
	            ARGS("cat", "--limit-bytes", "1000000", "--result-fd", "3"));
	assert_int_equal(run.status, 1);
	assert_int_equal(run.result.kind, ARCHIVE_RESULT_BAD_ARCHIVE);
}

/* ---- confinement ---- */

/* A program that waits for its first byte: by then it is confined. */
static pid_t start_waiting(int dirfd, int pipefds[2], const char *const args[])
{
	char path[64], status[4096];
	struct pollfd nothing = {.fd = -1};
	pid_t child;

	OK(pipe2(pipefds, O_CLOEXEC));
	child = fork();
	if (child == 0)
		become(args, dirfd, pipefds[0], -1, 2, scratchfd);
	assert_true(child > 0);
	snprintf(path, sizeof path, "/proc/%d/status", (int)child);
	do {
		poll(&nothing, 1, 1);
		OK(file_read(AT_FDCWD, path, status, sizeof status, &e));
		assert_null(strstr(status, "zombie"));
	} while (!strstr(status, "Seccomp:\t2"));
	return child;
}

static void finish_waiting(pid_t child, int pipefds[2])
{
	int status;

	close(pipefds[0]);
	close(pipefds[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
}

static void read_proc(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	OK(file_read(AT_FDCWD, path, text, size, &e));
}

static ino_t namespace_of(pid_t pid, const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
	OK(stat(path, &st));
	return st.st_ino;
}

static int open_descriptors(pid_t pid, int highest)
{
	char path[64];
	int count = 0;

	for (int fd = 0; fd <= highest; fd++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
		count += faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	}
	return count;
}

static void expect_image_confinement(const char *const args[])
{
	static const char *const namespaces[] = {"user", "mnt", "net", "ipc", "uts"};
	scoped_fd targetfd = make_dir("target");
	char text[4096];
	int pipefds[2];
	pid_t child = start_waiting(targetfd, pipefds, args);

	for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++)
		assert_int_not_equal(namespace_of(child, namespaces[i]),
		                     namespace_of(getpid(), namespaces[i]));
	read_proc(child, "status", text, sizeof text);
	/* CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, SETFCAP 31 */
	assert_non_null(strstr(text, "CapPrm:\t000000008000001b"));
	assert_non_null(strstr(text, "CapEff:\t000000008000001b"));
	assert_non_null(strstr(text, "CapBnd:\t000000008000001b"));
	assert_non_null(strstr(text, "NoNewPrivs:\t1"));
	read_proc(child, "mountinfo", text, sizeof text);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_non_null(strstr(text, "nosuid,nodev,noexec"));
	/* 0, 1, 2 and the target's root: the scratch directory that was passed as 3 is closed */
	assert_int_equal(open_descriptors(child, 255), 4);
	finish_waiting(child, pipefds);
}

static void test_image_confinement(void **state)
{
	(void)state;
	expect_image_confinement(ARGS("unpack", "--mode", "image", LIMITS));
	expect_image_confinement(ARGS("unpack", "--mode", "layer", LIMITS, "--opaque-fd", "1"));
}

static void test_plain_confinement(void **state)
{
	const struct {
		const char *const *args;
		const char *caps;
	} rows[] = {
		{ARGS("cat", "--limit-bytes", "10"), "CapEff:\t0000000000000000"},
		{ARGS("ids", "--user", "x"), "CapEff:\t0000000000000000"},
		{ARGS("unpack", "--mode", "checkout", LIMITS), "CapEff:\t000000008000001b"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		scoped_fd targetfd = make_dir("target");
		char text[4096];
		int pipefds[2];
		pid_t child = start_waiting(targetfd, pipefds, rows[i].args);

		read_proc(child, "status", text, sizeof text);
		assert_non_null(strstr(text, rows[i].caps));
		assert_non_null(strstr(text, "NoNewPrivs:\t1"));
		finish_waiting(child, pipefds);
	}
}

/* The caller is killed: the program must not outlive it. */
static void test_parent_killed(void **state)
{
	int tell[2];
	pid_t parent, grandchild;
	struct pollfd gone = {.events = POLLIN};

	(void)state;
	OK(pipe2(tell, O_CLOEXEC));
	parent = fork();
	if (parent == 0) {
		int pipefds[2];
		scoped_fd targetfd = make_dir("target");

		grandchild = start_waiting(targetfd, pipefds,
		                           ARGS("unpack", "--mode", "image", LIMITS));
		if (write(tell[1], &grandchild, sizeof grandchild) < 0)
			_exit(1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(tell[0], &grandchild, sizeof grandchild), sizeof grandchild);
	gone.fd = (int)syscall(SYS_pidfd_open, grandchild, 0);
	OK(gone.fd);
	OK(kill(parent, SIGKILL));
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_int_equal(poll(&gone, 1, 10000), 1);
	close(gone.fd);
	close(tell[0]);
	close(tell[1]);
}

static void test_usage(void **state)
{
	const char *const *const rows[] = {
		ARGS("explode"),
		ARGS("unpack", "--mode", "image"),
		ARGS("unpack", "--mode", "other", LIMITS),
		ARGS("unpack", "--mode", "image", LIMITS, "--owner", "0:4294967295"),
		ARGS("unpack", "--mode", "image", LIMITS, "--xattrs"),
		ARGS("cat", "--limit-bytes", "-1"),
		ARGS("cat", "--limit-bytes", "1", "--result-fd", "77"),
		ARGS("pack", "more"),
	};
	scoped_fd targetfd = make_dir("target");
	struct run run;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		run_program(&run, targetfd, -1, -1, rows[i]);
		assert_int_equal(run.status, 125);
		assert_int_equal(strncmp(run.text, "agentdock-archive: ", 19), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_checkout),
		cmocka_unit_test(test_xattrs),
		cmocka_unit_test(test_pack_skips),
		cmocka_unit_test(test_changing_tree),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_cat),
		cmocka_unit_test(test_cat_damaged),
		cmocka_unit_test(test_image_confinement),
		cmocka_unit_test(test_plain_confinement),
		cmocka_unit_test(test_parent_killed),
		cmocka_unit_test(test_usage),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
