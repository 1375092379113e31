/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of system calls (seccomp/policy.c, filter.c). An input that begins with '{' is the text
 * of a profile; any other is a string of decisions by which a valid one is written.
 *
 * Holds: what is valid is accepted, or is too large; the program is whole, and its answers are those
 * that docs/seccomp.md gives for the text, which is read here once more, by other code.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <json-c/json.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/scoped.h"
#include "seccomp/calls.h"
#include "seccomp/filter.h"
#include "seccomp/policy.h"
#include "tests/bpf.h"

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#else
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#endif

enum { NUMBERS = POLICY_CALLS, RULES_MAX = 4096, TEXT_SIZE = 1 << 16, VECTORS = 8 };
#define FORBIDDEN SECCOMP_RET_KILL_PROCESS /* stands for it here: no profile can say it */

/* ---- a profile, by its documentation ---- */

struct argument {
	unsigned index;
	bool wide;
	uint64_t mask, values[POLICY_VALUES_MAX];
	size_t values_count;
};

struct rule {
	int number;
	uint32_t answer;
	bool forbids; /* by forbid_when */
	struct argument arguments[POLICY_ARGS_MAX];
	size_t arguments_count;
	struct rule *next; /* of the same call */
};

/* Static: it is large, and there is one at a time. */
static struct profile {
	bool notify, few;
	uint32_t unknown, deny;
	uint32_t answers[NUMBERS]; /* where no rule matches */
	struct rule rules[RULES_MAX];
	size_t rules_count;
	struct rule *first[NUMBERS]; /* rule of each call, in the order in which they are tried */
} profile;

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *found = NULL;

	json_object_object_get_ex(object, key, &found);
	return found;
}

static const char *text_of(struct json_object *object, const char *key)
{
	return json_object_get_string(member(object, key));
}

static uint32_t errno_of(struct json_object *object, const char *key)
{
	const char *name = text_of(object, key);

	for (int i = 1; i < 200; i++)
		if (strerrorname_np(i) && strcmp(strerrorname_np(i), name) == 0)
			return SECCOMP_RET_ERRNO | (uint32_t)i;
	fuzz_fail("%s is accepted as an errno", name);
}

static uint64_t number_of(struct json_object *value)
{
	if (json_object_is_type(value, json_type_int))
		return json_object_get_uint64(value);
	return strtoull(json_object_get_string(value), NULL, 0);
}

static void set_answer(const char *name, uint32_t answer)
{
	int number = seccomp_call_number(name);

	CHECK(number != CALL_UNKNOWN, "the call %s is accepted", name);
	if (number >= 0 && number < NUMBERS)
		profile.answers[number] = answer;
}

static struct argument read_argument(struct json_object *object)
{
	struct argument argument = {
		.index = (unsigned)number_of(member(object, "index")),
		.wide = strcmp(text_of(object, "type"), "long") == 0,
	};
	struct json_object *mask = member(object, "mask"), *values = member(object, "values");

	argument.mask = mask ? number_of(mask) : argument.wide ? UINT64_MAX : UINT32_MAX;
	argument.values_count = json_object_array_length(values);
	CHECK(argument.index < POLICY_ARGS_MAX && argument.values_count <= POLICY_VALUES_MAX,
	      "argument %u with %zu values is accepted", argument.index, argument.values_count);
	for (size_t i = 0; i < argument.values_count; i++)
		argument.values[i] = number_of(json_object_array_get_idx(values, i));
	return argument;
}

static void read_rule(struct json_object *entry, uint32_t answer, bool forbids)
{
	struct json_object *arguments = member(entry, "args");
	struct rule *rule = &profile.rules[profile.rules_count];

	*rule = (struct rule){.number = seccomp_call_number(text_of(entry, "name")),
	                      .answer = answer,
	                      .forbids = forbids,
	                      .arguments_count = json_object_array_length(arguments)};
	CHECK(rule->number != CALL_UNKNOWN, "the call %s is accepted", text_of(entry, "name"));
	CHECK(rule->arguments_count <= POLICY_ARGS_MAX, "%zu arguments are accepted",
	      rule->arguments_count);
	for (size_t i = 0; i < rule->arguments_count; i++)
		rule->arguments[i] = read_argument(json_object_array_get_idx(arguments, i));
	if (rule->number >= 0 && answer == SECCOMP_RET_ALLOW)
		profile.answers[rule->number] = FORBIDDEN;
	if (rule->number >= 0)
		profile.rules_count++;
}

