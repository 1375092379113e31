/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.resources into control files: one value into one file, and the walk over the tables of v1
 * (group_v1.c) and v2 (group_v2.c). Which table counts for a key is said by where its controller sits.
 *
 * Rows may depend on each other (memory and memory+swap, period and quota, quota and burst) in an order
 * that the values before decide. So a row that the kernel refuses is tried once more after all others.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "container/group_internal.h"

enum { CHANGES_MAX = 64 };

int group_refuse(const char *key, const char *why, struct err *e)
{
	return err_set(e, ENOTSUP, "%s: %s; take it out of config.json", key, why);
}

/* ---- one value ---- */

/* The controller sits nowhere, or is not passed on to the group. */
static int controller_missing(const struct group *group, const struct group_setting *setting,
                              struct err *e)
{
	if (group->count == 0)
		return err_set(e, ENOTSUP,
		               "%s: the container has no cgroup, because this user may make none; "
		               "run as root, or have a group delegated (by systemd: "
		               "--systemd-cgroup)",
		               setting->key);
	if (!group_of(group, setting->controller))
		return err_set(e, ENOENT,
		               "%s: no hierarchy that is mounted here has the %s controller; mount "
		               "one, look at cgroup_disable= on the kernel's command line, or take "
		               "the key out of config.json",
		               setting->key, setting->controller);
	return 0;
}

static int file_missing(const struct group *group, const struct group_setting *setting,
                        struct err *e)
{
	const struct group_hierarchy *of = group_of(group, setting->controller);
	char text[CONTROL_TEXT_SIZE];

	if (!*of->controllers && strcmp(setting->controller, "cgroup") != 0 &&
	    control_read(of->fd, "cgroup.controllers", text, sizeof text) >= 0 &&
	    !control_has_word(text, setting->controller)) {
		if (group_enable(group, setting->controller, e) < 0)
			return err_in(e, "%s: cgroup %s", setting->key, of->place);
		return 1;
	}
	return err_set(
		e, ENOENT,
		"%s: cgroup %s has no %s: the %s controller is there, but this kernel was "
		"built without that; take the key out of config.json, or boot another kernel",
		setting->key, of->place, setting->file, setting->controller);
}

static const char *way_out(int code)
{
	switch (code) {
	case EBUSY:
		return "it uses more than that already, or the groups below or above it do not "
		       "agree with it";
	case EINVAL:
	case ERANGE:
	case ENOSPC:
		return "the kernel takes no such value here; ask for one that this host and the "
		       "group above can hold";
	case ENODEV:
	case ENXIO:
		return "there is no such device on this host";
	case EOPNOTSUPP:
		return "this kernel cannot do it; take the key out of config.json";
	default:
		return "the file must be ours to write: run as root, or have the group delegated "
		       "to "
		       "this user";
	}
}

static int write_failed(const struct group_hierarchy *of, const struct group_setting *setting,
                        const char *text, int code, struct err *e)
{
	errno = code;
	err_sys(e, "%s: cgroup %s: setting %s to \"%s\"", setting->key, of->place, setting->file,
	        text);
	return err_hint(e, "%s", way_out(code));
}

int group_write(const struct group *group, const struct group_setting *setting, const char *text,
                bool optional, struct err *e)
{
	const struct group_hierarchy *of = group_of(group, setting->controller);

	for (int attempt = 0;; attempt++) {
		int r;

		TRY(controller_missing(group, setting, e));
		r = control_write(of->fd, setting->file, text);
		if (r == 0)
			return 0;
		e->code = 0;
		if (r == -ENOENT && optional)
			return -ENOENT;
		if (r != -ENOENT || attempt > 0)
			return write_failed(of, setting, text, -r, e);
		TRY(file_missing(group, setting, e));
	}
}

/* ---- tables ---- */

#define MEMBER(type, base, offset) ((const type *)(const void *)((const char *)(base) + (offset)))

static int plain_text(const struct group_row *row, const struct group_change *change, char *text,
                      size_t size, struct err *e)
{
	const void *part = *MEMBER(void *const, change->resources, row->part);
	int64_t number = 0;
	bool set = false;

	if (!part)
		return 0;
	if (row->type == VALUE_SIGNED) {
		const struct oci_int *value = MEMBER(struct oci_int, part, row->member);

		set = value->set;
		number = value->value;
		snprintf(text, size, "%" PRIi64, number);
	} else if (row->type == VALUE_UNSIGNED) {
		const struct oci_uint *value = MEMBER(struct oci_uint, part, row->member);

		set = value->set;
		number = value->value != 0;
		snprintf(text, size, "%" PRIu64, value->value);
	} else {
		const char *word = *MEMBER(char *const, part, row->member);

		if (!word || !*word)
			return 0;
		TRY(text_format(text, size, e, "%s", word));
		return 1;
	}
	return set && (number != 0 || row->zero || (row->default_zero && change->update));
}

