/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of engines: what our program answers is compared with what libseccomp's does for the same
 * rules, call by call, with arguments around each value that a rule has. Where we mean to differ
 * (newer calls, socketcall) the tests say what they want.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>

#include <cmocka.h>

#include "base/scoped.h"
#include "seccomp/names.h"
#include "seccomp/profile.h"
#include "tests/bpf.h"

#define ERRNO(n) (SECCOMP_RET_ERRNO | (uint32_t)(n))
#define COUNT(a) (sizeof(a) / sizeof *(a))

static const uint32_t all_arches[] = NAMES_ARCHES;

/* ---- libseccomp's program of a profile ---- */

static uint32_t scmp_action(uint32_t action)
{
	/* the words are the kernel's, but for this one */
	return action == SECCOMP_RET_USER_NOTIF ? SCMP_ACT_NOTIFY : action;
}

static struct scmp_arg_cmp scmp_argument(const struct seccomp_argument *a)
{
	static const enum scmp_compare words[] = {
		[SECCOMP_NE] = SCMP_CMP_NE,
		[SECCOMP_LT] = SCMP_CMP_LT,
		[SECCOMP_LE] = SCMP_CMP_LE,
		[SECCOMP_EQ] = SCMP_CMP_EQ,
		[SECCOMP_GE] = SCMP_CMP_GE,
		[SECCOMP_GT] = SCMP_CMP_GT,
		[SECCOMP_MASKED_EQ] = SCMP_CMP_MASKED_EQ,
	};

	return (struct scmp_arg_cmp){.arg = a->index,
	                             .op = words[a->comparison],
	                             .datum_a = a->value,
	                             .datum_b = a->value_two};
}

static void add_scmp_rule(scmp_filter_ctx context, const struct seccomp_rule *rule,
                          const char *name)
{
	struct scmp_arg_cmp arguments[6];
	int number = seccomp_syscall_resolve_name(name);

	for (size_t i = 0; i < rule->arguments_count; i++)
		arguments[i] = scmp_argument(&rule->arguments[i]);
	if (number != __NR_SCMP_ERROR) {
		int r = seccomp_rule_add_array(context, scmp_action(rule->action), number,
		                               (unsigned)rule->arguments_count, arguments);

		assert_true(r == 0 || r == -EEXIST);
	}
}

static void compile_theirs(const struct seccomp_profile *profile, struct seccomp_filter *filter)
{
	scmp_filter_ctx context = seccomp_init(scmp_action(profile->default_action));
	scoped_fd fd = memfd_create("bpf", MFD_CLOEXEC);
	struct stat status;

	assert_non_null(context);
	for (size_t i = 0; i < profile->architectures_count; i++)
		assert_true(seccomp_arch_exist(context, profile->architectures[i]) == 0 ||
		            seccomp_arch_add(context, profile->architectures[i]) == 0);
	for (size_t r = 0; r < profile->rules_count; r++)
		for (size_t i = 0; i < profile->rules[r].names_count; i++)
			if (profile->rules[r].action != profile->default_action)
				add_scmp_rule(context, &profile->rules[r],
				              profile->rules[r].names[i]);
	assert_int_equal(seccomp_export_bpf(context, fd), 0);
	seccomp_release(context);
	assert_int_equal(fstat(fd, &status), 0);
	filter->owned = malloc((size_t)status.st_size);
	assert_non_null(filter->owned);
	assert_int_equal(pread(fd, filter->owned, (size_t)status.st_size, 0), status.st_size);
	filter->instructions = filter->owned;
	filter->length = (unsigned short)((size_t)status.st_size / sizeof *filter->owned);
}

/* ---- both, side by side ---- */

struct pair {
	const struct seccomp_profile *profile;
	struct seccomp_filter ours, theirs;
	struct seccomp_profile_filter owned;
};

static void pair_make(struct pair *pair, const struct seccomp_profile *profile)
{
	struct err e = {0};

	*pair = (struct pair){.profile = profile};
	if (seccomp_profile_compile(profile, &pair->owned, &e) < 0)
		fail_msg("%s", e.text);
	pair->ours.instructions = pair->owned.instructions;
	pair->ours.length = pair->owned.length;
	compile_theirs(profile, &pair->theirs);
}

static void pair_release(struct pair *pair)
{
	seccomp_profile_filter_release(&pair->owned);
	free(pair->theirs.owned);
}

