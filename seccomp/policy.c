/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON profile -> struct policy. Strict: a key, a name or a value that is not understood is an
 * error, because a profile that is half understood is a hole. A call whose name exists on another
 * architecture only is skipped, so that one profile serves all.
 *
 * Invariant: each call has exactly one place among allow, forbid, errno and allow_when; the rules
 * of errno_when come before those of forbid_when, and these before those of allow_when. A listener
 * gets socket(AF_NETLINK, *, NETLINK_ROUTE), of which it lets some pass, only from a profile that
 * says so.
 */
#include "seccomp/policy.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/json.h"
#include "base/scoped.h"
#include "seccomp/calls.h"

struct parser {
	struct policy *policy;
	bool conditional[POLICY_CALLS]; /* forbidden unless a rule of allow_when matches */
	bool few_netlink;
};

static int errno_parse(const char *name, int *error, struct err *e)
{
	for (int i = 1; i < 134; i++) {
		const char *known = strerrorname_np(i);

		if (known && !strcmp(known, name)) {
			*error = i;
			return 0;
		}
	}
	return err_set(e, EINVAL, "\"%s\" is not the name of an errno, such as EPERM", name);
}

static int errno_get(struct json_object *object, const char *key, bool required, int *error,
                     struct err *e)
{
	const char *name = NULL;

	TRY(json_get_string(object, key, required, &name, e));
	if (name && errno_parse(name, error, e) < 0)
		return err_in(e, "%s", key);
	return 0;
}

/* Numbers are JSON numbers or "0x..." text: JSON has no hexadecimal, and flags are unreadable
 * without it. */
static int number_parse(struct json_object *value, uint64_t *number, struct err *e)
{
	const char *text;

	if (json_object_is_type(value, json_type_int) && json_object_get_int64(value) >= 0) {
		*number = json_object_get_uint64(value);
		return 0;
	}
	if (json_object_is_type(value, json_type_string)) {
		text = json_object_get_string(value);
		if (!strncmp(text, "0x", 2) && strlen(text) >= 3 && strlen(text) <= 18 &&
		    strspn(text + 2, "0123456789abcdefABCDEF") == strlen(text + 2)) {
			*number = strtoull(text + 2, NULL, 16);
			return 0;
		}
	}
	return err_set(e, EINVAL, "%s is not a number of 0 or more, nor text such as \"0x5412\"",
	               json_object_to_json_string(value));
}

static int values_parse(struct json_object *values, struct policy_condition *condition,
                        struct err *e)
{
	size_t count = json_object_array_length(values);

	if (count == 0 || count > POLICY_VALUES_MAX)
		return err_set(e, EINVAL, "values: %zu of them, 1 to %d can be", count,
		               POLICY_VALUES_MAX);
	for (size_t i = 0; i < count; i++) {
		uint64_t *value = &condition->values[i];

		if (number_parse(json_object_array_get_idx(values, i), value, e) < 0)
			return err_in(e, "values[%zu]", i);
		if (*value & ~condition->mask)
			return err_set(e, EINVAL,
			               "values[%zu]: %#llx has bits outside the mask %#llx, so it "
			               "could never match",
			               i, (unsigned long long)*value,
			               (unsigned long long)condition->mask);
	}
	condition->values_count = (unsigned)count;
	return 0;
}

static int condition_parse(struct json_object *object, struct policy_condition *condition,
                           struct err *e)
{
	static const char *const keys[] = {"index", "type", "mask", "values", NULL};
	struct json_object *values = NULL, *mask = NULL;
	const char *type = NULL;
	uint64_t index = 0, width;

	if (!json_object_is_type(object, json_type_object))
		return err_set(e, EINVAL, "not an object");
	TRY(json_only_keys(object, keys, e));
	TRY(json_get_u64(object, "index", true, &index, e));
	if (index >= POLICY_ARGS_MAX)
		return err_set(e, EINVAL, "index: a system call has the arguments 0 to %d",
		               POLICY_ARGS_MAX - 1);
	condition->index = (unsigned)index;

