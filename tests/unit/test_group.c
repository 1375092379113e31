/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container's group on the hierarchies of the kernel that this runs on: hybrid natively, then once more
 * in a mount namespace that shows v1 alone, and pure v2 in tests/vm/uml-run. All groups are below one of
 * its own, which it removes. What is pure (paths, conversions, device rules) is tried with tables, the
 * device program in a small interpreter.
 */
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "base/scoped.h"
#include "container/group_internal.h"

enum { MIB = 1 << 20, WAIT_MS = 10000 };

static const char v1_alone[] = "TEST_GROUP_V1_ALONE";
static struct group_mounts mounts;
static char parent[64];
static struct err e;

#define assert_ok(expr)                                                                            \
	do {                                                                                       \
		if ((expr) < 0)                                                                    \
			fail_msg("%s: %s", #expr, e.text);                                         \
	} while (0)

static void assert_text_has(const char *part)
{
	if (!strstr(e.text, part))
		fail_msg("\"%s\" lacks \"%s\"", e.text, part);
}

#define SET(number)                                                                                \
	{                                                                                          \
		.set = true, .value = (number)                                                     \
	}

/* ---- where ---- */

static const char v1_lines[] = "3:cpu,cpuacct:/a/b\n2:memory:/\n1:name=systemd:/a\n0::/x:y/z\n";

struct place_case {
	const char *mountinfo;
	const char *controllers, *point, *own; /* of the first one that is found */
	int count;
};

static const struct place_case place_cases[] = {
	{"1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n", "", "/cg", "x:y/z", 1},
	{"1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
         "2 0 0:2 / /cg/v2 rw shared:1 - cgroup2 cgroup2 rw\n",
         "cpu,cpuacct", "/cg/cpu", "a/b", 2},
	/* the option order is the kernel's */
	{"1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpuacct,cpu\n", "cpu,cpuacct", "/cg/cpu", "a/b",
         1},
	/* bound in by an engine: a part of the hierarchy */
	{"1 0 0:1 /a /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", "cpu,cpuacct", "/cg/cpu", "b",
         1},
	{"1 0 0:1 /a/b /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", "cpu,cpuacct", "/cg/cpu", "",
         1},
	{"1 0 0:1 /other /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", "cpu,cpuacct", "/cg/cpu", "",
         1},
	/* a whole one first, then that which we are in */
	{"1 0 0:1 /a /one rw - cgroup cgroup rw,memory\n"
         "1 0 0:1 / /two rw - cgroup cgroup rw,memory\n",
         "memory", "/two", "", 1},
	{"1 0 0:1 /other /one rw - cgroup2 cgroup2 rw\n"
         "1 0 0:1 /x:y /two rw - cgroup2 cgroup2 rw\n",
         "", "/two", "z", 1},
	{"1 0 0:1 / /cg/systemd rw - cgroup cgroup rw,xattr,name=systemd\n", "name=systemd",
         "/cg/systemd", "a", 1},
	{"1 0 0:1 / /a\\040b rw - cgroup2 cgroup2 rw\n", "", "/a b", "x:y/z", 1},
	/* nothing that we know a group of */
	{"1 0 0:1 / /cg/pids rw - cgroup cgroup rw,pids\n", NULL, NULL, NULL, -ENOTSUP},
	{"1 0 0:1 / /cg/tab\\011 rw - cgroup2 cgroup2 rw\n", NULL, NULL, NULL, -ENOTSUP},
	{"1 0 0:1 /sys\\ /cg rw - cgroup2 cgroup2 rw\n", NULL, NULL, NULL, -EPROTO},
	{"", NULL, NULL, NULL, -ENOTSUP},
};

static void test_mounts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof place_cases / sizeof *place_cases; i++) {
		const struct place_case *c = &place_cases[i];
		struct group_mounts found;
		int r = group_mounts_parse(&found, strdup(v1_lines), strdup(c->mountinfo), false,
		                           &e);

		if (c->count < 0) {
			assert_int_equal(r, c->count);
		} else {
			assert_ok(r);
			assert_int_equal(found.count, c->count);
			assert_string_equal(found.items[0].controllers, c->controllers);
			assert_string_equal(found.items[0].point, c->point);
			assert_string_equal(found.items[0].own, c->own);
		}
		group_mounts_release(&found);
	}
}

