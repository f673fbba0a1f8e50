/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to net/: the libuv side of the loop.
 */
#ifndef PADDOCK_NET_LOOP_UV_H
#define PADDOCK_NET_LOOP_UV_H

#include <uv.h>

#include "net/loop.h"

uv_loop_t *loop_uv(struct loop *l);
/* STREAM_READ_SIZE bytes shared by all reads of the loop: valid until the read callback returns. */
char *loop_read_buffer(struct loop *l);

#endif
