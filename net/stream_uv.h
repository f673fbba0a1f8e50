/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to stream.c and listener.c: the stream as libuv sees it.
 */
#ifndef PADDOCK_NET_STREAM_UV_H
#define PADDOCK_NET_STREAM_UV_H

#include <uv.h>

#include "net/stream.h"

enum { STREAM_BUFS_MAX = 4 };

struct peer; /* a row of a listener's count per address */

struct stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    struct loop *loop;
    const struct stream_ops *ops;
    void *arg;
    bool is_unix, closing, reading, finishing;
    bool above; /* queue was at or over the mark: on_drain is due */
    int close_code;
    uint64_t enqueued;   /* bytes that were ever queued */
    uint64_t stall_goal; /* so many of them must be gone when the timer fires */
    int64_t linger_ms;
    struct timer *stall; /* write progress; before that the connect time-out */
    struct timer *linger;
    uv_getaddrinfo_t *resolving;
    struct listener *listener; /* counted there */
    struct peer *row;
    char *peer;
};

struct stream *stream_make(struct loop *l, bool is_unix);
void listener_forget(struct stream *s);

#endif