	TRY(json_get_string(object, "type", true, &type, e));
	if (!strcmp(type, "int"))
		width = UINT32_MAX;
	else if (!strcmp(type, "long"))
		width = UINT64_MAX;
	else
		return err_set(e, EINVAL,
		               "type: \"%s\" is neither \"int\" (the kernel reads the low 32 bits) "
		               "nor \"long\"",
		               type);
	condition->mask = width;
	if (json_object_object_get_ex(object, "mask", &mask)) {
		if (number_parse(mask, &condition->mask, e) < 0)
			return err_in(e, "mask");
		if (!condition->mask || condition->mask & ~width)
			return err_set(e, EINVAL, "mask: 0, or wider than the type \"%s\"", type);
	}
	TRY(json_get_array(object, "values", true, &values, e));
	return values_parse(values, condition, e);
}

static int call_find(const char *name, int *number, struct err *e)
{
	*number = seccomp_call_number(name);
	if (*number == CALL_UNKNOWN)
		return err_set(e, EINVAL, "\"%s\" is not the name of a system call", name);
	if (*number >= POLICY_CALLS)
		return err_set(e, ERANGE, "\"%s\" has the number %d, %d is the highest", name,
		               *number, POLICY_CALLS - 1);
	return 0;
}

static int call_answer(struct parser *p, const char *name, struct policy_answer answer,
                       struct err *e)
{
	int number;

	TRY(call_find(name, &number, e));
	if (number == CALL_ELSEWHERE)
		return 0;
	if (p->policy->calls[number].action != POLICY_UNNAMED)
		return err_set(e, EINVAL, "\"%s\" has its answer already; name each call once",
		               name);
	p->policy->calls[number] = answer;
	return 0;
}

/* A call with rules of allow_when is forbidden where none of them matches. */
static int call_allowed_when(struct parser *p, const char *name, int number, struct err *e)
{
	if (p->conditional[number])
		return 0;
	p->conditional[number] = true;
	return call_answer(p, name, (struct policy_answer){.action = POLICY_FORBID}, e);
}

static int rule_add(struct policy *policy, const struct policy_rule *rule, struct err *e)
{
	struct policy_rule *grown;

	grown = reallocarray(policy->rules, policy->rules_count + 1, sizeof *grown);
	if (!grown)
		return err_sys(e, "rules");
	policy->rules = grown;
	grown[policy->rules_count++] = *rule;
	return 0;
}

/* What seccomp/notify.c recognises. */
static struct policy_rule netlink_rule(struct policy_answer answer)
{
	return (struct policy_rule){
		.number = SYS_socket,
		.answer = answer,
		.conditions = {{0, UINT32_MAX, {AF_NETLINK}, 1},
	                       {2, UINT32_MAX, {NETLINK_ROUTE}, 1}},
		.conditions_count = 2,
	};
}

static int has_exceptions(const struct parser *p, const char *name, int number, struct err *e)
{
	if (p->policy->calls[number].action == POLICY_ALLOW || p->conditional[number])
		return 0;
	return err_set(e, EINVAL, "\"%s\" must be named by allow or allow_when as well", name);
}

static int rule_parse(struct parser *p, struct json_object *entry, struct policy_answer answer,
                      struct err *e)
{
	struct policy_rule rule = {.answer = answer};
	struct json_object *args = NULL;
	const char *name = NULL;
	size_t count;

	TRY(json_get_string(entry, "name", true, &name, e));
	TRY(json_get_array(entry, "args", true, &args, e));
	count = json_object_array_length(args);
	if (count == 0 || count > POLICY_ARGS_MAX)
		return err_set(e, EINVAL, "args: %zu conditions, 1 to %d can be", count,
		               POLICY_ARGS_MAX);
	for (size_t i = 0; i < count; i++)
		if (condition_parse(json_object_array_get_idx(args, i), &rule.conditions[i], e) < 0)
			return err_in(e, "args[%zu]", i);
	rule.conditions_count = (unsigned)count;

	TRY(call_find(name, &rule.number, e));
	if (rule.number == CALL_ELSEWHERE)
		return 0;
	if (answer.action == POLICY_ALLOW)
		TRY(call_allowed_when(p, name, rule.number, e));
	else
		TRY(has_exceptions(p, name, rule.number, e));
	return rule_add(p->policy, &rule, e);
}

static int allow_entry(struct parser *p, struct json_object *entry, struct err *e)
{
	if (!json_object_is_type(entry, json_type_string))
		return err_set(e, EINVAL, "not the name of a system call");
	return call_answer(p, json_object_get_string(entry),
	                   (struct policy_answer){.action = POLICY_ALLOW}, e);
}

