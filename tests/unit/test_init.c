/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentdock-init, from its sealed memfd, as pid 1 of real pid namespaces with a /proc of their own.
 * The programs are those of any Debian. Root only; every wait is for an event and has a deadline
 * that only a hang reaches.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "base/scoped.h"
#include "init/protocol.h"
#include "runtime/identity/identity.h"
#include "runtime/init_memfd.h"

enum {
	GUEST_UID = 10001,
	HOST_BASE = 1000000000,
	ROOT = 0,
	DEADLINE_MS = 60000,
	ABOVE_STDIO = 10,
	SIGSET_BYTES = 8,
	NOT_STARTED = 125
};

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,  \
			        errno);                                                            \
			_exit(99);                                                                 \
		}                                                                                  \
	} while (0)

struct guest {
	pid_t pid;
	int pidfd;
	int channel;
	int in, out; /* the command's stdin to write, its stdout and stderr to read */
};

/* Both ends of all that connects a guest with the test. */
struct plumbing {
	int in[2], out[2], channel[2];
	int memfd;
	int maps[2]; /* has its end when the maps of the guest's user namespace are written */
	bool user_namespace;
	bool late;           /* init is executed when the command has ended */
	int signo;           /* sent to pid 1 before it is init */
	const char *instead; /* of the pid of a command, what init is told */
};

static void become_guest(const struct plumbing *plumbing, uid_t uid)
{
	struct err e;
	char byte;

	if (plumbing->user_namespace) {
		close(plumbing->maps[1]);
		CHECK(read(plumbing->maps[0], &byte, 1) == 0);
		CHECK(identity_become_root(&e) == 0);
	}
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("proc", "/proc", "proc", 0, NULL) == 0);
	if (uid != ROOT) {
		CHECK(identity_drop_bounding(&e) == 0);
		CHECK(identity_lock_securebits(&e) == 0);
		CHECK(identity_become_user(uid, uid, &e) == 0);
		CHECK(identity_drop_capabilities(&e) == 0);
		CHECK(identity_no_new_privs(&e) == 0);
	}
	/* after the change of user, which clears it */
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
}

/* glibc keeps two signals to itself; the sandbox does not. */
static void set_mask(unsigned long mask)
{
	CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, SIGSET_BYTES) == 0);
}

/* ARGS: PROGRAM, argv[0], ... Returns when it runs. */
static pid_t spawn_command(const char *const args[])
{
	char *argv[16] = {NULL};
	char *envp[] = {strdup("PATH=/usr/bin:/bin"), NULL};
	pid_t pid;
	int started[2];
	char byte;

	for (int i = 0; i < 15 && args[i + 1]; i++)
		argv[i] = strdup(args[i + 1]);
	CHECK(pipe2(started, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setsid() > 0);
		set_mask(0);
		execve(args[0], argv, envp);
		CHECK(!"exec of the command");
	}
	close(started[1]);
	CHECK(read(started[0], &byte, 1) == 0);
	close(started[0]);
	return pid;
}

/* As the process inside does (runtime/spawn.c). */
static void become_init(const struct plumbing *plumbing, uid_t uid, const char *const args[])
{
	const int fds[] = {plumbing->in[0], plumbing->out[1], plumbing->out[1],
	                   plumbing->channel[1]};
	char *argv[] = {strdup("agentdock-init"), NULL, NULL};
	char *envp[] = {NULL};
	int high[4], memfd;
	siginfo_t ended;

	become_guest(plumbing, uid);
	set_mask(~0UL);
	memfd = fcntl(plumbing->memfd, F_DUPFD_CLOEXEC, ABOVE_STDIO);
	for (int i = 0; i < 4; i++)
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, ABOVE_STDIO);
	for (int i = 0; i < 4; i++)
		CHECK(dup3(high[i], i, 0) == i);
	CHECK(fcntl(INIT_FD, F_SETFD, FD_CLOEXEC) == 0);
	if (plumbing->instead)
		argv[1] = strdup(plumbing->instead);
	else
		CHECK(asprintf(&argv[1], "%d", spawn_command(args)) > 0);
	if (plumbing->signo)
		CHECK(kill(getpid(), plumbing->signo) == 0);
	if (plumbing->late)
		CHECK(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) == 0);
	for (int fd = 0; fd < INIT_FD; fd++)
		close(fd);
	CHECK(fcntl(INIT_FD, F_SETFD, 0) == 0);
	syscall(SYS_execveat, memfd, "", argv, envp, AT_EMPTY_PATH);
	_exit(98);
}

