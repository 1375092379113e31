/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The score, row by row. Each half of each row is made to fail, and the builder is killed at each
 * half of each row. Every time the error must name the row, and nothing may be left: no process, no
 * cgroup, no label, no mount, no loop device, no descriptor, no turn; after a kill, the next start
 * reaps. The semaphores are of an ipc namespace of our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "runtime/score.h"

static char base[64], state_dir[96], run_dir[96], root_dir[96], workspace[96], parent[64];
static struct sandbox_host host;
static struct image image;
static struct err e;

#define OK(expression)                                                                             \
	do {                                                                                       \
		if ((expression) < 0)                                                              \
			fail_msg("%s: %s", #expression, e.text);                                   \
	} while (0)

static void write_text(const char *directory, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A root file system of one static program. */
static void make_root(void)
{
	const char *const copy[] = {"cp", "/bin/busybox", root_dir, NULL};
	char path[256];

	OK(dir_make_all(AT_FDCWD, root_dir, 0755, &e));
	snprintf(path, sizeof path, "%s/bin", root_dir);
	OK(dir_make_all(AT_FDCWD, path, 0755, &e));
	OK(process_run(copy, NULL, -1, -1, &e));
	snprintf(path, sizeof path, "%s/bin/sh", root_dir);
	assert_int_equal(symlink("../busybox", path), 0);
}

/* The static program of build/, also in a sanitized build: it is executed on the sandbox's root. */
static void find_archiver(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);

	assert_true(length > 0);
	path[length] = '\0';
	for (int i = 0; i < 3; i++) /* BUILD/tests/NAME */
		*strrchr(path, '/') = '\0';
	length = (ssize_t)strlen(path);
	snprintf(path + length, size - (size_t)length, "/build/agentdock-archive");
}

static int set_up(void **state)
{
	char archiver[512];
	struct sandbox_host_paths paths = {
		.state = state_dir, .run = run_dir, .cgroup_parent = parent, .archiver = archiver};
	const char *scratch = getenv("TMPDIR"); /* one that can be idmapped */

	(void)state;
	find_archiver(archiver, sizeof archiver);
	assert_int_equal(unshare(CLONE_NEWIPC), 0);
	snprintf(base, sizeof base, "%.20s/agentdock-score-XXXXXX", scratch ? scratch : "/tmp");
	assert_non_null(mkdtemp(base));
	snprintf(state_dir, sizeof state_dir, "%s/state", base);
	snprintf(run_dir, sizeof run_dir, "%s/run", base);
	snprintf(root_dir, sizeof root_dir, "%s/root", base);
	snprintf(workspace, sizeof workspace, "%s/workspace", base);
	snprintf(parent, sizeof parent, "agentdock-score-%d", getpid());
	make_root();
	OK(dir_make_all(AT_FDCWD, workspace, 0755, &e));
	write_text(workspace, "file", "content\n");
	OK(sandbox_host_open(&host, &paths, &e));
	OK(image_import(&host.store, root_dir, "test", NULL, NULL, NULL, &image, &e));
	return 0;
}

static int remove_parent(const char *mount)
{
	char path[256];

	if (!mount[0])
		return 0;
	snprintf(path, sizeof path, "%s/%s", mount, parent);
	return rmdir(path) && errno != ENOENT ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_release(&image);
	assert_int_equal(remove_parent(host.cgroups.v2_mount), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(remove_parent(host.cgroups.v1_mounts[i]), 0);
	sandbox_host_release(&host);
	OK(tree_remove(AT_FDCWD, base, &e));
	return 0;
}

/* ---- a run that uses every row ---- */

/* At once, or prepared and then run; with CANCELFD and START_MS to start in where they matter. */
static int run_within(struct report *report, bool prepared, int cancelfd, uint64_t start_ms)
{
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
	                (char[]){"read line <file && echo \"$line\""}, NULL};
	char *envp[] = {(char[]){"PATH=/bin"}, NULL};
	struct sandbox_watch watch = {.livefds = {-1, -1}, .cancelfd = cancelfd};
	const struct sandbox_command command = {argv, envp, "/workspace"};
	struct sandbox *sandbox;
	struct sandbox_spec spec;

	sandbox_spec_defaults(&spec);
	spec.argv = argv;
	spec.envp = envp;
	spec.image = &image;
	spec.workspace = workspace;
	spec.read_only_root = true;
	spec.disk.bytes = 16 << 20;
	spec.disk.inodes = 1000;
	spec.tmpfs[0] = (struct tmpfs_mount){.path = "/scratch", .size_bytes = 1 << 20};
	spec.tmpfs_count = 1;
	if (start_ms)
		spec.start_timeout_ms = start_ms;
	if (!prepared)
		return sandbox_run(&host, &spec, &watch, report, NULL, &e);
	*report = (struct report){.reason = REPORT_INTERNAL};
	spec.argv = spec.envp = NULL;
	spec.cwd = NULL;
	int r = sandbox_prepare(&host, &spec, &sandbox, &e);
	if (r < 0) {
		report->error = e;
		return r;
	}
	return sandbox_run_prepared(sandbox, &command, &watch, report, NULL, &e);
}

static int run(struct report *report, bool prepared)
{
	return run_within(report, prepared, -1, 0);
}

static void runs_well(bool prepared)
{
	struct report report;

	OK(run(&report, prepared));
	assert_int_equal(report.reason, REPORT_EXITED);
	assert_int_equal(report.exit_code, 0);
	assert_int_equal(report.out.total_bytes, strlen("content\n"));
	assert_memory_equal(report.out.head, "content\n", strlen("content\n"));
	report_release(&report);
}

/* ---- what may be left: nothing ---- */

static int entries_of(const char *path, bool directories_only)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && (!directories_only || entry->d_type == DT_DIR))
			count++;
	}
	closedir(dir);
	return count;
}

