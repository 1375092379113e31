/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for the kernel: bpf(2), whose verifier was wrong again and again (CVE-2017-16995,
 * CVE-2020-8835, CVE-2021-3490, CVE-2021-31440), and the classic filters of sockets, which come out
 * of one budget for the whole host (net.core.bpf_jit_limit) and were used to spray executable pages.
 * The filter forbids all of them; bpf(2) wants capabilities on most hosts besides.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "tests/escape/attack.h"
#include "tests/escape/tally.h"
#include "tests/escape/try.h"

static int call_bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

static int make_map(void)
{
	union bpf_attr attributes = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};
	scoped_fd fd = call_bpf(BPF_MAP_CREATE, &attributes);

	return code_of(fd);
}

static int load_program(enum bpf_prog_type type)
{
	static const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attributes = {
		.prog_type = type,
		.insns = (uintptr_t)instructions,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL",
	};
	scoped_fd fd = call_bpf(BPF_PROG_LOAD, &attributes);

	return code_of(fd);
}

static int next_program(void)
{
	union bpf_attr attributes = {.start_id = 0};

	return code_of(call_bpf(BPF_PROG_GET_NEXT_ID, &attributes));
}

static int attach_classic(int option)
{
	static struct sock_filter instructions[] = {{.code = BPF_RET | BPF_K, .k = 0}};
	const struct sock_fprog program = {.len = 1, .filter = instructions};
	scoped_fd fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		return errno;
	return code_of(setsockopt(fd, SOL_SOCKET, option, &program, sizeof(program)));
}

/* The kernel reads 32 bits of the option, whatever the rest of the register says. */
static int attach_with_high_bits(void)
{
	static struct sock_filter instructions[] = {{.code = BPF_RET | BPF_K, .k = 0}};
	const struct sock_fprog program = {.len = 1, .filter = instructions};
	scoped_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return code_of(syscall(SYS_setsockopt, fd, 0x100000000L | SOL_SOCKET,
	                       0x100000000L | SO_ATTACH_FILTER, &program, sizeof(program)));
}

static int attach_extended(int option)
{
	scoped_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int program = -1;

	return code_of(setsockopt(fd, SOL_SOCKET, option, &program, sizeof(program)));
}

static enum outcome inside(char *const argv[], struct evidence *evidence)
{
	struct tally tally = {0};

	(void)argv;
	tally_add(&tally, "a map", make_map());
	tally_add(&tally, "a socket program", load_program(BPF_PROG_TYPE_SOCKET_FILTER));
	tally_add(&tally, "a tracing program", load_program(BPF_PROG_TYPE_KPROBE));
	tally_add(&tally, "the list of the host's programs", next_program());
	tally_add(&tally, "SO_ATTACH_FILTER", attach_classic(SO_ATTACH_FILTER));
	tally_add(&tally, "SO_ATTACH_FILTER with high bits", attach_with_high_bits());
	tally_add(&tally, "SO_ATTACH_REUSEPORT_CBPF", attach_classic(SO_ATTACH_REUSEPORT_CBPF));
	tally_add(&tally, "SO_ATTACH_BPF", attach_extended(SO_ATTACH_BPF));
	tally_add(&tally, "SO_ATTACH_REUSEPORT_EBPF", attach_extended(SO_ATTACH_REUSEPORT_EBPF));
	return tally_verdict(&tally, evidence);
}

ATTACK(bpf) = {
	.name = "bpf",
	.what = "run programs inside the kernel",
	.seen = "CVE-2017-16995, CVE-2020-8835, CVE-2021-3490, CVE-2021-31440",
	.wall = "filter: bpf and filters of sockets; no capability",
	.control = WORDS(AS_ROOT_OF_THE_HOST),
	.inside = inside,
};
