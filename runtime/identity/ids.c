/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a sandbox is: the id maps of its user namespace, written from outside, and the changes of
 * user that its process makes inside. Owns nothing.
 *
 * The id calls are made raw: glibc's own signal every thread of the process, which is machinery
 * that a process with one thread, between clone and exec, can do without. Each change is read back,
 * because a process that goes on with an id that it meant to give up is the fault to fear here.
 */
#include "runtime/identity/identity.h"

#include <errno.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"

/* Below are the host's own users; above, a range would reach the id -1 that means "none". */
enum { HOST_BASE_MIN = IDENTITY_RANGE };
static const uint32_t HOST_BASE_MAX = UINT32_MAX - IDENTITY_RANGE;

static int write_map(int procfd, const char *name, const char *line, struct err *e)
{
	if (file_write(procfd, name, line, e) == 0)
		return 0;
	err_in(e, "mapping the ids of the sandbox's user namespace");
	if (e->code == EPERM)
		err_hint(e, "this needs root, in a user namespace that has the host ids of \"%s\"",
		         line);
	return -e->code;
}

int identity_map_ids(int procfd, uint32_t host_base, struct err *e)
{
	char line[32];

	if (host_base < HOST_BASE_MIN || host_base > HOST_BASE_MAX)
		return err_set(e, EINVAL,
		               "user namespace: the first host id is %u; choose one from %u to %u",
		               host_base, (unsigned)HOST_BASE_MIN, HOST_BASE_MAX);
	snprintf(line, sizeof line, "0 %u %u", host_base, (unsigned)IDENTITY_RANGE);
	/* Refused where an outer user namespace said "deny": then no group could be given up. */
	TRY(write_map(procfd, "setgroups", "allow", e));
	TRY(write_map(procfd, "uid_map", line, e));
	return write_map(procfd, "gid_map", line, e);
}

int identity_set_groups(const uint32_t *groups, size_t count, struct err *e)
{
	if (syscall(SYS_setgroups, count, groups) == 0)
		return 0;
	err_sys(e,
	        count ? "setting the supplementary groups" : "giving up the supplementary groups");
	return err_hint(e, "this needs CAP_SETGID and a user namespace whose setgroups is "
	                   "\"allow\"");
}

static int set_gid(uint32_t gid, struct err *e)
{
	if (syscall(SYS_setresgid, gid, gid, gid) == 0)
		return 0;
	err_sys(e, "becoming group %u", gid);
	return err_hint(
		e, "this needs CAP_SETGID and, in a user namespace, an id that is mapped there");
}

static int set_uid(uint32_t uid, struct err *e)
{
	if (syscall(SYS_setresuid, uid, uid, uid) == 0)
		return 0;
	err_sys(e, "becoming user %u", uid);
	return err_hint(
		e, "this needs CAP_SETUID and, in a user namespace, an id that is mapped there");
}

static int verify_ids(uint32_t uid, uint32_t gid, struct err *e)
{
	uid_t real, effective, saved;
	gid_t rgid, egid, sgid;

	if (getresuid(&real, &effective, &saved) < 0 || getresgid(&rgid, &egid, &sgid) < 0)
		return err_sys(e, "reading the user and group ids back");
	/* An impossible id changes nothing; the answer is the one that is set. */
	if (real != uid || effective != uid || saved != uid || (uid_t)setfsuid((uid_t)-1) != uid)
		return err_set(e, EPERM, "becoming user %u: the kernel kept another user id", uid);
	if (rgid != gid || egid != gid || sgid != gid || (gid_t)setfsgid((gid_t)-1) != gid)
		return err_set(e, EPERM, "becoming group %u: the kernel kept another group id",
		               gid);
	return 0;
}

int identity_set_ids(uint32_t uid, uint32_t gid, struct err *e)
{
	/* To the set*id calls, -1 means "leave it as it is", which here would be root. */
	if (uid == (uint32_t)-1 || gid == (uint32_t)-1)
		return err_set(e, EINVAL, "becoming user %u, group %u: %u is not an id", uid, gid,
		               (uint32_t)-1);
	TRY(set_gid(gid, e));
	TRY(set_uid(uid, e));
	return verify_ids(uid, gid, e);
}

int identity_become_user(uint32_t uid, uint32_t gid, struct err *e)
{
	TRY(identity_set_groups(NULL, 0, e));
	TRY(identity_set_ids(uid, gid, e));
	if (getgroups(0, NULL) != 0)
		return err_set(e, EPERM, "becoming user %u: supplementary groups are left", uid);
	return 0;
}

int identity_become_root(struct err *e)
{
	return identity_become_user(0, 0, e);
}
