/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of the caller: disk, Kerberos and session secrets hang on keyrings, which no namespace
 * separates; a process inherits its session's. They are looked for in every special keyring, by
 * number, by name, and by request_key, which can also have the host start a helper. The host's half
 * puts a key into the session keyring that the launcher inherits, and tells its number. The calls
 * are forbidden, and the sandbox has a session keyring of its own: each is enough.
 */
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/escape/try.h"

#define KEY_NAME "agentdock-probe"
#define SECRET   "a key of the caller"

static long host_key; /* inside: its number, as the host's half told it */

static long key_add(const char *name, int keyring)
{
	return syscall(SYS_add_key, "user", name, SECRET, strlen(SECRET), keyring);
}

static int before(const char *words[8], struct evidence *evidence)
{
	static char number[24];
	/* a keyring of this process's own: that of who runs the test is left as it is */
	long keyring = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	long key = keyring < 0 ? -1 : key_add(KEY_NAME, KEY_SPEC_SESSION_KEYRING);

	if (key < 0 && errno == ENOSYS) {
		verdict(evidence, ABSENT, "this kernel has no keyrings");
		return 1;
	}
	if (key < 0) {
		verdict(evidence, UNTRIED, "adding a key: %s", strerror(errno));
		return -1;
	}
	snprintf(number, sizeof(number), "%ld", key);
	words[0] = number;
	return 0;
}

static long reads(long key)
{
	char data[64] = "";

	if (key < 0 || syscall(SYS_keyctl, KEYCTL_READ, key, data, sizeof(data) - 1) < 0)
		return -1;
	errno = 0;
	return strcmp(data, SECRET) == 0 ? 0 : -1;
}

static void attempt(struct tries *tries)
{
	static const int keyrings[] = {
		KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING,   KEY_SPEC_USER_SESSION_KEYRING,
		KEY_SPEC_PROCESS_KEYRING, KEY_SPEC_THREAD_KEYRING,
	};
	static const char *const names[] = {"_ses", "_uid.0", "_uid_ses.0", "_persistent.0"};

	tried(tries, reads(host_key), "the caller's key was read by its number");
	for (size_t i = 0; i < sizeof(keyrings) / sizeof(keyrings[0]); i++) {
		long key = syscall(SYS_keyctl, KEYCTL_SEARCH, keyrings[i], "user", KEY_NAME, 0);

		tried(tries, reads(key), "the caller's key was found in keyring %d", keyrings[i]);
	}
	tried(tries, reads(syscall(SYS_request_key, "user", KEY_NAME, "", 0)),
	      "the caller's key was read by request_key");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		long ring = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, names[i]);
		long key = ring < 0 ? -1
		                    : syscall(SYS_keyctl, KEYCTL_SEARCH, ring, "user", KEY_NAME, 0);

		tried(tries, reads(key), "the caller's key was found in %s", names[i]);
	}
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();

	if (!argv[0])
		return verdict(evidence, UNTRIED, "the host's half told no key");
	host_key = strtol(argv[0], NULL, 10);
	try_everywhere(tries, 0, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(keyring) = {
	.name = "keyring",
	.what = "read a key of the caller, or of the host's users",
	.seen = "containers whose filter lets keyctl pass: keyrings are not namespaced",
	.wall = "a new session keyring; the calls are forbidden",
	.control = WORDS(WITHOUT("keyring"), WITHOUT("seccomp")),
	.alone = WORDS("keyring", "seccomp"),
	.before = before,
	.inside = inside,
};