static void test_paths(void **state)
{
	static const struct {
		const char *own, *path, *want;
	} cases[] = {
		{"", NULL, "agentdock/ID"},
		{"me/sub", "", "agentdock/ID"},
		{"", "/a/b", "a/b"},
		{"me/sub", "//a//b/", "a/b"},
		{"me/sub", "a/b", "me/sub/a/b"},
		{"", "a", "a"},
		{"", "/a/...b", "a/...b"},
		{"", "/", NULL},
		{"", "//", NULL},
		{"", "/a/../b", NULL},
		{"", "..", NULL},
		{"me", ".", NULL},
		{"", "/a/.", NULL},
		{"", "/a\nb", NULL},
		{"", "/a\tb", NULL},
		{"", "/a\x7f", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct group_mount mount = {.own = cases[i].own};
		scoped_mem char *path = NULL;
		int r = group_path_below(&mount, cases[i].path, "ID", &path, &e);

		if (cases[i].want) {
			assert_ok(r);
			assert_string_equal(path, cases[i].want);
		} else {
			assert_int_equal(r, -EINVAL);
			assert_text_has("linux.cgroupsPath");
		}
	}
}

static void test_systemd_names(void **state)
{
	static const struct {
		const char *given, *path, *unit;
	} cases[] = {
		{"system.slice:podman:abc", "system.slice", "podman-abc.scope"},
		{"a-b-c.slice:p:n", "a.slice/a-b.slice/a-b-c.slice", "p-n.scope"},
		{"-.slice:p:n", "", "p-n.scope"},
		{":p:n", "system.slice", "p-n.scope"},
		{"::", "system.slice", "ID.scope"},
		{"machine.slice::n", "machine.slice", "n.scope"},
		{"machine.slice:p:", "machine.slice", "p-ID.scope"},
		{NULL, "system.slice", "agentdock-ID.scope"},
		{"", "system.slice", "agentdock-ID.scope"},
		{"/a/b", NULL, NULL},
		{"a.slice:p", NULL, NULL},
		{"a.slice:p:n:m", NULL, NULL},
		{"a.scope:p:n", NULL, NULL},
		{"a--b.slice:p:n", NULL, NULL},
		{"-a.slice:p:n", NULL, NULL},
		{"a-.slice:p:n", NULL, NULL},
		{".slice:p:n", NULL, NULL},
		{"../a.slice:p:n", NULL, NULL},
		{"a.slice:p:../n", NULL, NULL},
		{"a.slice:p:n.slice", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		scoped_mem char *path = NULL, *unit = NULL;
		int r = group_systemd_path(cases[i].given, "ID", &path, &unit, &e);

		if (!cases[i].path) {
			assert_int_equal(r, -EINVAL);
			assert_text_has("linux.cgroupsPath");
			continue;
		}
		assert_ok(r);
		assert_string_equal(path, cases[i].path);
		assert_string_equal(unit, cases[i].unit);
	}
}

static void test_conversions(void **state)
{
	static const uint64_t shares[][2] = {{0, 1},          {2, 1},           {3, 2},
	                                     {102, 17},       {512, 59},        {1000, 99},
	                                     {1024, 100},     {2000, 170},      {2048, 174},
	                                     {262144, 10000}, {1u << 31, 10000}};
	static const uint64_t io[][2] = {{10, 1}, {100, 910}, {500, 4950}, {1000, 10000}, {1, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
		if (group_weight_of_shares(shares[i][0]) != shares[i][1])
			fail_msg("%" PRIu64 " shares: %" PRIu64 ", not %" PRIu64, shares[i][0],
			         group_weight_of_shares(shares[i][0]), shares[i][1]);
	for (size_t i = 0; i < sizeof io / sizeof *io; i++)
		assert_int_equal(group_weight_of_block_io(io[i][0]), io[i][1]);
}

static void test_lists(void **state)
{
	(void)state;
	assert_true(group_list_within("0-1", "0-3"));
	assert_true(group_list_within("1,3\n", "0-1,3-4"));
	assert_true(group_list_within("7", "7"));
	assert_false(group_list_within("0-4", "0-3"));
	assert_false(group_list_within("2", "0-1,3"));
	assert_false(group_list_within("", "0-3"));
	assert_false(group_list_within("\n", "0-3"));
}

/* ---- devices, pure ---- */

struct access {
	char type;
	uint32_t major, minor;
	unsigned char bits;
};

/* What the document means: each bit of an access by the last rule that has it. */
static bool model(const struct device_rules *rules, const struct access *access)
{
	for (unsigned bit = 1; bit <= DEVICE_WRITE; bit <<= 1) {
		bool allowed = false;

		for (size_t i = 0; i < rules->count && (access->bits & bit); i++) {
			const struct device_rule *rule = &rules->items[i];

			if (rule->type == access->type && (rule->access & bit) &&
			    (rule->major < 0 || rule->major == access->major) &&
			    (rule->minor < 0 || rule->minor == access->minor))
				allowed = rule->allow;
		}
		if ((access->bits & bit) && !allowed)
			return false;
	}
	return true;
}

static bool jumps(const struct bpf_insn *insn, uint64_t value)
{
	switch (BPF_OP(insn->code)) {
	case BPF_JNE:
		return value != (uint64_t)(int64_t)insn->imm;
	case BPF_JSET:
		return (value & (uint64_t)(int64_t)insn->imm) != 0;
	default:
		return true;
	}
}

static uint64_t calculate(const struct bpf_insn *insn, uint64_t value)
{
	switch (BPF_OP(insn->code)) {
	case BPF_AND:
		return (uint32_t)value & (uint32_t)insn->imm;
	case BPF_RSH:
		return (uint32_t)value >> insn->imm;
	default:
		assert_int_equal(BPF_OP(insn->code), BPF_MOV);
		return (uint64_t)(int64_t)insn->imm;
	}
}

/* The instructions that device_program uses, and no others. */
static bool interpret(const struct bpf_insn *program, size_t count,
                      const struct bpf_cgroup_dev_ctx *context)
{
	uint64_t registers[16] = {0};

	for (size_t at = 0; at < count; at++) {
		const struct bpf_insn *insn = &program[at];
		uint64_t *to = &registers[insn->dst_reg];

		switch (BPF_CLASS(insn->code)) {
		case BPF_LDX:
			*to = *(const uint32_t *)(const void *)((const char *)context + insn->off);
			break;
		case BPF_ALU:
		case BPF_ALU64:
			*to = calculate(insn, *to);
			break;
		default:
			assert_int_equal(BPF_CLASS(insn->code), BPF_JMP);
			if (BPF_OP(insn->code) == BPF_EXIT)
				return registers[0];
			if (jumps(insn, *to))
				at += (size_t)insn->off;
		}
	}
	fail_msg("the program has no end");
	return false;
}

static bool by_program(const struct bpf_insn *program, size_t count, const struct access *access)
{
	struct bpf_cgroup_dev_ctx context = {
		.access_type = (uint32_t)access->bits << 16 |
	                       (access->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR),
		.major = access->major,
		.minor = access->minor,
	};

	return interpret(program, count, &context);
}

/* As the kernel has it: one exception must cover all of an access, or any part of it. */
static bool by_set(const struct device_set *set, const struct access *access)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct device_rule *item = &set->items[i];

		if (item->type != access->type ||
		    (item->major >= 0 && item->major != access->major) ||
		    (item->minor >= 0 && item->minor != access->minor))
			continue;
		if (set->allow ? (item->access & access->bits)
		               : (access->bits & ~item->access) == 0)
			return !set->allow;
	}
	return set->allow;
}

static void compare(const struct device_rules *rules, int *sets)
{
	scoped_mem struct bpf_insn *program = NULL;
	struct device_set set = {0};
	size_t count;
	bool has_set;

	assert_ok(device_program(rules, &program, &count, &e));
	has_set = device_set_make(rules, &set, &e) == 0;
	*sets += has_set;
	for (unsigned i = 0; i < 2 * 3 * 3 * 7; i++) {
		struct access access = {i % 2 ? 'b' : 'c', i / 2 % 3, i / 6 % 3,
		                        (unsigned char)(1 + i / 18)};
		bool want = model(rules, &access);

		assert_int_equal(by_program(program, count, &access), want);
		/* of two that cross (1:* and *:3) neither allows what takes both */
		if (has_set && (!want || !(access.bits & (access.bits - 1))))
			assert_int_equal(by_set(&set, &access), want);
	}
	free(set.items);
}

static void test_device_rules(void **state)
{
	uint64_t seed = 88172645463325252;
	int sets = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct device_rule items[6];
		struct device_rules rules = {items, 0};

		for (size_t i = 0; i < 6; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			items[i] = (struct device_rule){
				.type = seed & 1 ? 'c' : 'b',
				.major = (int64_t)(seed >> 8 & 3) - 1,
				.minor = (int64_t)(seed >> 16 & 3) - 1,
				.allow = seed >> 24 & 1,
				.access = (unsigned char)(seed >> 32 & 7 ? seed >> 32 & 7 : 7),
			};
		}
		rules.count = 1 + (size_t)round % 6;
		compare(&rules, &sets);
	}
	/* enough of them can be had on v1 to have tried that as well */
	assert_true(sets > 2000);
}

static void test_document_rules(void **state)
{
	static struct oci_device_rule items[] = {
		{.allow = false, .type = 'a', .access = "rwm"},
		{.allow = true, .type = 'c', .major = SET(10), .minor = SET(229), .access = "rw"},
		{.allow = true, .type = 'b', .major = SET(8), .minor = SET(-1), .access = "rwm"},
	};
	struct oci_resources resources = {.devices = {items, 3}};
	struct device_rules rules;
	struct access fuse = {'c', 10, 229, DEVICE_READ | DEVICE_WRITE}, disk = {'b', 8, 3, 7},
		      null = {'c', 1, 3, 7}, tun = {'c', 10, 200, DEVICE_READ},
		      console = {'c', 5, 1, DEVICE_READ}, kmsg = {'c', 1, 11, DEVICE_READ};

	(void)state;
	assert_ok(device_rules_list(&resources, &rules, &e));
	assert_true(model(&rules, &fuse) && model(&rules, &disk) && model(&rules, &null));
	assert_false(model(&rules, &tun) || model(&rules, &console) || model(&rules, &kmsg));
	tun.bits = DEVICE_MKNOD;
	assert_true(model(&rules, &tun));
	assert_false(device_rules_allow_all(&rules));
	free(rules.items);

	assert_ok(device_rules_list(NULL, &rules, &e));
	assert_true(model(&rules, &null));
	assert_false(model(&rules, &disk));
	free(rules.items);

	items[0].allow = true;
	resources.devices.count = 1;
	assert_ok(device_rules_list(&resources, &rules, &e));
	assert_true(device_rules_allow_all(&rules));
	free(rules.items);

	items[1].major.value = INT64_C(0x10000000a);
	resources.devices.count = 2;
	assert_int_equal(device_rules_list(&resources, &rules, &e), -ERANGE);
	assert_text_has("linux.resources.devices[1]");
	items[1].major.value = 10;
	items[0].allow = false;
}

/* The document has the last word about the default devices too, but for what it denies at first. */
static void test_document_after_defaults(void **state)
{
	static struct oci_device_rule items[] = {
		{.allow = false, .type = 'a'},
		{.allow = false, .type = 'c', .major = SET(10), .minor = SET(229), .access = "rwm"},
		{.allow = false, .type = 'c', .major = SET(1), .minor = SET(3), .access = "w"},
		{.allow = true, .type = 'c', .major = SET(1), .minor = SET(11)},
	};
	struct oci_resources resources = {.devices = {items, 4}};
	struct access null = {'c', 1, 3, DEVICE_READ}, kmsg = {'c', 1, 11, DEVICE_READ},
		      fuse = {'c', 10, 229, DEVICE_MKNOD};
	struct device_rules rules;
	struct device_set set;

	(void)state;
	assert_ok(device_rules_list(&resources, &rules, &e));
	assert_true(model(&rules, &null));
	null.bits = DEVICE_WRITE;
	assert_false(model(&rules, &null) || model(&rules, &kmsg) || model(&rules, &fuse));
	/* v1 lets a node be made that nobody can open */
	assert_ok(device_set_make(&rules, &set, &e));
	assert_false(by_set(&set, &null));
	assert_true(by_set(&set, &fuse));
	fuse.bits = DEVICE_READ;
	assert_false(by_set(&set, &fuse));
	free(set.items);
	free(rules.items);

	/* but none that is to be opened, nor made */
	items[3] = items[1];
	items[3].allow = true;
	items[3].access = "r";
	assert_ok(device_rules_list(&resources, &rules, &e));
	assert_int_equal(device_set_make(&rules, &set, &e), -ENOTSUP);
	free(rules.items);
	items[1].access = "m";
	resources.devices.count = 2;
	assert_ok(device_rules_list(&resources, &rules, &e));
	assert_int_equal(device_set_make(&rules, &set, &e), -ENOTSUP);
	free(rules.items);
}

/* ---- real groups ---- */

static int make_at(struct group *group, enum group_manager manager, const char *path)
{
	int r;

	group_init(group);
	r = group_place(group, manager, path, "ID", &e);
	return r < 0 ? r : group_make(group, NULL, &e);
}

static void make_named(struct group *group, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "/%s/%s", parent, name);
	assert_ok(make_at(group, GROUP_CGROUPFS, path));
}

