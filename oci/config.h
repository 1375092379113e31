/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.json of the OCI runtime-spec 1.3, for Linux: the whole document, typed, as it was written.
 * The names in comments are those of the spec's sections, in config.md where no file is named.
 *
 * A member that is NULL, has not `set`, or is empty was absent or empty in the document. Words that
 * the kernel has are here as its numbers (CLONE_NEW*, RLIMIT_*, SCHED_*, MS_*, MPOL_*). Every text
 * is valid UTF-8 without NUL. Nothing here was compared with a host: whether a path exists, a
 * system call is known or a limit can be set is for those who use it.
 *
 * Of other platforms' parts only their presence is kept.
 */
#ifndef OCI_CONFIG_H
#define OCI_CONFIG_H

#include "oci/shape.h"

/* "User namespace mappings" in config-linux.md; the ranges of a list do not overlap. */
struct oci_mapping {
	uint32_t container_id, host_id;
	uint32_t size; /* at least 1 */
};
struct oci_mappings {
	struct oci_mapping *items;
	size_t count;
};

/* ---- root, mounts ---- */

struct oci_root {
	const char *path; /* absolute, or relative to the bundle */
	bool readonly;
};

struct oci_mount {
	const char *destination; /* a relative one is relative to "/" (deprecated) */
	const char *type, *source;
	struct oci_strings options;
	struct oci_mappings uid_mappings, gid_mappings; /* both or neither */
};
struct oci_mounts {
	struct oci_mount *items;
	size_t count;
};

/* ---- process ---- */

struct oci_console_size {
	uint64_t height, width;
};

struct oci_user {
	uint32_t uid, gid;
	struct oci_uint umask;
	struct oci_ids additional_gids;
};

/* Names that no kernel knows are here too: they are to be warned of, not refused. */
struct oci_capabilities {
	struct oci_strings bounding, effective, inheritable, permitted, ambient;
};

struct oci_rlimit {
	int type;            /* RLIMIT_*, each once */
	uint64_t soft, hard; /* soft <= hard; UINT64_MAX is RLIM_INFINITY */
};
struct oci_rlimits {
	struct oci_rlimit *items;
	size_t count;
};

struct oci_scheduler {
	int policy; /* SCHED_* */
	int64_t nice, priority;
	uint64_t flags;                     /* SCHED_FLAG_* */
	uint64_t runtime, deadline, period; /* nanoseconds */
};

struct oci_io_priority {
	int class;        /* IOPRIO_CLASS_* */
	int64_t priority; /* 0 (highest) to 7 */
};

/* For processes that are added to a container, not for its first. Lists such as "0-3,7". */
struct oci_affinity {
	const char *initial, *final;
};

struct oci_process {
	bool terminal;
	struct oci_console_size *console_size; /* ignored without a terminal */
	struct oci_user *user;                 /* NULL: 0 and 0 */
	struct oci_strings args;               /* at least one */
	struct oci_strings env;
	const char *cwd;
	struct oci_capabilities *capabilities;
	struct oci_rlimits rlimits;
	const char *apparmor_profile, *selinux_label;
	bool no_new_privileges;
	struct oci_int oom_score_adj; /* not set: is to be left alone */
	struct oci_scheduler *scheduler;
	struct oci_io_priority *io_priority;
	struct oci_affinity *exec_cpu_affinity;
};

/* ---- hooks ("POSIX-platform Hooks") ---- */

struct oci_hook {
	const char *path; /* absolute */
	struct oci_strings args, env;
	struct oci_int timeout; /* seconds, at least 1 */
};
struct oci_hook_list {
	struct oci_hook *items;
	size_t count;
};
struct oci_hooks {
	struct oci_hook_list prestart; /* deprecated; run before create_runtime */
	struct oci_hook_list create_runtime, create_container, start_container;
	struct oci_hook_list poststart, poststop;
};

/* ---- linux (config-linux.md) ---- */

struct oci_namespace {
	int type;         /* CLONE_NEW*, each once */
	const char *path; /* NULL: a new one */
};
struct oci_namespaces {
	struct oci_namespace *items;
	size_t count;
};

struct oci_device {
	int type; /* 'c', 'b', 'u' (which is c) or 'p' */
	const char *path;
	struct oci_int major, minor; /* set, but for 'p' */
	struct oci_uint file_mode;   /* podman's has the bits of the type too, as of stat(2) */
	struct oci_uint uid, gid;
};
struct oci_devices {
	struct oci_device *items;
	size_t count;
};

