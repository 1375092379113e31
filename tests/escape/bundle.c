/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher for other runtimes: writes the config.json of a bundle and runs the runtime on it. The
 * configuration is the caller's, or what `runc spec` gives (root without a user namespace, three
 * capabilities, masked paths), with those options of the attack that such a file can express; a limit
 * of the disk is none of them. Owns the container: when it is told to end, or when the time of the attack is up,
 * the container is killed by the runtime, and in the end it is deleted, whatever became of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/strings.h"
#include "tests/escape/driver.h"

enum { TIMEOUT_SECONDS = 60, KILLS = 4, CONFIG_BYTES_MAX = 1 << 20 };

static const char spec[] =
	"{\"ociVersion\":\"1.0.2\",\"hostname\":\"sandbox\","
	"\"process\":{\"terminal\":false,\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\","
	"\"env\":[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"],"
	"\"capabilities\":{"
	"\"bounding\":[\"CAP_AUDIT_WRITE\",\"CAP_KILL\",\"CAP_NET_BIND_SERVICE\"],"
	"\"effective\":[\"CAP_AUDIT_WRITE\",\"CAP_KILL\",\"CAP_NET_BIND_SERVICE\"],"
	"\"permitted\":[\"CAP_AUDIT_WRITE\",\"CAP_KILL\",\"CAP_NET_BIND_SERVICE\"]},"
	"\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"hard\":1024,\"soft\":1024}],"
	"\"noNewPrivileges\":true},"
	"\"root\":{\"path\":\"rootfs\",\"readonly\":false},"
	"\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
	"\"options\":[\"nosuid\",\"strictatime\",\"mode=755\",\"size=65536k\"]},"
	"{\"destination\":\"/dev/pts\",\"type\":\"devpts\",\"source\":\"devpts\",\"options\":"
	"[\"nosuid\",\"noexec\",\"newinstance\",\"ptmxmode=0666\",\"mode=0620\",\"gid=5\"]},"
	"{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"source\":\"shm\",\"options\":"
	"[\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\",\"size=65536k\"]},"
	"{\"destination\":\"/dev/mqueue\",\"type\":\"mqueue\",\"source\":\"mqueue\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\"]},"
	"{\"destination\":\"/sys\",\"type\":\"sysfs\",\"source\":\"sysfs\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\",\"ro\"]},"
	"{\"destination\":\"/sys/fs/cgroup\",\"type\":\"cgroup\",\"source\":\"cgroup\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\",\"relatime\",\"ro\"]}],"
	"\"linux\":{"
	"\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}]},"
	"\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
	"{\"type\":\"uts\"},{\"type\":\"mount\"}],"
	"\"maskedPaths\":[\"/proc/acpi\",\"/proc/asound\",\"/proc/kcore\",\"/proc/keys\","
	"\"/proc/latency_stats\",\"/proc/timer_list\",\"/proc/timer_stats\","
	"\"/proc/sched_debug\",\"/sys/firmware\",\"/proc/scsi\"],"
	"\"readonlyPaths\":[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\","
	"\"/proc/sysrq-trigger\"]}}";

/* What of it an attack changes. The configuration owns them; they are borrowed. */
struct config {
	struct json_object *whole, *process, *mounts, *resources;
	unsigned timeout_seconds;
};

static int config_parts(struct config *config, struct err *e)
{
	struct json_object *linux_part;

	TRY(json_get_object(config->whole, "process", true, &config->process, e));
	TRY(json_get_array(config->whole, "mounts", true, &config->mounts, e));
	TRY(json_get_object(config->whole, "linux", true, &linux_part, e));
	return json_get_object(linux_part, "resources", true, &config->resources, e);
}

static void add_mount(struct config *config, const char *at, const char *type, const char *source,
                      const char *const options[])
{
	struct json_object *mount = json_object_new_object(), *array;

	json_add_string(mount, "destination", at);
	json_add_string(mount, "type", type);
	json_add_string(mount, "source", source);
	array = json_add_array(mount, "options");
	for (; *options; options++)
		json_object_array_add(array, json_object_new_string(*options));
	json_object_array_add(config->mounts, mount);
}

static struct json_object *add_limit(struct config *config, const char *kind, uint64_t limit)
{
	struct json_object *object = json_add_object(config->resources, kind);

	json_add_u64(object, "limit", limit);
	return object;
}

/* What waits in sockets of TCP is counted apart by v1, and with all the rest by v2. */
static void add_memory_limit(struct config *config, uint64_t limit)
{
	struct json_object *memory = add_limit(config, "memory", limit);

	if (access("/sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes", F_OK) == 0)
		json_add_u64(memory, "kernelTCP", limit);
}

