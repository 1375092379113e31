/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a packed image. An input is the files of a layout: a line "--- NAME" begins one, and
 * NAME is "blob" where its digest is to be its name. In a file @0 to @9 stand for the digest of an
 * earlier one, %0 to %9 for that without "sha256:", #0 to #9 for its size, which no fuzzer can
 * guess. The name "out" is a link that leads out of the layout.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "archive/plan.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "rootfs/image_store.h"
#include "tests/fuzz/fuzz.h"

enum { FILES_MAX = 10, FILE_BYTES_MAX = 64 << 10 };

static struct file {
	char digest[IMAGE_DIGEST_SIZE];
	size_t size;
} files[FILES_MAX];
static int files_count;

/* TEXT with its marks replaced, in OUT. */
static size_t fill_in(const char *text, size_t length, char out[FILE_BYTES_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < length && used + IMAGE_DIGEST_SIZE < FILE_BYTES_MAX; i++) {
		int number = i + 1 < length ? text[i + 1] - '0' : -1;
		const struct file *file = number >= 0 && number < files_count ? &files[number]
		                                                              : NULL;

		if (!file || !strchr("@%#", text[i])) {
			out[used++] = text[i];
			continue;
		}
		i++;
		if (text[i - 1] == '#')
			used += (size_t)sprintf(out + used, "%zu", file->size);
		else
			used += (size_t)sprintf(out + used, "%s",
			                        file->digest + (text[i - 1] == '%' ? 7 : 0));
	}
	return used;
}

/* Can NAME be that of a file in the layout's directory? */
static bool name_valid(const char *name)
{
	return *name && !strchr(name, '/') && strlen(name) < 100 && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && strcmp(name, "out") != 0 && strcmp(name, "blobs") != 0;
}

static void put_file(const char *name, const char *text, size_t length)
{
	static char content[FILE_BYTES_MAX];
	size_t size = fill_in(text, length, content);
	struct file *file = &files[files_count];
	struct sha256_ctx hash;
	char path[256];

	sha256_init(&hash);
	sha256_update(&hash, size, (const uint8_t *)content);
	image_hash_finish(&hash, file->digest);
	file->size = size;
	files_count++;
	if (strcmp(name, "blob") == 0) {
		snprintf(path, sizeof path, "layout/blobs/sha256/%s", file->digest + 7);
	} else {
		char filled[FILE_BYTES_MAX];
		size_t used = fill_in(name, strlen(name), filled);

		filled[used] = '\0';
		if (!name_valid(filled))
			return;
		snprintf(path, sizeof path, "layout/%.200s", filled);
	}
	fuzz_put(path, content, size);
}

static void make_layout(char *text, size_t length)
{
	char *end = text + length;

	files_count = 0;
	fuzz_make_dir("layout");
	fuzz_make_dir("layout/blobs");
	fuzz_make_dir("layout/blobs/sha256");
	fuzz_put("secret", "{}", 2);
	CHECK(symlinkat("../secret", fuzz_scratch(), "layout/out") == 0 || errno == EEXIST,
	      "symlink: %m");
	while (files_count < FILES_MAX && end - text > 4 && strncmp(text, "--- ", 4) == 0) {
		char *line = memchr(text, '\n', (size_t)(end - text)), *next;

		if (!line)
			break;
		*line++ = '\0';
		next = memmem(line, (size_t)(end - line), "\n--- ", 5);
		put_file(text + 4, line, (size_t)((next ? next : end) - line));
		text = next ? next + 1 : end;
	}
}

static void check_layer(int dirfd, const struct image_plan_layer *layer)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
	                       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	scoped_fd fd = (int)syscall(SYS_openat2, dirfd, layer->path, &how, sizeof how);
	struct stat st;

	CHECK(fd >= 0, "a layer at %s, which is not in the layout: %m", layer->path);
	CHECK(fstat(fd, &st) == 0 && S_ISREG(st.st_mode), "a layer that is no file");
}

static void check_plan(int dirfd, const struct image_plan *plan, const struct plan_options *options)
{
	struct image image = {0};
	struct err e;
	int result;

	CHECK(image_plan_check(plan, &e) == 0, "a plan that is none: %s", e.text);
	CHECK(strcmp(plan->architecture, options->architecture) == 0, "for another machine");
	for (int i = 0; i < plan->layers_count; i++)
		check_layer(dirfd, &plan->layers[i]);
	result = image_plan_config(plan, &image, &e);
	if (result < 0)
		fuzz_check_err(result, &e);
	else
		CHECK(image.env.count == plan->env_count && image.cmd.count == plan->cmd_count &&
		              image.entrypoint.count == plan->entrypoint_count,
		      "words were lost");
	image_release(&image);
}

static void try_plan(int dirfd, const char *ref)
{
	const struct plan_options options = {.architecture = "amd64", .ref = ref};
	scoped_mem struct image_plan *plan = calloc(1, sizeof *plan);
	struct err e;
	int result;

	CHECK(plan, "no memory");
	result = plan_image(dirfd, &options, plan, &e);
	if (result == 0) {
		check_plan(dirfd, plan, &options);
		return;
	}
	fuzz_check_err(result, &e);
	CHECK(e.code == EBADMSG || e.code == EFBIG, "the host's fault (%d): %s", e.code, e.text);
}

/* What the privileged side makes of a plan that a broken planner has written. */
static void try_bytes(const uint8_t *data, size_t size)
{
	static struct image_plan plan;
	struct image image = {0};
	struct err e;
	int result;

	memset(&plan, 0, sizeof plan);
	memcpy(&plan, data, size < sizeof plan ? size : sizeof plan);
	result = image_plan_check(&plan, &e);
	if (result == 0)
		result = image_plan_config(&plan, &image, &e);
	if (result < 0)
		fuzz_check_err(result, &e);
	image_release(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_mem char *text = NULL;
	scoped_fd dirfd = -1;
	int next_fd = fuzz_next_fd();

	try_bytes(data, size);
	text = fuzz_text(data, size);
	make_layout(text, size);
	dirfd = openat(fuzz_scratch(), "layout", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dirfd >= 0, "layout: %m");
	try_plan(dirfd, NULL);
	try_plan(dirfd, "a:1");
	close_fd(&dirfd);
	fuzz_remove("layout");
	fuzz_remove("secret");
	CHECK(fuzz_next_fd() == next_fd, "a descriptor leaked");
	return 0;
}
