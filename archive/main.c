/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentdock-archive: packs a directory, unpacks an archive, decompresses a stream, reads what a
 * packed image is made of, and looks up its users; see archive.h.
 * It is started by the image store and inside of sandboxes, not by people.
 *
 *	pack    [--from FD|DIR] [--keep-owner] [--epoch] [--xattrs]             directory -> stdout
 *	        [--layer] [--opaque-fd FD]
 *	unpack  --mode checkout|image|layer --limit-bytes N --limit-entries N   stdin -> working
 *	        [--owner UID:GID] [--progress-fd FD] [--opaque-fd FD]           directory
 *	cat     --limit-bytes N                                                 stdin -> stdout
 *	ids     --user USER [--group-fd FD]                                     passwd on stdin ->
 *	                                                                        UID:GID on stdout
 *	plan    --from FD|DIR --arch MACHINE [--ref NAME] --plan-fd FD          packed image ->
 *	                                                                        struct image_plan
 *
 * Each takes --result-fd FD (one struct archive_result is written there, in the end) and --lock-fd
 * FD (kept open while the program lives). All other descriptors but 0, 1 and 2 are closed.
 * Exit status: 0; 1 when it is the archive's fault (also: beyond its limits); 125 otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/confine.h"
#include "archive/plan.h"
#include "archive/source.h"
#include "base/files.h"
#include "base/scoped.h"
#include "base/strings.h"

enum { EXIT_ARCHIVE = 1, EXIT_OURS = 125 };
enum verb { PACK = 1 << 0, UNPACK = 1 << 1, CAT = 1 << 2, PLAN = 1 << 3, IDS = 1 << 4 };

struct options {
	int fromfd; /* owned */
	int resultfd, lockfd, planfd, groupfd;
	const char *user;
	bool has_mode, has_bytes, has_entries;
	struct pack_options pack;
	struct unpack_options unpack;
	struct plan_options plan;
};

/* ---- options ---- */

static int parse_fd(const char *text, int *fd, struct err *e)
{
	uint64_t value;

	TRY(parse_u64(text, INT32_MAX, &value, e));
	if (fcntl((int)value, F_GETFD) < 0)
		return err_sys(e, "descriptor %s", text);
	*fd = (int)value;
	return 0;
}

static int set_from(struct options *options, const char *text, struct err *e)
{
	if (*text && strspn(text, "0123456789") == strlen(text))
		return parse_fd(text, &options->fromfd, e);
	TRY(options->fromfd = file_open(AT_FDCWD, text, O_PATH | O_DIRECTORY, 0, e));
	return 0;
}

static int set_keep_owner(struct options *options, const char *text, struct err *e)
{
	(void)text;
	(void)e;
	options->pack.keep_owner = true;
	return 0;
}

static int set_epoch(struct options *options, const char *text, struct err *e)
{
	(void)text;
	(void)e;
	options->pack.epoch = true;
	return 0;
}

static int set_xattrs(struct options *options, const char *text, struct err *e)
{
	(void)text;
	(void)e;
	options->pack.xattrs = true;
	return 0;
}

static int set_mode(struct options *options, const char *text, struct err *e)
{
	options->unpack.layer = strcmp(text, "layer") == 0;
	options->unpack.image = options->unpack.layer || strcmp(text, "image") == 0;
	if (!options->unpack.image && strcmp(text, "checkout") != 0)
		return err_set(e, EINVAL, "\"%s\" is neither checkout, image nor layer", text);
	options->has_mode = true;
	return 0;
}

static int set_owner(struct options *options, const char *text, struct err *e)
{
	char uid_text[16] = "";
	const char *colon = strchr(text, ':');
	uint64_t uid, gid;

	if (!colon || (size_t)(colon - text) >= sizeof uid_text)
		return err_set(e, EINVAL, "\"%s\" is not UID:GID", text);
	memcpy(uid_text, text, (size_t)(colon - text));
	/* the last id means "unchanged" to chown */
	TRY(parse_u64(uid_text, UINT32_MAX - 1, &uid, e));
	TRY(parse_u64(colon + 1, UINT32_MAX - 1, &gid, e));
	options->unpack.owner_uid = (uid_t)uid;
	options->unpack.owner_gid = (gid_t)gid;
	options->unpack.has_owner = true;
	return 0;
}

static int set_limit_bytes(struct options *options, const char *text, struct err *e)
{
	options->has_bytes = true;
	return parse_u64(text, INT64_MAX, &options->unpack.limit_bytes, e);
}

static int set_limit_entries(struct options *options, const char *text, struct err *e)
{
	options->has_entries = true;
	return parse_u64(text, INT64_MAX, &options->unpack.limit_entries, e);
}

static int set_progress_fd(struct options *options, const char *text, struct err *e)
{
	return parse_fd(text, &options->unpack.progressfd, e);
}

static int set_opaque_fd(struct options *options, const char *text, struct err *e)
{
	TRY(parse_fd(text, &options->unpack.opaquefd, e));
	options->pack.opaquefd = options->unpack.opaquefd;
	return 0;
}

