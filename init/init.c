/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentdock-init: pid 1 of a sandbox. It hands signals on to the one command, which has been started
 * by the process that it was before its exec, says how that ended (see init/protocol.h), and reaps
 * whatever is left to it until nothing is.
 *
 * It owns INIT_FD and the command's pid. It runs with the command's identity and below its filter,
 * so it is itself untrusted to the outside; what protects it from the guest is that its file can't
 * be read (runtime/init_memfd.c), which makes it undumpable.
 *
 *  - Freestanding: no libc, no heap, no loader. An exec of it costs a few page faults.
 *  - Every signal is blocked from the first to the last instruction: none has a handler, so none
 *    can interrupt a call, and each is taken by rt_sigtimedwait only.
 *  - The command is signalled only before it is reaped, so its pid is never another process's.
 *  - It holds INIT_FD and no other descriptor: an end of file on the command's output means that the
 *    guest's processes let go of it.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/wait.h>

#include "init/protocol.h"
#include "init/system_call.h"

enum {
	EXIT_NOT_STARTED = 125,
	PID_MAX = 1 << 22, /* the kernel's */
	SIGSET_BYTES = 8,  /* what the kernel calls sizeof(sigset_t) */
	MSG_NOSIGNAL = 0x4000,
};

#if defined(__x86_64__)

__asm__(".text\n"
        ".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "	xorl %ebp, %ebp\n"
        "	movq %rsp, %rdi\n"
        "	andq $-16, %rsp\n"
        "	call init_main\n"
        "	hlt\n");

#elif defined(__aarch64__)

__asm__(".text\n"
        ".globl _start\n"
        ".type _start, %function\n"
        "_start:\n"
        "	mov x29, #0\n"
        "	mov x30, #0\n"
        "	mov x0, sp\n"
        "	bl init_main\n"
        "	brk #0\n");

#else
#error "agentdock-init knows x86_64 and aarch64"
#endif

static const unsigned long every_signal = ~0UL;

/* Not handed on: what is about pid 1 itself, a child's end or a fault, whoever sent it. */
#define BIT(signo) (1UL << ((signo)-1))
static const unsigned long private_signals = BIT(SIGCHLD) | BIT(SIGSEGV) | BIT(SIGBUS) |
                                             BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGABRT) |
                                             BIT(SIGTRAP) | BIT(SIGSYS);

__attribute__((noreturn)) static void quit(int status)
{
	for (;;)
		CALL1(__NR_exit_group, status);
}

/* Nobody is left to tell when this fails: the outside sees the end of file and the exit status. */
static void tell(int kind, int value)
{
	struct init_message message = {.kind = kind, .value = value};

	system_call(__NR_sendto, INIT_FD, (long)&message, sizeof message, MSG_NOSIGNAL, 0, 0);
}

/*
 * One child and one signal in turn, so that neither a storm of orphans nor one of signals keeps the
 * other waiting. SIGCHLD is only what ends the wait: a guest may send it, merge it or drown it, and
 * each turn looks for children anyway.
 */
__attribute__((noreturn)) static void reap_and_forward(long pid)
{
	static const struct {
		long seconds, nanoseconds;
	} at_once;

	for (;;) {
		int status = 0;
		long child = CALL4(__NR_wait4, -1, &status, WNOHANG | __WALL, 0);
		long signo;

		if (child == -ECHILD)
			quit(0);
		if (child > 0 && (status & 0xff) == 0x7f) {
			/* stopped, because it asked us to trace it: let go of it */
			CALL4(__NR_ptrace, PTRACE_DETACH, child, 0, status >> 8 & 0xff);
		} else if (child == pid) {
			pid = 0;
			tell(INIT_EXITED, status);
		}
		signo = CALL4(__NR_rt_sigtimedwait, &every_signal, 0, child > 0 ? &at_once : 0,
		              SIGSET_BYTES);
		if (signo > 0 && pid > 0 && !(private_signals & BIT(signo)))
			CALL2(__NR_kill, pid, signo);
	}
}

/* A pid in decimal digits; 0 for anything else. */
static long parse_pid(const char *text)
{
	long pid = 0;

	for (; *text >= '0' && *text <= '9' && pid <= PID_MAX; text++)
		pid = pid * 10 + *text - '0';
	return *text || pid > PID_MAX ? 0 : pid;
}

__attribute__((noreturn, used)) static void init_main(long *stack)
{
	long argc = stack[0];
	char **argv = (char **)(stack + 1);
	long pid = argc == 2 ? parse_pid(argv[1]) : 0;

	CALL4(__NR_rt_sigprocmask, SIG_SETMASK, &every_signal, 0, SIGSET_BYTES);
	if (pid == 0 || CALL3(__NR_fcntl, INIT_FD, F_SETFD, FD_CLOEXEC) < 0)
		quit(EXIT_NOT_STARTED);
	CALL2(__NR_prctl, PR_SET_NAME, "agentdock-init");
	reap_and_forward(pid);
}