static void read_few(struct json_object *entry)
{
	struct rule *rule = &profile.rules[profile.rules_count++];

	CHECK(strcmp(text_of(entry, "name"), "netlink_route") == 0, "few of %s is accepted",
	      text_of(entry, "name"));
	profile.few = true;
	*rule = (struct rule){.number = SYS_socket,
	                      .answer = FORBIDDEN,
	                      .arguments = {{0, false, UINT32_MAX, {AF_NETLINK}, 1},
	                                    {2, false, UINT32_MAX, {NETLINK_ROUTE}, 1}},
	                      .arguments_count = 2};
}

static void read_list(struct json_object *root, const char *key)
{
	struct json_object *list = member(root, key);
	size_t count = list ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < count && profile.rules_count < RULES_MAX; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i), *names;

		if (strcmp(key, "allow") == 0)
			set_answer(json_object_get_string(entry), SECCOMP_RET_ALLOW);
		else if (strcmp(key, "few") == 0)
			read_few(entry);
		else if (strcmp(key, "allow_when") == 0)
			read_rule(entry, SECCOMP_RET_ALLOW, false);
		else if (strcmp(key, "forbid_when") == 0)
			read_rule(entry, FORBIDDEN, true);
		else if (strcmp(key, "errno_when") == 0)
			read_rule(entry, errno_of(entry, "errno"), false);
		else
			for (size_t n = 0; (names = member(entry, "names")) &&
			                   n < json_object_array_length(names);
			     n++)
				set_answer(
					json_object_get_string(json_object_array_get_idx(names, n)),
					strcmp(key, "forbid") == 0 ? FORBIDDEN
								   : errno_of(entry, "errno"));
	}
}

/* The lists of conditions in the order in which they are tried. */
static void read_profile(struct json_object *root)
{
	static const char *const lists[] = {"allow", "forbid",      "errno",     "errno_when",
	                                    "few",   "forbid_when", "allow_when"};
	struct json_object *deny = member(root, "deny");

	profile.notify = strcmp(text_of(deny, "action"), "notify") == 0;
	profile.deny = errno_of(deny, "errno");
	profile.unknown = errno_of(root, "unknown");
	profile.few = false;
	profile.rules_count = 0;
	for (int i = 0; i < NUMBERS; i++)
		profile.answers[i] = profile.unknown;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		read_list(root, lists[i]);
	memset(profile.first, 0, sizeof profile.first);
	for (size_t r = profile.rules_count; r-- > 0;) {
		struct rule *rule = &profile.rules[r];

		rule->next = profile.first[rule->number];
		profile.first[rule->number] = rule;
	}
}

static bool holds(const struct argument *argument, const struct seccomp_data *data)
{
	uint64_t value = data->args[argument->index];

	if (!argument->wide)
		value &= UINT32_MAX;
	for (size_t i = 0; i < argument->values_count; i++)
		if ((value & argument->mask) == argument->values[i])
			return true;
	return false;
}

/* What the program answers where the profile forbids. */
static uint32_t forbidden(const struct seccomp_data *data, bool by_forbid_when)
{
	bool netlink = (uint32_t)data->args[0] == AF_NETLINK &&
	               (uint32_t)data->args[2] == NETLINK_ROUTE;

	if (!profile.notify)
		return profile.deny;
	if (data->nr == SYS_socket && !profile.few && (netlink || by_forbid_when))
		return SECCOMP_RET_ERRNO | EPERM;
	return SECCOMP_RET_USER_NOTIF;
}

