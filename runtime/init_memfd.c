/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded agentdock-init as a sealed memfd. Owns nothing: each call makes a new file. */
#include "runtime/init_memfd.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/scoped.h"
#include "base/unsafe.h"

/* Kernel 6.3; the headers of Debian 12 are 6.1. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

/* runtime/init_blob.S */
extern const unsigned char agentdock_init_image[];
extern const uint64_t agentdock_init_image_bytes;

static int create(struct err *e)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("agentdock-init", flags | MFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("agentdock-init", flags);
	if (fd < 0 && errno == EACCES) {
		err_sys(e, "making an executable file in memory for the sandbox's pid 1");
		return err_hint(e, "set the sysctl vm.memfd_noexec to 0 or 1");
	}
	if (fd < 0)
		return err_sys(e, "making a file in memory for the sandbox's pid 1");
	return fd;
}

static int seal(int fd, struct err *e)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

	if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_EXEC) == 0)
		return 0;
	if (errno == EINVAL && fcntl(fd, F_ADD_SEALS, seals) == 0)
		return 0;
	return err_sys(e, "sealing the file in memory of the sandbox's pid 1");
}

int init_memfd(struct err *e)
{
	scoped_fd fd = create(e);

	if (fd < 0)
		return -e->code;
	TRY(fd_write_all(fd, agentdock_init_image, agentdock_init_image_bytes, e));
	if (fchmod(fd, unsafe_without("unreadable pid 1") ? 0555 : 0111) < 0)
		return err_sys(e, "making the file in memory of the sandbox's pid 1 executable");
	TRY(seal(fd, e));
	return take_fd(&fd);
}