static int entry_check(struct json_object *entry, const char *const keys[], struct err *e)
{
	const char *why = NULL;

	if (!json_object_is_type(entry, json_type_object))
		return err_set(e, EINVAL, "not an object");
	TRY(json_only_keys(entry, keys, e));
	return json_get_string(entry, "why", true, &why, e);
}

static int names_answer(struct parser *p, struct json_object *entry, struct policy_answer answer,
                        struct err *e)
{
	struct json_object *names = NULL;

	TRY(json_get_array(entry, "names", true, &names, e));
	for (size_t i = 0; i < json_object_array_length(names); i++) {
		struct json_object *name = json_object_array_get_idx(names, i);

		if (!json_object_is_type(name, json_type_string))
			return err_set(e, EINVAL, "names[%zu]: not the name of a system call", i);
		TRY(call_answer(p, json_object_get_string(name), answer, e));
	}
	return 0;
}

static int forbid_entry(struct parser *p, struct json_object *entry, struct err *e)
{
	static const char *const keys[] = {"names", "why", NULL};

	TRY(entry_check(entry, keys, e));
	return names_answer(p, entry, (struct policy_answer){.action = POLICY_FORBID}, e);
}

static int errno_entry(struct parser *p, struct json_object *entry, struct err *e)
{
	static const char *const keys[] = {"names", "errno", "why", NULL};
	struct policy_answer answer = {.action = POLICY_ERRNO};

	TRY(entry_check(entry, keys, e));
	TRY(errno_get(entry, "errno", true, &answer.error, e));
	return names_answer(p, entry, answer, e);
}

static int errno_when_entry(struct parser *p, struct json_object *entry, struct err *e)
{
	static const char *const keys[] = {"name", "args", "errno", "why", NULL};
	struct policy_answer answer = {.action = POLICY_ERRNO};

	TRY(entry_check(entry, keys, e));
	TRY(errno_get(entry, "errno", true, &answer.error, e));
	return rule_parse(p, entry, answer, e);
}

static int forbid_when_entry(struct parser *p, struct json_object *entry, struct err *e)
{
	static const char *const keys[] = {"name", "args", "why", NULL};

	TRY(entry_check(entry, keys, e));
	return rule_parse(p, entry, (struct policy_answer){.action = POLICY_FORBID}, e);
}

static int allow_when_entry(struct parser *p, struct json_object *entry, struct err *e)
{
	static const char *const keys[] = {"name", "args", "why", NULL};

	TRY(entry_check(entry, keys, e));
	return rule_parse(p, entry, (struct policy_answer){.action = POLICY_ALLOW}, e);
}

/* "Forbidden" is that the listener decides. */
static int few_entry(struct parser *p, struct json_object *entry, struct err *e)
{
	static const char *const keys[] = {"name", "why", NULL};
	const struct policy_rule rule = netlink_rule(
		(struct policy_answer){.action = POLICY_FORBID});
	const char *name = NULL;

	TRY(entry_check(entry, keys, e));
	TRY(json_get_string(entry, "name", true, &name, e));
	if (strcmp(name, "netlink_route") != 0)
		return err_set(e, EINVAL, "name: \"%s\" cannot be counted, \"netlink_route\" can",
		               name);
	if (!p->policy->notify)
		return err_set(e, EINVAL, "a listener counts: it needs deny.action \"notify\"");
	TRY(has_exceptions(p, "socket", SYS_socket, e));
	p->few_netlink = true;
	return rule_add(p->policy, &rule, e);
}

/* The order in which the lists are read; rules are tried by rank, not by it. */
static const struct section {
	const char *key;
	int (*entry)(struct parser *p, struct json_object *entry, struct err *e);
} sections[] = {
	{"allow", allow_entry},
	{"forbid", forbid_entry},
	{"errno", errno_entry},
	{"allow_when", allow_when_entry},
	{"errno_when", errno_when_entry},
	{"forbid_when", forbid_when_entry},
	{"few", few_entry},
};

