/* SPDX-License-Identifier: Apache-2.0 */
/* oci/config.h: what a config.json must be like beside having its keys and types. Each rule is tried
 * with a document that keeps it and one that does not, one value apart. */
#include <errno.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "oci/config.h"
#include "tests/unit/oci_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- texts ---- */

static void test_versions(void **state)
{
	static const char *const taken[] = {"'1.0.0'",     "'1.0.2-dev'",
	                                    "'0.5.0-dev'", "'1.99.10'",
	                                    "'1.0.0-0'",   "'1.0.0-rc.1.x-y+build.007'"};
	static const char *const refused[] = {
		"''",       "'1'",      "'1.0'",      "'1.0.0.'",        "'1.0.0.0'", "'01.0.0'",
		"'1.00.0'", "'1.0.0-'", "'1.0.0-01'", "'1.0.0-a..b'",    "'1.0.0+'",  "'1.0.0+a+b'",
		"'v1.0.0'", "'1.0.0 '", "'1.-1.0'",   "'1.0.0-\\u00e9'",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(taken); i++)
		takes("ociVersion", taken[i]);
	for (size_t i = 0; i < COUNT(refused); i++)
		refuses("ociVersion", refused[i], "ociVersion: \"");
	refuses("ociVersion", "'1.0'",
	        "ociVersion: \"1.0\" is no version such as 1.3.0 (SemVer 2.0.0)");
	refuses("ociVersion", "'2.0.0'", "ociVersion: \"2.0.0\" is of a later runtime-spec");
	refuses("ociVersion", "'10.0.0'", "ociVersion: \"10.0.0\" is of a later runtime-spec");
}

static void test_absolute_paths(void **state)
{
	static const char *const paths[] = {
		"process.cwd",
		"hooks.prestart[0].path",
		"hooks.poststop[1].path",
		"linux.namespaces[0].path",
		"linux.devices[1].path",
		"linux.maskedPaths[1]",
		"linux.readonlyPaths[0]",
	};
	char says[128];

	(void)state;
	for (size_t i = 0; i < COUNT(paths); i++) {
		takes(paths[i], "'/'");
		snprintf(says, sizeof says, "%s: must be an absolute path, not \"a/b\"", paths[i]);
		refuses(paths[i], "'a/b'", says);
		snprintf(says, sizeof says, "%s: must be an absolute path, not \"\"", paths[i]);
		refuses(paths[i], "''", says);
	}
}

static void test_filled_texts(void **state)
{
	static const struct rule rules[] = {
		{"root.path", "'a'", "''", "root.path: must not be empty"},
		/* relative destinations are deprecated, and taken */
		{"mounts[0].destination", "'data'", "''",
	         "mounts[0].destination: must not be empty"},
		{"annotations", "{'a': ''}", "{'': 'a'}", "annotations[\"\"]: must not be empty"},
		{"linux.netDevices", "{'a': {}}", "{'': {}}",
	         "linux.netDevices[\"\"]: must not be"},
		{"linux.resources.rdma", "{}", "{'': {'hcaHandles': 1}}",
	         "linux.resources.rdma[\"\"]: must not be empty"},
	};

	(void)state;
	keep(rules, COUNT(rules));
}

static void test_formats(void **state)
{
	static const struct rule rules[] = {
		{"process.execCPUAffinity.initial", "'0-3, 7'", "'0-3;7'",
	         "process.execCPUAffinity.initial: must be a list of CPUs such as \"0-3,7\""},
		{"process.execCPUAffinity.final", "''", "'all'",
	         "process.execCPUAffinity.final: must be a list of CPUs"},
		{"linux.resources.devices[0].access", "''", "'rwx'",
	         "linux.resources.devices[0].access: must be made of \"r\", \"w\" and \"m\""},
		{"linux.intelRdt.memBwSchema", "'MB:'", "'L3:0=f'",
	         "linux.intelRdt.memBwSchema: must begin with \"MB:\" and have no line break"},
		{"linux.intelRdt.memBwSchema", "'MB:0=20'", "'MB:0=20\\nL3:0=f'",
	         "linux.intelRdt.memBwSchema: must begin with \"MB:\" and have no line break"},
	};
	static const char size[] = "linux.resources.hugepageLimits[0].pageSize";
	static const char *const sizes[] = {"''",     "'MB'",  "'0MB'",  "'02MB'",
	                                    "'2'",    "'2B'",  "'2TB'",  "'2MBx'",
	                                    "'2 MB'", "'2kB'", "'-2MB'", "'2M'"};

	(void)state;
	keep(rules, COUNT(rules));
	takes(size, "'64KB'");
	takes(size, "'1GB'");
	for (size_t i = 0; i < COUNT(sizes); i++)
		refuses(size, sizes[i],
		        "linux.resources.hugepageLimits[0].pageSize: must be a size such as");
}

