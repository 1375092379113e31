/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attack is many attempts, from several places: seccomp, credentials and namespaces are a
 * thread's, so what is refused here may be let through there. This counts them and keeps what
 * worked. Once something worked no more is tried from other places: the wall is down.
 */
#ifndef TESTS_ESCAPE_TRY_H
#define TESTS_ESCAPE_TRY_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/escape/attack.h"

enum { TRIES_ERRNOS = 8 };

struct tries {
	const char *place; /* whence, in words */
	unsigned count;    /* of attempts */
	bool worked;
	char what[256]; /* the first that worked */
	struct {
		int code; /* 0: refused without an errno */
		unsigned count;
	} refused[TRIES_ERRNOS];
};

/* Zeroed, in memory that children share. Never freed. Ends the process where there is none. */
struct tries *tries_new(void);

/* Notes an attempt that worked where RESULT is not negative, else errno. Returns: did it work? */
bool tried(struct tries *tries, long result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Notes an attempt that gave nothing, although no call failed. */
void tried_in_vain(struct tries *tries);

/* BROKEN with what worked, or HELD with how often and by which errnos all was refused. */
enum outcome tries_verdict(const struct tries *tries, struct evidence *evidence);

/*
 * Makes ATTEMPT in the calling process, in another thread, and in children that have made
 * themselves new namespaces: first FLAGS (CLONE_NEW*) alone, then in a new user namespace, as root
 * in it. A namespace that is refused is an attempt that failed.
 */
void try_everywhere(struct tries *tries, int flags, void (*attempt)(struct tries *tries));

/* An empty directory in a scratch place, made once; "/tmp" where none can be made. */
const char *try_directory(void);

/* Does what FD leads to begin with EXPECTED, of at most 256 bytes? */
bool try_reads(int fd, const char *expected);

/*
 * On the host: a new directory that others can enter; *PATH (static) is where. It is removed, with
 * what is in it, when this process ends. Returns a close-on-exec descriptor, or -1 with errno.
 */
int try_host_directory(const char **path);

/* Makes the file NAME with TEXT and MODE, whatever the umask. Returns 0, or -1 with errno. */
int try_write_file(int dirfd, const char *name, const char *text, mode_t mode);

/* What gives the command all that root of the host has, but for its namespaces. */
#define AS_ROOT_OF_THE_HOST                                                                        \
	WITHOUT("user namespace"), WITHOUT("user"), WITHOUT("securebits"),                         \
		WITHOUT("capabilities"), WITHOUT("bounding set"), WITHOUT("seccomp"),              \
		WITHOUT("landlock")

/* Of these each that leaves the command no capability on the host. */
#define NO_CAPABILITY_ALONE "user namespace", "user", "securebits", "bounding set"

#endif
