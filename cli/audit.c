/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `agentdock audit`: tries every attack on this host, in a fresh sandbox each, and says which wall
 * held. One row is printed as soon as its attack is over. How an attack is made stands in
 * audit_place.c and in agentdock-probes.
 */
#include "cli/audit.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/scoped.h"
#include "base/strings.h"
#include "cli/cli.h"

enum { AUDIT_BROKEN = 1, NARROW = 60, WIDE = 120, USUAL = 80 };

enum outcome { HELD, BROKEN, ABSENT, UNTRIED, OUTCOMES };
static const struct {
	const char *name, *colour;
} outcomes[] = {
	[HELD] = {"held", "32"},
	[BROKEN] = {"broken", "31"},
	[ABSENT] = {"absent", "33"},
	[UNTRIED] = {"error", "31"},
};

struct request {
	struct audit audit;
	struct string_list wanted; /* names; empty: all */
	bool json, list, help;
	bool alone; /* without the walls that stop it but one, for each that does so by itself */
	struct json_object *verdicts;
	int counts[OUTCOMES];
	size_t begun, all; /* attacks */
	int width, name_width;
};

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signo)
{
	(void)signo;
	interrupted = 1;
}

/* ---- what is printed ---- */

static int terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return USUAL;
	if (size.ws_col < NARROW)
		return NARROW;
	return size.ws_col > WIDE ? WIDE : size.ws_col;
}

/* How much of TEXT goes on a line of WIDTH: up to a blank, or WIDTH where there is none. */
static int line_length(const char *text, int width)
{
	int length = (int)strlen(text), blank = width;

	if (length <= width)
		return length;
	while (blank > 0 && text[blank] != ' ')
		blank--;
	if (blank > 0)
		return blank;
	/* not within a character */
	while (width > 1 && ((unsigned char)text[width] & 0xc0) == 0x80)
		width--;
	return width;
}

/* Goes on at COLUMN, where the cursor is, and comes back to it on each further line. */
static void print_wrapped(const char *text, int column, int width)
{
	for (const char *indent = ""; *text; indent = "\n") {
		int length = line_length(text, width - column);

		printf("%s%*s%.*s", indent, *indent ? column : 0, "", length, text);
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_name(const struct request *request, const char *name)
{
	printf("%-*s  ", request->name_width, name);
}

static void print_row(const struct request *request, struct json_object *verdict,
                      enum outcome outcome)
{
	bool colours = cli_colours(STDOUT_FILENO);
	int column = request->name_width + 2 + (int)strlen("OUTCOME") + 2;

	print_name(request, audit_text(verdict, "attack"));
	if (colours)
		printf("\033[%sm%-9s\033[0m", outcomes[outcome].colour, outcomes[outcome].name);
	else
		printf("%-9s", outcomes[outcome].name);
	print_wrapped(audit_text(verdict, request->audit.runtime ? "what" : "wall"), column,
	              request->width);
	printf("%*s%s", column, "", colours ? "\033[2m" : "");
	print_wrapped(audit_text(verdict, "evidence"), column, request->width);
	fputs(colours ? "\033[0m" : "", stdout);
}

static void print_list(const struct request *request, struct json_object *attack)
{
	int column = request->name_width + 2;
	char seen[512];

	print_name(request, audit_text(attack, "attack"));
	print_wrapped(audit_text(attack, "what"), column, request->width);
	snprintf(seen, sizeof(seen), "(%s)", audit_text(attack, "seen"));
	printf("%*s", column, "");
	print_wrapped(seen, column, request->width);
}

static void print_json(struct json_object *object)
{
	int pretty = isatty(STDOUT_FILENO) ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : 0;

	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE | pretty));
}

static void print_result(const struct request *request)
{
	scoped_json object = json_object_new_object();
	const char *runtime = request->audit.runtime;

	json_add_string(object, "runtime", runtime ? runtime : "agentdock " AGENTDOCK_VERSION);
	for (int i = 0; i < OUTCOMES; i++)
		json_add_u64(object, outcomes[i].name, (uint64_t)request->counts[i]);
	json_object_object_add(object, "attacks", json_object_get(request->verdicts));
	print_json(object);
}

