/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to values and back. Owns no state. Every parser goes over its whole text or refuses it, and
 * every arithmetic step that a number from outside could overflow is checked.
 */
#include "base/strings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scoped.h"

/* ---- numbers ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *CURSOR, which moves behind them. -EINVAL without a digit, -ERANGE on overflow. */
static int scan_digits(const char **cursor, uint64_t *value)
{
	const char *c = *cursor;
	uint64_t number = 0;

	if (!is_digit(*c))
		return -EINVAL;
	for (; is_digit(*c); c++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
			return -ERANGE;
	}
	*cursor = c;
	*value = number;
	return 0;
}

static int out_of_range(const char *text, uint64_t max, struct err *e)
{
	return err_set(e, ERANGE, "'%s' is too large; at most %" PRIu64 " is possible", text, max);
}

int parse_u64(const char *text, uint64_t max, uint64_t *value, struct err *e)
{
	const char *cursor = text;
	uint64_t number = 0;
	int result = scan_digits(&cursor, &number);

	if (result == -EINVAL || (result == 0 && *cursor))
		return err_set(e, EINVAL, "'%s' is not a whole number; write digits only", text);
	if (result < 0 || number > max)
		return out_of_range(text, max, e);
	*value = number;
	return 0;
}

/* A decimal number: whole + fraction / scale, scale being a power of ten. */
struct decimal {
	uint64_t whole, fraction, scale;
};

enum { DECIMALS_MAX = 6 }; /* so that fraction * 1 TiB fits in 64 bits */

static int scan_decimal(const char **cursor, int decimals_max, struct decimal *decimal)
{
	struct decimal d = {.scale = 1};
	const char *start;
	int result = scan_digits(cursor, &d.whole);

	if (result < 0)
		return result;
	if (**cursor == '.') {
		start = ++*cursor;
		while (is_digit((*cursor)[0]))
			++*cursor;
		if (*cursor == start || *cursor - start > decimals_max)
			return -EINVAL;
		for (const char *c = start; c < *cursor; c++) {
			d.fraction = d.fraction * 10 + (uint64_t)(*c - '0');
			d.scale *= 10;
		}
	}
	*decimal = d;
	return 0;
}

/* DECIMAL units of UNIT each, rounded down. */
static int decimal_times(const struct decimal *decimal, uint64_t unit, uint64_t *value)
{
	uint64_t product;

	if (__builtin_mul_overflow(decimal->whole, unit, &product) ||
	    __builtin_add_overflow(product, decimal->fraction * unit / decimal->scale, &product))
		return -ERANGE;
	*value = product;
	return 0;
}

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit *unit_find(const struct unit *units, const char *suffix)
{
	for (; units->suffix; units++)
		if (!strcasecmp(units->suffix, suffix))
			return units;
	return NULL;
}

static int parse_with_units(const char *text, const struct unit *units, const char *example,
                            uint64_t *value, struct err *e)
{
	const char *cursor = text;
	const struct unit *unit;
	struct decimal decimal;
	int result = scan_decimal(&cursor, DECIMALS_MAX, &decimal);

	if (result == -ERANGE)
		return out_of_range(text, UINT64_MAX, e);
	unit = result < 0 ? NULL : unit_find(units, cursor);
	if (!unit)
		return err_set(e, EINVAL, "'%s' is not %s", text, example);
	if (unit->factor == 1 && decimal.fraction)
		return err_set(e, EINVAL, "'%s' is a fraction of the smallest unit; expected %s",
		               text, example);
	if (decimal_times(&decimal, unit->factor, value) < 0)
		return out_of_range(text, UINT64_MAX, e);
	return 0;
}

int parse_bytes(const char *text, uint64_t *bytes, struct err *e)
{
	static const struct unit units[] = {
		{"", 1},
		{"b", 1},
		{"k", 1ULL << 10},
		{"kb", 1ULL << 10},
		{"kib", 1ULL << 10},
		{"m", 1ULL << 20},
		{"mb", 1ULL << 20},
		{"mib", 1ULL << 20},
		{"g", 1ULL << 30},
		{"gb", 1ULL << 30},
		{"gib", 1ULL << 30},
		{"t", 1ULL << 40},
		{"tb", 1ULL << 40},
		{"tib", 1ULL << 40},
		{NULL, 0},
	};

	return parse_with_units(text, units, "a size such as 512m, 1.5g or 65536", bytes, e);
}

int parse_duration_ms(const char *text, uint64_t *ms, struct err *e)
{
	static const struct unit units[] = {
		{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}, {NULL, 0},
	};

	return parse_with_units(text, units, "a time span such as 90, 1.5s, 500ms, 2m or 1h", ms,
	                        e);
}

