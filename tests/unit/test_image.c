/* SPDX-License-Identifier: Apache-2.0 */
/* The image store, with the built agentdock-archive beside the tests' directory. Each test has a
 * scratch directory of its own with a store in it. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "rootfs/image_plan.h"
#include "rootfs/image_store.h"

struct scratch {
	char path[64];
	int fd;
	struct image_store store;
};

static char archiver[256];

#define assert_ok(call, e)                                                                         \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, (e).text);                                       \
	} while (0)

static void locate_archiver(void)
{
	char exe[160] = {0};
	char *slash;

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	for (int i = 0; i < 2; i++) { /* BUILD/tests/test_image */
		slash = strrchr(exe, '/');
		assert_non_null(slash);
		*slash = '\0';
	}
	snprintf(archiver, sizeof(archiver), "%s/agentdock-archive", exe);
	if (access(archiver, X_OK) < 0)
		fail_msg("%s is not built", archiver);
}

static int setup(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));
	char path[96];
	struct err e;

	locate_archiver();
	strcpy(s->path, "/tmp/test_image.XXXXXX");
	assert_non_null(mkdtemp(s->path));
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->fd >= 0);
	snprintf(path, sizeof(path), "%s/state", s->path);
	assert_ok(image_store_open(&s->store, path, archiver, &e), e);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scratch *s = *state;
	struct err e;

	image_store_release(&s->store);
	close(s->fd);
	assert_ok(tree_remove(AT_FDCWD, s->path, &e), e);
	free(s);
	return 0;
}

static const char *in_scratch(const struct scratch *s, const char *name)
{
	static char path[4][256];
	static unsigned next;
	char *buffer = path[next++ % 4];

	snprintf(buffer, sizeof(path[0]), "%s/%s", s->path, name);
	return buffer;
}

static void write_file(int dirfd, const char *path, const void *data, size_t length, mode_t mode)
{
	int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	struct err e;

	assert_true(fd >= 0);
	assert_ok(fd_write_all(fd, data, length, &e), e);
	close(fd);
}

static void write_text(int dirfd, const char *path, const char *text)
{
	write_file(dirfd, path, text, strlen(text), 0644);
}

/* A program of MACHINE as far as its header tells. */
static void write_program(int dirfd, const char *path, uint16_t machine)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
		.e_machine = machine,
	};

	write_file(dirfd, path, &header, sizeof(header), 0755);
}

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#endif