static uint32_t answer(const struct seccomp_filter *filter, const struct seccomp_data *data)
{
	uint32_t answer = 0;
	unsigned steps;

	if (!bpf_run(filter, data, &answer, &steps))
		fail_msg("call %d of %#x: the program is broken at instruction %u", data->nr,
		         data->arch, steps);
	return answer;
}

static uint32_t ask(const struct seccomp_filter *filter, uint32_t arch, uint32_t number,
                    uint64_t first)
{
	struct seccomp_data data = {.nr = (int)number, .arch = arch, .args = {first}};

	return answer(filter, &data);
}

/* Is this one that we answer with ENOSYS, and libseccomp with the default? */
static bool is_newer(const struct seccomp_profile *profile, uint32_t ours, uint32_t theirs)
{
	return theirs == profile->default_action && ours != theirs && ours == ERRNO(ENOSYS) &&
	       (theirs & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
}

static const uint32_t audits[] = {
#ifdef __x86_64__
	AUDIT_ARCH_X86_64, AUDIT_ARCH_I386,
#else
	AUDIT_ARCH_AARCH64,
#endif
	AUDIT_ARCH_ARM,    AUDIT_ARCH_S390X, 0,
};

/* ---- what the rules say, read as they stand ---- */

static bool holds(const struct seccomp_argument *a, uint64_t argument, bool narrow)
{
	uint64_t width = narrow ? UINT32_MAX : UINT64_MAX;
	uint64_t value = argument & width, wanted = a->value & width;

	switch (a->comparison) {
	case SECCOMP_NE:
		return value != wanted;
	case SECCOMP_LT:
		return value < wanted;
	case SECCOMP_LE:
		return value <= wanted;
	case SECCOMP_EQ:
		return value == wanted;
	case SECCOMP_GE:
		return value >= wanted;
	case SECCOMP_GT:
		return value > wanted;
	case SECCOMP_MASKED_EQ:
		return (value & wanted) == (a->value_two & wanted);
	}
	return false;
}

static bool all_hold(const struct seccomp_rule *rule, const struct seccomp_data *data, bool narrow)
{
	for (size_t i = 0; i < rule->arguments_count; i++)
		if (!holds(&rule->arguments[i], data->args[rule->arguments[i].index], narrow))
			return false;
	return true;
}

/* Which of the architectures' calls it is; -1: none that we have. */
static int column_of(const struct seccomp_data *data)
{
	bool x32 = data->arch == AUDIT_ARCH_X86_64 && (uint32_t)data->nr >= 0x40000000;

	for (size_t i = 0; i < COUNT(all_arches); i++)
		if (all_arches[i] == (x32 ? (uint32_t)NAMES_X32 : data->arch))
			return (int)i;
	return -1;
}

static bool names_call(const struct seccomp_rule *rule, const struct seccomp_data *data)
{
	for (size_t i = 0; i < rule->names_count; i++) {
		const struct call_numbers *call = names_find(rule->names[i]);

		if (call && call->numbers[column_of(data)] == data->nr)
			return true;
	}
	return false;
}

/* *MANY: of several rules of a call libseccomp 2.5 forgets some, so that the two are not alike. */
static uint32_t model(const struct seccomp_profile *profile, const struct seccomp_data *data,
                      bool *many)
{
	const struct seccomp_rule *found = NULL;
	int count = 0;

	*many = false;
	for (size_t r = 0; r < profile->rules_count; r++) {
		const struct seccomp_rule *rule = &profile->rules[r];

		if (rule->action == profile->default_action || !names_call(rule, data))
			continue;
		if (rule->arguments_count == 0)
			return rule->action;
		if (all_hold(rule, data, column_of(data) > 0) && !found)
			found = rule;
		*many = ++count > 1;
	}
	return found ? found->action : profile->default_action;
}

static bool is_wanted(const struct seccomp_profile *profile, const struct seccomp_data *data)
{
	int column = column_of(data);

	for (size_t i = 0; i < profile->architectures_count; i++)
		if (column >= 0 && profile->architectures[i] == all_arches[column])
			return true;
	return column == 0;
}

static void compare(const struct pair *pair, const struct seccomp_data *data)
{
	uint32_t ours = answer(&pair->ours, data), theirs = answer(&pair->theirs, data);

	bool many = false;

	if (is_wanted(pair->profile, data) && data->nr != -1 &&
	    !is_newer(pair->profile, ours, pair->profile->default_action))
		assert_int_equal(ours, model(pair->profile, data, &many));
	if (many)
		return;
	if (ours != theirs && !is_newer(pair->profile, ours, theirs))
		fail_msg("call %d of %#x with %llx %llx %llx %llx %llx %llx: %#x, libseccomp: %#x",
		         data->nr, data->arch, (unsigned long long)data->args[0],
		         (unsigned long long)data->args[1], (unsigned long long)data->args[2],
		         (unsigned long long)data->args[3], (unsigned long long)data->args[4],
		         (unsigned long long)data->args[5], ours, theirs);
}

/* socketcall and ipc of i386, which are ours to decide. */
static bool is_muxer(uint32_t arch, uint32_t number)
{
	return arch == AUDIT_ARCH_I386 && (number == 102 || number == 117);
}

static void compare_number(const struct pair *pair, uint32_t number, const uint64_t arguments[6])
{
	for (size_t i = 0; i < COUNT(audits); i++) {
		struct seccomp_data data = {.nr = (int)number, .arch = audits[i]};

		memcpy(data.args, arguments, sizeof data.args);
		if (!is_muxer(audits[i], number))
			compare(pair, &data);
	}
}

static void compare_numbers(const struct pair *pair, const uint64_t arguments[6])
{
	for (uint32_t number = 0; number < 600; number++) {
		compare_number(pair, number, arguments);
		compare_number(pair, 0x40000000 | number, arguments);
		compare_number(pair, 0x0f0000 + number, arguments);
	}
	compare_number(pair, UINT32_MAX, arguments);
	compare_number(pair, UINT32_MAX - 1, arguments);
	compare_number(pair, INT32_MAX, arguments);
	compare_number(pair, 1U << 31, arguments);
}

static uint64_t random_bits(unsigned *seed)
{
	uint64_t bits = 0;

	for (int i = 0; i < 5; i++)
		bits = bits << 15 ^ (uint64_t)rand_r(seed);
	return bits;
}

/* A value that some rule of the profile has, or one beside it. */
static uint64_t value_near(const struct seccomp_profile *profile, unsigned *seed)
{
	const struct seccomp_rule *rule = &profile->rules[random_bits(seed) % profile->rules_count];
	uint64_t value = 0;

	if (rule->arguments_count) {
		const struct seccomp_argument *a =
			&rule->arguments[random_bits(seed) % rule->arguments_count];

		value = random_bits(seed) % 2 ? a->value : a->value_two;
	}
	switch (random_bits(seed) % 6) {
	case 0:
		return value + 1;
	case 1:
		return value - 1;
	case 2:
		return value ^ UINT64_C(1) << random_bits(seed) % 64;
	case 3:
		return (uint32_t)value;
	default:
		return value;
	}
}

static void compare_profile(const struct seccomp_profile *profile, int rounds, unsigned *seed)
{
	struct pair pair;

	pair_make(&pair, profile);
	for (int i = 0; i < rounds; i++) {
		uint64_t arguments[6];

		for (size_t a = 0; a < COUNT(arguments); a++)
			arguments[a] = value_near(profile, seed);
		compare_numbers(&pair, arguments);
	}
	pair_release(&pair);
}

/* ---- tests ---- */

static void names_are_libseccomps(void **state)
{
	int count;
	const struct call_numbers *all = names_all(&count);

	(void)state;
	assert_true(count > 400);
	for (int i = 0; i < count; i++) {
		assert_ptr_equal(names_find(all[i].name), &all[i]);
		if (seccomp_syscall_resolve_name(all[i].name) == __NR_SCMP_ERROR)
			continue; /* newer than it */
		for (size_t a = 0; a < COUNT(all_arches); a++) {
			int theirs = seccomp_syscall_resolve_name_arch(all_arches[a], all[i].name);

			/* below zero: it has none, or goes by socketcall or ipc as well */
			if (theirs >= 0)
				assert_int_equal(all[i].numbers[a], theirs);
			else if (all_arches[a] != AUDIT_ARCH_I386)
				assert_int_equal(all[i].numbers[a], -1);
		}
	}
	assert_null(names_find("no_such_call"));
	assert_null(names_find(""));
}

static void no_name_of_libseccomp_is_missing(void **state)
{
	(void)state;
	for (size_t a = 0; a < COUNT(all_arches); a++) {
		for (int number = 0; number < 1000; number++) {
			scoped_mem char *name = seccomp_syscall_resolve_num_arch(all_arches[a],
			                                                         number);

			if (name && !names_find(name))
				fail_msg("%s (%d of %#x) is missing", name, number, all_arches[a]);
		}
	}
}

static const uint32_t actions[] = {
	SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_TRAP,
	SECCOMP_RET_ERRNO | 1,   SECCOMP_RET_ERRNO | 38,   SECCOMP_RET_TRACE | 7,
	SECCOMP_RET_ALLOW,       SECCOMP_RET_LOG,          SECCOMP_RET_USER_NOTIF,
};

static void every_action(void **state)
{
	static const char *const names[] = {"mkdir", "openat2", "socket"};
	unsigned seed = 1;

	(void)state;
	for (size_t d = 0; d < COUNT(actions); d++) {
		for (size_t a = 0; a < COUNT(actions); a++) {
			struct seccomp_rule rule = {names, COUNT(names), actions[a], NULL, 0};
			struct seccomp_profile profile = {
				.default_action = actions[d], .rules = &rule, .rules_count = 1};

			if (actions[d] != SECCOMP_RET_USER_NOTIF)
				compare_profile(&profile, 1, &seed);
		}
	}
}

static void every_operator(void **state)
{
	static const uint64_t values[] = {
		0,          1,          0x7f,      UINT32_MAX, UINT64_C(1) << 32,
		UINT64_MAX, 0x80000000, INT64_MAX, 0xfffffffe, UINT64_C(0x1234567800000000)};
	static const char *const names[] = {"clone", "personality", "ioctl"};
	unsigned seed = 2;

	(void)state;
	for (int op = SECCOMP_NE; op <= SECCOMP_MASKED_EQ; op++) {
		for (size_t v = 0; v < COUNT(values); v++) {
			struct seccomp_argument argument = {(unsigned)(v % 6),
			                                    (enum seccomp_comparison)op, values[v],
			                                    values[(v + 3) % COUNT(values)]};
			struct seccomp_rule rule = {names, COUNT(names), ERRNO(5), &argument, 1};
			struct seccomp_profile profile = {.default_action = SECCOMP_RET_ALLOW,
			                                  .architectures = all_arches,
			                                  .architectures_count = COUNT(all_arches),
			                                  .rules = &rule,
			                                  .rules_count = 1};

			compare_profile(&profile, 12, &seed);
		}
	}
}

enum { RANDOM_RULES = 16, RANDOM_NAMES = 12 };

/* One of those that are rule R's. Of names that are newer than libseccomp, none. */
static const char *random_name(size_t r, unsigned *seed)
{
	int count;
	const struct call_numbers *all = names_all(&count);

	for (;;) {
		size_t pick = random_bits(seed) % ((size_t)count / COUNT(actions));
		const char *name = all[pick * COUNT(actions) + r % COUNT(actions)].name;

		if (seccomp_syscall_resolve_name(name) != __NR_SCMP_ERROR)
			return name;
	}
}

/* Rules of random names, each name with one action, so that their order makes no difference. */
static void random_profile(unsigned *seed, int rounds)
{
	static struct seccomp_argument arguments[RANDOM_RULES][6];
	static const char *names[RANDOM_RULES][RANDOM_NAMES];
	static struct seccomp_rule rules[RANDOM_RULES];
	uint32_t action = actions[random_bits(seed) % (COUNT(actions) - 1)];
	struct seccomp_profile profile = {
		.default_action = action,
		.architectures = all_arches,
		.architectures_count = random_bits(seed) % (COUNT(all_arches) + 1),
		.rules = rules,
		.rules_count = 1 + random_bits(seed) % RANDOM_RULES,
	};

	for (size_t r = 0; r < profile.rules_count; r++) {
		rules[r] = (struct seccomp_rule){
			.names = names[r],
			.names_count = 1 + random_bits(seed) % RANDOM_NAMES,
			.arguments = arguments[r],
			.arguments_count = random_bits(seed) % 3 ? random_bits(seed) % 7 : 0,
			.action = actions[r % COUNT(actions)],
		};
		for (size_t i = 0; i < rules[r].names_count; i++) {
			names[r][i] = random_name(r, seed);
		}
		for (unsigned i = 0; i < 6; i++)
			arguments[r][i] = (struct seccomp_argument){
				(i + (unsigned)r) % 6,
				(enum seccomp_comparison)(random_bits(seed) % 7),
				random_bits(seed) >> random_bits(seed) % 64,
				random_bits(seed) >> random_bits(seed) % 64};
	}
	compare_profile(&profile, rounds, seed);
}

static void random_profiles(void **state)
{
	const char *rounds = getenv("AGENTDOCK_PROFILE_ROUNDS");
	unsigned seed = 3;

	(void)state;
	for (long i = rounds ? strtol(rounds, NULL, 10) : 60; i > 0; i--)
		random_profile(&seed, 10);
}

static void a_rule_without_arguments_counts_alone(void **state)
{
	static const char *const names[] = {"socket"};
	struct seccomp_argument argument = {0, SECCOMP_EQ, 16, 0};
	unsigned seed = 4;

	(void)state;
	for (unsigned order = 0; order < 8; order++) {
		struct seccomp_rule rules[3];

		for (unsigned i = 0; i < 3; i++)
			rules[i] = (struct seccomp_rule){names, 1, ERRNO(i + 1), &argument,
			                                 order >> i & 1};
		if (order == 7)
			continue; /* all three have arguments */
		compare_profile(&(struct seccomp_profile){.default_action = SECCOMP_RET_ALLOW,
		                                          .rules = rules,
		                                          .rules_count = 3},
		                8, &seed);
	}
}

static void rules_hold_in_their_order(void **state)
{
	static const char *const names[] = {"ioctl"};
	static const struct seccomp_argument one = {1, SECCOMP_EQ, 7, 0},
					     two = {1, SECCOMP_GE, 7, 0};
	const struct seccomp_rule rules[] = {{names, 1, ERRNO(2), &one, 1},
	                                     {names, 1, ERRNO(3), &two, 1}};
	struct seccomp_data data = {.nr = SYS_ioctl, .arch = audits[0]};
	struct pair pair;

	(void)state;
	pair_make(&pair, &(struct seccomp_profile){.default_action = SECCOMP_RET_ALLOW,
	                                           .rules = rules,
	                                           .rules_count = COUNT(rules)});
	data.args[1] = 7;
	assert_int_equal(answer(&pair.ours, &data), ERRNO(2));
	data.args[1] = 8;
	assert_int_equal(answer(&pair.ours, &data), ERRNO(3));
	data.args[1] = 6;
	assert_int_equal(answer(&pair.ours, &data), SECCOMP_RET_ALLOW);
	pair_release(&pair);
}

static void an_argument_that_is_named_twice_is_two_rules(void **state)
{
	static const char *const names[] = {"personality"};
	static const struct seccomp_argument arguments[] = {
		{0, SECCOMP_EQ, 0, 0}, {0, SECCOMP_EQ, 8, 0}, {1, SECCOMP_EQ, 5, 0}};
	const struct seccomp_rule rule = {names, 1, SECCOMP_RET_ALLOW, arguments, COUNT(arguments)};
	const struct seccomp_profile profile = {
		.default_action = SECCOMP_RET_KILL_PROCESS, .rules = &rule, .rules_count = 1};
	struct seccomp_profile_filter filter;
	struct seccomp_filter same = {0};
	struct err e;

	(void)state;
	assert_int_equal(seccomp_profile_compile(&profile, &filter, &e), 0);
	same.instructions = filter.instructions;
	same.length = filter.length;
	assert_int_equal(ask(&same, audits[0], SYS_personality, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&same, audits[0], SYS_personality, 8), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&same, audits[0], SYS_personality, 9), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(answer(&same, &(struct seccomp_data){.nr = SYS_personality,
	                                                      .arch = audits[0],
	                                                      .args = {9, 5}}),
	                 SECCOMP_RET_ALLOW);
	seccomp_profile_filter_release(&filter);
}

static void newer_calls_are_unknown(void **state)
{
	static const char *const old[] = {"read", "no_such_call"}, *const new[] = {"openat2"};
	struct seccomp_rule rule = {old, COUNT(old), SECCOMP_RET_ALLOW, NULL, 0};
	struct seccomp_profile profile = {
		.default_action = ERRNO(EPERM), .rules = &rule, .rules_count = 1};
	struct pair pair;

	(void)state;
	pair_make(&pair, &profile);
	assert_int_equal(ask(&pair.ours, audits[0], SYS_read, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&pair.ours, audits[0], SYS_mount, 0), ERRNO(EPERM));
	assert_int_equal(ask(&pair.ours, audits[0], SYS_clone3, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&pair.ours, audits[0], 999, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&pair.ours, audits[0], UINT32_MAX, 0), ERRNO(EPERM));
	pair_release(&pair);

	rule = (struct seccomp_rule){new, COUNT(new), SECCOMP_RET_ALLOW, NULL, 0};
	pair_make(&pair, &profile);
	assert_int_equal(ask(&pair.ours, audits[0], SYS_clone3, 0), ERRNO(EPERM));
	assert_int_equal(ask(&pair.ours, audits[0], SYS_openat2, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&pair.ours, audits[0], SYS_openat2 + 1, 0), ERRNO(ENOSYS));
	pair_release(&pair);

	profile.default_action = SECCOMP_RET_KILL_PROCESS;
	pair_make(&pair, &profile);
	assert_int_equal(ask(&pair.ours, audits[0], 999, 0), SECCOMP_RET_KILL_PROCESS);
	pair_release(&pair);
}

#ifdef __x86_64__
static void socketcall_is_the_calls_that_it_makes(void **state)
{
	static const char *const bind[] = {"bind"}, *const socket[] = {"socket"};
	static const struct seccomp_argument family = {0, SECCOMP_NE, 40, 0};
	static const uint32_t i386[] = {AUDIT_ARCH_I386};
	struct seccomp_rule rules[] = {{bind, 1, SECCOMP_RET_ALLOW, NULL, 0},
	                               {socket, 1, SECCOMP_RET_ALLOW, &family, 1}};
	struct seccomp_profile profile = {.default_action = ERRNO(EPERM),
	                                  .architectures = i386,
	                                  .architectures_count = 1,
	                                  .rules = rules,
	                                  .rules_count = 2};
	struct pair pair;

	(void)state;
	pair_make(&pair, &profile);
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 361, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 102, 2), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 102, 3), ERRNO(EPERM));
	/* the family cannot be seen, so it may be the one that is forbidden */
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 359, 1), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 102, 1), ERRNO(EPERM));
	pair_release(&pair);

	profile.default_action = SECCOMP_RET_ALLOW;
	rules[1].action = ERRNO(EINVAL);
	pair_make(&pair, &profile);
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 102, 1), ERRNO(EINVAL));
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 102, 2), SECCOMP_RET_ALLOW);
	pair_release(&pair);
}

