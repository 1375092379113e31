/* SPDX-License-Identifier: Apache-2.0 */
/* oci/config.h: every key of the runtime-spec is read into its member, from no other type than its
 * own, and the spec's own examples are taken and refused as they should be. */
#include <dirent.h>
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

#include "base/files.h"
#include "base/scoped.h"
#include "tests/unit/oci_fixture.h"

static void full(struct oci_config *config)
{
	scoped_json document = oci_full();
	struct err e;

	if (parse_document(document, config, &e) < 0)
		fail_msg("%s", e.text);
}

/* ---- every key ---- */

/* WANTED ends with NULL, as the list does. */
static void same_strings(const struct oci_strings *list, const char *const wanted[])
{
	size_t count = 0;

	for (; wanted[count]; count++) {
		assert_true(count < list->count);
		assert_string_equal(list->items[count], wanted[count]);
	}
	assert_int_equal(list->count, count);
	assert_null(list->items[count]);
}
#define assert_strings(list, ...) same_strings(&(list), (const char *const[]){__VA_ARGS__, NULL})

#define assert_set(number, wanted)                                                                 \
	do {                                                                                       \
		assert_true((number).set);                                                         \
		assert_true((number).value == (wanted));                                           \
	} while (0)

#define assert_mapping(mapping, container, host, how_many)                                         \
	do {                                                                                       \
		assert_int_equal((mapping).container_id, container);                               \
		assert_int_equal((mapping).host_id, host);                                         \
		assert_int_equal((mapping).size, how_many);                                        \
	} while (0)

#define assert_pair(pair, name, text)                                                              \
	do {                                                                                       \
		assert_string_equal((pair).key, name);                                             \
		assert_string_equal((pair).value, text);                                           \
	} while (0)

static void test_top(void **state)
{
	scoped_config config;

	(void)state;
	full(&config);
	assert_string_equal(config.version, "1.3.0");
	assert_string_equal(config.root->path, "rootfs");
	assert_true(config.root->readonly);
	assert_string_equal(config.hostname, "host");
	assert_string_equal(config.domainname, "domain.test");
	assert_int_equal(config.annotations.count, 2);
	assert_pair(config.annotations.items[0], "com.example.key", "value");
	assert_pair(config.annotations.items[1], "empty", "");
}

static void test_mounts(void **state)
{
	scoped_config config;
	const struct oci_mount *mount;

	(void)state;
	full(&config);
	assert_int_equal(config.mounts.count, 2);
	mount = &config.mounts.items[0];
	assert_string_equal(mount->destination, "/proc");
	assert_string_equal(mount->type, "proc");
	assert_string_equal(mount->source, "proc");
	assert_strings(mount->options, "nosuid", "noexec");
	assert_int_equal(mount->uid_mappings.count, 0);
	mount = &config.mounts.items[1];
	assert_null(mount->type);
	assert_string_equal(mount->source, "/srv/data");
	assert_int_equal(mount->uid_mappings.count, 2);
	assert_mapping(mount->uid_mappings.items[1], 10, 200000, 5);
	assert_int_equal(mount->gid_mappings.count, 1);
	assert_mapping(mount->gid_mappings.items[0], 1, 300000, 20);
}

static void test_process(void **state)
{
	scoped_config config;
	const struct oci_process *process;

	(void)state;
	full(&config);
	process = config.process;
	assert_true(process->terminal);
	assert_int_equal(process->console_size->height, 25);
	assert_int_equal(process->console_size->width, 80);
	assert_int_equal(process->user->uid, 1000);
	assert_int_equal(process->user->gid, 1001);
	assert_set(process->user->umask, 18);
	assert_int_equal(process->user->additional_gids.count, 2);
	assert_int_equal(process->user->additional_gids.items[1], UINT32_MAX);
	assert_strings(process->args, "sh", "-c", "echo \"$A\"");
	assert_strings(process->env, "PATH=/bin", "A=b");
	assert_string_equal(process->cwd, "/root");
	assert_strings(process->capabilities->bounding, "CAP_KILL", "CAP_CHOWN");
	assert_strings(process->capabilities->effective, "CAP_KILL");
	assert_int_equal(process->capabilities->inheritable.count, 0);
	assert_strings(process->capabilities->permitted, "CAP_NEW_ONE");
	assert_strings(process->capabilities->ambient, "CAP_AUDIT_WRITE");
	assert_string_equal(process->apparmor_profile, "a profile");
	assert_string_equal(process->selinux_label, "system_u:system_r:process_t:s0");
	assert_true(process->no_new_privileges);
	assert_set(process->oom_score_adj, -100);
}

