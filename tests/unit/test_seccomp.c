/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seccomp wall. Three kinds of proof: the program against a model of the policy, by an
 * interpreter of classic BPF, for every number and all telling arguments; the same questions asked
 * of the kernel by children that are bound by the filter; profiles with one mistake each. Tests run
 * from the root of the source tree, as make check-unit does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/scoped.h"
#include "seccomp/calls.h"
#include "seccomp/filter.h"
#include "seccomp/notify.h"
#include "seccomp/policy.h"
#include "tests/bpf.h"

#define PROFILE      "seccomp/profiles/default.json"
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#else
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#endif

#define ALLOWED   SECCOMP_RET_ALLOW
#define FORBIDDEN SECCOMP_RET_USER_NOTIF
#define UNKNOWN   (SECCOMP_RET_ERRNO | ENOSYS)

enum { HIGH = 0x20, LAST_CALL = 469, HOT_STEPS_MAX = 14, LENGTH_MAX = 320 };
#define HIGH_BITS ((uint64_t)HIGH << 32)

/* ---- the program ---- */

/* The answer; *STEPS is how many instructions it took. */
static uint32_t run(const struct seccomp_filter *filter, const struct seccomp_data *data,
                    unsigned *steps)
{
	uint32_t answer = 0;

	if (!bpf_run(filter, data, &answer, steps))
		fail_msg("the program is broken: call %d, instruction %u of its way", data->nr,
		         *steps);
	return answer;
}

static uint32_t ask(const struct seccomp_filter *filter, const struct seccomp_data *data)
{
	unsigned steps;

	return run(filter, data, &steps);
}

/* ---- profiles ---- */

#define HEAD "\"version\":1,\"unknown\":\"ENOSYS\","
#define DENY "\"deny\":{\"action\":\"notify\",\"errno\":\"EPERM\"}"
#define WHEN(list, name, arg)                                                                      \
	"{" HEAD DENY ",\"" list "\":[{\"name\":\"" name "\",\"why\":\"\","                        \
	"\"args\":[" arg "]}]}"

static struct seccomp_filter compile(const char *json)
{
	struct seccomp_filter filter;
	struct err e;

	if (seccomp_filter_compile(json, strlen(json), &filter, &e) < 0)
		fail_msg("%s", e.text);
	return filter;
}

static char *profile_read(size_t *length)
{
	char *json;
	struct err e;

	if (file_read_all(AT_FDCWD, PROFILE, 1 << 20, &json, length, &e) < 0)
		fail_msg("%s", e.text);
	return json;
}

static struct policy profile_policy(void)
{
	size_t length;
	scoped_mem char *json = profile_read(&length);
	struct policy policy;
	struct err e;

	if (policy_parse(json, length, &policy, &e) < 0)
		fail_msg("%s", e.text);
	return policy;
}

static void builtin_is_the_profile(void **state)
{
	const struct seccomp_filter *builtin = seccomp_default_filter();
	size_t length;
	scoped_mem char *json = profile_read(&length);
	struct seccomp_filter filter = compile(json);

	(void)state;
	assert_true(builtin->notifies && filter.notifies);
	assert_int_equal(builtin->length, filter.length);
	assert_memory_equal(builtin->instructions, filter.instructions,
	                    filter.length * sizeof *filter.instructions);
	assert_null(builtin->owned);
	seccomp_filter_release(&filter);
	assert_null(filter.instructions);
}

/* No call of Linux 6.18 is unknown by oversight. */
static void every_call_is_classified(void **state)
{
	struct policy policy = profile_policy();
	char name[32];
	int named = 0;

	(void)state;
	for (int number = 0; number <= LAST_CALL; number++) {
		const char *call = seccomp_call_name(number, name, sizeof name);

		if (!strncmp(call, "syscall ", 8))
			continue;
		named++;
		if (policy.calls[number].action == POLICY_UNNAMED)
			fail_msg("%s (%d) is not in " PROFILE, call, number);
	}
	/* that many there are on arm64, which has the fewest; and the newest is among them */
	assert_true(named > 300);
	assert_string_equal(seccomp_call_name(LAST_CALL, name, sizeof name), "file_setattr");
	policy_release(&policy);
}

/* ---- the program against the policy ---- */

static bool condition_holds(const struct policy_condition *c, const struct seccomp_data *data)
{
	for (unsigned i = 0; i < c->values_count; i++)
		if ((data->args[c->index] & c->mask) == c->values[i])
			return true;
	return false;
}

static uint32_t model_verdict(const struct policy *policy, struct policy_answer answer)
{
	if (answer.action == POLICY_ALLOW)
		return ALLOWED;
	if (answer.action == POLICY_FORBID)
		return policy->notify ? FORBIDDEN
		                      : SECCOMP_RET_ERRNO | (uint32_t)policy->deny_error;
	return SECCOMP_RET_ERRNO |
	       (uint32_t)(answer.action == POLICY_ERRNO ? answer.error : policy->unknown_error);
}

static uint32_t model(const struct policy *policy, const struct seccomp_data *data)
{
	if (data->arch != ARCH_NATIVE || data->nr < 0 || data->nr >= POLICY_CALLS)
		return SECCOMP_RET_ERRNO | (uint32_t)policy->unknown_error;
	for (size_t r = 0; r < policy->rules_count; r++) {
		const struct policy_rule *rule = &policy->rules[r];
		bool holds = rule->number == data->nr;

		for (unsigned i = 0; holds && i < rule->conditions_count; i++)
			holds = condition_holds(&rule->conditions[i], data);
		if (holds)
			return model_verdict(policy, rule->answer);
	}
	return model_verdict(policy, policy->calls[data->nr]);
}

enum { SAMPLES_MAX = 512 };

struct samples {
	uint64_t values[SAMPLES_MAX];
	size_t count;
};

static void sample(struct samples *samples, uint64_t value)
{
	for (size_t i = 0; i < samples->count; i++)
		if (samples->values[i] == value)
			return;
	assert_true(samples->count < SAMPLES_MAX);
	samples->values[samples->count++] = value;
}

/* Every value that a rule of the call names for this argument, and its neighbours. */
static struct samples samples_of(const struct policy *policy, int number, unsigned index)
{
	struct samples samples = {0};

	sample(&samples, 0);
	for (size_t r = 0; r < policy->rules_count; r++) {
		const struct policy_rule *rule = &policy->rules[r];

		for (unsigned i = 0; rule->number == number && i < rule->conditions_count; i++) {
			const struct policy_condition *c = &rule->conditions[i];

			if (c->index != index)
				continue;
			sample(&samples, UINT64_MAX);
			for (unsigned v = 0; v < c->values_count; v++) {
				sample(&samples, c->values[v]);
				sample(&samples, c->values[v] + 1);
				sample(&samples, c->values[v] | HIGH_BITS);
				sample(&samples, c->values[v] | ~c->mask);
				sample(&samples, c->values[v] ^ (c->mask & -c->mask));
			}
		}
	}
	return samples;
}

