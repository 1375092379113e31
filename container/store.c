/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of containers. It owns the directories below --root and nothing else of a container.
 *
 *  - A directory is changed or removed only under its lock, and whoever got the lock looks whether it
 *    was removed while waiting: what is then at its name is another container, and not touched.
 *  - state.json is there as a whole or not at all, whenever we are killed. It is the first that goes
 *    when a container is removed, so that what a killed `delete` leaves is a leftover as that of a
 *    killed `create`, and the next `delete` takes it away.
 *  - /run is a tmpfs: what is there doesn't outlive the kernel, so nothing is synced.
 */
#include "container/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/store_lock.h"
#include "oci/texts.h"

enum {
	ID_MAX = NAME_MAX,
	STATE_MAX = 1 << 20,   /* bytes of state.json */
	CONFIG_MAX = 16 << 20, /* bytes of config.json */
	TRIES_MAX = 100,       /* of create, against as many deletes */
};

#define STATE     "state.json"
#define STATE_NEW "state.json.new"
#define CONFIG    "config.json"

/* ---- names ---- */

/* Root of a user namespace is nobody special outside: it has its own runtime directory. */
static bool is_host_root(void)
{
	const char *user = getenv("USER");

	if (geteuid() != 0)
		return false;
	return (user && strcmp(user, "root") == 0) || process_has_host_ids();
}

const char *store_default_root(void)
{
	static char path[4096];
	const char *runtime_directory = getenv("XDG_RUNTIME_DIR");

	if (!runtime_directory || *runtime_directory != '/' || is_host_root())
		return "/run/agentdock-runtime";
	return snprintf(path, sizeof path, "%s/agentdock-runtime", runtime_directory) <
	                       (int)sizeof path
	               ? path
	               : "/run/agentdock-runtime";
}

int store_check_id(const char *id, struct err *e)
{
	char shown[200];
	size_t length = strlen(id);

	if (length > 0 && length <= ID_MAX && strcmp(id, ".") != 0 && strcmp(id, "..") != 0 &&
	    strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+.-") ==
	            length)
		return 0;
	return err_set(e, EINVAL,
	               "invalid container ID \"%s\": it is 1 to %d of A-Z a-z 0-9 _ + . - and "
	               "neither . nor ..",
	               text_printable(id, shown, sizeof shown), ID_MAX);
}

/* ---- entries ---- */

static int no_container(const char *id, struct err *e)
{
	return err_set(e, ENOENT, "container \"%s\" does not exist", id);
}

int store_lock(struct store_entry *entry, int patience_ms, struct err *e)
{
	int ours = store_lock_as(entry, HOLDER_OTHER, patience_ms, e);

	if (ours == 0)
		return no_container(entry->id, e);
	return ours < 0 ? ours : 0;
}

static int entry_init(struct store_entry *entry, const char *id, struct err *e)
{
	*entry = (struct store_entry){.fd = -1};
	TRY(store_check_id(id, e));
	entry->id = strdup(id);
	return entry->id ? 0 : err_set(e, ENOMEM, "no memory for a container's name");
}

/* What is kept there is done as we: only who we are, or root, may have written it. */
static int check_owner(int fd, const char *what, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", what);
	if (st.st_uid == geteuid() || st.st_uid == 0)
		return 0;
	return err_set(e, EPERM,
	               "%s belongs to user %u, whose containers these may be; name another "
	               "--root",
	               what, st.st_uid);
}

static int open_directory(int rootfd, const char *id)
{
	int fd = openat(rootfd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 ? fd : -errno;
}

void store_release(struct store_entry *entry)
{
	/* a process that was cloned meanwhile may have a copy, which would hold the lock */
	if (entry->locked)
		flock(entry->fd, LOCK_UN);
	close_fd(&entry->fd);
	free(entry->id);
	oci_store_release(&entry->texts);
	oci_config_release(&entry->config);
	*entry = (struct store_entry){.fd = -1};
}

/* ---- create ---- */

static int open_root(const char *root, struct err *e)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		TRY(dir_make_all(AT_FDCWD, root, 0711, e));
		fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return err_sys(e, "opening --root %s", root);
	if (check_owner(fd, "--root", e) < 0) {
		close(fd);
		return -e->code;
	}
	return fd;
}

