/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a template: replaced whole, and only where its bytes or permissions are others.
 */
#ifndef PADDOCK_RENDER_OUTPUT_H
#define PADDOCK_RENDER_OUTPUT_H

#include "common/buf.h"
#include "common/err.h"

struct output_wish {
    int dir;           /* fd that `path` begins in */
    const char *path;  /* plain components */
    const char *perms; /* octal; "" or NULL: those of the file that is there, or 0644 */
    int64_t uid, gid;  /* -1: the task's */
};

/* *changed: it has other bytes than before, or was not there. */
int output_write(const struct output_wish *w, struct slice text, bool *changed, struct err *e);

#endif
