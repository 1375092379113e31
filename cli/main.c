/* SPDX-License-Identifier: Apache-2.0 */
/* `agentdock`: finds the command in the table and hands over. Sees first to it that descriptors 0
 * to 2 are there, so that no file we open can be mistaken for one of them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

struct command {
	const char *name;
	int (*function)(int argc, char **argv);
	const char *help;
};

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const struct command commands[] = {
	{"run", cmd_run, "run a command in a sandbox of its own, and say how it ended"},
	{"image", cmd_image, "import, list and remove root file systems"},
	{"gc", cmd_gc, "remove unused layers and what dead sandboxes left"},
	{"doctor", cmd_doctor, "what this host can enforce, and how to get what is missing"},
	{"audit", cmd_audit, "try known attacks here, and say which wall held"},
	{"help", cmd_help, "explain a command"},
	{"version", cmd_version, "print the version"},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int unknown_command(const char *name)
{
	const char *names[COMMANDS + 1] = {0};
	const char *suggestion;
	struct err e;

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	suggestion = cli_suggest(name, names);
	if (suggestion)
		err_set(&e, EINVAL, "unknown command %s; did you mean %s?", name, suggestion);
	else
		err_set(&e, EINVAL, "unknown command %s; see agentdock --help", name);
	return cli_fail(&e);
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int cmd_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("agentdock " AGENTDOCK_VERSION);
	return cli_finish_stdout();
}

static void usage(FILE *out)
{
	fputs("usage: agentdock COMMAND [options]\n\n"
	      "Runs commands that nobody trusts in throw-away sandboxes.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n"
	      "  agentdock run -- python3 -c 'print(1)'\n"
	      "  agentdock help run\n"
	      "  agentdock help image import\n",
	      out);
}

static int cmd_help(int argc, char **argv)
{
	char help[] = "--help";
	const struct command *command;

	if (argc < 2) {
		usage(stdout);
		return cli_finish_stdout();
	}
	command = command_find(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	if (command->function == cmd_help || command->function == cmd_version) {
		printf("agentdock %s: %s\n", command->name, command->help);
		return cli_finish_stdout();
	}
	/* of all commands only image has some of its own */
	if (argc > 2 && command->function == cmd_image)
		return command->function(3, (char *[]){argv[1], argv[2], help, NULL});
	return command->function(2, (char *[]){argv[1], help, NULL});
}

/* A descriptor among 0 to 2 that is closed would be given to the next file that is opened. */
static void open_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || open("/dev/null", O_RDWR) == fd)
			continue;
		dprintf(STDERR_FILENO,
		        "agentdock: descriptor %d is closed, and opening /dev/null in its place: "
		        "%s; mount /dev, or start agentdock with 0 to 2 open\n",
		        fd, strerror(errno));
		_exit(CLI_FAILED);
	}
}

int main(int argc, char **argv)
{
	const struct command *command;

	open_standard_fds();
	/* A reader that goes away, or a full limit of file sizes, must not kill us: a sandbox is to be
	 * torn down. What the caller ignores must not keep us from waiting for our children. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	umask(022);

	if (argc < 2) {
		usage(stderr);
		return CLI_FAILED;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return cmd_help(1, argv);
	if (strcmp(argv[1], "--version") == 0)
		return cmd_version(1, argv);
	command = command_find(argv[1]);
	return command ? command->function(argc - 1, argv + 1) : unknown_command(argv[1]);
}