/* The kernel takes the low half of the first argument for the call, the rest for its version. */
static void ipc_is_the_call_in_any_version(void **state)
{
	static const char *const names[] = {"shmget", "semget", "msgget"};
	static const uint32_t i386[] = {AUDIT_ARCH_I386}, numbers[] = {23, 2, 13};
	const struct seccomp_rule rules[] = {{names, 3, ERRNO(EACCES), NULL, 0}};
	struct seccomp_profile profile = {.default_action = SECCOMP_RET_ALLOW,
	                                  .architectures = i386,
	                                  .architectures_count = 1,
	                                  .rules = rules,
	                                  .rules_count = 1};
	struct pair pair;

	(void)state;
	pair_make(&pair, &profile);
	for (size_t i = 0; i < COUNT(numbers); i++)
		for (uint32_t version = 0; version <= UINT16_MAX; version += 0x1111)
			assert_int_equal(
				ask(&pair.ours, AUDIT_ARCH_I386, 117, version << 16 | numbers[i]),
				ERRNO(EACCES));
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 117, 1 << 16 | 24), SECCOMP_RET_ALLOW);
	/* socketcall looks at all of it */
	assert_int_equal(ask(&pair.ours, AUDIT_ARCH_I386, 102, 1 << 16 | 23), SECCOMP_RET_ALLOW);
	pair_release(&pair);
}
#endif

