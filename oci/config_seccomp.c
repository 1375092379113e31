/* SPDX-License-Identifier: Apache-2.0 */
/* "linux.seccomp" of config.json ("Seccomp" in config-linux.md). */
#include "oci/parts.h"
#include "oci/texts.h"

#include <linux/seccomp.h>

static const struct shape_word actions[] = {
	{"SCMP_ACT_KILL", OCI_ACT_KILL_THREAD},
	{"SCMP_ACT_KILL_PROCESS", OCI_ACT_KILL_PROCESS},
	{"SCMP_ACT_KILL_THREAD", OCI_ACT_KILL_THREAD},
	{"SCMP_ACT_TRAP", OCI_ACT_TRAP},
	{"SCMP_ACT_ERRNO", OCI_ACT_ERRNO},
	{"SCMP_ACT_TRACE", OCI_ACT_TRACE},
	{"SCMP_ACT_ALLOW", OCI_ACT_ALLOW},
	{"SCMP_ACT_LOG", OCI_ACT_LOG},
	{"SCMP_ACT_NOTIFY", OCI_ACT_NOTIFY},
	{NULL, 0},
};

static const struct shape_word operators[] = {
	{"SCMP_CMP_NE", OCI_CMP_NE},
	{"SCMP_CMP_LT", OCI_CMP_LT},
	{"SCMP_CMP_LE", OCI_CMP_LE},
	{"SCMP_CMP_EQ", OCI_CMP_EQ},
	{"SCMP_CMP_GE", OCI_CMP_GE},
	{"SCMP_CMP_GT", OCI_CMP_GT},
	{"SCMP_CMP_MASKED_EQ", OCI_CMP_MASKED_EQ},
	{NULL, 0},
};

#define ARCH(name)                                                                                 \
	{                                                                                          \
		"SCMP_ARCH_" #name, UINT64_C(1) << OCI_ARCH_##name                                 \
	}
static const struct shape_word architectures[] = {
	ARCH(X86),         ARCH(X86_64),   ARCH(X32),         ARCH(ARM),    ARCH(AARCH64),
	ARCH(LOONGARCH64), ARCH(M68K),     ARCH(MIPS),        ARCH(MIPS64), ARCH(MIPS64N32),
	ARCH(MIPSEL),      ARCH(MIPSEL64), ARCH(MIPSEL64N32), ARCH(PPC),    ARCH(PPC64),
	ARCH(PPC64LE),     ARCH(S390),     ARCH(S390X),       ARCH(SH),     ARCH(SHEB),
	ARCH(PARISC),      ARCH(PARISC64), ARCH(RISCV64),     {NULL, 0},
};

static const struct shape_word filter_flags[] = {
	{"SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC},
	{"SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG},
	{"SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW},
	{"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV},
	{NULL, 0},
};

static const struct shape_field arg_fields[] = {
	FIELD_U32(struct oci_seccomp_arg, "index", index, 5, .required = true),
	FIELD_U64(struct oci_seccomp_arg, "value", value, UINT64_MAX, .required = true),
	FIELD_U64(struct oci_seccomp_arg, "valueTwo", value_two, UINT64_MAX),
	FIELD_WORD(struct oci_seccomp_arg, "op", op, operators, .required = true),
	FIELD_END,
};
static const struct shape arg_shape = {arg_fields, sizeof(struct oci_seccomp_arg), NULL};

/* An errno where the action cannot give one back is an error by the spec. */
static int errno_check(const struct oci_uint *number, int action, const struct shape_place *place,
                       const char *key, struct err *e)
{
	if (number->set && action != OCI_ACT_ERRNO && action != OCI_ACT_TRACE)
		return shape_refuse(place, key, e,
		                    "only the actions SCMP_ACT_ERRNO and SCMP_ACT_TRACE have one");
	return 0;
}

static int syscall_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_syscall *call = object;

	if (call->names.count == 0)
		return shape_refuse(place, "names", e, "must have at least one entry");
	return errno_check(&call->errno_ret, call->action, place, "errnoRet", e);
}

static const struct shape_field syscall_fields[] = {
	FIELD_TEXTS(struct oci_syscall, "names", names, .required = true),
	FIELD_WORD(struct oci_syscall, "action", action, actions, .required = true),
	FIELD_MAYBE_U64(struct oci_syscall, "errnoRet", errno_ret, UINT32_MAX),
	FIELD_OBJECTS(struct oci_syscall, "args", args, struct oci_seccomp_arg, arg_shape),
	FIELD_END,
};
static const struct shape syscall_shape = {syscall_fields, sizeof(struct oci_syscall),
                                           syscall_check};

static int seccomp_check(void *object, const struct shape_place *place, struct err *e)
{
	const struct oci_seccomp *seccomp = object;

	if (seccomp->listener_metadata && !seccomp->listener_path)
		return shape_refuse(place, "listenerMetadata", e,
		                    "must not be there without \"listenerPath\"");
	return errno_check(&seccomp->default_errno_ret, seccomp->default_action, place,
	                   "defaultErrnoRet", e);
}

static const struct shape_field seccomp_fields[] = {
	FIELD_WORD(struct oci_seccomp, "defaultAction", default_action, actions, .required = true),
	FIELD_MAYBE_U64(struct oci_seccomp, "defaultErrnoRet", default_errno_ret, UINT32_MAX),
	FIELD_FLAGS(struct oci_seccomp, "flags", flags, filter_flags),
	FIELD_TEXT(struct oci_seccomp, "listenerPath", listener_path),
	FIELD_TEXT(struct oci_seccomp, "listenerMetadata", listener_metadata),
	FIELD_FLAGS(struct oci_seccomp, "architectures", architectures, architectures),
	FIELD_OBJECTS(struct oci_seccomp, "syscalls", syscalls, struct oci_syscall, syscall_shape),
	FIELD_END,
};
const struct shape oci_shape_seccomp = {seccomp_fields, sizeof(struct oci_seccomp), seccomp_check};