static void end(struct group *group)
{
	assert_ok(group_kill(group, &e));
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_ok(group_wait_empty(group, WAIT_MS, &e));
	assert_ok(group_remove(group, &e));
}

typedef int child_main(void *data);

/* Starts MAIN as a process of the group, in each hierarchy of it. */
static pid_t start(const struct group *group, child_main *main_, void *data)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	int gate[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	if (group->v2fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)group->v2fd;
	}
	pid = process_clone3(&args);
	assert_true(pid >= 0);
	if (pid == 0) {
		int r = group_join(group, &e);

		prctl(PR_SET_PDEATHSIG, SIGKILL);

		close(gate[0]);
		if (r < 0 || write(gate[1], "", 1) != 1)
			_exit(99);
		close(gate[1]);
		_exit(main_(data));
	}
	close(gate[1]);
	assert_int_equal(read(gate[0], &byte, 1), 1);
	close(gate[0]);
	return pid;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int main_sleep(void *data)
{
	(void)data;
	pause();
	return 0;
}

static void assert_file(const struct group *group, const char *controller, const char *file,
                        const char *want)
{
	const struct group_hierarchy *of = group_of(group, controller);
	char text[CONTROL_TEXT_SIZE];
	int r = control_read(of->fd, file, text, sizeof text);

	if (r < 0)
		fail_msg("%s: %s", file, strerror(-r));
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, want) != 0)
		fail_msg("%s is \"%s\", not \"%s\"", file, text, want);
}

