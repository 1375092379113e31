/* SPDX-License-Identifier: Apache-2.0 */
/* "0-3,7" to bits. Blanks around numbers are nothing. */
#include "container/number_list.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const char *past_blanks(const char *text)
{
	while (isblank((unsigned char)*text))
		text++;
	return text;
}

/* Past a number below COUNT and the blanks behind it, or NULL. */
static const char *past_number(const char *text, size_t count, size_t *number)
{
	text = past_blanks(text);
	if (!isdigit((unsigned char)*text))
		return NULL;
	for (*number = 0; isdigit((unsigned char)*text); text++) {
		*number = 10 * *number + (size_t)(*text - '0');
		if (*number >= count)
			return NULL;
	}
	return past_blanks(text);
}

int number_list_parse(const char *text, unsigned long *bits, size_t count, struct err *e)
{
	memset(bits, 0, count / 8);
	for (const char *at = text;; at++) {
		size_t first = 0, last;

		at = past_number(at, count, &first);
		last = first;
		if (at && *at == '-')
			at = past_number(at + 1, count, &last);
		if (!at || last < first || (*at && *at != ','))
			return err_set(e, EINVAL,
			               "\"%s\" must be a list such as 0-3,7 of numbers below %zu",
			               text, count);
		for (size_t i = first; i <= last; i++)
			bits[i / NUMBER_LIST_WORD] |= 1UL << i % NUMBER_LIST_WORD;
		if (!*at)
			return 0;
	}
}