static void test_process_limits(void **state)
{
	scoped_config config;
	const struct oci_process *process;

	(void)state;
	full(&config);
	process = config.process;
	assert_int_equal(process->rlimits.count, 2);
	assert_int_equal(process->rlimits.items[0].type, RLIMIT_NOFILE);
	assert_int_equal(process->rlimits.items[0].soft, 1024);
	assert_int_equal(process->rlimits.items[0].hard, 4096);
	assert_int_equal(process->rlimits.items[1].type, RLIMIT_CORE);
	assert_true(process->rlimits.items[1].hard == RLIM_INFINITY);
	assert_int_equal(process->scheduler->policy, SCHED_DEADLINE);
	assert_int_equal(process->scheduler->nice, -5);
	assert_int_equal(process->scheduler->priority, 3);
	assert_int_equal(process->scheduler->flags,
	                 SCHED_FLAG_RESET_ON_FORK | SCHED_FLAG_UTIL_CLAMP_MAX);
	assert_int_equal(process->scheduler->runtime, 1000000);
	assert_int_equal(process->scheduler->deadline, 2000000);
	assert_int_equal(process->scheduler->period, 3000000);
	assert_int_equal(process->io_priority->class, IOPRIO_CLASS_IDLE);
	assert_int_equal(process->io_priority->priority, 4);
	assert_string_equal(process->exec_cpu_affinity->initial, "7");
	assert_string_equal(process->exec_cpu_affinity->final, "0-3,7");
}

static void test_hooks(void **state)
{
	scoped_config config;
	const struct oci_hook *hook;

	(void)state;
	full(&config);
	assert_int_equal(config.hooks.prestart.count, 1);
	assert_string_equal(config.hooks.prestart.items[0].path, "/hook/prestart");
	assert_int_equal(config.hooks.create_runtime.count, 1);
	hook = config.hooks.create_runtime.items;
	assert_string_equal(hook->path, "/hook/create-runtime");
	assert_strings(hook->args, "hook", "one");
	assert_strings(hook->env, "K=v");
	assert_set(hook->timeout, 5);
	assert_string_equal(config.hooks.create_container.items[0].path, "/hook/create-container");
	assert_false(config.hooks.create_container.items[0].timeout.set);
	assert_string_equal(config.hooks.start_container.items[0].path, "/hook/start-container");
	assert_string_equal(config.hooks.poststart.items[0].path, "/hook/poststart");
	assert_int_equal(config.hooks.poststop.count, 2);
	assert_string_equal(config.hooks.poststop.items[1].path, "/hook/poststop-2");
}

static void test_linux_namespaces(void **state)
{
	static const int types[] = {CLONE_NEWPID, CLONE_NEWNET,  CLONE_NEWNS,     CLONE_NEWIPC,
	                            CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWCGROUP, CLONE_NEWTIME};
	scoped_config config;
	const struct oci_linux *part;

	(void)state;
	full(&config);
	part = config.linux_part;
	assert_int_equal(part->namespaces.count, 8);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(part->namespaces.items[i].type, types[i]);
		assert_ptr_equal(oci_config_namespace(&config, types[i]),
		                 &part->namespaces.items[i]);
	}
	assert_string_equal(part->namespaces.items[0].path, "/proc/1234/ns/pid");
	assert_null(part->namespaces.items[1].path);
	assert_mapping(part->uid_mappings.items[0], 0, 1000, 32000);
	assert_mapping(part->gid_mappings.items[0], 0, 2000, 32000);
	assert_true(part->time_offsets.boottime->secs == -604800);
	assert_int_equal(part->time_offsets.boottime->nanosecs, 4);
	assert_int_equal(part->time_offsets.monotonic->secs, 172800);
	assert_int_equal(part->time_offsets.monotonic->nanosecs, 999999999);
}