struct oci_net_device {
	const char *host_name; /* in the runtime's network namespace */
	const char *name;      /* inside; NULL: the same */
};
struct oci_net_devices {
	struct oci_net_device *items;
	size_t count;
};

struct oci_time_offset {
	int64_t secs;
	uint32_t nanosecs;
};
struct oci_time_offsets {
	struct oci_time_offset *boottime, *monotonic;
};

struct oci_memory_policy {
	int mode;          /* MPOL_* */
	uint64_t flags;    /* MPOL_F_* */
	const char *nodes; /* "0-3,7" */
};

/* No flag is known to the spec. */
struct oci_personality {
	int domain; /* PER_LINUX, PER_LINUX32 */
	uint64_t flags;
};

struct oci_intel_rdt {
	const char *clos_id;
	struct oci_strings schemata;
	const char *l3_cache_schema, *mem_bw_schema;
	bool enable_monitoring;
};

/* ---- linux.resources ("Control groups" in config-linux.md) ---- */

/* "Allowed Device list", to be applied in this order. */
struct oci_device_rule {
	bool allow;
	int type;                    /* 'a' (also where none was said), 'c' or 'b' */
	struct oci_int major, minor; /* not set, or -1: all */
	const char *access;          /* of 'r', 'w' and 'm'; NULL: none was said */
};
struct oci_device_rules {
	struct oci_device_rule *items;
	size_t count;
};

/* Bytes; -1 is unlimited. */
struct oci_memory {
	struct oci_int limit, reservation, swap, kernel, kernel_tcp;
	struct oci_uint swappiness; /* 0 to 100 */
	struct oci_bool disable_oom_killer, use_hierarchy, check_before_update;
};

/* Microseconds. */
struct oci_cpu {
	struct oci_uint shares, burst, period, realtime_period;
	struct oci_int quota, realtime_runtime;
	struct oci_int idle; /* 0 or 1 */
	const char *cpus, *mems;
};

struct oci_pids {
	int64_t limit;
};

/* weight, leaf_weight or both of them are set. */
struct oci_weight_device {
	int64_t major, minor;
	struct oci_uint weight, leaf_weight;
};
struct oci_weight_devices {
	struct oci_weight_device *items;
	size_t count;
};

struct oci_throttle_device {
	int64_t major, minor;
	uint64_t rate; /* bytes or operations in a second */
};
struct oci_throttle_devices {
	struct oci_throttle_device *items;
	size_t count;
};

struct oci_block_io {
	struct oci_uint weight, leaf_weight;
	struct oci_weight_devices weight_device;
	struct oci_throttle_devices read_bps, write_bps, read_iops, write_iops;
};

struct oci_hugepage_limit {
	const char *page_size; /* "64KB", "2MB", "1GB" */
	uint64_t limit;        /* bytes */
};
struct oci_hugepage_limits {
	struct oci_hugepage_limit *items;
	size_t count;
};

struct oci_interface_priority {
	const char *name;
	uint32_t priority;
};
struct oci_interface_priorities {
	struct oci_interface_priority *items;
	size_t count;
};
struct oci_network {
	struct oci_uint class_id;
	struct oci_interface_priorities priorities;
};

/* One of them or both are set. */
struct oci_rdma {
	const char *device;
	struct oci_uint hca_handles, hca_objects;
};
struct oci_rdmas {
	struct oci_rdma *items;
	size_t count;
};

struct oci_resources {
	struct oci_map unified; /* file of a cgroup v2 directory, what to write */
	struct oci_device_rules devices;
	struct oci_memory *memory;
	struct oci_cpu *cpu;
	struct oci_pids *pids;
	struct oci_block_io *block_io;
	struct oci_hugepage_limits hugepage_limits;
	struct oci_network *network;
	struct oci_rdmas rdma;
};

/* ---- linux.seccomp ("Seccomp" in config-linux.md) ---- */

enum oci_seccomp_action {
	OCI_ACT_KILL_THREAD, /* SCMP_ACT_KILL is the same */
	OCI_ACT_KILL_PROCESS,
	OCI_ACT_TRAP,
	OCI_ACT_ERRNO,
	OCI_ACT_TRACE,
	OCI_ACT_ALLOW,
	OCI_ACT_LOG,
	OCI_ACT_NOTIFY,
};

