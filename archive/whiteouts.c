/* SPDX-License-Identifier: Apache-2.0 */
/* Whiteouts as overlayfs has them: a removed entry is a character device 0:0, which the kernel lets
 * anybody make; an opaque directory has an attribute that this program may not set. */
#include "archive/whiteouts.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "rootfs/archive_result.h"

#define PREFIX ".wh."
#define AUFS   ".wh..wh." /* of aufs's own, which all but the next are no part of the tree */
#define OPAQUE ".wh..wh..opq"
enum { PREFIX_LENGTH = sizeof PREFIX - 1, NAMES_LIMIT = 64 << 20 };

void whiteouts_release(struct whiteouts *whiteouts)
{
	free(whiteouts->gone.data);
	free(whiteouts->opaque.data);
	*whiteouts = (struct whiteouts){0};
}

bool whiteout_named(const char *path)
{
	for (;;) {
		if (strncmp(path, PREFIX, PREFIX_LENGTH) == 0)
			return true;
		path = strchr(path, '/');
		if (!path)
			return false;
		path++;
	}
}

static int add_name(struct names *names, const char *directory, size_t length, const char *name,
                    struct err *e)
{
	size_t size = length + strlen(name) + 1;

	if (names->used + size > NAMES_LIMIT)
		return err_set(e, EFBIG, "the names of the whiteouts take more than %d MiB",
		               NAMES_LIMIT >> 20);
	if (!bytes_grow(&names->data, &names->room, names->used + size, ARCHIVE_PATH_MAX))
		return err_set(e, EFBIG, "no memory for the names of the whiteouts");
	memcpy(names->data + names->used, directory, length);
	memcpy(names->data + names->used + length, name, size - length);
	names->used += size;
	return 0;
}

int whiteouts_note(struct whiteouts *whiteouts, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = (size_t)(name - path); /* of the directory, with its slash */
	const char *gone = name + PREFIX_LENGTH;
	char directory[ARCHIVE_PATH_MAX], shown[SHOWN_SIZE];

	memcpy(directory, path, length);
	directory[length] = '\0';
	if (whiteout_named(directory) || strncmp(name, PREFIX, PREFIX_LENGTH) != 0)
		return err_set(e, EBADMSG, "%s: it lies in a whiteout, which is no directory",
		               path_shown(path, shown));
	if (strcmp(name, OPAQUE) == 0)
		return length ? add_name(&whiteouts->opaque, path, length - 1, "", e)
		              : add_name(&whiteouts->opaque, "", 0, ".", e);
	if (strncmp(name, AUFS, sizeof AUFS - 1) == 0)
		return 0;
	if (!*gone || strcmp(gone, ".") == 0 || strcmp(gone, "..") == 0)
		return err_set(e, EBADMSG, "%s: a whiteout of no name", path_shown(path, shown));
	return add_name(&whiteouts->gone, path, length, gone, e);
}

static int apply_gone(struct whiteouts *whiteouts, struct target *target, struct err *e)
{
	const struct names *gone = &whiteouts->gone;

	for (size_t at = 0; at < gone->used; at += strlen(gone->data + at) + 1) {
		int is_directory = target_whiteout(target, gone->data + at, e);

		TRY(is_directory);
		/* the layer has removed a directory and made another one in its place */
		if (is_directory)
			TRY(add_name(&whiteouts->opaque, gone->data + at, strlen(gone->data + at),
			             "", e));
	}
	return 0;
}

int whiteouts_apply(struct whiteouts *whiteouts, struct target *target, int opaquefd, struct err *e)
{
	const struct names *opaque = &whiteouts->opaque;
	char shown[SHOWN_SIZE];
	uint32_t count = 0;

	TRY(apply_gone(whiteouts, target, e));
	for (size_t at = 0; at < opaque->used; at += strlen(opaque->data + at) + 1) {
		const char *path = opaque->data + at;

		if (strlen(path) >= PATH_MAX)
			return err_set(e, EBADMSG, "%s: an opaque directory of a path this long",
			               path_shown(path, shown));
		TRY(target_make_directory(target, path, e));
		count++;
	}
	if (opaque->used > ARCHIVE_OPAQUE_BYTES)
		return err_set(e, EFBIG, "the names of %u opaque directories take more than %d KiB",
		               count, ARCHIVE_OPAQUE_BYTES >> 10);
	if (!count)
		return 0;
	if (pwrite(opaquefd, opaque->data, opaque->used, offsetof(struct archive_opaque, names)) !=
	            (ssize_t)opaque->used ||
	    pwrite(opaquefd, &count, sizeof count, offsetof(struct archive_opaque, count)) !=
	            sizeof count)
		return err_sys(e, "telling of opaque directories");
	return 0;
}