static uint32_t expected(const struct seccomp_data *data)
{
	uint32_t answer;

	if (data->arch != ARCH_NATIVE || data->nr < 0 || data->nr >= NUMBERS)
		return profile.unknown;
	for (const struct rule *rule = profile.first[data->nr]; rule; rule = rule->next) {
		bool all = true;

		for (size_t i = 0; all && i < rule->arguments_count; i++)
			all = holds(&rule->arguments[i], data);
		if (all)
			return rule->answer == FORBIDDEN ? forbidden(data, rule->forbids)
			                                 : rule->answer;
	}
	answer = profile.answers[data->nr];
	return answer == FORBIDDEN ? forbidden(data, false) : answer;
}

/* ---- the program beside it ---- */

/* As the kernel checks it when it is installed. */
static void check_program(const struct seccomp_filter *filter)
{
	for (size_t pc = 0; pc < filter->length; pc++) {
		const struct sock_filter *in = &filter->instructions[pc];
		size_t furthest = in->jt > in->jf ? in->jt : in->jf;

		if (BPF_CLASS(in->code) != BPF_JMP)
			continue;
		if (BPF_OP(in->code) == BPF_JA)
			furthest = in->k;
		CHECK(pc + 1 + furthest < filter->length, "instruction %zu jumps out", pc);
	}
	CHECK(filter->length && filter->instructions[filter->length - 1].code == (BPF_RET | BPF_K),
	      "the program has no end");
	CHECK(filter->notifies == profile.notify, "the listener is wrong");
}

static void compare(const struct seccomp_filter *filter, const struct seccomp_data *data)
{
	uint32_t answer = 0, wanted = expected(data);
	unsigned steps;

	CHECK(bpf_run(filter, data, &answer, &steps), "the program is broken");
	CHECK(answer == wanted, "call %d (%#llx, %#llx, %#llx, ...): %#x, not %#x", data->nr,
	      (unsigned long long)data->args[0], (unsigned long long)data->args[1],
	      (unsigned long long)data->args[2], answer, wanted);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* A value that the argument names, or one beside it. */
static uint64_t telling(const struct argument *argument, uint64_t *state)
{
	uint64_t value = argument->values_count
	                         ? argument->values[next_random(state) % argument->values_count]
	                         : 0;

	switch (next_random(state) % 10) {
	case 0:
		return value + 1;
	case 1:
		return value - 1;
	case 2:
		return value ^ (argument->mask & -argument->mask);
	case 3:
		return value | ~argument->mask;
	case 4:
		return value ^ (1ULL << (next_random(state) % 64));
	case 5:
		return value | next_random(state) << 32;
	default:
		return value;
	}
}

/* Vectors of arguments that RULE matches, or nearly. */
static void compare_rule(const struct seccomp_filter *filter, const struct rule *rule,
                         uint64_t *state)
{
	struct seccomp_data data = {.nr = rule->number, .arch = ARCH_NATIVE};

	for (int vector = 0; vector < VECTORS; vector++) {
		for (size_t i = 0; i < rule->arguments_count; i++)
			data.args[rule->arguments[i].index] = telling(&rule->arguments[i], state);
		if (next_random(state) % 4 == 0)
			data.args[next_random(state) % POLICY_ARGS_MAX] = next_random(state);
		compare(filter, &data);
	}
}

static void compare_all(const struct seccomp_filter *filter, uint64_t seed)
{
	static const int odd[] = {-1, INT32_MAX, INT32_MIN, 0x40000000, 0x40000001};
	uint64_t state = seed;
	struct seccomp_data data = {.arch = ARCH_NATIVE};

	for (data.nr = 0; data.nr < NUMBERS + 2; data.nr++)
		compare(filter, &data);
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		data.nr = odd[i];
		compare(filter, &data);
	}
	data.nr = SYS_socket;
	data.args[0] = AF_NETLINK;
	compare(filter, &data);
	data.args[2] = UINT64_C(1) << 40;
	compare(filter, &data);
	data.arch = AUDIT_ARCH_I386;
	compare(filter, &data);
	for (size_t r = 0; r < profile.rules_count; r++)
		compare_rule(filter, &profile.rules[r], &state);
}

