/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of variables, as a template with env = true gives them: lines KEY=VALUE. Pure.
 */
#ifndef PADDOCK_TEMPLATE_ENV_FILE_H
#define PADDOCK_TEMPLATE_ENV_FILE_H

#include "common/buf.h"
#include "common/err.h"

struct env_pair {
    const char *name, *value;
};

struct env_pairs {
    struct env_pair *v; /* in the order of the file; a name may come twice: the last one holds */
    size_t n;
};

/* Owned by ctx. -ERR_INVALID: "error on line N: ...", in Nomad's words. */
int env_file_parse(const void *ctx, struct slice text, struct env_pairs *ret, struct err *e);

#endif