/* OPTION is one of `agentdock run`; what has no like in a bundle is left out. */
static int apply(struct config *config, const char *option, const char *value, struct err *e)
{
	uint64_t number;
	char path[256];

	if (strcmp(option, "--workdir") == 0) {
		json_add_string(config->process, "cwd", value);
	} else if (strcmp(option, "--memory") == 0) {
		TRY(parse_bytes(value, &number, e));
		add_memory_limit(config, number);
	} else if (strcmp(option, "--pids-limit") == 0) {
		TRY(parse_u64(value, UINT32_MAX, &number, e));
		add_limit(config, "pids", number);
	} else if (strcmp(option, "--timeout") == 0) {
		TRY(parse_duration_ms(value, &number, e));
		config->timeout_seconds = (unsigned)((number + 999) / 1000);
	} else if (strcmp(option, "--tmpfs") == 0) {
		TRY(text_format(path, sizeof(path), e, "%.*s", (int)strcspn(value, ":"), value));
		add_mount(config, path, "tmpfs", "tmpfs", WORDS("nosuid", "nodev", "mode=1777"));
	}
	return 0;
}

static int read_config(struct config *config, const char *file, struct err *e)
{
	if (*file)
		TRY(json_parse_file(AT_FDCWD, file, CONFIG_BYTES_MAX, &config->whole, e));
	else
		TRY(json_parse(spec, strlen(spec), &config->whole, e));
	return config_parts(config, e);
}

static int write_config(struct config *config, const struct attack *attack, const char *bundle,
                        const char *workspace, const char *file, char *const argv[], struct err *e)
{
	const char *const *option = attack->options;
	struct json_object *args;
	char path[4096];
	const char *text;

	TRY(read_config(config, file, e));
	/* a value is looked at as if it were an option, too, and is none */
	for (; option && option[0] && option[1]; option++)
		TRY(apply(config, option[0], option[1], e));
	if (*workspace)
		add_mount(config, "/workspace", "bind", workspace, WORDS("rbind", "rw"));
	args = json_add_array(config->process, "args");
	for (; *argv; argv++)
		json_object_array_add(args, json_object_new_string(*argv));
	TRY(text_format(path, sizeof(path), e, "%s/config.json", bundle));
	text = json_object_to_json_string_ext(config->whole, JSON_C_TO_STRING_NOSLASHESCAPE);
	return file_replace(AT_FDCWD, path, text, strlen(text), 0644, e);
}

/* Some runtimes refuse a host with both versions of cgroups; in a mount namespace of its own such a
 * runtime does not see the second. */
static int hide_second_cgroups(struct err *e)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	char second[4096] = "";
	struct mntent *mount_entry;
	bool first = false;

	if (!mounts)
		return err_sys(e, "/proc/self/mounts");
	while ((mount_entry = getmntent(mounts)) != NULL) {
		if (strcmp(mount_entry->mnt_type, "cgroup") == 0)
			first = true;
		if (strcmp(mount_entry->mnt_type, "cgroup2") == 0)
			snprintf(second, sizeof(second), "%s", mount_entry->mnt_dir);
	}
	endmntent(mounts);
	if (!first || !*second)
		return 0;
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(e, "making a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "making the mounts private");
	return umount2(second, MNT_DETACH) < 0 ? err_sys(e, "hiding %s", second) : 0;
}

/* ---- the container ---- */

static pid_t start(const char *const argv[], bool quiet, const sigset_t *mask)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (quiet) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	/* execvp's type lacks const, but it changes nothing */
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	fprintf(stderr, "agentdock-probes: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int wait_for(pid_t pid)
{
	int status = 127 << 8;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool has_ended(pid_t pid)
{
	siginfo_t ended = {.si_pid = 0};

	return pid < 0 || (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	                   ended.si_pid == pid);
}

static int run(const char *runtime, const char *bundle, const char *id, unsigned seconds)
{
	sigset_t signals, before;
	int signo, status, asked = 0;
	pid_t pid;

	/* blocked and waited for: there is no moment at which one of them is missed */
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGALRM);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, &before);
	pid = start(WORDS(runtime, "run", "--bundle", bundle, id), false, &before);
	alarm(seconds);
	while (!has_ended(pid)) {
		signo = sigwaitinfo(&signals, NULL);
		if (signo != SIGALRM && signo != SIGTERM)
			continue;
		wait_for(start(WORDS(runtime, "kill", id, "KILL"), true, &before));
		/* again, where there was nothing to kill yet; then without the runtime's help */
		if (++asked == KILLS)
			kill(pid, SIGKILL);
		alarm(1);
	}
	status = wait_for(pid);
	wait_for(start(WORDS(runtime, "delete", "--force", id), true, &before));
	return status;
}

int run_bundle(const struct attack *attack, const char *bundle, const char *id, const char *runtime,
               const char *workspace, const char *config_file, char *const argv[])
{
	struct config config = {.timeout_seconds = TIMEOUT_SECONDS};
	struct err e;
	int failed = write_config(&config, attack, bundle, workspace, config_file, argv, &e);

	json_release(&config.whole);
	if (failed < 0 || hide_second_cgroups(&e) < 0) {
		fprintf(stderr, "agentdock-probes: %s\n", e.text);
		return 125;
	}
	return run(runtime, bundle, id, config.timeout_seconds);
}