static void flags_are_for_one_thread(void **state)
{
	static const char *const names[] = {"mkdir"};
	struct seccomp_rule rule = {names, 1, SECCOMP_RET_USER_NOTIF, NULL, 0};
	struct seccomp_profile profile = {.default_action = SECCOMP_RET_ALLOW,
	                                  .flags = SECCOMP_FILTER_FLAG_TSYNC |
	                                           SECCOMP_FILTER_FLAG_LOG |
	                                           SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
	                                  .rules = &rule,
	                                  .rules_count = 1};
	struct seccomp_profile_filter filter;
	struct err e;

	(void)state;
	assert_int_equal(seccomp_profile_compile(&profile, &filter, &e), 0);
	assert_true(filter.notifies);
	assert_int_equal(filter.flags, SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_NEW_LISTENER |
	                                       SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	seccomp_profile_filter_release(&filter);
	rule.action = ERRNO(1);
	assert_int_equal(seccomp_profile_compile(&profile, &filter, &e), 0);
	assert_false(filter.notifies);
	assert_int_equal(filter.flags, SECCOMP_FILTER_FLAG_LOG);
	seccomp_profile_filter_release(&filter);
}

static void too_much_is_refused(void **state)
{
	enum { MANY = 2000 };
	static const char *const names[] = {"ioctl"};
	static struct seccomp_argument arguments[MANY];
	static struct seccomp_rule rules[MANY];
	struct seccomp_profile profile = {
		.default_action = SECCOMP_RET_ALLOW, .rules = rules, .rules_count = MANY};
	struct seccomp_profile_filter filter;
	struct err e;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		arguments[i] = (struct seccomp_argument){0, SECCOMP_EQ, i, 0};
		rules[i] = (struct seccomp_rule){names, 1, ERRNO(1), &arguments[i], 1};
	}
	assert_int_equal(seccomp_profile_compile(&profile, &filter, &e), -E2BIG);
	assert_non_null(strstr(e.text, "4096"));
}