static int open_made(int rootfd, struct store_entry *entry, struct err *e)
{
	entry->fd = open_directory(rootfd, entry->id);
	if (entry->fd == -ENOENT)
		return 0;
	if (entry->fd < 0) {
		errno = -entry->fd;
		return err_sys(e, "opening the directory of container %s", entry->id);
	}
	return store_lock_as(entry, HOLDER_CREATOR, STORE_PATIENT, e);
}

/* Makes the directory and locks it. 0: it was removed before it was locked. */
static int make_locked(int rootfd, struct store_entry *entry, struct err *e)
{
	int r;

	if (mkdirat(rootfd, entry->id, 0700) < 0) {
		if (errno != EEXIST)
			return err_sys(e, "making a directory for container %s", entry->id);
		return err_set(e, EEXIST, "container with ID \"%s\" already exists", entry->id);
	}
	r = open_made(rootfd, entry, e);
	if (r < 0)
		unlinkat(rootfd, entry->id, AT_REMOVEDIR);
	return r;
}

int store_create(const char *root, const char *id, struct store_entry *entry, struct err *e)
{
	scoped_fd rootfd = -1;
	int r = 0;

	TRY(entry_init(entry, id, e));
	r = rootfd = open_root(root, e);
	if (r >= 0)
		r = 0;
	for (int i = 0; r == 0 && i < TRIES_MAX; i++) {
		close_fd(&entry->fd);
		r = make_locked(rootfd, entry, e);
	}
	if (r == 0)
		r = err_set(e, EBUSY, "container %s is deleted as often as it is made", id);
	if (r < 0)
		store_release(entry);
	return r < 0 ? r : 0;
}

/* ---- what is kept ---- */

struct kept {
	int64_t pid;
	struct store_record record;
};

/* clang-format off */
static const struct shape_field record_fields[] = {
	FIELD_I64(struct kept, "pid", pid, 0, INT32_MAX, .required = true),
	FIELD_U64(struct kept, "pidStart", record.pid_start, UINT64_MAX, .required = true),
	FIELD_TEXT(struct kept, "bundle", record.bundle, .required = true),
	FIELD_TEXT(struct kept, "rootfs", record.rootfs, .required = true),
	FIELD_TEXT(struct kept, "created", record.created, .required = true),
	FIELD_TEXT(struct kept, "owner", record.owner, .required = true),
	FIELD_TEXT(struct kept, "group", record.group),
	FIELD_TEXT(struct kept, "rdtGroup", record.rdt_group),
	FIELD_END,
};
/* clang-format on */
static const struct shape record_shape = {record_fields, sizeof(struct kept), NULL};

static int take_record(struct store_entry *entry, const char *text, size_t length, struct err *e)
{
	struct oci_store texts = {0};
	struct kept kept = {0};

	if (shape_parse(text, length, &record_shape, &kept, &texts, e) < 0)
		return err_in(e, "container %s: " STATE, entry->id);
	oci_store_release(&entry->texts);
	entry->texts = texts;
	entry->record = kept.record;
	entry->record.pid = (pid_t)kept.pid;
	entry->has_record = true;
	return 0;
}

static void add_text(struct json_object *json, const char *key, const char *text)
{
	if (text)
		json_add_string(json, key, text);
}

static int write_whole(const struct store_entry *entry, const char *name, const char *temporary,
                       const char *text, size_t length, struct err *e)
{
	scoped_fd fd = file_open(entry->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600, e);

	if (fd < 0 || fd_write_all(fd, text, length, e) < 0)
		return err_in(e, "container %s", entry->id);
	if (renameat(entry->fd, temporary, entry->fd, name) < 0)
		return err_sys(e, "container %s: renaming %s to %s", entry->id, temporary, name);
	return 0;
}

