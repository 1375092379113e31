/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime/identity: each change is made in a child of its own and then looked at from where it
 * counts: what the kernel says in /proc, and what a process can no longer do. Root only.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/process.h"
#include "base/scoped.h"
#include "runtime/identity/identity.h"

enum { TEST_UID = 10001, TEST_GID = 10002, TEST_BASE = 1000000000, SECUREBITS = 0xef };

/* For children, where cmocka's assertions would run the rest of the suite twice. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,  \
			        errno);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The rest of the line "KEY:" of a status file, without the white space around it. */
static const char *status_line(int dirfd, const char *key, char *line, size_t size)
{
	char text[8192], *at, *end;
	struct err e;

	if (file_read(dirfd, "status", text, sizeof text, &e) < 0)
		return "unreadable";
	at = strstr(text, key);
	if (!at)
		return "missing";
	at += strlen(key) + 1;
	at += strspn(at, " \t");
	end = strchr(at, '\n');
	*end = '\0';
	snprintf(line, size, "%s", at);
	return line;
}

static int open_self(void)
{
	return open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int status_is(const char *key, const char *value)
{
	char line[256];
	scoped_fd self = open_self();

	return strcmp(status_line(self, key, line, sizeof line), value) == 0;
}

static void clear_own_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	CHECK(syscall(SYS_capset, &header, none) == 0);
}

/* ---- ids ---- */

static void all_ids_change(void)
{
	struct err e;
	const gid_t groups[] = {4, 5};

	CHECK(setgroups(2, groups) == 0);
	CHECK(identity_become_user(TEST_UID, TEST_GID, &e) == 0);
	CHECK(status_is("Uid", "10001\t10001\t10001\t10001"));
	CHECK(status_is("Gid", "10002\t10002\t10002\t10002"));
	CHECK(status_is("Groups", ""));
	CHECK(setresuid(0, 0, 0) < 0 && errno == EPERM);
	CHECK(setresgid(0, 0, 0) < 0 && errno == EPERM);
}

static void minus_one_is_no_id(void)
{
	struct err e;

	CHECK(identity_become_user((uint32_t)-1, TEST_GID, &e) == -EINVAL);
	CHECK(identity_become_user(TEST_UID, (uint32_t)-1, &e) == -EINVAL);
	CHECK(getuid() == 0 && getgid() == 0);
}

static void users_cannot_become_others(void)
{
	struct err e;

	CHECK(identity_become_user(TEST_UID, TEST_GID, &e) == 0);
	CHECK(identity_become_user(TEST_UID + 1, TEST_GID, &e) == -EPERM);
	CHECK(strstr(e.text, "CAP_SETGID"));
	CHECK(identity_become_root(&e) == -EPERM);
}

static void test_become_user(void **state)
{
	(void)state;
	in_child(all_ids_change);
	in_child(minus_one_is_no_id);
	in_child(users_cannot_become_others);
}

/* A child in a user namespace of its own, which goes on when GO is closed. */
struct guest {
	pid_t pid;
	int go, said;
	int procfd;
};

static void wait_for_go(int fd)
{
	char byte;

	CHECK(read(fd, &byte, 1) == 1);
}

static void say(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
}

static void be_guest(int go, int said)
{
	struct err e;
	char map[128];
	scoped_fd self = -1;

	wait_for_go(go);
	CHECK(identity_become_root(&e) == 0);
	CHECK(getuid() == 0 && getgid() == 0);
	self = open_self();
	CHECK(file_read(self, "uid_map", map, sizeof map, &e) > 0);
	CHECK(strcmp(map, "         0 1000000000      65536\n") == 0);
	CHECK(file_read(self, "gid_map", map, sizeof map, &e) > 0);
	CHECK(strcmp(map, "         0 1000000000      65536\n") == 0);
	CHECK(identity_become_user(IDENTITY_RANGE, 1, &e) == -EINVAL);
	CHECK(strstr(e.text, "65536"));
	say(said);
	wait_for_go(go);
	CHECK(identity_become_user(TEST_UID, TEST_GID, &e) == 0);
	say(said);
	wait_for_go(go);
	_exit(0);
}

static void guest_start(struct guest *guest)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	int go[2], said[2];
	char path[32];

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	guest->pid = process_clone3(&args);
	assert_true(guest->pid >= 0);
	if (guest->pid == 0) {
		close(go[1]);
		close(said[0]);
		be_guest(go[0], said[1]);
	}
	close(go[0]);
	close(said[1]);
	guest->go = go[1];
	guest->said = said[0];
	snprintf(path, sizeof path, "/proc/%d", guest->pid);
	guest->procfd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(guest->procfd >= 0);
}

