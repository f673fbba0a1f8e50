/* SPDX-License-Identifier: Apache-2.0
 *
 * The escape character of a terminal session: at the beginning of a line it ends the session when a
 * dot follows, and stands for itself when it follows itself.
 */
#ifndef PADDOCK_CLI_ESCAPE_H
#define PADDOCK_CLI_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

struct escape {
    char ch;       /* 0: there is none, all bytes are passed on */
    bool at_start; /* of a line */
    bool seen;     /* the character was, what follows it was not */
};

void escape_init(struct escape *x, char ch);
/* Appends what is to be sent. False: the session is to end. */
bool escape_feed(struct escape *x, const char *p, size_t n, struct buf *out);

#endif
