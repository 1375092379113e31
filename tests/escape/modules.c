/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that administer the machine: modules, a new kernel, swap, the clock, hardware ports, the
 * kernel's log, the accounting. Each is tried with arguments that change nothing where it works: the
 * clock keeps its rate, the module is none. No sandbox has the capabilities, and the filter forbids
 * the calls. Then what makes the kernel load a module by itself, without any capability: a socket of
 * an unknown family, a terminal with a strange discipline, a program of an unknown format. The host's
 * half compares its list of modules.
 */
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acct.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <sys/io.h>
#endif

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/host.h"
#include "tests/escape/tally.h"
#include "tests/escape/try.h"

#define RENAMED "agentdock-renamed"

enum { SYSLOG_READ_ALL = 3, DELAY_PORT = 0x80 };

static int modules_before;
static char name_before[65];

/* ---- modules that the kernel loads by itself ---- */

/* How many lines /proc/modules has; a kernel without modules has no such file. */
static int count_modules(void)
{
	FILE *file = fopen("/proc/modules", "re");
	int lines = 0, c;

	if (!file)
		return 0;
	while ((c = fgetc(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static int before(const char *words[8], struct evidence *evidence)
{
	(void)words;
	modules_before = count_modules();
	return gethostname(name_before, sizeof(name_before) - 1) < 0
	               ? unprepared(evidence, "gethostname")
	               : 0;
}

static void execute_unknown_format(void)
{
	const char *directory = try_directory();
	char path[128];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/unknown", directory);
	scoped_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	if (fd < 0 || write(fd, "\001\002\x7f\xfe unknown", 12) < 0)
		return;
	close_fd(&fd);
	pid = fork();
	if (pid == 0) {
		execl(path, path, NULL);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	unlink(path);
}

static void ask_for_modules(void)
{
	static const int families[] = {AF_AX25, AF_X25, AF_NETROM, AF_ROSE, AF_LLC, AF_IEEE802154};
	scoped_fd terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int discipline;

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		scoped_fd fd = socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);

		(void)fd;
	}
	for (discipline = N_TTY + 1; discipline < 30; discipline++)
		ioctl(terminal, TIOCSETD, &discipline);
	execute_unknown_format();
}

/* ---- calls ---- */

static int keep_clock_rate(void)
{
	struct timex clock = {.modes = 0};

	if (syscall(SYS_adjtimex, &clock) < 0)
		return errno;
	clock.modes = ADJ_TICK;
	return code_of(syscall(SYS_adjtimex, &clock));
}

static int read_log(void)
{
	static char text[4096];
	int length = klogctl(SYSLOG_READ_ALL, text, sizeof(text));

	return length == 0 ? ENODATA : code_of(length);
}

static void try_ports(struct tally *tally)
{
#if defined(__x86_64__)
	tally_add(tally, "iopl", code_of(iopl(3)));
	tally_add(tally, "ioperm", code_of(ioperm(DELAY_PORT, 1, 1)));
#else
	(void)tally;
#endif
}

static void try_modules(struct tally *tally)
{
	static char none[] = "no module", options[] = "";

	tally_add(tally, "init_module",
	          code_of(syscall(SYS_init_module, none, sizeof(none), options)));
	tally_add(tally, "finit_module", code_of(syscall(SYS_finit_module, -1, options, 0)));
	tally_add(tally, "delete_module",
	          code_of(syscall(SYS_delete_module, "agentdock-no-such-module", O_NONBLOCK)));
	tally_add(tally, "kexec_load", code_of(syscall(SYS_kexec_load, 0, 0, NULL, 0)));
	tally_add(tally, "kexec_file_load",
	          code_of(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0)));
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	ask_for_modules();
	/* of a namespace of its own that is nobody's business; the host compares */
	if (sethostname(RENAMED, strlen(RENAMED)) < 0)
		tally_add(&tally, "sethostname", errno);
	try_modules(&tally);
	try_ports(&tally);
	/* with wrong magic numbers, which are looked at after the capability */
	tally_add(&tally, "reboot",
	          code_of(syscall(SYS_reboot, 0, 0, LINUX_REBOOT_CMD_CAD_OFF, NULL)));
	tally_add(&tally, "swapon", code_of(swapon("/nowhere", 0)));
	tally_add(&tally, "swapoff", code_of(swapoff("/nowhere")));
	tally_add(&tally, "acct", code_of(acct("/nowhere")));
	tally_add(&tally, "quotactl", code_of(quotactl(QCMD(Q_QUOTAOFF, USRQUOTA), NULL, 0, NULL)));
	tally_add(&tally, "syslog", read_log());
	tally_add(&tally, "adjtimex", keep_clock_rate());
	return tally_verdict(&tally, evidence);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	int now = count_modules();
	char name[65] = "";

	(void)status;
	if (gethostname(name, sizeof(name) - 1) == 0 && strcmp(name, RENAMED) == 0) {
		if (sethostname(name_before, strlen(name_before)) < 0)
			perror("giving the host its name back");
		return verdict(evidence, BROKEN, "the host's name became %s", name);
	}
	if (now > modules_before)
		return verdict(evidence, BROKEN, "the host has %d more modules loaded",
		               now - modules_before);
	return inside;
}

ATTACK(modules) = {
	.name = "modules",
	.what = "administer the machine: its modules, kernel, swap, clock, ports, log",
	.seen = "capabilities(7); CVE-2017-6074 (DCCP, loaded by a socket), CVE-2019-11815 (RDS)",
	.wall = "filter: the calls of administration; no capability",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.before = before,
	.inside = inside,
	.after = after,
};
