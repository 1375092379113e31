/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices a container may open and make. The document's rules and those of the default devices are
 * one list, in which nothing is allowed at first and the last rule that matches an access counts: the
 * defaults come behind the last rule that denies all, so that the document has the last word. v2 is given
 * the list as it is, as a program (group_bpf.c). v1 knows only a default and exceptions to it: the list is
 * put so here, or refused where it cannot be.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scoped.h"
#include "container/group_internal.h"

/*
 * "Default Devices" in config-linux.md, pseudo-terminals, and mknod(2) of any node, which without a rule
 * for it nobody can open. Not /dev/net/tun, which the spec has not, and runc has no more since 1.2; not
 * 5:1, which is the host's console: the container's is a pseudo-terminal.
 */
static const struct device_rule default_rules[] = {
	{-1, -1, 'c', true, DEVICE_MKNOD, true}, {-1, -1, 'b', true, DEVICE_MKNOD, true},
	{1, 3, 'c', true, DEVICE_ALL, false},    {1, 5, 'c', true, DEVICE_ALL, false},
	{1, 7, 'c', true, DEVICE_ALL, false},    {1, 8, 'c', true, DEVICE_ALL, false},
	{1, 9, 'c', true, DEVICE_ALL, false},    {5, 0, 'c', true, DEVICE_ALL, false},
	{5, 2, 'c', true, DEVICE_ALL, false},    {136, -1, 'c', true, DEVICE_ALL, false},
};
enum { DEFAULT_RULES = sizeof default_rules / sizeof *default_rules };

/* A rule without letters allows nothing, as crun and runc have it, and denies everything. */
static unsigned char access_of(const char *letters, bool allow)
{
	unsigned char access = 0;

	if (!letters || !*letters)
		return allow ? 0 : DEVICE_ALL;
	for (; *letters; letters++)
		access |= *letters == 'r'   ? DEVICE_READ
		          : *letters == 'w' ? DEVICE_WRITE
		                            : DEVICE_MKNOD;
	return access;
}

static int64_t number_of(const struct oci_int *number)
{
	return number->set ? number->value : -1;
}

static int device_number_refused(struct device_rules *rules, size_t i, struct err *e)
{
	free(rules->items);
	return err_set(e, ERANGE,
	               "linux.resources.devices[%zu]: no device has such a number; take the rule "
	               "out of config.json",
	               i);
}

static bool is_all(const struct device_rule *rule)
{
	return rule->major < 0 && rule->minor < 0 && rule->access == DEVICE_ALL;
}

/* Is this the first of two rules that are one: of all devices of both types? */
static bool is_default(const struct device_rules *rules, size_t i)
{
	const struct device_rule *rule = &rules->items[i];

	return i + 1 < rules->count && is_all(rule) && is_all(rule + 1) &&
	       rule[1].allow == rule->allow && rule[1].type != rule->type;
}

static void insert_defaults(struct device_rules *rules)
{
	size_t at = 0;

	for (size_t i = 0; i < rules->count; i++)
		if (is_default(rules, i) && !rules->items[i].allow)
			at = i + 2;
	memmove(rules->items + at + DEFAULT_RULES, rules->items + at,
	        (rules->count - at) * sizeof *rules->items);
	memcpy(rules->items + at, default_rules, sizeof default_rules);
	rules->count += DEFAULT_RULES;
}

int device_rules_list(const struct oci_resources *resources, struct device_rules *rules,
                      struct err *e)
{
	size_t count = resources ? resources->devices.count : 0;
	struct device_rule *items = calloc(2 * count + DEFAULT_RULES, sizeof *items);

	if (!items)
		return err_set(e, ENOMEM, "linux.resources.devices: no memory");
	*rules = (struct device_rules){.items = items};
	for (size_t i = 0; i < count; i++) {
		const struct oci_device_rule *rule = &resources->devices.items[i];
		struct device_rule made = {
			.major = number_of(&rule->major),
			.minor = number_of(&rule->minor),
			.type = 'c',
			.allow = rule->allow,
			.access = access_of(rule->access, rule->allow),
		};

		if (made.major > INT32_MAX || made.minor > INT32_MAX)
			return device_number_refused(rules, i, e);
		if (!made.access)
			continue;
		if (rule->type != 'b')
			items[rules->count++] = made;
		made.type = 'b';
		if (rule->type != 'c')
			items[rules->count++] = made;
	}
	insert_defaults(rules);
	return 0;
}

