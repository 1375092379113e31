/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of mounts[].options: a table of those that the kernel's mounts, or we, know; all others
 * are the file system's own and are handed to it. No state. "Linux mount options" in config.md,
 * mount(8), mount_setattr(2).
 */
#include <errno.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "container/mounts.h"

enum kind {
	NOTHING,
	MOUNT,       /* set and clear are MOUNT_ATTR_* */
	TREE,        /* the same, of a whole tree */
	SUPER,       /* set and clear are MS_* */
	PROPAGATION, /* set is MS_* */
	BIND,
	BIND_TREE,
	REMOUNT,
	COPY_UP,
	IDMAP,
	IDMAP_TREE,
};

/* In order of names: they are looked up by halves. */
static const struct option {
	const char *name;
	enum kind kind;
	uint64_t set, clear;
} table[] = {
	{"async", SUPER, 0, MS_SYNCHRONOUS},
	{"atime", MOUNT, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"bind", BIND, 0, 0},
	{"defaults", NOTHING, 0, 0},
	{"dev", MOUNT, 0, MOUNT_ATTR_NODEV},
	{"diratime", MOUNT, 0, MOUNT_ATTR_NODIRATIME},
	{"dirsync", SUPER, MS_DIRSYNC, 0},
	{"exec", MOUNT, 0, MOUNT_ATTR_NOEXEC},
	{"idmap", IDMAP, 0, 0},
	{"iversion", SUPER, MS_I_VERSION, 0},
	{"lazytime", SUPER, MS_LAZYTIME, 0},
	{"loud", SUPER, 0, MS_SILENT},
	{"mand", SUPER, MS_MANDLOCK, 0},
	{"noatime", MOUNT, MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME},
	{"nodev", MOUNT, MOUNT_ATTR_NODEV, 0},
	{"nodiratime", MOUNT, MOUNT_ATTR_NODIRATIME, 0},
	{"noexec", MOUNT, MOUNT_ATTR_NOEXEC, 0},
	{"noiversion", SUPER, 0, MS_I_VERSION},
	{"nolazytime", SUPER, 0, MS_LAZYTIME},
	{"nomand", SUPER, 0, MS_MANDLOCK},
	{"norelatime", MOUNT, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"nostrictatime", MOUNT, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"nosuid", MOUNT, MOUNT_ATTR_NOSUID, 0},
	{"nosymfollow", MOUNT, MOUNT_ATTR_NOSYMFOLLOW, 0},
	{"private", PROPAGATION, MS_PRIVATE, 0},
	{"ratime", TREE, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"rbind", BIND_TREE, 0, 0},
	{"rdev", TREE, 0, MOUNT_ATTR_NODEV},
	{"rdiratime", TREE, 0, MOUNT_ATTR_NODIRATIME},
	{"relatime", MOUNT, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"remount", REMOUNT, 0, 0},
	{"rexec", TREE, 0, MOUNT_ATTR_NOEXEC},
	{"ridmap", IDMAP_TREE, 0, 0},
	{"rnoatime", TREE, MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME},
	{"rnodev", TREE, MOUNT_ATTR_NODEV, 0},
	{"rnodiratime", TREE, MOUNT_ATTR_NODIRATIME, 0},
	{"rnoexec", TREE, MOUNT_ATTR_NOEXEC, 0},
	{"rnorelatime", TREE, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"rnostrictatime", TREE, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"rnosuid", TREE, MOUNT_ATTR_NOSUID, 0},
	{"rnosymfollow", TREE, MOUNT_ATTR_NOSYMFOLLOW, 0},
	{"ro", MOUNT, MOUNT_ATTR_RDONLY, 0},
	{"rprivate", PROPAGATION, MS_PRIVATE | MS_REC, 0},
	{"rrelatime", TREE, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"rro", TREE, MOUNT_ATTR_RDONLY, 0},
	{"rrw", TREE, 0, MOUNT_ATTR_RDONLY},
	{"rshared", PROPAGATION, MS_SHARED | MS_REC, 0},
	{"rslave", PROPAGATION, MS_SLAVE | MS_REC, 0},
	{"rstrictatime", TREE, MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
	{"rsuid", TREE, 0, MOUNT_ATTR_NOSUID},
	{"rsymfollow", TREE, 0, MOUNT_ATTR_NOSYMFOLLOW},
	{"runbindable", PROPAGATION, MS_UNBINDABLE | MS_REC, 0},
	{"rw", MOUNT, 0, MOUNT_ATTR_RDONLY},
	{"shared", PROPAGATION, MS_SHARED, 0},
	{"silent", SUPER, MS_SILENT, 0},
	{"slave", PROPAGATION, MS_SLAVE, 0},
	{"strictatime", MOUNT, MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
	{"suid", MOUNT, 0, MOUNT_ATTR_NOSUID},
	{"symfollow", MOUNT, 0, MOUNT_ATTR_NOSYMFOLLOW},
	{"sync", SUPER, MS_SYNCHRONOUS, 0},
	{"tmpcopyup", COPY_UP, 0, 0},
	{"unbindable", PROPAGATION, MS_UNBINDABLE, 0},
};

enum { OPTIONS = sizeof table / sizeof *table };

static int by_name(const void *name, const void *option)
{
	return strcmp(name, ((const struct option *)option)->name);
}

const char *mount_option_name(size_t index)
{
	return index < OPTIONS ? table[index].name : NULL;
}

/* DATA has room for all words with their commas. */
static void add_data(char *data, const char *word)
{
	size_t length = strlen(data);

	if (length)
		data[length++] = ',';
	memcpy(data + length, word, strlen(word) + 1);
}

static void change(uint64_t *set, uint64_t *clear, const struct option *option)
{
	*set = (*set & ~option->clear) | option->set;
	*clear = (*clear & ~option->set) | option->clear;
}

static int apply(const struct option *option, struct mount_options *options, struct err *e)
{
	switch (option->kind) {
	case NOTHING:
		break;
	case MOUNT:
		change(&options->set, &options->clear, option);
		break;
	case TREE:
		change(&options->tree_set, &options->tree_clear, option);
		break;
	case SUPER:
		options->super = (options->super & ~option->clear) | option->set;
		break;
	case PROPAGATION:
		if (options->propagations_count == PROPAGATIONS_MAX)
			return err_set(e, EINVAL, "options: more than %d of them are propagations",
			               PROPAGATIONS_MAX);
		options->propagations[options->propagations_count++] = option->set;
		break;
	case BIND_TREE:
		options->tree = true;
		options->bind = true;
		break;
	case BIND:
		options->bind = true;
		break;
	case REMOUNT:
		options->remount = true;
		break;
	case COPY_UP:
		options->copy_up = true;
		break;
	case IDMAP_TREE:
		options->idmap_tree = true;
		options->idmap = true;
		break;
	case IDMAP:
		options->idmap = true;
		break;
	}
	return 0;
}

int mount_options_parse(const struct oci_strings *words, struct mount_options *options,
                        struct err *e)
{
	size_t room = 1;

	*options = (struct mount_options){0};
	for (size_t i = 0; i < words->count; i++) {
		const struct option *option = bsearch(words->items[i], table, OPTIONS,
		                                      sizeof *table, by_name);

		if (option) {
			TRY(apply(option, options, e));
			continue;
		}
		/* what is not known here, the file system must know */
		for (size_t j = i; !options->data && j < words->count; j++)
			room += strlen(words->items[j]) + 1;
		if (!options->data && !(options->data = calloc(1, room)))
			return err_set(e, ENOMEM, "options: no memory");
		add_data(options->data, words->items[i]);
	}
	return 0;
}

void mount_options_release(struct mount_options *options)
{
	free(options->data);
	options->data = NULL;
}

unsigned long mount_options_flags(const struct mount_options *options)
{
	static const struct {
		uint64_t attribute;
		unsigned long flag;
	} same[] = {
		{MOUNT_ATTR_RDONLY, MS_RDONLY},         {MOUNT_ATTR_NOSUID, MS_NOSUID},
		{MOUNT_ATTR_NODEV, MS_NODEV},           {MOUNT_ATTR_NOEXEC, MS_NOEXEC},
		{MOUNT_ATTR_NOATIME, MS_NOATIME},       {MOUNT_ATTR_STRICTATIME, MS_STRICTATIME},
		{MOUNT_ATTR_NODIRATIME, MS_NODIRATIME}, {MOUNT_ATTR_NOSYMFOLLOW, MS_NOSYMFOLLOW},
	};
	uint64_t set = (options->set & ~options->tree_clear) | options->tree_set;
	unsigned long flags = options->super;

	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		if (set & same[i].attribute)
			flags |= same[i].flag;
	return flags;
}
