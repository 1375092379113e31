/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is a list in linux.resources: blockIO's devices, huge pages, networks, rdma, unified. Each entry
 * is one write; a key in an error has the entry's index or name.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "container/group_internal.h"

enum { KEY_SIZE = 160, FILE_SIZE = 96, TEXT_SIZE = 128 };

static bool on_v1(const struct group_change *change, const char *controller)
{
	return group_v1(change->group, controller) != NULL;
}

/* ---- blockIO ---- */

/* A weight is of the scheduler bfq, or else of the kernel's own cost model (v1: of the old cfq). */
static int write_weight(const struct group_change *change, const char *key, const char *device,
                        uint64_t weight, struct err *e)
{
	bool v1 = on_v1(change, "blkio");
	const char *controller = v1 ? "blkio" : "io";
	const char *suffix = v1 && *device ? "_device" : "";
	char file[FILE_SIZE], text[TEXT_SIZE];
	struct group_setting setting = {key, controller, file};
	int r;

	snprintf(file, sizeof file, "%s.bfq.weight%s", controller, suffix);
	snprintf(text, sizeof text, "%s%" PRIu64, device, weight);
	r = group_write(change->group, &setting, text, true, e);
	if (r != -ENOENT || e->code)
		return r;
	snprintf(file, sizeof file, "%s.weight%s", controller, suffix);
	snprintf(text, sizeof text, "%s%" PRIu64, device,
	         v1 ? weight : group_weight_of_block_io(weight));
	return group_write(change->group, &setting, text, false, e);
}

/* Of cfq, which no kernel since 5.0 has. */
static int write_leaf_weight(const struct group_change *change, const char *key, const char *device,
                             uint64_t weight, struct err *e)
{
	const struct group_setting setting = {
		key, "blkio", *device ? "blkio.leaf_weight_device" : "blkio.leaf_weight"};
	char text[TEXT_SIZE];

	if (!on_v1(change, "blkio"))
		return group_refuse(key, "cgroup v2 has nothing like it", e);
	snprintf(text, sizeof text, "%s%" PRIu64, device, weight);
	return group_write(change->group, &setting, text, false, e);
}

static int set_weight_devices(const struct group_change *change,
                              const struct oci_weight_devices *devices, struct err *e)
{
	for (size_t i = 0; i < devices->count; i++) {
		const struct oci_weight_device *of = &devices->items[i];
		char key[KEY_SIZE], device[TEXT_SIZE / 2];

		snprintf(device, sizeof device, "%" PRIi64 ":%" PRIi64 " ", of->major, of->minor);
		snprintf(key, sizeof key, "linux.resources.blockIO.weightDevice[%zu].weight", i);
		if (of->weight.set)
			TRY(write_weight(change, key, device, of->weight.value, e));
		snprintf(key, sizeof key, "linux.resources.blockIO.weightDevice[%zu].leafWeight",
		         i);
		if (of->leaf_weight.set)
			TRY(write_leaf_weight(change, key, device, of->leaf_weight.value, e));
	}
	return 0;
}

struct throttle {
	const char *key, *v1_file, *v2_name;
	size_t member; /* of struct oci_block_io */
};

static const struct throttle throttles[] = {
	{"throttleReadBpsDevice", "blkio.throttle.read_bps_device", "rbps",
         offsetof(struct oci_block_io, read_bps)},
	{"throttleWriteBpsDevice", "blkio.throttle.write_bps_device", "wbps",
         offsetof(struct oci_block_io, write_bps)},
	{"throttleReadIOPSDevice", "blkio.throttle.read_iops_device", "riops",
         offsetof(struct oci_block_io, read_iops)},
	{"throttleWriteIOPSDevice", "blkio.throttle.write_iops_device", "wiops",
         offsetof(struct oci_block_io, write_iops)},
};

