/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.seccomp ("Seccomp" and "The Container Process State" in config-linux.md): the document's words
 * become a profile (seccomp/profile.h), whose filter binds the container's process.
 *
 * With no_new_privs the filter comes last, after which there is execve and nothing else. Without, it
 * takes CAP_SYS_ADMIN, so it comes before the user is changed, and the calls from there on are under it.
 * Its listener goes out at once, so that an agent can answer for them; only sendmsg, by which it goes,
 * cannot wait for that answer.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/scoped.h"
#include "base/strings.h"
#include "container/container.h"
#include "runtime/channel.h"
#include "seccomp/names.h"

enum { ERRNO_MAX = 4095, TRACE_MAX = UINT16_MAX };

/* ---- words ---- */

static const uint32_t actions[] = {
	[OCI_ACT_KILL_THREAD] = SECCOMP_RET_KILL_THREAD,
	[OCI_ACT_KILL_PROCESS] = SECCOMP_RET_KILL_PROCESS,
	[OCI_ACT_TRAP] = SECCOMP_RET_TRAP,
	[OCI_ACT_ERRNO] = SECCOMP_RET_ERRNO,
	[OCI_ACT_TRACE] = SECCOMP_RET_TRACE,
	[OCI_ACT_ALLOW] = SECCOMP_RET_ALLOW,
	[OCI_ACT_LOG] = SECCOMP_RET_LOG,
	[OCI_ACT_NOTIFY] = SECCOMP_RET_USER_NOTIF,
};

static const enum seccomp_comparison comparisons[] = {
	[OCI_CMP_NE] = SECCOMP_NE,
	[OCI_CMP_LT] = SECCOMP_LT,
	[OCI_CMP_LE] = SECCOMP_LE,
	[OCI_CMP_EQ] = SECCOMP_EQ,
	[OCI_CMP_GE] = SECCOMP_GE,
	[OCI_CMP_GT] = SECCOMP_GT,
	[OCI_CMP_MASKED_EQ] = SECCOMP_MASKED_EQ,
};

/* Those that some machine of ours can execute; a filter never meets the others. */
static const struct {
	int bit; /* enum oci_seccomp_arch */
	uint32_t token;
} architectures[] = {
	{OCI_ARCH_X86, AUDIT_ARCH_I386},
	{OCI_ARCH_X86_64, AUDIT_ARCH_X86_64},
	{OCI_ARCH_X32, NAMES_X32},
	{OCI_ARCH_ARM, AUDIT_ARCH_ARM},
	{OCI_ARCH_AARCH64, AUDIT_ARCH_AARCH64},
};

enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

static int action_of(int word, const struct oci_uint *given, uint32_t *action, struct err *e)
{
	uint64_t number = given->set ? given->value : EPERM;
	uint64_t most = word == OCI_ACT_ERRNO ? ERRNO_MAX : TRACE_MAX;

	*action = actions[word];
	if (word != OCI_ACT_ERRNO && word != OCI_ACT_TRACE)
		return 0;
	if (number > most)
		return err_set(e, EINVAL, "must be at most %llu, not %llu",
		               (unsigned long long)most, (unsigned long long)number);
	*action |= (uint32_t)number;
	return 0;
}

/* ---- the profile, as the document has it ---- */

struct profile_room {
	uint32_t architectures[ARCHITECTURES];
	struct seccomp_rule *rules;
	struct seccomp_argument *arguments;
};

static int make_room(struct profile_room *room, const struct oci_seccomp *seccomp, struct err *e)
{
	size_t arguments = 0;

	for (size_t i = 0; i < seccomp->syscalls.count; i++)
		arguments += seccomp->syscalls.items[i].args.count;
	room->rules = calloc(seccomp->syscalls.count + 1, sizeof *room->rules);
	room->arguments = calloc(arguments + 1, sizeof *room->arguments);
	if (!room->rules || !room->arguments)
		return err_set(e, ENOMEM, "no memory for its rules");
	return 0;
}

