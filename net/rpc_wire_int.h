/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC frames as bytes (layout: rpc.h). Private to net/.
 */
#ifndef PADDOCK_NET_RPC_WIRE_H
#define PADDOCK_NET_RPC_WIRE_H

#include "common/buf.h"
#include "net/rpc.h"

enum { RPC_HEAD = 20 };
enum rpc_kind {
    RPC_KIND_CALL = 1,
    RPC_KIND_REPLY,
    RPC_KIND_ERROR,
    RPC_KIND_CANCEL,
    /* the frames of a call that goes on: its caller's ... */
    RPC_KIND_DATA,
    RPC_KIND_GRANT,
    /* ... and back to it */
    RPC_KIND_BACK_DATA,
    RPC_KIND_BACK_GRANT,
    RPC_KIND_BACK_END
};

struct rpc_head {
    uint32_t len;
    enum rpc_kind kind;
    uint8_t version;
    uint16_t method;
    uint64_t id;
    uint32_t deadline_ms;
};

/* Appends a head, whose length rpc_frame_end sets once the body is appended. Returns its offset. */
size_t rpc_frame_begin(struct buf *b, const struct rpc_head *h);
void rpc_frame_end(struct buf *b, size_t at);
void rpc_put_error(struct buf *b, int code, const char *text);
void rpc_get_error(const uint8_t *p, size_t n, struct err *e);
/* -ERR_INVALID for a malformed head. */
int rpc_head_parse(const uint8_t p[RPC_HEAD], struct rpc_head *ret);

/* Collects bytes into frames. One with bytes of a stream may come in parts, each as a frame. */
struct rpc_reader {
    struct buf in;
    struct rpc_head data; /* a frame of these that has begun; len: what is still to come */
    /* False: stop, the reader may be gone. `body` is valid during the call. */
    bool (*frame)(void *arg, const struct rpc_head *h, const uint8_t *body);
    void *arg;
};

void rpc_reader_init(struct rpc_reader *r, bool (*frame)(void *, const struct rpc_head *,
                     const uint8_t *), void *arg);
void rpc_reader_done(struct rpc_reader *r);
/* -ERR_INVALID: malformed, close the connection. 1: a frame function said stop. */
int rpc_reader_feed(struct rpc_reader *r, const uint8_t *p, size_t n);

/* Appends the envelope of a call; NULL: an empty one. -ERR_LIMIT: it is larger than
 * RPC_ENVELOPE_MAX. */
int rpc_put_envelope(struct buf *b, const struct rpc_envelope *env);
/* Decodes that at the start of a body into ctx; *used: its bytes. */
int rpc_get_envelope(const void *ctx, const uint8_t *p, size_t n, const struct rpc_envelope **ret,
                     size_t *used, struct err *e);
/* Decodes a body by its type into a new object owned by ctx. */
int rpc_decode(const void *ctx, const struct type *t, const uint8_t *p, size_t n, void **ret,
               struct err *e);

#endif
