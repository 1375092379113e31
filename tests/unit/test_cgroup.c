/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups on the hierarchies of the kernel that this runs on: the same program proves hybrid hosts
 * natively and pure v2 in tests/vm/uml-run. All groups are below one of its own, which it removes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "base/scoped.h"
#include "runtime/cgroup/internal.h"

enum { MIB = 1 << 20, WAIT_MS = 30000 };

static struct cgroup_host host;
static char parent[64];
static struct err e;

#define assert_ok(expr)                                                                            \
	do {                                                                                       \
		if ((expr) < 0)                                                                    \
			fail_msg("%s: %s", #expr, e.text);                                         \
	} while (0)

static void assert_text_has(const char *part)
{
	if (!strstr(e.text, part))
		fail_msg("\"%s\" lacks \"%s\"", e.text, part);
}

/* ---- processes in a group ---- */

struct child {
	pid_t pid;
	int outfd; /* what the child writes */
};

typedef int child_main(int outfd, void *data);

/* Starts MAIN in the group; it begins when it is in every hierarchy of it. */
static struct child child_start(const struct cgroup *cgroup, child_main *main, void *data)
{
	int out[2];
	struct clone_args args = {.flags = CLONE_INTO_CGROUP,
	                          .exit_signal = SIGCHLD,
	                          .cgroup = (uint64_t)cgroup->v2fd};
	struct child child;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child.pid = process_clone3(&args);
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		close(out[0]);
		_exit(cgroup_join(cgroup, &e) < 0 ? 99 : main(out[1], data));
	}
	close(out[1]);
	child.outfd = out[0];
	return child;
}

static int child_wait(struct child *child)
{
	int status;

	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	close(child->outfd);
	return status;
}

/* Everything that was reparented to this process (a subreaper). */
static void reap_all(void)
{
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static int touch_memory(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                    0);

	if (memory == MAP_FAILED)
		return 98;
	for (size_t i = 0; i < bytes; i += 4096)
		*(volatile char *)(memory + i) = 1;
	return 0;
}

static int main_hog(int outfd, void *data)
{
	(void)outfd;
	return touch_memory(*(size_t *)data);
}

/* A process whose child is the one that is too large. */
static int main_parent_of_hog(int outfd, void *data)
{
	int status;
	pid_t pid = fork();

	(void)outfd;
	if (pid == 0)
		_exit(touch_memory(*(size_t *)data));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 97;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 96;
}

static int main_fork_until_refused(int outfd, void *data)
{
	int made = 0;

	(void)data;
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		if (pid < 0)
			break;
		made++;
	}
	if (errno != EAGAIN || write(outfd, &made, sizeof made) != sizeof made)
		return 95;
	return 0;
}

