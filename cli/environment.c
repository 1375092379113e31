/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a command (requirements CO4, CO5). Owns the table of names that are refused;
 * every assignment, from an option or a file, passes environment_add(). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/files.h"
#include "base/scoped.h"
#include "cli/environment.h"

enum { ENV_FILE_LIMIT_BYTES = 1 << 20, ENV_ENTRY_LIMIT_BYTES = 128 * 1024 };

enum match { IS, STARTS, ENDS, HAS };

/* Names of secrets, whatever their case. TOKEN is no HAS: TOKENIZERS_PARALLELISM is harmless. */
static const struct {
	enum match match;
	const char *text;
} secrets[] = {
	{IS, "DATABASE_URL"}, {IS, "REDIS_URL"},    {IS, "DOCKER_HOST"},   {IS, "DOCKER_CONFIG"},
	{IS, "KUBECONFIG"},   {IS, "NETRC"},        {IS, "SSH_AUTH_SOCK"}, {STARTS, "GITHUB_APP_"},
	{HAS, "SECRET"},      {HAS, "PASSWORD"},    {HAS, "PASSWD"},       {HAS, "PASSPHRASE"},
	{HAS, "CREDENTIAL"},  {HAS, "PRIVATE_KEY"}, {HAS, "ACCESS_KEY"},   {HAS, "API_KEY"},
	{HAS, "APIKEY"},      {HAS, "TOKEN_"},      {ENDS, "TOKEN"},       {ENDS, "TOKENS"},
	{ENDS, "_KEY"},       {ENDS, "_KEYS"},      {ENDS, "_PAT"},        {ENDS, "_PWD"},
};

static bool name_matches(const char *name, size_t length, enum match match, const char *text)
{
	size_t text_length = strlen(text);

	if (length < text_length)
		return false;
	switch (match) {
	case IS:
		return length == text_length && strncasecmp(name, text, length) == 0;
	case STARTS:
		return strncasecmp(name, text, text_length) == 0;
	case ENDS:
		return strncasecmp(name + length - text_length, text, text_length) == 0;
	case HAS:
		for (size_t i = 0; i + text_length <= length; i++)
			if (strncasecmp(name + i, text, text_length) == 0)
				return true;
	}
	return false;
}

bool environment_is_secret(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (name_matches(name, length, secrets[i].match, secrets[i].text))
			return true;
	return false;
}

int environment_start(struct string_list *env, struct err *e)
{
	static const char *const defaults[] = {
		"CI=true",
		"AGENTDOCK_SANDBOX=true",
		"HOME=/workspace",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
	};

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		TRY(string_list_set(env, defaults[i], e));
	return 0;
}

/* Every name that execve takes and a shell can hold, and those with a dot or dash that npm uses. */
static int check_name(const char *name, size_t length, struct err *e)
{
	if (length == 0)
		return err_set(e, EINVAL, "an assignment needs a name before the =");
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
			return err_set(e, EINVAL,
			               "%.*s: a name has letters, digits, '_', '.' and '-' only",
			               (int)length, name);
	if (isdigit((unsigned char)name[0]))
		return err_set(e, EINVAL, "%.*s: a name does not start with a digit", (int)length,
		               name);
	if (environment_is_secret(name, length))
		return err_set(e, EACCES,
		               "%.*s looks like a secret, and a sandbox is given none; "
		               "use another name if it is not one",
		               (int)length, name);
	return 0;
}

/* MAX_ARG_STRLEN of execve(2): a longer one would make the exec fail with E2BIG. */
static int set_bounded(struct string_list *env, const char *assignment, struct err *e)
{
	if (strlen(assignment) >= ENV_ENTRY_LIMIT_BYTES)
		return err_set(e, E2BIG, "%.*s: longer than the %d bytes that the kernel takes",
		               (int)strcspn(assignment, "="), assignment,
		               ENV_ENTRY_LIMIT_BYTES - 1);
	return string_list_set(env, assignment, e);
}

static int add_inherited(struct string_list *env, const char *name, struct err *e)
{
	const char *value = getenv(name);
	scoped_mem char *assignment = NULL;
	size_t size;

	if (!value)
		return err_set(e, ENOENT, "%s is not set here; give a value: %s=VALUE", name, name);
	size = strlen(name) + strlen(value) + 2;
	assignment = malloc(size);
	if (!assignment)
		return err_set(e, ENOMEM, "%s: out of memory", name);
	TRY(text_format(assignment, size, e, "%s=%s", name, value));
	return environment_add(env, assignment, e);
}

int environment_add(struct string_list *env, const char *assignment, struct err *e)
{
	size_t length = strcspn(assignment, "=");

	TRY(check_name(assignment, length, e));
	if (!assignment[length])
		return add_inherited(env, assignment, e);
	return set_bounded(env, assignment, e);
}

int environment_add_image(struct string_list *env, const char *assignment, struct err *e)
{
	return set_bounded(env, assignment, e);
}

/* Files that were written on Windows end their lines with CR LF. */
static void cut_carriage_return(char *line)
{
	size_t length = strlen(line);

	if (length && line[length - 1] == '\r')
		line[length - 1] = '\0';
}

int environment_add_file(struct string_list *env, const char *path, struct err *e)
{
	scoped_mem char *data = NULL;
	char *line, *rest;
	size_t length;
	int number = 0;

	TRY(file_read_all(AT_FDCWD, path, ENV_FILE_LIMIT_BYTES, &data, &length, e));
	if (memchr(data, '\0', length))
		return err_set(e, EINVAL, "%s: holds a NUL byte; it is to be text", path);
	for (rest = data; (line = strsep(&rest, "\n"));) {
		number++;
		cut_carriage_return(line);
		if (!line[0] || line[0] == '#')
			continue;
		if (environment_add(env, line, e) < 0)
			return err_in(e, "%s:%d", path, number);
	}
	return 0;
}
