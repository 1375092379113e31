/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp-compile PROFILE.json: the profile's BPF as C, for seccomp/default.c to include. Runs
 * while AgentDock is built, on a machine of the architecture that it is built for.
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/files.h"
#include "base/scoped.h"
#include "seccomp/filter.h"

enum { PROFILE_BYTES_MAX = 1 << 20 };

static int compile(const char *path, struct seccomp_filter *filter, struct err *e)
{
	scoped_mem char *json = NULL;
	size_t length;

	TRY(file_read_all(AT_FDCWD, path, PROFILE_BYTES_MAX, &json, &length, e));
	return seccomp_filter_compile(json, length, filter, e);
}

static void print(const struct seccomp_filter *filter)
{
	puts("static const struct sock_filter default_instructions[] = {");
	for (unsigned i = 0; i < filter->length; i++) {
		const struct sock_filter *in = &filter->instructions[i];

		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", in->code, in->jt, in->jf, in->k);
	}
	printf("};\nenum { default_notifies = %d };\n", filter->notifies);
}

int main(int argc, char **argv)
{
	struct seccomp_filter filter;
	struct err e;

	if (argc != 2) {
		fputs("usage: seccomp-compile PROFILE.json\n", stderr);
		return 2;
	}
	if (compile(argv[1], &filter, &e) < 0) {
		fprintf(stderr, "seccomp-compile: %s: %s\n", argv[1], e.text);
		return 1;
	}
	print(&filter);
	seccomp_filter_release(&filter);
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