static void test_sysctl_names(void **state)
{
	static const char *const names[] = {"",       ".",           "a..b", "/a",       "a/",
	                                    "a/../b", "net/ipv4//x", "..",   "a.b/.../c"};
	char value[64], says[64];

	(void)state;
	takes("linux.sysctl", "{'kernel.shm_rmid_forced': '1', 'net.ipv4.conf.eth0/1.mtu': ''}");
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(value, sizeof value, "{'%s': '1'}", names[i]);
		snprintf(says, sizeof says, "linux.sysctl[\"%s\"]: is no name such as", names[i]);
		refuses("linux.sysctl", value, says);
	}
}

static void test_unified_names(void **state)
{
	static const char *const names[] = {"", ".", "..", "../x", "a/b", "/"};
	char value[64], says[64];

	(void)state;
	takes("linux.resources.unified", "{'hugetlb.1GB.max': '1', '...': ''}");
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(value, sizeof value, "{'%s': '1'}", names[i]);
		snprintf(says, sizeof says, "linux.resources.unified[\"%s\"]: is no name of a",
		         names[i]);
		refuses("linux.resources.unified", value, says);
	}
}

/* ---- numbers ---- */

#define U16  "0", "65535", "65536"
#define U32  "0", "4294967295", "4294967296"
#define U64  "0", "18446744073709551615", NULL
#define I32  "-2147483648", "2147483647", "2147483648"
#define I64  "-9223372036854775808", "9223372036854775807", "9223372036854775808"
#define SIZE "-1", "9223372036854775807", "9223372036854775808"