static int groups_left(void)
{
	char path[256];
	int count;

	snprintf(path, sizeof path, "%s/%s", host.cgroups.v2_mount, parent);
	count = entries_of(path, true);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", host.cgroups.v1_mounts[i], parent);
		if (host.cgroups.v1_mounts[i][0])
			count += entries_of(path, true);
	}
	return count;
}

static int mounts_here(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "r");
	int lines = 0, c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

/* Loop devices whose backing file was one of ours. */
static int loops_left(void)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		char path[512], text[512] = "";
		FILE *file;

		if (strncmp(entry->d_name, "loop", 4) != 0)
			continue;
		snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(text, sizeof text, file) && strstr(text, base))
			count++;
		fclose(file);
	}
	closedir(dir);
	return count;
}

static int turns_to_have(void)
{
	return 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Which others would have to wait for. */
static int turns_taken(void)
{
	int id = semget(TURNS_KEY, 1, 0600);

	return id < 0 ? 0 : turns_to_have() - semctl(id, 0, GETVAL);
}

struct left {
	int descriptors, mounts, groups, labels, loops, turns;
};

static struct left look(void)
{
	return (struct left){
		.descriptors = entries_of("/proc/self/fd", false),
		.mounts = mounts_here(),
		.groups = groups_left(),
		.labels = entries_of(run_dir, false),
		.loops = loops_left(),
		.turns = turns_taken(),
	};
}

/* The kernel frees a loop device and a dead namespace's mounts a moment after their last user. */
static void assert_nothing_left(const struct left *before, const char *when)
{
	struct left now = {0};

	for (int tries = 0; tries < 200; tries++) {
		now = look();
		if (memcmp(&now, before, sizeof now) == 0)
			break;
		poll(NULL, 0, 10);
	}
	if (memcmp(&now, before, sizeof now) != 0)
		fail_msg(
			"%s left: %+d descriptors, %+d mounts, %+d cgroups, %+d labels, %+d loops, "
			"%+d turns",
			when, now.descriptors - before->descriptors, now.mounts - before->mounts,
			now.groups - before->groups, now.labels - before->labels,
			now.loops - before->loops, now.turns - before->turns);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static int row_called(const char *name)
{
	for (int row = 0; row < score_rows(); row++) {
		if (strcmp(score[row].name, name) == 0)
			return row;
	}
	fail_msg("the score has no row '%s'", name);
	return -1;
}

static bool has_half(int row, bool inside)
{
	return inside ? score[row].inside != NULL : score[row].outside != NULL;
}

/* ---- tests ---- */

static void a_whole_run_leaves_nothing(void **state)
{
	struct left before;

	(void)state;
	runs_well(false); /* makes what is made once: the disk's template, the cgroup parent */
	before = look();
	runs_well(false);
	assert_nothing_left(&before, "a good run");
	runs_well(true);
	assert_nothing_left(&before, "a good run of a prepared sandbox");
}

static void each_half_that_fails_is_named_and_leaves_nothing(void **state)
{
	struct left before = look();
	int gate = row_called("gate");

	(void)state;
	for (int row = 0; row < score_rows(); row++) {
		for (int inside = 0; inside < 2; inside++) {
			struct report report;
			char when[96];

			if (!has_half(row, inside))
				continue;
			snprintf(when, sizeof when, "row '%s' failing %s", score[row].name,
			         inside ? "inside" : "outside");
			score_fault = (struct score_fault){
				inside ? SCORE_FAIL_INSIDE : SCORE_FAIL_OUTSIDE, row};
			int r = run(&report, row == gate);
			score_fault = (struct score_fault){0};
			if (r >= 0 || report.reason != REPORT_INTERNAL)
				fail_msg("%s: reason %s", when, report_reason_name(report.reason));
			assert_int_equal(report_exit_status(&report), 125);
			if (!strstr(report.error.text, score[row].name) ||
			    !strstr(report.error.text, "injected"))
				fail_msg("%s: the error is '%s'", when, report.error.text);
			report_release(&report);
			assert_nothing_left(&before, when);
		}
	}
}

static void kill_the_builder_at(enum score_fault_kind kind, int row, const char *when)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct report report;

		score_fault = (struct score_fault){kind, row};
		run(&report, row == row_called("gate"));
		_exit(3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("%s: the builder ended with 0x%x instead", when, (unsigned)status);
}

/* Until the processes inside have died of their builder's death, their label is locked. */
static void reap_until_nothing_is_left(const struct left *before, const char *when)
{
	for (int tries = 0; tries < 200; tries++) {
		int reaped;

		OK(sandbox_reap(&host, &reaped, &e));
		if (entries_of(run_dir, false) == before->labels)
			break;
		poll(NULL, 0, 10);
	}
	assert_nothing_left(before, when);
}

static void a_killed_builder_leaves_nothing_that_is_not_reaped(void **state)
{
	struct left before = look();

	(void)state;
	for (int row = 0; row < score_rows(); row++) {
		for (int inside = 0; inside < 2; inside++) {
			char when[96];

			if (!has_half(row, inside))
				continue;
			snprintf(when, sizeof when, "a kill at row '%s' %s", score[row].name,
			         inside ? "inside" : "outside");
			kill_the_builder_at(inside ? SCORE_KILL_INSIDE : SCORE_KILL_OUTSIDE, row,
			                    when);
			reap_until_nothing_is_left(&before, when);
		}
	}
}

/* Waiting, it has made and given up all; what it is told to run may be wrong still. */
static void a_prepared_one_may_be_torn_down_or_told_what_is_not_there(void **state)
{
	const struct sandbox_watch watch = {.livefds = {-1, -1}, .cancelfd = -1};
	char *argv[] = {(char[]){"/bin/none"}, NULL}, *nothing[] = {NULL};
	const struct sandbox_command commands[] = {
		{nothing, nothing, "/"}, {argv, nothing, "/none"}, {argv, nothing, "/"}};
	const int statuses[] = {125, 125, 127};
	struct left before = look();
	struct sandbox_spec spec;
	struct sandbox *sandbox;

	(void)state;
	sandbox_spec_defaults(&spec);
	spec.image = &image;
	OK(sandbox_prepare(&host, &spec, &sandbox, &e));
	OK(sandbox_tear_down(sandbox, &e));
	assert_nothing_left(&before, "a prepared sandbox that was not run");
	for (int i = 0; i < 3; i++) {
		struct report report;

		OK(sandbox_prepare(&host, &spec, &sandbox, &e));
		assert_true(sandbox_run_prepared(sandbox, &commands[i], &watch, &report, NULL, &e) <
		            0);
		assert_int_equal(report.reason, REPORT_START_FAILED);
		assert_int_equal(report_exit_status(&report), statuses[i]);
		report_release(&report);
		assert_nothing_left(&before, "a prepared sandbox with a bad command");
	}
}

/* ---- the last row: the command runs before pid 1 is init ---- */

static int run_script(struct report *report, enum score_fault_kind fault, uint32_t uid,
                      char *script)
{
	const struct sandbox_watch watch = {.livefds = {-1, -1}, .cancelfd = -1};
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, script,
	                (char[]){"ze ro"},   (char[]){""},   NULL};
	char *envp[] = {(char[]){"ONE=1"}, NULL};
	struct sandbox_spec spec;

	sandbox_spec_defaults(&spec);
	spec.argv = argv;
	spec.envp = envp;
	spec.image = &image;
	spec.identity.uid = spec.identity.gid = uid;
	score_fault = (struct score_fault){.kind = fault};
	int r = sandbox_run(&host, &spec, &watch, report, NULL, &e);
	score_fault = (struct score_fault){0};
	return r;
}

static void expect_said(struct report *report, int exit_code, const char *text)
{
	char said[1024];

	snprintf(said, sizeof said, "%.*s%.*s", (int)report->out.head_bytes, report->out.head,
	         (int)report->err.head_bytes, report->err.head);
	assert_string_equal(said, text);
	assert_int_equal(report->reason, REPORT_EXITED);
	assert_int_equal(report->exit_code, exit_code);
	report_release(report);
}

/* Whatever the caller ignores and blocks. */
static void the_command_gets_what_is_its_own(void **state)
{
	static const int ignored[] = {SIGCHLD, SIGPIPE, SIGINT, SIGTERM};
	struct report report;
	sigset_t all, before;

	(void)state;
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	OK(run_script(&report, SCORE_NO_FAULT, 10001,
	              (char[]){"echo \"$0|$#|$ONE\"; set -- $(/busybox cat /proc/$$/stat)\n"
	                       "test $5 = $$ && test $6 = $$ && echo leads; cd /proc/$$/fd\n"
	                       "for fd in 0 1 2 3 4 5 6 7 8 9; do test -e $fd && echo $fd; done\n"
	                       "exec /busybox grep -E '^Sig(Blk|Ign):' /proc/self/status"}));
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_DFL);
	expect_said(&report, 0,
	            "ze ro|1|1\nleads\n0\n1\n2\nSigBlk:\t0000000000000000\n"
	            "SigIgn:\t0000000000000000\n");
}

