/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of variables. Pure.
 */
#ifndef PADDOCK_API_VAR_PATH_H
#define PADDOCK_API_VAR_PATH_H

#include "common/err.h"

enum { VAR_PATH_MAX = 128 };

/* A path that can be written: letters, digits and "-_~/"; below "nomad" only what is for jobs and
 * their templates. -ERR_INVALID. */
int vars_check_path(const char *path, struct err *e);

#endif
