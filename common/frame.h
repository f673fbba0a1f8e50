/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in a stream of bytes: a type, three zeros, the length (four bytes, big-endian), and so
 * many bytes. Container engines put the output of a container so; the engine hand and the agent
 * use the same for commands in containers. Pure.
 */
#ifndef PADDOCK_COMMON_FRAME_H
#define PADDOCK_COMMON_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum { FRAME_HEAD = 8 };

void frame_put(struct buf *b, uint8_t type, const void *p, size_t n);

/* 0: go on. Anything else ends the feeding at once, and may mean that `rest` is gone. */
typedef int frame_fn(void *arg, uint8_t type, const uint8_t *p, size_t n);
/* Bytes that came, in any pieces; `rest` keeps what is of a message that is not whole; a message
 * has at most half of its `max`. What `fn` said; -ERR_CORRUPT: not such a stream, or a message that
 * is too long. */
int frame_feed(struct buf *rest, const void *p, size_t n, frame_fn *fn, void *arg);

#endif