/* Its command line is as long as the launcher's, of which nothing else is left. */
static void nothing_of_the_launcher_shows_before_pid_1_is_init(void **state)
{
	static const uint32_t users[] = {10001, 0};
	struct left before = look();

	(void)state;
	for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
		struct report report;

		OK(run_script(
			&report, SCORE_LATE_INIT, users[i],
			(char[]){
				"cd /proc/1; /busybox cat comm; /busybox tr -d '\\0' <cmdline; "
				"echo\n"
				"for name in environ mem maps auxv; do\n"
				"read -r -n 1 x <$name && echo $name; done 2>/dev/null\n"
				"for name in exe cwd root; do /busybox readlink $name; done\n"
				"for name in fd map_files; do /busybox ls $name; done 2>/dev/null\n"
				"exit 9"}));
		expect_said(&report, 9, "agentdock-init\nagentdock-init\n");
		assert_nothing_left(&before, "a pid 1 that was init late");
	}
}

static void a_pid_1_that_cannot_become_init_is_our_failure(void **state)
{
	struct left before = look();
	struct report report;

	(void)state;
	assert_true(run_script(&report, SCORE_NO_INIT, 10001, (char[]){"while :; do :; done"}) < 0);
	assert_int_equal(report.reason, REPORT_INTERNAL);
	assert_int_equal(report_exit_status(&report), 125);
	if (!strstr(report.error.text, "pid 1 ended (wait status 0x7d00)"))
		fail_msg("the error is '%s'", report.error.text);
	report_release(&report);
	assert_nothing_left(&before, "a pid 1 that could not become init");
}