static void print_summary(const struct request *request)
{
	const int *counts = request->counts;
	int all = counts[HELD] + counts[BROKEN] + counts[ABSENT] + counts[UNTRIED];

	printf("\n%d attack%s: %d held, %d broken, %d absent on this host, %d could not be tried\n",
	       all, all == 1 ? "" : "s", counts[HELD], counts[BROKEN], counts[ABSENT],
	       counts[UNTRIED]);
}

/* ---- the attacks ---- */

static struct json_object *array_of(struct json_object *attack, const char *key)
{
	struct json_object *array = NULL;

	json_object_object_get_ex(attack, key, &array);
	return array;
}

static bool is_wanted(const struct request *request, struct json_object *attack)
{
	/* what has no control says nothing without one */
	if (request->audit.control && json_object_array_length(array_of(attack, "control")) == 0)
		return false;
	for (size_t i = 0; i < request->wanted.count; i++)
		if (strcmp(request->wanted.items[i], audit_text(attack, "attack")) == 0)
			return true;
	return request->wanted.count == 0;
}

static struct json_object *attack_at(const struct request *request, size_t i)
{
	return json_object_array_get_idx(request->audit.attacks, i);
}

static int check_wanted(const struct request *request, struct err *e)
{
	size_t all = json_object_array_length(request->audit.attacks);

	for (size_t i = 0; i < request->wanted.count; i++) {
		const char *names[256] = {NULL};
		const char *suggestion;
		size_t at = 0;

		for (size_t j = 0; j < all && j < 255; j++)
			names[j] = audit_text(attack_at(request, j), "attack");
		while (names[at] && strcmp(names[at], request->wanted.items[i]) != 0)
			at++;
		if (names[at])
			continue;
		suggestion = cli_suggest(request->wanted.items[i], names);
		err_set(e, EINVAL, "audit: no attack %s", request->wanted.items[i]);
		return suggestion ? err_hint(e, "did you mean %s?", suggestion)
		                  : err_hint(e, "see agentdock audit --list");
	}
	return 0;
}

static enum outcome outcome_of(struct json_object *verdict)
{
	for (int i = 0; i < OUTCOMES; i++)
		if (strcmp(audit_text(verdict, "outcome"), outcomes[i].name) == 0)
			return (enum outcome)i;
	return UNTRIED;
}

/* One that could not be prepared, or not be run at all, is told in its row; the others go on. */
static struct json_object *untried(struct json_object *attack, const struct err *e)
{
	static const char *const keys[] = {"attack", "what", "seen", "wall"};
	struct json_object *verdict = json_object_new_object();
	char printable[4 * ERR_TEXT_SIZE + 1];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_add_string(verdict, keys[i], audit_text(attack, keys[i]));
	json_add_string(verdict, "outcome", outcomes[UNTRIED].name);
	json_add_string(verdict, "evidence", text_printable(e->text, printable, sizeof(printable)));
	return verdict;
}

/* Takes a terminal that can go back on its line. */
static bool shows_progress(void)
{
	return isatty(STDERR_FILENO) && strcmp(cli_setting("TERM", ""), "dumb") != 0;
}

static void show_progress(struct request *request, const char *name)
{
	request->begun++;
	if (shows_progress())
		fprintf(stderr, "\r\033[K%zu of %zu: %s", request->begun, request->all, name);
}

static void end_progress(void)
{
	if (shows_progress())
		fputs("\r\033[K", stderr);
}

/* The wall that it is about: none of ours on another runtime. */
static void set_wall(const struct request *request, struct json_object *verdict)
{
	if (request->audit.runtime)
		json_object_object_del(verdict, "wall");
	else if (request->audit.alone)
		json_add_string(verdict, "wall", request->audit.alone);
}