static void compare(const struct seccomp_filter *filter, const struct policy *policy,
                    const struct seccomp_data *data)
{
	uint32_t expected = model(policy, data), answer = ask(filter, data);

	if (answer != expected)
		fail_msg("call %d (%#llx, %#llx, %#llx): %#x, not %#x", data->nr,
		         (unsigned long long)data->args[0], (unsigned long long)data->args[1],
		         (unsigned long long)data->args[2], answer, expected);
}

/* All combinations of samples of the first three arguments; no rule of ours reads further ones. */
static void compare_call(const struct seccomp_filter *filter, const struct policy *policy,
                         int number)
{
	struct seccomp_data data = {.nr = number, .arch = ARCH_NATIVE};
	struct samples first = samples_of(policy, number, 0);
	struct samples second = samples_of(policy, number, 1);
	struct samples third = samples_of(policy, number, 2);

	for (size_t i = 0; i < first.count; i++) {
		data.args[0] = first.values[i];
		for (size_t j = 0; j < second.count; j++) {
			data.args[1] = second.values[j];
			for (size_t k = 0; k < third.count; k++) {
				data.args[2] = third.values[k];
				compare(filter, policy, &data);
			}
		}
	}
}

static void compare_all(const char *json, size_t length)
{
	struct seccomp_filter filter;
	struct policy policy;
	struct err e;

	if (policy_parse(json, length, &policy, &e) < 0 ||
	    seccomp_filter_compile(json, length, &filter, &e) < 0)
		fail_msg("%s", e.text);
	for (int number = 0; number < POLICY_CALLS + 10; number++) {
		struct seccomp_data foreign = {.nr = number, .arch = AUDIT_ARCH_I386};
		struct seccomp_data x32 = {.nr = number | 0x40000000, .arch = ARCH_NATIVE};

		compare_call(&filter, &policy, number);
		compare(&filter, &policy, &foreign);
		compare(&filter, &policy, &x32);
	}
	compare(&filter, &policy, &(struct seccomp_data){.nr = -1, .arch = ARCH_NATIVE});
	policy_release(&policy);
	seccomp_filter_release(&filter);
}

static void program_is_the_default_policy(void **state)
{
	size_t length;
	scoped_mem char *json = profile_read(&length);

	(void)state;
	compare_all(json, length);
}

enum { LARGE = 256 * 1024 };

/* Rules of two long conditions for every STEP-th call. */
static void large_profile(char json[LARGE], int step)
{
	size_t used;
	char name[32];
	const char *comma = "";

	used = (size_t)sprintf(json, "{\"version\":1,\"unknown\":\"EXDEV\","
	                             "\"deny\":{\"action\":\"errno\",\"errno\":\"EACCES\"},"
	                             "\"allow_when\":[");
	for (int number = 0; number <= LAST_CALL; number += step) {
		const char *call = seccomp_call_name(number, name, sizeof name);

		if (!strncmp(call, "syscall ", 8))
			continue;
		used += (size_t)sprintf(json + used,
		                        "%s{\"name\":\"%s\",\"why\":\"\",\"args\":["
		                        "{\"index\":0,\"type\":\"long\","
		                        "\"values\":[%d,\"0x1200000003\"]},"
		                        "{\"index\":2,\"type\":\"long\",\"mask\":\"0xf0f00000000\","
		                        "\"values\":[\"0x30500000000\",0]}]}",
		                        comma, call, number);
		comma = ",";
	}
	sprintf(json + used, "]}");
}

/* Jumps of the tree span more than one byte holds. */
static void program_is_a_large_policy(void **state)
{
	static char json[LARGE];

	(void)state;
	large_profile(json, 3);
	compare_all(json, strlen(json));
}

static void too_large_is_an_error(void **state)
{
	static char json[LARGE];
	struct seccomp_filter filter = {.length = 77};
	struct err e;

	(void)state;
	large_profile(json, 1);
	assert_int_equal(seccomp_filter_compile(json, strlen(json), &filter, &e), -E2BIG);
	assert_non_null(strstr(e.text, "the kernel takes 4096"));
	assert_int_equal(filter.length, 77);
}

/* Every condition with every value: its first jump is the longest that there can be. */
static void largest_rule_fits(void **state)
{
	static char json[LARGE];
	size_t used = (size_t)sprintf(json, "{" HEAD DENY ",\"allow_when\":[{\"name\":\"prctl\","
	                                    "\"why\":\"\",\"args\":[");
	struct seccomp_data data = {.nr = SYS_prctl, .arch = ARCH_NATIVE};
	struct seccomp_filter filter;

	(void)state;
	for (int i = 0; i < POLICY_ARGS_MAX; i++)
		used += (size_t)sprintf(
			json + used,
			"%s{\"index\":%d,\"type\":\"long\",\"mask\":\"0xf0000000f\","
			"\"values\":[0,1,2,3,4,5,6,7]}",
			i ? "," : "", i);
	sprintf(json + used, "]}]}");
	filter = compile(json);
	for (unsigned i = 0; i < POLICY_ARGS_MAX; i++)
		data.args[i] = i + 2;
	assert_int_equal(ask(&filter, &data), ALLOWED);
	for (unsigned i = 0; i < POLICY_ARGS_MAX; i++) {
		data.args[i] ^= 8;
		assert_int_equal(ask(&filter, &data), FORBIDDEN);
		data.args[i] ^= 8 | 0x100000000;
		assert_int_equal(ask(&filter, &data), FORBIDDEN);
		data.args[i] ^= 0x100000000;
	}
	seccomp_filter_release(&filter);
}

static void program_is_small(void **state)
{
	static const char *const hot[] = {
		"read",  "write",  "futex", "mmap",          "openat",     "close",  "epoll_pwait",
		"fstat", "munmap", "lseek", "clock_gettime", "newfstatat", "madvise"};
	const struct seccomp_filter *filter = seccomp_default_filter();

	(void)state;
	print_message("seccomp: the built-in filter has %u instructions\n", filter->length);
	assert_in_range(filter->length, 100, LENGTH_MAX);
	for (size_t i = 0; i < COUNT(hot); i++) {
		struct seccomp_data data = {.nr = seccomp_call_number(hot[i]), .arch = ARCH_NATIVE};
		unsigned steps;

		if (data.nr < 0)
			continue;
		assert_int_equal(run(filter, &data, &steps), ALLOWED);
		if (steps > HOT_STEPS_MAX)
			fail_msg("%s takes %u instructions", hot[i], steps);
	}
}