/* Is CONTROLLER on this host at all? */
static bool has(const struct group *group, const char *controller)
{
	char text[CONTROL_TEXT_SIZE];

	if (group_v1(group, controller))
		return true;
	return group_v2(group) &&
	       control_read(group_v2(group)->fd, "cgroup.controllers", text, sizeof text) >= 0 &&
	       control_has_word(text, controller);
}

static void unmark(const struct group *group)
{
	int fd = group_deciding(group)->fd;

	assert_int_equal(fremovexattr(fd, "trusted.agentdock") & fremovexattr(fd, "user.agentdock"),
	                 0);
}

static void test_life(void **state)
{
	struct group group, opened, again;
	scoped_mem char *saved = NULL, *saved_again = NULL, *path = NULL;

	(void)state;
	make_named(&group, "life/deep");
	assert_int_equal(group.count, mounts.count);
	assert_ok(group_save(&group, &saved, &e));
	assert_ok(group_open(&opened, saved, &e));
	assert_int_equal(opened.count, group.count);
	assert_int_equal(opened.v2fd >= 0, group.v2fd >= 0);
	assert_ok(group_save(&opened, &saved_again, &e));
	assert_string_equal(saved, saved_again);
	group_release(&opened);

	/* one that has a mark is another's */
	assert_true(asprintf(&path, "/%s/life/deep", parent) > 0);
	group_init(&again);
	assert_int_equal(make_at(&again, GROUP_CGROUPFS, path), -EBUSY);
	assert_text_has("is another container's");
	/* an empty one without is taken, and not removed when that fails, nor does it stay marked */
	unmark(&group);
	assert_ok(group_open(&opened, saved, &e));
	assert_int_equal(opened.whose, GROUP_UNMARKED);
	group_release(&opened);
	group_init(&again);
	assert_ok(make_at(&again, GROUP_CGROUPFS, path));
	assert_ok(group_open(&opened, saved, &e));
	assert_int_equal(opened.whose, GROUP_OTHERS);
	group_release(&opened);
	unmark(&again);
	group_release(&again);
	start(&group, main_sleep, NULL);
	for (int i = 0; i < 2; i++) {
		group_init(&again);
		assert_int_equal(make_at(&again, GROUP_CGROUPFS, path), -EBUSY);
		assert_text_has("has processes");
	}
	end(&group);

	/* gone: no error, nobody in it */
	assert_ok(group_open(&opened, saved, &e));
	assert_ok(group_kill(&opened, &e));
	assert_ok(group_signal(&opened, SIGTERM, &e));
	assert_ok(group_wait_empty(&opened, 0, &e));
	assert_ok(group_remove(&opened, &e));
}

