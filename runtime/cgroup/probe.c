/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host offers: which hierarchies are mounted, told from /proc/self/mountinfo (proc(5)).
 * Every candidate is opened and its file system checked, so that a mount that hides another, or one
 * that only looks like a hierarchy, is never taken for it.
 */
#include "runtime/cgroup/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "base/files.h"
#include "base/scoped.h"

enum { MOUNTINFO_MOST = 16 << 20 };

const char *const controller_names[CONTROLLERS] = {"cpu", "memory", "pids"};

const char *cgroup_mode_name(enum cgroup_mode mode)
{
	static const char *const names[] = {"none", "v2", "hybrid"};

	return names[mode];
}

static bool is_octal(const char *s)
{
	return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' &&
	       s[2] <= '7';
}

/* Undoes the escapes of blanks and backslashes, in place; false when one is malformed. */
static bool unescape(char *text)
{
	char *out = text;

	for (const char *in = text; *in; in++) {
		if (*in != '\\') {
			*out++ = *in;
			continue;
		}
		if (!is_octal(in + 1))
			return false;
		*out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
		if (*out++ == '\0')
			return false;
		in += 3;
	}
	*out = '\0';
	return true;
}

/* "ID PARENT MAJ:MIN ROOT POINT FLAGS [TAG...] - TYPE SOURCE OPTIONS" */
bool mount_line_parse(char *line, struct mount_line *mount)
{
	enum { ROOT = 3, POINT = 4, FLAGS = 5 };
	char *next = line, *field;
	int index = 0;

	memset(mount, 0, sizeof *mount);
	while ((field = strsep(&next, " "))) {
		if (index == ROOT)
			mount->root = field;
		else if (index == POINT)
			mount->point = field;
		if (index++ > FLAGS && strcmp(field, "-") == 0)
			break;
	}
	mount->type = strsep(&next, " ");
	if (!mount->root || !mount->point || !mount->type || !strsep(&next, " "))
		return false;
	mount->options = strsep(&next, " ");
	return mount->options && !next && unescape(mount->root) && unescape(mount->point);
}

bool has_option(const char *options, const char *word)
{
	size_t length = strlen(word);

	while (*options) {
		size_t here = strcspn(options, ",");

		if (here == length && memcmp(options, word, length) == 0)
			return true;
		options += here;
		options += *options == ',';
	}
	return false;
}

bool is_filesystem(const char *path, long magic)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == magic;
}

static void note_mount(struct cgroup_host *host, const struct mount_line *mount)
{
	if (strlen(mount->point) >= sizeof host->v2_mount)
		return;
	if (strcmp(mount->type, "cgroup2") == 0) {
		if (host->v2_mount[0] == '\0' && is_filesystem(mount->point, CGROUP2_SUPER_MAGIC))
			snprintf(host->v2_mount, sizeof host->v2_mount, "%s", mount->point);
	} else if (strcmp(mount->type, "cgroup") == 0 && hybrid_wants(host, mount->options) &&
	           is_filesystem(mount->point, CGROUP_SUPER_MAGIC)) {
		hybrid_note_mount(host, mount->point, mount->options);
	}
}

int mounts_note(struct cgroup_host *host, char *text, bool whole, struct err *e)
{
	char *next = text;
	int others = 0;

	while (next && *next) {
		char *line = strsep(&next, "\n");
		struct mount_line mount;

		if (!strstr(line, " - cgroup"))
			continue;
		if (!mount_line_parse(line, &mount))
			return err_set(e, EPROTO,
			               "/proc/self/mountinfo: a line is not in the form that "
			               "proc(5) gives; mount /proc of this kernel there");
		if ((strcmp(mount.root, "/") == 0) == whole)
			note_mount(host, &mount);
		else
			others = 1;
	}
	return others;
}

static int read_mounts(struct cgroup_host *host, bool whole, struct err *e)
{
	scoped_mem char *text = NULL;
	size_t length;

	TRY(file_read_all(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MOST, &text, &length, e));
	return mounts_note(host, text, whole, e);
}

/* The root group has neither file, and there may be no other; both came to every configuration of
 * the kernel with one release. */
static void note_release(struct cgroup_host *host)
{
	struct utsname name;
	unsigned long major, minor;
	char *end;

	if (uname(&name) < 0)
		return;
	major = strtoul(name.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	host->has_freeze = major > 5 || (major == 5 && minor >= 2);
	host->has_kill = major > 5 || (major == 5 && minor >= 14);
}

static int note_v2_controllers(struct cgroup_host *host, struct err *e)
{
	scoped_fd fd = file_open(AT_FDCWD, host->v2_mount, O_PATH | O_DIRECTORY, 0, e);
	char text[CONTROL_TEXT_SIZE];
	int result;

	TRY(fd);
	result = control_read(fd, "cgroup.controllers", text, sizeof text);
	if (result < 0) {
		errno = -result;
		return err_sys(e, "reading %s/cgroup.controllers", host->v2_mount);
	}
	for (int i = 0; i < CONTROLLERS; i++)
		if (control_has_word(text, controller_names[i]))
			host->controllers |= 1U << i;
	return 0;
}

int cgroup_host_probe(struct cgroup_host *host, struct err *e)
{
	struct cgroup_host found = {.mode = CGROUP_NONE};

	int parts = read_mounts(&found, true, e);

	TRY(parts);
	if (parts > 0)
		TRY(read_mounts(&found, false, e));
	if (found.v2_mount[0] == '\0') {
		/* Without the v2 tree nothing can be killed or frozen for sure: v1 alone is none.
		 */
		*host = (struct cgroup_host){.mode = CGROUP_NONE};
		return 0;
	}
	if (found.mode == CGROUP_NONE)
		found.mode = CGROUP_V2;
	TRY(note_v2_controllers(&found, e));
	note_release(&found);
	*host = found;
	return 0;
}
