/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte streams over a transport (transport_int.h: TCP and unix sockets), and their listeners.
 * Of the protocols of net/: other rooms see those.
 *
 * A stream belongs to its owner until `on_close`, which comes exactly once, from the loop, whatever
 * the reason; after it the pointer is dead. After stream_close no other callback comes. Written
 * memory is taken, queued without bound up to STREAM_QUEUE_MAX (beyond: closed with -ERR_LIMIT);
 * who produces much asks stream_queued and waits for `on_drain`. Queued bytes that make no progress
 * for STREAM_STALL_MS close the stream.
 */
#ifndef PADDOCK_NET_STREAM_H
#define PADDOCK_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "net/addr.h"
#include "net/filter.h"
#include "net/identity.h"
#include "net/loop.h"

struct stream;
struct listener;

struct stream_ops {
    void (*on_connect)(void *arg); /* of stream_connect */
    void (*on_data)(void *arg, const uint8_t *p, size_t n);
    void (*on_eof)(void *arg);     /* peer sends no more; NULL: the stream closes */
    void (*on_drain)(void *arg);   /* queue fell below STREAM_LOW_WATER; may be NULL */
    void (*on_close)(void *arg, int code); /* 0: closed here; else why */
};

/* How a stream is made of a connection that is dialled; all of it is borrowed until on_connect. */
struct stream_way {
    const struct filter *filter; /* NULL: none */
    const char *name, *protocol; /* for the filter */
    uint8_t first;               /* a byte that goes in clear before anything else; 0: none */
};

/* Name look-up, connect and what a filter does first, each at most STREAM_CONNECT_MS; failure is
 * on_close with a code. `way` NULL: plain. */
struct stream *stream_connect(struct loop *l, const struct addr *a, const struct stream_way *way,
                              const struct stream_ops *ops, void *arg);
void stream_read(struct stream *s, bool on);
/* Takes the memory of the buffers, which are empty afterwards. A buffer in error closes. */
void stream_write(struct stream *s, struct buf *bufs, size_t n);
size_t stream_queued(const struct stream *s);
/* End of file to the peer, behind what is queued; reading goes on, and what is written later is
 * dropped. */
void stream_end(struct stream *s);
const char *stream_peer(const struct stream *s);
/* The address that a dialled name led to; host "": not known. */
void stream_reached(const struct stream *s, struct addr *ret);
/* Words for why it closes, in on_close; NULL: there are none but its code. */
const char *stream_why(const struct stream *s);
/* The other end; NULL: it has not proved itself. Valid as long as the stream. */
const struct peer_identity *stream_identity(const struct stream *s);
void stream_close(struct stream *s);
/* Closes when all is written; with `linger_ms` after an end-of-file to the peer and a while of
 * reading and dropping, so that it sees our last words. on_data comes no more. */
void stream_finish(struct stream *s, int64_t linger_ms);

struct listener_config {
    size_t conns_max, per_peer;
    size_t per_loopback; /* as per_peer, of an address of this machine alone; 0: per_peer */
    const char *busy; /* sent to a connection over the limits, then closed; may be NULL */
    /* A new connection: fill in ops and arg by stream_accept, in the call. */
    void (*on_accept)(void *arg, struct stream *s);
    /* Before a connection over the limit of its address is refused: closes a connection of that
     * address for which nobody waits; false: there is none. May be NULL. */
    bool (*make_room)(void *arg, const struct stream *s);
    void *arg;
    const struct filter *filter; /* on every connection but of unix; NULL: none. Borrowed */
    const char *protocol;        /* for it */
};

/* Out of fds, libuv drops the newest connections by means of its reserve fd. Unix sockets get mode
 * 0600; a stale file at the path is replaced, a live one is an error. */
struct listener *listener_new(struct loop *l, const struct addr *a,
                              const struct listener_config *cfg, struct err *e);
/* The same on a socket of unix that listens, which is the listener's from then on; streams have
 * `name` for their peer. */
struct listener *listener_adopt(struct loop *l, int fd, const char *name,
                                const struct listener_config *cfg);
uint16_t listener_port(const struct listener *n);
void listener_limit(struct listener *n, size_t per_peer); /* of connections to come */
bool listener_same_peer(const struct stream *a, const struct stream *b); /* one address */
void listener_close(struct listener *n); /* its streams go on */
void stream_accept(struct stream *s, const struct stream_ops *ops, void *arg);

#endif