static _Noreturn int main_bomb(int outfd, void *data)
{
	(void)data;
	setsid();
	fcntl(outfd, F_SETFL, O_NONBLOCK);
	for (;;) {
		if (fork() >= 0)
			continue;
		(void)!write(outfd, "!", 1);
		/* a moment for the others: one slow CPU is shared with the process that ends us */
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

static int main_burn(int outfd, void *data)
{
	struct timespec used;

	(void)outfd;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec == 0 && used.tv_nsec / 1000 < *(long *)data);
	return 0;
}

static _Noreturn int main_count(int outfd, void *data)
{
	volatile uint64_t *counter = data;

	(void)outfd;
	for (;;)
		++*counter;
}

static _Noreturn int main_pause(int outfd, void *data)
{
	(void)data;
	(void)!write(outfd, "!", 1);
	for (;;)
		pause();
}

/* ---- fixtures ---- */

static int start_all(void **state)
{
	(void)state;
	snprintf(parent, sizeof parent, "agentdock-test-%d", getpid());
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cgroup_host_probe(&host, &e);
}

static void remove_parent(const char *path)
{
	assert_ok(hybrid_remove(path, &host, &e));
	assert_ok(hierarchy_remove(host.v2_mount, path, &e));
}

static int end_all(void **state)
{
	(void)state;
	remove_parent(parent);
	return 0;
}

static struct cgroup make(const char *name)
{
	struct cgroup cgroup;

	assert_ok(cgroup_create(&cgroup, &host, parent, name, &e));
	return cgroup;
}

static void unmake(struct cgroup *cgroup)
{
	assert_ok(cgroup_kill(cgroup, &e));
	assert_ok(cgroup_wait_empty(cgroup, WAIT_MS, &e));
	reap_all();
	assert_ok(cgroup_remove(cgroup, &host, &e));
	assert_int_equal(cgroup->v2fd, -1);
}

static void read_control(const struct cgroup *cgroup, int i, const char *v2, const char *v1,
                         char *text, size_t size)
{
	bool on_v1 = cgroup->v1fds[i] >= 0;
	int length = control_read(on_v1 ? cgroup->v1fds[i] : cgroup->v2fd, on_v1 ? v1 : v2, text,
	                          size);

	assert_true(length > 0);
	text[strcspn(text, "\n")] = '\0';
}

/* ---- the host ---- */

static void test_probe_finds_all(void **state)
{
	(void)state;
	assert_int_not_equal(host.mode, CGROUP_NONE);
	assert_int_equal(host.controllers, CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
	assert_true(host.has_kill);
	assert_true(host.has_freeze);
	for (int i = 0; i < CONTROLLERS; i++)
		assert_int_equal(host.v1_mounts[i][0] != '\0', host.mode == CGROUP_HYBRID);
}

/* In a mount namespace of its own: no hierarchy; then the v2 one alone, at a path with blanks. */
static int probe_elsewhere(void)
{
	char at[128];
	struct cgroup_host found;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    umount2("/sys/fs/cgroup", MNT_DETACH) < 0)
		return 1;
	if (cgroup_host_probe(&found, &e) < 0 || found.mode != CGROUP_NONE ||
	    found.controllers != 0)
		return 2;
	snprintf(at, sizeof at, "/tmp/%s a\\b\tc", parent);
	if (mount("none", "/tmp", "tmpfs", 0, NULL) < 0 || mkdir(at, 0755) < 0 ||
	    mount("none", at, "cgroup2", 0, NULL) < 0)
		return 3;
	if (cgroup_host_probe(&found, &e) < 0 || strcmp(found.v2_mount, at) != 0)
		return 4;
	if (found.mode != CGROUP_V2)
		return 5;
	/* hidden below another mount: not taken for a hierarchy */
	if (mount("none", at, "tmpfs", 0, NULL) < 0 || cgroup_host_probe(&found, &e) < 0)
		return 6;
	return found.mode == CGROUP_NONE ? 0 : 7;
}

static void test_probe_elsewhere(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(probe_elsewhere());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_none_is_an_error(void **state)
{
	struct cgroup_host none = {.mode = CGROUP_NONE};
	struct cgroup cgroup;

	(void)state;
	assert_int_equal(cgroup_create(&cgroup, &none, parent, "x", &e), -ENOTSUP);
	assert_text_has("mount -t cgroup2");
}

/* ---- names, creation ---- */

static void test_names(void **state)
{
	static const char *const bad[] = {"", ".", "..", ".x", "a/b", "/a", "a b", "a\n", "a/"};
	static const char *const bad_parents[] = {"", "/a", "a//b", "../a", "a/../b", "a/", "a/.b"};
	struct cgroup cgroup;
	char name[200];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(cgroup_create(&cgroup, &host, parent, bad[i], &e), -EINVAL);
	for (size_t i = 0; i < sizeof bad_parents / sizeof *bad_parents; i++)
		assert_int_equal(cgroup_create(&cgroup, &host, bad_parents[i], "x", &e), -EINVAL);
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_int_equal(cgroup_create(&cgroup, &host, parent, name, &e), -ENAMETOOLONG);
}

static void test_exists(void **state)
{
	struct cgroup first = make("twice"), second, opened;

	(void)state;
	assert_int_equal(cgroup_create(&second, &host, parent, "twice", &e), -EEXIST);
	assert_text_has("twice");
	assert_ok(cgroup_open(&opened, &host, parent, "twice", &e));
	assert_true(opened.v2fd >= 0);
	for (int i = 0; i < CONTROLLERS; i++)
		assert_int_equal(opened.v1fds[i] >= 0, first.v1fds[i] >= 0);
	cgroup_release(&opened);
	unmake(&first);
}

/* A group that a crash left in one hierarchy only: nothing new is left in the others. */
static void test_half_exists(void **state)
{
	struct cgroup cgroup, opened;
	char path[128];
	int fd;

	(void)state;
	if (host.mode != CGROUP_HYBRID)
		skip();
	snprintf(path, sizeof path, "%s/half", parent);
	fd = hierarchy_make(host.v1_mounts[2], path, &e);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cgroup_create(&cgroup, &host, parent, "half", &e), -EEXIST);
	assert_ok(cgroup_open(&opened, &host, parent, "half", &e));
	assert_int_equal(opened.v2fd, -1);
	assert_int_equal(opened.v1fds[0], -1);
	assert_int_equal(opened.v1fds[1], -1);
	assert_true(opened.v1fds[2] >= 0);
	assert_ok(cgroup_remove(&opened, &host, &e));
	assert_int_equal(hierarchy_open(host.v1_mounts[2], path, &e), -ENOENT);
}

static void rmdir_everywhere(const char *group)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", host.v2_mount, group);
	rmdir(path);
	for (int i = 0; i < CONTROLLERS; i++) {
		snprintf(path, sizeof path, "%s/%s", host.v1_mounts[i], group);
		if (host.v1_mounts[i][0] != '\0')
			rmdir(path);
	}
}

