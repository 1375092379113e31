/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROGRAM FILE|DIRECTORY...: runs a harness once for each file, and for an empty input, without
 * libFuzzer. One line "ok NAME" for each; who dies has said "run NAME" before. No file is a failure.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "tests/fuzz/fuzz.h"

enum { INPUT_BYTES_MAX = 16 << 20 };

static int run_file(int dirfd, const char *name)
{
	scoped_mem char *data = NULL;
	scoped_mem uint8_t *exact = NULL;
	size_t size;
	struct err e;

	if (file_read_all(dirfd, name, INPUT_BYTES_MAX, &data, &size, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	/* a copy of just its size, beyond which a sanitizer sees every step */
	exact = malloc(size ? size : 1);
	if (!exact)
		return -1;
	memcpy(exact, data, size);
	printf("run %s\n", name);
	fflush(stdout);
	LLVMFuzzerTestOneInput(exact, size);
	printf("ok %s\n", name);
	return 1;
}

static int no_dots(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int run_directory(int dirfd)
{
	struct dirent **entries;
	int count = scandirat(dirfd, ".", &entries, no_dots, alphasort), failed = count < 0;

	for (int i = 0; i < count; i++) {
		failed |= run_file(dirfd, entries[i]->d_name) < 0;
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return failed ? -1 : count;
}

int main(int argc, char **argv)
{
	int runs = 0;

	for (int i = 1; i < argc; i++) {
		scoped_fd fd = open(argv[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int count = fd >= 0 ? run_directory(fd) : run_file(AT_FDCWD, argv[i]);

		if (count < 0)
			return 1;
		runs += count;
	}
	if (runs == 0) {
		fputs("no input: name a file, or a directory of them\n", stderr);
		return 1;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	return 0;
}
