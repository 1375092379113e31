/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile -> classic BPF. By our own hand: libseccomp takes milliseconds for what an engine asks
 * for, and writes a program that is three times as long.
 *
 * For each architecture that this machine has: the profile's names become numbers, each with the
 * rules that concern it, in the profile's order; numbers become segments, from one to the next of
 * another answer; segments become a tree (seccomp/program.h), whose leaves profile_code.c writes. The
 * program asks for the architecture first. x32 is x86-64 with a bit in its numbers, so the two share
 * one tree.
 */
#include "seccomp/profile_internal.h"

#include <errno.h>
#include <linux/ipc.h>
#include <linux/net.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "seccomp/filter.h"
#include "seccomp/names.h"

/* An architecture as the kernel sees it: its numbers from BASE up to END are this one's. */
struct arch {
	uint32_t token, audit;
	uint32_t base, end;
	uint32_t last_known; /* the newest call of Linux 3.2, or of the first that had it */
	uint32_t private;    /* from here on numbers say nothing about age */
	bool narrow;         /* arguments have 32 bits */
	int32_t socketcall, ipc;
};

enum { X32_BIT = 0x40000000, NO_MUX = -1 };

/* In the order of NAMES_ARCHES. */
static const struct arch arches[NAMES_ARCHES_COUNT] = {
#ifdef __x86_64__
	{AUDIT_ARCH_X86_64, AUDIT_ARCH_X86_64, 0, X32_BIT, 311, X32_BIT, false, NO_MUX, NO_MUX},
	{AUDIT_ARCH_I386, AUDIT_ARCH_I386, 0, UINT32_MAX, 348, UINT32_MAX, true, 102, 117},
	{NAMES_X32, AUDIT_ARCH_X86_64, X32_BIT, UINT32_MAX, X32_BIT | 311, X32_BIT | 512, true,
         NO_MUX, NO_MUX},
#else
	{AUDIT_ARCH_AARCH64, AUDIT_ARCH_AARCH64, 0, UINT32_MAX, 272, UINT32_MAX, false, NO_MUX,
         NO_MUX},
	{AUDIT_ARCH_ARM, AUDIT_ARCH_ARM, 0, UINT32_MAX, 377, 0x0f0000, true, NO_MUX, NO_MUX},
#endif
};

/* What socketcall(2) and ipc(2) of i386 are by their first argument. */
static const struct muxed muxed_calls[] = {
	{"accept", false, SYS_ACCEPT},
	{"accept4", false, SYS_ACCEPT4},
	{"bind", false, SYS_BIND},
	{"connect", false, SYS_CONNECT},
	{"getpeername", false, SYS_GETPEERNAME},
	{"getsockname", false, SYS_GETSOCKNAME},
	{"getsockopt", false, SYS_GETSOCKOPT},
	{"listen", false, SYS_LISTEN},
	{"recv", false, SYS_RECV},
	{"recvfrom", false, SYS_RECVFROM},
	{"recvmmsg", false, SYS_RECVMMSG},
	{"recvmsg", false, SYS_RECVMSG},
	{"send", false, SYS_SEND},
	{"sendmmsg", false, SYS_SENDMMSG},
	{"sendmsg", false, SYS_SENDMSG},
	{"sendto", false, SYS_SENDTO},
	{"setsockopt", false, SYS_SETSOCKOPT},
	{"shutdown", false, SYS_SHUTDOWN},
	{"socket", false, SYS_SOCKET},
	{"socketpair", false, SYS_SOCKETPAIR},
	{"msgctl", true, MSGCTL},
	{"msgget", true, MSGGET},
	{"msgrcv", true, MSGRCV},
	{"msgsnd", true, MSGSND},
	{"semctl", true, SEMCTL},
	{"semget", true, SEMGET},
	{"semop", true, SEMOP},
	{"semtimedop", true, SEMTIMEDOP},
	{"shmat", true, SHMAT},
	{"shmctl", true, SHMCTL},
	{"shmdt", true, SHMDT},
	{"shmget", true, SHMGET},
};

struct entries {
	struct entry *items;
	size_t count, room;
};

struct segments {
	struct program_segment *items;
	size_t count, room;
};

/* The architectures that the kernel has one AUDIT_ARCH_* for. */
struct group {
	const struct seccomp_profile *profile;
	const struct call_numbers *const *calls; /* of the profile's names, in their order */
	uint32_t audit;
	bool wanted[NAMES_ARCHES_COUNT];
	uint32_t newest[NAMES_ARCHES_COUNT]; /* that the profile names, or that all know */
};

