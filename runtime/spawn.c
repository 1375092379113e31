/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last row inside: the process that built the sandbox starts the command, says so, and only then
 * becomes agentdock-init. Nobody waits for that exec, but for its length the command runs beside a
 * pid 1 that is a copy of the launcher. Therefore, when the command starts:
 *
 *  - Nobody inside can read pid 1's memory, its environment or its descriptors (close_memory).
 *  - What anybody can read, its name and its command line, is that of agentdock-init; only how long the
 *    launcher's was can be told, until init is there.
 *  - It holds INIT_FD, the program of init, and what the command has for 0, 1 and 2, which it closes;
 *    the first two are close-on-exec, so the command never has them.
 *  - All its signals are blocked, and have no handler: init takes what came meanwhile.
 *
 * The child shares our memory until its exec, and we stand still for as long (CLONE_VFORK).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "base/unsafe.h"
#include "init/protocol.h"
#include "runtime/score.h"

enum { STACK_BYTES = 16 << 10, NOT_STARTED = 125 };

static const char init_name[] = "agentdock-init";

/* ---- what could be seen of the launcher ---- */

/* What /proc/1/cmdline shows. glibc calls a constructor with what main gets, as it is yet. */
static struct {
	char *begin, *end;
} command_line;

__attribute__((constructor)) static void find_command_line(int argc, char *argv[])
{
	if (argc <= 0)
		return;
	command_line.begin = argv[0];
	command_line.end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
}

/* Last, for the spec is full of pointers to there, and so is the list of walls that are left out. */
static void replace_command_line(void)
{
	size_t size = (size_t)(command_line.end - command_line.begin);

	if (!size)
		return;
	memset(command_line.begin, 0, size);
	snprintf(command_line.begin, size, "%s", init_name);
}

static char **copy_words(char *const words[])
{
	size_t count = words_count(words);
	char **copies = calloc(count + 1, sizeof *copies);

	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = strdup(words[i]);
		if (!copies[i])
			return NULL;
	}
	return copies;
}

int keep_words(struct inside *in, struct err *e)
{
	char **argv = copy_words(in->spec->argv), **envp = copy_words(in->spec->envp);

	if (!argv || !envp)
		return err_set(e, ENOMEM, "no memory for a copy of the command's words");
	in->given = *in->spec;
	in->given.argv = argv;
	in->given.envp = envp;
	in->spec = &in->given;
	return 0;
}

/*
 * The changes of user made us what the sysctl fs.suid_dumpable says, which may be readable, and for
 * user 0 without a user namespace there was no change. Before the filter, which may be an operator's
 * and forbid prctl. This lasts until the exec of init, whose file then decides (init_memfd.h).
 */
int close_memory(struct err *e)
{
	if (prctl(PR_SET_DUMPABLE, unsafe_without("unreadable pid 1")) ||
	    prctl(PR_SET_NAME, init_name))
		return err_sys(e, "prctl");
	return 0;
}

/* ---- the command ---- */

struct command {
	const char *program;
	char *const *argv, *const *envp;
	volatile int failure; /* an errno; 0: it is another program */
};

static int run_command(void *data)
{
	struct command *command = data;

	setsid();
	process_block_signals(false);
	execve(command->program, command->argv, command->envp);
	command->failure = errno;
	return NOT_STARTED;
}

static pid_t spawn(struct command *command)
{
	static _Alignas(16) char stack[STACK_BYTES];
	pid_t pid = clone(run_command, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD,
	                  command);

	if (pid < 0)
		command->failure = errno;
	return pid;
}

static int cannot_execute(struct inside *in, int code, struct err *e)
{
	char name[128];

	text_printable(in->spec->argv[0], name, sizeof name);
	in->fault = FAULT_CANT_EXECUTE;
	if (code == ENOENT)
		return err_set(e, code,
		               "%s: cannot be executed: its interpreter (#! line or ELF loader) is "
		               "not in the image",
		               name);
	if (code == ENOEXEC)
		return err_set(e, code,
		               "%s: cannot be executed: neither a program for this machine nor a "
		               "script with a #! line",
		               name);
	errno = code;
	return err_sys(e, "%s: cannot be executed", name);
}

/* ---- pid 1 ---- */

static void inject_fault(void)
{
	siginfo_t ended;

	if (score_fault.kind == SCORE_LATE_INIT)
		waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
	if (score_fault.kind == SCORE_NO_INIT)
		close(PROGRAM_FD);
}

/* When this fails, nobody is told: the outside sees how pid 1 ended, and with it all processes do. */
static _Noreturn void become_init(const struct inside *in, pid_t pid)
{
	const struct channel_message started = {.kind = CHANNEL_STARTED};
	char name[sizeof init_name], number[16];
	char *const argv[] = {name, number, NULL}, *const envp[] = {NULL};
	struct err unheard;
	int r = channel_send(in->channelfd, &started, -1, &unheard);

	for (int fd = 0; fd < INIT_FD; fd++)
		close(fd);
	memcpy(name, init_name, sizeof name);
	snprintf(number, sizeof number, "%d", pid);
	inject_fault();
	if (r == 0 && fcntl(INIT_FD, F_SETFD, 0) == 0)
		execveat(PROGRAM_FD, "", argv, envp, AT_EMPTY_PATH);
	_exit(NOT_STARTED);
}

static int tell_ready(const struct inside *in, struct err *e)
{
	struct channel_message message = {.kind = CHANNEL_READY, .landlock_abi = in->landlock_abi};

	memcpy(message.row_us, in->row_us, sizeof message.row_us);
	return channel_send(in->channelfd, &message, in->listenerfd, e);
}

INSIDE(execute)
{
	struct command command = {in->program, in->spec->argv, in->spec->envp, 0};
	pid_t pid;

	process_block_signals(true);
	replace_command_line();
	TRY(tell_ready(in, e));
	close_fd(&in->listenerfd);
	pid = spawn(&command);
	if (command.failure)
		return cannot_execute(in, command.failure, e);
	become_init(in, pid);
}