static void test_linux(void **state)
{
	scoped_config config;
	const struct oci_linux *part;

	(void)state;
	full(&config);
	part = config.linux_part;
	assert_int_equal(part->net_devices.count, 2);
	assert_string_equal(part->net_devices.items[0].host_name, "eth0");
	assert_string_equal(part->net_devices.items[0].name, "inner0");
	assert_string_equal(part->net_devices.items[1].host_name, "ens4");
	assert_null(part->net_devices.items[1].name);
	assert_int_equal(part->sysctl.count, 2);
	assert_pair(part->sysctl.items[0], "net.ipv4.ip_forward", "1");
	assert_pair(part->sysctl.items[1], "net/core/somaxconn", "256");
	assert_string_equal(part->cgroups_path, "/ours/container");
	assert_int_equal(part->rootfs_propagation, MS_SLAVE);
	assert_strings(part->masked_paths, "/proc/kcore", "/proc/keys");
	assert_strings(part->readonly_paths, "/proc/sys");
	assert_string_equal(part->mount_label, "system_u:object_r:file_t:s0");
	assert_string_equal(part->intel_rdt->clos_id, "group");
	assert_strings(part->intel_rdt->schemata, "L3:0=f", "MB:0=20");
	assert_string_equal(part->intel_rdt->l3_cache_schema, "L3:0=7f0;1=1f");
	assert_string_equal(part->intel_rdt->mem_bw_schema, "MB:0=20;1=70");
	assert_true(part->intel_rdt->enable_monitoring);
	assert_int_equal(part->personality->domain, PER_LINUX32);
	assert_int_equal(part->personality->flags, 0);
	assert_int_equal(part->memory_policy->mode, MPOL_INTERLEAVE);
	assert_string_equal(part->memory_policy->nodes, "0-3,7");
	assert_int_equal(part->memory_policy->flags, MPOL_F_STATIC_NODES);
}

static void test_linux_devices(void **state)
{
	scoped_config config;
	const struct oci_device *device;
	const struct oci_device_rule *rule;

	(void)state;
	full(&config);
	assert_int_equal(config.linux_part->devices.count, 2);
	device = config.linux_part->devices.items;
	assert_int_equal(device->type, 'c');
	assert_string_equal(device->path, "/dev/fuse");
	assert_set(device->major, 10);
	assert_set(device->minor, 229);
	assert_set(device->file_mode, 0666);
	assert_set(device->uid, 1);
	assert_set(device->gid, 2);
	device++;
	assert_int_equal(device->type, 'p');
	assert_false(device->major.set || device->minor.set || device->file_mode.set ||
	             device->uid.set || device->gid.set);
	assert_int_equal(config.linux_part->resources->devices.count, 2);
	rule = config.linux_part->resources->devices.items;
	assert_false(rule->allow);
	assert_int_equal(rule->type, 'a');
	assert_false(rule->major.set || rule->minor.set);
	assert_string_equal(rule->access, "rwm");
	rule++;
	assert_true(rule->allow);
	assert_int_equal(rule->type, 'b');
	assert_set(rule->major, 8);
	assert_set(rule->minor, -1);
	assert_string_equal(rule->access, "r");
}