static int attack_one(struct request *request, struct json_object *attack, struct err *e)
{
	struct json_object *verdict = NULL;
	enum outcome outcome;
	int result;

	show_progress(request, audit_text(attack, "attack"));
	result = audit_attack(&request->audit, attack, &verdict, e);
	end_progress();
	if (interrupted) {
		json_release(&verdict);
		return err_set(e, ECANCELED, "audit: canceled");
	}
	if (result < 0)
		verdict = untried(attack, e);
	set_wall(request, verdict);
	json_object_array_add(request->verdicts, verdict);
	outcome = outcome_of(verdict);
	request->counts[outcome]++;
	if (!request->json)
		print_row(request, verdict, outcome);
	/* for nobody no more are made */
	return fflush(stdout) != 0 ? err_sys(e, "writing to standard output") : 0;
}

/* How often it is made: once, or for each wall that stops it alone. */
static size_t times(const struct request *request, struct json_object *attack)
{
	if (!is_wanted(request, attack))
		return 0;
	return request->alone ? json_object_array_length(array_of(attack, "alone")) : 1;
}

static int attack_times(struct request *request, struct json_object *attack, struct err *e)
{
	for (size_t i = 0; i < times(request, attack); i++) {
		if (request->alone)
			request->audit.alone = json_object_get_string(
				json_object_array_get_idx(array_of(attack, "alone"), i));
		TRY(attack_one(request, attack, e));
	}
	return 0;
}

static int attack_all(struct request *request, struct err *e)
{
	size_t count = json_object_array_length(request->audit.attacks);

	if (!request->json) {
		print_name(request, "ATTACK");
		puts(request->audit.runtime ? "OUTCOME  WHAT IT WANTS; WHAT WAS SEEN"
		                            : "OUTCOME  WALL; WHAT WAS SEEN");
	}
	for (size_t i = 0; i < count; i++)
		request->all += times(request, attack_at(request, i));
	for (size_t i = 0; i < count; i++)
		TRY(attack_times(request, attack_at(request, i), e));
	if (request->json)
		print_result(request);
	else
		print_summary(request);
	if (request->counts[BROKEN])
		return AUDIT_BROKEN;
	return request->counts[UNTRIED] ? CLI_FAILED : 0;
}

static int list_all(struct request *request)
{
	scoped_json wanted = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(request->audit.attacks); i++) {
		struct json_object *attack = attack_at(request, i);

		if (!is_wanted(request, attack))
			continue;
		json_object_array_add(wanted, json_object_get(attack));
		if (!request->json)
			print_list(request, attack);
	}
	if (request->json)
		print_json(wanted);
	return 0;
}

static int audit(struct request *request, struct err *e)
{
	/* the terminal sends it to the attack that goes on, too; when that has ended, so do we */
	const struct sigaction action = {.sa_handler = note_interrupt};

	TRY(audit_list(&request->audit, e));
	TRY(check_wanted(request, e));
	request->width = terminal_width();
	for (size_t i = 0; i < json_object_array_length(request->audit.attacks); i++) {
		int length = (int)strlen(audit_text(attack_at(request, i), "attack"));

		if (length > request->name_width)
			request->name_width = length;
	}
	if (request->list)
		return list_all(request);
	if (geteuid() != 0)
		return err_set(e, EPERM,
		               "audit: building a sandbox takes root; run it as root (sudo)");
	sigaction(SIGINT, &action, NULL);
	TRY(audit_take_place(&request->audit, e));
	return attack_all(request, e);
}

/* ---- the command ---- */

static void usage(void)
{
	puts("usage: agentdock audit [options]\n\n"
	     "Tries known attacks on this host, each in a fresh sandbox with the defaults of\n"
	     "`agentdock run`, or lower limits where it is made on a limit, and says which wall\n"
	     "stopped it. Exit status: 0 all were stopped, 1 one worked, 125 one could not be\n"
	     "tried. What this kernel lacks is absent.\n\n"
	     "  --attack NAME   only this one; may be given again\n"
	     "  --list          print the attacks, and make none\n"
	     "  --json          print one JSON object\n"
	     "  --runtime PATH  make them on what runs OCI bundles (runc, crun), with the\n"
	     "                  configuration that `runc spec` writes\n"
	     "  --config FILE   with --runtime: with this config.json"
#ifdef AGENTDOCK_UNSAFE
	     "\n  --control       without the walls that stop them; all have to work"
	     "\n  --alone         without these but one, for each wall that has to be enough"
#endif
	);
}