static const struct range {
	const char *path, *lowest, *highest, *above;
	const char *below; /* NULL: -1 */
} ranges[] = {
	{"process.consoleSize.height", U64, NULL},
	{"process.consoleSize.width", U64, NULL},
	{"process.user.uid", U32, NULL},
	{"process.user.gid", U32, NULL},
	{"process.user.umask", U32, NULL},
	{"process.user.additionalGids[0]", U32, NULL},
	{"process.rlimits[0].hard", "1024", "18446744073709551615", NULL, NULL},
	{"process.rlimits[1].soft", U64, NULL},
	{"process.oomScoreAdj", "-1000", "1000", "1001", "-1001"},
	{"process.scheduler.nice", I32, "-2147483649"},
	{"process.scheduler.priority", I32, "-2147483649"},
	{"process.scheduler.runtime", U64, NULL},
	{"process.scheduler.deadline", U64, NULL},
	{"process.scheduler.period", U64, NULL},
	{"process.ioPriority.priority", "0", "7", "8", NULL},
	{"hooks.createRuntime[0].timeout", "1", "9223372036854775807", "9223372036854775808", "0"},
	{"linux.uidMappings[0].containerID", "0", "4294935296", "4294967296", NULL},
	{"linux.uidMappings[0].hostID", "0", "4294935296", "4294967296", NULL},
	{"linux.uidMappings[0].size", "1", "4294966296", "4294967296", NULL},
	{"linux.timeOffsets.boottime.secs", I64, "-9223372036854775808.5"},
	{"linux.timeOffsets.boottime.nanosecs", U32, NULL},
	{"linux.devices[0].major", "0", "9223372036854775807", "9223372036854775808", NULL},
	{"linux.devices[0].minor", "0", "9223372036854775807", "9223372036854775808", NULL},
	{"linux.devices[0].fileMode", "0", "65535", "65536", NULL},
	{"linux.devices[0].uid", U32, NULL},
	{"linux.devices[0].gid", U32, NULL},
	{"linux.resources.devices[1].major", SIZE, "-2"},
	{"linux.resources.devices[1].minor", SIZE, "-2"},
	{"linux.resources.memory.limit", SIZE, "-2"},
	{"linux.resources.memory.reservation", SIZE, "-2"},
	{"linux.resources.memory.swap", SIZE, "-2"},
	{"linux.resources.memory.kernel", SIZE, "-2"},
	{"linux.resources.memory.kernelTCP", SIZE, "-2"},
	{"linux.resources.memory.swappiness", "0", "100", "101", NULL},
	{"linux.resources.cpu.shares", U64, NULL},
	{"linux.resources.cpu.quota", I64, "1e3"},
	{"linux.resources.cpu.burst", "0", "1000000", NULL, NULL},
	{"linux.resources.cpu.period", U64, NULL},
	{"linux.resources.cpu.realtimeRuntime", I64, "1.5"},
	{"linux.resources.cpu.realtimePeriod", U64, NULL},
	{"linux.resources.cpu.idle", "0", "1", "2", NULL},
	{"linux.resources.pids.limit", I64, "null"},
	{"linux.resources.blockIO.weight", U16, NULL},
	{"linux.resources.blockIO.leafWeight", U16, NULL},
	{"linux.resources.blockIO.weightDevice[0].major", I64, "''"},
	{"linux.resources.blockIO.weightDevice[0].minor", I64, "true"},
	{"linux.resources.blockIO.weightDevice[0].weight", U16, NULL},
	{"linux.resources.blockIO.weightDevice[0].leafWeight", U16, NULL},
	{"linux.resources.blockIO.throttleReadBpsDevice[0].rate", U64, NULL},
	{"linux.resources.hugepageLimits[0].limit", U64, NULL},
	{"linux.resources.network.classID", U32, NULL},
	{"linux.resources.network.priorities[0].priority", U32, NULL},
	{"linux.resources.rdma[\"mlx5_1\"].hcaHandles", U32, NULL},
	{"linux.resources.rdma[\"mlx5_1\"].hcaObjects", U32, NULL},
	{"linux.seccomp.defaultErrnoRet", U32, NULL},
	{"linux.seccomp.syscalls[1].errnoRet", U32, NULL},
	{"linux.seccomp.syscalls[1].args[0].index", "0", "5", "6", NULL},
	{"linux.seccomp.syscalls[1].args[0].value", U64, NULL},
	{"linux.seccomp.syscalls[1].args[0].valueTwo", U64, NULL},
};

static void test_ranges(void **state)
{
	char says[128];

	(void)state;
	for (size_t i = 0; i < COUNT(ranges); i++) {
		const struct range *range = &ranges[i];

		takes(range->path, range->lowest);
		takes(range->path, range->highest);
		snprintf(says, sizeof says, "%s: must be a whole number from ", range->path);
		refuses(range->path, range->below ? range->below : "-1", says);
		if (range->above)
			refuses(range->path, range->above, says);
	}
	refuses("linux.resources.memory.limit", "'lots'",
	        "linux.resources.memory.limit: must be a whole number from -1 to "
	        "9223372036854775807, not \"lots\"");
	refuses("process.user.uid", "4294967296",
	        "process.user.uid: must be a whole number from 0 to 4294967295, not 4294967296");
}

/* ---- words ---- */

struct word {
	const char *name;
	long value;
};
struct words {
	const char *path;
	bool array; /* of one word, or the word itself */
	long (*member)(const struct oci_config *config);
	struct word words[24];
};

#define MEMBER(name, expression)                                                                   \
	static long name(const struct oci_config *config)                                          \
	{                                                                                          \
		return (long)(config->expression);                                                 \
	}
