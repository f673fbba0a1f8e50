/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to net/: the libuv side of the loop.
 */
#ifndef PADDOCK_NET_LOOP_INT_H
#define PADDOCK_NET_LOOP_INT_H

#include <uv.h>

#include "net/loop.h"

uv_loop_t *loop_uv(struct loop *l);
/* STREAM_READ_SIZE bytes shared by all reads of the loop: valid until the read callback returns. */
char *loop_read_buffer(struct loop *l);
/* A connection has gone: counts for loop_give_back(). */
void loop_note_close(struct loop *l);

/* loop_quiet.c: see loop_give_back() */
struct quiet;
struct quiet *quiet_start(struct loop *l);
void quiet_count(struct quiet *q); /* one more piece of work; NULL is fine */
void quiet_stop(struct quiet *q); /* NULL is fine; closes in a later turn */

#endif
