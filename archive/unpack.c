/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries to the tree: what of an entry is let through, and the limits.
 *
 *	             a checkout                        an image
 *	owner        this process                      the archive's
 *	mode         rwxr-xr-x at most, rw at least    all bits, setuid too
 *	xattrs       none                              user.* but overlayfs's, security.capability
 *	FIFO         skipped                           made
 *	device       skipped                           skipped
 *	whiteout     a file                            refused, but carried out for a layer
 *
 * A file counts with its logical size before its first byte is written, so a sparse file of a
 * tebibyte is a tebibyte. The size of what is skipped counts against the limit as well, because
 * stepping over it takes work.
 */
#include "archive/archive.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "archive/source.h"
#include "archive/target.h"
#include "archive/whiteouts.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"

enum { PROGRESS_INTERVAL_US = 50000 };

struct unpack {
	const struct unpack_options *options;
	struct archive_counts *counts;
	struct source *source;
	struct target target;
	struct whiteouts whiteouts;
	uint64_t consumed_bytes;
	uint64_t progress_us;
	char path[ARCHIVE_PATH_MAX], link[ARCHIVE_PATH_MAX];
};

const char *path_shown(const char *path, char buffer[SHOWN_SIZE])
{
	const size_t longest = 100;
	size_t length = strlen(path);
	char end[128] = "...";

	if (length <= longest)
		return text_printable(path, buffer, SHOWN_SIZE);
	memcpy(end + 3, path + length - longest, longest + 1);
	return text_printable(end, buffer, SHOWN_SIZE);
}

bool xattr_wanted(const char *name)
{
	if (strncmp(name, "user.", 5) == 0)
		return strncmp(name + 5, "overlay.", 8) != 0;
	return strcmp(name, "security.capability") == 0;
}

/* Told rarely: each time costs a system call. Nobody reading is no error. */
static void tell_progress(struct unpack *unpack)
{
	struct archive_progress progress = {.bytes = unpack->counts->bytes,
	                                    .entries = unpack->counts->entries};
	uint64_t now;

	if (unpack->options->progressfd < 0)
		return;
	now = clock_us();
	if (now < unpack->progress_us + PROGRESS_INTERVAL_US)
		return;
	unpack->progress_us = now;
	if (pwrite(unpack->options->progressfd, &progress, sizeof progress, 0) < 0 &&
	    errno == ESPIPE && write(unpack->options->progressfd, &progress, sizeof progress) < 0)
		unpack->progress_us = UINT64_MAX - PROGRESS_INTERVAL_US; /* never again */
}

static int set_xattrs(int fd, const char *path, struct archive_entry *entry, struct err *e)
{
	char shown[SHOWN_SIZE];
	const char *name;
	const void *value;
	size_t size;

	archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		if (!name || !xattr_wanted(name))
			continue;
		if (fsetxattr(fd, name, value, size, 0) == 0)
			continue;
		if (errno == EINVAL || errno == ERANGE || errno == E2BIG)
			return err_set(e, EBADMSG, "%s: a bad extended attribute",
			               path_shown(path, shown));
		return err_sys(e, "%s: setting an extended attribute", path_shown(path, shown));
	}
	return 0;
}

static int read_attributes(const struct unpack *unpack, struct archive_entry *entry,
                           struct attributes *attributes, struct err *e)
{
	const struct unpack_options *options = unpack->options;
	int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
	bool directory = archive_entry_filetype(entry) == AE_IFDIR;
	mode_t mode = archive_entry_mode(entry) & 07777;
	char shown[SHOWN_SIZE];

	*attributes = (struct attributes){
		.mode = options->image ? mode : (mode & 0755) | (directory ? 0700 : 0600),
		.change_owner = options->image || options->has_owner,
		.mtime = {.tv_sec = archive_entry_mtime(entry),
	                  .tv_nsec = archive_entry_mtime_nsec(entry)},
	};
	if (options->has_owner) {
		attributes->uid = options->owner_uid;
		attributes->gid = options->owner_gid;
		return 0;
	}
	/* the last id means "unchanged" to chown */
	if (options->image && (uid < 0 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX))
		return err_set(e, EBADMSG, "%s: owner %lld:%lld does not exist",
		               path_shown(unpack->path, shown), (long long)uid, (long long)gid);
	attributes->uid = (uid_t)uid;
	attributes->gid = (gid_t)gid;
	return 0;
}