static void plumbing_make(struct plumbing *plumbing)
{
	struct err e = {0};

	*plumbing = (struct plumbing){.memfd = init_memfd(&e)};
	assert_string_equal(e.text, "");
	assert_true(plumbing->memfd >= 0);
	assert_int_equal(pipe2(plumbing->maps, O_CLOEXEC), 0);
	assert_int_equal(pipe2(plumbing->in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(plumbing->out, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, plumbing->channel),
	                 0);
}

static pid_t plumbing_clone(const struct plumbing *plumbing, uid_t uid, const char *const args[],
                            int *pidfd)
{
	struct clone_args clone = {.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_PIDFD,
	                           .exit_signal = SIGCHLD,
	                           .pidfd = (uintptr_t)pidfd};
	pid_t pid;

	if (plumbing->user_namespace)
		clone.flags |= CLONE_NEWUSER;
	pid = process_clone3(&clone);
	if (pid == 0)
		become_init(plumbing, uid, args);
	return pid;
}

/* Keeps the test's ends. */
static void plumbing_split(const struct plumbing *plumbing, struct guest *guest)
{
	close(plumbing->memfd);
	close(plumbing->maps[0]);
	close(plumbing->maps[1]);
	close(plumbing->in[0]);
	close(plumbing->out[1]);
	close(plumbing->channel[1]);
	guest->in = plumbing->in[1];
	guest->out = plumbing->out[0];
	guest->channel = plumbing->channel[0];
}

static void guest_start(struct guest *guest, const struct plumbing *plumbing, uid_t uid,
                        const char *script)
{
	const char *const args[] = {"/bin/sh", "sh", "-c", script, NULL};

	guest->pid = plumbing_clone(plumbing, uid, args, &guest->pidfd);
	assert_true(guest->pid >= 0);
	plumbing_split(plumbing, guest);
}

static void guest_shell(struct guest *guest, uid_t uid, const char *script)
{
	struct plumbing plumbing;

	plumbing_make(&plumbing);
	guest_start(guest, &plumbing, uid, script);
}

/* Nonzero when FD has something to read, or its end, before TIMEOUT_MS. */
static int readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, timeout_ms);
}

static void expect_ended(const struct guest *guest, int status)
{
	struct init_message message;

	assert_int_equal(readable(guest->channel, DEADLINE_MS), 1);
	assert_int_equal(recv(guest->channel, &message, sizeof message, 0), sizeof message);
	assert_int_equal(message.kind, INIT_EXITED);
	assert_int_equal(message.value, status);
}

static void expect_word(const struct guest *guest, const char *word)
{
	char text[256] = "";
	size_t length = strlen(word);

	for (size_t at = 0; at < length; at++) {
		assert_int_equal(readable(guest->out, DEADLINE_MS), 1);
		assert_int_equal(read(guest->out, text + at, 1), 1);
	}
	assert_string_equal(text, word);
}

static void expect_end_of_output(const struct guest *guest)
{
	char byte;

	assert_int_equal(readable(guest->out, DEADLINE_MS), 1);
	assert_int_equal(read(guest->out, &byte, 1), 0);
}

