/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels: the file RUN/sN says "slot N, and all that the sandbox ID owns in this host's kernel, is
 * held by the process that has me locked". It gets its name when it is written and locked, so that
 * nobody ever sees it half made; the lock dies with its process, by whatever signal, and with the
 * process inside, which holds it too until exec. What is not locked is orphaned, and reaped here.
 *
 * Invariant: a label exists before anything that it covers is made, and goes after all of it went.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "runtime/internal.h"

enum { LABEL_TEXT_MAX = 256, EMPTY_TIMEOUT_MS = 10000 };

static int new_id(char id[REPORT_ID_SIZE], uint32_t *entropy, struct err *e)
{
	unsigned char bytes[6 + sizeof *entropy];

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return err_sys(e, "getrandom");
	for (int i = 0; i < 6; i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	memcpy(entropy, bytes + 6, sizeof *entropy);
	return 0;
}

static int link_to_free_slot(int runfd, int labelfd, uint32_t first, struct err *e)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		char name[16];
		int slot = (int)((first + i) % SLOTS);

		snprintf(name, sizeof name, "s%d", slot);
		if (linkat(labelfd, "", runfd, name, AT_EMPTY_PATH) == 0)
			return slot;
		if (errno != EEXIST)
			return err_sys(e, "naming the label of a new sandbox");
	}
	return err_set(e, EUSERS, "all %d slots of this host are taken; wait for a sandbox to end",
	               SLOTS);
}

int claim_label(struct sandbox *sandbox, struct err *e)
{
	struct sandbox_host *host = sandbox->host;
	char text[LABEL_TEXT_MAX];
	uint32_t entropy = 0;
	int length;

	TRY(new_id(sandbox->report->id, &entropy, e));
	length = text_format(text, sizeof text, e, "%s %s\n", sandbox->report->id,
	                     host->cgroup_parent);
	TRY(length);
	scoped_fd labelfd = openat(host->runfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (labelfd < 0)
		return err_sys(e, "making a file in %s (AGENTDOCK_RUN_DIR)", host->run_path);
	if (flock(labelfd, LOCK_EX | LOCK_NB))
		return err_sys(e, "locking the label of a new sandbox in %s", host->run_path);
	TRY(fd_write_all(labelfd, text, (size_t)length, e));
	int slot = link_to_free_slot(host->runfd, labelfd, entropy, e);
	TRY(slot);
	sandbox->slot = slot;
	sandbox->labelfd = take_fd(&labelfd);
	if (sandbox->identity.user_namespace)
		sandbox->identity.host_base = SLOT_HOST_BASE + (uint32_t)slot * IDENTITY_RANGE;
	return 0;
}

void label_drop(struct sandbox *sandbox)
{
	char name[16];

	if (sandbox->slot < 0)
		return;
	snprintf(name, sizeof name, "s%d", sandbox->slot);
	unlinkat(sandbox->host->runfd, name, 0);
	sandbox->slot = -1;
	close_fd(&sandbox->labelfd);
}

/* Reads "ID PARENT" of a label; its writer was we, but a torn file must not lead anywhere. */
static int read_label(int labelfd, char id[REPORT_ID_SIZE], char parent[64], struct err *e)
{
	char text[LABEL_TEXT_MAX];
	ssize_t length = pread(labelfd, text, sizeof text - 1, 0);

	if (length < 0)
		return err_sys(e, "reading a label");
	text[length] = '\0';
	if (sscanf(text, "%12[0-9a-f] %63s", id, parent) != 2 || strlen(id) != 12 ||
	    strstr(parent, ".."))
		return err_set(e, EPROTO, "a label that AgentDock did not write");
	return 0;
}

static int remove_orphan(struct sandbox_host *host, const char *id, const char *parent,
                         struct err *e)
{
	struct cgroup cgroup;
	int r;

	cgroup_init(&cgroup);
	r = cgroup_open(&cgroup, &host->cgroups, parent, id, e);
	if (r == 0)
		r = cgroup_kill(&cgroup, e);
	if (r == 0)
		r = cgroup_wait_empty(&cgroup, EMPTY_TIMEOUT_MS, e);
	if (r == 0)
		r = cgroup_remove(&cgroup, &host->cgroups, e);
	cgroup_release(&cgroup);
	return r;
}

/* Returns 1 when NAME was an orphan and is gone, 0 when it lives (or just ended). */
static int reap_label(struct sandbox_host *host, const char *name, struct err *e)
{
	char id[REPORT_ID_SIZE], parent[64];
	struct stat status;
	scoped_fd labelfd = openat(host->runfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (labelfd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "opening %s/%s", host->run_path, name);
	if (flock(labelfd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "locking %s/%s", host->run_path, name);
	if (fstat(labelfd, &status) || status.st_nlink == 0)
		return 0;
	TRY(read_label(labelfd, id, parent, e));
	TRY(remove_orphan(host, id, parent, e));
	if (unlinkat(host->runfd, name, 0) && errno != ENOENT)
		return err_sys(e, "removing %s/%s", host->run_path, name);
	return 1;
}

int sandbox_reap(struct sandbox_host *host, int *reaped, struct err *e)
{
	int copyfd = openat(host->runfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_dir dir = copyfd < 0 ? NULL : fdopendir(copyfd);
	struct dirent *entry;
	int result = 0, count = 0;

	if (!dir)
		return err_sys(e, "listing %s", host->run_path);
	while ((entry = readdir(dir))) {
		struct err one = {0};

		if (entry->d_name[0] != 's')
			continue;
		int r = reap_label(host, entry->d_name, &one);
		if (r > 0)
			count++;
		if (r < 0 && result == 0) {
			result = r;
			*e = one;
			err_in(e, "reaping %s/%s", host->run_path, entry->d_name);
		}
	}
	*reaped = count;
	return result;
}
