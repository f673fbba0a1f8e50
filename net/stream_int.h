/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to stream.c and listener.c: a stream over a transport.
 */
#ifndef PADDOCK_NET_STREAM_INT_H
#define PADDOCK_NET_STREAM_INT_H

#include "net/stream.h"
#include "net/transport_int.h"

struct stream {
    struct transport *t;
    struct loop *loop;
    const struct stream_ops *ops;
    void *arg;
    bool closing, reading, finishing;
    bool ended; /* the peer is told so when all is written */
    bool above; /* queue was at or over the mark: on_drain is due */
    int close_code;
    uint64_t enqueued;   /* bytes that were ever queued */
    uint64_t stall_goal; /* so many of them must be gone when the timer fires */
    int64_t linger_ms;
    struct timer *stall; /* write progress; before that the connect time-out */
    struct timer *linger;
    void (*on_gone)(void *arg); /* of who made it, before the owner's on_close */
    void *gone_arg;
    char *peer;
};

/* Takes the transport. */
struct stream *stream_make(struct loop *l, struct transport *t);

#endif