static void guest_release(struct guest *guest, int expected_status)
{
	int status;

	assert_int_equal(readable(guest->pidfd, DEADLINE_MS), 1);
	assert_int_equal(waitpid(guest->pid, &status, 0), guest->pid);
	assert_int_equal(status, expected_status);
	if (guest->in >= 0)
		close(guest->in);
	close(guest->out);
	close(guest->channel);
	close(guest->pidfd);
}

static void guest_signal(const struct guest *guest, int signo)
{
	assert_int_equal(syscall(SYS_pidfd_send_signal, guest->pidfd, signo, NULL, 0), 0);
}

static void guest_kill(struct guest *guest)
{
	guest_signal(guest, SIGKILL);
	guest_release(guest, SIGKILL);
}

/* Runs SCRIPT from start to end; it leaves nothing running. */
static void expect_ending(uid_t uid, const char *script, int status)
{
	struct guest guest;

	guest_shell(&guest, uid, script);
	expect_ended(&guest, status);
	expect_end_of_output(&guest);
	guest_release(&guest, 0);
}

static void test_exit_codes(void **state)
{
	(void)state;
	expect_ending(ROOT, "exit 0", 0);
	expect_ending(ROOT, "exit 3", 3 << 8);
	expect_ending(GUEST_UID, "exit 255", 255 << 8);
}

static void test_deaths_by_signal(void **state)
{
	(void)state;
	expect_ending(GUEST_UID, "kill -KILL $$", SIGKILL);
	expect_ending(GUEST_UID, "kill -TERM $$", SIGTERM);
	expect_ending(GUEST_UID, "ulimit -c 0; kill -SEGV $$", SIGSEGV);
}

static void test_nothing_is_missed_before_its_exec(void **state)
{
	struct plumbing plumbing;
	struct guest guest;

	(void)state;
	plumbing_make(&plumbing);
	plumbing.late = true;
	guest_start(&guest, &plumbing, GUEST_UID, "exit 4");
	expect_ended(&guest, 4 << 8);
	guest_release(&guest, 0);
	plumbing_make(&plumbing);
	plumbing.signo = SIGUSR1;
	guest_start(&guest, &plumbing, GUEST_UID, "while :; do :; done");
	expect_ended(&guest, SIGUSR1);
	guest_release(&guest, 0);
}

/* What no sandbox says to it. */
static void test_what_is_no_pid(void **state)
{
	static const char *const wrong[] = {"",   "0",   "-2",      "2x",
	                                    " 2", "0x2", "4194305", "18446744073709551618"};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct plumbing plumbing;
		struct guest guest;

		plumbing_make(&plumbing);
		plumbing.instead = wrong[i];
		guest_start(&guest, &plumbing, GUEST_UID, "");
		expect_end_of_output(&guest);
		guest_release(&guest, NOT_STARTED << 8);
	}
}

static void test_orphans_are_reaped(void **state)
{
	(void)state;
	/* Ends only at a moment when pid 1 has no dead child, and the command still lives. */
	expect_ending(GUEST_UID,
	              "i=0; while [ $i -lt 500 ]; do (true &); i=$((i+1)); done\n"
	              "while grep -qs '^[0-9]* ([^)]*) Z 1 ' /proc/[0-9]*/stat; do :; done\n"
	              "exit 9",
	              9 << 8);
}

static void test_signals_are_handed_on(void **state)
{
	struct guest guest;

	(void)state;
	guest_shell(&guest, GUEST_UID,
	            "trap 'exit 42' TERM; exec 4<&0; cat <&4 & echo ready; wait");
	expect_word(&guest, "ready\n");
	guest_signal(&guest, SIGTERM);
	expect_ended(&guest, 42 << 8);
	close(guest.in);
	guest.in = -1;
	guest_release(&guest, 0);
	/* from inside as well, as other programs for pid 1 do */
	expect_ending(GUEST_UID, "trap 'exit 43' TERM; kill -TERM 1; while :; do :; done", 43 << 8);
	expect_ending(GUEST_UID, "kill -USR1 1; while :; do :; done", SIGUSR1);
	/* and what no process may do to pid 1 from inside is in vain */
	expect_ending(GUEST_UID, "kill -KILL 1; kill -STOP 1; kill -CHLD 1; exit 6", 6 << 8);
}

