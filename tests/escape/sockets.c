/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of every family beside the common ones. Each family is a protocol stack that the first
 * use may load, and a history of faults of its own (AF_PACKET CVE-2017-7308, AF_VSOCK
 * CVE-2021-26708, netfilter by netlink CVE-2022-32250, AF_ALG CVE-2019-8912, AF_TIPC CVE-2021-43267,
 * AF_KEY CVE-2022-1353, AF_XDP, AF_RDS, AF_CAN); AF_VSOCK reaches the hypervisor, AF_ALG any code of
 * the kernel's cryptography. The filter allows AF_UNIX, TCP and UDP, and a few sockets of rtnetlink.
 */
#include <linux/if_alg.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"

#ifndef AF_MCTP
#define AF_MCTP 45
#endif

static const struct {
	const char *name;
	long family;
	int type, protocol;
} kinds[] = {
	{"AF_VSOCK", AF_VSOCK, SOCK_STREAM, 0},
	{"AF_PACKET", AF_PACKET, SOCK_RAW, 0},
	{"AF_ALG", AF_ALG, SOCK_SEQPACKET, 0},
	{"netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER},
	{"xfrm", AF_NETLINK, SOCK_RAW, NETLINK_XFRM},
	{"audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT},
	{"generic netlink", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC},
	{"uevents", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT},
	{"sock_diag", AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG},
	{"connector", AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR},
	{"AF_KEY", AF_KEY, SOCK_RAW, 2},
	{"AF_XDP", AF_XDP, SOCK_RAW, 0},
	{"AF_TIPC", AF_TIPC, SOCK_RDM, 0},
	{"AF_BLUETOOTH", AF_BLUETOOTH, SOCK_RAW, 1},
	{"AF_RDS", AF_RDS, SOCK_SEQPACKET, 0},
	{"AF_CAN", AF_CAN, SOCK_RAW, 1},
	{"AF_NFC", AF_NFC, SOCK_SEQPACKET, 1},
	{"AF_PPPOX", AF_PPPOX, SOCK_STREAM, 0},
	{"AF_SMC", AF_SMC, SOCK_STREAM, 0},
	{"AF_MCTP", AF_MCTP, SOCK_DGRAM, 0},
	{"AF_X25", AF_X25, SOCK_SEQPACKET, 0},
	{"ICMP", AF_INET, SOCK_RAW, IPPROTO_ICMP},
	{"ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP},
	{"raw IP", AF_INET, SOCK_RAW, IPPROTO_RAW},
	{"raw IPv6", AF_INET6, SOCK_RAW, IPPROTO_RAW},
	{"SCTP", AF_INET, SOCK_STREAM, IPPROTO_SCTP},
	{"DCCP", AF_INET, 6, IPPROTO_DCCP},
	{"UDP-Lite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE},
	{"MPTCP", AF_INET, SOCK_STREAM, IPPROTO_MPTCP},
	{"AF_VSOCK with high bits", 0x100000000L | AF_VSOCK, SOCK_STREAM, 0},
};

static int open_socket(long family, int type, int protocol)
{
	scoped_fd fd = (int)syscall(SYS_socket, family, type | SOCK_CLOEXEC, protocol);

	return code_of(fd);
}

static int open_pair(int family, int type)
{
	int pair[2];

	if (socketpair(family, type, 0, pair) < 0)
		return errno;
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		tally_add(&tally, kinds[i].name,
		          open_socket(kinds[i].family, kinds[i].type, kinds[i].protocol));
	tally_add(&tally, "a pair of AF_TIPC", open_pair(AF_TIPC, SOCK_STREAM));
	tally_add(&tally, "a pair of AF_INET", open_pair(AF_INET, SOCK_STREAM));
	return tally_verdict(&tally, evidence);
}

ATTACK(sockets) = {
	.name = "sockets",
	.what = "reach protocol stacks of the kernel that a command has no need of",
	.seen = "CVE-2017-7308, CVE-2021-26708, CVE-2022-32250, CVE-2019-8912, CVE-2021-43267",
	.wall = "filter: families, types and protocols of sockets; no capability",
	.control = WORDS(WITHOUT("seccomp"), WITHOUT("user"), WITHOUT("securebits"),
                         WITHOUT("bounding set"), WITHOUT("capabilities")),
	.inside = inside,
};
