/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports: what carries the bytes of a stream. Private to net/. A socket is one (transport.c:
 * TCP and unix); a filter such as TLS is one as well (filter.h), which sits on another as its upper
 * side. A carrier is a socket before a filter goes on: it connects, is accepted, given or adopted.
 *
 * Limits, time-outs and the order of ending are the stream's (stream.c); a transport moves bytes.
 * Its events come on the loop, never from inside a call; after close only `closed` comes, once, and
 * then it is dead. It is a talloc object, which its upper side takes.
 */
#ifndef PADDOCK_NET_TRANSPORT_H
#define PADDOCK_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/buf.h"
#include "net/addr.h"
#include "net/filter.h"
#include "net/identity.h"
#include "net/loop.h"

enum { TRANSPORT_BUFS_MAX = 4 };

struct transport;

struct transport_events {
    void (*connected)(void *arg, int status);
    /* Bytes, valid during the call. */
    void (*got)(void *arg, const uint8_t *p, size_t n);
    void (*ended)(void *arg, int status); /* nothing more comes; 0: the peer's end of file */
    void (*wrote)(void *arg, int status); /* less is queued */
    void (*closed)(void *arg);
};

struct transport_ops {
    int (*read)(struct transport *t, bool on);
    /* Takes the memory of the buffers, TRANSPORT_BUFS_MAX at most, also when it fails. */
    int (*write)(struct transport *t, struct buf *bufs, size_t n);
    size_t (*queued)(const struct transport *t);
    int (*shutdown)(struct transport *t); /* end of file to the peer; nothing is queued */
    void (*close)(struct transport *t);
    /* Questions to the socket below, which a filter hands down. NULL: there is none below. */
    void (*peer)(const struct transport *t, struct addr *ret);
    void (*patience)(const struct transport *t, unsigned ms);
    bool (*fds_short)(const struct transport *t, unsigned kept);
    /* Words for the failure of a filter, NULL: none; the other end, once it is connected. Both are
     * NULL where there is no filter. */
    const char *(*why)(const struct transport *t);
    const struct peer_identity *(*identity)(const struct transport *t);
};

struct transport {
    const struct transport_ops *ops;
    const struct transport_events *up;
    void *arg; /* of `up` */
    bool patient; /* its carrier is watched for a peer that does not read: no time-out of its own */
};

void transport_peer(const struct transport *t, struct addr *ret); /* host "": not known */
/* Sets the patience of a TCP connection: it is closed when what was sent is not acknowledged for so
 * long. The kernel alone would try for minutes, less and less often, also long after the network is
 * back. */
void transport_patience(const struct transport *t, unsigned ms);
/* Fewer than `kept` file descriptors are left beside that of the socket. */
bool transport_fds_short(const struct transport *t, unsigned kept);

/* --- sockets --- */
struct carrier;

/* A socket that does nothing yet; `up` and `arg` of its transport are still to be set. */
struct carrier *carrier_new(struct loop *l, bool is_unix);
/* The same object, as a transport. */
struct transport *carrier_transport(struct carrier *c);
/* Looks up the name and connects; `connected` comes once, unless it fails here or is closed before.
 */
int carrier_connect(struct carrier *c, const struct addr *a);
/* Gives the socket for another loop: a descriptor of it, which outlives it. -1 with errno. */
int carrier_give(const struct carrier *c);
/* Takes a socket that was accepted, or given by another; false: it cannot, and the descriptor stays
 * the caller's. */
bool carrier_adopt(struct carrier *c, int fd);

#endif
