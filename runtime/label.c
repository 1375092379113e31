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
#include "base/log.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "runtime/internal.h"

enum { LABEL_TEXT_MAX = 256, TREES_SIZE = 32, EMPTY_TIMEOUT_MS = 10000, REAP_SOME_US = 20000 };

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

/*
 * The cgroup trees of this host as one sees them here: which there are, and which group the v2
 * mount shows as its root. Who sees others (a container, a private mount namespace) cannot say of
 * an orphan that all of it is gone.
 */
static int describe_trees(const struct cgroup_host *host, char *text, size_t size, struct err *e)
{
	struct stat root = {0};

	/* without one the next row says what is missing */
	if (host->mode != CGROUP_NONE && stat(host->v2_mount, &root))
		return err_sys(e, "%s", host->v2_mount);
	return text_format(text, size, e, "%d%d%d-%llu", host->v1_mounts[0][0] != '\0',
	                   host->v1_mounts[1][0] != '\0', host->v1_mounts[2][0] != '\0',
	                   (unsigned long long)root.st_ino);
}

int claim_label(struct sandbox *sandbox, struct err *e)
{
	struct sandbox_host *host = sandbox->host;
	char text[LABEL_TEXT_MAX], trees[TREES_SIZE];
	uint32_t entropy = 0;
	int length, reaped;

	TRY(new_id(sandbox->report->id, &entropy, e));
	TRY(describe_trees(&host->cgroups, trees, sizeof trees, e));
	length = text_format(text, sizeof text, e, "%s %s %s\n", sandbox->report->id,
	                     host->cgroup_parent, trees);
	TRY(length);
	scoped_fd labelfd = openat(host->runfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (labelfd < 0)
		return err_sys(e, "making a file in %s (AGENTDOCK_RUN_DIR)", host->run_path);
	if (flock(labelfd, LOCK_EX | LOCK_NB))
		return err_sys(e, "locking the label of a new sandbox in %s", host->run_path);
	TRY(fd_write_all(labelfd, text, (size_t)length, e));
	int slot = link_to_free_slot(host->runfd, labelfd, entropy, e);
	/* orphans hold slots, too */
	if (slot == -EUSERS && sandbox_reap(host, &reaped, &(struct err){0}) == 0 && reaped > 0)
		slot = link_to_free_slot(host->runfd, labelfd, entropy, e);
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

struct label {
	char id[REPORT_ID_SIZE], parent[64], trees[TREES_SIZE];
};

/* Its writer was we, but a torn or a planted file must not lead anywhere. */
static int read_label(int labelfd, struct label *label, struct err *e)
{
	char text[LABEL_TEXT_MAX];
	struct stat status;
	ssize_t length;

	if (fstat(labelfd, &status) || !S_ISREG(status.st_mode))
		return err_set(e, EPROTO, "not a file of AgentDock's; remove it");
	length = pread(labelfd, text, sizeof text - 1, 0);
	if (length < 0)
		return err_sys(e, "reading a label");
	text[length] = '\0';
	if (sscanf(text, "%12[0-9a-f] %63s %31[-0-9]", label->id, label->parent, label->trees) !=
	            3 ||
	    strlen(label->id) != 12 || strstr(label->parent, ".."))
		return err_set(e, EPROTO, "not a label that AgentDock wrote; remove it");
	return 0;
}

static int remove_orphan(struct sandbox_host *host, const struct label *label, int patience_ms,
                         struct err *e)
{
	char trees[TREES_SIZE];
	struct cgroup cgroup;
	int r;

	TRY(describe_trees(&host->cgroups, trees, sizeof trees, e));
	if (strcmp(trees, label->trees) != 0)
		return err_set(
			e, EXDEV,
			"the sandbox %s was built where other cgroup trees are in sight; run "
			"agentdock gc there",
			label->id);
	cgroup_init(&cgroup);
	r = cgroup_open(&cgroup, &host->cgroups, label->parent, label->id, e);
	if (r == 0)
		r = cgroup_kill(&cgroup, e);
	if (r == 0)
		r = cgroup_wait_empty(&cgroup, patience_ms, e);
	if (r == 0)
		r = cgroup_remove(&cgroup, &host->cgroups, e);
	cgroup_release(&cgroup);
	return r;
}

/* Returns 1 when NAME was an orphan and is gone, 0 when it lives (or just ended). */
static int reap_label(struct sandbox_host *host, const char *name, int patience_ms, struct err *e)
{
	struct label label;
	struct stat status;
	scoped_fd labelfd = openat(host->runfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (labelfd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "opening %s/%s", host->run_path, name);
	if (flock(labelfd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "locking %s/%s", host->run_path, name);
	if (fstat(labelfd, &status) || status.st_nlink == 0)
		return 0;
	TRY(read_label(labelfd, &label, e));
	TRY(remove_orphan(host, &label, patience_ms, e));
	log_debug("reaped %s", label.id);
	if (unlinkat(host->runfd, name, 0) && errno != ENOENT)
		return err_sys(e, "removing %s/%s", host->run_path, name);
	return 1;
}

static int reap(struct sandbox_host *host, uint64_t until_us, int patience_ms, int *reaped,
                struct err *e)
{
	int copyfd = openat(host->runfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_dir dir = copyfd < 0 ? NULL : fdopendir(copyfd);
	struct dirent *entry;
	int result = 0, count = 0;

	if (!dir)
		return err_sys(e, "listing %s", host->run_path);
	while ((entry = readdir(dir)) && (!until_us || clock_us() < until_us)) {
		struct err one = {0};

		if (entry->d_name[0] != 's')
			continue;
		int r = reap_label(host, entry->d_name, patience_ms, &one);
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

int sandbox_reap(struct sandbox_host *host, int *reaped, struct err *e)
{
	return reap(host, 0, EMPTY_TIMEOUT_MS, reaped, e);
}

int reap_some(struct sandbox_host *host, int *reaped, struct err *e)
{
	return reap(host, clock_us() + REAP_SOME_US, 0, reaped, e);
}
