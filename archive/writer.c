/* SPDX-License-Identifier: Apache-2.0 */
/* Entries to a tar stream; see writer.h. */
#include "archive/writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"

enum { BLOCK = 512 };

/* POSIX.1-2017, pax, "ustar Interchange Format" */
struct ustar {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char uname[32], gname[32];
	char devmajor[8], devminor[8];
	char prefix[155];
	char padding[12];
};
_Static_assert(sizeof(struct ustar) == BLOCK, "a tar header is one block");

static int writer_flush(struct writer *writer, struct err *e)
{
	TRY(fd_write_all(writer->fd, writer->buffer, writer->used, e));
	writer->used = 0;
	return 0;
}

static int writer_put(struct writer *writer, const void *data, size_t length, struct err *e)
{
	const char *from = data;

	writer->written += length;
	while (length) {
		size_t take = WRITER_BUFFER_SIZE - writer->used;

		if (take > length)
			take = length;
		memcpy(writer->buffer + writer->used, from, take);
		writer->used += take;
		from += take;
		length -= take;
		if (writer->used == WRITER_BUFFER_SIZE)
			TRY(writer_flush(writer, e));
	}
	return 0;
}

static int writer_pad(struct writer *writer, struct err *e)
{
	static const char zeros[BLOCK];

	return writer_put(writer, zeros, (size_t)(-writer->written % BLOCK), e);
}

int writer_init(struct writer *writer, int fd, struct err *e)
{
	*writer = (struct writer){.fd = fd, .buffer = malloc(WRITER_BUFFER_SIZE)};
	return writer->buffer ? 0 : err_set(e, ENOMEM, "no memory for the archive's buffer");
}

void writer_release(struct writer *writer)
{
	free(writer->buffer);
	writer->buffer = NULL;
}

void pax_release(struct pax_records *records)
{
	free(records->data);
	*records = (struct pax_records){0};
}

static int pax_append(struct pax_records *records, const void *data, size_t length, struct err *e)
{
	if (!length)
		return 0;
	if (!bytes_grow(&records->data, &records->room, records->used + length, BLOCK))
		return err_set(e, ENOMEM, "no memory for a pax header");
	memcpy(records->data + records->used, data, length);
	records->used += length;
	return 0;
}