static int set_layer(struct options *options, const char *text, struct err *e)
{
	(void)text;
	(void)e;
	options->pack.layer = true;
	return 0;
}

static int set_user(struct options *options, const char *text, struct err *e)
{
	(void)e;
	options->user = text;
	return 0;
}

static int set_group_fd(struct options *options, const char *text, struct err *e)
{
	return parse_fd(text, &options->groupfd, e);
}

static int set_plan_fd(struct options *options, const char *text, struct err *e)
{
	return parse_fd(text, &options->planfd, e);
}

static int set_arch(struct options *options, const char *text, struct err *e)
{
	(void)e;
	options->plan.architecture = text;
	return 0;
}

static int set_ref(struct options *options, const char *text, struct err *e)
{
	(void)e;
	options->plan.ref = text;
	return 0;
}

static int set_result_fd(struct options *options, const char *text, struct err *e)
{
	return parse_fd(text, &options->resultfd, e);
}

static int set_lock_fd(struct options *options, const char *text, struct err *e)
{
	return parse_fd(text, &options->lockfd, e);
}

static const struct rule {
	const char *name;
	int has_value;
	unsigned verbs; /* set of enum verb */
	int (*set)(struct options *options, const char *text, struct err *e);
} rules[] = {
	{"from", required_argument, PACK | PLAN, set_from},
	{"keep-owner", no_argument, PACK, set_keep_owner},
	{"epoch", no_argument, PACK, set_epoch},
	{"xattrs", no_argument, PACK, set_xattrs},
	{"mode", required_argument, UNPACK, set_mode},
	{"owner", required_argument, UNPACK, set_owner},
	{"limit-bytes", required_argument, UNPACK | CAT, set_limit_bytes},
	{"limit-entries", required_argument, UNPACK, set_limit_entries},
	{"progress-fd", required_argument, UNPACK, set_progress_fd},
	{"opaque-fd", required_argument, PACK | UNPACK, set_opaque_fd},
	{"layer", no_argument, PACK, set_layer},
	{"user", required_argument, IDS, set_user},
	{"group-fd", required_argument, IDS, set_group_fd},
	{"arch", required_argument, PLAN, set_arch},
	{"ref", required_argument, PLAN, set_ref},
	{"plan-fd", required_argument, PLAN, set_plan_fd},
	{"result-fd", required_argument, PACK | UNPACK | CAT | PLAN | IDS, set_result_fd},
	{"lock-fd", required_argument, PACK | UNPACK | CAT | PLAN | IDS, set_lock_fd},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static int parse_options(int argc, char **argv, enum verb verb, struct options *options,
                         struct err *e)
{
	struct option longs[RULES + 1] = {0};
	int found;

	for (int i = 0; i < RULES; i++)
		longs[i] = (struct option){
			.name = rules[i].name, .has_arg = rules[i].has_value, .val = i + 1};
	opterr = 0;
	while ((found = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
		if (found < 1 || found > RULES || !(rules[found - 1].verbs & verb))
			return err_set(e, EINVAL, "%s: no such option, or its value is missing",
			               argv[optind - 1]);
		if (rules[found - 1].set(options, optarg, e) < 0)
			return err_in(e, "--%s", rules[found - 1].name);
	}
	if (optind < argc)
		return err_set(e, EINVAL, "\"%s\" is one argument too many", argv[optind]);
	if (verb == UNPACK && !(options->has_mode && options->has_bytes && options->has_entries))
		return err_set(e, EINVAL, "unpack needs --mode, --limit-bytes, --limit-entries");
	if (options->unpack.layer && options->unpack.opaquefd < 0)
		return err_set(e, EINVAL, "unpack --mode layer needs --opaque-fd");
	if (verb == CAT && !options->has_bytes)
		return err_set(e, EINVAL, "cat needs --limit-bytes");
	if (verb == IDS && !options->user)
		return err_set(e, EINVAL, "ids needs --user");
	if (verb == PLAN &&
	    (options->fromfd < 0 || options->planfd < 0 || !options->plan.architecture))
		return err_set(e, EINVAL, "plan needs --from, --arch, --plan-fd");
	return 0;
}

/* Descriptors that a careless caller let through could lead out of the confinement. */
static int close_others(const struct options *options, struct err *e)
{
	const int kept[] = {options->fromfd,          options->resultfd,
	                    options->lockfd,          options->unpack.progressfd,
	                    options->unpack.opaquefd, options->planfd,
	                    options->groupfd};
	unsigned low = 3;

	for (;;) {
		unsigned next = ~0U;

		for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
			if (kept[i] >= (int)low && (unsigned)kept[i] < next)
				next = (unsigned)kept[i];
		if (next > low && close_range(low, next == ~0U ? next : next - 1, 0) < 0)
			return err_sys(e, "closing descriptors");
		if (next == ~0U)
			return 0;
		low = next + 1;
	}
}

/* ---- verbs ---- */

static int run_pack(struct options *options, struct archive_counts *counts, struct err *e)
{
	int nonefd = -1;

	if (options->fromfd < 0)
		TRY(options->fromfd = file_open(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0, e));
	TRY(confine_self(CONFINE_PACK, options->fromfd, UINT64_MAX, &nonefd, e));
	return pack_directory(options->fromfd, STDOUT_FILENO, &options->pack, counts, e);
}

static int run_unpack(struct options *options, struct archive_counts *counts, struct err *e)
{
	__attribute__((cleanup(source_release))) struct source source;
	enum confinement kind = options->unpack.layer   ? CONFINE_LAYER
	                        : options->unpack.image ? CONFINE_IMAGE
	                                                : CONFINE_CHECKOUT;
	scoped_fd rootfd = -1;

	umask(0);
	TRY(source_init(&source, SOURCE_TAR, e));
	TRY(confine_self(kind, -1, options->unpack.limit_bytes, &rootfd, e));
	return unpack_stream(&source, STDIN_FILENO, rootfd, &options->unpack, counts, e);
}

static int run_cat(struct options *options, struct archive_counts *counts, struct err *e)
{
	__attribute__((cleanup(source_release))) struct source source;
	int nonefd = -1;

	TRY(source_init(&source, SOURCE_RAW, e));
	TRY(confine_self(CONFINE_CAT, -1, options->unpack.limit_bytes, &nonefd, e));
	return cat_stream(&source, STDIN_FILENO, STDOUT_FILENO, options->unpack.limit_bytes, counts,
	                  e);
}

static int run_plan(struct options *options, struct archive_counts *counts, struct err *e)
{
	scoped_mem struct image_plan *plan = calloc(1, sizeof *plan);
	int nonefd = -1;

	(void)counts;
	if (!plan)
		return err_set(e, ENOMEM, "no memory to plan with");
	TRY(confine_self(CONFINE_PLAN, options->fromfd, sizeof *plan, &nonefd, e));
	TRY(plan_image(options->fromfd, &options->plan, plan, e));
	return fd_write_all(options->planfd, plan, sizeof *plan, e);
}

static int run_ids(struct options *options, struct archive_counts *counts, struct err *e)
{
	int nonefd = -1;

	(void)counts;
	TRY(confine_self(CONFINE_CAT, -1, 0, &nonefd, e));
	return resolve_ids(options->user, STDIN_FILENO, options->groupfd, STDOUT_FILENO, e);
}

static const struct command {
	const char *name;
	enum verb verb;
	int (*run)(struct options *options, struct archive_counts *counts, struct err *e);
} commands[] = {
	{"pack", PACK, run_pack}, {"unpack", UNPACK, run_unpack}, {"cat", CAT, run_cat},
	{"plan", PLAN, run_plan}, {"ids", IDS, run_ids},
};

/* ---- the end ---- */

static const struct {
	int code;
	enum archive_result_kind kind;
} kinds[] = {
	{0, ARCHIVE_RESULT_OK},
	{EBADMSG, ARCHIVE_RESULT_BAD_ARCHIVE},
	{EFBIG, ARCHIVE_RESULT_LIMIT},
	{ENOSPC, ARCHIVE_RESULT_NO_SPACE},
	{EDQUOT, ARCHIVE_RESULT_NO_SPACE},
};

static enum archive_result_kind kind_of(int code)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i].code == code)
			return kinds[i].kind;
	return ARCHIVE_RESULT_IO;
}