/* ---- rules and numbers ---- */

/* More strict is less; SECCOMP_RET_KILL_PROCESS has the sign bit. */
static int32_t leniency(uint32_t action)
{
	return (int32_t)(action & SECCOMP_RET_ACTION_FULL);
}

/* Of socketcall and ipc the rules that hold for all of a call come first, as those of calls do. */
static uint32_t rank(const struct entry *entry)
{
	return entry->rule && (!entry->muxed || entry->rule->arguments_count > 0);
}

static int add_entry(struct entries *entries, struct entry entry, struct err *e)
{
	if (entries->count == entries->room) {
		size_t room = 2 * entries->room + 512;
		struct entry *items = reallocarray(entries->items, room, sizeof *items);

		if (!items)
			return err_set(e, ENOMEM, "seccomp profile: no memory for its rules");
		entries->items = items;
		entries->room = room;
	}
	entry.key = (uint64_t)entry.number << 32 | rank(&entry) << 31 | (uint32_t)entries->count;
	entries->items[entries->count++] = entry;
	return 0;
}

static int add_boundary(struct entries *entries, uint32_t number, struct err *e)
{
	return add_entry(entries, (struct entry){.number = number}, e);
}

static bool names_argument_twice(const struct seccomp_rule *rule)
{
	unsigned seen = 0;

	for (size_t i = 0; i < rule->arguments_count; i++) {
		if (seen & 1U << rule->arguments[i].index)
			return true;
		seen |= 1U << rule->arguments[i].index;
	}
	return false;
}

static int add_rule(struct entries *entries, struct entry entry, struct err *e)
{
	const struct seccomp_rule *rule = entry.rule;

	entry.arguments = rule->arguments;
	entry.arguments_count = rule->arguments_count;
	if (!names_argument_twice(rule))
		return add_entry(entries, entry, e);
	entry.arguments_count = 1;
	for (size_t i = 0; i < rule->arguments_count; i++, entry.arguments++)
		TRY(add_entry(entries, entry, e));
	return 0;
}

static const struct muxed *find_muxed(const char *name)
{
	for (size_t i = 0; i < sizeof muxed_calls / sizeof *muxed_calls; i++)
		if (!strcmp(muxed_calls[i].name, name))
			return &muxed_calls[i];
	return NULL;
}

/* The arguments of these are not to be seen: the rule holds for all or, where it loosens, for none. */
static int add_muxed(struct entries *entries, const struct arch *arch, struct entry entry,
                     const char *name, uint32_t default_action, struct err *e)
{
	if (arch->socketcall == NO_MUX || !(entry.muxed = find_muxed(name)) ||
	    (entry.rule->arguments_count > 0 &&
	     leniency(entry.rule->action) > leniency(default_action)))
		return 0;
	entry.number = (uint32_t)(entry.muxed->is_ipc ? arch->ipc : arch->socketcall);
	return add_entry(entries, entry, e);
}

/* *NEWEST becomes the newest call that the profile names. */
static int add_name(struct entries *entries, struct group *group, int column,
                    const struct seccomp_rule *rule, const char *name,
                    const struct call_numbers *call, struct err *e)
{
	const struct arch *arch = &arches[column];
	uint32_t default_action = group->profile->default_action;
	int32_t number = call ? call->numbers[column] : -1;
	struct entry entry = {.rule = rule, .number = (uint32_t)number, .narrow = arch->narrow};

	if (number >= 0 && entry.number > group->newest[column] && entry.number < arch->private)
		group->newest[column] = entry.number;
	if (rule->action == default_action)
		return 0;
	TRY(add_muxed(entries, arch, entry, name, default_action, e));
	return number >= 0 ? add_rule(entries, entry, e) : 0;
}

