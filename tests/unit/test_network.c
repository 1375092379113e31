/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/network in network namespaces of the test's own. Root only. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/scoped.h"
#include "runtime/network/loopback.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,  \
			        errno);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void in_new_network(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		CHECK(unshare(CLONE_NEWNET) == 0);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Bytes go from one socket to another over ADDRESS, port chosen by the kernel. */
static void talk(struct sockaddr *address, socklen_t length)
{
	scoped_fd server = socket(address->sa_family, SOCK_STREAM, 0);
	scoped_fd client = socket(address->sa_family, SOCK_STREAM, 0);
	scoped_fd peer = -1;
	char byte = 0;

	CHECK(bind(server, address, length) == 0 && listen(server, 1) == 0);
	CHECK(getsockname(server, address, &length) == 0);
	CHECK(connect(client, address, length) == 0);
	peer = accept(server, NULL, NULL);
	CHECK(peer >= 0 && write(client, "x", 1) == 1 && read(peer, &byte, 1) == 1 && byte == 'x');
}

static void both_loopbacks_work(void)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct err e;

	CHECK(loopback_up(&e) == 0);
	talk((struct sockaddr *)&v4, sizeof v4);
	if (access("/proc/net/if_inet6", F_OK) == 0)
		talk((struct sockaddr *)&v6, sizeof v6);
	CHECK(loopback_up(&e) == 0);
}

static void nothing_else_is_reachable(void)
{
	struct sockaddr_in elsewhere = {.sin_family = AF_INET, .sin_port = htons(53)};
	scoped_fd fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct err e;

	CHECK(loopback_up(&e) == 0);
	CHECK(inet_pton(AF_INET, "192.0.2.1", &elsewhere.sin_addr) == 1);
	CHECK(connect(fd, (struct sockaddr *)&elsewhere, sizeof elsewhere) < 0);
	CHECK(errno == ENETUNREACH);
}

static void users_are_told_why(void)
{
	struct err e;

	CHECK(setresuid(10001, 10001, 10001) == 0);
	CHECK(loopback_up(&e) == -EPERM);
	CHECK(strstr(e.text, "CAP_NET_ADMIN"));
}

static void test_loopback(void **state)
{
	(void)state;
	in_new_network(both_loopbacks_work);
	in_new_network(nothing_else_is_reachable);
	in_new_network(users_are_told_why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_loopback)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