/* A rate of 0 lifts the limit, as v1 has it. */
static int set_throttle(const struct group_change *change, const struct throttle *throttle,
                        const struct oci_throttle_devices *devices, struct err *e)
{
	bool v1 = on_v1(change, "blkio");

	for (size_t i = 0; i < devices->count; i++) {
		const struct oci_throttle_device *of = &devices->items[i];
		char key[KEY_SIZE], rate[32], text[TEXT_SIZE];
		const struct group_setting setting = {key, v1 ? "blkio" : "io",
		                                      v1 ? throttle->v1_file : "io.max"};

		snprintf(key, sizeof key, "linux.resources.blockIO.%s[%zu]", throttle->key, i);
		snprintf(rate, sizeof rate, "%" PRIu64, of->rate);
		snprintf(text, sizeof text, "%" PRIi64 ":%" PRIi64 " %s%s%s", of->major, of->minor,
		         v1 ? "" : throttle->v2_name, v1 ? "" : "=",
		         !v1 && of->rate == 0 ? "max" : rate);
		TRY(group_write(change->group, &setting, text, false, e));
	}
	return 0;
}

int group_set_block_io(const struct group_change *change, struct err *e)
{
	const struct oci_block_io *io = change->resources->block_io;

	if (!io)
		return 0;
	if (io->weight.set && io->weight.value)
		TRY(write_weight(change, "linux.resources.blockIO.weight", "", io->weight.value,
		                 e));
	if (io->leaf_weight.set && io->leaf_weight.value)
		TRY(write_leaf_weight(change, "linux.resources.blockIO.leafWeight", "",
		                      io->leaf_weight.value, e));
	TRY(set_weight_devices(change, &io->weight_device, e));
	for (size_t i = 0; i < sizeof throttles / sizeof *throttles; i++) {
		const void *devices = (const char *)io + throttles[i].member;

		TRY(set_throttle(change, &throttles[i], devices, e));
	}
	return 0;
}

/* ---- the others ---- */

/* What is reserved and not yet touched counts where the kernel can count it, and what is touched. */
int group_set_hugepages(const struct group_change *change, struct err *e)
{
	const struct oci_hugepage_limits *limits = &change->resources->hugepage_limits;
	const char *end = on_v1(change, "hugetlb") ? "limit_in_bytes" : "max";

	for (size_t i = 0; i < limits->count; i++) {
		const struct oci_hugepage_limit *of = &limits->items[i];
		char key[KEY_SIZE], file[FILE_SIZE], text[TEXT_SIZE];
		const struct group_setting setting = {key, "hugetlb", file};

		snprintf(key, sizeof key, "linux.resources.hugepageLimits[%zu]", i);
		snprintf(text, sizeof text, "%" PRIu64, of->limit);
		TRY(text_format(file, sizeof file, e, "hugetlb.%s.%s", of->page_size, end));
		TRY(group_write(change->group, &setting, text, false, e));
		TRY(text_format(file, sizeof file, e, "hugetlb.%s.rsvd.%s", of->page_size, end));
		if (group_write(change->group, &setting, text, true, e) < 0 && e->code)
			return -e->code;
	}
	return 0;
}

int group_set_network(const struct group_change *change, struct err *e)
{
	static const char only_v1[] = "its controller is of cgroup v1 only, and no v1 hierarchy "
				      "here has it";
	const struct oci_network *network = change->resources->network;
	const struct group_setting class_id = {"linux.resources.network.classID", "net_cls",
	                                       "net_cls.classid"};
	char text[TEXT_SIZE], key[KEY_SIZE];

	if (!network)
		return 0;
	if (network->class_id.set && network->class_id.value) {
		if (!on_v1(change, "net_cls"))
			return group_refuse(class_id.key, only_v1, e);
		snprintf(text, sizeof text, "%" PRIu64, network->class_id.value);
		TRY(group_write(change->group, &class_id, text, false, e));
	}
	for (size_t i = 0; i < network->priorities.count; i++) {
		const struct oci_interface_priority *of = &network->priorities.items[i];
		const struct group_setting priority = {key, "net_prio", "net_prio.ifpriomap"};

		snprintf(key, sizeof key, "linux.resources.network.priorities[%zu]", i);
		if (!on_v1(change, "net_prio"))
			return group_refuse(key, only_v1, e);
		if (strpbrk(of->name, " \t\n") ||
		    text_format(text, sizeof text, e, "%s %" PRIu32, of->name, of->priority) < 0)
			return err_set(e, EINVAL, "%s.name: no network interface has such a name",
			               key);
		TRY(group_write(change->group, &priority, text, false, e));
	}
	return 0;
}

