/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.intelRdt ("IntelRdt" in config-linux.md): the container's process becomes a task of a directory
 * of resctrl. One that is named by closID is the host's and stays; the one that is named after the
 * container, and its directory of monitoring, are ours to remove.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"

#define RESCTRL "/sys/fs/resctrl"

enum { SCHEMATA_SIZE = 16384 };

static int open_resctrl(struct err *e)
{
	scoped_fd fd = open(RESCTRL, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs status;

	if (fd < 0 || fstatfs(fd, &status) < 0 || status.f_type != RDTGROUP_SUPER_MAGIC)
		return err_set(e, ENOTSUP,
		               "no resctrl file system is mounted at " RESCTRL "; mount it (mount "
		               "-t resctrl resctrl " RESCTRL "), where the kernel and the CPU have "
		               "it");
	return take_fd(&fd);
}

static int check_clos_id(const char *id, struct err *e)
{
	static const char *const others[] = {".", "..", "info", "mon_groups", "mon_data"};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(id, others[i]))
			return err_set(e, EINVAL, "closID: \"%s\" cannot be one", id);
	if (strcmp(id, "/") != 0 && (!*id || strpbrk(id, "/\n")))
		return err_set(e, EINVAL, "closID: it is the name of one directory, or \"/\"");
	return 0;
}

static bool has_schemata(const struct oci_intel_rdt *rdt)
{
	return rdt->l3_cache_schema || rdt->mem_bw_schema || rdt->schemata.count;
}

/* ---- schemata ---- */

static int append(char *text, const char *line, size_t length, struct err *e)
{
	size_t at = strlen(text);

	if (at + length + 2 > SCHEMATA_SIZE)
		return err_set(e, E2BIG, "the schemata are longer than %d bytes", SCHEMATA_SIZE);
	memcpy(text + at, line, length);
	memcpy(text + at + length, "\n", 2);
	return 0;
}

/* memBwSchema takes the place of l3CacheSchema's own lines of that kind. */
static int cache_and_bandwidth(const struct oci_intel_rdt *rdt, char *text, struct err *e)
{
	*text = '\0';
	for (const char *line = rdt->l3_cache_schema; line && *line;) {
		size_t length = strcspn(line, "\n");

		if (length && !(rdt->mem_bw_schema && !strncmp(line, "MB:", 3)))
			TRY(append(text, line, length, e));
		line += length + (line[length] == '\n');
	}
	return rdt->mem_bw_schema ? append(text, rdt->mem_bw_schema, strlen(rdt->mem_bw_schema), e)
	                          : 0;
}

static bool has_line(const char *text, const char *line, size_t length)
{
	for (const char *at = text; *at;) {
		size_t have;

		at += strspn(at, " \t\n");
		have = strcspn(at, "\n");
		if (have == length && !strncmp(at, line, length))
			return true;
		at += have;
	}
	return false;
}

/* Of a directory that was there: each of our lines must be one of its. */
static int compare(int dirfd, const char *wanted, struct err *e)
{
	char have[SCHEMATA_SIZE];

	TRY((int)file_read(dirfd, "schemata", have, sizeof have, e));
	for (const char *line = wanted; *line;) {
		size_t length = strcspn(line, "\n");

		if (!has_line(have, line, length))
			return err_set(e, EEXIST,
			               "closID: it is there already, and has not \"%.*s\"",
			               (int)length, line);
		line += length + 1;
	}
	return 0;
}

static int write_schemata(int resctrlfd, int dirfd, const char *text, struct err *e)
{
	char reason[256];
	struct err ignored;

	if (!*text || file_write(dirfd, "schemata", text, e) == 0)
		return 0;
	if (file_read(resctrlfd, "info/last_cmd_status", reason, sizeof reason, &ignored) <= 0)
		return -e->code;
	reason[strcspn(reason, "\n")] = '\0';
	return err_hint(e, "the kernel says: %s", reason);
}