enum {
	OPTION_ATTACK = 256,
	OPTION_LIST,
	OPTION_JSON,
	OPTION_RUNTIME,
	OPTION_CONFIG,
	OPTION_CONTROL,
	OPTION_ALONE,
	OPTION_HELP
};

static int parse(struct request *request, int argc, char **argv, struct err *e)
{
	static const struct option options[] = {
		{"attack", required_argument, NULL, OPTION_ATTACK},
		{"list", no_argument, NULL, OPTION_LIST},
		{"json", no_argument, NULL, OPTION_JSON},
		{"runtime", required_argument, NULL, OPTION_RUNTIME},
		{"config", required_argument, NULL, OPTION_CONFIG},
		{"help", no_argument, NULL, OPTION_HELP},
#ifdef AGENTDOCK_UNSAFE
		{"control", no_argument, NULL, OPTION_CONTROL},
		{"alone", no_argument, NULL, OPTION_ALONE},
#endif
		{0},
	};
	int option;

	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case OPTION_ATTACK:
			TRY(string_list_add(&request->wanted, optarg, e));
			break;
		case OPTION_LIST:
			request->list = true;
			break;
		case OPTION_JSON:
			request->json = true;
			break;
		case OPTION_RUNTIME:
			request->audit.runtime = optarg;
			break;
		case OPTION_CONFIG:
			request->audit.config = optarg;
			break;
		case OPTION_CONTROL:
			request->audit.control = true;
			break;
		case OPTION_ALONE:
			request->audit.control = request->alone = true;
			break;
		case OPTION_HELP:
			request->help = true;
			break;
		default:
			return err_set(e, EINVAL,
			               "audit: unknown or incomplete option %s; see agentdock "
			               "audit --help",
			               argv[optind - 1]);
		}
	}
	if (optind < argc)
		return err_set(e, EINVAL, "audit: takes only options, got %s", argv[optind]);
	if (request->audit.config && !request->audit.runtime)
		return err_set(e, EINVAL, "audit: --config is for a --runtime, which is not given");
	return 0;
}

/* Before each attack says the same. */
static int find_runtime(const char *runtime, struct err *e)
{
	const char *path = getenv("PATH");
	char program[4096];

	if (strchr(runtime, '/')) {
		if (access(runtime, X_OK) == 0)
			return 0;
		return err_sys(e, "--runtime: %s", runtime);
	}
	while (path && *path) {
		size_t length = strcspn(path, ":");

		snprintf(program, sizeof(program), "%.*s/%s", (int)length, path, runtime);
		if (access(program, X_OK) == 0)
			return 0;
		path += length + (path[length] == ':');
	}
	return err_set(e, ENOENT, "--runtime: %s is not in PATH; give its path, or install it",
	               runtime);
}

/* Has the reader of a pipe left before all was written? */
static bool is_cut_off(void)
{
	fflush(stdout);
	return ferror(stdout) && cli_reader_is_gone(STDOUT_FILENO);
}

int cmd_audit(int argc, char **argv)
{
	/* static for its size */
	static struct request request = {.audit.lockfd = -1};
	struct err e;
	int status = parse(&request, argc, argv, &e);

	if (status >= 0 && request.help) {
		usage();
		return cli_finish_stdout();
	}
	request.verdicts = json_object_new_array();
	if (status >= 0 && request.audit.runtime)
		status = find_runtime(request.audit.runtime, &e);
	if (status >= 0)
		status = audit(&request, &e);
	audit_close(&request.audit);
	json_release(&request.verdicts);
	string_list_release(&request.wanted);
	/* that is no failure: as who dies of the signal that the other commands ignore */
	if (is_cut_off())
		return 128 + SIGPIPE;
	if (status < 0) {
		fflush(stdout);
		cli_fail(&e);
		return interrupted ? 128 + SIGINT : CLI_FAILED;
	}
	return cli_finish_stdout() ? CLI_FAILED : status;
}
