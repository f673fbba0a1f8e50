/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of frames, for protocols of servers among themselves: a byte that names the protocol
 * from who dialled, then in both directions u32 length (big-endian) | body. One is dialled, or
 * adopted: accepted on another loop, which read the byte and gave it away (rpc_server_give).
 *
 * On the thread of their loop. A connection belongs to its owner until `on_close`, which comes
 * exactly once, never from inside a call; after it the pointer is dead. After frame_close() no
 * other callback comes.
 */
#ifndef PADDOCK_NET_FRAME_H
#define PADDOCK_NET_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "net/loop.h"

enum {
    FRAME_FIRST_MAX = 4096,
    FRAME_PATIENCE_MS = 5000 /* with a peer's network, then it is closed */
};

struct frame_conn;

struct frame_ops {
    void (*on_open)(void *arg); /* dialled: the other side has accepted; may be NULL */
    void (*on_frame)(void *arg, const uint8_t *body, size_t n); /* valid during the call */
    void (*on_close)(void *arg,
                     int code); /* 0: closed here; else why, -ECONNREFUSED: nobody listens */
};

struct frame_config {
    struct loop *loop;
    size_t
        body_max; /* a longer frame closes the connection; of one adopted FRAME_FIRST_MAX, until */
    const struct frame_ops *ops;
    void *arg;
};

/* `addr`: "host:port"; `from`: a numeric address to connect from, NULL: any. NULL with an error:
 * the address is none. */
struct frame_conn *frame_dial(const struct frame_config *cfg, const char *addr, const char *from,
                              uint8_t protocol, struct err *e);
/* Takes the socket; p[0..n) has come over it already, and is copied. */
struct frame_conn *frame_adopt(const struct frame_config *cfg, int fd, const uint8_t *p, size_t n);
/* ... who it is is known. */
void frame_trust(struct frame_conn *c);
/* Takes the memory of the body, which is empty afterwards. */
void frame_send(struct frame_conn *c, struct buf *body);
/* Bytes that wait to be sent. */
size_t frame_queued(const struct frame_conn *c);
const char *frame_peer(const struct frame_conn *c); /* "10.0.0.7:4321" */
void frame_close(struct frame_conn *c);

#endif