static size_t decimal_digits(size_t value)
{
	size_t digits = 1;

	while (value /= 10)
		digits++;
	return digits;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
int pax_add(struct pax_records *records, const char *key, const void *value, size_t length,
            struct err *e)
{
	size_t rest = strlen(key) + length + 3, total = rest + decimal_digits(rest);
	char number[24];

	total = rest + decimal_digits(total);
	TRY(pax_append(records, number, (size_t)snprintf(number, sizeof number, "%zu ", total), e));
	TRY(pax_append(records, key, strlen(key), e));
	TRY(pax_append(records, "=", 1, e));
	TRY(pax_append(records, value, length, e));
	return pax_append(records, "\n", 1, e);
}

static int pax_add_number(struct pax_records *records, const char *key, int64_t value,
                          struct err *e)
{
	char text[24];

	return pax_add(records, key, text,
	               (size_t)snprintf(text, sizeof text, "%lld", (long long)value), e);
}

/* Does VALUE fit into a field of SIZE bytes as octal digits and a NUL? Writes it if so. */
static int put_octal(char *field, size_t size, int64_t value)
{
	char digits[32];

	if (value < 0 || (uint64_t)value >> (3 * (size - 1))) {
		memset(field, '0', size - 1);
		return 0;
	}
	snprintf(digits, sizeof digits, "%0*llo", (int)(size - 1), (unsigned long long)value);
	memcpy(field, digits, size - 1);
	return 1;
}

/* The name as name, or prefix "/" name; 0 if it fits neither way. */
static int put_path(struct ustar *header, const char *path)
{
	size_t length = strlen(path), slash;

	if (length <= sizeof header->name) {
		memcpy(header->name, path, length);
		return 1;
	}
	for (slash = length - sizeof header->name - 1; slash < length - 1; slash++) {
		if (slash > sizeof header->prefix)
			break;
		if (slash && path[slash] == '/') {
			memcpy(header->prefix, path, slash);
			memcpy(header->name, path + slash + 1, length - slash - 1);
			return 1;
		}
	}
	memcpy(header->name, path, sizeof header->name);
	return 0;
}

static int put_header(struct writer *writer, struct ustar *header, struct err *e)
{
	unsigned sum = 0;

	memcpy(header->magic, "ustar", 6);
	memcpy(header->version, "00", 2);
	memset(header->checksum, ' ', sizeof header->checksum);
	for (size_t i = 0; i < sizeof *header; i++)
		sum += ((unsigned char *)header)[i];
	snprintf(header->checksum, sizeof header->checksum, "%06o", sum);
	return writer_put(writer, header, sizeof *header, e);
}

static int put_pax_header(struct writer *writer, const struct pax_records *own,
                          const struct pax_records *more, struct err *e)
{
	struct ustar header = {.name = "PaxHeaders/0", .type = 'x'};

	put_octal(header.mode, sizeof header.mode, 0644);
	put_octal(header.uid, sizeof header.uid, 0);
	put_octal(header.gid, sizeof header.gid, 0);
	put_octal(header.mtime, sizeof header.mtime, 0);
	if (!put_octal(header.size, sizeof header.size, (int64_t)(own->used + more->used)))
		return err_set(e, E2BIG, "extended attributes of more than 8 GiB");
	TRY(put_header(writer, &header, e));
	TRY(writer_put(writer, own->used ? own->data : "", own->used, e));
	TRY(writer_put(writer, more->used ? more->data : "", more->used, e));
	return writer_pad(writer, e);
}

static bool is_utf8(const char *text)
{
	size_t length = strlen(text);

	return utf8_valid_prefix(text, length) == length;
}

int writer_header(struct writer *writer, const struct member *member,
                  const struct pax_records *records, struct err *e)
{
	__attribute__((cleanup(pax_release))) struct pax_records own = {0};
	const char *link = member->link ? member->link : "";
	size_t link_length = strlen(link), path_length = strlen(member->path);
	struct ustar header = {.type = member->type};
	bool path_fits = put_path(&header, member->path);
	bool link_fits = link_length <= sizeof header.link;
	const struct {
		const char *key;
		char *field;
		size_t size;
		int64_t value;
	} numbers[] = {
		{"uid", header.uid, sizeof header.uid, member->uid},
		{"gid", header.gid, sizeof header.gid, member->gid},
		{"size", header.size, sizeof header.size, (int64_t)member->size},
		{"mtime", header.mtime, sizeof header.mtime, member->mtime},
	};

	memcpy(header.link, link, link_fits ? link_length : sizeof header.link);
	put_octal(header.mode, sizeof header.mode, member->mode & 07777);
	/* it holds for the records behind it */
	if ((!path_fits && !is_utf8(member->path)) || (!link_fits && !is_utf8(link)))
		TRY(pax_add(&own, "hdrcharset", "BINARY", 6, e));
	if (!path_fits)
		TRY(pax_add(&own, "path", member->path, path_length, e));
	if (!link_fits)
		TRY(pax_add(&own, "linkpath", link, link_length, e));
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (!put_octal(numbers[i].field, numbers[i].size, numbers[i].value))
			TRY(pax_add_number(&own, numbers[i].key, numbers[i].value, e));
	if (own.used || records->used)
		TRY(put_pax_header(writer, &own, records, e));
	return put_header(writer, &header, e);
}

int writer_file(struct writer *writer, int fd, uint64_t size, struct err *e)
{
	while (size) {
		size_t room = WRITER_BUFFER_SIZE - writer->used;
		ssize_t got = read(fd, writer->buffer + writer->used, room < size ? room : size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading");
		if (got == 0) { /* it has become shorter */
			got = (ssize_t)(room < size ? room : size);
			memset(writer->buffer + writer->used, 0, (size_t)got);
		}
		writer->used += (size_t)got;
		writer->written += (size_t)got;
		size -= (size_t)got;
		if (writer->used == WRITER_BUFFER_SIZE)
			TRY(writer_flush(writer, e));
	}
	return writer_pad(writer, e);
}

int writer_finish(struct writer *writer, struct err *e)
{
	static const char zeros[2 * BLOCK];

	TRY(writer_put(writer, zeros, sizeof zeros, e));
	return writer_flush(writer, e);
}
