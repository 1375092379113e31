/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a command: built from nothing, never inherited. A name that looks like a
 * secret's is refused however it is asked for, because a sandbox holds no secret.
 */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strings.h"

/* CI, AGENTDOCK_SANDBOX, HOME, PATH, LANG. */
int environment_start(struct string_list *env, struct err *e);

/* "KEY=VALUE", or "KEY" for the value that our own environment has. */
int environment_add(struct string_list *env, const char *assignment, struct err *e);

/* Of an image's config: KEY=VALUE. No name is refused, for what stands there is in the image. */
int environment_add_image(struct string_list *env, const char *assignment, struct err *e);

/* One assignment a line; empty lines and those that start with # are skipped. */
int environment_add_file(struct string_list *env, const char *path, struct err *e);

/* Whether NAME (LENGTH bytes) is one that a sandbox is never given. */
bool environment_is_secret(const char *name, size_t length);

#endif
