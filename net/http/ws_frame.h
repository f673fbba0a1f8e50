/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket frames (RFC 6455, section 5): bytes in, messages out, and the other way round. Knows no
 * sockets and no time. Either role: who reads from a client wants masked frames, who reads from a
 * server unmasked ones. No extensions.
 *
 * Nothing is reserved before it has come: a header that announces much costs nothing, and over the
 * limit it is refused at once. Without a message under way no memory is held.
 */
#ifndef PADDOCK_NET_HTTP_WS_FRAME_H
#define PADDOCK_NET_HTTP_WS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum ws_op {
    WS_CONTINUATION = 0x0,
    WS_TEXT = 0x1,
    WS_BINARY = 0x2,
    WS_CLOSE = 0x8,
    WS_PING = 0x9,
    WS_PONG = 0xa
};

/* Section 7.4. The two that are never sent stand for their absence. */
enum ws_code {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_PROTOCOL = 1002,
    WS_NO_CODE = 1005,  /* a close frame without one */
    WS_ABNORMAL = 1006, /* the connection ended without a close frame */
    WS_INVALID = 1007,
    WS_POLICY = 1008,
    WS_TOO_BIG = 1009,
    WS_INTERNAL = 1011
};

enum { WS_HEADER_MAX = 14, WS_CONTROL_MAX = 125, WS_REASON_MAX = WS_CONTROL_MAX - 2 };

struct ws_reader {
    bool masked; /* the frames of this peer must be */
    /* the header being read */
    uint8_t head[WS_HEADER_MAX];
    size_t head_len;
    /* the frame that it began */
    bool in_frame, fin;
    uint8_t op, mask[4];
    uint64_t left, at;
    /* the message that frames add up to, and a control frame between them */
    bool in_message;
    uint8_t message_op;
    struct buf message;
    uint8_t control[WS_CONTROL_MAX];
    size_t control_len;
    bool given; /* `message` was given out: the next call clears it */
    const char *why;
};

/* A whole message or control frame. Of a close frame `p` is the reason and `code` its code. */
struct ws_message {
    enum ws_op op;
    const uint8_t *p; /* until the next call; n 0: may be NULL */
    size_t n;
    unsigned code;
};

void ws_reader_init(struct ws_reader *r, bool masked, size_t message_max);
void ws_reader_done(struct ws_reader *r);
/* Takes bytes off *p and *n. 1: a message in *ret; 0: all is taken and more is needed; a negative
 * enum ws_code: the peer broke the rules (r->why says how), nothing more is to be read from it. */
int ws_reader_take(struct ws_reader *r, const uint8_t **p, size_t *n, struct ws_message *ret);

/* One frame, whole. `mask`: four random bytes, of a client; NULL: a server's. */
void ws_put(struct buf *out, enum ws_op op, const void *p, size_t n, const uint8_t mask[4]);
/* A reason that is too long is cut at a character. WS_NO_CODE: an empty close frame. */
void ws_put_close(struct buf *out, unsigned code, const char *reason, const uint8_t mask[4]);

#endif
