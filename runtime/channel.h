/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the process outside and the process inside while a sandbox is built: a SOCK_SEQPACKET
 * pair, one fixed-size message each, descriptors beside it (SCM_RIGHTS). After STARTED, what comes from
 * there is init/protocol.h and is trusted for nothing but its size.
 */
#ifndef RUNTIME_CHANNEL_H
#define RUNTIME_CHANNEL_H

#include <stdint.h>

#include "base/err.h"
#include "fleet/report.h"

enum channel_kind {
	CHANNEL_GO = 1, /* outside: my half of ROW is done */
	CHANNEL_AT,     /* inside: I am at ROW, the gate, which waits for the command */
	CHANNEL_FAILED, /* inside: ROW failed: error, fault; nothing follows */
	CHANNEL_READY, /* inside: exec is next; times of the rows, the seccomp listener beside it */
	CHANNEL_LISTENER, /* inside: of a container's seccomp filter, beside it; goes to an agent at once */
	CHANNEL_STARTED, /* inside: the command runs; exec of agentdock-init is next. Of a container: its
	                  * startContainer hooks are done */
};

/* Whose fault a failed row is. */
enum channel_fault {
	FAULT_OURS,         /* ours or the host's: reason internal */
	FAULT_GUEST,        /* the input's: reason start_failed, exit 125 */
	FAULT_NOT_FOUND,    /* start_failed, exit 127 */
	FAULT_CANT_EXECUTE, /* start_failed, exit 126 */
	FAULT_DISK_FULL,    /* reason disk_full */
	FAULT_HOOK,         /* of a container of an OCI bundle: a hook of its document */
};

struct channel_message {
	int kind; /* enum channel_kind, or enum init_kind */
	int row;  /* for init's kinds: the value */
	int fault;
	int has_fd;
	int landlock_abi; /* of CHANNEL_READY */
	union {
		struct err error;
		uint32_t row_us[REPORT_ROWS_MAX];
	};
};

/* Sends one message, with FD beside it unless that is -1. -EPIPE when the other side is gone. */
int channel_send(int socketfd, const struct channel_message *message, int fd, struct err *e);

/*
 * Receives one message. Returns 1, 0 at end-of-file, -errno. *FD is a descriptor that came beside
 * it (close-on-exec, the caller's) or -1. A message of another size than ours or init's is EPROTO.
 */
int channel_receive(int socketfd, struct channel_message *message, int *fd, struct err *e);

#endif
