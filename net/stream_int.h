/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to stream.c and listener.c: a stream over a transport.
 */
#ifndef PADDOCK_NET_STREAM_INT_H
#define PADDOCK_NET_STREAM_INT_H

#include "net/stream.h"
#include "net/transport_int.h"

struct stream {
    struct transport *t;     /* the socket, or a filter on it */
    struct carrier *carrier; /* NULL: no socket carries it */
    struct loop *loop;
    const struct stream_ops *ops;
    void *arg;
    bool dialled, closing, reading, finishing;
    bool ended; /* the peer is told so when all is written */
    bool above; /* queue was at or over the mark: on_drain is due */
    int close_code;
    uint64_t enqueued;   /* bytes that were ever queued */
    uint64_t stall_goal; /* so many of them must be gone when the timer fires */
    int64_t linger_ms;
    struct stream_way way; /* dialled: how */
    struct timer *stall; /* write progress; before that the connect time-out */
    struct timer *linger;
    void (*on_gone)(void *arg); /* of who made it, before the owner's on_close */
    void *gone_arg;
    char *peer;
};

/* Takes the transport. */
struct stream *stream_make(struct loop *l, struct transport *t);
struct stream *stream_over(struct loop *l, struct carrier *c);
/* Puts a filter on, of a stream that the other side dialled; p[0..n) are bytes of it that have come
 * already. Nothing was written yet. In on_data, no further bytes of that call come. */
void stream_wrap(struct stream *s, const struct filter *f, const char *protocol, const uint8_t *p,
                 size_t n);

#endif
