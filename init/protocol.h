/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between agentdock-init (pid 1 of a sandbox) and the process outside that built it.
 *
 * It is executed with
 *	argv = { "agentdock-init", PROGRAM, argv0, argv1, ..., NULL }   PROGRAM: a resolved path
 *	envp = the command's environment
 *	0, 1, 2 = the command's; INIT_FD = a SOCK_SEQPACKET socket, close-on-exec set by init itself
 * and says exactly: STARTED (the command's exec succeeded) or EXEC_FAILED (value: errno; init exits
 * then); later, EXITED (value: the command's wait status). Then it goes on reaping until it has no
 * child left and exits 0. The outside trusts nothing of it but the size.
 * The command is the leader of its own session and process group.
 */
#ifndef INIT_PROTOCOL_H
#define INIT_PROTOCOL_H

enum { INIT_FD = 3 };

enum init_kind {
	INIT_STARTED = 101, /* apart from the kinds of runtime/channel.h */
	INIT_EXEC_FAILED,
	INIT_EXITED,
};

struct init_message {
	int kind;
	int value;
};

#endif
