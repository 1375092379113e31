/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets of the host without a name in any file system (CVE-2020-15257: containerd-shim
 * listened on one, and a container that shared the host's network namespace could order it to start
 * others as root). They belong to the network namespace, not to a mount: a root of one's own is no
 * wall. The host's half listens on one, for streams and for datagrams; the inside connects, sends,
 * and looks for their names in /proc/net/unix. The sandbox has an empty
 * network namespace, and Landlock (6.12) refuses such sockets from outside.
 */
#include <errno.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"

static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static socklen_t address(struct sockaddr_un *un, const char *name, int type)
{
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	                   (size_t)snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "%s-%d",
	                                    name, type));
}

static int before(const char *words[8], struct evidence *evidence)
{
	static char name[48];
	struct sockaddr_un un;

	snprintf(name, sizeof(name), "agentdock-probe-%d", (int)getpid());
	for (int i = 0; i < TYPES; i++) {
		socklen_t length = address(&un, name, types[i]);
		/* stays open while this process lives */
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

		if (fd < 0 || bind(fd, (struct sockaddr *)&un, length) < 0 ||
		    (types[i] != SOCK_DGRAM && listen(fd, 8) < 0)) {
			verdict(evidence, UNTRIED, "listening on @%s: %s", name, strerror(errno));
			return -1;
		}
	}
	words[0] = name;
	return 0;
}

static bool is_listed(const char *name)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, name) != NULL;
	if (file)
		fclose(file);
	return found;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct sockaddr_un un;
	int refused = 0;

	for (int i = 0; i < TYPES; i++) {
		socklen_t length = address(&un, argv[0], types[i]);
		scoped_fd fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

		if (fd < 0)
			continue;
		if (connect(fd, (struct sockaddr *)&un, length) == 0 && send(fd, "x", 1, 0) == 1)
			return verdict(evidence, BROKEN, "@%s took our bytes", un.sun_path + 1);
		refused = errno;
	}
	if (is_listed(argv[0]))
		return verdict(evidence, BROKEN, "the host's sockets are listed in /proc/net/unix");
	return verdict(evidence, HELD, "streams, datagrams and packets: %s", strerror(refused));
}

ATTACK(host_abstract_socket) = {
	.name = "host_abstract_socket",
	.what = "talk to a service of the host by its abstract unix socket",
	.seen = "CVE-2020-15257 (containerd)",
	.wall = "an empty network namespace, Landlock's scope of sockets",
	.control = WORDS(WITHOUT("network namespace"), WITHOUT("loopback"), WITHOUT("landlock")),
	.before = before,
	.inside = inside,
};
