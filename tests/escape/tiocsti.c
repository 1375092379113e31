/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's terminal. Who shares it types into the shell that comes back after the sandbox
 * (TIOCSTI; CVE-2017-5226 of bubblewrap, CVE-2016-10124 of LXC), pastes into a console (TIOCLINUX)
 * or reads what the operator types. The host's half gives the launcher two terminals that are left
 * open: the one that controls its session, and one that controls none, of which a session without a
 * terminal can make its own. The command has a session of its own and none of those descriptors;
 * both requests are forbidden whatever the descriptor, and whatever the upper half of the number.
 */
#include <fcntl.h>
#include <linux/tiocl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/host.h"
#include "tests/escape/tally.h"

#define TYPED    "typed-by-the-operator"
#define INJECTED "Z"

enum { FDS = 256, LEAKED = 60, TERMINALS = 2 };

static int masters[TERMINALS];

/* The leader of a group cannot make a session; its child can, and the rest of us is that child. */
static int new_session(void)
{
	pid_t pid;
	int status;

	if (getsid(0) == getpid())
		return ioctl(STDIN_FILENO, TIOCNOTTY) < 0 && errno != ENOTTY ? -1 : 0;
	if (setsid() >= 0)
		return 0;
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0)
		return setsid() < 0 ? -1 : 0;
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	_exit(125);
}

static int open_terminal(int number)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	masters[number] = master;
	if (master < 0 || unlockpt(master) < 0)
		return -1;
	scoped_fd slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (slave < 0 || dup2(slave, LEAKED + number) < 0 || fcntl(master, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	return write(master, TYPED "\n", strlen(TYPED) + 1) < 0 ? -1 : 0;
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	if (new_session() < 0)
		return unprepared(evidence, "a session for the launcher");
	for (int i = 0; i < TERMINALS; i++)
		if (open_terminal(i) < 0)
			return unprepared(evidence, "a terminal for the launcher");
	if (ioctl(LEAKED, TIOCSCTTY, 0) < 0)
		return unprepared(evidence, "a controlling terminal for the launcher");
	return 0;
}

/* The first descriptor that lets it, or what refused it last. */
static int on_every_descriptor(int (*attempt)(int fd))
{
	int code = EBADF;

	for (int fd = 0; fd < FDS; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		code = attempt(fd);
		if (code == 0)
			return 0;
	}
	return code;
}

static int read_typed(int fd)
{
	char text[256] = "";
	int flags = fcntl(fd, F_GETFL);

	if (!isatty(fd) || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return ENOTTY;
	if (read(fd, text, sizeof(text) - 1) < 0)
		return errno;
	return strstr(text, TYPED) ? 0 : ENODATA;
}

static int make_it_ours(int fd)
{
	return code_of(ioctl(fd, TIOCSCTTY, 0));
}

static int inject(int fd)
{
	return code_of(ioctl(fd, TIOCSTI, INJECTED));
}

static int inject_with_high_bits(int fd)
{
	return code_of(syscall(SYS_ioctl, fd, 0x100000000UL | TIOCSTI, INJECTED));
}

static int paste(int fd)
{
	char request = TIOCL_PASTESEL;

	return code_of(ioctl(fd, TIOCLINUX, &request));
}

static int open_controlling(void)
{
	scoped_fd fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

	return code_of(fd);
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	tally_add(&tally, "/dev/tty", open_controlling());
	tally_add(&tally, "reading what was typed", on_every_descriptor(read_typed));
	tally_add(&tally, "TIOCLINUX", on_every_descriptor(paste));
	tally_add(&tally, "TIOCSTI", on_every_descriptor(inject));
	tally_add(&tally, "TIOCSCTTY", on_every_descriptor(make_it_ours));
	tally_add(&tally, "TIOCSTI on that", on_every_descriptor(inject));
	tally_add(&tally, "TIOCSTI with high bits", on_every_descriptor(inject_with_high_bits));
	return tally_verdict(&tally, evidence);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	char echo[256];

	(void)status;
	for (int i = 0; i < TERMINALS; i++) {
		ssize_t got = read(masters[i], echo, sizeof(echo));

		if (got > 0 && memchr(echo, INJECTED[0], (size_t)got))
			return verdict(evidence, BROKEN,
			               "what the command typed is in the launcher's terminal");
	}
	return inside;
}

ATTACK(tiocsti) = {
	.name = "tiocsti",
	.what = "type into the operator's terminal, or read it",
	.seen = "CVE-2017-5226 (bubblewrap), CVE-2016-10124 (LXC)",
	.wall = "a session of its own, no descriptor of the terminal; TIOCSTI and TIOCLINUX "
		"forbidden",
	.control = WORDS(WITHOUT("closed descriptors"), WITHOUT("session"), WITHOUT("seccomp")),
	.before = before,
	.inside = inside,
	.after = after,
};