static void test_resources(void **state)
{
	scoped_config config;
	const struct oci_resources *all;

	(void)state;
	full(&config);
	all = config.linux_part->resources;
	assert_int_equal(all->unified.count, 2);
	assert_pair(all->unified.items[0], "memory.high", "1073741824");
	assert_pair(all->unified.items[1], "io.max", "259:0 rbps=2097152");
	assert_set(all->memory->limit, 536870912);
	assert_set(all->memory->reservation, 268435456);
	assert_set(all->memory->swap, -1);
	assert_set(all->memory->kernel, 1);
	assert_set(all->memory->kernel_tcp, 2);
	assert_set(all->memory->swappiness, 60);
	assert_set(all->memory->disable_oom_killer, false);
	assert_set(all->memory->use_hierarchy, true);
	assert_set(all->memory->check_before_update, true);
	assert_set(all->cpu->shares, 1024);
	assert_set(all->cpu->quota, 1000000);
	assert_set(all->cpu->burst, 1000000);
	assert_set(all->cpu->period, 500000);
	assert_set(all->cpu->realtime_runtime, 950000);
	assert_set(all->cpu->realtime_period, 1000000);
	assert_string_equal(all->cpu->cpus, "2-3");
	assert_string_equal(all->cpu->mems, "0-7");
	assert_set(all->cpu->idle, 1);
	assert_int_equal(all->pids->limit, 32771);
	assert_int_equal(all->hugepage_limits.count, 1);
	assert_string_equal(all->hugepage_limits.items[0].page_size, "2MB");
	assert_true(all->hugepage_limits.items[0].limit == UINT64_MAX);
}

#define assert_throttle(list, number, wanted)                                                      \
	do {                                                                                       \
		assert_int_equal((list).count, 1);                                                 \
		assert_int_equal((list).items[0].major, 8);                                        \
		assert_int_equal((list).items[0].minor, number);                                   \
		assert_int_equal((list).items[0].rate, wanted);                                    \
	} while (0)

static void test_resources_of_devices(void **state)
{
	scoped_config config;
	const struct oci_resources *all;
	const struct oci_block_io *io;

	(void)state;
	full(&config);
	all = config.linux_part->resources;
	io = all->block_io;
	assert_set(io->weight, 10);
	assert_set(io->leaf_weight, 11);
	assert_int_equal(io->weight_device.count, 2);
	assert_int_equal(io->weight_device.items[0].major, 8);
	assert_int_equal(io->weight_device.items[1].minor, 16);
	assert_set(io->weight_device.items[0].weight, 500);
	assert_set(io->weight_device.items[0].leaf_weight, 300);
	assert_false(io->weight_device.items[1].leaf_weight.set);
	assert_throttle(io->read_bps, 2, 600);
	assert_throttle(io->write_bps, 3, 601);
	assert_throttle(io->read_iops, 4, 602);
	assert_throttle(io->write_iops, 5, 603);
	assert_set(all->network->class_id, 1048577);
	assert_int_equal(all->network->priorities.count, 2);
	assert_string_equal(all->network->priorities.items[1].name, "eth1");
	assert_int_equal(all->network->priorities.items[1].priority, 1000);
	assert_int_equal(all->rdma.count, 2);
	assert_string_equal(all->rdma.items[0].device, "mlx5_1");
	assert_set(all->rdma.items[0].hca_handles, 3);
	assert_set(all->rdma.items[0].hca_objects, 10000);
	assert_string_equal(all->rdma.items[1].device, "rxe3");
	assert_false(all->rdma.items[1].hca_handles.set);
}

