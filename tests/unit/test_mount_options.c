/* SPDX-License-Identifier: Apache-2.0 */
/* container/mount_options.c: the words of mounts[].options. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/mount.h>
#include <sys/mount.h>

#include "container/mounts.h"

static int parse(struct mount_options *options, struct err *e, const char *text)
{
	const char *items[64];
	struct oci_strings words = {.items = items};
	char *copy = strdup(text), *rest = copy, *word;
	int r;

	/* blanks, since a word may have commas */
	while ((word = strsep(&rest, " ")))
		if (*word)
			items[words.count++] = word;
	r = mount_options_parse(&words, options, e);
	free(copy);
	return r;
}

#define PARSED(text)                                                                               \
	__attribute__((cleanup(mount_options_release))) struct mount_options parsed;               \
	struct err e;                                                                              \
	assert_int_equal(parse(&parsed, &e, text), 0)

static void test_names_are_in_order(void **state)
{
	(void)state;
	for (size_t i = 1; mount_option_name(i); i++)
		assert_true(strcmp(mount_option_name(i - 1), mount_option_name(i)) < 0);
}

/* Every option of the specification's table, and that no other word is taken for one. */
static void test_the_table_is_the_specifications(void **state)
{
	static const char *const words[] = {
		"async",
		"atime",
		"bind",
		"defaults",
		"dev",
		"diratime",
		"dirsync",
		"exec",
		"iversion",
		"lazytime",
		"loud",
		"mand",
		"noatime",
		"nodev",
		"nodiratime",
		"noexec",
		"noiversion",
		"nolazytime",
		"nomand",
		"norelatime",
		"nostrictatime",
		"nosuid",
		"nosymfollow",
		"private",
		"ratime",
		"rbind",
		"rdev",
		"rdiratime",
		"relatime",
		"remount",
		"rexec",
		"rnoatime",
		"rnodev",
		"rnodiratime",
		"rnoexec",
		"rnorelatime",
		"rnostrictatime",
		"rnosuid",
		"rnosymfollow",
		"ro",
		"rprivate",
		"rrelatime",
		"rro",
		"rrw",
		"rshared",
		"rslave",
		"rstrictatime",
		"rsuid",
		"rsymfollow",
		"runbindable",
		"rw",
		"shared",
		"silent",
		"slave",
		"strictatime",
		"suid",
		"symfollow",
		"sync",
		"tmpcopyup",
		"unbindable",
		"idmap",
		"ridmap",
	};

	enum { COUNT = sizeof words / sizeof *words };

	(void)state;
	assert_non_null(mount_option_name(COUNT - 1));
	assert_null(mount_option_name(COUNT));
	for (size_t i = 0; i < COUNT; i++) {
		PARSED(words[i]);
		assert_null(parsed.data);
	}
}

static void test_nothing(void **state)
{
	(void)state;
	PARSED("");
	assert_int_equal(parsed.set, 0);
	assert_int_equal(parsed.clear, 0);
	assert_null(parsed.data);
	assert_int_equal(mount_options_flags(&parsed), 0);
}

static void test_later_options_override(void **state)
{
	(void)state;
	{
		PARSED("ro noexec rw nosuid");
		assert_int_equal(parsed.set, MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSUID);
		assert_int_equal(parsed.clear, MOUNT_ATTR_RDONLY);
	}
	{
		PARSED("rw ro");
		assert_int_equal(parsed.set, MOUNT_ATTR_RDONLY);
		assert_int_equal(parsed.clear, 0);
	}
	{
		PARSED("sync async lazytime");
		assert_int_equal(mount_options_flags(&parsed), MS_LAZYTIME);
	}
}

/* The kernel takes a time's setting only together with all of its mask (mount_setattr(2)). */
static void test_access_times(void **state)
{
	static const struct {
		const char *words;
		uint64_t set;
		unsigned long flags;
	} cases[] = {
		{"noatime", MOUNT_ATTR_NOATIME, MS_NOATIME},
		{"strictatime noatime", MOUNT_ATTR_NOATIME, MS_NOATIME},
		{"noatime strictatime nosuid", MOUNT_ATTR_STRICTATIME | MOUNT_ATTR_NOSUID,
	         MS_STRICTATIME | MS_NOSUID},
		{"noatime relatime", MOUNT_ATTR_RELATIME, 0},
		{"strictatime atime nodiratime", MOUNT_ATTR_NODIRATIME, MS_NODIRATIME},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		PARSED(cases[i].words);
		assert_int_equal(parsed.set, cases[i].set);
		assert_int_equal(parsed.clear & MOUNT_ATTR__ATIME, MOUNT_ATTR__ATIME);
		assert_int_equal(mount_options_flags(&parsed), cases[i].flags);
	}
}

static void test_trees(void **state)
{
	(void)state;
	PARSED("rbind rro rnodev ro rrw rslave shared ridmap");
	assert_true(parsed.bind && parsed.tree && parsed.idmap && parsed.idmap_tree);
	assert_int_equal(parsed.tree_set, MOUNT_ATTR_NODEV);
	assert_int_equal(parsed.tree_clear, MOUNT_ATTR_RDONLY);
	assert_int_equal(parsed.set, MOUNT_ATTR_RDONLY);
	assert_int_equal(parsed.propagations_count, 2);
	assert_int_equal(parsed.propagations[0], MS_SLAVE | MS_REC);
	assert_int_equal(parsed.propagations[1], MS_SHARED);
}

static void test_what_is_not_known_is_the_file_systems(void **state)
{
	(void)state;
	{
		PARSED("size=64k ro mode=755 tmpcopyup nosuchword");
		assert_string_equal(parsed.data, "size=64k,mode=755,nosuchword");
		assert_true(parsed.copy_up);
		assert_int_equal(parsed.set, MOUNT_ATTR_RDONLY);
	}
	{
		PARSED("RO binds r rror");
		assert_string_equal(parsed.data, "RO,binds,r,rror");
		assert_false(parsed.bind);
	}
}

static void test_too_many_propagations(void **state)
{
	struct mount_options options;
	struct err e;

	(void)state;
	assert_int_equal(parse(&options, &e, "slave shared slave shared slave"), -EINVAL);
	assert_non_null(strstr(e.text, "options"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_in_order),
		cmocka_unit_test(test_the_table_is_the_specifications),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_later_options_override),
		cmocka_unit_test(test_access_times),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_what_is_not_known_is_the_file_systems),
		cmocka_unit_test(test_too_many_propagations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
