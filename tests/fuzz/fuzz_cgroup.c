/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says of mounts and groups, as text: mountinfo, /proc/PID/cgroup, and the control
 * files that usage is read from, of both versions (runtime/cgroup/). The input is a set of files: a
 * line "@NAME" begins one. NAME is mountinfo, cgroup PATH, or a control file in v2/ or v1/.
 *
 * Holds: a mount that is taken is of that file system; a process is a member where the components
 * of PATH are among those of its group; each number is the one that stands behind its key, or 0.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "runtime/cgroup/internal.h"

/* ---- mountinfo ---- */

static void check_mount(const char *path, size_t room, long magic)
{
	struct statfs fs;

	CHECK(memchr(path, '\0', room), "a path that does not end");
	CHECK(!path[0] || (statfs(path, &fs) == 0 && fs.f_type == magic),
	      "%s is taken for what it is not", path);
}

static void try_mountinfo(char *text)
{
	struct cgroup_host host = {.mode = CGROUP_NONE};
	scoped_mem char *copy = strdup(text);
	bool hybrid = false;
	struct err e;
	int result = mounts_note(&host, text, true, &e);

	CHECK(copy, "no memory");
	if (result < 0)
		fuzz_check_err(result, &e);
	else if (result > 0)
		mounts_note(&host, copy, false, &e);
	check_mount(host.v2_mount, sizeof host.v2_mount, CGROUP2_SUPER_MAGIC);
	for (int i = 0; i < CONTROLLERS; i++) {
		check_mount(host.v1_mounts[i], sizeof host.v1_mounts[i], CGROUP_SUPER_MAGIC);
		hybrid |= host.v1_mounts[i][0] != '\0';
		CHECK((host.v1_mounts[i][0] != '\0') == ((host.controllers >> i & 1) != 0),
		      "%s is noted by half", controller_names[i]);
	}
	CHECK(hybrid == (host.mode == CGROUP_HYBRID), "mode %s", cgroup_mode_name(host.mode));
}

/* ---- /proc/PID/cgroup ---- */

/* Do the components of PATH stand in LINE, one behind the other? */
static bool has_components(const char *line, const char *path)
{
	for (const char *slash = line; (slash = strchr(slash, '/')); slash++) {
		const char *at = slash + 1, *want = path;

		for (;;) {
			size_t length = strcspn(want, "/");

			if (strcspn(at, "/") != length || strncmp(at, want, length) != 0)
				break;
			at += length;
			want += length;
			if (!*want++)
				return true;
			if (!*at++)
				break;
		}
	}
	return false;
}

static bool is_member(const char *text, const char *path)
{
	scoped_mem char *copy = strdup(text);
	char *next = copy, *line;

	CHECK(copy, "no memory");
	while ((line = strsep(&next, "\n")))
		if (strncmp(line, "0::", 3) == 0)
			return has_components(line, path);
	return false;
}

/* A path that no group of ours can have says nothing. */
static bool is_path(const char *path)
{
	size_t length = strlen(path);

	return length && path[0] != '/' && path[length - 1] != '/' && !strstr(path, "//");
}

static void try_membership(char *text, const char *path)
{
	bool expected = is_member(text, path), named;

	if (!is_path(path))
		return;
	named = group_is_named(text, "", path);
	CHECK(named == expected, "%s is %sa member", path, named ? "" : "not ");
}

/* ---- control files ---- */

/* The number behind KEY in a file of lines "KEY NUMBER"; without a KEY that which is all of it.
 * OTHERWISE where there is none. */
