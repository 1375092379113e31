/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentdock-probes: finds the attack and plays the part that the command line names. Owns the list
 * of attacks, which the linker made of the ATTACK()s, and what the inside says: the line "trying"
 * before anything is tried, so that who dies of an attack is told from who never came to it, and
 * the outcome as the last line.
 */
#include "tests/escape/driver.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

extern const struct attack *const __start_attacks[], *const __stop_attacks[];

const char *outcome_name(enum outcome outcome)
{
	static const char *const names[] = {
		[HELD] = "held", [BROKEN] = "broken", [ABSENT] = "absent", [UNTRIED] = "error"};

	return names[outcome];
}

enum outcome verdict(struct evidence *evidence, enum outcome outcome, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(evidence->text, sizeof(evidence->text), format, args);
	va_end(args);
	for (char *c = evidence->text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	return outcome;
}

static size_t attacks_count(void)
{
	uintptr_t bytes = (uintptr_t)__stop_attacks - (uintptr_t)__start_attacks;

	return bytes / sizeof(void *);
}

static const struct attack *attack_find(const char *name)
{
	for (size_t i = 0; i < attacks_count(); i++)
		if (strcmp(__start_attacks[i]->name, name) == 0)
			return __start_attacks[i];
	return NULL;
}

/* ---- list ---- */

static void add_words(struct json_object *object, const char *key, const char *const words[])
{
	struct json_object *array = json_add_array(object, key);

	for (; words && *words; words++)
		json_object_array_add(array, json_object_new_string(*words));
}

static int list(void)
{
	scoped_json array = json_object_new_array();
	uint64_t patience_us;

	/* an audit is told before its first attack what is wrong for all */
	if (around_patience(&patience_us) != 0)
		return PROBE_ERROR;

	for (size_t i = 0; i < attacks_count(); i++) {
		const struct attack *attack = __start_attacks[i];
		struct json_object *object = json_object_new_object();

		json_add_string(object, "attack", attack->name);
		json_add_string(object, "what", attack->what);
		json_add_string(object, "seen", attack->seen);
		json_add_string(object, "wall", attack->wall);
		add_words(object, "options", attack->options);
		add_words(object, "control", attack->control);
		add_words(object, "alone", attack->alone);
		json_add_string(object, "no_control", attack->no_control ? attack->no_control : "");
		json_add_bool(object, "root", attack->root);
		json_add_bool(object, "workspace", attack->workspace);
		json_object_array_add(array, object);
	}
	puts(json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY |
	                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
	return fflush(stdout) == 0 ? 0 : PROBE_ERROR;
}

/* ---- inside ---- */

static int inside(const struct attack *attack, char *const words[])
{
	struct evidence evidence = {.text = ""};
	enum outcome outcome;

	puts(TRYING);
	fflush(stdout);
	outcome = attack->inside(words, &evidence);
	printf("%s: %s\n", outcome_name(outcome), evidence.text);
	return fflush(stdout) == 0 ? (int)outcome : PROBE_ERROR;
}

static int usage(void)
{
	fputs("usage: agentdock-probes list\n"
	      "       agentdock-probes root DIR ATTACK\n"
	      "       agentdock-probes workspace DIR ATTACK\n"
	      "       agentdock-probes around ATTACK -- LAUNCHER...\n"
	      "       agentdock-probes bundle BUNDLE ID RUNTIME WORKSPACE CONFIG -- LAUNCHED...\n"
	      "       agentdock-probes inside ATTACK [WORD...]\n",
	      stderr);
	return PROBE_ERROR;
}

/* Which word of the command line is the attack's name, and how many there are at least. */
static const struct part {
	const char *word;
	int name_at, argc_min;
} parts[] = {
	{"inside", 2, 3}, {"around", 2, 5}, {"root", 3, 4}, {"workspace", 3, 4}, {"bundle", 10, 11},
};

static const struct part *part_find(int argc, char *const argv[])
{
	for (size_t i = 0; argc > 1 && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcmp(parts[i].word, argv[1]) == 0 && argc >= parts[i].argc_min)
			return &parts[i];
	return NULL;
}

static int play(const struct attack *attack, char *argv[])
{
	if (strcmp(argv[1], "inside") == 0)
		return inside(attack, argv + 3);
	if (strcmp(argv[1], "root") == 0)
		return make_root(attack, argv[2]);
	if (strcmp(argv[1], "workspace") == 0)
		return make_workspace(attack, argv[2]);
	if (strcmp(argv[1], "around") == 0 && strcmp(argv[3], "--") == 0)
		return around(attack, argv + 4);
	if (strcmp(argv[1], "bundle") == 0 && strcmp(argv[7], "--") == 0)
		return run_bundle(attack, argv[2], argv[3], argv[4], argv[5], argv[6], argv + 8);
	return usage();
}

int main(int argc, char *argv[])
{
	const struct part *part = part_find(argc, argv);
	const struct attack *attack;

	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (!part)
		return usage();
	attack = attack_find(argv[part->name_at]);
	if (!attack) {
		fprintf(stderr, "agentdock-probes: no attack %s; see agentdock-probes list\n",
		        argv[part->name_at]);
		return PROBE_ERROR;
	}
	return play(attack, argv);
}