static void test_processes(void **state)
{
	struct group group, below;
	scoped_mem char *saved = NULL;
	scoped_mem pid_t *pids = NULL;
	size_t count;
	pid_t first, second;

	(void)state;
	make_named(&group, "processes");
	first = start(&group, main_sleep, NULL);
	assert_ok(group_save(&group, &saved, &e));
	assert_ok(group_open(&below, saved, &e));
	assert_int_equal(group_descend(&below, "sub", &e), -ENOENT);
	assert_text_has("sub");
	assert_int_equal(group_descend(&below, "../processes", &e), -EINVAL);
	for (int i = 0; i < group.count; i++)
		if (!*group.hierarchies[i].controllers ||
		    !has_option(group.hierarchies[i].controllers, "cpuset"))
			mkdirat(group.hierarchies[i].fd, "sub", 0755);
	assert_ok(group_descend(&below, "sub", &e));
	assert_ok(group_prepare_join(&below, &e));
	second = start(&below, main_sleep, NULL);
	assert_ok(group_processes(&below, &pids, &count, &e));
	assert_int_equal(count, 1);
	assert_int_equal(pids[0], second);
	free(take_mem(&pids));
	group_release(&below);

	assert_ok(group_processes(&group, &pids, &count, &e));
	assert_int_equal(count, 2);
	assert_true((pids[0] == first && pids[1] == second) ||
	            (pids[0] == second && pids[1] == first));
	assert_ok(group_signal(&group, SIGTERM, &e));
	assert_int_equal(WTERMSIG(status_of(first)), SIGTERM);
	assert_int_equal(WTERMSIG(status_of(second)), SIGTERM);
	assert_ok(group_wait_empty(&group, WAIT_MS, &e));
	/* with a group below it */
	assert_ok(group_remove(&group, &e));
}

/* Who is in a group may make it deep. */
static void test_deep(void **state)
{
	enum { DEPTH = 300 };
	struct group group;
	struct members members;
	scoped_mem pid_t *pids = NULL;
	size_t count;
	int fd, next;
	char text[16];
	pid_t pid;

	(void)state;
	make_named(&group, "deep");
	members = group_members(&group);
	pid = start(&group, main_sleep, NULL);
	fd = openat(members.fd, ".", O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	snprintf(text, sizeof text, "%d", pid);
	assert_int_equal(control_write(fd, "cgroup.procs", text), 0);
	close(fd);
	assert_ok(group_processes(&group, &pids, &count, &e));
	assert_int_equal(count, 1);
	assert_int_equal(pids[0], pid);
	end(&group);
}

static void test_freeze(void **state)
{
	struct group group, again;
	scoped_mem char *path = NULL;
	uint64_t start_us;
	bool frozen;
	pid_t pid;

	(void)state;
	make_named(&group, "freeze");
	assert_ok(group_is_frozen(&group, &frozen, &e));
	assert_false(frozen);
	pid = start(&group, main_sleep, NULL);
	assert_ok(group_freeze(&group, true, &e));
	assert_ok(group_is_frozen(&group, &frozen, &e));
	assert_true(frozen);
	assert_ok(group_freeze(&group, false, &e));
	assert_ok(group_is_frozen(&group, &frozen, &e));
	assert_false(frozen);

	/* R4: killed while it stands still */
	assert_ok(group_freeze(&group, true, &e));
	start_us = clock_us();
	assert_ok(group_kill(&group, &e));
	assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
	assert_ok(group_wait_empty(&group, WAIT_MS, &e));
	assert_true(clock_us() - start_us < 1000000);

	/* R4: nothing can start in one that is frozen */
	assert_ok(group_freeze(&group, true, &e));
	unmark(&group);
	assert_true(asprintf(&path, "/%s/freeze", parent) > 0);
	group_init(&again);
	assert_int_equal(make_at(&again, GROUP_CGROUPFS, path), -EBUSY);
	assert_text_has("frozen");
	free(take_mem(&path));
	assert_true(asprintf(&path, "/%s/freeze/below", parent) > 0);
	assert_int_equal(make_at(&again, GROUP_CGROUPFS, path), -EBUSY);
	assert_text_has("frozen");
	assert_ok(group_freeze(&group, false, &e));
	assert_ok(group_remove(&group, &e));
}

static void test_memory(void **state)
{
	struct oci_memory memory = {
		.limit = SET(64 * MIB), .swap = SET(96 * MIB), .reservation = SET(32 * MIB)};
	struct oci_resources resources = {.memory = &memory};
	struct group group;
	bool v1;

	(void)state;
	make_named(&group, "memory");
	v1 = group_v1(&group, "memory");
	assert_ok(group_set(&group, &resources, false, &e));
	if (v1) {
		assert_file(&group, "memory", "memory.limit_in_bytes", "67108864");
		assert_file(&group, "memory", "memory.memsw.limit_in_bytes", "100663296");
		assert_file(&group, "memory", "memory.soft_limit_in_bytes", "33554432");
	} else {
		assert_file(&group, "memory", "memory.max", "67108864");
		assert_file(&group, "memory", "memory.low", "33554432");
	}

	/* above what memory+swap is now, and below it */
	memory = (struct oci_memory){.limit = SET(128 * MIB), .swap = SET(128 * MIB)};
	assert_ok(group_set(&group, &resources, true, &e));
	memory = (struct oci_memory){.limit = SET(16 * MIB), .swap = SET(32 * MIB)};
	assert_ok(group_set(&group, &resources, true, &e));
	assert_file(&group, "memory", v1 ? "memory.limit_in_bytes" : "memory.max", "16777216");
	memory = (struct oci_memory){.limit = SET(-1)};
	assert_ok(group_set(&group, &resources, true, &e));
	assert_file(&group, "memory", v1 ? "memory.limit_in_bytes" : "memory.max",
	            v1 ? "9223372036854771712" : "max");

	memory = (struct oci_memory){.limit = SET(0), .swap = SET(0), .kernel = SET(-1)};
	assert_ok(group_set(&group, &resources, false, &e));
	memory = (struct oci_memory){.limit = SET(32 * MIB), .swap = SET(16 * MIB)};
	assert_int_equal(group_set(&group, &resources, false, &e), -EINVAL);
	assert_text_has("linux.resources.memory.swap");
	memory = (struct oci_memory){.kernel = SET(16 * MIB)};
	assert_true(group_set(&group, &resources, false, &e) < 0);
	assert_text_has("linux.resources.memory.kernel");
	memory = (struct oci_memory){.swappiness = SET(10)};
	if (v1) {
		assert_ok(group_set(&group, &resources, false, &e));
		assert_file(&group, "memory", "memory.swappiness", "10");
	} else {
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOTSUP);
		assert_text_has("linux.resources.memory.swappiness: cgroup v2");
		memory = (struct oci_memory){.swap = SET(16 * MIB)};
		assert_int_equal(group_set(&group, &resources, false, &e), -EINVAL);
		assert_text_has("linux.resources.memory.limit");
	}
	memory = (struct oci_memory){.disable_oom_killer = SET(true)};
	assert_int_equal(group_set(&group, &resources, false, &e), v1 ? 0 : -ENOTSUP);
	end(&group);
}

