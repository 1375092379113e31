/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentdock-runtime: an OCI runtime. Finds the verb in the table, reads its options and hands over.
 * Exit code: 0; 1 when a verb failed; of `run` and `exec` the program's own, or 125 (ours), 126 (can't
 * be executed), 127 (not found).
 *
 * What the container's process inherits of us is left as our caller has it: umask, signals, limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/scoped.h"
#include "container/warn.h"
#include "verbs/journal.h"
#include "verbs/verbs.h"

enum { EXIT_VERB_FAILED = 1, EXIT_OURS = 125, WORDS_ANY = 1 << 20, DOCUMENT_MAX = 16 << 20 };

struct verb {
	const char *name;
	int (*function)(struct request *request, struct err *e);
	int of;        /* enum option_of */
	bool in_order; /* what follows the id is not ours */
	int words_min, words_max;
	int failed; /* exit code of a failure that is ours */
	const char *words, *help;
};

/* clang-format off */
static const struct verb verbs[] = {
	{"create", verb_create, OF_CREATE, false, 1, 1, EXIT_VERB_FAILED, "ID",
	 "make a container of a bundle; its program waits for start"},
	{"start", verb_start, OF_OTHERS, false, 1, 1, EXIT_VERB_FAILED, "ID",
	 "let the program of a created container run"},
	{"run", verb_run, OF_RUN, false, 1, 1, EXIT_OURS, "ID",
	 "create, start, and unless detached wait and delete"},
	{"exec", verb_exec, OF_EXEC, true, 1, WORDS_ANY, EXIT_OURS, "ID [COMMAND [ARG...]]",
	 "run another command in a running container"},
	{"state", verb_state, OF_OTHERS, false, 1, 1, EXIT_VERB_FAILED, "ID",
	 "what a container is and does, as JSON"},
	{"list", verb_list, OF_LIST, false, 0, 0, EXIT_VERB_FAILED, "", "all containers"},
	{"ps", verb_ps, OF_PS, true, 1, WORDS_ANY, EXIT_VERB_FAILED, "ID [ps options]",
	 "the processes of a container"},
	{"kill", verb_kill, OF_KILL, false, 1, 2, EXIT_VERB_FAILED, "ID [SIGNAL]",
	 "send a signal to its first process: a name or a number [TERM]"},
	{"pause", verb_pause, OF_OTHERS, false, 1, 1, EXIT_VERB_FAILED, "ID",
	 "freeze a container"},
	{"resume", verb_resume, OF_OTHERS, false, 1, 1, EXIT_VERB_FAILED, "ID",
	 "thaw a container"},
	{"update", verb_update, OF_UPDATE, false, 1, 1, EXIT_VERB_FAILED, "ID",
	 "change the limits of a container"},
	{"delete", verb_delete, OF_DELETE, false, 1, WORDS_ANY, EXIT_VERB_FAILED, "ID...",
	 "remove what is left of a container"},
	{"events", verb_events, OF_EVENTS, false, 1, 1, EXIT_VERB_FAILED, "ID",
	 "figures of a container, and when it runs out of memory, as JSON"},
	{"spec", verb_spec, OF_SPEC, false, 0, 0, EXIT_VERB_FAILED, "",
	 "write a config.json to begin with"},
	{"features", verb_features, OF_OTHERS, false, 0, 0, EXIT_VERB_FAILED, "",
	 "what this runtime can do, as JSON"},
};
/* clang-format on */
enum { VERBS = sizeof verbs / sizeof *verbs };

/* ---- shared by verbs ---- */

int finish_stdout(struct err *e)
{
	return fflush(stdout) == 0 ? 0 : err_sys(e, "writing to standard output");
}

int print_json(struct json_object *json, struct err *e)
{
	puts(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY |
	                                                  JSON_C_TO_STRING_SPACED |
	                                                  JSON_C_TO_STRING_NOSLASHESCAPE));
	return finish_stdout(e);
}

/* It may be a pipe whose writer takes its time. */
static int read_stdin(char **text, size_t *length, struct err *e)
{
	scoped_mem char *data = NULL;
	size_t room = 0, have = 0;
	ssize_t got = 1;

	while (got != 0) {
		if (have > DOCUMENT_MAX)
			return err_set(e, EFBIG, "standard input: more than %d MiB",
			               DOCUMENT_MAX >> 20);
		if (!bytes_grow(&data, &room, have + 1, 4096))
			return err_set(e, ENOMEM, "standard input: no memory");
		got = read(STDIN_FILENO, data + have, room - have);
		if (got < 0 && errno != EINTR)
			return err_sys(e, "reading standard input");
		have += got > 0 ? (size_t)got : 0;
	}
	*text = take_mem(&data);
	*length = have;
	return 0;
}