static void test_seccomp(void **state)
{
	scoped_config config;
	const struct oci_seccomp *seccomp;
	const struct oci_syscall *call;

	(void)state;
	full(&config);
	seccomp = config.linux_part->seccomp;
	assert_int_equal(seccomp->default_action, OCI_ACT_ERRNO);
	assert_set(seccomp->default_errno_ret, ENOSYS);
	assert_int_equal(seccomp->flags,
	                 SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	assert_string_equal(seccomp->listener_path, "/run/agent.sock");
	assert_string_equal(seccomp->listener_metadata, "for the agent");
	assert_int_equal(seccomp->architectures, 1 << OCI_ARCH_X86_64 | 1 << OCI_ARCH_X32);
	assert_int_equal(seccomp->syscalls.count, 2);
	call = seccomp->syscalls.items;
	assert_strings(call->names, "getcwd", "chmod");
	assert_int_equal(call->action, OCI_ACT_ALLOW);
	assert_false(call->errno_ret.set);
	assert_int_equal(call->args.count, 0);
	call++;
	assert_int_equal(call->action, OCI_ACT_TRACE);
	assert_set(call->errno_ret, EPERM);
	assert_int_equal(call->args.count, 1);
	assert_int_equal(call->args.items[0].index, 5);
	assert_true(call->args.items[0].value == UINT64_MAX);
	assert_int_equal(call->args.items[0].value_two, 2114060288);
	assert_int_equal(call->args.items[0].op, OCI_CMP_MASKED_EQ);
}

/* ---- every key has its type, and some must be there ---- */

struct visited {
	size_t count;
	void (*visit)(const char *path, struct json_object *value, struct visited *visited);
	char required[4096];
};

/* Each value of full.json but the ones that a runtime of Linux does not read. */
static void walk(struct json_object *value, const char *path, struct visited *visited)
{
	char inner[256];

	if (strstr(path, "commandLine") || strstr(path, "username"))
		return;
	if (*path) {
		visited->visit(path, value, visited);
		visited->count++;
	}
	if (json_object_is_type(value, json_type_array))
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			snprintf(inner, sizeof inner, "%s[%zu]", path, i);
			walk(json_object_array_get_idx(value, i), inner, visited);
		}
	if (!json_object_is_type(value, json_type_object))
		return;
	json_object_object_foreach(value, key, child)
	{
		oci_path(inner, sizeof inner, path, key);
		walk(child, inner, visited);
	}
}

static void of_another_type(const char *path, struct json_object *value, struct visited *visited)
{
	scoped_json document = oci_full();
	scoped_config config;
	char wanted[300];
	struct err e;

	(void)visited;
	oci_change(document, path, json_object_is_type(value, json_type_string) ? "7" : "'x'");
	if (parse_document(document, &config, &e) == 0)
		fail_msg("%s is not read: a value of another type is taken", path);
	snprintf(wanted, sizeof wanted, "config.json: %s: must be ", path);
	if (strncmp(e.text, wanted, strlen(wanted)) != 0)
		fail_msg("%s: %s", path, e.text);
	assert_int_equal(e.code, EINVAL);
	assert_string_equal(config.version ? config.version : "", "");
}

static void test_every_key_has_its_type(void **state)
{
	struct visited visited = {.visit = of_another_type};
	scoped_json document = oci_full();

	(void)state;
	walk(document, "", &visited);
	assert_true(visited.count > 300);
}

static void absent(const char *path, struct json_object *value, struct visited *visited)
{
	scoped_json document = oci_full();
	scoped_config config = {0};
	char wanted[300];
	size_t used = strlen(visited->required);
	struct err e;

	(void)value;
	if (path[strlen(path) - 1] == ']')
		return;
	oci_change(document, path, NULL);
	if (parse_document(document, &config, &e) == 0)
		return;
	snprintf(wanted, sizeof wanted, "config.json: %s: is missing, and must be there", path);
	if (!strcmp(e.text, wanted))
		snprintf(visited->required + used, sizeof visited->required - used, "%s\n", path);
}