static void guest_continue(const struct guest *guest)
{
	char byte;

	assert_int_equal(write(guest->go, "x", 1), 1);
	assert_int_equal(read(guest->said, &byte, 1), 1);
}

static void guest_end(struct guest *guest, int expected_status)
{
	int status;

	close(guest->go);
	close(guest->said);
	close(guest->procfd);
	assert_int_equal(waitpid(guest->pid, &status, 0), guest->pid);
	assert_int_equal(status, expected_status);
}

static void test_map_ids(void **state)
{
	struct guest guest;
	struct err e;
	char line[128];

	(void)state;
	guest_start(&guest);
	assert_int_equal(identity_map_ids(guest.procfd, TEST_BASE, &e), 0);
	/* a namespace's maps are written once */
	assert_int_equal(identity_map_ids(guest.procfd, TEST_BASE, &e), -EPERM);
	guest_continue(&guest);
	assert_string_equal(status_line(guest.procfd, "Uid", line, sizeof line),
	                    "1000000000\t1000000000\t1000000000\t1000000000");
	guest_continue(&guest);
	assert_string_equal(status_line(guest.procfd, "Uid", line, sizeof line),
	                    "1000010001\t1000010001\t1000010001\t1000010001");
	assert_string_equal(status_line(guest.procfd, "Gid", line, sizeof line),
	                    "1000010002\t1000010002\t1000010002\t1000010002");
	assert_int_equal(write(guest.go, "x", 1), 1);
	guest_end(&guest, 0);
}

static void test_map_ids_refuses_host_ids(void **state)
{
	static const uint32_t bad[] = {0, 1, IDENTITY_RANGE - 1, UINT32_MAX - IDENTITY_RANGE + 1,
	                               UINT32_MAX};
	struct guest guest;
	struct err e;
	char map[64];

	(void)state;
	guest_start(&guest);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(identity_map_ids(guest.procfd, bad[i], &e), -EINVAL);
	assert_int_equal(file_read(guest.procfd, "uid_map", map, sizeof map, &e), 0);
	assert_int_equal(kill(guest.pid, SIGKILL), 0);
	guest_end(&guest, SIGKILL);
}

/* ---- capabilities ---- */

static const char *const cap_lines[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};

static void nothing_is_left(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct chown_only[2] = {{.effective = 1, .permitted = 1}};
	struct err e;

	CHECK(identity_drop_bounding(&e) == 0);
	CHECK(identity_lock_securebits(&e) == 0);
	CHECK(identity_become_user(TEST_UID, TEST_GID, &e) == 0);
	/* NO_SETUID_FIXUP keeps them across the change of user: dropping is what removes them */
	CHECK(!status_is("CapPrm", "0000000000000000"));
	CHECK(identity_drop_capabilities(&e) == 0);
	for (size_t i = 0; i < sizeof cap_lines / sizeof *cap_lines; i++)
		CHECK(status_is(cap_lines[i], "0000000000000000"));
	CHECK((prctl(PR_GET_SECUREBITS) & 0xff) == SECUREBITS);
	CHECK(syscall(SYS_capset, &header, chown_only) < 0 && errno == EPERM);
	CHECK(prctl(PR_SET_SECUREBITS, 0) < 0 && errno == EPERM);
	CHECK(prctl(PR_SET_KEEPCAPS, 1) < 0 && errno == EPERM);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) < 0 && errno == EPERM);
}

static void root_gets_nothing_by_exec(void)
{
	struct err e;

	CHECK(identity_drop_bounding(&e) == 0);
	CHECK(identity_lock_securebits(&e) == 0);
	CHECK(identity_drop_capabilities(&e) == 0);
	CHECK(getuid() == 0);
	execl("/bin/grep", "grep", "-q", "^CapEff:.0000000000000000$", "/proc/self/status", NULL);
	CHECK(!"exec of grep");
}

