/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe WHAT [ARGUMENT...]: prints, from inside a container, what no shell can ask the kernel for; and
 * plays, outside, those at the other end of a runtime's sockets. A static program of its own, linked
 * with nothing of ours, so that it tells the same of any runtime. Exits with 2 where it could not ask.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failed(const char *what)
{
	fprintf(stderr, "probe: %s: %s\n", what, strerror(errno));
	return 2;
}

/* ---- what a process has ---- */

/* As the kernel has it: its header for it and glibc's <sched.h> exclude each other. */
struct scheduling {
	uint32_t size, sched_policy;
	uint64_t sched_flags;
	int32_t sched_nice;
	uint32_t sched_priority;
	uint64_t sched_runtime, sched_deadline, sched_period;
	uint32_t sched_util_min, sched_util_max;
};

static int scheduler(char **args)
{
	struct scheduling attr = {.size = sizeof attr};

	(void)args;
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) < 0)
		return failed("sched_getattr");
	printf("policy=%u nice=%d priority=%u flags=%llu runtime=%llu deadline=%llu period=%llu "
	       "min=%u max=%u\n",
	       attr.sched_policy, attr.sched_nice, attr.sched_priority,
	       (unsigned long long)attr.sched_flags, (unsigned long long)attr.sched_runtime,
	       (unsigned long long)attr.sched_deadline, (unsigned long long)attr.sched_period,
	       attr.sched_util_min, attr.sched_util_max);
	return 0;
}

static int io_priority(char **args)
{
	long value = syscall(SYS_ioprio_get, 1, 0);

	(void)args;
	if (value < 0)
		return failed("ioprio_get");
	printf("class=%ld priority=%ld\n", value >> 13, value & 7);
	return 0;
}

static int memory_policy(char **args)
{
	unsigned long nodes[16] = {0};
	int mode;

	(void)args;
	if (syscall(SYS_get_mempolicy, &mode, nodes, sizeof nodes * 8, NULL, 0) < 0)
		return failed("get_mempolicy");
	printf("mode=%d flags=%d nodes=%lx\n", mode & 0xfff, mode & ~0xfff, nodes[0]);
	return 0;
}

static int execution_domain(char **args)
{
	(void)args;
	printf("%x\n", (unsigned)personality(0xffffffff));
	return 0;
}

static int secure_bits(char **args)
{
	(void)args;
	printf("%d\n", prctl(PR_GET_SECUREBITS));
	return 0;
}

static int session_keyring(char **args)
{
	char text[256] = "";

	(void)args;
	if (syscall(SYS_keyctl, KEYCTL_DESCRIBE, KEY_SPEC_SESSION_KEYRING, text, sizeof text - 1) <
	    0)
		return failed("keyctl");
	puts(text);
	return 0;
}

static int clocks(char **args)
{
	struct timespec monotonic, boottime;

	(void)args;
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_BOOTTIME, &boottime);
	printf("%lld.%09ld %lld.%09ld\n", (long long)monotonic.tv_sec, monotonic.tv_nsec,
	       (long long)boottime.tv_sec, boottime.tv_nsec);
	return 0;
}

static int window_size(char **args)
{
	struct winsize size;

	(void)args;
	if (ioctl(0, TIOCGWINSZ, &size) < 0)
		return failed("TIOCGWINSZ");
	printf("%d rows %d columns\n", size.ws_row, size.ws_col);
	return 0;
}

/* ---- system calls under a filter ---- */

/* NUMBER [ARGUMENT...]: prints what it returned, or the errno with a minus */
static int call(char **args)
{
	unsigned long value[7] = {0};
	long r;

	for (int i = 0; i < 7 && args[i]; i++)
		value[i] = strtoul(args[i], NULL, 0);
	r = syscall((long)value[0], value[1], value[2], value[3], value[4], value[5], value[6]);
	printf("%ld\n", r < 0 ? -(long)errno : r);
	return 0;
}

static void tell_signal(int signo, siginfo_t *info, void *context)
{
	(void)context;
	printf("signal %d code %d call %d errno %d\n", signo, info->si_code, info->si_syscall,
	       info->si_errno);
	fflush(stdout);
	_exit(0);
}

/* As call, with SIGSYS told of */
static int trap(char **args)
{
	struct sigaction action = {.sa_sigaction = tell_signal, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &action, NULL);
	return call(args);
}