MEMBER(rlimit, process->rlimits.items[0].type)
MEMBER(policy, process->scheduler->policy)
MEMBER(scheduler_flag, process->scheduler->flags)
MEMBER(io_class, process->io_priority->class)
MEMBER(device_type, linux_part->devices.items[0].type)
MEMBER(rule_type, linux_part->resources->devices.items[1].type)
MEMBER(propagation, linux_part->rootfs_propagation)
MEMBER(action, linux_part->seccomp->syscalls.items[1].action)
MEMBER(default_action, linux_part->seccomp->default_action)
MEMBER(operator, linux_part->seccomp->syscalls.items[1].args.items[0].op)
MEMBER(filter_flag, linux_part->seccomp->flags)
MEMBER(architecture, linux_part->seccomp->architectures)
MEMBER(domain, linux_part->personality->domain)
MEMBER(memory_mode, linux_part->memory_policy->mode)
MEMBER(memory_flag, linux_part->memory_policy->flags)

#define W(name)                                                                                    \
	{                                                                                          \
#name, name                                                                        \
	}
#define A(name)                                                                                    \
	{                                                                                          \
		"SCMP_ARCH_" #name, 1L << OCI_ARCH_##name                                          \
	}
static const struct words words[] = {
	{"process.rlimits[0].type",
         false,
         rlimit,
         {W(RLIMIT_AS), W(RLIMIT_CPU), W(RLIMIT_DATA), W(RLIMIT_FSIZE), W(RLIMIT_LOCKS),
          W(RLIMIT_MEMLOCK), W(RLIMIT_MSGQUEUE), W(RLIMIT_NICE), W(RLIMIT_NOFILE), W(RLIMIT_NPROC),
          W(RLIMIT_RSS), W(RLIMIT_RTPRIO), W(RLIMIT_RTTIME), W(RLIMIT_SIGPENDING),
          W(RLIMIT_STACK)}},
	{"process.scheduler.policy",
         false,
         policy,
         {W(SCHED_OTHER),
          W(SCHED_FIFO),
          W(SCHED_RR),
          W(SCHED_BATCH),
          {"SCHED_ISO", 4},
          W(SCHED_IDLE),
          W(SCHED_DEADLINE)}},
	{"process.scheduler.flags",
         true,
         scheduler_flag,
         {W(SCHED_FLAG_RESET_ON_FORK), W(SCHED_FLAG_RECLAIM), W(SCHED_FLAG_DL_OVERRUN),
          W(SCHED_FLAG_KEEP_POLICY), W(SCHED_FLAG_KEEP_PARAMS), W(SCHED_FLAG_UTIL_CLAMP_MIN),
          W(SCHED_FLAG_UTIL_CLAMP_MAX)}},
	{"process.ioPriority.class",
         false,
         io_class,
         {W(IOPRIO_CLASS_RT), W(IOPRIO_CLASS_BE), W(IOPRIO_CLASS_IDLE)}},
	{"linux.devices[0].type",
         false,
         device_type,
         {{"c", 'c'}, {"b", 'b'}, {"u", 'u'}, {"p", 'p'}}},
	{"linux.resources.devices[1].type", false, rule_type, {{"a", 'a'}, {"c", 'c'}, {"b", 'b'}}},
	{"linux.rootfsPropagation",
         false,
         propagation,
         {{"private", MS_PRIVATE},
          {"rprivate", MS_PRIVATE | MS_REC},
          {"shared", MS_SHARED},
          {"rshared", MS_SHARED | MS_REC},
          {"slave", MS_SLAVE},
          {"rslave", MS_SLAVE | MS_REC},
          {"unbindable", MS_UNBINDABLE},
          {"runbindable", MS_UNBINDABLE | MS_REC}}},
	/* the others cannot have the errno that stands beside these: see test_seccomp_actions */
	{"linux.seccomp.syscalls[1].action",
         false,
         action,
         {{"SCMP_ACT_ERRNO", OCI_ACT_ERRNO}, {"SCMP_ACT_TRACE", OCI_ACT_TRACE}}},
	{"linux.seccomp.defaultAction",
         false,
         default_action,
         {{"SCMP_ACT_ERRNO", OCI_ACT_ERRNO}, {"SCMP_ACT_TRACE", OCI_ACT_TRACE}}},
	{
		"linux.seccomp.syscalls[1].args[0].op",
		false,
		operator,
		{{"SCMP_CMP_NE", OCI_CMP_NE},
                 {"SCMP_CMP_LT", OCI_CMP_LT},
                 {"SCMP_CMP_LE", OCI_CMP_LE},
                 {"SCMP_CMP_EQ", OCI_CMP_EQ},
                 {"SCMP_CMP_GE", OCI_CMP_GE},
                 {"SCMP_CMP_GT", OCI_CMP_GT},
                 {"SCMP_CMP_MASKED_EQ", OCI_CMP_MASKED_EQ}} },
		{"linux.seccomp.flags",
                 true,
                 filter_flag,
                 {W(SECCOMP_FILTER_FLAG_TSYNC), W(SECCOMP_FILTER_FLAG_LOG),
                  W(SECCOMP_FILTER_FLAG_SPEC_ALLOW), W(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)}},
		{"linux.seccomp.architectures",
                 true,
                 architecture,
                 {A(X86),         A(X86_64), A(X32),    A(ARM),       A(AARCH64), A(LOONGARCH64),
                  A(M68K),        A(MIPS),   A(MIPS64), A(MIPS64N32), A(MIPSEL),  A(MIPSEL64),
                  A(MIPSEL64N32), A(PPC),    A(PPC64),  A(PPC64LE),   A(S390),    A(S390X),
                  A(SH),          A(SHEB),   A(PARISC), A(PARISC64),  A(RISCV64)}},
		{"linux.personality.domain",
                 false,
                 domain,
                 {{"LINUX", PER_LINUX}, {"LINUX32", PER_LINUX32}}},
		{"linux.memoryPolicy.mode",
                 false,
                 memory_mode,
                 {W(MPOL_DEFAULT),
                  W(MPOL_BIND),
                  W(MPOL_INTERLEAVE),
                  {"MPOL_WEIGHTED_INTERLEAVE", 6},
                  W(MPOL_PREFERRED),
                  W(MPOL_PREFERRED_MANY),
                  W(MPOL_LOCAL)}},
		{"linux.memoryPolicy.flags",
                 true,
                 memory_flag,
                 {W(MPOL_F_NUMA_BALANCING), W(MPOL_F_RELATIVE_NODES), W(MPOL_F_STATIC_NODES)}},
	};