/* VALID: it must be accepted. */
static void try_text(const char *json, size_t length, bool valid)
{
	struct json_object *root;
	struct seccomp_filter filter;
	struct err e;
	int result = seccomp_filter_compile(json, length, &filter, &e);

	if (result < 0) {
		fuzz_check_err(result, &e);
		CHECK(!valid || e.code == E2BIG, "a valid profile is refused: %s", e.text);
		return;
	}
	root = json_tokener_parse(json);
	CHECK(root, "accepted, and no JSON");
	read_profile(root);
	json_object_put(root);
	check_program(&filter);
	compare_all(&filter, length);
	seccomp_filter_release(&filter);
}

/* ---- writing a valid profile ---- */

struct writer {
	struct fuzz_bytes bytes;
	char *text; /* TEXT_SIZE bytes */
	size_t used;
};

PRINTF_LIKE(2, 3) static void put(struct writer *w, const char *fmt, ...)
{
	va_list args;
	int length;

	va_start(args, fmt);
	length = vsnprintf(w->text + w->used, TEXT_SIZE - w->used, fmt, args);
	va_end(args);
	if (length > 0)
		w->used += (size_t)length;
	if (w->used >= TEXT_SIZE)
		w->used = TEXT_SIZE - 1;
}

/* Calls of this architecture in a fixed order, one of another, and late ones. */
static const char *const calls[] = {"socket", "ioctl",      "clone", "personality", "mknod",
                                    "prctl",  "setsockopt", "read",  "breakpoint",  "mseal",
                                    "write",  "openat",     "futex", "file_setattr"};
enum { CALLS = sizeof calls / sizeof *calls };
static const char *const errnos[] = {"EPERM", "ENOSYS", "EINVAL", "EHWPOISON"};

static void put_number(struct writer *w, bool wide, uint64_t mask)
{
	static const uint64_t favourites[] = {0,    1,          2,          16,
	                                      0xff, 0x80000000, UINT32_MAX, UINT64_MAX};
	uint32_t form = fuzz_take(&w->bytes, 1);
	uint64_t value = form & 8 ? fuzz_take(&w->bytes, 2) : favourites[form & 7];

	if (form & 16)
		value |= (uint64_t)fuzz_take(&w->bytes, 1) << 32;
	if (!wide)
		value &= UINT32_MAX;
	value &= mask;
	put(w, form & 32 ? "\"%#llx\"" : "%llu", (unsigned long long)value);
	/* "%#llx" says 0 of zero, which is no such text */
	if (form & 32 && !value)
		memcpy(w->text + w->used - 3, " 0 ", 3);
}

static void put_argument(struct writer *w)
{
	static const uint64_t masks[] = {UINT32_MAX,         0xf,        0xf000,
	                                 0x7e020080,         UINT64_MAX, 0xffff00000000,
	                                 0x8000000000000001, 1};
	uint32_t form = fuzz_take(&w->bytes, 1);
	bool wide = form & 1, masked = form & 2;
	uint64_t mask = wide ? UINT64_MAX : UINT32_MAX;
	int values = 1 + (int)(form >> 5);

	if (masked && masks[form >> 2 & 7] & mask)
		mask &= masks[form >> 2 & 7];
	put(w, "{\"index\":%u,\"type\":\"%s\",", fuzz_take(&w->bytes, 1) % POLICY_ARGS_MAX,
	    wide ? "long" : "int");
	if (masked)
		put(w, "\"mask\":\"%#llx\",", (unsigned long long)mask);
	put(w, "\"values\":[");
	for (int i = 0; i < values; i++) {
		put(w, i ? "," : "");
		put_number(w, wide, mask);
	}
	put(w, "]}");
}