/* Each holds its own alone: an end of file comes when its input ends, a disk goes with its sandbox. */
static void prepared_ones_share_nothing(void **state)
{
	const struct sandbox_watch watch = {.livefds = {-1, -1}, .cancelfd = -1};
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
	                (char[]){"while read line; do :; done; echo end"}, NULL};
	char *envp[] = {NULL};
	const struct sandbox_command command = {argv, envp, "/"};
	struct left before = look();
	struct sandbox *first, *second;
	struct sandbox_spec spec;
	struct report report;
	char input[512];
	int tries = 0;

	(void)state;
	snprintf(input, sizeof input, "%s/file", workspace);
	sandbox_spec_defaults(&spec);
	spec.image = &image;
	spec.stdin_path = input;
	spec.timeout_ms = 60000;
	OK(sandbox_prepare(&host, &spec, &first, &e));
	OK(sandbox_prepare(&host, &spec, &second, &e));
	assert_int_equal(loops_left(), before.loops + 2);
	OK(sandbox_run_prepared(first, &command, &watch, &report, NULL, &e));
	assert_int_equal(report.reason, REPORT_EXITED);
	assert_int_equal(report.exit_code, 0);
	report_release(&report);
	while (loops_left() != before.loops + 1 && tries++ < 500)
		poll(NULL, 0, 10);
	assert_int_equal(loops_left(), before.loops + 1);
	OK(sandbox_tear_down(second, &e));
	assert_nothing_left(&before, "two prepared sandboxes");
}

