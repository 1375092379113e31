/* SPDX-License-Identifier: Apache-2.0 */
/* Control files of a group: read, written and awaited by the descriptor of its directory. Owns
 * nothing; every number is the kernel's and is still parsed as text that may be cut short. */
#include "runtime/cgroup/hierarchy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"

static int read_text(int fd, char *text, size_t size)
{
	ssize_t length = pread(fd, text, size - 1, 0);

	if (length < 0)
		return -errno;
	text[length] = '\0';
	return (int)length;
}

int control_read(int dirfd, const char *file, char *text, size_t size)
{
	scoped_fd fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	return read_text(fd, text, size);
}

int control_write(int dirfd, const char *file, const char *text)
{
	scoped_fd fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t length = strlen(text);
	ssize_t written;

	if (fd < 0)
		return -errno;
	written = write(fd, text, length);
	if (written < 0)
		return -errno;
	return (size_t)written == length ? 0 : -EIO;
}

static const char *line_of(const char *text, const char *key)
{
	size_t length = strlen(key);

	while (text) {
		if (strncmp(text, key, length) == 0 && text[length] == ' ')
			return text + length + 1;
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return NULL;
}

bool control_number(const char *text, const char *key, uint64_t *value)
{
	char *end;
	uint64_t number;

	if (key)
		text = line_of(text, key);
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || (*end != '\n' && *end != '\0'))
		return false;
	*value = number;
	return true;
}

bool control_has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	while (*text) {
		size_t here = strcspn(text, " \n");

		if (here == length && memcmp(text, word, length) == 0)
			return true;
		text += here;
		text += strspn(text, " \n");
	}
	return false;
}

/*
 * The kernel tells of changes of cgroup.events at most once in 10 ms and a file; a change soon
 * after another is told late. A command of two milliseconds must not end after twelve, so the first
 * waits are short and the file is read again after each.
 */
static int await_slice_ms(uint64_t waited_us, uint64_t left_us)
{
	uint64_t slice_us = waited_us < 20000 ? 1000 : left_us;

	if (slice_us > left_us)
		slice_us = left_us;
	return slice_us > 600000000 ? 600000 : (int)((slice_us + 999) / 1000);
}

int control_await(int groupfd, const char *key, uint64_t value, int timeout_ms)
{
	scoped_fd fd = openat(groupfd, "cgroup.events", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t start_us = clock_us(), limit_us = (uint64_t)timeout_ms * 1000;

	if (fd < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	for (;;) {
		struct pollfd waiting = {.fd = fd, .events = POLLPRI};
		char text[256];
		uint64_t now, waited_us;
		int result = read_text(fd, text, sizeof text);

		if (result < 0)
			return result;
		if (!control_number(text, key, &now))
			return -ENOTSUP;
		if (now == value)
			return 0;
		waited_us = clock_us() - start_us;
		if (waited_us >= limit_us)
			return -ETIMEDOUT;
		if (poll(&waiting, 1, await_slice_ms(waited_us, limit_us - waited_us)) < 0 &&
		    errno != EINTR)
			return -errno;
	}
}