static struct seccomp_argument *put_arguments(struct seccomp_argument *at,
                                              const struct oci_seccomp_args *args)
{
	for (size_t i = 0; i < args->count; i++)
		*at++ = (struct seccomp_argument){
			.index = args->items[i].index,
			.comparison = comparisons[args->items[i].op],
			.value = args->items[i].value,
			.value_two = args->items[i].value_two,
		};
	return at;
}

static int put_rules(struct profile_room *room, const struct oci_seccomp *seccomp, struct err *e)
{
	struct seccomp_argument *next = room->arguments;

	for (size_t i = 0; i < seccomp->syscalls.count; i++) {
		const struct oci_syscall *call = &seccomp->syscalls.items[i];
		struct seccomp_rule *rule = &room->rules[i];

		*rule = (struct seccomp_rule){
			.names = call->names.items,
			.names_count = call->names.count,
			.arguments = next,
			.arguments_count = call->args.count,
		};
		next = put_arguments(next, &call->args);
		if (action_of(call->action, &call->errno_ret, &rule->action, e) < 0)
			return err_in(e, "syscalls[%zu].errnoRet", i);
	}
	return 0;
}

static int make_profile(struct profile_room *room, const struct oci_seccomp *seccomp,
                        struct seccomp_profile *profile, struct err *e)
{
	TRY(make_room(room, seccomp, e));
	TRY(put_rules(room, seccomp, e));
	*profile = (struct seccomp_profile){
		.architectures = room->architectures,
		.flags = seccomp->flags,
		.rules = room->rules,
		.rules_count = seccomp->syscalls.count,
	};
	for (size_t i = 0; i < ARCHITECTURES; i++)
		if (seccomp->architectures >> architectures[i].bit & 1)
			room->architectures[profile->architectures_count++] =
				architectures[i].token;
	if (action_of(seccomp->default_action, &seccomp->default_errno_ret,
	              &profile->default_action, e) < 0)
		return err_in(e, "defaultErrnoRet");
	return 0;
}

/* ---- what cannot be ---- */

static bool passes(uint32_t answer)
{
	return answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_LOG;
}

static int check_notification(const struct oci_seccomp *seccomp,
                              const struct seccomp_profile *profile, struct err *e)
{
	if (profile->default_action == SECCOMP_RET_USER_NOTIF)
		return err_set(
			e, EINVAL,
			"defaultAction: must not be SCMP_ACT_NOTIFY: the runtime's own calls "
			"would wait for an agent that is not told yet; name the calls in "
			"linux.seccomp.syscalls");
	if (!seccomp->listener_path)
		return err_set(e, EINVAL,
		               "listenerPath: is missing, and must be there for the action "
		               "SCMP_ACT_NOTIFY");
	if (strlen(seccomp->listener_path) >= sizeof((struct sockaddr_un *)0)->sun_path)
		return err_set(e, ENAMETOOLONG,
		               "listenerPath: the path of a socket must be shorter than %zu bytes",
		               sizeof((struct sockaddr_un *)0)->sun_path);
	return 0;
}

static int check_profile(const struct container *container, const struct seccomp_profile *profile,
                         const struct seccomp_profile_filter *filter, struct err *e)
{
	bool early = container->process && !container->process->no_new_privileges;

	if (filter->notifies)
		TRY(check_notification(container->config->linux_part->seccomp, profile, e));
	if (!(early || filter->notifies) || passes(seccomp_profile_answer(profile, "sendmsg")))
		return 0;
	return err_set(e, EINVAL,
	               "sendmsg must have the action SCMP_ACT_ALLOW or SCMP_ACT_LOG: %s, and this "
	               "call is what the runtime needs after the filter is there; %s",
	               early ? "process.noNewPrivileges is not true"
	                     : "there are calls with SCMP_ACT_NOTIFY",
	               early ? "set process.noNewPrivileges, or allow the call" : "allow the call");
}

static int compile(const struct container *container, const struct oci_seccomp *seccomp,
                   struct profile_room *room, struct seccomp_profile_filter *filter, struct err *e)
{
	struct seccomp_profile profile;

	TRY(make_profile(room, seccomp, &profile, e));
	TRY(seccomp_profile_compile(&profile, filter, e));
	return check_profile(container, &profile, filter, e);
}