static void put_rule(struct writer *w, const char *name, const char *error)
{
	uint32_t form = fuzz_take(&w->bytes, 1);
	int arguments = 1 + (int)(form % (form < 224 ? 2 : POLICY_ARGS_MAX));

	put(w, "{\"name\":\"%s\",\"why\":\"\",", name);
	if (error)
		put(w, "\"errno\":\"%s\",", error);
	put(w, "\"args\":[");
	for (int i = 0; i < arguments; i++) {
		put(w, i ? "," : "");
		put_argument(w);
	}
	put(w, "]}");
}

/* Rules of the calls whose place (as put_places decided) is one of PLACES. */
static void put_rules(struct writer *w, const char *list, const uint32_t place[CALLS],
                      uint32_t places, bool once)
{
	const char *comma = "";

	put(w, ",\"%s\":[", list);
	for (int i = 0; i < CALLS; i++) {
		uint32_t count = places >> place[i] & 1 ? fuzz_take(&w->bytes, 1) : 0;

		count = count < 250 ? count % 3 : 10 * (count % 8);
		if (once && places >> place[i] & 1 && !count)
			count = 1;
		for (; count; count--) {
			put(w, "%s", comma);
			put_rule(w, calls[i],
			         strcmp(list, "errno_when") == 0
			                 ? errnos[fuzz_take(&w->bytes, 1) % 4]
			                 : NULL);
			comma = ",";
		}
	}
	put(w, "]");
}

enum { ALLOW, FORBID, ERRNO, ALLOW_WHEN, NOWHERE };

static void put_places(struct writer *w, const uint32_t place[CALLS])
{
	const char *comma = "";

	put(w, ",\"allow\":[");
	for (int i = 0; i < CALLS; i++)
		if (place[i] == ALLOW) {
			put(w, "%s\"%s\"", comma, calls[i]);
			comma = ",";
		}
	put(w, "],\"forbid\":[{\"why\":\"\",\"names\":[");
	comma = "";
	for (int i = 0; i < CALLS; i++)
		if (place[i] == FORBID) {
			put(w, "%s\"%s\"", comma, calls[i]);
			comma = ",";
		}
	put(w, "]}],\"errno\":[");
	comma = "";
	for (int i = 0; i < CALLS; i++)
		if (place[i] == ERRNO) {
			put(w, "%s{\"why\":\"\",\"names\":[\"%s\"],\"errno\":\"%s\"}", comma,
			    calls[i], errnos[fuzz_take(&w->bytes, 1) % 4]);
			comma = ",";
		}
	put(w, "]");
}

static void write_profile(struct writer *w)
{
	uint32_t form = fuzz_take(&w->bytes, 1), place[CALLS];
	bool notify = form & 1;

	for (int i = 0; i < CALLS; i++)
		place[i] = fuzz_take(&w->bytes, 1) % (NOWHERE + 1);
	put(w, "{\"version\":1,\"unknown\":\"%s\",\"deny\":{\"action\":\"%s\",\"errno\":\"%s\"}",
	    errnos[form >> 1 & 3], notify ? "notify" : "errno",
	    notify ? "EPERM" : errnos[form >> 3 & 3]);
	put_places(w, place);
	put_rules(w, "allow_when", place, 1 << ALLOW_WHEN, true);
	put_rules(w, "errno_when", place, 1 << ALLOW | 1 << ALLOW_WHEN, false);
	put_rules(w, "forbid_when", place, 1 << ALLOW | 1 << ALLOW_WHEN, false);
	if (notify && form & 32 && (place[0] == ALLOW || place[0] == ALLOW_WHEN))
		put(w, ",\"few\":[{\"name\":\"netlink_route\",\"why\":\"\"}]");
	put(w, "}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_mem char *text = NULL;
	struct writer writer = {.bytes = {data, size}};

	if (size && data[0] == '{') {
		text = fuzz_text(data, size);
		try_text(text, size, false);
		return 0;
	}
	text = malloc(TEXT_SIZE);
	CHECK(text, "no memory");
	writer.text = text;
	write_profile(&writer);
	try_text(text, writer.used, writer.used < TEXT_SIZE - 1);
	return 0;
}
