/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings up lo in the calling process's network namespace. Owns nothing.
 *
 * By ioctl rather than netlink: our programs are linked statically, Debian has no static libmnl,
 * and for one flag of one interface the two calls of netdevice(7) say all there is to say. The
 * kernel gives lo 127.0.0.1/8 and, where it has IPv6, ::1/128 of its own accord when it comes up.
 */
#include "runtime/network/loopback.h"

#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/scoped.h"

static int read_flags(int fd, struct ifreq *request, struct err *e)
{
	if (ioctl(fd, SIOCGIFFLAGS, request) < 0)
		return err_sys(e, "loopback: reading the flags of lo");
	return 0;
}

int loopback_up(struct err *e)
{
	struct ifreq request = {.ifr_name = "lo"};
	scoped_fd fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(e, "loopback: making a socket");
	TRY(read_flags(fd, &request, e));
	request.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0) {
		err_sys(e, "loopback: bringing lo up");
		return err_hint(e, "this needs CAP_NET_ADMIN in the user namespace that owns the "
		                   "network namespace");
	}
	TRY(read_flags(fd, &request, e));
	if (!(request.ifr_flags & IFF_UP))
		return err_set(e, ENETDOWN, "loopback: lo is still down after it was brought up");
	return 0;
}
