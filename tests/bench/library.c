/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times sandbox_run as a long-lived caller of the library sees it: no new process of ours, the host
 * and the image found once.
 *
 *	library STATE RUN CGROUP-PARENT ROUNDS [prepared]
 *
 * Prints one line of microseconds for each run of /bin/true, from the call to its report; with
 * "prepared" in a sandbox that was built ahead. Tearing down is not in it, nor is building ahead.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rootfs/image.h"
#include "runtime/sandbox.h"

static unsigned long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

typedef int run_one(struct sandbox_host *host, const struct sandbox_spec *spec,
                    const struct sandbox_watch *watch, struct report *report, struct sandbox **left,
                    unsigned long long *began_us, struct err *e);

static int run_built(struct sandbox_host *host, const struct sandbox_spec *spec,
                     const struct sandbox_watch *watch, struct report *report,
                     struct sandbox **left, unsigned long long *began_us, struct err *e)
{
	*began_us = now_us();
	return sandbox_run(host, spec, watch, report, left, e);
}

static int run_prepared(struct sandbox_host *host, const struct sandbox_spec *spec,
                        const struct sandbox_watch *watch, struct report *report,
                        struct sandbox **left, unsigned long long *began_us, struct err *e)
{
	const struct sandbox_command command = {spec->argv, spec->envp, spec->cwd};
	struct sandbox *prepared;

	TRY(sandbox_prepare(host, spec, &prepared, e));
	*began_us = now_us();
	return sandbox_run_prepared(prepared, &command, watch, report, left, e);
}

static int time_one(run_one *run, struct sandbox_host *host, const struct sandbox_spec *spec,
                    struct err *e)
{
	const struct sandbox_watch watch = {.livefds = {-1, -1}, .cancelfd = -1};
	unsigned long long began_us = 0;
	struct sandbox *left;
	struct report report;
	int r = run(host, spec, &watch, &report, &left, &began_us, e);

	if (r == 0 && report.exit_code != 0)
		r = err_set(e, ECHILD, "/bin/true returned %d", report.exit_code);
	printf("%llu\n", now_us() - began_us);
	report_release(&report);
	TRY(r);
	return sandbox_tear_down(left, e);
}

static int time_all(struct sandbox_host *host, run_one *run, int rounds, struct err *e)
{
	static char program[] = "/bin/true", path[] = "PATH=/bin";
	static char *const argv[] = {program, NULL}, *const envp[] = {path, NULL};
	struct sandbox_spec spec;
	struct image image;

	sandbox_spec_defaults(&spec);
	spec.argv = argv;
	spec.envp = envp;
	TRY(image_find(&host->store, "default", &image, e));
	spec.image = &image;
	for (int i = 0; i < rounds; i++)
		TRY(time_one(run, host, &spec, e));
	image_release(&image);
	return 0;
}

int main(int argc, char *argv[])
{
	struct sandbox_host_paths paths = {0};
	struct sandbox_host host;
	struct err e = {0};
	int r;

	if (argc < 5) {
		fputs("usage: library STATE RUN CGROUP-PARENT ROUNDS [prepared]\n", stderr);
		return 125;
	}
	paths.state = argv[1];
	paths.run = argv[2];
	paths.cgroup_parent = argv[3];
	r = sandbox_host_open(&host, &paths, &e);
	if (r == 0) {
		r = time_all(&host, argc > 5 ? run_prepared : run_built,
		             (int)strtol(argv[4], NULL, 10), &e);
		sandbox_host_release(&host);
	}
	if (r < 0)
		fprintf(stderr, "library: %s\n", e.text);
	return r < 0 ? 125 : 0;
}
