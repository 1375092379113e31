/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One container of an OCI runtime, under an id of its own, for `make bench`:
 *
 *	verbs run|steps RUNTIME ROOT BUNDLE
 *
 * run becomes `RUNTIME run`; steps does create, start, waits for the container's end as an engine
 * does (its process is left to us, who are the subreaper), and delete.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "verbs: %s: %s\n", what, strerrordesc_np(errno));
	exit(125);
}

static void verb(char *const argv[])
{
	int status;
	pid_t pid;

	errno = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	if (errno)
		die(argv[0]);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid");
	}
	if (status != 0) {
		fprintf(stderr, "verbs: %s %s: wait status 0x%x\n", argv[0], argv[3],
		        (unsigned)status);
		exit(125);
	}
}

int main(int argc, char *argv[])
{
	char id[32], run[] = "run", create[] = "create", start[] = "start", delete[] = "delete";
	char root[] = "--root", bundle[] = "--bundle";

	if (argc != 5) {
		fprintf(stderr, "usage: verbs run|steps RUNTIME ROOT BUNDLE\n");
		return 125;
	}
	snprintf(id, sizeof id, "bench-%d", getpid());
	if (strcmp(argv[1], "run") == 0) {
		execv(argv[2], (char *[]){argv[2], root, argv[3], run, bundle, argv[4], id, NULL});
		die(argv[2]);
	}
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		die("PR_SET_CHILD_SUBREAPER");
	verb((char *[]){argv[2], root, argv[3], create, bundle, argv[4], id, NULL});
	verb((char *[]){argv[2], root, argv[3], start, id, NULL});
	while (wait(NULL) > 0 || errno == EINTR)
		;
	verb((char *[]){argv[2], root, argv[3], delete, id, NULL});
	return 0;
}