/* ---- v1 ---- */

static bool covers(const struct device_rule *wide, const struct device_rule *narrow)
{
	return wide->type == narrow->type && (wide->major < 0 || wide->major == narrow->major) &&
	       (wide->minor < 0 || wide->minor == narrow->minor);
}

static bool meet(const struct device_rule *a, const struct device_rule *b)
{
	return a->type == b->type && (a->major < 0 || b->major < 0 || a->major == b->major) &&
	       (a->minor < 0 || b->minor < 0 || a->minor == b->minor);
}

/* The kernel lets an access pass by one exception alone, so each has what wider ones have. Of two that
 * cross (1:* and *:3) neither has what takes both: less than was asked for, never more. */
static void set_add(struct device_set *set, struct device_rule rule)
{
	struct device_rule *same = NULL;

	for (size_t i = 0; i < set->count; i++) {
		struct device_rule *item = &set->items[i];

		if (covers(item, &rule))
			rule.access |= item->access;
		if (covers(&rule, item))
			item->access |= rule.access;
		if (covers(item, &rule) && covers(&rule, item))
			same = item;
	}
	if (same)
		same->any_node &= rule.any_node;
	else
		set->items[set->count++] = rule;
}

/*
 * v1 cannot take one device out of the mknod of any that all may have by default. A node of it cannot be
 * opened where RULE denies all, and none of those BEHIND it allows some again: then it may stay.
 */
static bool is_harmless_node(const struct device_rule *item, const struct device_rules *rules,
                             size_t at)
{
	const struct device_rule *rule = &rules->items[at];

	if (!item->any_node || item->access != DEVICE_MKNOD || rule->access != DEVICE_ALL)
		return false;
	for (size_t i = at + 1; i < rules->count; i++)
		if (rules->items[i].allow && !rules->items[i].any_node &&
		    meet(&rules->items[i], rule))
			return false;
	return true;
}

/* True: the rule could be taken out of the exceptions. */
static bool set_take_out(struct device_set *set, const struct device_rules *rules, size_t at)
{
	const struct device_rule *rule = &rules->items[at];
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct device_rule *item = &set->items[i];

		if (meet(item, rule) && (item->access & rule->access) &&
		    !is_harmless_node(item, rules, at)) {
			if (!covers(rule, item))
				return false;
			item->access &= (unsigned char)~rule->access;
		}
		if (item->access)
			set->items[kept++] = *item;
	}
	set->count = kept;
	return true;
}

static int set_refused(const struct device_rule *rule, struct err *e)
{
	return err_set(e, ENOTSUP,
	               "linux.resources.devices: a rule that %s \"%c %" PRIi64 ":%" PRIi64
	               "\" (-1: all) takes a part out of a wider rule before it, and cgroup v1 "
	               "cannot have that; name the devices of the wider rule one by one, or boot "
	               "with systemd.unified_cgroup_hierarchy=1",
	               rule->allow ? "allows" : "denies", rule->type, rule->major, rule->minor);
}

/* Both types at once and all of them is a new default; a rule for one type of that kind is an exception. */
int device_set_make(const struct device_rules *rules, struct device_set *set, struct err *e)
{
	struct device_set made = {.items = calloc(rules->count + 1, sizeof *made.items)};

	if (!made.items)
		return err_set(e, ENOMEM, "linux.resources.devices: no memory");
	for (size_t i = 0; i < rules->count; i++) {
		const struct device_rule *rule = &rules->items[i];

		if (is_default(rules, i)) {
			made.allow = rule->allow;
			made.count = 0;
			i++;
		} else if (rule->allow != made.allow) {
			set_add(&made, *rule);
		} else if (!set_take_out(&made, rules, i)) {
			free(made.items);
			return set_refused(rule, e);
		}
	}
	*set = made;
	return 0;
}