static void test_cpu(void **state)
{
	struct oci_cpu cpu = {.shares = SET(1024), .quota = SET(50000), .burst = SET(10000)};
	struct oci_pids pids = {.limit = 32};
	struct oci_resources resources = {.cpu = &cpu, .pids = &pids};
	struct group group;
	bool v1;

	(void)state;
	make_named(&group, "cpu");
	v1 = group_v1(&group, "cpu");
	assert_ok(group_set(&group, &resources, false, &e));
	assert_file(&group, "pids", "pids.max", "32");
	if (v1) {
		assert_file(&group, "cpu", "cpu.shares", "1024");
		assert_file(&group, "cpu", "cpu.cfs_quota_us", "50000");
		assert_file(&group, "cpu", "cpu.cfs_burst_us", "10000");
	} else {
		assert_file(&group, "cpu", "cpu.weight", "100");
		assert_file(&group, "cpu", "cpu.max", "50000 100000");
		assert_file(&group, "cpu", "cpu.max.burst", "10000");
	}
	/* what is not said stays */
	cpu = (struct oci_cpu){.period = SET(50000)};
	pids.limit = -1;
	assert_ok(group_set(&group, &resources, true, &e));
	assert_file(&group, "pids", "pids.max", "max");
	if (v1)
		assert_file(&group, "cpu", "cpu.cfs_period_us", "50000");
	else
		assert_file(&group, "cpu", "cpu.max", "50000 50000");
	/* a quota below the burst that is there */
	cpu = (struct oci_cpu){.quota = SET(5000), .burst = SET(1000)};
	pids.limit = 0;
	assert_ok(group_set(&group, &resources, true, &e));
	assert_file(&group, "pids", "pids.max", "1");
	if (v1)
		assert_file(&group, "cpu", "cpu.cfs_quota_us", "5000");
	else
		assert_file(&group, "cpu", "cpu.max", "5000 50000");
	cpu = (struct oci_cpu){.quota = SET(-1), .idle = SET(1)};
	assert_ok(group_set(&group, &resources, true, &e));
	assert_file(&group, "cpu", "cpu.idle", "1");
	cpu = (struct oci_cpu){.shares = SET(512), .idle = SET(0)};
	assert_ok(group_set(&group, &resources, true, &e));
	assert_file(&group, "cpu", "cpu.idle", "0");

	cpu = (struct oci_cpu){.quota = SET(1)};
	assert_int_equal(group_set(&group, &resources, true, &e), -EINVAL);
	assert_text_has("linux.resources.cpu.quota: cgroup ");
	cpu = (struct oci_cpu){.realtime_runtime = SET(1000)};
	if (!v1) {
		assert_int_equal(group_set(&group, &resources, true, &e), -ENOTSUP);
		assert_text_has("linux.resources.cpu.realtimeRuntime");
	}
	end(&group);
}

static void test_cpuset(void **state)
{
	struct oci_cpu cpu = {.cpus = "0", .mems = "0"};
	struct oci_resources resources = {.cpu = &cpu};
	struct group group;

	(void)state;
	make_named(&group, "cpuset");
	if (!has(&group, "cpuset")) {
		/* R2 */
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOENT);
		assert_text_has("linux.resources.cpu.cpus");
		assert_text_has("cpuset controller");
		end(&group);
		return;
	}
	assert_ok(group_set(&group, &resources, false, &e));
	assert_file(&group, "cpuset", "cpuset.cpus", "0");
	cpu = (struct oci_cpu){.cpus = "900"};
	assert_true(group_set(&group, &resources, false, &e) < 0);
	assert_text_has("linux.resources.cpu.cpus");
	end(&group);
}

/* R2: each controller that this host has not is told by name, key and way out. */
static void test_missing(void **state)
{
	static struct oci_pair unified_pair = {"hugetlb.2MB.max", "0"};
	static struct oci_rdma rdma = {.device = "mlx5_1", .hca_handles = SET(3)};
	static struct oci_hugepage_limit huge = {"2MB", 2 * MIB};
	struct oci_network network = {.class_id = SET(1)};
	struct oci_resources resources = {.rdma = {&rdma, 1}};
	struct group group;

	(void)state;
	make_named(&group, "missing");
	if (!has(&group, "rdma")) {
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOENT);
		assert_text_has("linux.resources.rdma.mlx5_1: ");
		assert_text_has("rdma controller");
	}
	resources = (struct oci_resources){.network = &network};
	if (!group_v1(&group, "net_cls")) {
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOTSUP);
		assert_text_has("linux.resources.network.classID");
	}
	resources = (struct oci_resources){.hugepage_limits = {&huge, 1}};
	if (has(&group, "hugetlb")) {
		assert_ok(group_set(&group, &resources, false, &e));
	} else {
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOENT);
		assert_text_has("linux.resources.hugepageLimits[0]: ");
		assert_text_has("hugetlb controller");
	}
	resources = (struct oci_resources){.unified = {&unified_pair, 1}};
	if (!group_v2(&group)) {
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOTSUP);
		assert_text_has("linux.resources.unified.hugetlb.2MB.max");
	} else if (has(&group, "hugetlb")) {
		assert_ok(group_set(&group, &resources, false, &e));
		assert_file(&group, "hugetlb", "hugetlb.2MB.max", "0");
	} else {
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOENT);
	}
	end(&group);
}