static int write_all_at(int fd, const char *data, size_t length, int64_t offset)
{
	while (length) {
		ssize_t done = pwrite(fd, data, length, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -ENOSPC;
		data += done;
		length -= (size_t)done;
		offset += done;
	}
	return 0;
}

static int fill_file(struct unpack *unpack, int fd, int64_t size, struct err *e)
{
	char shown[SHOWN_SIZE];
	int64_t offset, end = 0;
	size_t length;
	const void *data;
	int more = 0, result;

	while (size && (more = source_data(unpack->source, &data, &length, &offset, e)) > 0) {
		if (offset < end || offset > size || length > (uint64_t)(size - offset))
			return err_set(e, EBADMSG, "%s: data outside of the file",
			               path_shown(unpack->path, shown));
		result = write_all_at(fd, data, length, offset);
		if (result < 0) {
			errno = -result;
			return err_sys(e, "writing %s", path_shown(unpack->path, shown));
		}
		end = offset + (int64_t)length;
		unpack->counts->bytes += length;
		tell_progress(unpack);
	}
	TRY(more);
	if (end < size && ftruncate(fd, size) < 0)
		return err_sys(e, "sizing %s", path_shown(unpack->path, shown));
	return 0;
}

static int make_file(struct unpack *unpack, struct archive_entry *entry,
                     const struct attributes *attributes, struct err *e)
{
	int64_t size = archive_entry_size(entry);
	uint64_t before = unpack->counts->bytes;
	scoped_fd fd = target_file(&unpack->target, unpack->path, e);

	TRY(fd);
	TRY(fill_file(unpack, fd, size, e));
	unpack->counts->bytes = before + (uint64_t)size;
	TRY(target_finish_file(fd, unpack->path, attributes, e));
	return unpack->options->image ? set_xattrs(fd, unpack->path, entry, e) : 0;
}

static int make_directory(struct unpack *unpack, struct archive_entry *entry,
                          const struct attributes *attributes, struct err *e)
{
	scoped_fd fd = -1;

	/* the top directory of a checkout is the caller's */
	if (!*unpack->path && !unpack->options->image)
		return 0;
	TRY(target_directory(&unpack->target, unpack->path, attributes, e));
	if (!unpack->options->image || archive_entry_xattr_count(entry) == 0)
		return 0;
	TRY(fd = target_open_directory(&unpack->target, unpack->path, e));
	return set_xattrs(fd, unpack->path, entry, e);
}

static int make_link(struct unpack *unpack, struct archive_entry *entry,
                     const struct attributes *attributes, struct err *e)
{
	const char *text = archive_entry_symlink(entry);

	return target_symlink(&unpack->target, unpack->path, text ? text : "", attributes, e);
}

static int make_fifo(struct unpack *unpack, struct archive_entry *entry,
                     const struct attributes *attributes, struct err *e)
{
	(void)entry;
	return target_fifo(&unpack->target, unpack->path, attributes, e);
}

static const struct maker {
	mode_t type;
	bool image_only;
	int (*make)(struct unpack *unpack, struct archive_entry *entry,
	            const struct attributes *attributes, struct err *e);
} makers[] = {
	{AE_IFREG, false, make_file},
	{AE_IFDIR, false, make_directory},
	{AE_IFLNK, false, make_link},
	{AE_IFIFO, true, make_fifo},
};

static const struct maker *find_maker(const struct unpack *unpack, mode_t type)
{
	for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
		if (makers[i].type == type && (unpack->options->image || !makers[i].image_only))
			return &makers[i];
	return NULL;
}

static int check_limits(struct unpack *unpack, struct archive_entry *entry, struct err *e)
{
	const struct unpack_options *options = unpack->options;
	int64_t size = archive_entry_size(entry);
	char shown[SHOWN_SIZE], bytes[32];

	if (size < 0)
		return err_set(e, EBADMSG, "%s: a negative size", path_shown(unpack->path, shown));
	if (unpack->counts->entries + unpack->counts->skipped >= options->limit_entries)
		return err_set(e, EFBIG, "more than %llu entries",
		               (unsigned long long)options->limit_entries);
	if ((uint64_t)size > options->limit_bytes - unpack->consumed_bytes)
		return err_set(e, EFBIG, "more than %s: %s",
		               format_bytes(options->limit_bytes, bytes, sizeof bytes),
		               path_shown(unpack->path, shown));
	unpack->consumed_bytes += (uint64_t)size;
	return 0;
}

static int unpack_whiteout(struct unpack *unpack, struct err *e)
{
	char shown[SHOWN_SIZE];

	if (!unpack->options->layer)
		return err_set(e, EBADMSG,
		               "%s: a whiteout, so this is one layer of an image and no root file "
		               "system; import the whole image",
		               path_shown(unpack->path, shown));
	unpack->counts->entries++;
	return whiteouts_note(&unpack->whiteouts, unpack->path, e);
}

static int unpack_entry(struct unpack *unpack, struct archive_entry *entry, struct err *e)
{
	const char *path = archive_entry_pathname(entry), *link = archive_entry_hardlink(entry);
	const struct maker *maker = find_maker(unpack, archive_entry_filetype(entry));
	struct attributes attributes;
	char shown[SHOWN_SIZE];

	if (!path || !*path)
		return err_set(e, EBADMSG, "an entry without a name");
	TRY(path_clean(path, unpack->path, e));
	TRY(check_limits(unpack, entry, e));
	if (unpack->options->image && whiteout_named(unpack->path))
		return unpack_whiteout(unpack, e);
	if (!link && !maker) {
		unpack->counts->skipped++;
		return 0;
	}
	if (!*unpack->path && (link || maker->type != AE_IFDIR))
		return err_set(e, EBADMSG, "%s: would replace the top directory",
		               path_shown(path, shown));
	unpack->counts->entries++;
	if (link) {
		/* what data it may carry is the file's own; writing it would be a second file's */
		TRY(path_clean(link, unpack->link, e));
		return target_hardlink(&unpack->target, unpack->path, unpack->link, e);
	}
	TRY(read_attributes(unpack, entry, &attributes, e));
	return maker->make(unpack, entry, &attributes, e);
}

static int unpack_all(struct unpack *unpack, int infd, struct err *e)
{
	struct archive_entry *entry;
	int more;

	TRY(source_open(unpack->source, infd, e));
	while ((more = source_next(unpack->source, &entry, e)) > 0) {
		TRY(unpack_entry(unpack, entry, e));
		tell_progress(unpack);
	}
	TRY(more);
	if (unpack->options->layer)
		TRY(whiteouts_apply(&unpack->whiteouts, &unpack->target, unpack->options->opaquefd,
		                    e));
	TRY(target_finish(&unpack->target, e));
	return source_drain(unpack->source, e);
}

int unpack_stream(struct source *source, int infd, int dirfd, const struct unpack_options *options,
                  struct archive_counts *counts, struct err *e)
{
	struct attributes implied = {.change_owner = options->has_owner,
	                             .uid = options->owner_uid,
	                             .gid = options->owner_gid};
	struct unpack *unpack = calloc(1, sizeof *unpack);
	int result;

	if (!unpack)
		return err_set(e, ENOMEM, "no memory to unpack with");
	unpack->options = options;
	unpack->counts = counts;
	unpack->source = source;
	target_init(&unpack->target, dirfd, &counts->entries, options->limit_entries, &implied);
	result = unpack_all(unpack, infd, e);
	target_release(&unpack->target);
	whiteouts_release(&unpack->whiteouts);
	free(unpack);
	return result;
}