static void answers_of_a_call(void **state)
{
	static const char *const names[] = {"read", "sendmsg"}, *const again[] = {"sendmsg"};
	static const struct seccomp_argument argument = {0, SECCOMP_EQ, 1, 0};
	const struct seccomp_rule rules[] = {{names, 2, SECCOMP_RET_ALLOW, &argument, 1},
	                                     {again, 1, SECCOMP_RET_TRAP, &argument, 1},
	                                     {names, 1, SECCOMP_RET_ALLOW, NULL, 0}};
	const struct seccomp_profile profile = {
		.default_action = ERRNO(1), .rules = rules, .rules_count = COUNT(rules)};

	(void)state;
	assert_int_equal(seccomp_profile_answer(&profile, "read"), SECCOMP_RET_ALLOW);
	assert_int_equal(seccomp_profile_answer(&profile, "sendmsg"), SECCOMP_RET_TRAP);
	assert_int_equal(seccomp_profile_answer(&profile, "write"), ERRNO(1));
}

/* The kernel takes it, and does what it says. */
static void the_kernel_takes_it(void **state)
{
	static const char *const names[] = {"getppid"};
	static const struct seccomp_rule rule = {names, 1, ERRNO(77), NULL, 0};
	static const struct seccomp_profile profile = {.default_action = SECCOMP_RET_ALLOW,
	                                               .architectures = all_arches,
	                                               .architectures_count = COUNT(all_arches),
	                                               .rules = &rule,
	                                               .rules_count = 1};
	struct seccomp_profile_filter filter;
	struct err e;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(seccomp_profile_compile(&profile, &filter, &e), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int listenerfd = 0;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    seccomp_profile_filter_install(&filter, &listenerfd, &e) < 0 ||
		    listenerfd != -1)
			_exit(1);
		_exit(syscall(SYS_getppid) == -1 && errno == 77 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	seccomp_profile_filter_release(&filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_libseccomps),
		cmocka_unit_test(no_name_of_libseccomp_is_missing),
		cmocka_unit_test(every_action),
		cmocka_unit_test(every_operator),
		cmocka_unit_test(random_profiles),
		cmocka_unit_test(a_rule_without_arguments_counts_alone),
		cmocka_unit_test(rules_hold_in_their_order),
		cmocka_unit_test(an_argument_that_is_named_twice_is_two_rules),
		cmocka_unit_test(newer_calls_are_unknown),
#ifdef __x86_64__
		cmocka_unit_test(socketcall_is_the_calls_that_it_makes),
		cmocka_unit_test(ipc_is_the_call_in_any_version),
#endif
		cmocka_unit_test(flags_are_for_one_thread),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(answers_of_a_call),
		cmocka_unit_test(the_kernel_takes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
