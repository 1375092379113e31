/* SPDX-License-Identifier: Apache-2.0 */
/* What texts of OCI documents must be like. */
#ifndef OCI_TEXTS_H
#define OCI_TEXTS_H

#include "oci/shape.h"

/* SemVer 2.0.0 of a major version that the runtime-spec 1.x can be read as: 0 (before 1.0) or 1. */
shape_text_check oci_text_version;

shape_text_check oci_text_absolute; /* a path that begins with '/' */
shape_text_check oci_text_filled;   /* not empty */

#endif