bool device_rules_allow_all(const struct device_rules *rules)
{
	struct device_set set = {0};
	struct err ignored;
	bool all;

	if (device_set_make(rules, &set, &ignored) < 0)
		return false;
	all = set.allow && set.count == 0;
	free(set.items);
	return all;
}

static void number_text(char *text, size_t size, int64_t number)
{
	if (number < 0)
		snprintf(text, size, "*");
	else
		snprintf(text, size, "%" PRIi64, number);
}

static int write_rule(int fd, const struct group_hierarchy *of, const char *file, const char *text,
                      struct err *e)
{
	if (write(fd, text, strlen(text)) == (ssize_t)strlen(text))
		return 0;
	err_sys(e, "linux.resources.devices: cgroup %s: writing \"%s\" to %s", of->place, text,
	        file);
	if (e->code == EPERM)
		return err_hint(e,
		                "the group above allows no more than that to any below it, or we "
		                "lack CAP_SYS_ADMIN");
	return err_hint(e, "a group that has others below it keeps its default");
}

static int write_exceptions(const struct group_hierarchy *of, const struct device_set *set,
                            struct err *e)
{
	const char *file = set->allow ? "devices.deny" : "devices.allow";
	scoped_fd fd = openat(of->fd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_sys(e, "linux.resources.devices: cgroup %s: opening %s", of->place,
		               file);
	for (size_t i = 0; i < set->count; i++) {
		const struct device_rule *rule = &set->items[i];
		char text[64], major[24], minor[24];

		number_text(major, sizeof major, rule->major);
		number_text(minor, sizeof minor, rule->minor);
		snprintf(text, sizeof text, "%c %s:%s %s%s%s", rule->type, major, minor,
		         rule->access & DEVICE_READ ? "r" : "",
		         rule->access & DEVICE_WRITE ? "w" : "",
		         rule->access & DEVICE_MKNOD ? "m" : "");
		TRY(write_rule(fd, of, file, text, e));
	}
	return 0;
}

/* A new group has what the one above it has; setting the default takes all exceptions out. */
static int set_v1(const struct group_hierarchy *of, const struct device_rules *rules, struct err *e)
{
	struct device_set set = {0};
	const char *file;
	int r;

	TRY(device_set_make(rules, &set, e));
	file = set.allow ? "devices.allow" : "devices.deny";
	r = control_write(of->fd, file, "a");
	if (r < 0) {
		errno = -r;
		err_sys(e, "linux.resources.devices: cgroup %s: writing \"a\" to %s", of->place,
		        file);
		r = err_hint(e, "who runs us needs CAP_SYS_ADMIN, and the group above must allow "
		                "what this one is to allow");
	} else {
		r = write_exceptions(of, &set, e);
	}
	free(set.items);
	return r;
}

/* ---- both ---- */

/*
 * In a user namespace other than the host's no node can be made or found that was not given, whatever
 * the group allows; a user but root can make containers in such a one only.
 */
static bool devices_are_out_of_reach(void)
{
	return geteuid() != 0 || !process_has_host_ids();
}

static int set_devices(const struct group *group, const struct device_rules *rules, struct err *e)
{
	const struct group_hierarchy *v1 = group_v1(group, "devices"), *v2 = group_v2(group);

	if (v1)
		return set_v1(v1, rules, e);
	if (v2)
		return device_program_attach(v2->fd, rules, e);
	return err_set(
		e, ENOTSUP,
		"linux.resources.devices: there is no hierarchy here that could keep devices "
		"from the container; mount the v1 hierarchy \"devices\" or a cgroup v2 tree");
}

int group_set_devices(const struct group *group, const struct oci_resources *resources,
                      struct err *e)
{
	struct device_rules rules;
	int r;

	TRY(device_rules_list(resources, &rules, e));
	r = set_devices(group, &rules, e);
	free(rules.items);
	if (r < 0 && (e->code == EPERM || e->code == EACCES || e->code == ENOTSUP) &&
	    devices_are_out_of_reach())
		return 0;
	return r;
}
