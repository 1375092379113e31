/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock by its three system calls, for kernels of any ABI. */
#include "rootfs/landlock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"

/* struct landlock_ruleset_attr as of ABI 6; older kernels take a shorter one. */
struct ruleset {
	uint64_t files, network, scoped;
};

enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, SCOPE_SIGNAL = 1 << 1 };

/* The rights that came with each ABI: the last one of it. */
static uint64_t rights_known(long abi)
{
	static const uint64_t last[] = {
		0,
		LANDLOCK_ACCESS_FS_MAKE_SYM,
		LANDLOCK_ACCESS_FS_REFER,
		LANDLOCK_ACCESS_FS_TRUNCATE,
		LANDLOCK_ACCESS_FS_TRUNCATE,
		LANDLOCK_ACCESS_FS_IOCTL_DEV,
	};
	const long newest = sizeof last / sizeof *last - 1;

	return (last[abi < newest ? abi : newest] << 1) - 1;
}

static int make_ruleset(long abi, uint64_t files, struct err *e)
{
	const struct ruleset ruleset = {
		.files = files,
		.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
	};
	size_t size = abi >= 6 ? sizeof ruleset : sizeof ruleset.files;
	int fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, size, 0);

	return fd < 0 ? err_sys(e, "making a Landlock ruleset") : fd;
}

int landlock_restrict(const struct landlock_rule rules[], int count, struct err *e)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	scoped_fd rulesetfd = -1;
	uint64_t known;

	if (abi < 2)
		return 0;
	known = rights_known(abi);
	rulesetfd = make_ruleset(abi, known, e);
	TRY(rulesetfd);
	for (int i = 0; i < count; i++) {
		struct landlock_path_beneath_attr beneath = {
			.allowed_access = rules[i].allowed & known,
			.parent_fd = rules[i].parentfd,
		};

		/* a kernel refuses a rule of rights that are all newer than it is */
		if (beneath.allowed_access == 0)
			continue;
		if (syscall(SYS_landlock_add_rule, rulesetfd, LANDLOCK_RULE_PATH_BENEATH, &beneath,
		            0) < 0)
			return err_sys(e, "adding a Landlock rule");
	}
	if (syscall(SYS_landlock_restrict_self, rulesetfd, 0) < 0)
		return err_sys(e, "landlock_restrict_self");
	return (int)abi;
}
