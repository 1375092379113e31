/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault LOG WHO INDEX FAULT COMMAND...: runs COMMAND and lets one of its system calls go wrong. WHO: 1 is
 * COMMAND's process, 2 those that it clones, together, till one executes a program. INDEX counts the
 * calls of each WHO from 1. FAULT: "kill" ends the process by SIGKILL before the call, "none" does nothing, a number
 * is the errno that the call fails with instead of being done.
 *
 * LOG gets a line "WHO INDEX NAME ARGUMENT" for the call, with "none" for all of both. The exit
 * status is COMMAND's. Processes that it leaves behind go on without us.
 */
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MAX = 64 };

static struct traced {
	pid_t pid;
	bool fails; /* the call that it is in */
} processes[PROCESSES_MAX];
static int count;
static long indexes[3]; /* of the calls of each WHO */
static bool over;       /* a program is executed: calls of 2 count no more */

static FILE *log_file;
static int who;
static long wanted;
static const char *fault;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "fault: %s: %s\n", what, strerror(errno));
	exit(99);
}

static struct traced *process_of(pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (processes[i].pid == pid)
			return &processes[i];
	if (count == PROCESSES_MAX) {
		errno = E2BIG;
		die("processes");
	}
	processes[count].pid = pid;
	return &processes[count++];
}

/* ---- registers ---- */

#ifdef __x86_64__
static void leave_out(pid_t pid)
{
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L))
		die("leaving a call out");
}

static void answer(pid_t pid, long value)
{
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), value))
		die("answering a call");
}
#else
enum { NT_PRSTATUS_ = 1, NT_ARM_SYSTEM_CALL_ = 0x404 };

static void leave_out(pid_t pid)
{
	int none = -1;
	struct iovec data = {&none, sizeof none};

	if (ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL_, &data))
		die("leaving a call out");
}

static void answer(pid_t pid, long value)
{
	struct user_regs_struct registers;
	struct iovec data = {&registers, sizeof registers};

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS_, &data))
		die("reading registers");
	registers.regs[0] = (unsigned long long)value;
	if (ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS_, &data))
		die("answering a call");
}
#endif

/* ---- the calls ---- */

static void say(int number, const struct __ptrace_syscall_info *info)
{
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)info->entry.nr);

	fprintf(log_file, "%d %ld %s %llu\n", number, indexes[number], name ? name : "?",
	        (unsigned long long)info->entry.args[0]);
	fflush(log_file);
	free(name);
}

static void enter(struct traced *process, const struct __ptrace_syscall_info *info)
{
	int number = process == processes ? 1 : 2;

	if (number == 2 && over)
		return;
	indexes[number]++;
	if (strcmp(fault, "none") == 0) {
		say(number, info);
		return;
	}
	if (number != who || indexes[number] != wanted)
		return;
	say(number, info);
	if (strcmp(fault, "kill") == 0) {
		kill(process->pid, SIGKILL);
		return;
	}
	leave_out(process->pid);
	process->fails = true;
}

static void at_call(struct traced *process)
{
	struct __ptrace_syscall_info info;

	/* who has been killed meanwhile cannot be asked */
	if (ptrace(PTRACE_GET_SYSCALL_INFO, process->pid, sizeof info, &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		enter(process, &info);
	} else if (process->fails) {
		answer(process->pid, -strtol(fault, NULL, 10));
		process->fails = false;
	}
}

static void stopped(struct traced *process, int status)
{
	int signo = WSTOPSIG(status), event = status >> 16;

	if (signo == (SIGTRAP | 0x80)) {
		at_call(process);
		signo = 0;
	} else if (event) {
		over |= event == PTRACE_EVENT_EXEC && process != processes;
		signo = 0;
	}
	ptrace(PTRACE_SYSCALL, process->pid, 0, signo);
}

static pid_t begin(char **command)
{
	int go[2];
	pid_t pid;
	char byte;

	if (pipe(go))
		die("pipe");
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 0) {
			close(go[0]);
			fclose(log_file);
			execv(*command, command);
		}
		die(*command);
	}
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0,
	                      PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
	                              PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK))
		die("PTRACE_SEIZE");
	close(go[0]);
	close(go[1]);
	return pid;
}

int main(int argc, char **argv)
{
	pid_t first, pid;
	int status;

	if (argc < 6) {
		fputs("usage: fault LOG WHO INDEX kill|none|ERRNO COMMAND...\n", stderr);
		return 99;
	}
	log_file = fopen(argv[1], "we");
	if (!log_file)
		die(argv[1]);
	who = (int)strtol(argv[2], NULL, 10);
	wanted = strtol(argv[3], NULL, 10);
	fault = argv[4];
	first = begin(argv + 5);
	process_of(first);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status))
			stopped(process_of(pid), status);
		else if (pid == first)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	die("waitpid");
}