enum oci_seccomp_operator {
	OCI_CMP_NE,
	OCI_CMP_LT,
	OCI_CMP_LE,
	OCI_CMP_EQ,
	OCI_CMP_GE,
	OCI_CMP_GT,
	OCI_CMP_MASKED_EQ, /* argument & value == value_two */
};

/* Bits of oci_seccomp.architectures. */
enum oci_seccomp_arch {
	OCI_ARCH_X86,
	OCI_ARCH_X86_64,
	OCI_ARCH_X32,
	OCI_ARCH_ARM,
	OCI_ARCH_AARCH64,
	OCI_ARCH_LOONGARCH64,
	OCI_ARCH_M68K,
	OCI_ARCH_MIPS,
	OCI_ARCH_MIPS64,
	OCI_ARCH_MIPS64N32,
	OCI_ARCH_MIPSEL,
	OCI_ARCH_MIPSEL64,
	OCI_ARCH_MIPSEL64N32,
	OCI_ARCH_PPC,
	OCI_ARCH_PPC64,
	OCI_ARCH_PPC64LE,
	OCI_ARCH_S390,
	OCI_ARCH_S390X,
	OCI_ARCH_SH,
	OCI_ARCH_SHEB,
	OCI_ARCH_PARISC,
	OCI_ARCH_PARISC64,
	OCI_ARCH_RISCV64,
};

struct oci_seccomp_arg {
	uint32_t index; /* 0 to 5 */
	uint64_t value, value_two;
	int op; /* enum oci_seccomp_operator */
};
struct oci_seccomp_args {
	struct oci_seccomp_arg *items;
	size_t count;
};

struct oci_syscall {
	struct oci_strings names;  /* at least one */
	int action;                /* enum oci_seccomp_action */
	struct oci_uint errno_ret; /* with OCI_ACT_ERRNO and OCI_ACT_TRACE only */
	struct oci_seccomp_args args;
};
struct oci_syscalls {
	struct oci_syscall *items;
	size_t count;
};

struct oci_seccomp {
	int default_action;                /* enum oci_seccomp_action */
	struct oci_uint default_errno_ret; /* as errno_ret */
	uint64_t architectures;            /* 1 << enum oci_seccomp_arch */
	uint64_t flags;                    /* SECCOMP_FILTER_FLAG_* */
	const char *listener_path, *listener_metadata;
	struct oci_syscalls syscalls;
};

struct oci_linux {
	struct oci_namespaces namespaces;
	struct oci_mappings uid_mappings, gid_mappings;
	struct oci_time_offsets time_offsets;
	struct oci_devices devices;
	struct oci_net_devices net_devices;
	struct oci_map sysctl;
	const char *cgroups_path;
	struct oci_resources *resources;
	int rootfs_propagation; /* MS_PRIVATE, ..., with MS_REC or not; 0: none was said */
	struct oci_seccomp *seccomp;
	struct oci_strings masked_paths, readonly_paths; /* absolute */
	const char *mount_label;
	struct oci_intel_rdt *intel_rdt;
	struct oci_personality *personality;
	struct oci_memory_policy *memory_policy;
};

/* ---- the document ---- */

struct oci_config {
	const char *version; /* ociVersion */
	struct oci_root *root;
	struct oci_mounts mounts;
	struct oci_process *process;
	const char *hostname, *domainname;
	struct oci_hooks hooks;
	struct oci_map annotations;
	struct oci_linux *linux_part;     /* "linux", which is a macro of gnu17 */
	struct oci_unkept *freebsd, *zos; /* checked and not kept: NULL or not */
	bool solaris, vm, windows;
	struct oci_store store; /* what the members point to */
};

/*
 * Parses a document. EINVAL and a text that names the key where it is not one of the runtime-spec
 * 1.x; CONFIG is empty then. Keys that the spec does not know are ignored. A document of another
 * POSIX platform is taken as well. How long it may be is the caller's to say: memory grows with it.
 */
int oci_config_parse(const char *json, size_t length, struct oci_config *config, struct err *e);
void oci_config_release(struct oci_config *config);

/* EINVAL where the document does not describe a container of Linux: it lacks "linux" or "root". */
int oci_config_check_linux(const struct oci_config *config, struct err *e);

/* The entry of linux.namespaces with this CLONE_NEW*, or NULL. */
const struct oci_namespace *oci_config_namespace(const struct oci_config *config, int type);

#endif