/* All that the profile says of one architecture, and the boundaries around its newer calls. */
static int add_arch(struct entries *entries, struct group *group, int column, struct err *e)
{
	const struct seccomp_profile *profile = group->profile;
	const struct seccomp_rule *end = profile->rules + profile->rules_count;
	const struct call_numbers *const *call = group->calls;

	group->newest[column] = arches[column].last_known;
	TRY(add_boundary(entries, arches[column].base, e));
	TRY(add_boundary(entries, arches[column].private, e));
	for (const struct seccomp_rule *rule = profile->rules; rule < end; rule++)
		for (size_t i = 0; i < rule->names_count; i++)
			TRY(add_name(entries, group, column, rule, rule->names[i], *call++, e));
	return add_boundary(entries, group->newest[column] + 1, e);
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* ---- segments ---- */

static void add_segment(struct segments *segments, struct program_segment segment)
{
	const struct program_segment *last;

	if (segments->count && segments->items[segments->count - 1].first == segment.first)
		segments->count--;
	last = segments->count ? &segments->items[segments->count - 1] : NULL;
	if (!last || last->rules || segment.rules || last->verdict != segment.verdict)
		segments->items[segments->count++] = segment;
}

/* The first of a number's entries that has no arguments decides alone; else all are asked. */
static struct program_segment segment_of(const struct entry *first, const struct entry *end,
                                         uint32_t unnamed)
{
	struct program_segment segment = {.first = first->number, .verdict = unnamed};

	for (const struct entry *entry = first; entry < end; entry++) {
		if (!entry->rule)
			continue;
		if (entry->arguments_count == 0 && !entry->muxed)
			return (struct program_segment){.first = first->number,
			                                .verdict = entry->rule->action};
		if (!segment.rules)
			segment.rules = entry;
	}
	return segment;
}

/* What calls of this number get that no rule names. */
static uint32_t unnamed_answer(const struct group *group, uint32_t number)
{
	for (int column = 0; column < NAMES_ARCHES_COUNT; column++) {
		const struct arch *arch = &arches[column];
		uint32_t action = group->profile->default_action;

		if (arch->audit != group->audit || number < arch->base || number >= arch->end)
			continue;
		if (!group->wanted[column])
			return SECCOMP_RET_KILL_THREAD;
		if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
		    number > group->newest[column] && number < arch->private)
			return SECCOMP_RET_ERRNO | ENOSYS;
		return action;
	}
	return group->profile->default_action; /* -1, which a tracer makes of a call */
}

static int make_segments(const struct group *group, const struct entries *entries,
                         struct segments *segments, struct err *e)
{
	const struct entry *next, *end = entries->items + entries->count;

	segments->items = reallocarray(NULL, 2 * entries->count, sizeof *segments->items);
	if (!segments->items)
		return err_set(e, ENOMEM, "seccomp profile: no memory for its segments");
	for (const struct entry *entry = entries->items; entry < end; entry = next) {
		uint32_t number = entry->number;

		for (next = entry; next < end && next->number == number;)
			next++;
		add_segment(segments, segment_of(entry, next, unnamed_answer(group, number)));
		if (number < UINT32_MAX)
			add_segment(segments, (struct program_segment){.first = number + 1,
			                                               .verdict = unnamed_answer(
									       group, number + 1)});
	}
	return 0;
}

/* ---- the program ---- */

static bool is_wanted(const struct seccomp_profile *profile, int column)
{
	for (size_t i = 0; i < profile->architectures_count; i++)
		if (profile->architectures[i] == arches[column].token)
			return true;
	return column == 0;
}

static int add_group(struct group *group, struct entries *entries, struct err *e)
{
	for (int column = 0; column < NAMES_ARCHES_COUNT; column++) {
		const struct arch *arch = &arches[column];

		if (arch->audit != group->audit)
			continue;
		group->wanted[column] = is_wanted(group->profile, column);
		if (group->wanted[column])
			TRY(add_arch(entries, group, column, e));
		else
			TRY(add_boundary(entries, arch->base, e));
	}
	TRY(add_boundary(entries, UINT32_MAX, e));
	qsort(entries->items, entries->count, sizeof *entries->items, by_key);
	return 0;
}

/* All that is asked of calls of one AUDIT_ARCH_*. */
static int emit_group(struct program *p, const struct seccomp_profile *profile,
                      const struct call_numbers *const *calls, uint32_t audit, struct err *e)
{
	struct group group = {.profile = profile, .calls = calls, .audit = audit};
	struct entries entries = {0};
	struct segments segments = {0};
	size_t skip = p->length + 1;
	int r;

	if ((r = add_group(&group, &entries, e)) == 0 &&
	    (r = make_segments(&group, &entries, &segments, e)) == 0) {
		program_jump(p, BPF_JMP | BPF_JEQ | BPF_K, audit, 1, 0);
		program_emit(p, BPF_JMP | BPF_JA, 0);
		program_emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
		program_tree(p, segments.items, segments.count, profile_leaf, NULL);
		if (p->length <= BPF_MAXINSNS)
			p->code[skip].k = (uint32_t)(p->length - skip - 1);
	}
	free(segments.items);
	free(entries.items);
	return r;
}