static void ambient_is_cleared(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[2];
	struct err e;

	CHECK(syscall(SYS_capget, &header, words) == 0);
	words[0].inheritable |= 1u << CAP_CHOWN;
	CHECK(syscall(SYS_capset, &header, words) == 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
	CHECK(identity_drop_bounding(&e) == 0);
	CHECK(status_is("CapAmb", "0000000000000000"));
	CHECK(status_is("CapBnd", "0000000000000000"));
	/* a second time there is nothing left to drop, which is no error */
	CHECK(identity_drop_bounding(&e) == 0);
}

static void what_is_left_is_an_error(void)
{
	struct err e;

	CHECK(identity_drop_capabilities(&e) == -EPERM);
	CHECK(strstr(e.text, "bounding"));
}

static void loose_securebits_are_an_error(void)
{
	struct err e;

	CHECK(identity_drop_bounding(&e) == 0);
	CHECK(identity_drop_capabilities(&e) == -EPERM);
	CHECK(strstr(e.text, "securebits"));
}

static void too_late_is_an_error(void)
{
	struct err e;

	clear_own_capabilities();
	CHECK(identity_drop_bounding(&e) == -EPERM);
	CHECK(strstr(e.text, "CAP_SETPCAP"));
	CHECK(identity_lock_securebits(&e) == -EPERM);
	CHECK(strstr(e.text, "CAP_SETPCAP"));
}

static void test_capabilities(void **state)
{
	(void)state;
	in_child(nothing_is_left);
	in_child(root_gets_nothing_by_exec);
	in_child(ambient_is_cleared);
}

static void test_capabilities_fail_closed(void **state)
{
	(void)state;
	in_child(what_is_left_is_an_error);
	in_child(loose_securebits_are_an_error);
	in_child(too_late_is_an_error);
}

static void no_new_privs(void)
{
	struct err e;

	CHECK(status_is("NoNewPrivs", "0"));
	CHECK(identity_no_new_privs(&e) == 0);
	CHECK(status_is("NoNewPrivs", "1"));
}

static void test_no_new_privs(void **state)
{
	(void)state;
	in_child(no_new_privs);
}

/* ---- rlimits ---- */

static void rlimits_are_set(void)
{
	const struct identity identity = {
		.rlimits = {{RLIMIT_CORE, 0, 0}, {RLIMIT_NOFILE, 100, 200}},
		.rlimits_count = 2,
	};
	struct rlimit limit;
	struct err e;

	CHECK(identity_set_rlimits(&identity, &e) == 0);
	CHECK(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(limit.rlim_cur == 100 && limit.rlim_max == 200);
}

static void raising_names_the_limit(void)
{
	const struct rlimit low = {64, 128};
	const struct identity identity = {.rlimits = {{RLIMIT_NOFILE, 100, RLIM_INFINITY}},
	                                  .rlimits_count = 1};
	struct rlimit limit;
	struct err e;

	CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
	clear_own_capabilities();
	CHECK(identity_set_rlimits(&identity, &e) == -EPERM);
	CHECK(strstr(e.text, "RLIMIT_NOFILE") && strstr(e.text, "128"));
	CHECK(strstr(e.text, "unlimited") && strstr(e.text, "CAP_SYS_RESOURCE"));
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 64);
}

static void nonsense_is_refused(void)
{
	struct identity identity = {.rlimits = {{RLIMIT_NOFILE, 3, 2}}, .rlimits_count = 1};
	struct err e;

	CHECK(identity_set_rlimits(&identity, &e) == -EINVAL);
	CHECK(strstr(e.text, "RLIMIT_NOFILE"));
	identity.rlimits[0] = (struct rlimit_spec){RLIM_NLIMITS, 1, 1};
	CHECK(identity_set_rlimits(&identity, &e) == -EINVAL);
	identity.rlimits[0].resource = -1;
	CHECK(identity_set_rlimits(&identity, &e) == -EINVAL);
	identity.rlimits_count = RLIMITS_MAX + 1;
	CHECK(identity_set_rlimits(&identity, &e) == -EINVAL);
}

static void test_rlimits(void **state)
{
	(void)state;
	in_child(rlimits_are_set);
	in_child(raising_names_the_limit);
	in_child(nonsense_is_refused);
}

/* ---- keyring ---- */

static long keyctl(int operation, long argument, void *buffer, size_t size)
{
	return syscall(SYS_keyctl, operation, argument, buffer, size, 0);
}

static long session_keyring(void)
{
	return keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, NULL, 0);
}

static long add_key(int number)
{
	char name[32];

	snprintf(name, sizeof name, "agentdock-test-%d", number);
	return syscall(SYS_add_key, "user", name, "x", 1, KEY_SPEC_SESSION_KEYRING);
}