static int set_schemata(const struct oci_intel_rdt *rdt, int resctrlfd, int dirfd, bool was_there,
                        struct err *e)
{
	char text[SCHEMATA_SIZE];

	TRY(cache_and_bandwidth(rdt, text, e));
	TRY(was_there ? compare(dirfd, text, e) : write_schemata(resctrlfd, dirfd, text, e));
	*text = '\0';
	for (size_t i = 0; i < rdt->schemata.count; i++)
		TRY(append(text, rdt->schemata.items[i], strlen(rdt->schemata.items[i]), e));
	return write_schemata(resctrlfd, dirfd, text, e);
}

/* ---- directories ---- */

/* In the record, so that delete removes it. */
static int keep_directory(struct container *container, const char *clos, const char *below,
                          struct err *e)
{
	const char *slash = *clos ? "/" : "";

	free(container->own_rdt_group);
	if (asprintf(&container->own_rdt_group, RESCTRL "%s%s%s", slash, clos, below) < 0) {
		container->own_rdt_group = NULL;
		return err_set(e, ENOMEM, "no memory for a path");
	}
	container->entry->record.rdt_group = container->own_rdt_group;
	return 0;
}

static int open_directory(struct container *container, int resctrlfd, bool *was_there,
                          struct err *e)
{
	const struct oci_intel_rdt *rdt = container->config->linux_part->intel_rdt;
	const char *name = rdt->clos_id ? rdt->clos_id : container->entry->id;

	*was_there = true;
	if (!strcmp(name, "/"))
		return file_open(resctrlfd, ".", O_RDONLY | O_DIRECTORY, 0, e);
	if (!rdt->clos_id || has_schemata(rdt)) {
		*was_there = mkdirat(resctrlfd, name, 0755) < 0;
		if (*was_there && (errno != EEXIST || !rdt->clos_id)) {
			err_sys(e, "making " RESCTRL "/%s", name);
			return e->code == ENOSPC ? err_hint(e, "all classes of service are in use")
			                         : -e->code;
		}
		if (!rdt->clos_id)
			TRY(keep_directory(container, name, "", e));
	}
	return file_open(resctrlfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, e);
}

static int add_task(int dirfd, const char *file, pid_t pid, struct err *e)
{
	char text[16];

	snprintf(text, sizeof text, "%d", pid);
	return file_write(dirfd, file, text, e);
}

static int monitor(struct container *container, int dirfd, struct err *e)
{
	const struct oci_intel_rdt *rdt = container->config->linux_part->intel_rdt;
	char below[NAME_MAX * 5], tasks[NAME_MAX * 5];

	TRY(text_format(below, sizeof below, e, "/mon_groups/%s", container->entry->id));
	TRY(text_format(tasks, sizeof tasks, e, "%s/tasks", below + 1));
	if (mkdirat(dirfd, below + 1, 0755) < 0)
		return err_sys(e, "enableMonitoring: making %s", below + 1);
	/* else it goes with the directory that it is in */
	if (rdt->clos_id)
		TRY(keep_directory(container, !strcmp(rdt->clos_id, "/") ? "" : rdt->clos_id, below,
		                   e));
	return add_task(dirfd, tasks, container->pid, e);
}

static int join(struct container *container, struct err *e)
{
	const struct oci_intel_rdt *rdt = container->config->linux_part->intel_rdt;
	scoped_fd resctrlfd = open_resctrl(e), dirfd = -1;
	bool was_there;

	TRY(resctrlfd);
	if (rdt->clos_id)
		TRY(check_clos_id(rdt->clos_id, e));
	TRY(dirfd = open_directory(container, resctrlfd, &was_there, e));
	TRY(set_schemata(rdt, resctrlfd, dirfd, was_there, e));
	TRY(add_task(dirfd, "tasks", container->pid, e));
	return rdt->enable_monitoring ? monitor(container, dirfd, e) : 0;
}

OUTSIDE(join_rdt)
{
	if (!container->config->linux_part->intel_rdt)
		return 0;
	return join(container, e) < 0 ? err_in(e, "linux.intelRdt") : 0;
}