static void test_required_keys(void **state)
{
	static const char wanted[] = "ociVersion\n"
				     "root.path\n"
				     "mounts[0].destination\n"
				     "mounts[1].destination\n"
				     "mounts[1].uidMappings[0].containerID\n"
				     "mounts[1].uidMappings[0].hostID\n"
				     "mounts[1].uidMappings[0].size\n"
				     "mounts[1].uidMappings[1].containerID\n"
				     "mounts[1].uidMappings[1].hostID\n"
				     "mounts[1].uidMappings[1].size\n"
				     "mounts[1].gidMappings[0].containerID\n"
				     "mounts[1].gidMappings[0].hostID\n"
				     "mounts[1].gidMappings[0].size\n"
				     "process.consoleSize.height\n"
				     "process.consoleSize.width\n"
				     "process.user.uid\n"
				     "process.user.gid\n"
				     "process.cwd\n"
				     "process.rlimits[0].type\n"
				     "process.rlimits[0].soft\n"
				     "process.rlimits[0].hard\n"
				     "process.rlimits[1].type\n"
				     "process.rlimits[1].soft\n"
				     "process.rlimits[1].hard\n"
				     "process.scheduler.policy\n"
				     "process.ioPriority.class\n"
				     "process.ioPriority.priority\n"
				     "hooks.prestart[0].path\n"
				     "hooks.createRuntime[0].path\n"
				     "hooks.createContainer[0].path\n"
				     "hooks.startContainer[0].path\n"
				     "hooks.poststart[0].path\n"
				     "hooks.poststop[0].path\n"
				     "hooks.poststop[1].path\n";
	struct visited visited = {.visit = absent};
	scoped_json document = oci_full();

	(void)state;
	json_object_object_del(document, "linux");
	walk(document, "", &visited);
	assert_string_equal(visited.required, wanted);
}

static void test_required_keys_of_linux(void **state)
{
	static const char wanted[] =
		"linux.namespaces[0].type\nlinux.namespaces[1].type\nlinux.namespaces[2].type\n"
		"linux.namespaces[3].type\nlinux.namespaces[4].type\nlinux.namespaces[5].type\n"
		"linux.namespaces[6].type\nlinux.namespaces[7].type\n"
		"linux.uidMappings[0].containerID\n"
		"linux.uidMappings[0].hostID\n"
		"linux.uidMappings[0].size\n"
		"linux.gidMappings[0].containerID\n"
		"linux.gidMappings[0].hostID\n"
		"linux.gidMappings[0].size\n"
		"linux.devices[0].type\n"
		"linux.devices[0].path\n"
		"linux.devices[1].type\n"
		"linux.devices[1].path\n"
		"linux.resources.devices[0].allow\n"
		"linux.resources.devices[1].allow\n"
		"linux.resources.pids.limit\n"
		"linux.resources.blockIO.weightDevice[0].major\n"
		"linux.resources.blockIO.weightDevice[0].minor\n"
		"linux.resources.blockIO.weightDevice[1].major\n"
		"linux.resources.blockIO.weightDevice[1].minor\n"
		"linux.resources.blockIO.throttleReadBpsDevice[0].major\n"
		"linux.resources.blockIO.throttleReadBpsDevice[0].minor\n"
		"linux.resources.blockIO.throttleReadBpsDevice[0].rate\n"
		"linux.resources.blockIO.throttleWriteBpsDevice[0].major\n"
		"linux.resources.blockIO.throttleWriteBpsDevice[0].minor\n"
		"linux.resources.blockIO.throttleWriteBpsDevice[0].rate\n"
		"linux.resources.blockIO.throttleReadIOPSDevice[0].major\n"
		"linux.resources.blockIO.throttleReadIOPSDevice[0].minor\n"
		"linux.resources.blockIO.throttleReadIOPSDevice[0].rate\n"
		"linux.resources.blockIO.throttleWriteIOPSDevice[0].major\n"
		"linux.resources.blockIO.throttleWriteIOPSDevice[0].minor\n"
		"linux.resources.blockIO.throttleWriteIOPSDevice[0].rate\n"
		"linux.resources.hugepageLimits[0].pageSize\n"
		"linux.resources.hugepageLimits[0].limit\n"
		"linux.resources.network.priorities[0].name\n"
		"linux.resources.network.priorities[0].priority\n"
		"linux.resources.network.priorities[1].name\n"
		"linux.resources.network.priorities[1].priority\n"
		"linux.seccomp.defaultAction\n"
		"linux.seccomp.syscalls[0].names\n"
		"linux.seccomp.syscalls[0].action\n"
		"linux.seccomp.syscalls[1].names\n"
		"linux.seccomp.syscalls[1].action\n"
		"linux.seccomp.syscalls[1].args[0].index\n"
		"linux.seccomp.syscalls[1].args[0].value\n"
		"linux.seccomp.syscalls[1].args[0].op\n"
		"linux.personality.domain\n"
		"linux.memoryPolicy.mode\n";
	struct visited visited = {.visit = absent};
	scoped_json document = oci_full();

	(void)state;
	walk(json_object_object_get(document, "linux"), "linux", &visited);
	assert_string_equal(visited.required, wanted);
}