OUTSIDE(compile_filter)
{
	const struct oci_seccomp *seccomp = container->config->linux_part->seccomp;
	struct profile_room room = {0};
	int r;

	if (!seccomp)
		return 0;
	container->filter = calloc(1, sizeof *container->filter);
	if (!container->filter)
		return err_set(e, ENOMEM, "no memory for a seccomp filter");
	r = compile(container, seccomp, &room, container->filter, e);
	free(room.rules);
	free(room.arguments);
	return r < 0 ? err_in(e, "config.json: linux.seccomp") : 0;
}

void filter_free(struct seccomp_profile_filter *filter)
{
	if (filter)
		seccomp_profile_filter_release(filter);
	free(filter);
}

/* ---- inside ---- */

static int install(const struct inside *in, struct err *e)
{
	struct channel_message message = {.kind = CHANNEL_LISTENER};
	scoped_fd listenerfd = -1;

	TRY(seccomp_profile_filter_install(in->container->filter, &listenerfd, e));
	if (listenerfd < 0)
		return 0;
	/* close(2) may be among what notifies: the descriptor is close-on-exec, and is left at that */
	return channel_send(in->channelfd, &message, take_fd(&listenerfd), e);
}

INSIDE(install_filter_early)
{
	if (!in->container->filter || in->process->no_new_privileges)
		return 0;
	return install(in, e);
}

INSIDE(install_filter_late)
{
	if (!in->container->filter || !in->process->no_new_privileges)
		return 0;
	return install(in, e);
}

/* ---- the agent ---- */

static struct json_object *process_state(const struct container *container)
{
	const struct oci_seccomp *seccomp = container->config->linux_part->seccomp;
	const struct oci_state state = {
		.version = container->config->version,
		.id = container->entry->id,
		.status = container->joins ? OCI_RUNNING : OCI_CREATING,
		.pid = container->joins ? container->entry->record.pid : container->pid,
		.bundle = container->bundle,
		.annotations = container->config->annotations,
	};
	struct json_object *document = json_object_new_object();

	json_add_string(document, "ociVersion", container->config->version);
	json_object_array_add(json_add_array(document, "fds"), json_object_new_string("seccompFd"));
	json_add_u64(document, "pid", (uint64_t)container->pid);
	if (seccomp->listener_metadata)
		json_add_string(document, "metadata", seccomp->listener_metadata);
	json_object_object_add(document, "state", oci_state_to_json(&state));
	return document;
}

static int connect_to(const char *path, struct err *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	TRY(text_format(address.sun_path, sizeof address.sun_path, e, "%s", path));
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
		err_sys(e, "connecting to %s", path);
		return err_hint(e, "the agent that answers for SCMP_ACT_NOTIFY must listen there "
		                   "before the container is started");
	}
	return take_fd(&fd);
}

/* The descriptor goes with the first of what is sent, as the spec wants it. */
static int send_state(int fd, const char *text, size_t length, int listenerfd, struct err *e)
{
	union {
		char buffer[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct cmsghdr *header = &control.align;
	size_t sent = 0;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof listenerfd);
	memcpy(CMSG_DATA(header), &listenerfd, sizeof listenerfd);
	while (sent < length) {
		struct iovec rest = {.iov_base = (char *)(uintptr_t)text + sent,
		                     .iov_len = length - sent};
		struct msghdr message = {
			.msg_iov = &rest,
			.msg_iovlen = 1,
			.msg_control = sent ? NULL : control.buffer,
			.msg_controllen = sent ? 0 : sizeof control.buffer,
		};
		ssize_t r = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_sys(e, "sending the container's state to the agent");
		sent += (size_t)r;
	}
	return 0;
}

int filter_hand_over(const struct container *container, int listenerfd, struct err *e)
{
	const char *path = container->config->linux_part->seccomp->listener_path;
	scoped_json document = process_state(container);
	scoped_fd fd = connect_to(path, e);
	size_t length;
	const char *text;

	if (fd < 0)
		return err_in(e, "linux.seccomp.listenerPath");
	text = json_object_to_json_string_length(
		document, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
	if (send_state(fd, text, length, listenerfd, e) < 0)
		return err_in(e, "linux.seccomp.listenerPath");
	return 0;
}
