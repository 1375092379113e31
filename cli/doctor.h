/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `agentdock doctor` share: a check looks at one thing that a sandbox stands on,
 * for real where that leaves nothing behind, and says what it found. Checks run in the order of the
 * tables; what one has made (a scratch file system, a user namespace) later ones use.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "rootfs/disk.h"
#include "runtime/cgroup/cgroup.h"

enum finding_state {
	FINDING_OK,
	FINDING_DEGRADED, /* a default run works, but something of it is weaker or unmeasured */
	FINDING_MISSING,  /* a default run does not work */
	FINDING_UNTRIED,  /* a finding above says why */
};

struct finding {
	enum finding_state state;
	char found[ERR_TEXT_SIZE];
	char way_out[256]; /* "" when ok */
};

struct doctor {
	int scratchfd; /* a tmpfs that is mounted nowhere; -1 when there could be none */
	int statefd;   /* the state directory, or what exists of its path */
	int usernsfd;  /* a user namespace with ids of its own; -1 when there could be none */
	struct disk disk;
	struct cgroup_host host;
	struct cgroup cgroup; /* a scratch group; v2fd -1 when there could be none */
	char cgroup_parent[96];
};

struct check {
	const char *name;
	void (*look)(struct doctor *doctor, struct finding *finding);
	bool needs_root; /* whoever is not root learns nothing from trying it */
};

extern const struct check kernel_checks[]; /* cli/doctor_kernel.c; ends with a NULL name */
extern const struct check host_checks[];   /* cli/doctor_host.c; the same */

/* A check of doctor_host.c that stands among those of the kernel, because they use what it opens.
 */
void look_state_directory(struct doctor *doctor, struct finding *finding);

/* Fill in a finding. The way out of finding_lacks is its last text. */
PRINTF_LIKE(2, 3) void finding_ok(struct finding *finding, const char *fmt, ...);
PRINTF_LIKE(4, 5)
void finding_lacks(struct finding *finding, enum finding_state state, const char *way_out,
                   const char *fmt, ...);

PRINTF_LIKE(2, 3) void finding_untried(struct finding *finding, const char *fmt, ...);

/* Takes E apart at its first "; " into what was found and the way out; WAY_OUT where it has none.
 */
void finding_error(struct finding *finding, enum finding_state state, const char *way_out,
                   const struct err *e);

/*
 * Calls LOOK in a process of its own, in new namespaces (CLONE_NEW*), and waits for it, at most
 * five seconds. LOOK returns 0 or an errno. Returns what it returned, or why there was no such
 * process.
 */
int doctor_try(uint64_t namespaces, int (*look)(void *data), void *data);

#endif