int store_save(struct store_entry *entry, const struct store_record *record, struct err *e)
{
	scoped_json json = json_object_new_object();
	const char *text;
	size_t length;

	if (!json)
		return err_set(e, ENOMEM, "no memory for the record of container %s", entry->id);
	json_add_u64(json, "pid", (uint64_t)record->pid);
	json_add_u64(json, "pidStart", record->pid_start);
	json_add_string(json, "bundle", record->bundle);
	json_add_string(json, "rootfs", record->rootfs);
	json_add_string(json, "created", record->created);
	json_add_string(json, "owner", record->owner);
	add_text(json, "group", record->group);
	add_text(json, "rdtGroup", record->rdt_group);
	text = json_object_to_json_string_length(json, JSON_C_TO_STRING_PLAIN, &length);
	if (!text)
		return err_set(e, ENOMEM, "no memory for the record of container %s", entry->id);
	/* before it is written: what can't be read back would be a container that nobody can end */
	TRY(take_record(entry, text, length, e));
	return write_whole(entry, STATE, STATE_NEW, text, length, e);
}

int store_keep_config(struct store_entry *entry, const char *text, size_t length, struct err *e)
{
	scoped_fd fd = file_open(entry->fd, CONFIG, O_WRONLY | O_CREAT | O_EXCL, 0600, e);

	if (fd < 0 || fd_write_all(fd, text, length, e) < 0)
		return err_in(e, "container %s", entry->id);
	return 0;
}

int store_config(struct store_entry *entry, struct err *e)
{
	scoped_mem char *text = NULL;
	size_t length;

	if (entry->config.root)
		return 0;
	if (file_read_all(entry->fd, CONFIG, CONFIG_MAX, &text, &length, e) < 0 ||
	    oci_config_parse(text, length, &entry->config, e) < 0)
		return err_in(e, "container %s", entry->id);
	return 0;
}

/* ---- open ---- */

static int read_record(struct store_entry *entry, struct err *e)
{
	scoped_mem char *text = NULL;
	size_t length;

	if (file_read_all(entry->fd, STATE, STATE_MAX, &text, &length, e) < 0)
		return e->code == ENOENT ? 0 : err_in(e, "container %s", entry->id);
	if (take_record(entry, text, length, e) == 0)
		return 0;
	if (e->code != ENOMEM)
		e->code = EBADMSG;
	return -e->code;
}

/*
 * No record: it is being created, by who holds the lock, or was left by one that was killed. Looking
 * means to hold the lock for a moment, and to look again: the creator may just have been done.
 */
static int tell_leftover(struct store_entry *entry, struct err *e)
{
	if (!entry->locked) {
		if (flock(entry->fd, LOCK_SH | LOCK_NB) < 0)
			return 0;
		entry->locked = true;
		TRY(read_record(entry, e));
		flock(entry->fd, LOCK_UN);
		entry->locked = false;
	}
	entry->is_leftover = !entry->has_record || entry->record.pid == 0;
	return 0;
}

static int open_locked(const char *root, int patience_ms, struct store_entry *entry, struct err *e)
{
	scoped_fd rootfd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (rootfd >= 0)
		entry->fd = open_directory(rootfd, entry->id);
	else if (errno != ENOENT)
		return err_sys(e, "opening --root %s", root);
	if (rootfd < 0 || entry->fd == -ENOENT)
		return no_container(entry->id, e);
	if (entry->fd < 0) {
		errno = -entry->fd;
		return err_sys(e, "opening the directory of container %s", entry->id);
	}
	TRY(check_owner(rootfd, "--root", e));
	TRY(check_owner(entry->fd, "the container's directory", e));
	return patience_ms == STORE_UNLOCKED ? 0 : store_lock(entry, patience_ms, e);
}

