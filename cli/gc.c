/* SPDX-License-Identifier: Apache-2.0 */
/* `agentdock gc`: removes what dead sandboxes left and the layers that no image needs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "rootfs/disk.h"

static int collect(struct sandbox_host *host, bool json, struct err *e)
{
	uint64_t freed_bytes = 0, layers = 0;
	char freed[32];
	int reaped = 0, templates = 0;

	TRY(sandbox_reap(host, &reaped, e));
	TRY(image_gc(&host->store, &freed_bytes, &layers, e));
	TRY(disk_templates_remove(host->store.statefd, &templates, e));
	if (json) {
		scoped_json object = json_object_new_object();

		json_add_u64(object, "freed_bytes", freed_bytes);
		json_add_u64(object, "layers", layers);
		json_add_u64(object, "dead_sandboxes", (uint64_t)reaped);
		json_add_u64(object, "disk_templates", (uint64_t)templates);
		puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
		return 0;
	}
	printf("freed %s in %" PRIu64 " unused layer%s; cleared away %d dead sandbox%s and %d "
	       "template%s of disks\n",
	       format_bytes(freed_bytes, freed, sizeof(freed)), layers, layers == 1 ? "" : "s",
	       reaped, reaped == 1 ? "" : "es", templates, templates == 1 ? "" : "s");
	return 0;
}

int cmd_gc(int argc, char **argv)
{
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	struct sandbox_host host;
	struct err e;
	int result;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		puts("usage: agentdock gc [--json]\n\n"
		     "Removes what sandboxes whose process died have left (cgroups, directories)\n"
		     "and the image layers that no name reaches and no sandbox stands on,\n"
		     "and the templates of disks, which are made again when they are needed.\n"
		     "A running sandbox is never touched.\n\n"
		     "  --json   print freed_bytes, layers, dead_sandboxes and disk_templates as "
		     "JSON");
		return cli_finish_stdout();
	}
	if (argc > 1 && !json) {
		err_set(&e, EINVAL, "gc takes only --json, got %s", argv[1]);
		return cli_fail(&e);
	}
	if (cli_host_open(&host, &e) < 0)
		return cli_fail(&e);
	result = collect(&host, json, &e);
	sandbox_host_release(&host);
	return result < 0 ? cli_fail(&e) : cli_finish_stdout();
}