/* ---- what the default profile answers, said independently of it ---- */

static const struct question {
	const char *name;
	uint64_t args[3];
	uint32_t answer;
} questions[] = {
	{"clone", {CLONE_NEWUSER}, FORBIDDEN},
	{"clone", {CLONE_NEWUSER | HIGH_BITS}, FORBIDDEN},
	{"clone", {CLONE_NEWNS | SIGCHLD}, FORBIDDEN},
	{"clone", {CLONE_NEWCGROUP}, FORBIDDEN},
	{"clone", {CLONE_NEWUTS}, FORBIDDEN},
	{"clone", {CLONE_NEWIPC}, FORBIDDEN},
	{"clone", {CLONE_NEWPID}, FORBIDDEN},
	{"clone", {CLONE_NEWNET}, FORBIDDEN},
	{"clone", {SIGCHLD}, ALLOWED},
	{"clone", {CLONE_VM | CLONE_VFORK | SIGCHLD}, ALLOWED},
	{"clone", {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD}, ALLOWED},
	{"clone3", {0}, UNKNOWN},
	{"unshare", {CLONE_NEWUSER}, FORBIDDEN},
	{"unshare", {CLONE_NEWTIME}, FORBIDDEN},
	{"unshare", {CLONE_FS | CLONE_FILES}, ALLOWED},
	{"unshare", {0x00100000}, FORBIDDEN},
	{"unshare", {CLONE_FS | HIGH_BITS}, FORBIDDEN},
	{"socket", {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}, ALLOWED},
	{"socket", {AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP}, ALLOWED},
	{"socket", {AF_INET6, SOCK_DGRAM, 0}, ALLOWED},
	{"socket", {AF_INET, SOCK_DGRAM, IPPROTO_UDP}, ALLOWED},
	{"socket", {AF_INET, SOCK_RAW, IPPROTO_TCP}, FORBIDDEN},
	{"socket", {AF_INET6, SOCK_RAW | SOCK_CLOEXEC | HIGH_BITS}, FORBIDDEN},
	{"socket", {AF_INET, SOCK_STREAM, IPPROTO_SCTP}, FORBIDDEN},
	{"socket", {AF_INET, SOCK_STREAM, IPPROTO_UDP}, FORBIDDEN},
	{"socket", {AF_INET, SOCK_STREAM, 262}, SECCOMP_RET_ERRNO | EPROTONOSUPPORT},
	/* to the listener, which lets a few pass */
	{"socket", {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, FORBIDDEN},
	{"socket", {AF_NETLINK | HIGH_BITS, SOCK_RAW, NETLINK_ROUTE | HIGH_BITS}, FORBIDDEN},
	{"socket", {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT}, FORBIDDEN},
	{"socket", {AF_NETLINK, SOCK_DGRAM, NETLINK_NETFILTER | HIGH_BITS}, FORBIDDEN},
	{"socket", {AF_PACKET, SOCK_RAW}, FORBIDDEN},
	{"socket", {AF_VSOCK, SOCK_STREAM}, FORBIDDEN},
	{"socket", {AF_VSOCK | HIGH_BITS, SOCK_STREAM}, FORBIDDEN},
	{"socket", {AF_ALG, SOCK_SEQPACKET}, FORBIDDEN},
	{"socket", {AF_XDP, SOCK_RAW}, FORBIDDEN},
	{"socket", {AF_BLUETOOTH, SOCK_RAW}, FORBIDDEN},
	{"socketpair", {AF_UNIX, SOCK_STREAM}, ALLOWED},
	{"socketpair", {AF_TIPC, SOCK_STREAM}, FORBIDDEN},
	{"personality", {PER_LINUX}, ALLOWED},
	{"personality", {ADDR_NO_RANDOMIZE}, ALLOWED},
	{"personality", {0xffffffff}, ALLOWED},
	{"personality", {READ_IMPLIES_EXEC}, FORBIDDEN},
	{"personality", {READ_IMPLIES_EXEC | HIGH_BITS}, FORBIDDEN},
	{"ioctl", {0, TIOCSTI}, FORBIDDEN},
	{"ioctl", {0, TIOCSTI | HIGH_BITS}, FORBIDDEN},
	{"ioctl", {0, TIOCSTI | 0xffffffff00000000}, FORBIDDEN},
	{"ioctl", {0, TIOCLINUX | HIGH_BITS}, FORBIDDEN},
	{"ioctl", {0, TIOCSETD}, FORBIDDEN},
	{"ioctl", {0, FS_IOC_SETFLAGS}, FORBIDDEN},
	{"ioctl", {0, FS_IOC_FSSETXATTR | HIGH_BITS}, FORBIDDEN},
	{"ioctl", {0, FS_IOC_FIEMAP}, SECCOMP_RET_ERRNO | EOPNOTSUPP},
	{"ioctl", {0, FS_IOC_FIEMAP | HIGH_BITS}, SECCOMP_RET_ERRNO | EOPNOTSUPP},
	{"ioctl", {0, FS_IOC_GETFLAGS}, ALLOWED},
	{"ioctl", {0, TCGETS}, ALLOWED},
	{"ioctl", {TIOCSTI, TIOCGWINSZ}, ALLOWED},
	{"mknod", {0, S_IFIFO | 0600}, ALLOWED},
	{"mknod", {0, S_IFCHR | 0600}, FORBIDDEN},
	{"mknodat", {0, 0, S_IFREG | 0644}, ALLOWED},
	{"mknodat", {0, 0, S_IFSOCK}, ALLOWED},
	{"mknodat", {0, 0, S_IFBLK}, FORBIDDEN},
	{"mknodat", {0, 0, S_IFCHR | 0x10000}, FORBIDDEN},
	{"seccomp", {SECCOMP_SET_MODE_FILTER, 0}, SECCOMP_RET_ERRNO | EINVAL},
	{"seccomp", {SECCOMP_SET_MODE_FILTER | HIGH_BITS, 0}, SECCOMP_RET_ERRNO | EINVAL},
	{"seccomp",
         {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER},
         SECCOMP_RET_ERRNO | EINVAL},
	{"seccomp", {SECCOMP_GET_ACTION_AVAIL, 0}, ALLOWED},
	{"prctl", {PR_SET_SECCOMP, SECCOMP_MODE_FILTER}, SECCOMP_RET_ERRNO | EINVAL},
	{"prctl", {PR_SET_SECCOMP | HIGH_BITS, 1}, SECCOMP_RET_ERRNO | EINVAL},
	{"prctl", {PR_GET_SECCOMP}, ALLOWED},
	{"prctl", {PR_SET_NAME}, ALLOWED},
	{"setsockopt", {0, SOL_SOCKET, SO_ATTACH_FILTER}, FORBIDDEN},
	{"setsockopt", {0, SOL_SOCKET | HIGH_BITS, SO_ATTACH_FILTER | HIGH_BITS}, FORBIDDEN},
	{"setsockopt", {0, SOL_SOCKET, SO_ATTACH_BPF}, FORBIDDEN},
	{"setsockopt", {0, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF}, FORBIDDEN},
	{"setsockopt", {0, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF}, FORBIDDEN},
	{"setsockopt", {0, SOL_SOCKET, SO_REUSEPORT}, ALLOWED},
	{"setsockopt", {0, IPPROTO_IPV6, IPV6_V6ONLY}, ALLOWED},
	{"io_setup", {0}, UNKNOWN},
	{"io_destroy", {0}, UNKNOWN},
	{"io_submit", {0}, UNKNOWN},
	{"io_cancel", {0}, UNKNOWN},
	{"io_getevents", {0}, UNKNOWN},
	{"io_pgetevents", {0}, UNKNOWN},
	{"mount", {0}, FORBIDDEN},
	{"umount2", {0}, FORBIDDEN},
	{"pivot_root", {0}, FORBIDDEN},
	{"open_tree", {0}, FORBIDDEN},
	{"open_tree_attr", {0}, FORBIDDEN},
	{"move_mount", {0}, FORBIDDEN},
	{"fsopen", {0}, FORBIDDEN},
	{"fsconfig", {0}, FORBIDDEN},
	{"fsmount", {0}, FORBIDDEN},
	{"fspick", {0}, FORBIDDEN},
	{"mount_setattr", {0}, FORBIDDEN},
	{"setns", {0}, FORBIDDEN},
	{"chroot", {0}, FORBIDDEN},
	{"bpf", {0}, FORBIDDEN},
	{"perf_event_open", {0}, FORBIDDEN},
	{"keyctl", {0}, FORBIDDEN},
	{"add_key", {0}, FORBIDDEN},
	{"request_key", {0}, FORBIDDEN},
	{"io_uring_setup", {0}, FORBIDDEN},
	{"io_uring_enter", {0}, FORBIDDEN},
	{"io_uring_register", {0}, FORBIDDEN},
	{"userfaultfd", {0}, FORBIDDEN},
	{"open_by_handle_at", {0}, FORBIDDEN},
	{"pidfd_getfd", {0}, FORBIDDEN},
	{"file_setattr", {0}, FORBIDDEN},
	{"finit_module", {0}, FORBIDDEN},
	{"kexec_load", {0}, FORBIDDEN},
	{"syslog", {0}, FORBIDDEN},
	{"clock_settime", {0}, FORBIDDEN},
	{"rseq", {0}, ALLOWED},
	{"set_robust_list", {0}, ALLOWED},
	{"statx", {0}, ALLOWED},
	{"openat2", {0}, ALLOWED},
	{"faccessat2", {0}, ALLOWED},
	{"close_range", {0}, ALLOWED},
	{"membarrier", {0}, ALLOWED},
	{"ptrace", {0}, ALLOWED},
};

static void default_profile_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(questions); i++) {
		const struct question *q = &questions[i];
		struct seccomp_data data = {.nr = seccomp_call_number(q->name),
		                            .arch = ARCH_NATIVE};
		uint32_t answer;

		if (data.nr == CALL_ELSEWHERE)
			continue;
		assert_true(data.nr >= 0);
		memcpy(data.args, q->args, sizeof q->args);
		answer = ask(seccomp_default_filter(), &data);
		if (answer != q->answer)
			fail_msg("question %zu, %s(%#llx, %#llx, %#llx): %#x, not %#x", i, q->name,
			         (unsigned long long)q->args[0], (unsigned long long)q->args[1],
			         (unsigned long long)q->args[2], answer, q->answer);
	}
}

