/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.netDevices ("Network Devices" in config-linux.md): a device goes from the runtime's network
 * namespace to the container's, with its new name; its addresses, of which the kernel keeps none on
 * the way, are set again, those that are permanent and of global scope; it is brought up. rtnetlink(7).
 *
 * A name that is taken in there is found before anything is moved: the kernel moves first and renames
 * then, and a virtual device that has arrived is lost with the namespace. "%d" at the end of a name is
 * the first number that is free.
 *
 * By hand, as runtime/network/loopback.c: Debian has no static libmnl.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "container/container.h"

enum { REQUEST_SIZE = 512, ANSWER_SIZE = 32768, ADDRESSES_MAX = 256 };

struct request {
	struct nlmsghdr header;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg address;
		char room[REQUEST_SIZE];
	};
};

/* Of one device: what sets them again. */
struct addresses {
	struct request items[ADDRESSES_MAX];
	size_t count;
};

static void request_init(struct request *request, uint16_t type, uint16_t flags, size_t body)
{
	*request = (struct request){
		.header = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(body),
	                   .nlmsg_type = type,
	                   .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
	};
}

/* Those of an address are as many as fit: they came in a message of the kernel's that has fewer. */
static void request_add(struct request *request, uint16_t type, const void *data, size_t length)
{
	size_t at = NLMSG_ALIGN(request->header.nlmsg_len);
	struct rtattr attribute = {.rta_len = (uint16_t)RTA_LENGTH(length), .rta_type = type};

	if (at + RTA_LENGTH(length) > sizeof *request)
		abort();
	memcpy((char *)request + at, &attribute, sizeof attribute);
	memcpy((char *)request + at + RTA_LENGTH(0), data, length);
	request->header.nlmsg_len = (uint32_t)(at + RTA_LENGTH(length));
}

static int open_route(struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? err_sys(e, "opening rtnetlink") : fd;
}

/* The kernel's own answer, which is an errno. */
static int ask(int fd, struct request *request, struct err *e)
{
	union {
		struct nlmsghdr header;
		char room[REQUEST_SIZE + 256];
	} answer;
	ssize_t length;

	request->header.nlmsg_flags |= NLM_F_ACK;
	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return err_sys(e, "rtnetlink");
	do
		length = recv(fd, &answer, sizeof answer, 0);
	while (length < 0 && errno == EINTR);
	if (length < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
	    answer.header.nlmsg_type != NLMSG_ERROR)
		return err_set(e, EPROTO, "rtnetlink: an unexpected answer");
	errno = -((const struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
	return errno ? err_sys(e, "rtnetlink") : 0;
}

/* ---- what is there ---- */

/* Of this name in the namespace of the socket FD; 0: there is none. */
static int device_index(int fd, const char *name)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, name, strlen(name));
	return ioctl(fd, SIOCGIFINDEX, &request) == 0 ? request.ifr_ifindex : 0;
}

static int check_name(const char *name, struct err *e)
{
	size_t length = strlen(name);

	if (length > 0 && length < IFNAMSIZ && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	    !strpbrk(name, "/:% \t\n\v\f\r"))
		return 0;
	return err_set(e, EINVAL,
	               "the name of a network device has 1 to %d bytes, none of them blank, "
	               "'/', ':' or '%%'",
	               IFNAMSIZ - 1);
}

/* The name in the container's namespace, of the socket FD: one that is free there. */
static int choose_name(int fd, const struct oci_net_device *device, char name[IFNAMSIZ],
                       struct err *e)
{
	const char *wanted = device->name && *device->name ? device->name : device->host_name;
	char stem[IFNAMSIZ];
	size_t length = strlen(wanted);
	bool numbered = length > 2 && strcmp(wanted + length - 2, "%d") == 0;

	snprintf(stem, sizeof stem, "%.*s", (int)(numbered ? length - 2 : length), wanted);
	if (length >= sizeof stem)
		return check_name(wanted, e);
	TRY(check_name(stem, e));
	snprintf(name, IFNAMSIZ, "%s", stem);
	for (int number = 0; numbered; number++) {
		if (snprintf(name, IFNAMSIZ, "%s%d", stem, number) >= IFNAMSIZ)
			return err_set(e, ENFILE, "all names like \"%s\" are taken", wanted);
		if (!device_index(fd, name))
			return 0;
	}
	if (!device_index(fd, name))
		return 0;
	return err_set(e, EEXIST,
	               "the container's network namespace has a device %s already: give another "
	               "name, or \"%s%%d\" for one with a number",
	               name, name);
}

static int keep_address(struct addresses *addresses, struct nlmsghdr *header, struct err *e)
{
	struct ifaddrmsg *body = NLMSG_DATA(header);
	const uint32_t kept = IFA_F_NODAD | IFA_F_NOPREFIXROUTE | IFA_F_HOMEADDRESS;
	struct request *request;
	uint32_t flags = body->ifa_flags;
	int length = (int)IFA_PAYLOAD(header);

	if (addresses->count == ADDRESSES_MAX)
		return err_set(e, E2BIG, "there are more than %d addresses", ADDRESSES_MAX);
	request = &addresses->items[addresses->count];
	request_init(request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof *body);
	request->address = (struct ifaddrmsg){.ifa_family = body->ifa_family,
	                                      .ifa_prefixlen = body->ifa_prefixlen,
	                                      .ifa_scope = body->ifa_scope};
	for (struct rtattr *a = IFA_RTA(body); RTA_OK(a, length); a = RTA_NEXT(a, length)) {
		if (a->rta_type == IFA_FLAGS)
			memcpy(&flags, RTA_DATA(a), sizeof flags);
		if (a->rta_type == IFA_LOCAL || a->rta_type == IFA_ADDRESS ||
		    a->rta_type == IFA_BROADCAST || a->rta_type == IFA_RT_PRIORITY)
			request_add(request, a->rta_type, RTA_DATA(a), RTA_PAYLOAD(a));
	}
	if (!(flags & IFA_F_PERMANENT) || body->ifa_scope != RT_SCOPE_UNIVERSE)
		return 0;
	flags &= kept;
	request_add(request, IFA_FLAGS, &flags, sizeof flags);
	addresses->count++;
	return 0;
}

