/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the harnesses of tests/fuzz share. A harness is one LLVMFuzzerTestOneInput: it feeds the
 * bytes to a parser and checks what must hold whatever they are. Linked with libFuzzer it looks for
 * inputs (make fuzz), linked with replay.c it runs those that are kept in tests/fuzz/corpus.
 *
 * A check that does not hold ends the process, as a sanitizer's finding does.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer's own names. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

PRINTF_LIKE(1, 2) _Noreturn void fuzz_fail(const char *fmt, ...);
#define CHECK(holds, ...)                                                                          \
	do {                                                                                       \
		if (!(holds))                                                                      \
			fuzz_fail(__VA_ARGS__);                                                    \
	} while (0)

/* An error is whole: a code, and a text that ends. */
void fuzz_check_err(int result, const struct err *e);

/* A copy that ends with NUL where its bytes are wanted as text; the caller frees it. */
char *fuzz_text(const uint8_t *data, size_t size);

/*
 * A directory in memory that nothing else can see. The first call confines the process for good: in
 * namespaces of its own it can write only there and beneath its working directory (where libFuzzer
 * puts what it finds), opens no device, and keeps the capabilities that concern files. Needs root.
 */
int fuzz_scratch(void);

/* Writes a file of the scratch directory anew. */
void fuzz_put(const char *path, const void *data, size_t size);
/* Makes a directory of it; that it is there is fine. */
void fuzz_make_dir(const char *path);
/* Removes what is beneath NAME and NAME. */
void fuzz_remove(const char *name);

/* The number that the next descriptor gets: the same before and after says that none leaked. */
int fuzz_next_fd(void);

/* Bytes that decide, taken from the front; zeros when there are no more. */
struct fuzz_bytes {
	const uint8_t *data;
	size_t left;
};
uint32_t fuzz_take(struct fuzz_bytes *bytes, int count); /* 1 to 4 of them, little-endian */

#endif