int parse_millis(const char *text, uint64_t *thousandths, struct err *e)
{
	const char *cursor = text;
	struct decimal decimal;
	uint64_t value = 0;
	int result = scan_decimal(&cursor, 3, &decimal);

	if (result == 0 && !*cursor)
		result = decimal_times(&decimal, 1000, &value);
	if (result == -ERANGE)
		return out_of_range(text, UINT64_MAX / 1000, e);
	if (result < 0 || *cursor || value == 0)
		return err_set(e, EINVAL,
		               "'%s' is not a number above zero with at most three decimals, "
		               "such as 1.5",
		               text);
	*thousandths = value;
	return 0;
}

const char *format_bytes(uint64_t bytes, char *buffer, size_t size)
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	uint64_t whole = 0, tenths = 0;
	size_t i;

	if (bytes < 1024) {
		snprintf(buffer, size, "%" PRIu64 " B", bytes);
		return buffer;
	}
	/* what would round up to 1024 of a unit belongs to the next one */
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		uint64_t unit = 1ULL << (10 * (i + 1)), rest = bytes % unit;

		whole = bytes / unit;
		/* rest < 2^60, so that ten times it fits */
		tenths = whole * 10 + (rest * 10 + unit / 2) / unit;
		whole += rest >= unit / 2;
		if (whole < 1024)
			break;
	}
	if (tenths < 100)
		snprintf(buffer, size, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
		         names[i]);
	else
		snprintf(buffer, size, "%" PRIu64 " %s", whole, names[i]);
	return buffer;
}

const char *format_duration_us(uint64_t us, char *buffer, size_t size)
{
	/* rounded first, so that 999.96 ms becomes 1.00 s and not 1000.0 ms */
	uint64_t tenths_ms = us / 100 + (us % 100 >= 50);
	uint64_t hundredths = us / 10000 + (us % 10000 >= 5000);
	uint64_t seconds = us / 1000000 + (us % 1000000 >= 500000);

	if (us < 1000)
		snprintf(buffer, size, "%" PRIu64 " us", us);
	else if (tenths_ms < 10000)
		snprintf(buffer, size, "%" PRIu64 ".%" PRIu64 " ms", tenths_ms / 10,
		         tenths_ms % 10);
	else if (hundredths < 6000)
		snprintf(buffer, size, "%" PRIu64 ".%02" PRIu64 " s", hundredths / 100,
		         hundredths % 100);
	else
		snprintf(buffer, size, "%" PRIu64 " min %02" PRIu64 " s", seconds / 60,
		         seconds % 60);
	return buffer;
}

/* ---- text ---- */

