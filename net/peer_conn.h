/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of frames, for protocols of servers among themselves: a byte that names the protocol
 * from who dialled, then in both directions u32 length (big-endian) | body. One is dialled, or
 * adopted: accepted on another loop, which read the byte and gave it away (rpc_server_give).
 *
 * On the thread of their loop. A connection belongs to its owner until `on_close`, which comes
 * exactly once, never from inside a call; after it the pointer is dead. After peer_conn_close() no
 * other callback comes.
 */
#ifndef PADDOCK_NET_PEER_CONN_H
#define PADDOCK_NET_PEER_CONN_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "net/filter.h"
#include "net/loop.h"

enum {
    PEER_CONN_FIRST_MAX = 4096,
    PEER_CONN_PATIENCE_MS = 5000 /* with a peer's network, then it is closed */
};

struct peer_conn;

struct peer_conn_ops {
    void (*on_open)(void *arg); /* dialled: the other side has accepted; may be NULL */
    void (*on_frame)(void *arg, const uint8_t *body, size_t n); /* valid during the call */
    /* 0: closed here; else why, -ECONNREFUSED: nobody listens */
    void (*on_close)(void *arg, int code);
};

struct peer_conn_config {
    struct loop *loop;
    /* A longer frame closes the connection; of one adopted PEER_CONN_FIRST_MAX holds until
     * peer_conn_trust(). */
    size_t body_max;
    const struct peer_conn_ops *ops;
    void *arg;
    const struct filter *filter; /* NULL: plain; borrowed */
    const char *protocol;        /* for it */
    uint8_t first;               /* byte of who dials, that names the protocol */
};

/* `addr`: "host:port"; `name`: who is wanted there, for the filter, borrowed until on_open. NULL
 * with an error: the address is none. */
struct peer_conn *peer_conn_dial(const struct peer_conn_config *cfg, const char *addr,
                                 const char *name, struct err *e);
/* Takes the socket; p[0..n) has come over it already, and is copied. `filtered`: the filter is put
 * on. */
struct peer_conn *peer_conn_adopt(const struct peer_conn_config *cfg, int fd, bool filtered,
                                  const uint8_t *p, size_t n);
/* Allows frames of body_max to an adopted connection: it is known who is there. */
void peer_conn_trust(struct peer_conn *c);
/* Takes the memory of the body, which is empty afterwards. */
void peer_conn_send(struct peer_conn *c, struct buf *body);
/* Bytes that wait to be sent. */
size_t peer_conn_queued(const struct peer_conn *c);
const char *peer_conn_address(const struct peer_conn *c); /* "10.0.0.7:4321" */
void peer_conn_close(struct peer_conn *c);

#endif
