/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `events`: the figures of a container's group, and each time when it ran out of memory, one line of
 * JSON each, in the shape that runc gives them. Ends with the container.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/process.h"
#include "base/scoped.h"
#include "container/group.h"
#include "container/lifecycle.h"
#include "container/store.h"
#include "verbs/verbs.h"

static void add_usage(struct json_object *memory, const char *key, uint64_t usage, uint64_t max,
                      uint64_t limit, uint64_t failcnt)
{
	struct json_object *added = json_add_object(memory, key);

	json_add_u64(added, "limit", limit);
	json_add_u64(added, "usage", usage);
	json_add_u64(added, "max", max);
	json_add_u64(added, "failcnt", failcnt);
}

static void add_cpu(struct json_object *data, const struct group_stats *stats)
{
	struct json_object *cpu = json_add_object(data, "cpu");
	struct json_object *usage = json_add_object(cpu, "usage");
	struct json_object *throttling = json_add_object(cpu, "throttling");

	json_add_u64(usage, "total", stats->cpu.usage_ns);
	json_add_u64(usage, "kernel", stats->cpu.system_ns);
	json_add_u64(usage, "user", stats->cpu.user_ns);
	json_add_u64(throttling, "periods", stats->cpu.periods);
	json_add_u64(throttling, "throttledPeriods", stats->cpu.throttled_periods);
	json_add_u64(throttling, "throttledTime", stats->cpu.throttled_ns);
}

static void add_memory(struct json_object *data, const struct group_stats *stats)
{
	struct json_object *memory = json_add_object(data, "memory"), *raw;

	json_add_u64(memory, "cache", stats->memory.cache);
	add_usage(memory, "usage", stats->memory.usage, stats->memory.max_usage,
	          stats->memory.limit, stats->memory.failcnt);
	add_usage(memory, "swap", stats->memory.swap_usage, 0, stats->memory.swap_limit, 0);
	add_usage(memory, "kernel", stats->memory.kernel_usage, 0, 0, 0);
	add_usage(memory, "kernelTCP", 0, 0, 0, 0);
	raw = json_add_object(memory, "raw");
	for (size_t i = 0; i < stats->memory.raw.count; i++)
		json_add_u64(raw, stats->memory.raw.items[i].key,
		             strtoull(stats->memory.raw.items[i].value, NULL, 10));
}

static void add_io(struct json_object *blkio, const char *key, const struct group_io *io,
                   size_t count)
{
	struct json_object *list = json_add_array(blkio, key);

	for (size_t i = 0; i < count; i++) {
		struct json_object *entry = json_object_new_object();

		json_add_u64(entry, "major", io[i].major);
		json_add_u64(entry, "minor", io[i].minor);
		json_add_string(entry, "op", io[i].op);
		json_add_u64(entry, "value", io[i].value);
		json_object_array_add(list, entry);
	}
}

static void add_others(struct json_object *data, const struct group_stats *stats)
{
	struct json_object *pids = json_add_object(data, "pids");
	struct json_object *blkio = json_add_object(data, "blkio");
	struct json_object *hugetlb = json_add_object(data, "hugetlb");

	json_add_u64(pids, "current", stats->pids.current);
	json_add_u64(pids, "limit", stats->pids.limit);
	add_io(blkio, "ioServiceBytesRecursive", stats->io_bytes, stats->io_bytes_count);
	add_io(blkio, "ioServicedRecursive", stats->io_ops, stats->io_ops_count);
	for (size_t i = 0; i < stats->hugetlb_count; i++) {
		struct json_object *pages = json_add_object(hugetlb, stats->hugetlb[i].size);

		json_add_u64(pages, "usage", stats->hugetlb[i].usage);
		json_add_u64(pages, "max", stats->hugetlb[i].max);
		json_add_u64(pages, "failcnt", stats->hugetlb[i].failcnt);
	}
	json_add_object(data, "intel_rdt");
	json_object_object_add(data, "network_interfaces", NULL);
}

static int print_event(const char *type, const char *id, const struct group_stats *stats,
                       struct err *e)
{
	scoped_json event = json_object_new_object();
	struct json_object *data;

	json_add_string(event, "type", type);
	json_add_string(event, "id", id);
	if (stats) {
		data = json_add_object(event, "data");
		add_cpu(data, stats);
		add_memory(data, stats);
		add_others(data, stats);
	}
	puts(json_object_to_json_string_ext(event, JSON_C_TO_STRING_PLAIN |
	                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
	return finish_stdout(e);
}

/* ---- one look, or several ---- */

struct watch {
	const char *id;
	struct store_entry entry;
	struct group group;
	int pidfd, oomfd;
	uint64_t oom_kills;
};

/* TYPE "oom": only where there were more of them since. */
static int look(struct watch *watch, const char *type, struct err *e)
{
	struct group_stats stats = {0};
	bool is_oom = *type == 'o';
	int r;

	TRY(group_stats(&watch->group, &stats, e));
	r = 0;
	if (!is_oom)
		r = print_event(type, watch->id, &stats, e);
	else if (stats.oom_kills > watch->oom_kills)
		r = print_event(type, watch->id, NULL, e);
	watch->oom_kills = stats.oom_kills;
	group_stats_release(&stats);
	return r;
}

/* So that the next one is waited for. */
static void take_event(int fd)
{
	char ignored[4096];

	if (read(fd, ignored, sizeof ignored) < 0)
		return;
}

static int follow(struct watch *watch, int interval_s, struct err *e)
{
	struct pollfd fds[] = {{.fd = watch->pidfd, .events = POLLIN},
	                       {.fd = watch->oomfd, .events = POLLIN}};
	uint64_t next = clock_us() + (uint64_t)interval_s * 1000000;

	for (;;) {
		uint64_t now = clock_us();
		int ready = poll(fds, 2, next > now ? (int)((next - now) / 1000) + 1 : 0);

		if (ready < 0 && errno != EINTR)
			return err_sys(e, "waiting for events");
		if (ready > 0 && fds[1].revents) {
			take_event(watch->oomfd);
			TRY(look(watch, "oom", e));
		}
		if (ready > 0 && fds[0].revents)
			return 0;
		if (clock_us() < next)
			continue;
		TRY(look(watch, "stats", e));
		next = clock_us() + (uint64_t)interval_s * 1000000;
	}
}

static int watch_open(struct watch *watch, struct err *e)
{
	int status;

	TRY(store_status(&watch->entry, &status, &watch->pidfd, e));
	if (watch->pidfd < 0 || !watch->entry.record.group)
		return err_set(e, ESRCH, "container not running: %s", watch->id);
	return group_open(&watch->group, watch->entry.record.group, e);
}

static int watch_begin(struct watch *watch, const struct request *request, struct err *e)
{
	TRY(watch_open(watch, e));
	TRY(look(watch, "stats", e));
	if (request->stats)
		return 0;
	TRY(watch->oomfd = group_oom_watch(&watch->group, e));
	return follow(watch, request->interval_s, e);
}

int verb_events(struct request *request, struct err *e)
{
	struct watch watch = {.id = request->lifecycle.id, .pidfd = -1, .oomfd = -1};
	int r;

	TRY(store_open(request->lifecycle.root, watch.id, STORE_UNLOCKED, &watch.entry, e));
	group_init(&watch.group);
	r = watch_begin(&watch, request, e);
	close_fd(&watch.pidfd);
	close_fd(&watch.oomfd);
	group_release(&watch.group);
	store_release(&watch.entry);
	return r;
}