static void test_background_outlives_the_command(void **state)
{
	struct guest guest;

	(void)state;
	guest_shell(&guest, GUEST_UID, "exec 4<&0; cat <&4 & exit 7");
	expect_ended(&guest, 7 << 8);
	assert_int_equal(readable(guest.out, 0), 0);
	/* there is nobody to hand this to, in particular not a process that got the old pid */
	guest_signal(&guest, SIGTERM);
	assert_int_equal(write(guest.in, "still here", 10), 10);
	expect_word(&guest, "still here");
	assert_int_equal(readable(guest.pidfd, 0), 0);
	close(guest.in);
	guest.in = -1;
	expect_end_of_output(&guest);
	guest_release(&guest, 0);
}

static void test_init_holds_no_output(void **state)
{
	struct guest guest;

	(void)state;
	guest_shell(&guest, GUEST_UID, "exec 4<&0; cat <&4 >/dev/null 2>&1 & exit 8");
	expect_ended(&guest, 8 << 8);
	expect_end_of_output(&guest);
	assert_int_equal(readable(guest.pidfd, 0), 0);
	close(guest.in);
	guest.in = -1;
	guest_release(&guest, 0);
}

static void test_a_storm_hides_nothing(void **state)
{
	struct guest guest;

	(void)state;
	guest_shell(&guest, GUEST_UID,
	            "trap '' HUP; i=0; while [ $i -lt 4 ]; do\n"
	            "(while :; do kill -HUP 1; (true &); done) & i=$((i+1)); done; exit 5");
	expect_ended(&guest, 5 << 8);
	guest_kill(&guest);
}

static void test_init_survives_a_deaf_outside(void **state)
{
	struct guest guest;

	(void)state;
	guest_shell(&guest, GUEST_UID, "cat; exit 5");
	assert_int_equal(shutdown(guest.channel, SHUT_RDWR), 0);
	close(guest.in);
	guest.in = -1;
	guest_release(&guest, 0);
}

/* In the guest's namespaces, as its user: what it may not see of pid 1, beside what it may of 2. */
static void intrude(void)
{
	char text[64];
	struct iovec iov = {text, sizeof text};

	CHECK(readlink("/proc/2/exe", text, sizeof text) > 0);
	CHECK(readlink("/proc/1/exe", text, sizeof text) < 0 && errno == EACCES);
	CHECK(open("/proc/1/exe", O_RDONLY) < 0 && errno == EACCES);
	CHECK(open("/proc/2/fd", O_RDONLY) >= 0);
	CHECK(open("/proc/1/fd", O_RDONLY) < 0 && errno == EACCES);
	CHECK(open("/proc/2/environ", O_RDONLY) >= 0);
	CHECK(open("/proc/1/environ", O_RDONLY) < 0 && errno == EACCES);
	CHECK(open("/proc/1/mem", O_RDWR) < 0 && errno == EACCES);
	CHECK(process_vm_readv(1, &iov, 1, &iov, 1, 0) < 0 && errno == EPERM);
	CHECK(ptrace(PTRACE_SEIZE, 1, 0, 0) < 0 && errno == EPERM);
	CHECK(syscall(SYS_pidfd_getfd, (int)syscall(SYS_pidfd_open, 1, 0), INIT_FD, 0) < 0);
	CHECK(errno == EPERM);
	_exit(0);
}

static void enter_and_intrude(int pidfd, int namespaces)
{
	int status;
	pid_t pid;

	CHECK(setns(pidfd, namespaces) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setresgid(GUEST_UID, GUEST_UID, GUEST_UID) == 0);
		CHECK(setresuid(GUEST_UID, GUEST_UID, GUEST_UID) == 0);
		CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
		intrude();
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	_exit(status == 0 ? 0 : 1);
}

