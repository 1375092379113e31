/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of texts: versions, paths. */
#include "oci/texts.h"

#include <string.h>

#include "base/strings.h"

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* ---- SemVer 2.0.0 ---- */

/* Past a number without leading zeros, or NULL. */
static const char *past_number(const char *text)
{
	size_t length = strspn(text, DIGITS);

	return length == 0 || (length > 1 && *text == '0') ? NULL : text + length;
}

/* Past identifiers with dots between; where NUMBERS are, they have no leading zeros. Or NULL. */
static const char *past_identifiers(const char *text, bool numbers)
{
	for (;; text++) {
		size_t length = strspn(text, DIGITS LETTERS "-");

		if (length == 0 ||
		    (numbers && length > 1 && *text == '0' && strspn(text, DIGITS) == length))
			return NULL;
		text += length;
		if (*text != '.')
			return text;
	}
}

static bool is_semver(const char *text)
{
	for (int i = 0; i < 3; i++) {
		if (i > 0 && *text++ != '.')
			return false;
		if (!(text = past_number(text)))
			return false;
	}
	if (*text == '-' && !(text = past_identifiers(text + 1, true)))
		return false;
	if (*text == '+' && !(text = past_identifiers(text + 1, false)))
		return false;
	return !*text;
}

int oci_text_version(const char *text, const struct shape_place *place, struct err *e)
{
	char shown[64];

	text_printable(text, shown, sizeof shown);
	if (!is_semver(text))
		return shape_refuse(place, NULL, e,
		                    "\"%s\" is no version such as 1.3.0 (SemVer 2.0.0)", shown);
	if (strncmp(text, "0.", 2) != 0 && strncmp(text, "1.", 2) != 0)
		return shape_refuse(place, NULL, e,
		                    "\"%s\" is of a later runtime-spec, versions up to 1.x can be "
		                    "read; write the document for one of these",
		                    shown);
	return 0;
}

/* ---- paths ---- */

int oci_text_absolute(const char *text, const struct shape_place *place, struct err *e)
{
	char shown[64];

	if (*text == '/')
		return 0;
	return shape_refuse(place, NULL, e, "must be an absolute path, not \"%s\"",
	                    text_printable(text, shown, sizeof shown));
}

int oci_text_filled(const char *text, const struct shape_place *place, struct err *e)
{
	return *text ? 0 : shape_refuse(place, NULL, e, "must not be empty");
}
