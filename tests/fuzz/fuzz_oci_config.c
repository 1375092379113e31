/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of the OCI runtime-spec: config.json (oci/config.c and what it is made of), and the
 * state of a container (oci/state.c). The input is the text of one; each is tried as both.
 *
 * Holds: what is accepted keeps what oci/config.h says of its members, all of which can be read;
 * what is accepted is accepted written anew; a state is read the same when it is written; nothing is
 * left of what is refused, and the refusal is one whole text without control characters.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "oci/config.h"
#include "oci/state.h"

/* The sum of what was read, so that a sanitizer sees every byte of it being used. */
static size_t bytes_read;

static void see_text(const char *text)
{
	if (text) {
		bytes_read += strlen(text);
		CHECK(utf8_valid_prefix(text, strlen(text)) == strlen(text), "invalid UTF-8");
	}
}

static void see_texts(const struct oci_strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		see_text(list->items[i]);
	CHECK(!list->count || !list->items[list->count], "a list without an end");
}

static void see_map(const struct oci_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		see_text(map->items[i].key);
		see_text(map->items[i].value);
		CHECK(map->items[i].value, "a name without a value");
	}
}

static void see_path(const char *path)
{
	CHECK(path && *path == '/', "%s is not absolute", path ? path : "nothing");
	see_text(path);
}

static void see_mappings(const struct oci_mappings *mappings)
{
	uint64_t container_ids = 0, host_ids = 0;

	for (size_t i = 0; i < mappings->count; i++) {
		const struct oci_mapping *mapping = &mappings->items[i];

		CHECK(mapping->size > 0, "a mapping of nothing");
		CHECK((uint64_t)mapping->container_id + mapping->size <= UINT64_C(1) << 32 &&
		              (uint64_t)mapping->host_id + mapping->size <= UINT64_C(1) << 32,
		      "a mapping beyond 32 bits");
		container_ids += mapping->size;
		host_ids += mapping->size;
	}
	/* more ids than there are cannot be apart */
	CHECK(container_ids <= UINT64_C(1) << 32 && host_ids <= UINT64_C(1) << 32, "overlaps");
}

static void see_mounts(const struct oci_config *config)
{
	for (size_t i = 0; i < config->mounts.count; i++) {
		const struct oci_mount *mount = &config->mounts.items[i];

		CHECK(mount->destination && *mount->destination, "a mount on nothing");
		see_text(mount->destination);
		see_text(mount->type);
		see_text(mount->source);
		see_texts(&mount->options);
		see_mappings(&mount->uid_mappings);
		see_mappings(&mount->gid_mappings);
		CHECK(!mount->uid_mappings.count == !mount->gid_mappings.count, "half a mapping");
	}
}

static void see_rlimits(const struct oci_rlimits *limits)
{
	CHECK(limits->count <= 16, "%zu rlimits, and there are 16", limits->count);
	for (size_t i = 0; i < limits->count; i++) {
		CHECK(limits->items[i].soft <= limits->items[i].hard, "soft above hard");
		for (size_t j = 0; j < i; j++)
			CHECK(limits->items[i].type != limits->items[j].type, "an rlimit twice");
	}
}

static void see_process(const struct oci_process *process)
{
	const struct oci_capabilities *capabilities = process->capabilities;

	CHECK(process->args.count > 0, "no command");
	see_path(process->cwd);
	see_texts(&process->args);
	see_texts(&process->env);
	see_text(process->apparmor_profile);
	see_text(process->selinux_label);
	see_rlimits(&process->rlimits);
	CHECK(llabs(process->oom_score_adj.value) <= 1000, "oomScoreAdj");
	if (process->user)
		for (size_t i = 0; i < process->user->additional_gids.count; i++)
			bytes_read += process->user->additional_gids.items[i];
	if (process->io_priority)
		CHECK((uint64_t)process->io_priority->priority <= 7, "ioPriority");
	if (process->exec_cpu_affinity) {
		see_text(process->exec_cpu_affinity->initial);
		see_text(process->exec_cpu_affinity->final);
	}
	if (capabilities) {
		see_texts(&capabilities->bounding);
		see_texts(&capabilities->effective);
		see_texts(&capabilities->inheritable);
		see_texts(&capabilities->permitted);
		see_texts(&capabilities->ambient);
	}
}

static void see_hooks(const struct oci_hook_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		see_path(list->items[i].path);
		see_texts(&list->items[i].args);
		see_texts(&list->items[i].env);
		CHECK(!list->items[i].timeout.set || list->items[i].timeout.value > 0, "timeout");
	}
}

static void see_seccomp(const struct oci_seccomp *seccomp)
{
	see_text(seccomp->listener_path);
	see_text(seccomp->listener_metadata);
	CHECK(seccomp->listener_path || !seccomp->listener_metadata, "metadata for nobody");
	for (size_t i = 0; i < seccomp->syscalls.count; i++) {
		const struct oci_syscall *call = &seccomp->syscalls.items[i];

		CHECK(call->names.count > 0, "a rule for no call");
		CHECK(!call->errno_ret.set || call->action == OCI_ACT_ERRNO ||
		              call->action == OCI_ACT_TRACE,
		      "an errno that cannot be given");
		see_texts(&call->names);
		for (size_t j = 0; j < call->args.count; j++)
			CHECK(call->args.items[j].index <= 5, "a seventh argument");
	}
}