static int open_entry(const char *root, int patience_ms, struct store_entry *entry, struct err *e)
{
	TRY(open_locked(root, patience_ms, entry, e));
	TRY(read_record(entry, e));
	return entry->has_record && entry->record.pid > 0 ? 0 : tell_leftover(entry, e);
}

int store_open(const char *root, const char *id, int patience_ms, struct store_entry *entry,
               struct err *e)
{
	TRY(entry_init(entry, id, e));
	if (open_entry(root, patience_ms, entry, e) < 0) {
		store_release(entry);
		return -e->code;
	}
	return 0;
}

/* ---- remove, list ---- */

int store_remove(const char *root, struct store_entry *entry, struct err *e)
{
	static const char *const files[] = {STATE, STATE_NEW, CONFIG, "start"};
	scoped_fd rootfd = file_open(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0, e);

	TRY(rootfd);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		unlinkat(entry->fd, files[i], 0);
	if (unlinkat(rootfd, entry->id, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return tree_remove(rootfd, entry->id, e);
}

int store_discard(const char *root, const char *id, struct err *e)
{
	struct store_entry entry;
	int r;

	TRY(entry_init(&entry, id, e));
	r = open_locked(root, STORE_BOUNDED, &entry, e);
	if (r == 0)
		r = store_remove(root, &entry, e);
	store_release(&entry);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int store_list(const char *root, struct string_list *ids, struct err *e)
{
	scoped_dir directory = opendir(root);
	struct dirent *entry;
	struct err ignored;

	if (!directory)
		return errno == ENOENT ? 0 : err_sys(e, "opening --root %s", root);
	while ((entry = readdir(directory)))
		if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		    store_check_id(entry->d_name, &ignored) == 0)
			TRY(string_list_add(ids, entry->d_name, e));
	if (ids->count)
		qsort(ids->items, ids->count, sizeof *ids->items, by_name);
	return 0;
}

/* ---- status ---- */

/* Field 22 of /proc/PID/stat; the name, field 2, may hold anything, so it is counted from its end. */
int store_pid_start(pid_t pid, uint64_t *start, struct err *e)
{
	char path[32], stat[1024];
	const char *at;

	TRY(text_format(path, sizeof path, e, "/proc/%d/stat", pid));
	TRY(file_read(AT_FDCWD, path, stat, sizeof stat, e));
	at = strrchr(stat, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return err_set(e, EPROTO, "%s: has fewer than 22 fields", path);
	*start = strtoull(at + 1, NULL, 10);
	return 0;
}

/* *PIDFD stays -1 where the first process is gone, a zombie, or another process has its pid. */
static int open_process(const struct store_record *record, int *pidfd, struct err *e)
{
	scoped_fd fd = pidfd_open(record->pid, 0);
	struct pollfd ended = {.events = POLLIN};
	uint64_t start;
	struct err gone;

	if (fd < 0) /* EINVAL: the pid is a thread's by now */
		return errno == ESRCH || errno == EINVAL ? 0 : err_sys(e, "pidfd_open");
	/* while it is not reaped, the pid is of who the descriptor is of */
	if (store_pid_start(record->pid, &start, &gone) < 0 || start != record->pid_start)
		return 0;
	ended.fd = fd;
	if (poll(&ended, 1, 0) == 0)
		*pidfd = take_fd(&fd);
	return 0;
}

int store_status(const struct store_entry *entry, int *status, int *pidfd, struct err *e)
{
	scoped_fd fd = -1;

	if (pidfd)
		*pidfd = -1;
	if (!entry->has_record || entry->record.pid == 0) {
		*status = entry->is_leftover ? OCI_STOPPED : OCI_CREATING;
		return 0;
	}
	TRY(open_process(&entry->record, &fd, e));
	if (fd < 0)
		*status = OCI_STOPPED;
	else
		*status = faccessat(entry->fd, "start", F_OK, 0) == 0 ? OCI_CREATED : OCI_RUNNING;
	if (pidfd)
		*pidfd = take_fd(&fd);
	return 0;
}
