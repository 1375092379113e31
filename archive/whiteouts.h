/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a layer removes from those below it (OCI image-spec, layer.md): ".wh.NAME" the entry NAME,
 * ".wh..wh..opq" all that lower layers have in its directory. Neither touches the layer's own
 * entries, wherever in the archive they stand, so all is carried out at the end.
 */
#ifndef ARCHIVE_WHITEOUTS_H
#define ARCHIVE_WHITEOUTS_H

#include <stddef.h>

#include "archive/target.h"
#include "base/err.h"

struct names {
	char *data; /* with a NUL behind each */
	size_t used, room;
};
struct whiteouts {
	struct names gone, opaque;
};
void whiteouts_release(struct whiteouts *whiteouts);

/* Whether a component of the clean PATH is one of the names that layers reserve. */
bool whiteout_named(const char *path);

/* PATH is such a name: it is remembered, or EBADMSG. */
int whiteouts_note(struct whiteouts *whiteouts, const char *path, struct err *e);

/* Makes them in TARGET, before target_finish; the opaque directories go into OPAQUEFD. */
int whiteouts_apply(struct whiteouts *whiteouts, struct target *target, int opaquefd,
                    struct err *e);

#endif