static void means(const struct words *list, const struct word *word)
{
	scoped_config config = {0};
	char value[128];
	struct err e;

	snprintf(value, sizeof value, list->array ? "['%s']" : "'%s'", word->name);
	if (parse_changed(list->path, value, &config, &e) < 0)
		fail_msg("%s = %s: %s", list->path, value, e.text);
	if (list->member(&config) != word->value)
		fail_msg("%s = %s is %ld, not %ld", list->path, value, list->member(&config),
		         word->value);
}

static void test_words(void **state)
{
	char says[128];

	(void)state;
	for (size_t i = 0; i < COUNT(words); i++) {
		const bool array = words[i].array;

		for (size_t j = 0; j < COUNT(words[i].words) && words[i].words[j].name; j++)
			means(&words[i], &words[i].words[j]);
		snprintf(says, sizeof says, "%s%s: \"nonsense\" is none of the values that can be",
		         words[i].path, array ? "[0]" : "");
		refuses(words[i].path, array ? "['nonsense']" : "'nonsense'", says);
	}
	refuses("linux.namespaces[0].type", "'PID'", "linux.namespaces[0].type: \"PID\" is none");
	/* no value is known to the spec */
	refuses("linux.personality.flags", "['ADDR_NO_RANDOMIZE']",
	        "linux.personality.flags[0]: \"ADDR_NO_RANDOMIZE\" is none of the values that can "
	        "be (there are none)");
	refuses("linux.rootfsPropagation", "'peer'",
	        "linux.rootfsPropagation: \"peer\" is none of the values that can be (private, "
	        "rprivate, shared, rshared, slave, rslave, unbindable, runbindable)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),     cmocka_unit_test(test_absolute_paths),
		cmocka_unit_test(test_filled_texts), cmocka_unit_test(test_formats),
		cmocka_unit_test(test_sysctl_names), cmocka_unit_test(test_unified_names),
		cmocka_unit_test(test_ranges),       cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
