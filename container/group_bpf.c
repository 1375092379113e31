/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device rules as a program of BPF_PROG_TYPE_CGROUP_DEVICE (struct bpf_cgroup_dev_ctx): it walks the
 * rules from the last to the first and takes what each allows out of what is asked for. All taken: yes.
 * Something denied, or left at the end: no.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scoped.h"
#include "container/group_internal.h"

enum {
	INSNS_FIRST = 6,
	INSNS_ACT = 4,
	INSNS_RULE = 3 + INSNS_ACT,
	INSNS_LAST = 2,
	ATTACHED_MAX = 64,
	ALL_ACCESS = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE,
};
static const char program_name[] = "agentdock_dev"; /* fits BPF_OBJ_NAME_LEN */

/* r2 type, r3 what is left of the access, r4 major, r5 minor. */
enum { TYPE = BPF_REG_2, LEFT = BPF_REG_3, MAJOR = BPF_REG_4, MINOR = BPF_REG_5 };

static struct bpf_insn load(int to, size_t offset)
{
	return (struct bpf_insn){.code = BPF_LDX | BPF_W | BPF_MEM,
	                         .dst_reg = (unsigned char)to & 0xf,
	                         .src_reg = BPF_REG_1,
	                         .off = (short)offset};
}

static struct bpf_insn alu(int operation, int reg, int operand)
{
	return (struct bpf_insn){.code = BPF_ALU | (unsigned char)operation | BPF_K,
	                         .dst_reg = (unsigned char)reg & 0xf,
	                         .imm = operand};
}

static struct bpf_insn jump(int operation, int reg, int operand, int over)
{
	return (struct bpf_insn){.code = BPF_JMP | (unsigned char)operation | BPF_K,
	                         .dst_reg = (unsigned char)reg & 0xf,
	                         .off = (short)over,
	                         .imm = operand};
}

static struct bpf_insn leave(void)
{
	return (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
}

static struct bpf_insn answer(int yes)
{
	return (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = yes};
}

static int access_bits(unsigned char access)
{
	return (access & DEVICE_MKNOD ? BPF_DEVCG_ACC_MKNOD : 0) |
	       (access & DEVICE_READ ? BPF_DEVCG_ACC_READ : 0) |
	       (access & DEVICE_WRITE ? BPF_DEVCG_ACC_WRITE : 0);
}

/* What RULE makes of an access; each comparison that fails goes to the rule before it. */
static size_t add_rule(struct bpf_insn *at, const struct device_rule *rule)
{
	size_t end = 1U + (rule->major >= 0) + (rule->minor >= 0) + INSNS_ACT, n = 0;
	int type = rule->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
	int bits = access_bits(rule->access);

	at[n] = jump(BPF_JNE, TYPE, type, (int)(end - n - 1));
	n++;
	if (rule->major >= 0) {
		at[n] = jump(BPF_JNE, MAJOR, (int)rule->major, (int)(end - n - 1));
		n++;
	}
	if (rule->minor >= 0) {
		at[n] = jump(BPF_JNE, MINOR, (int)rule->minor, (int)(end - n - 1));
		n++;
	}
	if (rule->allow) {
		at[n++] = alu(BPF_AND, LEFT, ALL_ACCESS & ~bits);
		at[n++] = jump(BPF_JNE, LEFT, 0, 2);
	} else {
		at[n++] = jump(BPF_JSET, LEFT, bits, 1);
		at[n++] = jump(BPF_JA, 0, 0, 2);
	}
	at[n++] = answer(rule->allow);
	at[n++] = leave();
	return n;
}

int device_program(const struct device_rules *rules, struct bpf_insn **program, size_t *count,
                   struct err *e)
{
	struct bpf_insn *made = calloc(INSNS_FIRST + INSNS_RULE * rules->count + INSNS_LAST,
	                               sizeof *made);
	size_t n = 0;

