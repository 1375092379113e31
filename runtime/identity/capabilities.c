/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox may do beyond its user: nothing. The five capability sets, the securebits that
 * keep them from coming back, no_new_privs. Owns nothing; acts on the calling thread.
 *
 * Raw capget and capset, since libcap allocates and hides which sets it touches. Capabilities are
 * counted up to the first number that the kernel does not know, so that those of a newer kernel
 * than our headers are dropped too.
 */
#include "runtime/identity/identity.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	CAPABILITIES_MAX = 64, /* two words of 32 in capset's version 3 */
	BITS_LOCKED = SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
	              SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
	BITS_ON = SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_CAP_AMBIENT_RAISE,
	/* All that concerns capabilities. Newer kernels have bits about scripts, which may stand.
	 */
	BITS_OURS = BITS_ON | SECBIT_KEEP_CAPS | BITS_LOCKED,
};

uint64_t identity_bounding_set(void)
{
	uint64_t set = 0;

	for (unsigned long cap = 0; cap < CAPABILITIES_MAX; cap++) {
		int held = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (held < 0)
			break;
		set |= (uint64_t)held << cap;
	}
	return set;
}

static int must_be_empty(const char *name, uint64_t set, struct err *e)
{
	if (set == 0)
		return 0;
	return err_set(e, EPERM,
	               "dropping capabilities: the %s set still holds %016llx; the sandbox is not "
	               "started (capsh --decode=%016llx names them)",
	               name, (unsigned long long)set, (unsigned long long)set);
}

int identity_drop_bounding(struct err *e)
{
	for (unsigned long cap = 0; cap < CAPABILITIES_MAX; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > 0)
			break; /* the first that the kernel does not know */
		err_sys(e, "dropping capability %lu from the bounding set", cap);
		return err_hint(e, "this needs CAP_SETPCAP, so it must come before the "
		                   "capabilities are dropped");
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(e, "clearing the ambient capabilities");
	return 0; /* identity_drop_capabilities looks whether all are empty */
}

static int verify_securebits(struct err *e)
{
	int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

	if (bits < 0)
		return err_sys(e, "reading the securebits");
	if ((bits & BITS_OURS) != (BITS_ON | BITS_LOCKED))
		return err_set(e, EPERM,
		               "locking the securebits: they are %#x and should be %#x; "
		               "the sandbox is not started",
		               (unsigned)(bits & BITS_OURS), (unsigned)(BITS_ON | BITS_LOCKED));
	return 0;
}

int identity_lock_securebits(struct err *e)
{
	int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

	if (bits < 0)
		return err_sys(e, "reading the securebits");
	bits = (bits & ~BITS_OURS) | BITS_ON | BITS_LOCKED;
	if (prctl(PR_SET_SECUREBITS, (unsigned long)bits, 0, 0, 0) < 0) {
		err_sys(e, "locking the securebits to %#x", (unsigned)bits);
		return err_hint(e, "this needs CAP_SETPCAP, and no bit that the caller has locked "
		                   "the other way");
	}
	return verify_securebits(e);
}

static int verify_sets(struct err *e)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, words) < 0)
		return err_sys(e, "reading the capabilities back");
	TRY(must_be_empty("permitted", (uint64_t)words[1].permitted << 32 | words[0].permitted, e));
	TRY(must_be_empty("effective", (uint64_t)words[1].effective << 32 | words[0].effective, e));
	TRY(must_be_empty("inheritable",
	                  (uint64_t)words[1].inheritable << 32 | words[0].inheritable, e));
	/* an ambient capability is permitted and inheritable as well (capabilities(7)): none is left */
	return must_be_empty("bounding", identity_bounding_set(), e);
}

int identity_drop_capabilities(struct err *e)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capset, &header, none) < 0)
		return err_sys(e, "dropping the capabilities");
	TRY(verify_sets(e));
	return verify_securebits(e);
}

int identity_no_new_privs(struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "setting no_new_privs");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_set(e, EPERM, "setting no_new_privs: it is not on afterwards");
	return 0;
}