static bool audit_is_wanted(const struct seccomp_profile *profile, int column)
{
	for (int before = 0; before < column; before++)
		if (arches[before].audit == arches[column].audit)
			return false; /* is there already */
	return is_wanted(profile, column);
}

static bool notifies(const struct seccomp_profile *profile)
{
	for (size_t i = 0; i < profile->rules_count; i++)
		if (profile->rules[i].action == SECCOMP_RET_USER_NOTIF)
			return true;
	return profile->default_action == SECCOMP_RET_USER_NOTIF;
}

/* There is one thread, which needs no other to be told; and without a listener nobody to wait for. */
static unsigned flags_left(const struct seccomp_profile *profile, bool listens)
{
	uint64_t flags = profile->flags & ~(uint64_t)SECCOMP_FILTER_FLAG_TSYNC;

	return (unsigned)(listens ? flags | SECCOMP_FILTER_FLAG_NEW_LISTENER
	                          : flags & ~(uint64_t)SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
}

/* Once, though each architecture asks. */
static const struct call_numbers **find_calls(const struct seccomp_profile *profile)
{
	const struct call_numbers **calls;
	size_t count = 0;

	for (size_t r = 0; r < profile->rules_count; r++)
		count += profile->rules[r].names_count;
	calls = calloc(count + 1, sizeof(const struct call_numbers *));
	count = 0;
	for (size_t r = 0; calls && r < profile->rules_count; r++)
		for (size_t i = 0; i < profile->rules[r].names_count; i++)
			calls[count++] = names_find(profile->rules[r].names[i]);
	return calls;
}

int seccomp_profile_compile(const struct seccomp_profile *profile,
                            struct seccomp_profile_filter *filter, struct err *e)
{
	struct sock_filter code[BPF_MAXINSNS];
	struct program p = {.code = code};
	struct sock_filter *owned;
	scoped_mem const struct call_numbers **calls = find_calls(profile);

	if (!calls)
		return err_set(e, ENOMEM, "no memory for the seccomp filter");
	program_emit(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	for (int column = 0; column < NAMES_ARCHES_COUNT; column++)
		if (audit_is_wanted(profile, column))
			TRY(emit_group(&p, profile, calls, arches[column].audit, e));
	program_emit(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD);
	if (p.length > BPF_MAXINSNS)
		return err_set(e, E2BIG,
		               "the profile makes %zu BPF instructions, the kernel takes %d; give "
		               "it fewer rules with arguments, or fewer architectures",
		               p.length, BPF_MAXINSNS);
	owned = reallocarray(NULL, p.length, sizeof *owned);
	if (!owned)
		return err_set(e, ENOMEM, "no memory for the seccomp filter");
	memcpy(owned, code, p.length * sizeof *owned);
	*filter = (struct seccomp_profile_filter){
		.instructions = owned,
		.length = (unsigned short)p.length,
		.notifies = notifies(profile),
	};
	filter->flags = flags_left(profile, filter->notifies);
	return 0;
}

void seccomp_profile_filter_release(struct seccomp_profile_filter *filter)
{
	free(filter->instructions);
	*filter = (struct seccomp_profile_filter){0};
}

uint32_t seccomp_profile_answer(const struct seccomp_profile *profile, const char *name)
{
	uint32_t answer = profile->default_action;

	for (size_t r = 0; r < profile->rules_count; r++) {
		const struct seccomp_rule *rule = &profile->rules[r];

		for (size_t i = 0; i < rule->names_count; i++) {
			if (strcmp(rule->names[i], name) != 0)
				continue;
			if (rule->arguments_count == 0 && rule->action != profile->default_action)
				return rule->action;
			if (leniency(rule->action) < leniency(answer))
				answer = rule->action;
		}
	}
	return answer;
}

int seccomp_profile_filter_install(const struct seccomp_profile_filter *filter, int *listenerfd,
                                   struct err *e)
{
	const struct seccomp_filter same = {
		.instructions = filter->instructions,
		.length = filter->length,
		.notifies = filter->notifies,
	};

	return seccomp_filter_install_flags(&same, filter->flags, listenerfd, e);
}