/* Killed while it had no process yet, which would hold the label a moment longer than its builder. */
static void the_next_start_reaps(void **state)
{
	struct left before = look();

	(void)state;
	for (int i = 0; i < 3; i++)
		kill_the_builder_at(SCORE_KILL_OUTSIDE, row_called("init program"),
		                    "a kill before the first process");
	assert_true(entries_of(run_dir, false) > before.labels);
	runs_well(false);
	assert_nothing_left(&before, "the next start");
}

/* ---- turns ---- */

static void take_turns(int by)
{
	struct sembuf operation = {.sem_op = (short)by};

	assert_int_equal(semop(semget(TURNS_KEY, 1, 0600), &operation, 1), 0);
}

static void who_waits_for_a_turn_can_be_canceled_or_too_late(void **state)
{
	struct left before;
	struct report report;
	sigset_t signals;
	int cancelfd;

	(void)state;
	runs_well(false); /* there are turns from now on */
	before = look();
	take_turns(-turns_to_have());

	assert_int_equal(run_within(&report, false, -1, 50), -ETIME);
	assert_int_equal(report.reason, REPORT_INTERNAL);
	assert_non_null(strstr(report.error.text, "turn: not started within 50 ms"));
	report_release(&report);

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	cancelfd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	kill(getpid(), SIGUSR1);
	assert_int_equal(run_within(&report, false, cancelfd, 0), -ECANCELED);
	assert_int_equal(report.reason, REPORT_CANCELED);
	assert_int_equal(report.cancel_signo, SIGUSR1);
	report_release(&report);
	close(cancelfd);

	take_turns(turns_to_have());
	assert_nothing_left(&before, "waiting for a turn");
}

/* Of one who died before it had turns to give, or all of whose holders are stopped. */
static void turns_that_nobody_gives_back_are_made_anew(void **state)
{
	int id = semget(TURNS_KEY, 1, 0600), anew;

	(void)state;
	assert_int_equal(semctl(id, 0, IPC_RMID), 0);
	assert_int_equal(turns_taken(), 0);
	id = semget(TURNS_KEY, 1, IPC_CREAT | 0600);
	assert_int_equal(turns_taken(), turns_to_have());
	runs_well(false); /* after it has waited in vain */
	runs_well(false);
	anew = semget(TURNS_KEY, 1, 0600);
	assert_int_not_equal(anew, id);
	assert_int_equal(turns_taken(), 0);
}

/* Any user may make a semaphore under the key, and keep it as if turns came and went. */
static void turns_of_somebody_else_are_none(void **state)
{
	pid_t pid;

	(void)state;
	assert_int_equal(semctl(semget(TURNS_KEY, 1, 0600), 0, IPC_RMID), 0);
	pid = fork();
	if (pid == 0)
		_exit(setresuid(65534, 65534, 65534) || semget(TURNS_KEY, 1, IPC_CREAT | 0666) < 0);
	assert_int_equal(waitpid(pid, &(int){0}, 0), pid);
	assert_int_equal(turns_taken(), turns_to_have());
	runs_well(false);
	runs_well(false);
	assert_int_equal(turns_taken(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_run_leaves_nothing),
		cmocka_unit_test(each_half_that_fails_is_named_and_leaves_nothing),
		cmocka_unit_test(a_killed_builder_leaves_nothing_that_is_not_reaped),
		cmocka_unit_test(a_prepared_one_may_be_torn_down_or_told_what_is_not_there),
		cmocka_unit_test(the_command_gets_what_is_its_own),
		cmocka_unit_test(nothing_of_the_launcher_shows_before_pid_1_is_init),
		cmocka_unit_test(a_pid_1_that_cannot_become_init_is_our_failure),
		cmocka_unit_test(prepared_ones_share_nothing),
		cmocka_unit_test(the_next_start_reaps),
		cmocka_unit_test(who_waits_for_a_turn_can_be_canceled_or_too_late),
		cmocka_unit_test(turns_that_nobody_gives_back_are_made_anew),
		cmocka_unit_test(turns_of_somebody_else_are_none),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