int read_document(const char *path, char **text, size_t *length, struct err *e)
{
	if (strcmp(path, "-") == 0)
		return read_stdin(text, length, e);
	return file_read_all(AT_FDCWD, path, DOCUMENT_MAX, text, length, e);
}

/* ---- help ---- */

static int print_version(struct err *e)
{
	const struct scmp_version *libseccomp = seccomp_version();

	printf("agentdock-runtime version " AGENTDOCK_VERSION "\n"
	       "spec: 1.3.0\n"
	       "libseccomp: %u.%u.%u\n",
	       libseccomp->major, libseccomp->minor, libseccomp->micro);
	return finish_stdout(e);
}

static int print_usage(struct err *e)
{
	puts("usage: agentdock-runtime [options] VERB [options] ID\n\n"
	     "Makes containers of OCI bundles (runtime-spec 1.3), for engines and by hand.\n\n"
	     "verbs:");
	for (const struct verb *verb = verbs; verb < verbs + VERBS; verb++)
		printf("  %-9s %s\n", verb->name, verb->help);
	puts("\noptions before the verb:");
	options_help(OF_PROGRAM);
	puts("\n"
	     "  agentdock-runtime spec && agentdock-runtime run --bundle . first\n"
	     "  agentdock-runtime kill --help");
	return finish_stdout(e);
}

static int print_verb_usage(const struct verb *verb, struct err *e)
{
	printf("usage: agentdock-runtime %s [options]%s%s\n\n%s\n\noptions:\n", verb->name,
	       *verb->words ? " " : "", verb->words, verb->help);
	options_help(verb->of);
	return finish_stdout(e);
}

/* ---- the verb ---- */

static const struct verb *find_verb(const char *name, struct err *e)
{
	char shown[100];

	for (const struct verb *verb = verbs; verb < verbs + VERBS; verb++)
		if (strcmp(verb->name, name) == 0)
			return verb;
	err_set(e, EINVAL, "unknown command \"%s\"; see agentdock-runtime --help",
	        text_printable(name, shown, sizeof shown));
	return NULL;
}

static int check_words(const struct verb *verb, const struct request *request, struct err *e)
{
	if (request->words_count >= verb->words_min && request->words_count <= verb->words_max)
		return 0;
	return err_set(e, EINVAL, "%s: %s; usage: agentdock-runtime %s [options] %s", verb->name,
	               request->words_count < verb->words_min ? "the container's ID is missing"
	                                                      : "too many arguments",
	               verb->name, verb->words);
}

/* The program's own options, then the verb's. *VERB is NULL while it is not known. */
static int play(struct request *request, const struct verb **verb, int argc, char **argv,
                struct err *e)
{
	bool asks_help;
	int read = options_read(request, OF_PROGRAM, true, argc, argv, e);

	TRY(read);
	TRY(journal_open(request, e));
	if (request->version)
		return print_version(e);
	asks_help = read < argc && strcmp(argv[read], "help") == 0;
	if (asks_help)
		read++;
	if (read == argc) {
		if (asks_help || request->help)
			return print_usage(e);
		return err_set(e, EINVAL, "no command; see agentdock-runtime --help");
	}
	*verb = find_verb(argv[read], e);
	if (!*verb)
		return -e->code;
	asks_help |= request->help;
	TRY(options_read(request, (*verb)->of, (*verb)->in_order, argc - read, argv + read, e));
	if (request->help || asks_help)
		return print_verb_usage(*verb, e);
	TRY(check_words(*verb, request, e));
	request->lifecycle.id = request->words_count > 0 ? request->words[0] : NULL;
	if (!request->lifecycle.root)
		request->lifecycle.root = store_default_root();
	return (*verb)->function(request, e);
}

/* A descriptor among 0 to 2 that is closed would be given to the next file that is opened. */
static void open_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			_exit(EXIT_OURS);
}

int main(int argc, char **argv)
{
	const struct verb *verb = NULL;
	struct request request;
	struct err e = {0};
	int result;

	open_standard_fds();
	signal(SIGCHLD, SIG_DFL); /* ignored, our children would not be waited for */
	container_warn_to(journal_warn);
	request_init(&request);
	result = play(&request, &verb, argc, argv, &e);
	if (result < 0) {
		journal_error(e.text);
		result = verb ? verb->failed : EXIT_VERB_FAILED;
	}
	request_release(&request);
	return result;
}
