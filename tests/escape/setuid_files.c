/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that make who executes them more than he is: setuid, setgid and with capabilities, from
 * the image, and setuid ones that he makes himself. Root inside is a user of the host's range only,
 * but it owns the sandbox's system, and more of the kernel listens to it. The image keeps such
 * files (a base system has a dozen); nosuid on every mount and no_new_privs make them harmless, and
 * there is no capability in the bounding set to be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/try.h"

/* What the executed copy tells by its exit status; from NOT_EXECUTED on, why there was none. */
enum { NOTHING = 0, USER = 64, GROUP, CAPABILITY, NOT_EXECUTED };

static bool has_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	return syscall(SYS_capget, &header, data) == 0 && (data[0].permitted || data[1].permitted);
}

/* In the executed copy: UID GID HAD-CAPABILITY of before. */
static _Noreturn void tell_gain(char *const argv[])
{
	unsigned long uid = strtoul(argv[0], NULL, 10), gid = strtoul(argv[1], NULL, 10);

	if (geteuid() != uid)
		_exit(USER);
	if (getegid() != gid)
		_exit(GROUP);
	_exit(has_capability() && argv[2][0] == '0' ? CAPABILITY : NOTHING);
}

static int run(const char *path)
{
	char uid[24], gid[24];
	int status = 0;
	pid_t pid;

	snprintf(uid, sizeof(uid), "%u", geteuid());
	snprintf(gid, sizeof(gid), "%u", getegid());
	pid = fork();
	if (pid == 0) {
		execl(path, path, "inside", "setuid_files", uid, gid, has_capability() ? "1" : "0",
		      (char *)NULL);
		_exit(NOT_EXECUTED + errno);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : NOT_EXECUTED;
}

static void run_and_note(struct tries *tries, const char *path)
{
	int gain = run(path);

	switch (gain) {
	case USER:
		tried(tries, 0, "%s runs as its owner", path);
		break;
	case GROUP:
		tried(tries, 0, "%s runs with its group", path);
		break;
	case CAPABILITY:
		tried(tries, 0, "%s has capabilities", path);
		break;
	case NOTHING:
		tried_in_vain(tries);
		break;
	default:
		errno = gain - NOT_EXECUTED;
		tried(tries, -1, "%s", path);
	}
}

/* A copy of this program that is given what the kernel lets its owner give. */
static void run_own(struct tries *tries, const char *dir)
{
	char path[100];
	scoped_fd from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t sent = -1;

	snprintf(path, sizeof(path), "%s/attack-setuid", dir);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (from >= 0 && to >= 0)
		do
			sent = sendfile(to, from, NULL, 1 << 30);
		while (sent > 0);
	close_fd(&to);
	if (sent < 0) {
		tried(tries, -1, "%s", path);
		return;
	}
	/* to be root's, and setuid: both in either order */
	chmod(path, 06755);
	tried(tries, chown(path, 0, 0), "%s was given to root", path);
	chmod(path, 06755);
	run_and_note(tries, path);
	unlink(path);
}

static void attempt(struct tries *tries)
{
	static const char *const programs[] = {"/probe-setuid", "/probe-setgid", "/probe-filecap"};
	static const char *const links[] = {"/tmp/attack-link", "/workspace/attack-link"};
	static const char *const scratch[] = {"/tmp", "/workspace", "/dev/shm"};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		run_and_note(tries, programs[i]);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (link("/probe-setuid", links[i]) == 0)
			run_and_note(tries, links[i]);
		unlink(links[i]);
	}
	for (size_t i = 0; i < sizeof(scratch) / sizeof(scratch[0]); i++)
		run_own(tries, scratch[i]);
	tried(tries, setuid(0) == 0 && geteuid() != 0 ? 0 : -1, "setuid(0) is possible");
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tries *tries = tries_new();
	struct stat st;

	if (argv[0] && argv[1] && argv[2])
		tell_gain(argv);
	if (stat("/probe-setuid", &st) < 0 || !(st.st_mode & S_ISUID))
		return verdict(evidence, UNTRIED, "the image has lost its setuid files");
	if (geteuid() == 0)
		return verdict(evidence, ABSENT, "the command is root already");
	try_everywhere(tries, 0, attempt);
	return tries_verdict(tries, evidence);
}

ATTACK(setuid_files) = {
	.name = "setuid_files",
	.what = "become root inside by a setuid program or a file's capabilities",
	.seen = "every container that runs as a user and without no_new_privs",
	.wall = "nosuid, no_new_privs, empty bounding set",
	.control = WORDS(WITHOUT("nosuid"), WITHOUT("no new privileges"), WITHOUT("landlock"),
                         WITHOUT("seccomp")),
	.inside = inside,
};
