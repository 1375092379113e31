/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn to build: of all who build sandboxes on this host at the same moment, two for each CPU work
 * and the others wait. More at once only get in each other's way, at the kernel's locks and in its
 * caches.
 *
 * A semaphore of System V (semop(2)): whoever dies in his turn gives it back (SEM_UNDO), and who
 * waits costs nothing. It is a courtesy, not a wall: where there is no semaphore, or nobody has got
 * or given back a turn for a while (its holders are stopped, or its maker died before it had turns
 * to give), the next one goes without, and takes the semaphore away for another to make anew.
 */
#include <errno.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include "runtime/score.h"

enum { SLICE_MS = 250, STALE_SECONDS = 5, TURNS_PER_CPU = 2 };

/* semctl(2): the caller defines it. */
union semun {
	int val;
	struct semid_ds *buf;
};

static int change(int id, int by, int wait_ms)
{
	struct sembuf operation = {.sem_op = (short)by, .sem_flg = SEM_UNDO};
	struct timespec wait = {.tv_nsec = wait_ms * 1000000L};

	return semtimedop(id, &operation, 1, &wait);
}

/* -1: no semaphores here. One that is new has no turns yet, so that all wait for who made it. */
static int turns_open(void)
{
	struct sembuf give = {.sem_op = (short)(TURNS_PER_CPU * sysconf(_SC_NPROCESSORS_ONLN))};
	int id = semget(TURNS_KEY, 1, 0600);

	if (id >= 0 || errno != ENOENT)
		return id;
	id = semget(TURNS_KEY, 1, IPC_CREAT | IPC_EXCL | 0600);
	if (id < 0)
		return errno == EEXIST ? semget(TURNS_KEY, 1, 0600) : -1;
	return semop(id, &give, 1) == 0 ? id : -1;
}

/* Or made by somebody whose turns are none: any user of the host's may make one under that key. */
static bool is_stale(int id)
{
	struct semid_ds status = {0};

	if (semctl(id, 0, IPC_STAT, (union semun){.buf = &status}) < 0)
		return false;
	if (status.sem_perm.cuid != 0 || status.sem_perm.uid != 0 || (status.sem_perm.mode & 022))
		return true;
	time_t last = status.sem_otime > status.sem_ctime ? status.sem_otime : status.sem_ctime;

	return time(NULL) - last > STALE_SECONDS;
}

OUTSIDE(take_turn)
{
	int id = turns_open();

	while (id >= 0) {
		if (change(id, -1, SLICE_MS) == 0) {
			sandbox->turns = id;
			return 0;
		}
		if (errno != EAGAIN && errno != EINTR)
			return 0;
		TRY(supervise_check(sandbox, e));
		if (is_stale(id)) {
			semctl(id, 0, IPC_RMID);
			return 0;
		}
	}
	return 0;
}

void turn_give_back(struct sandbox *sandbox)
{
	if (sandbox->turns >= 0)
		change(sandbox->turns, 1, 0);
	sandbox->turns = -1;
}