/* ---- what the kernel made of it ---- */

static bool list_next(const char **text, unsigned long *first, unsigned long *last)
{
	char *end;

	*text += strspn(*text, ", \n");
	if (**text < '0' || **text > '9')
		return false;
	*first = *last = strtoul(*text, &end, 10);
	if (*end == '-')
		*last = strtoul(end + 1, &end, 10);
	*text = end;
	return true;
}

static bool list_has(const char *list, unsigned long number)
{
	unsigned long first, last;

	while (list_next(&list, &first, &last))
		if (number >= first && number <= last)
			return true;
	return false;
}

bool group_list_within(const char *have, const char *want)
{
	unsigned long first, last;
	int count = 0;

	for (; list_next(&have, &first, &last); count++)
		for (unsigned long number = first; number <= last; number++)
			if (!list_has(want, number))
				return false;
	return count > 0;
}

/* "max" and the like are not numbers, and are written to files that say when they refuse. */
static bool is_number_as_asked(const char *asked, const char *got)
{
	long long want = strtoll(asked, NULL, 10), have = strtoll(got, NULL, 10);
	long long page = sysconf(_SC_PAGESIZE);

	return want < 0 || have == want || have == want - want % page;
}

static int check_row(const struct group_row *row, const struct group_change *change,
                     const char *asked, struct err *e)
{
	const struct group_hierarchy *of = group_of(change->group, row->setting.controller);
	const char *file = row->effective ? row->effective : row->setting.file;
	char got[GROUP_VALUE_SIZE];
	int r;

	if (!row->effective && !row->read_back)
		return 0;
	r = control_read(of->fd, file, got, sizeof got);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "%s: cgroup %s: reading %s", row->setting.key, of->place, file);
	}
	got[strcspn(got, "\n")] = '\0';
	if (row->effective ? group_list_within(got, asked) : is_number_as_asked(asked, got))
		return 0;
	return err_set(e, ERANGE,
	               "%s: cgroup %s: %s was asked for, and this kernel makes it \"%s\" (%s); ask "
	               "for what this host and the group above have, or take the key out of "
	               "config.json",
	               row->setting.key, of->place, asked, got, file);
}

static int apply_row(const struct group_row *row, const struct group_change *change, struct err *e)
{
	char text[GROUP_VALUE_SIZE];
	int r;

	r = row->text ? row->text(change, text, sizeof text, e)
	              : plain_text(row, change, text, sizeof text, e);
	if (r <= 0)
		return r;
	if (!row->setting.file)
		return group_refuse(row->setting.key, "cgroup v2 has nothing like it", e);
	TRY(group_write(change->group, &row->setting, text, false, e));
	return check_row(row, change, text, e);
}

static bool is_of_order(int code)
{
	return code == EINVAL || code == EBUSY;
}

static int apply_rows(const struct group_row *rows, size_t count, bool v1,
                      const struct group_change *change, struct err *e)
{
	const struct group_row *again[CHANGES_MAX];
	size_t again_count = 0;

	for (size_t i = 0; i < count; i++) {
		bool on_v1 = group_v1(change->group, rows[i].setting.controller) ||
		             !group_v2(change->group);

		if (on_v1 != v1 || apply_row(&rows[i], change, e) == 0)
			continue;
		if (!is_of_order(e->code) || again_count == CHANGES_MAX)
			return -e->code;
		again[again_count++] = &rows[i];
	}
	for (size_t i = 0; i < again_count; i++)
		TRY(apply_row(again[i], change, e));
	return 0;
}

int group_set(const struct group *group, const struct oci_resources *resources, bool update,
              struct err *e)
{
	const struct group_change change = {group, resources, update};

	if (!resources)
		return 0;
	/* first: it rounds, and writes the files that are written exactly after it */
	if (update && group->manager == GROUP_SYSTEMD)
		TRY(group_systemd_set(group, resources, e));
	TRY(apply_rows(group_v1_rows, group_v1_rows_count, true, &change, e));
	TRY(apply_rows(group_v2_rows, group_v2_rows_count, false, &change, e));
	TRY(group_set_block_io(&change, e));
	TRY(group_set_hugepages(&change, e));
	TRY(group_set_network(&change, e));
	TRY(group_set_rdma(&change, e));
	TRY(group_set_unified(&change, e));
	if (update && resources->devices.count > 0)
		return group_set_devices(group, resources, e);
	return 0;
}