static void test_unified(void **state)
{
	struct oci_pair pair = {"memory.high", "33554432"};
	struct oci_resources resources = {.unified = {&pair, 1}};
	struct group group;

	(void)state;
	make_named(&group, "unified");
	if (!group_v2(&group)) {
		end(&group);
		skip();
	}
	if (group_v1(&group, "memory")) {
		assert_int_equal(group_set(&group, &resources, false, &e), -ENOTSUP);
		assert_text_has("sits on cgroup v1");
	} else {
		assert_ok(group_set(&group, &resources, false, &e));
		assert_file(&group, "memory", "memory.high", "33554432");
	}
	pair = (struct oci_pair){"cgroup.max.depth", "4"};
	assert_ok(group_set(&group, &resources, false, &e));
	assert_file(&group, "cgroup", "cgroup.max.depth", "4");
	pair = (struct oci_pair){"cgroup.procs", "1"};
	assert_int_equal(group_set(&group, &resources, false, &e), -ENOTSUP);
	pair = (struct oci_pair){"../cgroup.max.depth", "1"};
	assert_int_equal(group_set(&group, &resources, false, &e), -EINVAL);
	pair = (struct oci_pair){"nothing.max", "1"};
	assert_int_equal(group_set(&group, &resources, false, &e), -ENOENT);
	assert_text_has("linux.resources.unified.nothing.max: ");
	assert_text_has("no nothing controller");
	end(&group);
}

/* The first block device of this host, for throttles. */
static bool block_device(int64_t *major, int64_t *minor)
{
	static const char *const names[] = {"/sys/block/loop0/dev", "/sys/block/vda/dev",
	                                    "/sys/block/ubda/dev", "/sys/block/sda/dev"};
	char text[32], *colon;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (control_read(AT_FDCWD, names[i], text, sizeof text) <= 0)
			continue;
		*major = strtoll(text, &colon, 10);
		if (*colon != ':')
			continue;
		*minor = strtoll(colon + 1, NULL, 10);
		return true;
	}
	return false;
}

static void test_block_io(void **state)
{
	struct oci_throttle_device device = {.rate = MIB};
	struct oci_block_io io = {.write_bps = {&device, 1}, .read_iops = {&device, 1}};
	struct oci_resources resources = {.block_io = &io};
	struct group group;
	bool v1;

	(void)state;
	make_named(&group, "io");
	v1 = group_v1(&group, "blkio");
	if (!block_device(&device.major, &device.minor) || !has(&group, v1 ? "blkio" : "io")) {
		end(&group);
		skip();
	}
	assert_ok(group_set(&group, &resources, false, &e));
	if (v1) {
		char want[64];

		snprintf(want, sizeof want, "%" PRIi64 ":%" PRIi64 " 1048576", device.major,
		         device.minor);
		assert_file(&group, "blkio", "blkio.throttle.write_bps_device", want);
	} else {
		char want[96];

		snprintf(want, sizeof want,
		         "%" PRIi64 ":%" PRIi64 " rbps=max wbps=1048576 riops=1048576 wiops=max",
		         device.major, device.minor);
		assert_file(&group, "io", "io.max", want);
	}
	device.major = 4000;
	assert_int_equal(group_set(&group, &resources, false, &e), -ENODEV);
	assert_text_has("linux.resources.blockIO.throttleWriteBpsDevice[0]");
	io = (struct oci_block_io){.leaf_weight = SET(10)};
	assert_true(group_set(&group, &resources, false, &e) < 0);
	assert_text_has("linux.resources.blockIO.leafWeight");
	io = (struct oci_block_io){.weight = SET(0)};
	assert_ok(group_set(&group, &resources, false, &e));
	end(&group);
}

/* ---- devices, real ---- */

static int main_devices(void *data)
{
	const char *dir = data;
	char path[128];
	int null = open("/dev/null", O_RDWR), fd;

	snprintf(path, sizeof path, "%s/kmsg", dir);
	if (null < 0)
		return 1;
	if (mknod(path, S_IFCHR | 0600, makedev(1, 11)) < 0)
		return 2;
	fd = open(path, O_RDONLY);
	if (fd >= 0)
		return 3;
	return errno == EPERM ? 0 : 4;
}

static int main_kmsg(void *data)
{
	char path[128];

	snprintf(path, sizeof path, "%s/kmsg", (const char *)data);
	return open(path, O_RDONLY) >= 0 ? 0 : errno;
}