static void keyring_is_new_and_empty(void)
{
	int32_t keys[4];
	long before, first;
	struct err e;

	CHECK(identity_session_keyring(&e) == 0);
	before = session_keyring();
	CHECK(before > 0 && add_key(0) > 0);
	CHECK(keyctl(KEYCTL_READ, before, keys, sizeof keys) == sizeof keys[0]);
	CHECK(identity_session_keyring(&e) == 0);
	first = session_keyring();
	CHECK(first > 0 && first != before);
	CHECK(keyctl(KEYCTL_READ, first, keys, sizeof keys) == 0);
}

static void quota_has_a_way_out(void)
{
	/* a user of this run's own: the kernel gives back the quota of dead keys some time later */
	uint32_t user = TEST_BASE + (uint32_t)getpid();
	struct err e;

	CHECK(identity_become_user(user, user, &e) == 0);
	CHECK(identity_session_keyring(&e) == 0);
	for (int i = 0; add_key(i) > 0; i++)
		;
	CHECK(errno == EDQUOT);
	CHECK(identity_session_keyring(&e) == -EDQUOT);
	CHECK(strstr(e.text, "kernel.keys.maxkeys"));
}

static void test_session_keyring(void **state)
{
	(void)state;
	if (session_keyring() < 0 && errno == ENOSYS)
		skip();
	in_child(keyring_is_new_and_empty);
	in_child(quota_has_a_way_out);
}

/* ---- priorities ---- */

static long io_class(void)
{
	return IOPRIO_PRIO_CLASS(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0));
}

static void priorities_of_the_caller_are_gone(void)
{
	const struct sched_param first = {.sched_priority = 5};
	struct err e;

	CHECK(setpriority(PRIO_PROCESS, 0, -5) == 0);
	/* a control group without real-time budget refuses it to root too */
	CHECK(sched_setscheduler(0, SCHED_FIFO, &first) == 0 || errno == EPERM);
	CHECK(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
	              IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 3)) == 0);
	CHECK(personality(ADDR_NO_RANDOMIZE) >= 0);
	CHECK(identity_forget_privileges(&e) == 0);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	CHECK(getpriority(PRIO_PROCESS, 0) == 0);
	CHECK(io_class() != IOPRIO_CLASS_RT);
	CHECK(personality(0xffffffff) == PER_LINUX);
}

static void a_humble_caller_stays_humble(void)
{
	const struct sched_param plain = {0};
	char text[16];
	struct err e;

	CHECK(setpriority(PRIO_PROCESS, 0, 7) == 0);
	CHECK(sched_setscheduler(0, SCHED_BATCH, &plain) == 0);
	CHECK(file_write(AT_FDCWD, "/proc/self/oom_score_adj", "300", &e) == 0);
	CHECK(identity_forget_privileges(&e) == 0);
	CHECK(sched_getscheduler(0) == SCHED_BATCH);
	CHECK(getpriority(PRIO_PROCESS, 0) == 7);
	CHECK(file_read(AT_FDCWD, "/proc/self/oom_score_adj", text, sizeof text, &e) > 0);
	CHECK(strcmp(text, "300\n") == 0);
}

static void oom_protection_is_gone(void)
{
	char text[16];
	struct err e;

	CHECK(file_write(AT_FDCWD, "/proc/self/oom_score_adj", "-500", &e) == 0);
	CHECK(identity_forget_privileges(&e) == 0);
	CHECK(file_read(AT_FDCWD, "/proc/self/oom_score_adj", text, sizeof text, &e) > 0);
	CHECK(strcmp(text, "0\n") == 0);
}

static void test_priorities(void **state)
{
	(void)state;
	in_child(priorities_of_the_caller_are_gone);
	in_child(a_humble_caller_stays_humble);
}

static void test_oom_protection(void **state)
{
	(void)state;
	if (prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) != 1) {
		print_message("without CAP_SYS_RESOURCE nobody here can be protected\n");
		skip();
	}
	in_child(oom_protection_is_gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_become_user),
		cmocka_unit_test(test_map_ids),
		cmocka_unit_test(test_map_ids_refuses_host_ids),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_capabilities_fail_closed),
		cmocka_unit_test(test_no_new_privs),
		cmocka_unit_test(test_rlimits),
		cmocka_unit_test(test_session_keyring),
		cmocka_unit_test(test_priorities),
		cmocka_unit_test(test_oom_protection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
