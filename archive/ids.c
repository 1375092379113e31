/* SPDX-License-Identifier: Apache-2.0 */
/* Names of users and groups to numbers, by the image's own passwd and group files: bytes that
 * nobody trusts, of which the first line that fits counts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"

enum { ACCOUNTS_MAX = 1 << 20 };

/* NAME:PASSWORD:NUMBER[:NUMBER...] */
struct account {
	const char *name;
	uint64_t id, group; /* of a user */
};

static int read_accounts(int fd, const char *what, char **text, struct err *e)
{
	scoped_mem char *data = calloc(1, ACCOUNTS_MAX + 1);
	size_t used = 0;

	if (!data)
		return err_set(e, ENOMEM, "no memory for %s", what);
	while (fd >= 0 && used < ACCOUNTS_MAX) {
		ssize_t got = read(fd, data + used, ACCOUNTS_MAX - used);

		if (got < 0)
			return err_sys(e, "reading %s", what);
		if (got == 0)
			break;
		used += (size_t)got;
	}
	*text = take_mem(&data);
	return 0;
}

static bool parse_account(char *line, bool is_user, struct account *account)
{
	struct err ignored;
	const char *number, *group;

	account->name = strsep(&line, ":");
	strsep(&line, ":");
	number = line ? strsep(&line, ":") : NULL;
	group = line && is_user ? strsep(&line, ":") : "0";
	return number && parse_u64(number, UINT32_MAX - 1, &account->id, &ignored) == 0 &&
	       parse_u64(group, UINT32_MAX - 1, &account->group, &ignored) == 0;
}

/* The account in TEXT (which it cuts to pieces) that is called NAME, or has the number ID where
 * NAME is NULL. */
static bool find_account(char *text, bool is_user, const char *name, uint64_t id,
                         struct account *account)
{
	char *line;

	while ((line = strsep(&text, "\n")))
		if (parse_account(line, is_user, account) &&
		    (name ? strcmp(account->name, name) == 0 : account->id == id))
			return true;
	return false;
}

static bool is_number(const char *text, uint64_t *value)
{
	struct err ignored;

	return parse_u64(text, UINT32_MAX - 1, value, &ignored) == 0;
}

static int absent(const char *what, const char *name, struct err *e)
{
	char shown[SHOWN_SIZE];

	return err_set(e, ENOENT, "%s %s is not in the image", what, path_shown(name, shown));
}

static int find_user(const char *name, int passwdfd, uint64_t *uid, uint64_t *gid, struct err *e)
{
	scoped_mem char *text = NULL;
	struct account account;
	bool number = is_number(name, uid);

	TRY(read_accounts(passwdfd, "passwd", &text, e));
	*gid = 0;
	if (find_account(text, true, number ? NULL : name, *uid, &account)) {
		*uid = account.id;
		*gid = account.group;
		return 0;
	}
	return number ? 0 : absent("the user", name, e);
}

static int find_group(const char *name, int groupfd, uint64_t *gid, struct err *e)
{
	scoped_mem char *text = NULL;
	struct account account;

	if (is_number(name, gid))
		return 0;
	TRY(read_accounts(groupfd, "group", &text, e));
	if (!find_account(text, false, name, 0, &account))
		return absent("the group", name, e);
	*gid = account.id;
	return 0;
}

int resolve_ids(const char *user, int passwdfd, int groupfd, int outfd, struct err *e)
{
	scoped_mem char *name = strdup(user);
	char line[32], *group;
	uint64_t uid = 0, gid = 0;

	if (!name)
		return err_set(e, ENOMEM, "no memory for a name");
	group = strchr(name, ':');
	if (group)
		*group++ = '\0';
	TRY(find_user(name, passwdfd, &uid, &gid, e));
	if (group)
		TRY(find_group(group, groupfd, &gid, e));
	snprintf(line, sizeof line, "%llu:%llu", (unsigned long long)uid, (unsigned long long)gid);
	return fd_write_all(outfd, line, strlen(line) + 1, e);
}
