/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standing on an image: its layers' roots by descriptor, each with its shared lock, which keeps gc
 * away for as long as the descriptor (or a copy of it) is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/files.h"
#include "base/scoped.h"
#include "rootfs/image_store.h"

int image_layer_open(const struct image_store *store, const char *digest, int *layerfd, int *lockfd,
                     struct err *e)
{
	scoped_fd rootfd = -1, heldfd = -1;
	char path[IMAGE_PATH_SIZE];

	image_layer_path(digest, "lock", path);
	heldfd = file_open(store->statefd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, e);
	TRY(heldfd);
	/* Not to be waited for: only gc takes it exclusively, and that under the store's lock. */
	if (flock(heldfd, LOCK_SH | LOCK_NB) < 0)
		return err_sys(e, "locking %s/%s", store->path, path);
	image_layer_path(digest, "root", path);
	rootfd = file_open(store->statefd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, e);
	TRY(rootfd);
	*layerfd = take_fd(&rootfd);
	*lockfd = take_fd(&heldfd);
	return 0;
}

int image_layers_open(const struct image_store *store, const struct image *image, int layerfds[],
                      int lockfds[], struct err *e)
{
	const char *name = image->names.count ? image->names.items[0] : image->digest;
	scoped_fd storefd = image_store_lock(store, LOCK_SH, e);

	TRY(storefd);
	for (int i = 0; i < image->layers_count; i++) {
		if (image_layer_open(store, image->layers[i], &layerfds[i], &lockfds[i], e) == 0)
			continue;
		while (i-- > 0) {
			close_fd(&layerfds[i]);
			close_fd(&lockfds[i]);
		}
		err_in(e, "image %s", name);
		return e->code == ENOENT ? err_hint(e, "it was removed meanwhile, or a layer is "
		                                       "damaged: import it again")
		                         : -e->code;
	}
	return 0;
}

int image_open(struct image_store *store, const struct image *image, int layerfds[], int lockfds[],
               struct err *e)
{
	const char *name = image->names.count ? image->names.items[0] : image->digest;

	if (strcmp(image->architecture, image_machine()) != 0)
		return err_set(e, ENOEXEC,
		               "image %s is for %s and this machine is %s; import one for "
		               "%s",
		               name, image->architecture, image_machine(), image_machine());
	return image_layers_open(store, image, layerfds, lockfds, e);
}
