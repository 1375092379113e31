/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources that release themselves at the end of their scope (cleanup attribute of gcc and clang).
 *
 *	scoped_fd fd = open(...);            closed on every way out, also when it is -1
 *	scoped_mem char *text = strdup(...); freed on every way out
 *	return take_fd(&fd);                 hands over: the scope no longer owns it
 *
 * Releasing keeps errno, so that err_sys() after it still tells the first cause.
 */
#ifndef BASE_SCOPED_H
#define BASE_SCOPED_H

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void close_fd(int *fd)
{
	int keep = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = keep;
}

static inline void free_mem(void *p)
{
	free(*(void **)p);
}

static inline void close_dir(DIR **dir)
{
	int keep = errno;

	if (*dir)
		closedir(*dir);
	errno = keep;
}

#define scoped_fd  __attribute__((cleanup(close_fd))) int
#define scoped_mem __attribute__((cleanup(free_mem)))
#define scoped_dir __attribute__((cleanup(close_dir))) DIR *

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* take_mem(&pointer): the pointer, which its scope gives up. */
#define take_mem(pp)                                                                               \
	({                                                                                         \
		__typeof__(*(pp)) taken_ = *(pp);                                                  \
		*(pp) = NULL;                                                                      \
		taken_;                                                                            \
	})

#endif
