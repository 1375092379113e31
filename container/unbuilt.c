/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are being written: whoever writes one overrides it here. Goes when all are there. */
#include "container/container.h"
#include <errno.h>
#include <string.h>
#include "base/strings.h"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define TODO __attribute__((weak))