static int read_addresses(int fd, unsigned index, struct addresses *addresses, struct err *e)
{
	scoped_mem char *buffer = malloc(ANSWER_SIZE);
	struct request request;

	if (!buffer)
		return err_set(e, ENOMEM, "no memory for its addresses");
	request_init(&request, RTM_GETADDR, NLM_F_DUMP, sizeof request.address);
	if (send(fd, &request, request.header.nlmsg_len, 0) < 0)
		return err_sys(e, "reading its addresses");
	for (;;) {
		ssize_t length = recv(fd, buffer, ANSWER_SIZE, 0);
		unsigned left = (unsigned)length;

		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			return err_sys(e, "reading its addresses");
		for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return err_set(e, EPROTO,
				               "reading its addresses: the kernel refused");
			if (h->nlmsg_type == RTM_NEWADDR &&
			    ((struct ifaddrmsg *)NLMSG_DATA(h))->ifa_index == index)
				TRY(keep_address(addresses, h, e));
		}
	}
}

/* ---- moving ---- */

/* One socket in each namespace: a socket stays in the one that it was made in. */
struct ends {
	int ownfd, targetfd; /* rtnetlink */
	int targetnsfd;
};

static int move(const struct ends *ends, const char *name, unsigned index, struct err *e)
{
	struct request request;

	request_init(&request, RTM_NEWLINK, 0, sizeof request.link);
	request.link.ifi_index = (int)index;
	request_add(&request, IFLA_NET_NS_FD, &ends->targetnsfd, sizeof ends->targetnsfd);
	request_add(&request, IFLA_IFNAME, name, strlen(name) + 1);
	if (ask(ends->ownfd, &request, e) == 0)
		return 0;
	if (e->code == EINVAL || e->code == EOPNOTSUPP)
		return err_hint(e, "devices of this kind may not leave their network namespace");
	return -e->code;
}

static int set_up(const struct ends *ends, const char *name, struct addresses *addresses,
                  struct err *e)
{
	int index = device_index(ends->targetfd, name);
	struct request up;

	if (!index)
		return err_sys(e, "looking for it in the container's network namespace");
	for (size_t i = 0; i < addresses->count; i++) {
		addresses->items[i].address.ifa_index = (unsigned)index;
		if (ask(ends->targetfd, &addresses->items[i], e) < 0)
			return err_in(e, "setting an address again");
	}
	request_init(&up, RTM_NEWLINK, 0, sizeof up.link);
	up.link.ifi_index = index;
	up.link.ifi_flags = IFF_UP;
	up.link.ifi_change = IFF_UP;
	return ask(ends->targetfd, &up, e) < 0 ? err_in(e, "bringing it up") : 0;
}

static int hand_over(const struct ends *ends, const struct oci_net_device *device,
                     struct addresses *addresses, struct err *e)
{
	char name[IFNAMSIZ];
	int index;

	addresses->count = 0;
	TRY(check_name(device->host_name, e));
	index = device_index(ends->ownfd, device->host_name);
	if (!index)
		return err_set(e, ENODEV, "the runtime's network namespace has no such device");
	TRY(choose_name(ends->targetfd, device, name, e));
	TRY(read_addresses(ends->ownfd, (unsigned)index, addresses, e));
	TRY(move(ends, name, (unsigned)index, e));
	return set_up(ends, name, addresses, e);
}

static int open_target(const struct container *container, int targetnsfd, struct err *e)
{
	scoped_fd homefd = file_open(container->hostprocfd, "self/ns/net", O_RDONLY, 0, e);
	scoped_fd fd = -1;

	TRY(homefd);
	if (setns(targetnsfd, CLONE_NEWNET) < 0)
		return err_sys(e, "entering the container's network namespace");
	fd = open_route(e);
	if (setns(homefd, CLONE_NEWNET) < 0)
		return err_sys(e, "returning to our own network namespace");
	return take_fd(&fd);
}

static int move_all(struct container *container, const struct oci_net_devices *devices,
                    struct addresses *addresses, struct err *e)
{
	scoped_fd targetnsfd = file_open(container->procfd, "ns/net", O_RDONLY, 0, e);
	scoped_fd ownfd = -1, targetfd = -1;

	TRY(targetnsfd);
	TRY(ownfd = open_route(e));
	TRY(targetfd = open_target(container, targetnsfd, e));
	for (size_t i = 0; i < devices->count; i++) {
		const struct ends ends = {ownfd, targetfd, targetnsfd};

		if (hand_over(&ends, &devices->items[i], addresses, e) < 0)
			return err_in(e, "linux.netDevices[\"%s\"]", devices->items[i].host_name);
	}
	return 0;
}

OUTSIDE(move_net_devices)
{
	const struct oci_net_devices *devices = &container->config->linux_part->net_devices;
	struct addresses *addresses;
	int own, r;

	if (!devices->count)
		return 0;
	TRY(own = has_own_namespace(container, CLONE_NEWNET, e));
	if (!own)
		return err_set(
			e, EINVAL,
			"linux.netDevices: the container has no network namespace of its own "
			"that they could go to; give it one in linux.namespaces");
	addresses = calloc(1, sizeof *addresses);
	if (!addresses)
		return err_set(e, ENOMEM, "linux.netDevices: no memory");
	r = move_all(container, devices, addresses, e);
	free(addresses);
	return r;
}
