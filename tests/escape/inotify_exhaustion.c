/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel counts by user: inotify instances (128), queued signals, bytes of POSIX message
 * queues. Sandboxes with the same user on the host, or whose user namespaces are paid for by the same
 * one, take them from each other: the next one's `tail -f` or test runner fails. Each sandbox has a
 * range of ids of its own, whose first pays. The host's half is another sandbox's user without such
 * a range, under the same limits, and tries to get one of each while the attacker holds all it can.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/host.h"
#include "tests/escape/tally.h"

enum { USER = 10001, WANTED = 1000, SIGNALS = 4096, QUEUE_BYTES = 800 << 10 };

static const char *word;
static struct {
	volatile int looked, inotify, signals, queue; /* codes */
} * seen;

static int before(const char *words[8], struct evidence *evidence)
{
	word = words[0] = unique_word();
	seen = shared_memory(sizeof(*seen));
	return seen && hold_prepare(word) == 0 ? 0 : unprepared(evidence, "memory and a pipe");
}

static int make_inotify(void)
{
	scoped_fd fd = inotify_init1(IN_CLOEXEC);

	return code_of(fd);
}

static int queue_signal(void)
{
	return code_of(sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
}

static int make_queue(const char *name)
{
	struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 1024};
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attributes);

	if (queue < 0)
		return errno;
	mq_close(queue);
	return 0;
}

/* As a sandbox has them. */
static void take_limits(void)
{
	const struct rlimit signals = {SIGNALS, SIGNALS}, queues = {QUEUE_BYTES, QUEUE_BYTES};
	sigset_t set;

	setrlimit(RLIMIT_SIGPENDING, &signals);
	setrlimit(RLIMIT_MSGQUEUE, &queues);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void during(void)
{
	char name[40];

	snprintf(name, sizeof(name), "/%s", word);
	hold_await();
	take_limits();
	if (setresuid(USER, USER, USER) == 0) {
		seen->inotify = make_inotify();
		seen->signals = queue_signal();
		seen->queue = make_queue(name);
		mq_unlink(name);
		seen->looked = 1;
	}
	hold_end();
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	int instances = 0, signals = 0, queues = 0, code = 0;
	char name[16];

	(void)argv;
	while (instances < WANTED && inotify_init1(IN_CLOEXEC) >= 0)
		instances++;
	take_limits();
	while (signals < 2 * SIGNALS && queue_signal() == 0)
		signals++;
	while (queues < WANTED && code == 0) {
		snprintf(name, sizeof(name), "/queue-%d", queues);
		code = make_queue(name);
		queues += code == 0;
	}
	hold();
	return verdict(evidence, HELD,
	               "%d inotify instances, %d signals and %d queues (then %s) were held, and "
	               "others have theirs",
	               instances, signals, queues, strerrorname_np(code));
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	struct tally tally = {0};

	(void)status;
	if (!seen->looked)
		return verdict(evidence, UNTRIED, "the host did not get to look");
	if (!seen->inotify && !seen->signals && !seen->queue)
		return inside;
	tally_add(&tally, "an inotify instance", seen->inotify);
	tally_add(&tally, "a queued signal", seen->signals);
	tally_add(&tally, "a message queue", seen->queue);
	tally_verdict(&tally, evidence);
	return BROKEN;
}

ATTACK(inotify_exhaustion) = {
	.name = "inotify_exhaustion",
	.what = "use up what the kernel counts by user, so that other sandboxes get none",
	.seen = "inotify(7), sigqueue(3), mq_overview(7); 'too many open files' of CI hosts",
	.wall = "a range of host ids of its own, whose first pays for the user namespace",
	.options = WORDS(HOLD_OPTIONS),
	.control = WORDS(WITHOUT("user namespace")),
	.before = before,
	.during = during,
	.inside = inside,
	.after = after,
};
