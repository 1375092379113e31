/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression alone: what goes through is not looked at. */
#include <errno.h>

#include "archive/archive.h"
#include "archive/source.h"
#include "base/files.h"
#include "base/strings.h"

int cat_stream(struct source *source, int infd, int outfd, uint64_t limit_bytes,
               struct archive_counts *counts, struct err *e)
{
	struct archive_entry *entry;
	const void *data;
	size_t length;
	int64_t offset;
	char bytes[32];
	int more;

	TRY(source_open(source, infd, e));
	/* no entry: the input is empty, and so is the output */
	TRY(more = source_next(source, &entry, e));
	if (!more)
		return 0;
	while ((more = source_data(source, &data, &length, &offset, e)) > 0) {
		if (length > limit_bytes - counts->bytes)
			return err_set(e, EFBIG, "more than %s once it is decompressed",
			               format_bytes(limit_bytes, bytes, sizeof bytes));
		TRY(fd_write_all(outfd, data, length, e));
		counts->bytes += length;
	}
	return more;
}
