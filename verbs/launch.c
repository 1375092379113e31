/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first instructions of agentdock-runtime: they see to it that no container can write to its file.
 *
 * A process of ours is for a while a process of the container. Who is root in there may execute or open
 * /proc/PID/exe, which is this program's file on the host, keep that descriptor and, once nobody
 * executes it any more, open it anew for writing (CVE-2019-5736). So the program that enters containers
 * is executed from elsewhere: from a mount of its own file that is nowhere to be seen, read-only, and
 * cut off for good when its last descriptor goes, at exec; where we may not mount, from a sealed copy in
 * memory; where neither works, not at all. That it is the second start is seen in the executable
 * itself, as nothing in an environment could be relied on.
 *
 *  - Freestanding: the entry of the program, before libc's. Another start of libc costs a millisecond.
 *    No thread-local storage yet, so no stack protector, no errno and no function of libc.
 *  - Verbs that never enter a container go on at once. A word that is one of those that do may be
 *    another verb's argument, which costs an exec and nothing else.
 */
#include <asm/unistd.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "init/system_call.h"

/* Kernel 6.3; the headers of Debian 12 are 6.1. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

enum { EXIT_OURS = 125, EINVAL_OF_KERNEL = 22, COPY_BYTES = 1 << 30 };

#define OWN_FILE "/proc/self/exe"
#define NAME     "agentdock-runtime"

void launch_main(const long *stack);

#if defined(__x86_64__)
/* rdx is what libc's entry is to call at exit */
__asm__(".text\n"
        ".globl launch_start\n"
        ".type launch_start, @function\n"
        "launch_start:\n"
        "	xorl %ebp, %ebp\n"
        "	movq %rsp, %rbx\n"
        "	movq %rdx, %r12\n"
        "	movq %rsp, %rdi\n"
        "	andq $-16, %rsp\n"
        "	call launch_main\n"
        "	movq %rbx, %rsp\n"
        "	movq %r12, %rdx\n"
        "	jmp _start\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl launch_start\n"
        ".type launch_start, %function\n"
        "launch_start:\n"
        "	mov x29, #0\n"
        "	mov x30, #0\n"
        "	mov x19, x0\n"
        "	mov x0, sp\n"
        "	bl launch_main\n"
        "	mov x0, x19\n"
        "	b _start\n");
#endif

__attribute__((noreturn)) static void refuse(const char *why, long length)
{
	CALL3(__NR_write, 2, why, length);
	for (;;)
		CALL1(__NR_exit_group, EXIT_OURS);
}
#define REFUSE(why) refuse(NAME ": " why "\n", sizeof NAME ": " why)

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static bool enters_container(char *const argv[])
{
	for (; *argv; argv++)
		if (same(*argv, "create") || same(*argv, "run") || same(*argv, "exec"))
			return true;
	return false;
}

static bool is_sealed(void)
{
	long fd = CALL4(__NR_openat, AT_FDCWD, OWN_FILE, O_RDONLY | O_CLOEXEC, 0);
	long seals = CALL3(__NR_fcntl, fd, F_GET_SEALS, 0);

	CALL1(__NR_close, fd);
	return seals >= 0 && (seals & F_SEAL_WRITE);
}

/* Nobody can write to the file by way of this process. */
static bool is_protected(void)
{
	static struct statfs fs; /* zeros, and not by a function of libc */

	if (CALL2(__NR_statfs, OWN_FILE, &fs) < 0)
		REFUSE("/proc/self/exe can't be looked at; mount /proc");
	return (fs.f_flags & ST_RDONLY) || (fs.f_type == TMPFS_MAGIC && is_sealed());
}

/* An exec by descriptor, as ours are. One that left the file unprotected would be done for ever. */
static bool was_executed_by_descriptor(char *const envp[])
{
	static const char prefix[] = "/dev/fd/";
	const unsigned long *aux;
	const char *name = 0;

	while (*envp)
		envp++;
	for (aux = (const unsigned long *)(envp + 1); aux[0] != AT_NULL; aux += 2)
		if (aux[0] == AT_EXECFN)
			name = (const char *)aux[1];
	for (int i = 0; name && prefix[i]; i++)
		if (name[i] != prefix[i])
			return false;
	return name;
}

/* On success it doesn't return. The descriptor goes with the exec, and with it the mount's place: from
 * then on nobody can change the mount, whatever privilege he has. */
static void execute(long fd, char *const argv[], char *const envp[])
{
	CALL5(__NR_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	CALL1(__NR_close, fd);
}

static void execute_read_only(char *const argv[], char *const envp[])
{
	static const struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	long fd = CALL3(__NR_open_tree, AT_FDCWD, OWN_FILE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return;
	if (CALL5(__NR_mount_setattr, fd, "", AT_EMPTY_PATH, &read_only, sizeof read_only) == 0)
		execute(fd, argv, envp);
	else
		CALL1(__NR_close, fd);
}

static bool copy_and_seal(long fd)
{
	long seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL, copied;
	long file = CALL4(__NR_openat, AT_FDCWD, OWN_FILE, O_RDONLY | O_CLOEXEC, 0);

	do
		copied = CALL4(__NR_sendfile, fd, file, 0, COPY_BYTES);
	while (copied > 0);
	CALL1(__NR_close, file);
	if (copied < 0)
		return false;
	if (CALL3(__NR_fcntl, fd, F_ADD_SEALS, seals | F_SEAL_EXEC) == 0)
		return true;
	return CALL3(__NR_fcntl, fd, F_ADD_SEALS, seals) == 0;
}

static void execute_copy(char *const argv[], char *const envp[])
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	long fd = CALL2(__NR_memfd_create, NAME, flags | MFD_EXEC);

	if (fd == -EINVAL_OF_KERNEL)
		fd = CALL2(__NR_memfd_create, NAME, flags);
	if (fd < 0)
		return;
	if (copy_and_seal(fd))
		execute(fd, argv, envp);
	else
		CALL1(__NR_close, fd);
}

__attribute__((used)) void launch_main(const long *stack)
{
	long argc = stack[0];
	char *const *argv = (char *const *)(stack + 1);
	char *const *envp = argv + argc + 1;

	if (!enters_container(argv))
		return;
	if (is_protected()) {
		CALL2(__NR_prctl, PR_SET_NAME,
		      NAME); /* after an exec by descriptor that is its number */
		return;
	}
	if (was_executed_by_descriptor(envp))
		REFUSE("executed by descriptor, and yet its file is neither on a read-only mount "
		       "nor "
		       "sealed; execute it by its path");
	execute_read_only(argv, envp);
	execute_copy(argv, envp);
	REFUSE("no way to protect this program's file from containers: it can be mounted read-only "
	       "by "
	       "root only, and a copy in memory can't be executed; set the sysctl vm.memfd_noexec "
	       "to 0 "
	       "or 1, or install it on a read-only file system");
}