static int sections_parse(struct parser *p, struct json_object *root, struct err *e)
{
	for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
		const char *key = sections[s].key;
		struct json_object *list = NULL;

		TRY(json_get_array(root, key, false, &list, e));
		for (size_t i = 0; list && i < json_object_array_length(list); i++)
			if (sections[s].entry(p, json_object_array_get_idx(list, i), e) < 0)
				return err_in(e, "%s[%zu]", key, i);
	}
	return 0;
}

static int deny_parse(struct policy *policy, struct json_object *root, struct err *e)
{
	static const char *const keys[] = {"action", "errno", NULL};
	struct json_object *deny = NULL;
	const char *action = NULL;

	TRY(json_get_object(root, "deny", true, &deny, e));
	if (json_only_keys(deny, keys, e) < 0 ||
	    json_get_string(deny, "action", true, &action, e) < 0 ||
	    errno_get(deny, "errno", true, &policy->deny_error, e) < 0)
		return err_in(e, "deny");
	policy->notify = !strcmp(action, "notify");
	if (!policy->notify && strcmp(action, "errno") != 0)
		return err_set(e, EINVAL,
		               "deny: action: \"%s\" is neither \"notify\" nor \"errno\"", action);
	/* the supervisor of the listener answers EPERM and knows no profile */
	if (policy->notify && policy->deny_error != EPERM)
		return err_set(
			e, EINVAL,
			"deny: errno: with the action \"notify\" only EPERM can be answered");
	return 0;
}

static int root_parse(struct parser *p, struct json_object *root, struct err *e)
{
	static const char *const keys[] = {"version",     "unknown", "deny",       "allow",
	                                   "forbid",      "errno",   "allow_when", "errno_when",
	                                   "forbid_when", "few",     NULL};
	uint64_t version = 0;

	if (!json_object_is_type(root, json_type_object))
		return err_set(e, EINVAL, "not an object");
	TRY(json_only_keys(root, keys, e));
	TRY(json_get_u64(root, "version", true, &version, e));
	if (version != 1)
		return err_set(e, EINVAL, "version: %llu is not known, 1 is",
		               (unsigned long long)version);
	TRY(errno_get(root, "unknown", true, &p->policy->unknown_error, e));
	TRY(deny_parse(p->policy, root, e));
	return sections_parse(p, root, e);
}

static int rank(const struct policy_rule *rule)
{
	switch (rule->answer.action) {
	case POLICY_ERRNO:
		return 0;
	case POLICY_FORBID:
		return 1;
	default:
		return 2;
	}
}

/* Stable, and a profile has a few dozen rules. */
static void rules_sort(struct policy *policy)
{
	for (size_t i = 1; i < policy->rules_count; i++) {
		struct policy_rule rule = policy->rules[i];
		size_t at = i;

		for (; at > 0 && rank(&policy->rules[at - 1]) > rank(&rule); at--)
			policy->rules[at] = policy->rules[at - 1];
		policy->rules[at] = rule;
	}
}

/*
 * The kernel, not the listener, refuses the sockets that a listener would let pass, and what rules
 * of forbid_when refuse, which may be these.
 */
static int keep_from_listener(struct policy *policy, struct err *e)
{
	const struct policy_answer refused = {.action = POLICY_ERRNO, .error = policy->deny_error};
	const struct policy_rule rule = netlink_rule(refused);

	for (size_t i = 0; i < policy->rules_count; i++)
		if (policy->rules[i].number == SYS_socket &&
		    policy->rules[i].answer.action == POLICY_FORBID)
			policy->rules[i].answer = refused;
	if (policy->calls[SYS_socket].action != POLICY_FORBID)
		return 0;
	return rule_add(policy, &rule, e);
}

int policy_parse(const char *json, size_t length, struct policy *policy, struct err *e)
{
	scoped_json root = NULL;
	struct policy parsed = {0};
	struct parser p = {.policy = &parsed};

	if (json_parse(json, length, &root, e) < 0 || root_parse(&p, root, e) < 0) {
		policy_release(&parsed);
		return err_in(e, "seccomp profile");
	}
	rules_sort(&parsed);
	if (parsed.notify && !p.few_netlink && keep_from_listener(&parsed, e) < 0) {
		policy_release(&parsed);
		return err_in(e, "seccomp profile");
	}
	*policy = parsed;
	return 0;
}

void policy_release(struct policy *policy)
{
	free(policy->rules);
	*policy = (struct policy){0};
}