static int report(const struct options *options, const struct archive_counts *counts, int result,
                  const struct err *e)
{
	struct archive_result record = {
		.code = result < 0 ? e->code : 0,
		.bytes = counts->bytes,
		.entries = counts->entries,
		.skipped = counts->skipped,
	};

	record.kind = (int32_t)kind_of(record.code);
	if (result < 0) {
		snprintf(record.text, sizeof record.text, "%.*s", (int)sizeof record.text - 1,
		         e->text);
		dprintf(STDERR_FILENO, "agentdock-archive: %s\n", e->text);
	}
	if (options->resultfd >= 0 &&
	    write(options->resultfd, &record, sizeof record) != sizeof record)
		return EXIT_OURS;
	if (result >= 0)
		return 0;
	return record.kind == ARCHIVE_RESULT_BAD_ARCHIVE || record.kind == ARCHIVE_RESULT_LIMIT
	               ? EXIT_ARCHIVE
	               : EXIT_OURS;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct options options = {
		.fromfd = -1,
		.resultfd = -1,
		.lockfd = -1,
		.planfd = -1,
		.groupfd = -1,
		.pack = {.opaquefd = -1},
		.unpack = {.progressfd = -1, .opaquefd = -1},
	};
	const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
	struct archive_counts counts = {0};
	struct err e = {0};
	int result;

	signal(SIGPIPE, SIG_IGN);
	if (command) {
		result = parse_options(argc - 1, argv + 1, command->verb, &options, &e);
		if (result == 0)
			result = close_others(&options, &e);
		if (result == 0)
			result = command->run(&options, &counts, &e);
	} else {
		result = err_set(&e, EINVAL,
		                 "usage: agentdock-archive pack|unpack|cat|plan|ids OPTIONS");
	}
	/* not exit(): nothing is buffered, and what runs then may call what is forbidden by now */
	_exit(report(&options, &counts, result, &e));
}
