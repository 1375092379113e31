/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime reads beside config.json. The first byte says what the rest is: 'p' a process (exec),
 * 'r' resources (update) with their device rules, 'm' the options of a mount, by ',', 'g' the text that
 * the store keeps of a group.
 *
 * Holds: each is taken or refused with one whole text; what is refused leaves nothing; device rules
 * become a program, whose answers tests/unit/test_group.c compares; of a mount's options none is both set
 * and cleared; a group that is opened is saved and opened again, with the same text.
 */
#include "tests/fuzz/fuzz.h"

#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/scoped.h"
#include "container/group_internal.h"
#include "container/mounts.h"
#include "oci/parts.h"
#include "oci/shape.h"

enum { WORDS_MAX = 256 };

static void try_process(const char *text, size_t length)
{
	struct oci_process process = {0};
	struct oci_store store = {0};
	struct err e = {0};
	int r = shape_parse(text, length, &oci_shape_process, &process, &store, &e);

	if (r < 0) {
		fuzz_check_err(r, &e);
		CHECK(!process.args.items, "refused, and something is left");
		return;
	}
	CHECK(process.cwd && *process.cwd == '/', "a cwd that is not absolute");
	oci_store_release(&store);
}

static void try_devices(const struct oci_resources *resources)
{
	struct device_rules rules = {0};
	struct device_set set = {0};
	struct bpf_insn *program = NULL;
	size_t count = 0;
	struct err e = {0};
	int r = device_rules_list(resources, &rules, &e);

	if (r < 0) {
		fuzz_check_err(r, &e);
	} else {
		r = device_program(&rules, &program, &count, &e);
		if (r < 0)
			fuzz_check_err(r, &e);
		else
			CHECK(count >= 2 && program[count - 1].code == (BPF_JMP | BPF_EXIT),
			      "a program without an end");
		e = (struct err){0};
		r = device_set_make(&rules, &set, &e);
		if (r < 0)
			fuzz_check_err(r, &e);
	}
	free(program);
	free(set.items);
	free(rules.items);
}

static void try_resources(const char *text, size_t length)
{
	struct oci_resources resources = {0};
	struct oci_store store = {0};
	struct err e = {0};
	int r = shape_parse(text, length, &oci_shape_resources, &resources, &store, &e);

	if (r < 0) {
		fuzz_check_err(r, &e);
		return;
	}
	try_devices(&resources);
	oci_store_release(&store);
}

static void try_mount_options(char *text)
{
	char *words[WORDS_MAX + 1] = {NULL};
	struct oci_strings list = {0};
	struct mount_options options = {0};
	struct err e = {0};
	int r;

	for (char *word; list.count < WORDS_MAX && (word = strsep(&text, ","));)
		words[list.count++] = word;
	list.items = (void *)words;
	r = mount_options_parse(&list, &options, &e);
	if (r < 0)
		fuzz_check_err(r, &e);
	else
		CHECK(options.propagations_count <= PROPAGATIONS_MAX &&
		              !(options.tree_set & options.tree_clear & ~MOUNT_ATTR__ATIME),
		      "options against each other");
	mount_options_release(&options);
}

static void try_group(const char *text)
{
	struct group group, again;
	scoped_mem char *saved = NULL;
	scoped_mem char *twice = NULL;
	struct err e = {0};
	int r;

	group_init(&group);
	group_init(&again);
	r = group_open(&group, text, &e);
	if (r < 0) {
		fuzz_check_err(r, &e);
	} else {
		CHECK(group_save(&group, &saved, &e) == 0 && group_open(&again, saved, &e) == 0 &&
		              group_save(&again, &twice, &e) == 0,
		      "opened, and not again: %s", e.text);
		CHECK(strcmp(saved, twice) == 0, "\"%s\" becomes \"%s\"", saved, twice);
		group_release(&again);
	}
	group_release(&group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int next_fd = fuzz_next_fd();
	scoped_mem char *text = NULL;

	if (!size)
		return 0;
	text = fuzz_text(data + 1, size - 1);
	switch (data[0]) {
	case 'p':
		try_process(text, size - 1);
		break;
	case 'r':
		try_resources(text, size - 1);
		break;
	case 'm':
		try_mount_options(text);
		break;
	case 'g':
		try_group(text);
		break;
	default:
		break;
	}
	CHECK(fuzz_next_fd() == next_fd, "a descriptor leaked");
	return 0;
}
