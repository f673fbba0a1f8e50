/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PADDOCK_FETCH_SUM_H
#define PADDOCK_FETCH_SUM_H

#include "api/artifact/artifact.h"

/* Reads the file from its beginning. -ERR_CORRUPT: it has another sum. `name` is for the error. */
int sum_check(int fd, const struct artifact_checksum *want, const char *name, struct err *e);

#endif
