/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables in lines, as a template with `env = true` gives them: NAME=VALUE, with `export ` in
 * front, quotes and comments as a shell's. Pure.
 */
#ifndef PADDOCK_RENDER_ENVFILE_H
#define PADDOCK_RENDER_ENVFILE_H

#include "codec/codec.h"
#include "common/err.h"

enum { ENVFILE_LINE_MAX = 64 << 10 };

/* Adds to *ret, whose texts are owned by ctx; a name that is there is replaced. -ERR_INVALID: "error
 * on line N: ...". */
int envfile_parse(const void *ctx, struct slice text, struct str_map *ret, struct err *e);

#endif
