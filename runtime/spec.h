/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wanted: one sandbox, composed of the parts that its walls own. It holds no pid and no
 * descriptor of a running thing, and it is const once a sandbox is built from it. All pointers are
 * the caller's and outlive the sandbox.
 */
#ifndef RUNTIME_SPEC_H
#define RUNTIME_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strings.h"
#include "rootfs/disk.h"
#include "rootfs/image.h"
#include "rootfs/mounts.h"
#include "runtime/cgroup/cgroup.h"
#include "runtime/identity/identity.h"
#include "seccomp/filter.h"

enum { SPEC_TMPFS_MAX = 16 };

struct sandbox_spec {
	char *const *argv; /* NULL-terminated; argv[0] is looked up in the PATH of envp */
	char *const *envp; /* the whole environment; nothing is inherited */
	const char *cwd;   /* absolute, inside */
	const char *hostname;

	struct identity identity; /* user_namespace and host_base are the sandbox's to fill */
	bool user_namespace_may_be_missing;
	struct cgroup_limits limits;
	struct disk_limits disk;
	const struct seccomp_filter *filter;

	const struct image *image;
	bool read_only_root;
	struct tmpfs_mount tmpfs[SPEC_TMPFS_MAX];
	int tmpfs_count;
	const char *workspace;  /* a host directory copied to /workspace; NULL: an empty one */
	const char *stdin_path; /* NULL: /dev/null; "-": the caller's standard input */

	uint64_t start_timeout_ms; /* everything until exec, unpacking included */
	uint64_t timeout_ms;       /* of the command; 0: none */
	uint64_t grace_ms;         /* between TERM and KILL */
	uint64_t drain_ms;         /* how long background processes may write after the command */
	uint64_t max_output_bytes; /* kept of each stream: half head, half tail */

	const struct string_list *labels; /* KEY=VALUE */
	bool keep;                        /* the disk outlives the sandbox */
	bool command_later; /* sandbox_prepare: argv, envp and cwd are none of this spec's */
};

/* Fills in the documented defaults (requirements LI1 to LI8, IS1). */
void sandbox_spec_defaults(struct sandbox_spec *spec);

/* EINVAL with the offending field and its bounds: what makes no sense on any host. */
int sandbox_spec_check(const struct sandbox_spec *spec, struct err *e);

#endif