static void expect_opaque(const struct guest *guest, int namespaces)
{
	int status;
	pid_t pid;

	expect_word(guest, "ready\n");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		enter_and_intrude(guest->pidfd, namespaces);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_the_guest_cannot_look_into_pid_1(void **state)
{
	struct guest guest;

	(void)state;
	guest_shell(&guest, GUEST_UID, "echo ready; cat");
	expect_opaque(&guest, CLONE_NEWPID | CLONE_NEWNS);
	guest_kill(&guest);
}

static void test_nor_in_a_user_namespace(void **state)
{
	const char *const args[] = {"/bin/sh", "sh", "-c", "echo ready; cat", NULL};
	struct plumbing plumbing;
	struct guest guest;
	struct err e = {0};
	char path[32];
	scoped_fd procfd = -1;

	(void)state;
	plumbing_make(&plumbing);
	plumbing.user_namespace = true;
	guest.pid = plumbing_clone(&plumbing, GUEST_UID, args, &guest.pidfd);
	assert_true(guest.pid >= 0);
	snprintf(path, sizeof path, "/proc/%d", guest.pid);
	procfd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	identity_map_ids(procfd, HOST_BASE, &e);
	assert_string_equal(e.text, "");
	plumbing_split(&plumbing, &guest);
	expect_opaque(&guest, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS);
	guest_kill(&guest);
}

static void be_parent(const struct plumbing *plumbing, const int done[2])
{
	const char *const args[] = {"/bin/cat", "cat", NULL};
	char byte;
	int pidfd;

	CHECK(plumbing_clone(plumbing, GUEST_UID, args, &pidfd) > 0);
	close(done[1]);
	CHECK(read(done[0], &byte, 1) == 0);
	_exit(0);
}

/* The signal for that is asked for before the exec of init, and must survive it. */
static void test_init_dies_with_its_parent(void **state)
{
	struct plumbing plumbing;
	struct guest guest = {.pidfd = -1};
	int done[2], status;

	(void)state;
	plumbing_make(&plumbing);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	guest.pid = fork();
	assert_true(guest.pid >= 0);
	if (guest.pid == 0)
		be_parent(&plumbing, done);
	plumbing_split(&plumbing, &guest);
	assert_int_equal(write(guest.in, "alive", 5), 5);
	expect_word(&guest, "alive");
	close(done[1]);
	expect_end_of_output(&guest);
	assert_int_equal(waitpid(guest.pid, &status, 0), guest.pid);
	assert_int_equal(status, 0);
	close(done[0]);
	close(guest.in);
	close(guest.out);
	close(guest.channel);
}

static void test_memfd_is_sealed(void **state)
{
	struct err e = {0};
	struct stat status;
	scoped_fd fd = init_memfd(&e);
	int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & all, all);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0111);
	assert_true(status.st_size > 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_ptr_equal(mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_codes),
		cmocka_unit_test(test_deaths_by_signal),
		cmocka_unit_test(test_nothing_is_missed_before_its_exec),
		cmocka_unit_test(test_what_is_no_pid),
		cmocka_unit_test(test_orphans_are_reaped),
		cmocka_unit_test(test_signals_are_handed_on),
		cmocka_unit_test(test_background_outlives_the_command),
		cmocka_unit_test(test_init_holds_no_output),
		cmocka_unit_test(test_a_storm_hides_nothing),
		cmocka_unit_test(test_init_survives_a_deaf_outside),
		cmocka_unit_test(test_the_guest_cannot_look_into_pid_1),
		cmocka_unit_test(test_nor_in_a_user_namespace),
		cmocka_unit_test(test_init_dies_with_its_parent),
		cmocka_unit_test(test_memfd_is_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
