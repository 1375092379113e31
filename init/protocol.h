/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between agentdock-init (pid 1 of a sandbox) and the process outside that built it.
 *
 * It is executed with
 *	argv = { "agentdock-init", PID, NULL }   PID: its child, the command, in decimal
 *	envp = { NULL }
 *	INIT_FD = a SOCK_SEQPACKET socket, close-on-exec set by init itself; no other descriptor
 *	SIGCHLD not ignored, and every signal blocked that the command shall not miss
 * and exits 125 at once where it is not. It says exactly: EXITED (value: the command's wait status).
 * Then it goes on reaping until it has no child left and exits 0. The outside trusts nothing of it but
 * the size.
 */
#ifndef INIT_PROTOCOL_H
#define INIT_PROTOCOL_H

enum { INIT_FD = 3 };

enum init_kind {
	INIT_EXITED = 101, /* apart from the kinds of runtime/channel.h */
};

struct init_message {
	int kind;
	int value;
};

#endif