/* RFC 3629, section 4: lead bytes and what the second byte may be; the others are 80..BF. */
static const struct {
	unsigned char lead_min, lead_max, length, second_min, second_max;
} utf8_forms[] = {
	{0x00, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
	{0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
	{0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

/* Length of the valid character at the start of DATA, 0 where there is none. */
static size_t utf8_character(const unsigned char *data, size_t length)
{
	for (size_t i = 0; i < sizeof utf8_forms / sizeof *utf8_forms; i++) {
		if (data[0] < utf8_forms[i].lead_min || data[0] > utf8_forms[i].lead_max)
			continue;
		if (utf8_forms[i].length == 1)
			return 1;
		if (length < utf8_forms[i].length || data[1] < utf8_forms[i].second_min ||
		    data[1] > utf8_forms[i].second_max)
			return 0;
		for (size_t n = 2; n < utf8_forms[i].length; n++)
			if ((data[n] & 0xc0) != 0x80)
				return 0;
		return utf8_forms[i].length;
	}
	return 0;
}

size_t utf8_valid_prefix(const void *data, size_t length)
{
	const unsigned char *bytes = data;
	size_t at = 0, character;

	while (at < length) {
		character = utf8_character(bytes + at, length - at);
		if (character == 0)
			break;
		at += character;
	}
	return at;
}

/*
 * C0, DEL and C1 controls drive a terminal; line separators break a line, and the bidirectional
 * controls make text read as what it is not.
 */
static bool drives_terminal(const unsigned char *c, size_t length)
{
	if (length == 1)
		return c[0] < 0x20 || c[0] == 0x7f;
	if (length == 2)
		return c[0] == 0xc2 && c[1] < 0xa0;
	if (length == 3 && c[0] == 0xe2 && c[1] == 0x80)
		return c[2] >= 0xa8 && c[2] <= 0xae; /* U+2028..202E */
	if (length == 3 && c[0] == 0xe2 && c[1] == 0x81)
		return c[2] >= 0xa6 && c[2] <= 0xa9; /* U+2066..2069 */
	return false;
}

const char *text_printable(const char *text, char *buffer, size_t size)
{
	const unsigned char *in = (const unsigned char *)text;
	size_t left = strlen(text), used = 0;

	while (left) {
		size_t length = utf8_character(in, left);

		if (length && !drives_terminal(in, length)) {
			if (used + length >= size)
				break;
			memcpy(buffer + used, in, length);
			used += length;
		} else {
			length = 1;
			if (used + 4 >= size)
				break;
			used += (size_t)snprintf(buffer + used, size - used, "\\x%02x", in[0]);
		}
		in += length;
		left -= length;
	}
	if (size)
		buffer[used] = '\0';
	return buffer;
}

int text_format(char *buffer, size_t size, struct err *e, const char *fmt, ...)
{
	va_list args;
	int length;

	va_start(args, fmt);
	length = vsnprintf(buffer, size, fmt, args);
	va_end(args);
	if (length < 0)
		return err_set(e, EINVAL, "'%s' cannot be formatted", fmt);
	if ((size_t)length >= size)
		return err_set(e, ENAMETOOLONG,
		               "'%.100s...' is %d bytes long; at most %zu fit here", buffer, length,
		               size - 1);
	return length;
}

static unsigned days_of_year(uint64_t year)
{
	return 365 + (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static unsigned days_of_month(uint64_t year, unsigned month)
{
	static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month == 1 ? days_of_year(year) - 337 : days[month];
}

void text_time(char buffer[TEXT_TIME_SIZE], uint64_t seconds)
{
	enum { DAY = 86400, CENTURIES_DAYS = 146097 };
	uint64_t days = seconds / DAY, year = 1970 + days / CENTURIES_DAYS * 400;
	unsigned month = 0, of_day = (unsigned)(seconds % DAY);

	for (days %= CENTURIES_DAYS; days >= days_of_year(year); year++)
		days -= days_of_year(year);
	for (; days >= days_of_month(year, month); month++)
		days -= days_of_month(year, month);
	snprintf(buffer, TEXT_TIME_SIZE, "%04" PRIu64 "-%02u-%02uT%02u:%02u:%02u", year, month + 1,
	         (unsigned)days + 1, of_day / 3600, of_day / 60 % 60, of_day % 60);
}

/* ---- lists ---- */

int string_list_add(struct string_list *list, const char *text, struct err *e)
{
	scoped_mem char *copy = strdup(text);
	char **items;

	if (!copy)
		return err_set(e, ENOMEM, "no memory for '%.100s'", text);
	items = reallocarray(list->items, list->count + 2, sizeof *items);
	if (!items)
		return err_set(e, ENOMEM, "no memory for a list of %zu entries", list->count + 1);
	items[list->count] = take_mem(&copy);
	items[list->count + 1] = NULL;
	list->items = items;
	list->count++;
	return 0;
}

/* Index of the entry KEY=..., or the count of entries. */
static size_t key_index(const struct string_list *list, const char *key, size_t key_length)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (!strncmp(list->items[i], key, key_length) && list->items[i][key_length] == '=')
			break;
	return i;
}

int string_list_set(struct string_list *list, const char *assignment, struct err *e)
{
	const char *equals = strchr(assignment, '=');
	size_t index;
	char *copy;

	if (!equals || equals == assignment)
		return err_set(e, EINVAL, "'%.100s' is not of the form KEY=VALUE", assignment);
	index = key_index(list, assignment, (size_t)(equals - assignment));
	if (index == list->count)
		return string_list_add(list, assignment, e);
	copy = strdup(assignment);
	if (!copy)
		return err_set(e, ENOMEM, "no memory for '%.100s'", assignment);
	free(list->items[index]);
	list->items[index] = copy;
	return 0;
}

const char *string_list_value(const struct string_list *list, const char *key)
{
	size_t key_length = strlen(key);
	size_t index = key_index(list, key, key_length);

	return index < list->count ? list->items[index] + key_length + 1 : NULL;
}

void string_list_release(struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct string_list){0};
}

bool bytes_grow(char **data, size_t *room, size_t wanted, size_t spare)
{
	size_t larger = *room * 2 + spare;
	char *grown;

	if (wanted <= *room)
		return true;
	if (larger < wanted)
		larger = wanted + spare;
	grown = realloc(*data, larger);
	if (!grown)
		return false;
	*data = grown;
	*room = larger;
	return true;
}

size_t words_count(char *const words[])
{
	size_t count = 0;

	while (words[count])
		count++;
	return count;
}