int group_set_rdma(const struct group_change *change, struct err *e)
{
	const struct oci_rdmas *rdma = &change->resources->rdma;

	for (size_t i = 0; i < rdma->count; i++) {
		const struct oci_rdma *of = &rdma->items[i];
		char key[KEY_SIZE], handles[32] = "", objects[32] = "", text[TEXT_SIZE];
		const struct group_setting setting = {key, "rdma", "rdma.max"};

		snprintf(key, sizeof key, "linux.resources.rdma.%.64s", of->device);
		if (of->hca_handles.set)
			snprintf(handles, sizeof handles, " hca_handle=%" PRIu64,
			         of->hca_handles.value);
		if (of->hca_objects.set)
			snprintf(objects, sizeof objects, " hca_object=%" PRIu64,
			         of->hca_objects.value);
		if (strpbrk(of->device, " \t\n") ||
		    text_format(text, sizeof text, e, "%s%s%s", of->device, handles, objects) < 0)
			return err_set(e, EINVAL, "%s: no device has such a name", key);
		TRY(group_write(change->group, &setting, text, false, e));
	}
	return 0;
}

/* These move, stop or end processes, or hand the group on: no limits, and not the document's to say. */
static const char *const unified_refused[] = {
	"cgroup.procs",  "cgroup.threads", "cgroup.kill",
	"cgroup.freeze", "cgroup.type",    "cgroup.subtree_control",
};

static int check_unified(const struct group_change *change, const char *key, const char *file,
                         const char *controller, struct err *e)
{
	if (!group_v2(change->group))
		return group_refuse(key, "there is no cgroup v2 tree here", e);
	if (strchr(file, '/') || *controller == '\0')
		return err_set(e, EINVAL,
		               "%s: give the name of a file of a cgroup, such as "
		               "\"memory.high\"",
		               key);
	for (size_t i = 0; i < sizeof unified_refused / sizeof *unified_refused; i++)
		if (strcmp(file, unified_refused[i]) == 0)
			return group_refuse(key, "that is no limit", e);
	if (on_v1(change, controller))
		return err_set(e, ENOTSUP,
		               "%s: the %s controller sits on cgroup v1 here; use the other keys "
		               "of linux.resources, or boot with "
		               "systemd.unified_cgroup_hierarchy=1",
		               key, controller);
	return 0;
}

/* Files of a line for each device take one line at a time. */
int group_set_unified(const struct group_change *change, struct err *e)
{
	const struct oci_map *unified = &change->resources->unified;

	for (size_t i = 0; i < unified->count; i++) {
		const char *file = unified->items[i].key;
		scoped_mem char *lines = strdup(unified->items[i].value);
		char key[KEY_SIZE], controller[CONTROLLER_NAME_SIZE], *next = lines, *line;
		const struct group_setting setting = {key, controller, file};

		if (!lines)
			return err_set(e, ENOMEM, "linux.resources.unified: no memory");
		snprintf(key, sizeof key, "linux.resources.unified.%.100s", file);
		snprintf(controller, sizeof controller, "%.*s", (int)strcspn(file, "."), file);
		TRY(check_unified(change, key, file, controller, e));
		while ((line = strsep(&next, "\n")))
			if (*line || line == lines)
				TRY(group_write(change->group, &setting, line, false, e));
	}
	return 0;
}