static void *in_thread(void *args)
{
	call(args);
	return NULL;
}

/* As call, by a thread that is not the first: says whether the process outlives it */
static int thread(char **args)
{
	pthread_t id;

	errno = pthread_create(&id, NULL, in_thread, args);
	if (errno)
		return failed("pthread_create");
	pthread_join(id, NULL);
	puts("survived");
	return 0;
}

/* As call, by a child that is traced: prints the message of SECCOMP_RET_TRACE */
static int trace(char **args)
{
	unsigned long message;
	int gate[2], status;
	pid_t pid;

	if (pipe(gate) < 0 || (pid = fork()) < 0)
		return failed("fork");
	if (pid == 0) {
		close(gate[1]);
		_exit(read(gate[0], &status, sizeof status) == 0 ? call(args) : 2);
	}
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) < 0)
		return failed("ptrace");
	close(gate[1]);
	if (waitpid(pid, &status, __WALL) != pid)
		return failed("waitpid");
	if (!WIFSTOPPED(status)) {
		puts("not traced");
		return 0;
	}
	ptrace(PTRACE_GETEVENTMSG, pid, 0, &message);
	printf("traced %lu\n", message);
	return 0;
}

/* A call by way of the 32-bit gate: NUMBER. Prints as call does */
static int call32(char **args)
{
#ifdef __x86_64__
	long r = strtol(args[0], NULL, 0);

	__asm__ volatile("int $0x80" : "+a"(r) : "b"(0), "c"(0), "d"(0) : "memory");
	printf("%ld\n", (long)(int)r);
	return 0;
#else
	(void)args;
	errno = ENOSYS;
	return failed("the 32-bit gate");
#endif
}

/* ---- the other ends of sockets ---- */

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(fd, 8) < 0)
		return -1;
	return fd;
}

/* One message, and the one descriptor that came with it, or -1. */
static ssize_t receive(int fd, char *text, size_t size, int *passed, int *count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec part = {text, size};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = &control,
	                         .msg_controllen = sizeof control};
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);

	if (header && header->cmsg_type == SCM_RIGHTS) {
		*count += (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(passed, CMSG_DATA(header), sizeof *passed);
	}
	return n;
}

/* Answers each call that the filter asks about with -77, until its last process is gone. */
static int answer(int listener)
{
	struct seccomp_notif_resp response = {.error = -77};
	struct seccomp_notif request = {0};

	while (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) == 0) {
		response.id = request.id;
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0 && errno != ENOENT)
			return failed("SECCOMP_IOCTL_NOTIF_SEND");
		memset(&request, 0, sizeof request);
	}
	return 0;
}

/*
 * PATH: a seccomp agent. Prints what comes, until the peer closes, and then how many descriptors came;
 * answers from the time it has a listener.
 */
static int agent(char **args)
{
	char text[65536];
	int listening = listen_at(args[0]), listener = -1, count = 0, fd;
	bool answers = false;
	ssize_t n;

	if (listening < 0)
		return failed(args[0]);
	alarm(20); /* nobody may ever come */
	fd = accept(listening, NULL, NULL);
	while ((n = receive(fd, text, sizeof text, &listener, &count)) > 0) {
		fwrite(text, 1, (size_t)n, stdout);
		fflush(stdout);
		if (listener < 0 || answers)
			continue;
		answers = true;
		if (fork() == 0)
			return answer(listener);
	}
	printf("\ndescriptors %d\n%s\n", count, n == 0 ? "closed" : "broken");
	return 0;
}

static const struct {
	const char *name;
	int arguments; /* at least */
	int (*run)(char **args);
} probes[] = {
	{"scheduler", 0, scheduler},
	{"ioprio", 0, io_priority},
	{"mempolicy", 0, memory_policy},
	{"personality", 0, execution_domain},
	{"securebits", 0, secure_bits},
	{"keyring", 0, session_keyring},
	{"clocks", 0, clocks},
	{"size", 0, window_size},
	{"call", 1, call},
	{"trap", 1, trap},
	{"thread", 1, thread},
	{"trace", 1, trace},
	{"call32", 1, call32},
	{"agent", 1, agent},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
		if (argc > 1 && strcmp(argv[1], probes[i].name) == 0 &&
		    argc - 2 >= probes[i].arguments)
			return probes[i].run(argv + 2);
	fprintf(stderr, "usage: probe WHAT [ARGUMENT...]\n");
	return 2;
}