/* A root file system by the look of it; CONTENT makes it another one. */
static void make_tree(const struct scratch *s, const char *name, const char *content)
{
	char path[128];
	struct err e;
	int fd;

	snprintf(path, sizeof(path), "%s/bin", name);
	assert_ok(dir_make_all(s->fd, path, 0755, &e), e);
	fd = openat(s->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	write_program(fd, "bin/busybox", HOST_MACHINE);
	assert_int_equal(symlinkat("/bin/busybox", fd, "bin/sh"), 0);
	assert_int_equal(linkat(fd, "bin/busybox", fd, "bin/again", 0), 0);
	write_text(fd, "content", content);
	close(fd);
}

static void run(const char *const argv[])
{
	struct err e;

	assert_ok(process_run(argv, NULL, -1, -1, &e), e);
}

static int count_entries(int dirfd, const char *path)
{
	DIR *dir = fdopendir(openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static void assert_store(const struct scratch *s, int names, int documents, int layers)
{
	assert_int_equal(count_entries(s->store.statefd, "images/names"), names);
	assert_int_equal(count_entries(s->store.statefd, "images/sha256"), documents);
	assert_int_equal(count_entries(s->store.statefd, "layers/sha256"), layers);
	assert_int_equal(count_entries(s->store.statefd, "tmp"), 0);
}

static void import(struct scratch *s, const char *source, const char *name, struct image *image)
{
	struct err e;

	assert_ok(image_import(&s->store, in_scratch(s, source), name, NULL, NULL, NULL, image, &e),
	          e);
}

static void assert_import_fails(struct scratch *s, const char *source, int code, const char *text)
{
	struct image image;
	struct err e;

	assert_int_equal(
		image_import(&s->store, in_scratch(s, source), "x", NULL, NULL, NULL, &image, &e),
		-code);
	if (!strstr(e.text, text))
		fail_msg("no \"%s\" in \"%s\"", text, e.text);
}

static void assert_missing(struct scratch *s, const char *reference, int code)
{
	struct image image;
	struct err e;

	assert_int_equal(image_find(&s->store, reference, &image, &e), -code);
}

/* ---- names and references ---- */

static void test_bad_names(void **state)
{
	struct scratch *s = *state;
	static const char *const bad[] = {
		"",         ".",
		"..",       "/",
		"/a",       "a/",
		"a//b",     "a/../b",
		"../a",     "a/./b",
		"A",        "a b",
		"a\nb",     "a\033b",
		":",        ":tag",
		"a:",       "a:b:c",
		"a:.tag",   "a:-tag",
		"a:t/g",    "-a",
		"a-",       "a..b",
		"a%b",      "a=b",
		"\xc3\xa9", "sha256:abc",
		"sha256",   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	};
	char longest[300];
	struct image image;
	struct err e;

	make_tree(s, "tree", "1");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (image_import(&s->store, in_scratch(s, "tree"), bad[i], NULL, NULL, NULL, &image,
		                 &e) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(image_import(&s->store, in_scratch(s, "tree"), longest, NULL, NULL, NULL,
	                              &image, &e),
	                 -ENAMETOOLONG);
	assert_store(s, 0, 0, 0);
}

static void test_references(void **state)
{
	struct scratch *s = *state;
	static const char *const names[] = {"default", "a/b-c_d.e/f:V1.0-x_y", "0", "beef00"};
	struct image image, found;
	char prefix[16];
	struct err e;

	make_tree(s, "tree", "1");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		import(s, "tree", names[i], &image);
		assert_ok(image_find(&s->store, names[i], &found, &e), e);
		assert_int_equal(found.names.count, 1);
		image_release(&found);
		assert_ok(image_find_names(&s->store, names[i], &found, &e), e);
		assert_string_equal(found.digest, image.digest);
		assert_int_equal(found.names.count, i + 1);
		image_release(&found);
		if (i + 1 < sizeof(names) / sizeof(names[0]))
			image_release(&image);
	}
	assert_ok(image_find(&s->store, "default:latest", &found, &e), e);
	image_release(&found);
	assert_ok(image_find(&s->store, image.digest, &found, &e), e);
	image_release(&found);
	snprintf(prefix, sizeof(prefix), "%.6s", image.digest + 7);
	assert_ok(image_find(&s->store, prefix, &found, &e), e);
	assert_string_equal(found.digest, image.digest);
	image_release(&found);
	snprintf(prefix, sizeof(prefix), "%.5s", image.digest + 7); /* too short for a digest */
	assert_missing(s, prefix, ENOENT);
	assert_missing(s, "default:other", ENOENT);
	assert_missing(s, "../names/default", EINVAL);
	image_release(&image);
}

static void test_missing_image_says_the_way_out(void **state)
{
	struct scratch *s = *state;
	struct image image;
	struct err e;

	assert_int_equal(image_find(&s->store, "python", &image, &e), -ENOENT);
	assert_non_null(strstr(e.text, "image python: not in "));
	assert_non_null(strstr(e.text, "agentdock image import"));
	assert_int_equal(image_find(&s->store, "default", &image, &e), -ENOENT);
	assert_non_null(strstr(e.text, "make image"));
}

/* ---- import ---- */

static void test_same_directory_same_digest(void **state)
{
	struct scratch *s = *state;
	struct image first, second, other;

	make_tree(s, "tree", "1");
	import(s, "tree", "first", &first);
	/* What only the top directory tells is no part of the image. */
	assert_int_equal(chmod(in_scratch(s, "tree"), 0700), 0);
	import(s, "tree", "second", &second);
	assert_string_equal(first.digest, second.digest);
	assert_string_equal(first.layers[0], second.layers[0]);
	assert_true(first.imported_at == second.imported_at);
	assert_string_equal(first.architecture, image_machine());
	assert_int_equal(first.entries, 5);
	assert_store(s, 2, 1, 1);
	make_tree(s, "other", "2");
	import(s, "other", "second", &other);
	assert_string_not_equal(first.digest, other.digest);
	assert_store(s, 2, 2, 2);
	image_release(&first);
	image_release(&second);
	image_release(&other);
}

static void test_same_tar_same_digest(void **state)
{
	struct scratch *s = *state;
	static const struct {
		const char *option, *file;
	} packings[] = {{"-cf", "t.tar"},
	                {"-czf", "t.tar.gz"},
	                {"-cJf", "t.tar.xz"},
	                {"-cjf", "t.tar.bz2"}};
	struct image first, next;

	make_tree(s, "tree", "1");
	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
		run((const char *const[]){"tar", packings[i].option,
		                          in_scratch(s, packings[i].file), "-C",
		                          in_scratch(s, "tree"), ".", NULL});
	import(s, "t.tar", "first", &first);
	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++) {
		import(s, packings[i].file, "next", &next);
		assert_string_equal(first.digest, next.digest);
		image_release(&next);
	}
	assert_store(s, 2, 1, 1);
	image_release(&first);
}

static void test_layer_is_whole_and_reachable(void **state)
{
	struct scratch *s = *state;
	int layerfds[IMAGE_LAYERS_MAX], lockfds[IMAGE_LAYERS_MAX];
	struct image image;
	struct stat st, link;
	char text[16];
	struct err e;
	mode_t old;

	make_tree(s, "tree", "hello");
	assert_int_equal(chmod(in_scratch(s, "tree"), 0700), 0);
	old = umask(0077); /* the operator's is not the image's */
	import(s, "tree", "default", &image);
	umask(old);
	assert_ok(image_open(&s->store, &image, layerfds, lockfds, &e), e);
	assert_int_equal(fstat(layerfds[0], &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(st.st_uid, 0);
	assert_ok((int)file_read(layerfds[0], "content", text, sizeof(text), &e), e);
	assert_string_equal(text, "hello");
	assert_int_equal(fstatat(layerfds[0], "content", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(fstatat(layerfds[0], "bin/busybox", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0755);
	assert_int_equal(fstatat(layerfds[0], "bin/again", &link, 0), 0);
	assert_int_equal(st.st_ino, link.st_ino);
	assert_int_equal(fstatat(s->store.statefd, "layers", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(layerfds[0]);
	close(lockfds[0]);
	image_release(&image);
}

static void count_calls(void *data, uint64_t bytes, uint64_t entries)
{
	uint64_t *last = data;

	assert_true(bytes >= last[1] && entries >= last[2]);
	last[0]++;
	last[1] = bytes;
	last[2] = entries;
}

static void test_progress_ends_with_the_whole(void **state)
{
	struct scratch *s = *state;
	uint64_t last[3] = {0};
	struct image image;
	struct err e;

	make_tree(s, "tree", "hello");
	assert_ok(image_import(&s->store, in_scratch(s, "tree"), "default", NULL, count_calls, last,
	                       &image, &e),
	          e);
	assert_true(last[0] >= 1);
	assert_int_equal(last[1], image.size_bytes);
	assert_int_equal(last[2], image.entries);
	image_release(&image);
}

static void test_sources_that_are_none(void **state)
{
	struct scratch *s = *state;
	struct err e;

	assert_import_fails(s, "absent", ENOENT, "absent");
	assert_import_fails(s, "", EINVAL, "the image store");
	assert_import_fails(s, "state/images", ENOEXEC, "cannot tell its architecture");
	assert_ok(dir_make_all(s->fd, "oci/blobs", 0755, &e), e);
	write_text(s->fd, "oci/oci-layout", "{}");
	assert_import_fails(s, "oci", EINVAL, "imageLayoutVersion");
	assert_store(s, 0, 0, 0);
	s->store.archiver[strlen(s->store.archiver) - 1] = 'x';
	make_tree(s, "tree", "1");
	assert_import_fails(s, "tree", ENOENT, "agentdock-archivx");
	assert_store(s, 0, 0, 0);
}

/* ---- plans ---- */

/* One layer; user "u", workdir "/w", one env, one cmd. */
static void valid_plan(struct image_plan *plan)
{
	memset(plan, 0, sizeof *plan);
	strcpy(plan->architecture, "amd64");
	plan->layers_count = 1;
	snprintf(plan->layers[0].diff_id, IMAGE_DIGEST_SIZE, "sha256:%064d", 0);
	strcpy(plan->layers[0].path, "blob");
	plan->env_count = plan->cmd_count = 1;
	memcpy(plan->text, "u\0/w\0A=b\0c", 11);
}

static void break_machine(struct image_plan *plan)
{
	memset(plan->architecture, 'x', sizeof plan->architecture);
}
static void break_unknown_machine(struct image_plan *plan)
{
	strcpy(plan->architecture, "vax");
}
static void break_no_layer(struct image_plan *plan)
{
	plan->layers_count = 0;
}
static void break_layers(struct image_plan *plan)
{
	plan->layers_count = IMAGE_LAYERS_MAX + 1;
}
static void break_negative(struct image_plan *plan)
{
	plan->layers_count = -1;
}
static void break_diff_id(struct image_plan *plan)
{
	plan->layers[0].diff_id[8] = '/';
}
static void break_digest(struct image_plan *plan)
{
	strcpy(plan->layers[0].digest, "sha256:../../../etc/passwd");
}
static void break_digest_end(struct image_plan *plan)
{
	memset(plan->layers[0].digest, 'a', sizeof plan->layers[0].digest);
}
static void break_path(struct image_plan *plan)
{
	plan->layers[0].path[0] = '\0';
}
static void break_path_end(struct image_plan *plan)
{
	memset(plan->layers[0].path, 'a', sizeof plan->layers[0].path);
}
static void break_words(struct image_plan *plan)
{
	plan->cmd_count = IMAGE_PLAN_WORDS_MAX + 1;
}
static void break_sum(struct image_plan *plan)
{
	plan->env_count = UINT32_MAX;
}
static void break_text_end(struct image_plan *plan)
{
	memset(plan->text, 'a', sizeof plan->text);
}
static void break_last_text(struct image_plan *plan)
{
	memset(plan->text + 10, 'c', sizeof plan->text - 10);
}
static void break_utf8(struct image_plan *plan)
{
	plan->text[0] = '\xff';
}
static void break_env(struct image_plan *plan)
{
	plan->text[6] = 'x';
}
static void break_env_name(struct image_plan *plan)
{
	plan->text[5] = '=';
}

/* What a planner writes that was taken over by what it parsed. */
static void test_plans_that_are_none(void **state)
{
	static void (*const breaks[])(struct image_plan *) = {
		break_machine,  break_unknown_machine, break_no_layer, break_layers,
		break_negative, break_diff_id,         break_digest,   break_digest_end,
		break_path,     break_path_end,        break_words,    break_sum,
		break_text_end, break_last_text,       break_utf8,     break_env,
		break_env_name,
	};
	struct image_plan *plan = malloc(sizeof *plan);
	struct image image = {0};
	struct err e;

	(void)state;
	assert_non_null(plan);
	valid_plan(plan);
	assert_ok(image_plan_check(plan, &e), e);
	assert_ok(image_plan_config(plan, &image, &e), e);
	assert_string_equal(image.user, "u");
	assert_string_equal(image.workdir, "/w");
	assert_string_equal(image.env.items[0], "A=b");
	assert_string_equal(image.cmd.items[0], "c");
	assert_int_equal(image.entrypoint.count, 0);
	image_release(&image);
	for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
		valid_plan(plan);
		breaks[i](plan);
		if (image_plan_check(plan, &e) != -EBADMSG)
			fail_msg("break %zu was taken", i);
	}
	free(plan);
}

/* What tells the machine comes from the image, so it may be anything. */
static void test_hostile_program_files(void **state)
{
	struct scratch *s = *state;
	struct err e;
	int fd;

	assert_ok(dir_make_all(s->fd, "tree/bin", 0755, &e), e);
	fd = openat(s->fd, "tree/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(mkfifoat(fd, "sh", 0666), 0); /* opening it would wait for ever */
	assert_import_fails(s, "tree", ENOEXEC, "cannot tell its architecture");
	assert_int_equal(unlinkat(fd, "sh", 0), 0);
	/* outside of the tree this is a program: through the link it must not be found */
	assert_int_equal(symlinkat("../../../../../../../proc/self/exe", fd, "sh"), 0);
	assert_import_fails(s, "tree", ENOEXEC, "cannot tell its architecture");
	assert_int_equal(unlinkat(fd, "sh", 0), 0);
	assert_int_equal(symlinkat("sh", fd, "sh"), 0);
	assert_import_fails(s, "tree", ENOEXEC, "cannot tell its architecture");
	assert_int_equal(unlinkat(fd, "sh", 0), 0);
	write_text(fd, "sh", "#!/bin/true\n");
	assert_import_fails(s, "tree", ENOEXEC, "cannot tell its architecture");
	close(fd);
	assert_store(s, 0, 0, 0);
}

/* ---- archives made by an enemy ---- */

struct tar_entry {
	const char *name;
	char type;
	const char *link;
	const char *data;
};

static void write_tar(int fd, const struct tar_entry *entries, size_t count)
{
	static const char zeros[1024];
	struct err e;

	for (size_t i = 0; i < count; i++) {
		const struct tar_entry *entry = &entries[i];
		size_t length = entry->data ? strlen(entry->data) : 0;
		char block[512] = {0};
		unsigned sum = 0;

		snprintf(block, 100, "%s", entry->name);
		snprintf(block + 100, 8, "%07o", entry->type == '5' ? 0755 : 0644);
		snprintf(block + 108, 8, "%07o", 0);
		snprintf(block + 116, 8, "%07o", 0);
		snprintf(block + 124, 12, "%011o", (unsigned)length % 1024);
		snprintf(block + 136, 12, "%011o", 0);
		block[156] = entry->type;
		snprintf(block + 157, 100, "%s", entry->link ? entry->link : "");
		memcpy(block + 257, "ustar\00000", 8);
		memset(block + 148, ' ', 8);
		for (size_t j = 0; j < sizeof(block); j++)
			sum += (unsigned char)block[j];
		snprintf(block + 148, 8, "%06o", sum);
		assert_ok(fd_write_all(fd, block, sizeof(block), &e), e);
		assert_true(length < sizeof(block));
		memset(block, 0, sizeof(block));
		if (length)
			memcpy(block, entry->data, length);
		assert_ok(fd_write_all(fd, block, length ? sizeof(block) : 0, &e), e);
	}
	assert_ok(fd_write_all(fd, zeros, sizeof(zeros), &e), e);
}

static void make_tar(const struct scratch *s, const char *file, const struct tar_entry *entries,
                     size_t count)
{
	int fd = openat(s->fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	write_tar(fd, entries, count);
	close(fd);
}

/* Whether it is refused or tamed is the archive program's to say; that nothing leaves the layer and
 * nothing half stays is ours. */
static void test_hostile_tars_leave_nothing(void **state)
{
	struct scratch *s = *state;
	static const struct tar_entry tars[][3] = {
		{{"ok", '0', NULL, "1"}, {"../canary", '0', NULL, "x"}, {"ok2", '0', NULL, "1"}},
		{{"a/../../canary", '0', NULL, "x"}, {"ok", '0', NULL, "1"}, {"b", '0', NULL, "1"}},
		{{"d", '2', "../../../..", NULL},
	         {"d/canary", '0', NULL, "x"},
	         {"b", '0', NULL, "1"}},
		{{"d", '2', "/tmp", NULL},
	         {"d/test_image_escape", '0', NULL, "x"},
	         {"b", '0', NULL, "1"}},
		{{"h", '1', "../lock", NULL}, {"h", '0', NULL, "x"}, {"b", '0', NULL, "1"}},
	};
	char text[16];
	struct image image;
	struct err e;

	write_text(s->fd, "canary", "alive");
	for (size_t i = 0; i < sizeof(tars) / sizeof(tars[0]); i++) {
		make_tar(s, "evil.tar", tars[i], 3);
		/* Without a program none of them can become an image. */
		assert_true(image_import(&s->store, in_scratch(s, "evil.tar"), "x", NULL, NULL,
		                         NULL, &image, &e) < 0);
		assert_non_null(strstr(e.text, "evil.tar"));
		assert_store(s, 0, 0, 0);
	}
	assert_ok((int)file_read(s->fd, "canary", text, sizeof(text), &e), e);
	assert_string_equal(text, "alive");
	assert_int_equal(access("/tmp/test_image_escape", F_OK), -1);
}

static void test_broken_tars_leave_nothing(void **state)
{
	struct scratch *s = *state;
	char garbage[4096];

	make_tree(s, "tree", "1");
	run((const char *const[]){"tar", "-czf", in_scratch(s, "whole.tgz"), "-C",
	                          in_scratch(s, "tree"), ".", NULL});
	run((const char *const[]){"tar", "-cf", in_scratch(s, "whole.tar"), "-C",
	                          in_scratch(s, "tree"), ".", NULL});
	assert_int_equal(truncate(in_scratch(s, "whole.tgz"), 100), 0);
	assert_int_equal(truncate(in_scratch(s, "whole.tar"), 1000), 0);
	memset(garbage, 0xa5, sizeof(garbage));
	write_file(s->fd, "garbage", garbage, sizeof(garbage), 0644);
	write_file(s->fd, "empty", "", 0, 0644);
	assert_import_fails(s, "whole.tgz", EINVAL, "whole.tgz");
	assert_import_fails(s, "whole.tar", EINVAL, "whole.tar");
	assert_import_fails(s, "garbage", EINVAL, "garbage");
	assert_import_fails(s, "empty", EINVAL, "empty");
	assert_store(s, 0, 0, 0);
}

/* ---- other machines ---- */

static void test_wrong_machine_is_refused(void **state)
{
	struct scratch *s = *state;
	int layerfds[IMAGE_LAYERS_MAX], lockfds[IMAGE_LAYERS_MAX];
	struct image image;
	struct err e;

	make_tree(s, "tree", "1");
	assert_int_equal(unlink(in_scratch(s, "tree/bin/busybox")), 0);
	write_program(s->fd, "tree/bin/busybox", EM_RISCV);
	import(s, "tree", "foreign", &image);
	assert_string_equal(image.architecture, "riscv64");
	assert_int_equal(image_open(&s->store, &image, layerfds, lockfds, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "image foreign:latest is for riscv64"));
	image_release(&image);
	assert_int_equal(image_import(&s->store, in_scratch(s, "tree"), "x",
	                              &(struct image_choice){.architecture = "vax"}, NULL, NULL,
	                              &image, &e),
	                 -EINVAL);
	assert_ok(image_import(&s->store, in_scratch(s, "tree"), "x",
	                       &(struct image_choice){.architecture = "arm64"}, NULL, NULL, &image,
	                       &e),
	          e);
	assert_string_equal(image.architecture, "arm64");
	image_release(&image);
}

/* ---- rm, gc, holders ---- */

static void gc_expect(struct scratch *s, uint64_t layers)
{
	uint64_t freed_bytes = 0, removed = 0;
	struct err e;

	assert_ok(image_gc(&s->store, &freed_bytes, &removed, &e), e);
	assert_int_equal(removed, layers);
	assert_int_equal(freed_bytes > 0, layers > 0);
}

static void test_rm_and_gc(void **state)
{
	struct scratch *s = *state;
	struct image image, found;
	struct err e;

	make_tree(s, "tree", "1");
	import(s, "tree", "a", &image);
	import(s, "tree", "b", NULL);
	assert_int_equal(image_remove(&s->store, image.digest, &e), -EBUSY);
	assert_ok(image_remove(&s->store, "a", &e), e);
	assert_missing(s, "a", ENOENT);
	assert_ok(image_find(&s->store, "b", &found, &e), e);
	image_release(&found);
	gc_expect(s, 0);
	assert_store(s, 1, 1, 1);
	assert_ok(image_remove(&s->store, image.digest, &e), e);
	assert_int_equal(image_remove(&s->store, "b", &e), -ENOENT);
	assert_store(s, 0, 0, 1);
	gc_expect(s, 1);
	assert_store(s, 0, 0, 0);
	image_release(&image);
}

/* A process that holds IMAGE until its pipe is closed. */
static pid_t hold(struct scratch *s, const struct image *image, int *releasefd)
{
	int ready[2], release[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(release, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int layerfds[IMAGE_LAYERS_MAX], lockfds[IMAGE_LAYERS_MAX];
		struct err e;

		close(release[1]);
		if (image_open(&s->store, image, layerfds, lockfds, &e) < 0)
			_exit(1);
		_exit(write(ready[1], "r", 1) == 1 && read(release[0], &byte, 1) == 0 &&
		                      faccessat(layerfds[0], "content", F_OK, 0) == 0
		              ? 0
		              : 2);
	}
	close(ready[1]);
	close(release[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*releasefd = release[1];
	return pid;
}

static void assert_exits_0(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_gc_keeps_what_is_held(void **state)
{
	struct scratch *s = *state;
	struct image image;
	struct err e;
	int releasefd;
	pid_t pid;

	make_tree(s, "tree", "1");
	import(s, "tree", "default", &image);
	pid = hold(s, &image, &releasefd);
	assert_ok(image_remove(&s->store, "default", &e), e);
	gc_expect(s, 0);
	assert_store(s, 0, 0, 1);
	close(releasefd);
	assert_exits_0(pid);
	gc_expect(s, 1);
	assert_store(s, 0, 0, 0);
	image_release(&image);
}

static void test_open_after_removal(void **state)
{
	struct scratch *s = *state;
	int layerfds[IMAGE_LAYERS_MAX], lockfds[IMAGE_LAYERS_MAX];
	struct image image;
	struct err e;

	make_tree(s, "tree", "1");
	import(s, "tree", "default", &image);
	assert_ok(image_remove(&s->store, "default", &e), e);
	gc_expect(s, 1);
	assert_int_equal(image_open(&s->store, &image, layerfds, lockfds, &e), -ENOENT);
	assert_non_null(strstr(e.text, "import it again"));
	image_release(&image);
}

/* What a kill between two renames leaves. */
static void test_gc_removes_what_no_name_reaches(void **state)
{
	struct scratch *s = *state;
	char path[IMAGE_PATH_SIZE];
	struct image image;

	make_tree(s, "tree", "1");
	import(s, "tree", "default", &image);
	image_name_path("default:latest", path);
	assert_int_equal(unlinkat(s->store.statefd, path, 0), 0);
	assert_store(s, 0, 1, 1);
	gc_expect(s, 1);
	assert_store(s, 0, 0, 0);
	image_release(&image);

	import(s, "tree", "default", &image);
	assert_int_equal(unlinkat(s->store.statefd, path, 0), 0);
	image_document_path(image.digest, path);
	assert_int_equal(unlinkat(s->store.statefd, path, 0), 0);
	import(s, "tree", "default", NULL); /* stands on the layer that is there */
	assert_store(s, 1, 1, 1);
	image_release(&image);
}

/* Layers of an image that cannot be read are not known to be unused. */
static void test_gc_stops_at_a_broken_document(void **state)
{
	struct scratch *s = *state;
	uint64_t freed_bytes = 0, layers = 0;
	char path[IMAGE_PATH_SIZE];
	struct image image;
	struct err e;

	make_tree(s, "tree", "1");
	import(s, "tree", "default", &image);
	image_document_path(image.digest, path);
	write_text(s->store.statefd, path, "{\"image\": {}}");
	assert_int_equal(image_gc(&s->store, &freed_bytes, &layers, &e), -ENOENT);
	assert_store(s, 1, 1, 1);
	import(s, "tree", "default", NULL);
	gc_expect(s, 0);
	assert_missing(s, "nothing", ENOENT);
	image_release(&image);
}

static void test_list(void **state)
{
	struct scratch *s = *state;
	struct image *images = NULL;
	size_t count = 99;
	struct err e;

	assert_ok(image_list(&s->store, &images, &count, &e), e);
	assert_int_equal(count, 0);
	make_tree(s, "one", "1");
	make_tree(s, "two", "2");
	import(s, "one", "b", NULL);
	import(s, "one", "a:9", NULL);
	import(s, "two", "c", NULL);
	import(s, "one", "c", NULL); /* the second tree loses its name */
	assert_ok(image_list(&s->store, &images, &count, &e), e);
	assert_int_equal(count, 2);
	assert_int_equal(images[0].names.count, 3);
	assert_string_equal(images[0].names.items[0], "a:9");
	assert_string_equal(images[0].names.items[2], "c:latest");
	assert_int_equal(images[1].names.count, 0);
	for (size_t i = 0; i < count; i++)
		image_release(&images[i]);
	free(images);
}

/* ---- many at once ---- */

enum { IMPORTERS = 6 };

static pid_t fork_import(struct scratch *s, const char *tree, const char *name)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e;
		int result = image_import(&s->store, in_scratch(s, tree), name, NULL, NULL, NULL,
		                          NULL, &e);

		if (result < 0)
			fprintf(stderr, "import %s: %s\n", name, e.text);
		_exit(result < 0);
	}
	return pid;
}

static void test_concurrent_imports(void **state)
{
	struct scratch *s = *state;
	static const char *const names[IMPORTERS] = {"a", "b", "c", "same", "same", "same"};
	static const char *const trees[IMPORTERS] = {"one", "one", "two", "one", "two", "two"};
	uint64_t freed_bytes, layers;
	pid_t pids[IMPORTERS];
	struct err e;

	make_tree(s, "one", "1");
	make_tree(s, "two", "2");
	for (int i = 0; i < IMPORTERS; i++)
		pids[i] = fork_import(s, trees[i], names[i]);
	for (int i = 0; i < IMPORTERS; i++) {
		assert_ok(image_gc(&s->store, &freed_bytes, &layers, &e), e);
		assert_exits_0(pids[i]);
	}
	assert_store(s, 4, 2, 2);
}

/* ---- death in the middle ---- */

static void tell_parent(void *data, uint64_t bytes, uint64_t entries)
{
	const int *fd = data;

	(void)bytes;
	(void)entries;
	if (write(*fd, "p", 1) != 1)
		_exit(3);
}

/* An import of standard input, which never ends; dies by SIGKILL once it is under way. */
static void import_and_kill(struct scratch *s)
{
	static const struct tar_entry entries[] = {{"bin", '5', NULL, NULL},
	                                           {"content", '0', NULL, "half"}};
	int input[2], notice[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(notice, O_CLOEXEC), 0);
	write_tar(input[1], entries, 2);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e;

		dup2(input[0], STDIN_FILENO);
		close(input[1]);
		image_import(&s->store, "-", "half",
		             &(struct image_choice){.architecture = image_machine()}, tell_parent,
		             &notice[1], NULL, &e);
		_exit(4);
	}
	close(notice[1]);
	assert_int_equal(read(notice[0], &byte, 1), 1);
	assert_int_equal(count_entries(s->store.statefd, "tmp"), 2);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(notice[0]);
	close(input[0]);
	close(input[1]);
}

/* Until unpack, too, has let go of the slot: the lock is then ours. */
static void wait_for_free_slots(struct scratch *s)
{
	DIR *dir = fdopendir(openat(s->store.statefd, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		int fd;

		if (!strstr(entry->d_name, ".lock"))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(flock(fd, LOCK_EX), 0);
		close(fd);
	}
	closedir(dir);
}

static void test_killed_import_is_cleaned_by_gc(void **state)
{
	struct scratch *s = *state;
	uint64_t freed_bytes = 0, layers = 0;
	struct err e;

	import_and_kill(s);
	wait_for_free_slots(s);
	assert_int_equal(count_entries(s->store.statefd, "tmp"), 2);
	assert_ok(image_gc(&s->store, &freed_bytes, &layers, &e), e);
	assert_true(freed_bytes > 0);
	assert_int_equal(layers, 0);
	assert_store(s, 0, 0, 0);
}

static void test_killed_import_is_cleaned_by_the_next(void **state)
{
	struct scratch *s = *state;

	import_and_kill(s);
	wait_for_free_slots(s);
	make_tree(s, "tree", "1");
	import(s, "tree", "default", NULL);
	assert_store(s, 1, 1, 1);
}

static void test_live_slot_is_left_alone(void **state)
{
	struct scratch *s = *state;
	struct image_slot slot = IMAGE_SLOT_NONE;
	struct err e;

	assert_ok(image_slot_make(&s->store, &slot, &e), e);
	write_text(slot.fd, "precious", "1");
	gc_expect(s, 0);
	assert_int_equal(faccessat(slot.fd, "precious", F_OK, 0), 0);
	image_slot_release(&slot);
	assert_store(s, 0, 0, 0);
}

/* ---- a full disk ---- */

static int import_on_small_disk(struct scratch *s)
{
	struct image_store store;
	struct image image;
	struct err e;
	int result;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mkdir(in_scratch(s, "small"), 0700) < 0 ||
	    mount("tmpfs", in_scratch(s, "small"), "tmpfs", 0, "size=1m,mode=0711") < 0 ||
	    image_store_open(&store, in_scratch(s, "small"), archiver, &e) < 0)
		return 10;
	result = image_import(&store, in_scratch(s, "tree"), "default", NULL, NULL, NULL, &image,
	                      &e);
	if (result != -ENOSPC || !strstr(e.text, "free some space")) {
		fprintf(stderr, "%d: %s\n", result, result < 0 ? e.text : "imported");
		return 11;
	}
	if (count_entries(store.statefd, "tmp") || count_entries(store.statefd, "layers/sha256") ||
	    count_entries(store.statefd, "images/sha256") ||
	    count_entries(store.statefd, "images/names"))
		return 12;
	return 0;
}

static void test_full_disk(void **state)
{
	struct scratch *s = *state;
	char *big = calloc(1, 4 << 20);
	pid_t pid;

	assert_non_null(big);
	make_tree(s, "tree", "1");
	memset(big, 'x', 4 << 20);
	write_file(s->fd, "tree/big", big, 4 << 20, 0644);
	free(big);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(import_on_small_disk(s));
	assert_exits_0(pid);
}

static void test_store_that_others_can_change(void **state)
{
	struct scratch *s = *state;
	struct image_store store;
	struct err e;

	assert_int_equal(mkdir(in_scratch(s, "open"), 0700), 0);
	assert_int_equal(chmod(in_scratch(s, "open"), 0777), 0);
	assert_int_equal(image_store_open(&store, in_scratch(s, "open"), archiver, &e), -EPERM);
	assert_non_null(strstr(e.text, "chmod go-w"));
	assert_int_equal(chmod(in_scratch(s, "open"), 0755), 0);
	assert_int_equal(chown(in_scratch(s, "open"), 12345, 0), 0);
	assert_int_equal(image_store_open(&store, in_scratch(s, "open"), archiver, &e), -EPERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bad_names),
		TEST(test_references),
		TEST(test_missing_image_says_the_way_out),
		TEST(test_same_directory_same_digest),
		TEST(test_same_tar_same_digest),
		TEST(test_layer_is_whole_and_reachable),
		TEST(test_progress_ends_with_the_whole),
		TEST(test_sources_that_are_none),
		cmocka_unit_test(test_plans_that_are_none),
		TEST(test_hostile_program_files),
		TEST(test_hostile_tars_leave_nothing),
		TEST(test_broken_tars_leave_nothing),
		TEST(test_wrong_machine_is_refused),
		TEST(test_rm_and_gc),
		TEST(test_gc_keeps_what_is_held),
		TEST(test_open_after_removal),
		TEST(test_gc_removes_what_no_name_reaches),
		TEST(test_gc_stops_at_a_broken_document),
		TEST(test_list),
		TEST(test_concurrent_imports),
		TEST(test_killed_import_is_cleaned_by_gc),
		TEST(test_killed_import_is_cleaned_by_the_next),
		TEST(test_live_slot_is_left_alone),
		TEST(test_full_disk),
		TEST(test_store_that_others_can_change),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