static void test_devices(void **state)
{
	static struct oci_device_rule items[] = {
		{.allow = false, .type = 'a', .access = "rwm"},
		{.allow = true, .type = 'c', .major = SET(1), .minor = SET(11), .access = "r"},
	};
	struct oci_resources resources = {.devices = {items, 2}};
	char dir[] = "/dev/shm/test-group.XXXXXX", path[128];
	struct group group;

	(void)state;
	if (!mkdtemp(dir))
		skip();
	make_named(&group, "devices");
	assert_ok(group_set_devices(&group, NULL, &e));
	assert_int_equal(status_of(start(&group, main_devices, dir)), 0);

	/* an update takes the place of what was */
	assert_ok(group_set(&group, &resources, true, &e));
	assert_int_equal(status_of(start(&group, main_kmsg, dir)), 0);
	resources.devices.count = 1;
	assert_ok(group_set(&group, &resources, true, &e));
	assert_int_equal(WEXITSTATUS(status_of(start(&group, main_kmsg, dir))), EPERM);
	items[0].allow = true;
	assert_ok(group_set(&group, &resources, true, &e));
	assert_int_equal(status_of(start(&group, main_kmsg, dir)), 0);
	/* and no rule leaves it alone */
	resources.devices.count = 0;
	assert_ok(group_set(&group, &resources, true, &e));
	assert_int_equal(status_of(start(&group, main_kmsg, dir)), 0);
	end(&group);
	snprintf(path, sizeof path, "%s/kmsg", dir);
	unlink(path);
	rmdir(dir);
}

/* ---- figures ---- */

static int main_hog(void *data)
{
	char *memory = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                    0);

	(void)data;
	for (size_t i = 0; memory != MAP_FAILED && i < 64 * MIB; i += 4096)
		*(volatile char *)(memory + i) = 1;
	return 0;
}

static void test_stats(void **state)
{
	struct oci_memory memory = {.limit = SET(8 * MIB), .swap = SET(8 * MIB)};
	struct oci_pids pids = {.limit = 5};
	struct oci_resources resources = {.memory = &memory, .pids = &pids};
	struct group_stats stats;
	struct pollfd event;
	struct group group;
	pid_t pid;

	(void)state;
	make_named(&group, "stats");
	assert_ok(group_set(&group, &resources, false, &e));
	event = (struct pollfd){.fd = group_oom_watch(&group, &e), .events = POLLIN | POLLPRI};
	assert_ok(event.fd);
	assert_int_equal(poll(&event, 1, 0), 0);
	assert_int_equal(WTERMSIG(status_of(start(&group, main_hog, NULL))), SIGKILL);
	assert_int_equal(poll(&event, 1, WAIT_MS), 1);
	close(event.fd);
	pid = start(&group, main_sleep, NULL);
	assert_ok(group_stats(&group, &stats, &e));
	assert_int_equal(stats.oom_kills, 1);
	assert_int_equal(stats.memory.limit, 8 * MIB);
	assert_true(stats.memory.usage > 0 && stats.memory.usage < 8 * MIB);
	assert_true(stats.memory.raw.count > 10);
	assert_int_equal(stats.pids.limit, 5);
	assert_int_equal(stats.pids.current, 1);
	assert_true(stats.cpu.usage_ns > 0);
	group_stats_release(&stats);
	kill(pid, SIGKILL);
	end(&group);
}

static void test_empty(void **state)
{
	struct oci_pids pids = {.limit = 5};
	struct oci_resources resources = {.pids = &pids}, nothing = {0};
	struct group_stats stats;
	struct group group;
	bool frozen;

	(void)state;
	group_init(&group);
	assert_ok(group_set(&group, &nothing, false, &e));
	assert_int_equal(group_set(&group, &resources, false, &e), -ENOTSUP);
	assert_text_has("linux.resources.pids.limit: the container has no cgroup");
	assert_int_equal(group_set_devices(&group, NULL, &e), -ENOTSUP);
	assert_int_equal(group_freeze(&group, true, &e), -ENOTSUP);
	assert_int_equal(group_kill(&group, &e), -ENOTSUP);
	assert_int_equal(group_stats(&group, &stats, &e), -ENOTSUP);
	assert_ok(group_is_frozen(&group, &frozen, &e));
	assert_ok(group_join(&group, &e));
	assert_ok(group_remove(&group, &e));
}

/* ---- systemd ---- */

static void test_no_systemd(void **state)
{
	struct group group;

	(void)state;
	if (access("/run/systemd/system", F_OK) == 0)
		skip();
	group_init(&group);
	assert_int_equal(make_at(&group, GROUP_SYSTEMD, "a.slice:p:n"), -ENOTSUP);
	assert_text_has("systemd");
	assert_text_has("--systemd-cgroup");
}

static int set_up(void **state)
{
	(void)state;
	snprintf(parent, sizeof parent, "agentdock-test-group-%d", getpid());
	return group_mounts_find(&mounts, &e);
}

static int tear_down(void **state)
{
	int left = 0;

	(void)state;
	for (int i = 0; i < mounts.count; i++)
		if (hierarchy_remove(mounts.items[i].point, parent, &e) < 0)
			left++;
	group_mounts_release(&mounts);
	return left;
}

/* The same again where v1 is all there is. */
static int run_v1_alone(char *program)
{
	char *const argv[] = {program, NULL};
	const char *v2 = "/sys/fs/cgroup/unified";
	struct stat status;
	pid_t pid;
	int ended;

	if (getenv(v1_alone) || geteuid() != 0 || stat(v2, &status) < 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		setenv(v1_alone, "1", 1);
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || umount(v2) < 0)
			_exit(0);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	return waitpid(pid, &ended, 0) == pid && WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_systemd_names),
		cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_device_rules),
		cmocka_unit_test(test_document_rules),
		cmocka_unit_test(test_document_after_defaults),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_cpuset),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_unified),
		cmocka_unit_test(test_block_io),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_no_systemd),
	};
	int failed;

	(void)argc;
	failed = cmocka_run_group_tests(tests, set_up, tear_down);
	return failed ? failed : run_v1_alone(argv[0]);
}