static void see_resources(const struct oci_resources *resources)
{
	see_map(&resources->unified);
	for (size_t i = 0; i < resources->unified.count; i++)
		CHECK(!strchr(resources->unified.items[i].key, '/'), "a file elsewhere");
	for (size_t i = 0; i < resources->devices.count; i++) {
		CHECK(strchr("acb", resources->devices.items[i].type), "a type of a device");
		see_text(resources->devices.items[i].access);
	}
	if (resources->memory)
		CHECK(resources->memory->swappiness.value <= 100, "swappiness");
	if (resources->cpu) {
		see_text(resources->cpu->cpus);
		see_text(resources->cpu->mems);
	}
	for (size_t i = 0; i < resources->hugepage_limits.count; i++)
		see_text(resources->hugepage_limits.items[i].page_size);
	for (size_t i = 0; resources->network && i < resources->network->priorities.count; i++)
		see_text(resources->network->priorities.items[i].name);
	for (size_t i = 0; i < resources->rdma.count; i++)
		see_text(resources->rdma.items[i].device);
}

static void see_linux(const struct oci_linux *part)
{
	CHECK(part->namespaces.count <= 8, "%zu namespaces", part->namespaces.count);
	see_mappings(&part->uid_mappings);
	see_mappings(&part->gid_mappings);
	for (size_t i = 0; i < part->devices.count; i++) {
		const struct oci_device *device = &part->devices.items[i];

		see_path(device->path);
		CHECK(device->type == 'p' || (device->major.set && device->minor.set), "no device");
	}
	for (size_t i = 0; i < part->net_devices.count; i++) {
		see_text(part->net_devices.items[i].host_name);
		see_text(part->net_devices.items[i].name);
	}
	see_map(&part->sysctl);
	for (size_t i = 0; i < part->sysctl.count; i++)
		CHECK(!strstr(part->sysctl.items[i].key, ".."), "a sysctl elsewhere");
	see_text(part->cgroups_path);
	see_text(part->mount_label);
	see_texts(&part->masked_paths);
	see_texts(&part->readonly_paths);
	if (part->resources)
		see_resources(part->resources);
	if (part->seccomp)
		see_seccomp(part->seccomp);
	if (part->intel_rdt)
		see_texts(&part->intel_rdt->schemata);
	if (part->memory_policy)
		see_text(part->memory_policy->nodes);
}

static void see_config(const struct oci_config *config)
{
	CHECK(config->version, "no version");
	if (config->root)
		CHECK(*config->root->path, "an empty root");
	see_mounts(config);
	if (config->process)
		see_process(config->process);
	see_text(config->hostname);
	see_text(config->domainname);
	see_hooks(&config->hooks.prestart);
	see_hooks(&config->hooks.create_runtime);
	see_hooks(&config->hooks.create_container);
	see_hooks(&config->hooks.start_container);
	see_hooks(&config->hooks.poststart);
	see_hooks(&config->hooks.poststop);
	see_map(&config->annotations);
	if (config->linux_part)
		see_linux(config->linux_part);
}

static void check_refusal(int result, const struct err *e, const char *start)
{
	fuzz_check_err(result, e);
	CHECK(strncmp(e->text, start, strlen(start)) == 0, "%s", e->text);
	for (const char *c = e->text; *c; c++)
		CHECK((unsigned char)*c >= ' ' && *c != 0x7f, "a control character in a message");
}

static void try_config(const char *text, size_t length)
{
	struct oci_config config, again;
	const char *anew;
	struct err e, ignored;
	int result = oci_config_parse(text, length, &config, &e);

	if (result < 0) {
		check_refusal(result, &e, "config.json: ");
		CHECK(!config.version && !config.store.document && !config.store.blocks,
		      "something is left of what was refused");
		return;
	}
	see_config(&config);
	result = oci_config_check_linux(&config, &e);
	if (result < 0)
		check_refusal(result, &e, "config.json: ");
	CHECK((result == 0) == (config.linux_part && config.root), "check_linux");
	anew = json_object_to_json_string(config.store.document);
	CHECK(oci_config_parse(anew, strlen(anew), &again, &ignored) == 0, "%s", ignored.text);
	oci_config_release(&again);
	oci_config_release(&config);
}

static void try_state(const char *text, size_t length)
{
	struct oci_state state, again;
	scoped_json json = NULL;
	const char *anew;
	struct err e;
	int result = oci_state_parse(text, length, &state, &e);

	if (result < 0) {
		check_refusal(result, &e, "state: ");
		CHECK(!state.id && !state.store.document, "something is left");
		return;
	}
	see_path(state.bundle);
	see_map(&state.annotations);
	json = oci_state_to_json(&state);
	anew = json_object_to_json_string(json);
	CHECK(oci_state_parse(anew, strlen(anew), &again, &e) == 0, "%s", e.text);
	CHECK(strcmp(state.id, again.id) == 0 && strcmp(state.bundle, again.bundle) == 0 &&
	              state.pid == again.pid && state.status == again.status &&
	              state.annotations.count == again.annotations.count,
	      "a state is read as another");
	oci_state_release(&again);
	oci_state_release(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_mem char *text = fuzz_text(data, size);

	try_config(text, size);
	try_state(text, size);
	return 0;
}