static int create_and_remove(const char *shared, int who)
{
	struct cgroup_limits limits = {.cpu_millis = 1000, .memory_bytes = 64 * MIB, .pids = 9};

	for (int i = 0; i < 40; i++) {
		struct cgroup cgroup;
		char name[32];

		snprintf(name, sizeof name, "c%d-%d", who, i);
		if (cgroup_create(&cgroup, &host, shared, name, &e) < 0)
			return 1;
		if (cgroup_limit(&cgroup, &limits, &e) < 0)
			return 2;
		if (cgroup_remove(&cgroup, &host, &e) < 0)
			return 3;
		/* while the others need it: they make it again, or it is busy */
		rmdir_everywhere(shared);
	}
	return 0;
}

static void test_concurrent_creators(void **state)
{
	enum { CREATORS = 4 };
	char shared[96];

	(void)state;
	snprintf(shared, sizeof shared, "%s/x/shared", parent);
	for (int i = 0; i < CREATORS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			int result = create_and_remove(shared, i);

			if (result)
				fprintf(stderr, "creator %d: %d: %s\n", i, result, e.text);
			_exit(result);
		}
	}
	for (int i = 0; i < CREATORS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
}

/* ---- limits ---- */

static void test_limits_are_set(void **state)
{
	struct cgroup cgroup = make("set");
	struct cgroup_limits limits = {.cpu_millis = 1500, .memory_bytes = 30000001, .pids = 17};
	char text[64];

	(void)state;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	assert_int_equal(cgroup.enforced, CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
	read_control(&cgroup, 0, "cpu.max", "cpu.cfs_quota_us", text, sizeof text);
	assert_string_equal(text, cgroup.v1fds[0] >= 0 ? "150000" : "150000 100000");
	read_control(&cgroup, 1, "memory.max", "memory.limit_in_bytes", text, sizeof text);
	assert_string_equal(text, "29999104");
	read_control(&cgroup, 2, "pids.max", "pids.max", text, sizeof text);
	assert_string_equal(text, "17");
	/* up, down, and away from a limit that is there */
	limits.memory_bytes = 64 * MIB;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	limits.memory_bytes = 16 * MIB;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	read_control(&cgroup, 1, "memory.max", "memory.limit_in_bytes", text, sizeof text);
	assert_string_equal(text, "16777216");
	unmake(&cgroup);
}

static void test_no_limit_wanted(void **state)
{
	struct cgroup cgroup = make("free");
	struct cgroup_limits limits = {0};
	char text[64];

	(void)state;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	assert_int_equal(cgroup.enforced, 0);
	read_control(&cgroup, 2, "pids.max", "pids.max", text, sizeof text);
	assert_string_equal(text, "max");
	unmake(&cgroup);
}

static void test_limits_refused(void **state)
{
	struct cgroup cgroup = make("refused");
	struct cgroup_limits cpu = {.cpu_millis = 5}, pids = {.pids = UINT64_MAX};

	(void)state;
	assert_int_equal(cgroup_limit(&cgroup, &cpu, &e), -EINVAL);
	assert_text_has("no less than 10");
	cpu.cpu_millis = UINT64_MAX / 2;
	assert_int_equal(cgroup_limit(&cgroup, &cpu, &e), -EINVAL);
	assert_true(cgroup_limit(&cgroup, &pids, &e) < 0);
	assert_text_has("pids.max");
	assert_int_equal(cgroup.enforced, 0);
	unmake(&cgroup);
}

static void test_memory_kills(void **state)
{
	struct cgroup cgroup = make("memory");
	struct cgroup_limits limits = {.memory_bytes = 16 * MIB};
	struct cgroup_usage usage;
	size_t bytes = 64 * MIB;
	struct child child;
	int status;

	(void)state;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	child = child_start(&cgroup, main_hog, &bytes);
	status = child_wait(&child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_ok(cgroup_usage(&cgroup, &usage, &e));
	assert_int_equal(usage.oom_kills, 1);
	assert_in_range(usage.memory_peak_bytes, 8 * MIB, 16 * MIB);
	assert_true(usage.cpu_us > 0);
	unmake(&cgroup);
}

static void test_oom_spares_the_others(void **state)
{
	struct cgroup cgroup = make("spared");
	struct cgroup_limits limits = {.memory_bytes = 16 * MIB};
	struct cgroup_usage usage;
	size_t bytes = 64 * MIB;
	struct child child;

	(void)state;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	child = child_start(&cgroup, main_parent_of_hog, &bytes);
	assert_int_equal(child_wait(&child), 0);
	assert_ok(cgroup_usage(&cgroup, &usage, &e));
	assert_int_equal(usage.oom_kills, 1);
	unmake(&cgroup);
}

static void test_oom_group(void **state)
{
	struct cgroup cgroup = make("oomgroup");
	struct cgroup_limits limits = {.memory_bytes = 16 * MIB, .oom_group = true};
	size_t bytes = 64 * MIB;
	struct child child;
	int status;

	(void)state;
	if (cgroup.v1fds[1] >= 0) {
		assert_int_equal(cgroup_limit(&cgroup, &limits, &e), -ENOTSUP);
		assert_text_has("memory.oom.group");
		unmake(&cgroup);
		return;
	}
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	child = child_start(&cgroup, main_parent_of_hog, &bytes);
	status = child_wait(&child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	unmake(&cgroup);
}

static void test_pids_refused(void **state)
{
	struct cgroup cgroup = make("pids");
	struct cgroup_limits limits = {.pids = 5};
	struct cgroup_usage usage;
	struct child child;
	int made = -1;

	(void)state;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	child = child_start(&cgroup, main_fork_until_refused, NULL);
	assert_int_equal(read(child.outfd, &made, sizeof made), sizeof made);
	assert_int_equal(made, 4);
	assert_int_equal(child_wait(&child), 0);
	assert_ok(cgroup_usage(&cgroup, &usage, &e));
	assert_int_equal(usage.pids_refused, 1);
	if (usage.pids_peak != 0) /* v2: from kernel 6.6 on */
		assert_int_equal(usage.pids_peak, 5);
	unmake(&cgroup);
}

static void test_cpu_throttles(void **state)
{
	struct cgroup cgroup = make("cpu");
	struct cgroup_limits limits = {.cpu_millis = 100};
	struct cgroup_usage usage;
	long burn_us = 60000;
	struct child child;

	(void)state;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	child = child_start(&cgroup, main_burn, &burn_us);
	assert_int_equal(child_wait(&child), 0);
	assert_ok(cgroup_usage(&cgroup, &usage, &e));
	assert_true(usage.throttled_us > 0);
	assert_true(usage.cpu_us >= (uint64_t)burn_us / 2);
	assert_true(usage.cpu_user_us + usage.cpu_system_us > 0);
	unmake(&cgroup);
}

/* ---- a controller that is missing ---- */

static void test_missing_controller(void **state)
{
	struct cgroup_host without = host;
	struct cgroup_limits limits = {.memory_bytes = 16 * MIB, .pids = 7};
	struct cgroup cgroup;

	(void)state;
	if (host.mode != CGROUP_HYBRID)
		skip();
	without.v1_mounts[2][0] = '\0';
	assert_ok(cgroup_create(&cgroup, &without, parent, "missing", &e));
	assert_int_equal(cgroup_limit(&cgroup, &limits, &e), -ENOENT);
	assert_text_has("no pids controller");
	assert_text_has(cgroup.path);
	assert_text_has("delegate");
	limits.may_be_missing = CGROUP_CPU;
	assert_int_equal(cgroup_limit(&cgroup, &limits, &e), -ENOENT);
	limits.may_be_missing = CGROUP_PIDS;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	assert_int_equal(cgroup.enforced, CGROUP_MEMORY);
	unmake(&cgroup);
}

/* v2: a parent that has processes of its own delegates nothing. */
static void test_internal_processes(void **state)
{
	struct cgroup busy, cgroup;
	struct cgroup_limits limits = {.memory_bytes = 16 * MIB};
	char path[96];
	struct child child;

	(void)state;
	if (host.mode != CGROUP_V2)
		skip();
	busy = make("busy");
	child = child_start(&busy, main_pause, NULL);
	snprintf(path, sizeof path, "%s/busy", parent);
	assert_ok(cgroup_create(&cgroup, &host, path, "below", &e));
	assert_int_equal(cgroup_limit(&cgroup, &limits, &e), -EBUSY);
	assert_text_has("memory");
	assert_text_has(path);
	assert_text_has("move them into a group below it");
	limits.may_be_missing = CGROUP_MEMORY;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	assert_int_equal(cgroup.enforced, 0);
	assert_ok(cgroup_kill(&busy, &e));
	child_wait(&child);
	/* the parent is free now: the limit is had without more ado */
	limits.may_be_missing = 0;
	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	assert_int_equal(cgroup.enforced, CGROUP_MEMORY);
	unmake(&cgroup);
	unmake(&busy);
}

/* ---- kill, freeze, wait, remove ---- */

static void bomb_and(int (*kill_all)(const struct cgroup *, struct err *))
{
	struct cgroup cgroup = make("bomb");
	struct cgroup_limits limits = {.pids = 32};
	struct cgroup_usage usage;
	struct child child;
	char byte;

	assert_ok(cgroup_limit(&cgroup, &limits, &e));
	child = child_start(&cgroup, main_bomb, NULL);
	assert_int_equal(read(child.outfd, &byte, 1), 1); /* the first refusal */
	assert_ok(kill_all(&cgroup, &e));
	assert_ok(cgroup_wait_empty(&cgroup, WAIT_MS, &e));
	assert_ok(cgroup_usage(&cgroup, &usage, &e));
	assert_true(usage.pids_refused > 0);
	close(child.outfd);
	unmake(&cgroup);
}

static void test_kill_bomb(void **state)
{
	(void)state;
	bomb_and(cgroup_kill);
}

static void test_kill_bomb_each(void **state)
{
	(void)state;
	bomb_and(cgroup_kill_each);
}

static void test_kill_each_below(void **state)
{
	struct cgroup cgroup = make("below"), below;
	char path[128], byte;
	struct child child;

	(void)state;
	snprintf(path, sizeof path, "%s/below", parent);
	assert_ok(cgroup_create(&below, &host, path, "one", &e));
	child = child_start(&below, main_pause, NULL);
	assert_int_equal(read(child.outfd, &byte, 1), 1);
	assert_ok(cgroup_kill_each(&cgroup, &e));
	assert_true(WIFSIGNALED(child_wait(&child)));
	cgroup_release(&below);
	unmake(&cgroup);
}

static void test_freeze(void **state)
{
	struct cgroup cgroup = make("freeze");
	volatile uint64_t *counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct child child;
	uint64_t seen;

	(void)state;
	assert_true((void *)(uintptr_t)counter != MAP_FAILED);
	child = child_start(&cgroup, main_count, (void *)(uintptr_t)counter);
	while (*counter == 0)
		sched_yield();
	assert_ok(cgroup_freeze(&cgroup, true, &e));
	seen = *counter;
	poll(NULL, 0, 50);
	assert_int_equal(*counter, seen);
	assert_ok(cgroup_freeze(&cgroup, false, &e));
	while (*counter == seen)
		sched_yield();
	/* R4: what is frozen can be killed */
	assert_ok(cgroup_freeze(&cgroup, true, &e));
	assert_ok(cgroup_kill(&cgroup, &e));
	assert_ok(cgroup_wait_empty(&cgroup, WAIT_MS, &e));
	assert_true(WIFSIGNALED(child_wait(&child)));
	unmake(&cgroup);
	munmap((void *)(uintptr_t)counter, 4096);
}

static void test_wait_and_busy(void **state)
{
	struct cgroup cgroup = make("wait");
	struct child child = child_start(&cgroup, main_pause, NULL);

	(void)state;
	assert_int_equal(cgroup_wait_empty(&cgroup, 0, &e), -ETIMEDOUT);
	assert_int_equal(cgroup_wait_empty(&cgroup, 30, &e), -ETIMEDOUT);
	assert_text_has(cgroup.path);
	assert_int_equal(cgroup_remove(&cgroup, &host, &e), -EBUSY);
	assert_text_has("processes are still in it");
	assert_true(cgroup.v2fd >= 0);
	assert_ok(cgroup_kill(&cgroup, &e));
	child_wait(&child);
	unmake(&cgroup);
}

/* R3 */
static void test_remove_with_groups_below(void **state)
{
	struct cgroup cgroup = make("deep"), gone;

	(void)state;
	assert_int_equal(mkdirat(cgroup.v2fd, "a", 0755), 0);
	assert_int_equal(mkdirat(cgroup.v2fd, "a/b", 0755), 0);
	assert_int_equal(mkdirat(cgroup.v2fd, "c", 0755), 0);
	for (int i = 0; i < CONTROLLERS; i++)
		if (cgroup.v1fds[i] >= 0) {
			assert_int_equal(mkdirat(cgroup.v1fds[i], "a", 0755), 0);
			assert_int_equal(mkdirat(cgroup.v1fds[i], "a/b", 0755), 0);
		}
	assert_ok(cgroup_remove(&cgroup, &host, &e));
	assert_ok(cgroup_open(&gone, &host, parent, "deep", &e));
	assert_int_equal(gone.v2fd, -1);
	for (int i = 0; i < CONTROLLERS; i++)
		assert_int_equal(gone.v1fds[i], -1);
	/* what is gone is no error for the reaper */
	assert_ok(cgroup_kill(&gone, &e));
	assert_ok(cgroup_wait_empty(&gone, 0, &e));
	assert_ok(cgroup_remove(&gone, &host, &e));
}

/* Removed behind our back, with the descriptors still open. */
static void test_gone(void **state)
{
	struct cgroup cgroup = make("gone");
	struct cgroup_usage usage;

	(void)state;
	remove_parent(cgroup.path);
	assert_ok(cgroup_kill(&cgroup, &e));
	assert_ok(cgroup_kill_each(&cgroup, &e));
	assert_ok(cgroup_wait_empty(&cgroup, 0, &e));
	assert_true(cgroup_usage(&cgroup, &usage, &e) < 0);
	assert_ok(cgroup_remove(&cgroup, &host, &e));
}

static void test_not_open(void **state)
{
	struct cgroup cgroup;

	(void)state;
	cgroup_init(&cgroup);
	assert_int_equal(cgroup_kill(&cgroup, &e), -EBADF);
	assert_int_equal(cgroup_wait_empty(&cgroup, 0, &e), -EBADF);
	assert_ok(cgroup_remove(&cgroup, &host, &e));
	cgroup_release(&cgroup);
}

static void test_control_text(void **state)
{
	uint64_t value = 1;

	(void)state;
	assert_true(control_number("oom 3\noom_kill 4\n", "oom_kill", &value));
	assert_int_equal(value, 4);
	assert_true(control_number("18446744073709551615\n", NULL, &value));
	assert_true(value == UINT64_MAX);
	assert_false(control_number("18446744073709551616\n", NULL, &value));
	assert_false(control_number("max\n", NULL, &value));
	assert_false(control_number("-1\n", NULL, &value));
	assert_false(control_number("oom_kill_disable 0\n", "oom_kill", &value));
	assert_true(control_has_word("cpuset cpu io\n", "cpu"));
	assert_true(control_has_word("pids", "pids"));
	assert_false(control_has_word("cpuset io\n", "cpu"));
	assert_false(control_has_word("", "cpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control_text),
		cmocka_unit_test(test_probe_finds_all),
		cmocka_unit_test(test_probe_elsewhere),
		cmocka_unit_test(test_none_is_an_error),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_exists),
		cmocka_unit_test(test_half_exists),
		cmocka_unit_test(test_concurrent_creators),
		cmocka_unit_test(test_limits_are_set),
		cmocka_unit_test(test_no_limit_wanted),
		cmocka_unit_test(test_limits_refused),
		cmocka_unit_test(test_memory_kills),
		cmocka_unit_test(test_oom_spares_the_others),
		cmocka_unit_test(test_oom_group),
		cmocka_unit_test(test_pids_refused),
		cmocka_unit_test(test_cpu_throttles),
		cmocka_unit_test(test_missing_controller),
		cmocka_unit_test(test_internal_processes),
		cmocka_unit_test(test_kill_bomb),
		cmocka_unit_test(test_kill_bomb_each),
		cmocka_unit_test(test_kill_each_below),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_wait_and_busy),
		cmocka_unit_test(test_remove_with_groups_below),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_not_open),
	};

	return cmocka_run_group_tests_name("cgroup", tests, start_all, end_all);
}