/* ---- the spec's examples ---- */

/* What is wrong with each of bad/, as the refusal begins. */
static const struct {
	const char *name, *says;
} bad[] = {
	{"freebsd-vnet-disable.json", "config.json: freebsd.jail.vnet: \"disable\" is none of"},
	{"invalid-json.json", "config.json: JSON: "},
	{"linux-hugepage.json", "config.json: linux.resources.hugepageLimits[0].pageSize: must be"},
	{"linux-netdevice.json", "config.json: linux.netDevices[\"eth0\"].name: must be a text"},
	{"linux-rdma.json",
         "config.json: linux.resources.rdma[\"mlx5_1\"].hcaHandles: must be a whole number"},
};

static int parse_file(const char *directory, const char *name, struct oci_config *config,
                      struct err *e)
{
	scoped_mem char *text = NULL;
	char path[512];
	size_t length;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	if (file_read_all(AT_FDCWD, path, 1 << 20, &text, &length, e) < 0)
		fail_msg("%s", e->text);
	return oci_config_parse(text, length, config, e);
}

static size_t examples(const char *directory, void (*each)(const char *directory, const char *name))
{
	scoped_dir dir = opendir(directory);
	size_t count = 0;

	if (!dir)
		fail_msg("%s: %s", directory, strerror(errno));
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.') {
			each(directory, entry->d_name);
			count++;
		}
	return count;
}

static void good_example(const char *directory, const char *name)
{
	scoped_config config;
	struct err e;

	if (parse_file(directory, name, &config, &e) < 0)
		fail_msg("%s: %s", name, e.text);
	assert_string_equal(config.root->path, "rootfs");
}

static void bad_example(const char *directory, const char *name)
{
	scoped_config config;
	struct err e;

	if (parse_file(directory, name, &config, &e) == 0)
		fail_msg("%s is taken", name);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!strcmp(bad[i].name, name)) {
			if (strncmp(e.text, bad[i].says, strlen(bad[i].says)) != 0)
				fail_msg("%s: %s", name, e.text);
			return;
		}
	fail_msg("%s: nobody knows what is wrong with it", name);
}

static void test_good_examples(void **state)
{
	(void)state;
	assert_int_equal(examples(OCI_DATA "config/good", good_example), 9);
}

static void test_bad_examples(void **state)
{
	(void)state;
	assert_int_equal(examples(OCI_DATA "config/bad", bad_example), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top),           cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_process),       cmocka_unit_test(test_process_limits),
		cmocka_unit_test(test_hooks),         cmocka_unit_test(test_linux_namespaces),
		cmocka_unit_test(test_linux),         cmocka_unit_test(test_linux_devices),
		cmocka_unit_test(test_resources),     cmocka_unit_test(test_resources_of_devices),
		cmocka_unit_test(test_seccomp),       cmocka_unit_test(test_every_key_has_its_type),
		cmocka_unit_test(test_required_keys), cmocka_unit_test(test_required_keys_of_linux),
		cmocka_unit_test(test_good_examples), cmocka_unit_test(test_bad_examples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