static uint64_t number_in(const char *dir, const char *file, const char *key, uint64_t otherwise)
{
	char path[64], text[CONTROL_TEXT_SIZE], *next = text, *line;
	struct err e;
	scoped_mem char *data = NULL;
	size_t length;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	if (file_read_all(fuzz_scratch(), path, 1 << 20, &data, &length, &e) < 0)
		return otherwise;
	snprintf(text, sizeof text, "%s", data);
	while ((line = strsep(&next, "\n"))) {
		unsigned __int128 number = 0;
		const char *digits = line;
		size_t count;

		if (key) {
			if (strncmp(line, key, strlen(key)) != 0 || line[strlen(key)] != ' ')
				continue;
			digits = line + strlen(key) + 1;
		}
		count = strspn(digits, "0123456789");
		for (size_t i = 0; i < count && number <= UINT64_MAX; i++)
			number = number * 10 + (unsigned)(digits[i] - '0');
		return count && !digits[count] && number <= UINT64_MAX ? (uint64_t)number
		                                                       : otherwise;
	}
	return otherwise;
}

static void try_usage(void)
{
	struct cgroup group;
	struct cgroup_usage usage;
	struct err e;
	int result;
	uint64_t kills;

	cgroup_init(&group);
	group.v2fd = openat(fuzz_scratch(), "v2", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	result = cgroup_usage(&group, &usage, &e);
	if (result < 0) {
		fuzz_check_err(result, &e);
	} else {
		CHECK(usage.cpu_us == number_in("v2", "cpu.stat", "usage_usec", 0), "cpu");
		CHECK(usage.throttled_us == number_in("v2", "cpu.stat", "throttled_usec", 0),
		      "cpu");
		CHECK(usage.memory_peak_bytes == number_in("v2", "memory.peak", NULL, 0), "memory");
		CHECK(usage.oom_kills == number_in("v2", "memory.events", "oom_kill", 0), "kills");
		CHECK(usage.pids_refused == number_in("v2", "pids.events", "max", 0), "pids");
	}
	for (int i = 0; i < CONTROLLERS; i++)
		group.v1fds[i] = openat(fuzz_scratch(), "v1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	result = cgroup_usage(&group, &usage, &e);
	if (result < 0)
		fuzz_check_err(result, &e);
	kills = number_in("v2", "memory.events", "oom_kill", 0);
	if (result == 0)
		CHECK(usage.oom_kills == number_in("v1", "memory.oom_control", "oom_kill", kills),
		      "v1 kills");
	cgroup_release(&group);
}

/* ---- the files of an input ---- */

static bool put_control_file(const char *name, const char *text)
{
	static const char *const names[] = {
		"v2/cpu.stat",    "v2/memory.peak",        "v2/memory.events",
		"v2/pids.peak",   "v2/pids.events",        "v1/cpu.stat",
		"v1/pids.events", "v1/memory.oom_control", "v1/memory.max_usage_in_bytes",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0) {
			fuzz_make_dir("v2");
			fuzz_make_dir("v1");
			fuzz_put(name, text, strlen(text));
			return true;
		}
	return false;
}

static void try_words(const char *text)
{
	uint64_t number;

	for (int i = 0; i < CONTROLLERS; i++)
		control_has_word(text, controller_names[i]);
	if (control_number(text, NULL, &number))
		CHECK(text[0] >= '0' && text[0] <= '9', "%.20s is a number", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_mem char *text = fuzz_text(data, size);
	int next_fd = fuzz_next_fd();
	bool usage = false;
	char *next;

	for (next = text; next;) {
		char *name = next, *body = strchr(next, '\n'), *end;

		if (name[0] != '@' || !body)
			break;
		*body++ = '\0';
		end = body[0] == '@' ? body : strstr(body, "\n@");
		next = end ? end + (*end == '\n') : NULL;
		if (end)
			*end = '\0';
		try_words(body);
		if (strcmp(name, "@mountinfo") == 0)
			try_mountinfo(body);
		else if (strncmp(name, "@cgroup ", 8) == 0)
			try_membership(body, name + 8);
		else
			usage |= put_control_file(name + 1, body);
		/* what was cut off begins the next one */
		if (next && !*next)
			*next = '@';
	}
	if (usage) {
		try_usage();
		fuzz_remove("v2");
		fuzz_remove("v1");
	}
	CHECK(fuzz_next_fd() == next_fd, "a descriptor leaked");
	return 0;
}
