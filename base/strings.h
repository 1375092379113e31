/* SPDX-License-Identifier: Apache-2.0 */
/* Text to values and back. Parsers take the whole text or nothing: no trailing junk, no sign where
 * none belongs, no overflow. They return 0 or -EINVAL/-ERANGE and name the offending text. */
#ifndef BASE_STRINGS_H
#define BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Decimal digits only. */
int parse_u64(const char *text, uint64_t max, uint64_t *value, struct err *e);

/* "512m", "1g", "64k", "100", "1.5g", as docker writes sizes: powers of 1024, suffix b k m g t in
 * either case, with an optional "b" or "ib" behind it. */
int parse_bytes(const char *text, uint64_t *bytes, struct err *e);

/* "1.5" -> 1500: a positive decimal number of CPUs in thousandths, at most three decimals. */
int parse_millis(const char *text, uint64_t *thousandths, struct err *e);

/* "60", "1.5", "90s", "500ms", "2m", "1h": a time span in milliseconds; a bare number: seconds. */
int parse_duration_ms(const char *text, uint64_t *ms, struct err *e);

/* "1.0 GiB", "512 MiB", "4.2 KiB", "17 B" into BUFFER; returns BUFFER. */
const char *format_bytes(uint64_t bytes, char *buffer, size_t size);

/* "1.24 s", "38.1 ms", "412 us", "2 min 03 s" into BUFFER; returns BUFFER. */
const char *format_duration_us(uint64_t us, char *buffer, size_t size);

/* Length of the longest prefix of DATA that is whole, valid UTF-8 (RFC 3629). */
size_t utf8_valid_prefix(const void *data, size_t length);

/*
 * Copies TEXT into BUFFER with control characters and invalid UTF-8 replaced by "\xNN", so that
 * text from inside a sandbox cannot drive the operator's terminal. Returns BUFFER.
 */
const char *text_printable(const char *text, char *buffer, size_t size);

/* snprintf that treats truncation as an error: returns the length or -ENAMETOOLONG. */
PRINTF_LIKE(4, 5)
int text_format(char *buffer, size_t size, struct err *e, const char *fmt, ...);

/* "2026-11-30T07:06:54", UTC, of SECONDS since 1970. gmtime(3) would read the host's time zone for it. */
enum { TEXT_TIME_SIZE = 32 };
void text_time(char buffer[TEXT_TIME_SIZE], uint64_t seconds);

/*
 * Gives *DATA, which is on the heap and has *ROOM bytes (NULL and 0 at first), room for WANTED: twice
 * as much as it had and SPARE, so that few calls copy. False: no memory, and all is as it was.
 */
bool bytes_grow(char **data, size_t *room, size_t wanted, size_t spare);

/* How many there are before the NULL that ends an argv or an envp. */
size_t words_count(char *const words[]);

/* A NULL-terminated list of owned strings (argv, envp). Zero-initialised is empty. */
struct string_list {
	char **items;
	size_t count;
};
int string_list_add(struct string_list *list, const char *text, struct err *e);
/* "KEY=VALUE": replaces the entry with the same KEY, or adds it. */
int string_list_set(struct string_list *list, const char *assignment, struct err *e);
/* The value of KEY in a list of KEY=VALUE, or NULL. */
const char *string_list_value(const struct string_list *list, const char *key);
void string_list_release(struct string_list *list);

#endif
