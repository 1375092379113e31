/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of the host: services that listen on its loopback without a password (the way from a
 * CI job to Redis, to a Docker daemon, to kubelet), its other addresses, and the metadata service of
 * a cloud, which hands out the machine's credentials. The host's half listens on 127.0.0.1 and on an
 * abstract name. The network namespace has nothing but a loopback of its own. Whether a route leads
 * out is asked of the kernel: no packet is sent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/host.h"
#include "tests/escape/tally.h"

static int listener = -1, abstract = -1;

static socklen_t abstract_name(const char *word, struct sockaddr_un *address)
{
	size_t length = strlen(word);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path + 1, word, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int before(const char *words[8], struct evidence *evidence)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un name;
	socklen_t length = sizeof(address);
	static char port[8];

	words[0] = port;
	words[1] = unique_word();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 8) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		return unprepared(evidence, "listening on 127.0.0.1");
	length = abstract_name(words[1], &name);
	if (abstract < 0 || bind(abstract, (struct sockaddr *)&name, length) < 0 ||
	    listen(abstract, 8) < 0)
		return unprepared(evidence, "listening on an abstract name");
	snprintf(port, sizeof(port), "%u", ntohs(address.sin_port));
	return 0;
}

static int reach(const char *text, uint16_t port, int type)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	scoped_fd fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, text, &address.sin_addr);
	return code_of(fd < 0 ? fd : connect(fd, (struct sockaddr *)&address, sizeof(address)));
}

static int reach_v6(const char *text, uint16_t port, int type)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	scoped_fd fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET6, text, &address.sin6_addr);
	return code_of(fd < 0 ? fd : connect(fd, (struct sockaddr *)&address, sizeof(address)));
}

static int reach_abstract(const char *word)
{
	struct sockaddr_un name;
	socklen_t length = abstract_name(word, &name);
	scoped_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return code_of(fd < 0 ? fd : connect(fd, (struct sockaddr *)&name, length));
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	uint16_t port = (uint16_t)strtoul(argv[0], NULL, 10);
	struct tally tally = {0};

	tally_add(&tally, "127.0.0.1", reach("127.0.0.1", port, SOCK_STREAM));
	tally_add(&tally, "127.0.0.1 as ::ffff:", reach_v6("::ffff:127.0.0.1", port, SOCK_STREAM));
	tally_add(&tally, "an abstract socket", reach_abstract(argv[1]));
	/* UDP, for which connecting is but to look up the route */
	tally_add(&tally, "a route to 169.254.169.254", reach("169.254.169.254", 80, SOCK_DGRAM));
	tally_add(&tally, "a route to 172.17.0.1", reach("172.17.0.1", 80, SOCK_DGRAM));
	tally_add(&tally, "a route to 192.0.2.1", reach("192.0.2.1", 80, SOCK_DGRAM));
	tally_add(&tally, "a route to fd00:ec2::254", reach_v6("fd00:ec2::254", 80, SOCK_DGRAM));
	tally_add(&tally, "a route to 2001:db8::1", reach_v6("2001:db8::1", 80, SOCK_DGRAM));
	return tally_verdict(&tally, evidence);
}

static enum outcome after(enum outcome inside, int status, struct evidence *evidence)
{
	scoped_fd fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	scoped_fd name = accept4(abstract, NULL, NULL, SOCK_CLOEXEC);

	(void)status;
	if (inside == HELD && (fd >= 0 || name >= 0))
		return verdict(evidence, BROKEN, "the host's listener was reached");
	return inside;
}

ATTACK(host_network) = {
	.name = "host_network",
	.what = "reach services of the host, and the network beyond it",
	.seen = "Capital One 2019 (metadata service); CVE-2020-15257 (containerd, abstract "
		"sockets)",
	.wall = "an empty network namespace; Landlock for abstract sockets",
	.control = WORDS(WITHOUT("network namespace"), WITHOUT("loopback"), WITHOUT("landlock")),
	.before = before,
	.inside = inside,
	.after = after,
};
