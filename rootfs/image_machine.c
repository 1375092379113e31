/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines by the names that GOARCH (and so OCI images) gives them, told from ELF headers (System V
 * ABI, chapter 4). Reads 20 bytes of a file of the image and nothing else of it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif

static const struct {
	const char *name;
	uint16_t machine;
	uint8_t class, data;
} machines[] = {
	{"amd64", EM_X86_64, ELFCLASS64, ELFDATA2LSB},
	{"386", EM_386, ELFCLASS32, ELFDATA2LSB},
	{"arm64", EM_AARCH64, ELFCLASS64, ELFDATA2LSB},
	{"arm", EM_ARM, ELFCLASS32, ELFDATA2LSB},
	{"riscv64", EM_RISCV, ELFCLASS64, ELFDATA2LSB},
	{"ppc64le", EM_PPC64, ELFCLASS64, ELFDATA2LSB},
	{"ppc64", EM_PPC64, ELFCLASS64, ELFDATA2MSB},
	{"s390x", EM_S390, ELFCLASS64, ELFDATA2MSB},
	{"loong64", EM_LOONGARCH, ELFCLASS64, ELFDATA2LSB},
	{"mips64le", EM_MIPS, ELFCLASS64, ELFDATA2LSB},
};
enum { MACHINES = sizeof(machines) / sizeof(machines[0]), HEADER_BYTES = 20 };

const char *image_machine(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#elif defined(__riscv) && __riscv_xlen == 64
	return "riscv64";
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return "ppc64le";
#elif defined(__s390x__)
	return "s390x";
#else
#error "add this machine's name as GOARCH writes it"
#endif
}

bool image_machine_known(const char *architecture)
{
	for (size_t i = 0; i < MACHINES; i++)
		if (strcmp(machines[i].name, architecture) == 0)
			return true;
	return false;
}

static const char *machine_of_header(const unsigned char header[HEADER_BYTES])
{
	unsigned machine = header[EI_DATA] == ELFDATA2MSB ? header[18] << 8 | header[19]
	                                                  : header[19] << 8 | header[18];

	if (memcmp(header, ELFMAG, SELFMAG) != 0)
		return NULL;
	for (size_t i = 0; i < MACHINES; i++)
		if (machines[i].machine == machine && machines[i].class == header[EI_CLASS] &&
		    machines[i].data == header[EI_DATA])
			return machines[i].name;
	return NULL;
}

/* NULL where PATH is no program of a machine that we know. The tree may be hostile: a link must not
 * lead out of it, and a FIFO or a device must not be opened for reading. */
static const char *machine_of_file(int rootfd, const char *path)
{
	unsigned char header[HEADER_BYTES];
	char self[32];
	struct stat st;
	struct err ignored;
	scoped_fd fd = -1;
	scoped_fd pathfd = file_open2(rootfd, path, O_PATH, 0,
	                              RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, &ignored);

	if (pathfd < 0 || fstat(pathfd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", pathfd);
	fd = open(self, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return NULL;
	return machine_of_header(header);
}

int image_machine_of_tree(int rootfd, char architecture[16], struct err *e)
{
	static const char *const programs[] = {"bin/sh", "usr/bin/env"};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const char *name = machine_of_file(rootfd, programs[i]);

		if (name) {
			snprintf(architecture, 16, "%s", name);
			return 0;
		}
	}
	return err_set(e, ENOEXEC,
	               "cannot tell its architecture: neither /bin/sh nor /usr/bin/env "
	               "in it is a program of a known machine; is it a root file system? if so, "
	               "give --arch");
}
