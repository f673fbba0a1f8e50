/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to net/: a link is an RPC connection, whoever made and whatever carries it, with the
 * calls and streams under way in both directions. Ids are the caller's and the kind of a frame says
 * whose it is, so the two directions need not agree on them.
 *
 *   rpc_link.c     frames in, who sends next, life
 *   rpc_serve.c    calls that came in
 *   rpc_calls.c    calls that went out
 *   rpc_stream.c   the bytes of a call with `stream`: a transport
 */
#ifndef PADDOCK_NET_RPC_LINK_INT_H
#define PADDOCK_NET_RPC_LINK_INT_H

#include "net/rpc_wire_int.h"
#include "net/stream.h"

struct rpc_pending;
struct rpc_stream;

struct rpc_link_config {
    struct loop *loop;
    const struct rpc_service *services;
    size_t n;
    void *arg;
    const char *peer;
    bool local; /* the caller's clock is ours: its cancel ends a call, no second timer */
    /* A frame in at most TRANSPORT_BUFS_MAX pieces; takes their memory. */
    void (*send)(void *carrier, struct buf *bufs, size_t n);
    void (*hand)(void *carrier, uint64_t id,
                 const void *resp);  /* local: an answer as it is, at once */
    size_t (*queued)(void *carrier); /* bytes sent that wait; rpc_link_drained() tells of less */
    void (*wanted)(void *carrier); /* a call waits for the connection; NULL: there is one */
    /* Returns the other end; NULL: there is no such function, or it has not proved itself. */
    const struct peer_identity *(*identity)(void *carrier);
    void (*mute)(void *carrier); /* nothing came in all the time of a call; NULL: that is so */
    void *carrier;
};

struct rpc_link {
    struct rpc_link_config cfg;
    bool up; /* frames can be sent */
    bool closed;
    size_t refs;
    void *ctx; /* of others: goes when it is closed */
    struct rpc_call *calls;        /* came in, not answered */
    struct rpc_pending *pending;   /* went out, not answered */
    struct rpc_stream *streams[2]; /* by whether the call went out */
    struct rpc_stream *first, *last; /* those with bytes to send that may be sent, by turns */
    uint64_t next_id; /* the last of a call that went out ... */
    uint64_t last_id; /* ... and the highest of one that came in */
    int64_t heard_ms; /* when the last frame came */
    int64_t turn_ms;  /* of the loop, as far as its clock tells ... */
    unsigned in_turn; /* ... and the calls that came in it */
    const char *why; /* there is no connection, of the carrier; NULL */
};

struct rpc_link *rpc_link_new(const struct rpc_link_config *cfg);
/* False: malformed, close the connection. The link may be closed in it. */
bool rpc_link_frame(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body);
/* There is a connection: what waits is sent. */
void rpc_link_up(struct rpc_link *l);
/* The connection broke: calls that were sent end by `lost`, and those that have waited for
 * RPC_PATIENCE_MS by `why`, which lives on. */
void rpc_link_down(struct rpc_link *l, const char *why, const char *lost);
/* Less than STREAM_LOW_WATER waits to be sent. */
void rpc_link_drained(struct rpc_link *l);
void rpc_link_unref(struct rpc_link *l); /* of refs++ */
/* Everything open ends with that code; nothing is sent any more. NULL is fine. */
void rpc_link_close(struct rpc_link *l, int code, const char *why);
void rpc_link_put(struct rpc_link *l, struct buf *frame); /* takes it; dropped when not up */
/* A frame without a body. */
void rpc_link_put_head(struct rpc_link *l, const struct rpc_head *h);
/* The error that answers what has this head. */
void rpc_link_put_error(struct rpc_link *l, const struct rpc_head *to, const struct err *e);
/* Return the most calls, or streams, each way. */
unsigned rpc_link_calls_max(const struct rpc_link *l);
unsigned rpc_link_streams_max(const struct rpc_link *l);

/* rpc_client.c: to one of its servers, now or later; what its timer does */
void rpc_client_rebalance(struct rpc_client *c);

/* rpc_serve.c */
bool rpc_serve_call(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body);
void rpc_serve_cancel(struct rpc_link *l, uint64_t id);
void rpc_serve_end(struct rpc_link *l); /* cancels all */

/* rpc_calls.c */
/* False: no such call was made. */
bool rpc_calls_answer(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body);
void rpc_calls_hand(struct rpc_link *l, uint64_t id, const void *resp);
void rpc_calls_up(struct rpc_link *l);
void rpc_calls_down(struct rpc_link *l, const char *lost);
void rpc_calls_end(struct rpc_link *l, int code, const char *why); /* completes all */
/* Says whether all calls that were sent and not answered are reads, which can be asked again over
 * another connection (of a client: it has `wanted`). */
bool rpc_calls_only_reads(const struct rpc_link *l);
/* Lets the open reads wait for the next connection. */
void rpc_calls_again(struct rpc_link *l);
bool rpc_calls_open(const struct rpc_link *l, uint64_t id);
void rpc_calls_forget(struct rpc_link *l, uint64_t id); /* without a completion */

/* rpc_stream.c */
struct rpc_stream *rpc_stream_new(struct rpc_link *l, uint16_t method, uint64_t id, bool ours);
struct rpc_stream *rpc_stream_find(const struct rpc_link *l, uint64_t id, bool ours); /* or NULL */
unsigned rpc_stream_count(const struct rpc_link *l, bool ours);
struct stream *rpc_stream_take(struct rpc_stream *s, const char *peer);
void rpc_stream_drop(struct rpc_stream *s); /* one that nobody took */
/* Frames of its call. False: malformed, or more than was granted. */
bool rpc_stream_frame(struct rpc_stream *s, const struct rpc_head *h, const uint8_t *body);
/* Nothing comes or goes any more. 0: the peer's end of file, behind what has come; else an error.
 */
void rpc_stream_over(struct rpc_stream *s, int status);
void rpc_stream_over_all(struct rpc_link *l, int status); /* but those whose calls wait */
/* Sends from the streams of the link, by turns, while there is room. */
void rpc_stream_turns(struct rpc_link *l);

#endif