	if (!made)
		return err_set(e, ENOMEM, "linux.resources.devices: no memory");
	made[n++] = load(TYPE, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	made[n++] = load(LEFT, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	made[n++] = load(MAJOR, offsetof(struct bpf_cgroup_dev_ctx, major));
	made[n++] = load(MINOR, offsetof(struct bpf_cgroup_dev_ctx, minor));
	made[n++] = alu(BPF_AND, TYPE, 0xffff);
	made[n++] = alu(BPF_RSH, LEFT, 16);
	for (size_t i = rules->count; i > 0; i--)
		n += add_rule(made + n, &rules->items[i - 1]);
	made[n++] = answer(0);
	made[n++] = leave();
	*program = made;
	*count = n;
	return 0;
}

/* ---- bpf(2) ---- */

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static uint64_t address(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static int load_program(const struct device_rules *rules, struct err *e)
{
	static const char license[] = "Apache-2.0";
	scoped_mem struct bpf_insn *program = NULL;
	union bpf_attr attr = {0};
	size_t count;
	int fd;

	TRY(device_program(rules, &program, &count, e));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = address(program);
	attr.insn_cnt = (uint32_t)count;
	attr.license = address(license);
	memcpy(attr.prog_name, program_name, sizeof program_name);
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd >= 0)
		return fd;
	err_sys(e, "linux.resources.devices: loading the device filter, %zu instructions", count);
	if (e->code == EINVAL || e->code == ENOSYS)
		return err_hint(e, "this kernel was built without CONFIG_CGROUP_BPF, and without a "
		                   "filter devices cannot be kept from the container");
	if (e->code == E2BIG)
		return err_hint(e, "give fewer rules");
	return err_hint(e, "it takes CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN, in the host's "
	                   "user namespace");
}

static bool is_ours(int programfd)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr = {0};

	attr.info.bpf_fd = (uint32_t)programfd;
	attr.info.info_len = sizeof info;
	attr.info.info = address(&info);
	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 &&
	       strncmp(info.name, program_name, sizeof info.name) == 0;
}

/* The ids of what is attached; none where the kernel does not say. */
static uint32_t attached(int groupfd, uint32_t ids[ATTACHED_MAX])
{
	union bpf_attr attr = {0};

	attr.query.target_fd = (uint32_t)groupfd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.prog_ids = address(ids);
	attr.query.prog_cnt = ATTACHED_MAX;
	return bpf(BPF_PROG_QUERY, &attr) == 0 ? attr.query.prog_cnt : 0;
}

static int detach_ours(int groupfd, uint32_t id, struct err *e)
{
	union bpf_attr by_id = {.prog_id = id}, attr = {0};
	scoped_fd fd = bpf(BPF_PROG_GET_FD_BY_ID, &by_id);

	if (fd < 0 || !is_ours(fd))
		return 0;
	attr.target_fd = (uint32_t)groupfd;
	attr.attach_bpf_fd = (uint32_t)fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	if (bpf(BPF_PROG_DETACH, &attr) < 0)
		return err_sys(e, "linux.resources.devices: taking the device filter before away");
	return 0;
}

/* All that are attached must say yes: while both are, nothing is allowed that one of them denies. */
int device_program_attach(int groupfd, const struct device_rules *rules, struct err *e)
{
	uint32_t ids[ATTACHED_MAX], count = attached(groupfd, ids);

	if (!device_rules_allow_all(rules)) {
		scoped_fd fd = load_program(rules, e);
		union bpf_attr attr = {0};

		TRY(fd);
		attr.target_fd = (uint32_t)groupfd;
		attr.attach_bpf_fd = (uint32_t)fd;
		attr.attach_type = BPF_CGROUP_DEVICE;
		attr.attach_flags = BPF_F_ALLOW_MULTI;
		if (bpf(BPF_PROG_ATTACH, &attr) < 0) {
			err_sys(e, "linux.resources.devices: attaching the device filter");
			return err_hint(e, "a group above may have one that allows no other below "
			                   "it (see bpftool cgroup tree)");
		}
	}
	for (uint32_t i = 0; i < count; i++)
		TRY(detach_ours(groupfd, ids[i], e));
	return 0;
}