/* ---- the kernel's word: children under the filter ---- */

enum { RESULTS_MAX = 128 };

struct shared {
	int ready; /* the listener's number in the child */
	int count;
	struct {
		long value;
		int error; /* errno, 0 where the call worked */
	} results[RESULTS_MAX];
	struct err e;
};

static void *shared_new(void)
{
	void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

/* Records what a call gave. */
#define TRIED(shared, call)                                                                        \
	do {                                                                                       \
		errno = 0;                                                                         \
		long value_ = (long)(call);                                                        \
		(shared)->results[(shared)->count].error = value_ < 0 ? errno : 0;                 \
		(shared)->results[(shared)->count++].value = value_;                               \
	} while (0)

static int listener_take(pid_t child, int number)
{
	scoped_fd pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	int fd;

	assert_true(pidfd >= 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	assert_true(fd >= 0);
	return fd;
}

/* Forks a child that installs the built-in filter, then runs BODY. *LISTENERFD is ours. */
static pid_t child_start(struct shared *shared, void (*body)(struct shared *), int *listenerfd)
{
	int ready[2], go[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC) | pipe2(go, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    seccomp_filter_install(seccomp_default_filter(), &shared->ready, &shared->e) ||
		    write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(100);
		close(shared->ready);
		body(shared);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		fail_msg("%s", shared->e.text);
	*listenerfd = listener_take(child, shared->ready);
	assert_int_equal(write(go[1], "", 1), 1);
	close(ready[0]);
	close(go[0]);
	close(go[1]);
	return child;
}

/*
 * Runs BODY in a child under the filter, answers until all under it are gone. Kernels before 6.11
 * call a process gone only when it has been waited for.
 */
static void in_sandbox(void (*body)(struct shared *), struct shared *shared,
                       struct seccomp_denials *denials)
{
	scoped_fd listenerfd = -1;
	pid_t child = child_start(shared, body, &listenerfd);
	scoped_fd pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd pollers[] = {{.fd = listenerfd, .events = POLLIN},
	                           {.fd = pidfd, .events = POLLIN}};
	int status = -1, answered = 0;
	struct err e = {0};

	assert_true(pidfd >= 0);
	do {
		assert_true(poll(pollers, 2, -1) > 0);
		if (pollers[1].revents) {
			assert_int_equal(waitpid(child, &status, 0), child);
			pollers[1].fd = -1;
		}
		if (pollers[0].revents)
			answered = seccomp_notify_answer(listenerfd, denials, &e);
	} while (answered >= 0);
	assert_int_equal(answered, -EPIPE);
	if (status == -1)
		assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the child ended with the status %#x", (unsigned)status);
}

static uint64_t denied(const struct seccomp_denials *denials, int number)
{
	for (int i = 0; i < denials->calls_count; i++)
		if (denials->calls[i].number == number)
			return denials->calls[i].count;
	return 0;
}

static void forbid_body(struct shared *s)
{
	TRIED(s, syscall(SYS_mount, 0, 0, 0, 0, 0));
	TRIED(s, syscall(SYS_mount, 0, 0, 0, 0, 0));
	TRIED(s, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
	TRIED(s, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | HIGH_BITS, 0, 0, 0, 0));
	TRIED(s, syscall(SYS_unshare, CLONE_NEWNS));
	TRIED(s, syscall(SYS_ioctl, 0, TIOCSTI, ""));
	TRIED(s, syscall(SYS_ioctl, 0, TIOCSTI | HIGH_BITS, ""));
	TRIED(s, syscall(SYS_ioctl, 0, TIOCLINUX | 0xffffffff00000000, ""));
	TRIED(s, syscall(SYS_personality, READ_IMPLIES_EXEC));
	TRIED(s, syscall(SYS_bpf, 0, 0, 0));
	TRIED(s, syscall(SYS_io_uring_setup, 1, 0));
	TRIED(s, syscall(SYS_keyctl, 0, 0, 0, 0, 0));
	TRIED(s, syscall(SYS_mknodat, AT_FDCWD, "/tmp/x", S_IFCHR, 0));
	TRIED(s, socket(AF_VSOCK, SOCK_STREAM, 0));
	TRIED(s, socket(AF_PACKET, SOCK_RAW, 0));
	TRIED(s, socket(AF_ALG, SOCK_SEQPACKET, 0));
	TRIED(s, socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
	TRIED(s, socket(AF_INET, SOCK_RAW, IPPROTO_TCP));
}

static void forbidden_is_eperm_and_counted(void **state)
{
	struct shared *shared = shared_new();
	struct seccomp_denials denials = {0};

	(void)state;
	in_sandbox(forbid_body, shared, &denials);
	assert_int_equal(shared->count, 18);
	for (int i = 0; i < shared->count; i++)
		if (shared->results[i].value != -1 || shared->results[i].error != EPERM)
			fail_msg("call %d gave %ld, errno %d", i, shared->results[i].value,
			         shared->results[i].error);
	assert_int_equal(denials.total, 18);
	assert_int_equal(denials.calls_count, 10);
	assert_int_equal(denied(&denials, SYS_mount), 2);
	assert_int_equal(denied(&denials, SYS_clone), 2);
	assert_int_equal(denied(&denials, SYS_ioctl), 3);
	assert_int_equal(denied(&denials, SYS_socket), 5);
	assert_int_equal(denied(&denials, SYS_bpf), 1);
	munmap(shared, sizeof *shared);
}

static void unknown_body(struct shared *s)
{
	TRIED(s, syscall(999));
	TRIED(s, syscall(SYS_clone3, 0, 0));
	TRIED(s, syscall(400));
	TRIED(s, syscall(-1));
	TRIED(s, syscall(SYS_kcmp, 0, 0, 0, 0, 0));
#ifdef __x86_64__
	TRIED(s, syscall(0x40000000 | SYS_getpid));
	TRIED(s, syscall(0x40000000 | SYS_mount, 0, 0, 0, 0, 0));
#endif
}

static void unknown_is_enosys_and_not_counted(void **state)
{
	struct shared *shared = shared_new();
	struct seccomp_denials denials = {0};

	(void)state;
	in_sandbox(unknown_body, shared, &denials);
	assert_true(shared->count >= 5);
	for (int i = 0; i < shared->count; i++)
		if (shared->results[i].value != -1 || shared->results[i].error != ENOSYS)
			fail_msg("call %d gave %ld, errno %d", i, shared->results[i].value,
			         shared->results[i].error);
	assert_int_equal(denials.total, 0);
	munmap(shared, sizeof *shared);
}

static void *thread_body(void *argument)
{
	*(int *)argument = 42;
	return NULL;
}

static int run_true(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	return child > 0 && waitpid(child, &status, 0) == child && !status ? 0 : -1;
}

/* PTRACE_ATTACH as LeakSanitizer and debuggers do it. */
static int trace_child(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_CONT, child, 0, 0) || waitpid(child, &status, 0) != child)
		return -1;
	return status;
}

/* As a kernel without filters answers, so that programs do without. */
static int filters_refused(void)
{
	const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_filter code = allow;
	const struct sock_fprog program = {1, &code};

	for (unsigned flags = 0; flags <= SECCOMP_FILTER_FLAG_NEW_LISTENER; flags++)
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != -1 ||
		    errno != EINVAL)
			return -1;
	for (int mode = SECCOMP_MODE_STRICT; mode <= SECCOMP_MODE_FILTER; mode++)
		if (prctl(PR_SET_SECCOMP, mode, &program) != -1 || errno != EINVAL)
			return -1;
	/* the kernel itself refuses it to who has a filter */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == -1 && errno == EINVAL ? 0
	                                                                                       : -1;
}

static void allow_body(struct shared *s)
{
	pthread_t thread;
	int answer = 0, pair[2];

	TRIED(s, -pthread_create(&thread, NULL, thread_body, &answer));
	TRIED(s, -pthread_join(thread, NULL));
	TRIED(s, answer == 42 ? 0 : -1);
	TRIED(s, run_true());
	TRIED(s, trace_child());
	TRIED(s, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	TRIED(s, socket(AF_INET, SOCK_STREAM, IPPROTO_TCP));
	TRIED(s, socket(AF_INET, SOCK_DGRAM, 0));
	TRIED(s, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	TRIED(s, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	TRIED(s, personality(0xffffffff));
	TRIED(s, syscall(SYS_unshare, CLONE_FS | CLONE_FILES));
	TRIED(s, memfd_create("x", MFD_CLOEXEC));
	TRIED(s, mlock(&answer, sizeof answer));
	TRIED(s, filters_refused());
}

static void allowed_works(void **state)
{
	struct shared *shared = shared_new();
	struct seccomp_denials denials = {0};

	(void)state;
	in_sandbox(allow_body, shared, &denials);
	assert_int_equal(shared->count, 15);
	for (int i = 0; i < shared->count; i++)
		if (shared->results[i].value < 0)
			fail_msg("call %d gave %ld, errno %d", i, shared->results[i].value,
			         shared->results[i].error);
	assert_int_equal(denials.total, 0);
	munmap(shared, sizeof *shared);
}

#ifdef __x86_64__
/* getpid by the 32-bit table, where it is 20 */
static long i386_getpid(void)
{
	long result;

	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "a"(20L)
	                 : "r8", "r9", "r10", "r11", "memory", "cc");
	return (int)result;
}

static void i386_body(struct shared *s)
{
	s->results[s->count++].value = i386_getpid();
}

static void i386_is_enosys(void **state)
{
	struct shared *shared = shared_new();
	struct seccomp_denials denials = {0};
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(i386_getpid() == getpid() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status) {
		munmap(shared, sizeof *shared);
		print_message("this kernel has no 32-bit calls\n");
		skip();
	}
	in_sandbox(i386_body, shared, &denials);
	assert_int_equal(shared->results[0].value, -ENOSYS);
	munmap(shared, sizeof *shared);
}
#endif

/* ---- the listener ---- */

enum { NETLINK_TRIES = SECCOMP_NETLINK_MAX + 10 };

static void netlink_body(struct shared *s)
{
	for (int i = 0; i < NETLINK_TRIES; i++) {
		TRIED(s, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
		/* closing one makes no room: who holds it is not known */
		if (i % 2)
			close((int)s->results[s->count - 1].value);
	}
}

static void first_netlink_sockets_pass(void **state)
{
	struct shared *shared = shared_new();
	struct seccomp_denials denials = {0};

	(void)state;
	in_sandbox(netlink_body, shared, &denials);
	assert_int_equal(shared->count, NETLINK_TRIES);
	for (int i = 0; i < NETLINK_TRIES; i++)
		assert_int_equal(shared->results[i].error, i < SECCOMP_NETLINK_MAX ? 0 : EPERM);
	assert_int_equal(denials.total, NETLINK_TRIES - SECCOMP_NETLINK_MAX);
	assert_int_equal(denied(&denials, SYS_socket), NETLINK_TRIES - SECCOMP_NETLINK_MAX);
	munmap(shared, sizeof *shared);
}

#define AN_ARG(index, value) "{\"index\":" #index ",\"type\":\"int\",\"values\":[" #value "]}"
#define FEW_NETLINK          ",\"few\":[{\"name\":\"netlink_route\",\"why\":\"\"}]"

static const struct netlink_profile {
	const char *rest;
	uint32_t answer, others;
} netlink_profiles[] = {
	/* what a profile forbids never reaches a listener that would let it pass */
	{",\"forbid\":[{\"names\":[\"socket\"],\"why\":\"\"}]", SECCOMP_RET_ERRNO | EPERM,
         FORBIDDEN},
	{",\"allow\":[\"socket\"],\"forbid_when\":[{\"name\":\"socket\",\"why\":\"\",\"args\":"
         "[" AN_ARG(0, 16) "]}]",
         SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ERRNO | EPERM},
	{",\"allow_when\":[{\"name\":\"socket\",\"why\":\"\",\"args\":[" AN_ARG(0, 1) "]}]",
         SECCOMP_RET_ERRNO | EPERM, FORBIDDEN},
	/* what it allows, it allows */
	{",\"allow\":[\"socket\"]", ALLOWED, ALLOWED},
	{",\"allow_when\":[{\"name\":\"socket\",\"why\":\"\",\"args\":[" AN_ARG(2, 0) "]}]",
         ALLOWED, FORBIDDEN},
	/* where it says so, the listener decides */
	{",\"allow\":[\"socket\"]" FEW_NETLINK, FORBIDDEN, ALLOWED},
	{",\"allow\":[\"socket\"],\"errno_when\":[{\"name\":\"socket\",\"why\":\"\","
         "\"errno\":\"EACCES\",\"args\":[" AN_ARG(0, 16) "]}]" FEW_NETLINK,
         SECCOMP_RET_ERRNO | EACCES, SECCOMP_RET_ERRNO | EACCES},
};

static void only_a_profile_lets_netlink_pass(void **state)
{
	struct seccomp_data route = {.nr = SYS_socket,
	                             .arch = ARCH_NATIVE,
	                             .args = {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}};
	struct seccomp_data other = {.nr = SYS_socket,
	                             .arch = ARCH_NATIVE,
	                             .args = {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}};

	(void)state;
	for (size_t i = 0; i < COUNT(netlink_profiles); i++) {
		char json[1024];
		struct seccomp_filter filter;

		snprintf(json, sizeof json, "{" HEAD DENY "%s}", netlink_profiles[i].rest);
		filter = compile(json);
		if (ask(&filter, &route) != netlink_profiles[i].answer ||
		    ask(&filter, &other) != netlink_profiles[i].others)
			fail_msg("%s: %#x, %#x", json, ask(&filter, &route), ask(&filter, &other));
		compare_all(json, strlen(json));
		seccomp_filter_release(&filter);
	}
}

static void flood_body(struct shared *s)
{
	for (int number = 0; number <= LAST_CALL; number++) {
		struct seccomp_data data = {.nr = number, .arch = ARCH_NATIVE};

		/* by the filter's own word, so that nothing is called that would be let through */
		if (ask(seccomp_default_filter(), &data) != FORBIDDEN)
			continue;
		TRIED(s, syscall(number, 0, 0, 0, 0, 0, 0));
	}
	for (int i = 0; i < 5; i++)
		syscall(SYS_reboot, 0, 0, 0, 0);
}

static void more_kinds_than_fit(void **state)
{
	struct shared *shared = shared_new();
	struct seccomp_denials denials = {0};
	uint64_t sum = 0;

	(void)state;
	in_sandbox(flood_body, shared, &denials);
	assert_true(shared->count > SECCOMP_DENIED_MAX);
	for (int i = 0; i < shared->count; i++)
		assert_int_equal(shared->results[i].error, EPERM);
	assert_int_equal(denials.calls_count, SECCOMP_DENIED_MAX);
	assert_int_equal(denials.total, shared->count + 5);
	for (int i = 0; i < denials.calls_count; i++)
		sum += denials.calls[i].count;
	assert_true(sum >= SECCOMP_DENIED_MAX && sum < denials.total);
	munmap(shared, sizeof *shared);
}

/* A process under the filter whose child waits in a forbidden call, is killed, and is reaped. */
static void dying_body(struct shared *s)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		syscall(SYS_mount, 0, 0, 0, 0, 0);
		_exit(0);
	}
	s->results[0].value = child;
	waitpid(child, &status, 0);
	s->results[1].value = WIFSIGNALED(status) ? WTERMSIG(status) : -1;
	kill(getpid(), SIGSTOP);
	/* still under the filter and alive: the listener stays of use */
	syscall(SYS_mount, 0, 0, 0, 0, 0);
}

static void caller_dies_before_the_answer(void **state)
{
	struct shared *shared = shared_new();
	struct seccomp_denials denials = {0};
	scoped_fd listenerfd = -1;
	pid_t child = child_start(shared, dying_body, &listenerfd);
	struct pollfd poller = {.fd = listenerfd, .events = POLLIN};
	int status;
	struct err e;

	(void)state;
	assert_int_equal(poll(&poller, 1, -1), 1);
	assert_true(poller.revents & POLLIN);
	while (!*(volatile long *)&shared->results[0].value)
		sched_yield();
	assert_int_equal(kill((pid_t)shared->results[0].value, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(shared->results[1].value, SIGKILL);

	assert_int_equal(seccomp_notify_answer(listenerfd, &denials, &e), 0);
	assert_int_equal(denials.total, 0);

	kill(child, SIGCONT);
	assert_int_equal(poll(&poller, 1, -1), 1);
	assert_int_equal(seccomp_notify_answer(listenerfd, &denials, &e), 1);
	assert_int_equal(denied(&denials, SYS_mount), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(poll(&poller, 1, -1), 1);
	assert_int_equal(seccomp_notify_answer(listenerfd, &denials, &e), -EPIPE);
	assert_non_null(strstr(e.text, "no process is left"));
	munmap(shared, sizeof *shared);
}

static int install_in_child(bool no_new_privs, uid_t uid, const struct seccomp_filter *filter,
                            struct shared *shared, long probe)
{
	int status, listenerfd = -1;
	pid_t child = fork();

	if (child == 0) {
		if (setresuid(uid, uid, uid) ||
		    (no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
			_exit(100);
		shared->results[0].value = seccomp_filter_install(filter, &listenerfd, &shared->e);
		close(listenerfd);
		TRIED(shared, syscall(probe, 0, 0, 0, 0, 0));
		/* _exit of the sanitizers calls more than a narrow profile allows */
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* Who supervises is gone: still closed. */
static void without_a_listener_forbidden_is_enosys(void **state)
{
	struct shared *shared = shared_new();

	(void)state;
	assert_int_equal(install_in_child(true, 0, seccomp_default_filter(), shared, SYS_mount), 0);
	assert_int_equal(shared->results[0].value, -1);
	assert_int_equal(shared->results[0].error, ENOSYS);
	munmap(shared, sizeof *shared);
}

static void install_needs_no_new_privs(void **state)
{
	struct shared *shared = shared_new();

	(void)state;
	install_in_child(false, 65534, seccomp_default_filter(), shared, SYS_getpid);
	assert_int_equal(shared->e.code, EACCES);
	assert_non_null(strstr(shared->e.text, "set no_new_privs before"));
	munmap(shared, sizeof *shared);
}

/* The budget that all filters of a host share is used up. */
static void install_names_the_jit_limit(void **state)
{
	static const int codes[] = {524, ENOMEM};

	(void)state;
	for (size_t i = 0; i < COUNT(codes); i++) {
		struct shared *shared = shared_new();
		struct sock_filter code[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)codes[i]),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		const struct sock_fprog program = {COUNT(code), code};
		int status, listenerfd = -1;
		pid_t child = fork();

		if (child == 0) {
			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
				_exit(100);
			seccomp_filter_install(seccomp_default_filter(), &listenerfd, &shared->e);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(shared->e.code, codes[i]);
		assert_non_null(strstr(shared->e.text, "net.core.bpf_jit_limit"));
		munmap(shared, sizeof *shared);
	}
}

static void deny_by_errno_needs_no_listener(void **state)
{
	struct seccomp_filter filter = compile(
		"{\"version\":1,\"unknown\":\"ENOSYS\",\"deny\":"
		"{\"action\":\"errno\",\"errno\":\"EACCES\"},"
		"\"allow\":[\"exit_group\",\"close\"],"
		"\"forbid\":[{\"names\":[\"mount\"],\"why\":\"\"}]}");
	struct shared *shared = shared_new();

	(void)state;
	assert_false(filter.notifies);
	assert_int_equal(install_in_child(true, 0, &filter, shared, SYS_mount), 0);
	assert_int_equal(shared->results[0].error, EACCES);
	seccomp_filter_release(&filter);
	munmap(shared, sizeof *shared);
}

static void calls_have_names(void **state)
{
	char buffer[32];

	(void)state;
	assert_string_equal(seccomp_call_name(SYS_mount, buffer, sizeof buffer), "mount");
	assert_string_equal(seccomp_call_name(457, buffer, sizeof buffer), "statmount");
	assert_string_equal(seccomp_call_name(999, buffer, sizeof buffer), "syscall 999");
	assert_string_equal(seccomp_call_name(-10060, buffer, sizeof buffer), "syscall -10060");
	assert_string_equal(seccomp_call_name(999, buffer, 8), "syscall");
	assert_int_equal(seccomp_call_number("mount"), SYS_mount);
	assert_int_equal(seccomp_call_number("mseal"), 462);
	assert_int_equal(seccomp_call_number("socketcall"), CALL_ELSEWHERE);
	assert_int_equal(seccomp_call_number("opne"), CALL_UNKNOWN);
}

/* ---- profiles with one mistake each ---- */

#define DENY_ERRNO "\"deny\":{\"action\":\"errno\",\"errno\":\"EPERM\"}"

static const struct mistake {
	const char *json;
	const char *says[2];
} mistakes[] = {
	{"", {"seccomp profile"}},
	{"[]", {"not an object"}},
	{"{" HEAD DENY "} x", {"seccomp profile"}},
	{"{" HEAD DENY ",\"alow\":[]}", {"alow"}},
	{"{\"version\":2,\"unknown\":\"ENOSYS\"," DENY "}", {"version: 2"}},
	{"{\"unknown\":\"ENOSYS\"," DENY "}", {"version"}},
	{"{\"version\":1," DENY "}", {"unknown"}},
	{"{\"version\":1,\"unknown\":\"ENOSUCH\"," DENY "}", {"unknown: \"ENOSUCH\""}},
	{"{" HEAD "\"allow\":[]}", {"deny"}},
	{"{" HEAD "\"deny\":{\"action\":\"kill\",\"errno\":\"EPERM\"}}", {"deny: action", "kill"}},
	{"{" HEAD "\"deny\":{\"action\":\"notify\",\"errno\":\"EACCES\"}}",
         {"deny: errno", "EPERM"}},
	{"{" HEAD "\"deny\":{\"action\":\"errno\"}}", {"deny: ", "errno"}},
	{"{" HEAD "\"deny\":{\"action\":\"errno\",\"errno\":\"EPERM\",\"x\":1}}", {"deny: ", "x"}},
	{"{" HEAD DENY ",\"allow\":{}}", {"allow"}},
	{"{" HEAD DENY ",\"allow\":[7]}", {"allow[0]", "not the name"}},
	{"{" HEAD DENY ",\"allow\":[\"read\",\"opne\"]}", {"allow[1]", "\"opne\""}},
	{"{" HEAD DENY ",\"allow\":[\"read\",\"read\"]}", {"allow[1]", "answer already"}},
	{"{" HEAD DENY ",\"allow\":[\"bpf\"],\"forbid\":[{\"names\":[\"bpf\"],\"why\":\"\"}]}",
         {"forbid[0]", "\"bpf\" has its answer already"}},
	{"{" HEAD DENY ",\"forbid\":[{\"names\":[\"bpf\"]}]}", {"forbid[0]", "why"}},
	{"{" HEAD DENY ",\"forbid\":[{\"names\":[1],\"why\":\"\"}]}", {"names[0]"}},
	{"{" HEAD DENY ",\"forbid\":[\"bpf\"]}", {"forbid[0]", "not an object"}},
	{"{" HEAD DENY ",\"errno\":[{\"names\":[\"bpf\"],\"errno\":\"7\",\"why\":\"\"}]}",
         {"errno[0]: errno", "\"7\""}},
	{"{" HEAD DENY ",\"allow\":[\"clone\"],\"allow_when\":[{\"name\":\"clone\",\"why\":\"\","
         "\"args\":[{\"index\":0,\"type\":\"int\",\"values\":[0]}]}]}",
         {"allow_when[0]", "answer already"}},
	{"{" HEAD DENY ",\"allow_when\":[{\"name\":\"clone\",\"why\":\"\",\"args\":[]}]}",
         {"allow_when[0]", "args: 0 conditions"}},
	{WHEN("forbid_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"values\":[1]}"),
         {"forbid_when[0]", "allow or allow_when"}},
	{WHEN("allow_when", "opne", "{\"index\":1,\"type\":\"int\",\"values\":[1]}"), {"\"opne\""}},
	{"{" HEAD DENY ",\"allow\":[\"socket\"],\"few\":[{\"name\":\"socket\",\"why\":\"\"}]}",
         {"few[0]", "\"netlink_route\""}},
	{"{" HEAD DENY ",\"allow\":[\"socket\"],\"few\":[{\"name\":\"netlink_route\"}]}",
         {"few[0]", "why"}},
	{"{" HEAD DENY_ERRNO ",\"allow\":[\"socket\"]" FEW_NETLINK "}", {"few[0]", "\"notify\""}},
	{"{" HEAD DENY FEW_NETLINK "}", {"few[0]", "allow or allow_when"}},
	{WHEN("allow_when", "ioctl", "7"), {"args[0]", "not an object"}},
	{WHEN("allow_when", "ioctl", "{\"index\":6,\"type\":\"int\",\"values\":[1]}"),
         {"args[0]", "index"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"values\":[1]}"), {"args[0]", "type"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"short\",\"values\":[1]}"),
         {"type: \"short\""}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"op\":\"eq\",\"values\":[1]}"),
         {"args[0]", "op"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"values\":[]}"),
         {"values: 0"}},
	{WHEN("allow_when", "ioctl",
              "{\"index\":1,\"type\":\"int\",\"values\":[1,2,3,4,5,6,7,8,9]}"),
         {"values: 9"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"values\":[-1]}"),
         {"values[0]", "-1"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"values\":[\"0xg\"]}"),
         {"values[0]", "0xg"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"values\":[\"12\"]}"),
         {"values[0]"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"values\":[1.5]}"),
         {"values[0]"}},
	{WHEN("allow_when", "ioctl",
              "{\"index\":1,\"type\":\"long\",\"values\":[\"0x10000000000000000\"]}"),
         {"values[0]"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"values\":[\"0x100000000\"]}"),
         {"values[0]", "could never match"}},
	{WHEN("allow_when", "ioctl",
              "{\"index\":1,\"type\":\"int\",\"mask\":\"0x7\",\"values\":[\"0x8\"]}"),
         {"values[0]", "could never match"}},
	{WHEN("allow_when", "ioctl", "{\"index\":1,\"type\":\"int\",\"mask\":0,\"values\":[0]}"),
         {"mask"}},
	{WHEN("allow_when", "ioctl",
              "{\"index\":1,\"type\":\"int\",\"mask\":\"0x100000000\",\"values\":[0]}"),
         {"mask"}},
};

static void mistakes_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(mistakes); i++) {
		const struct mistake *m = &mistakes[i];
		struct seccomp_filter filter = {.length = 77};
		struct err e = {0};

		if (seccomp_filter_compile(m->json, strlen(m->json), &filter, &e) >= 0)
			fail_msg("%s was taken", m->json);
		assert_int_equal(filter.length, 77);
		for (size_t s = 0; s < COUNT(m->says) && m->says[s]; s++)
			if (!strstr(e.text, m->says[s]) ||
			    strncmp(e.text, "seccomp profile: ", 17) != 0)
				fail_msg("%s: \"%s\" lacks \"%s\"", m->json, e.text, m->says[s]);
	}
}

static void calls_of_other_architectures_are_skipped(void **state)
{
	struct seccomp_filter filter = compile(
		"{" HEAD DENY ",\"allow\":[\"read\",\"socketcall\",\"mmap2\"],\"allow_when\":"
		"[{\"name\":\"socketcall\",\"why\":\"\",\"args\":"
		"[{\"index\":0,\"type\":\"int\",\"values\":[1]}]}]}");
	struct seccomp_data data = {.nr = SYS_read, .arch = ARCH_NATIVE};

	(void)state;
	assert_int_equal(ask(&filter, &data), ALLOWED);
	seccomp_filter_release(&filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builtin_is_the_profile),
		cmocka_unit_test(every_call_is_classified),
		cmocka_unit_test(program_is_the_default_policy),
		cmocka_unit_test(program_is_a_large_policy),
		cmocka_unit_test(too_large_is_an_error),
		cmocka_unit_test(largest_rule_fits),
		cmocka_unit_test(program_is_small),
		cmocka_unit_test(default_profile_answers),
		cmocka_unit_test(forbidden_is_eperm_and_counted),
		cmocka_unit_test(unknown_is_enosys_and_not_counted),
		cmocka_unit_test(allowed_works),
#ifdef __x86_64__
		cmocka_unit_test(i386_is_enosys),
#endif
		cmocka_unit_test(first_netlink_sockets_pass),
		cmocka_unit_test(only_a_profile_lets_netlink_pass),
		cmocka_unit_test(more_kinds_than_fit),
		cmocka_unit_test(caller_dies_before_the_answer),
		cmocka_unit_test(without_a_listener_forbidden_is_enosys),
		cmocka_unit_test(install_needs_no_new_privs),
		cmocka_unit_test(install_names_the_jit_limit),
		cmocka_unit_test(deny_by_errno_needs_no_listener),
		cmocka_unit_test(calls_have_names),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(calls_of_other_architectures_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
