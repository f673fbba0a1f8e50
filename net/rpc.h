/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC: typed calls with request ids and deadlines. The methods and their types are api_methods[]
 * (generated from the `rpc` lines of api/schema).
 *
 * Wire: the first byte of a connection, always in clear, names its protocol ('P'; of servers among
 * themselves another), and by RPC_FILTERED ('p') that a filter follows at once: then whoever owns
 * the connection shakes hands, also where its descriptor was given away. Then frames in both
 * directions:
 *
 *   u32 length of body | u8 kind | u8 version | u16 method | u64 request id | u32 deadline ms |
 *   body
 *
 * all big-endian, 20 bytes of head. Kinds: 1 call (u16 length of the envelope, envelope, request;
 * both in msgpack by their types), 2 reply (response in msgpack), 3 error (u32 code, text), 4
 * cancel (no body). Calls go both ways over a connection: what its server calls, the side that
 * dialled serves.
 *
 * A method whose line says `stream` goes on after the call: its bytes are frames of kind 5 from the
 * caller, 7 back to it (RPC_STREAM_FRAME at most, without a body there are none). Of each direction
 * RPC_STREAM_WINDOW bytes may be on their way; a grant (6, 8; u32) allows so many more, when a
 * reader has taken them: more than was granted closes the connection. It ends with kind 9 (no body:
 * the end of what comes back), an error or a cancel. Streams take turns by frame; calls, answers
 * and grants go before them, so that a stream, read or not, delays no heartbeat.
 *
 * `deadline ms` is the time the caller still waits for the answer, so clocks need not agree. Bodies
 * are at most RPC_FRAME_MAX, envelopes RPC_ENVELOPE_MAX; anything malformed closes the connection,
 * a body that does not decode answers its call with ERR_INVALID. A request of RPC_LARGE or more is
 * decoded, and freed, by a worker thread: calls that come later may be handled before it.
 *
 * Head and error are the same in every version: a call of another version is answered with an error
 * of that version, so that its caller can read why.
 *
 * Threads: everything on the loop thread. A completion comes exactly once, never from inside
 * rpc_send. A handler answers each call exactly once, at once or later; after the connection died,
 * the caller cancelled or the deadline passed, its answer is dropped.
 */
#ifndef PADDOCK_NET_RPC_H
#define PADDOCK_NET_RPC_H

#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "net/addr.h"
#include "net/filter.h"
#include "net/identity.h"
#include "net/limits.h"
#include "net/loop.h"

#define RPC_PROTOCOL_BYTE 'P'
#define RPC_PROTOCOL "paddock-rpc" /* the same to a filter */
enum {
    RPC_FILTERED = 0x20, /* of the first byte; protocols are capital letters */
    RPC_VERSION = 2
}; /* 0 had no envelope, 1 no streams and no calls to the side that dialled */

struct rpc_link; /* a connection, by either side; private: rpc_link_int.h */
struct stream;   /* net/stream.h */

/* --- serving --- */
struct rpc_call;
struct rpc_server;

/* `req` lives as long as the call and may be stolen from rpc_call_ctx(). */
typedef void rpc_handler(void *arg, struct rpc_call *call, const void *req);

struct rpc_service {
    enum rpc_id id;
    rpc_handler *handle;
};

/* A talloc context of the call, freed after the answer. */
void *rpc_call_ctx(struct rpc_call *call);
const struct rpc_method *rpc_call_method(const struct rpc_call *call);
const struct rpc_envelope *
rpc_call_envelope(const struct rpc_call *call); /* never NULL; of the call */
/* loop_now_ms() at which the caller gives up. */
int64_t rpc_call_deadline_ms(const struct rpc_call *call);
const char *rpc_call_peer(const struct rpc_call *call); /* "10.0.0.7:4321", "local" */
/* Returns who calls, as far as it has proved itself (net/identity.h): within this process it is a
 * server. Strings are of the connection. */
struct peer_identity rpc_call_identity(const struct rpc_call *call);
/* fn(arg) once when nobody waits for the answer any more (cancelled, deadline over, connection
 * gone): stop the work and answer, which frees the call. NULL removes it. Never called after the
 * answer. */
void rpc_call_on_cancel(struct rpc_call *call, loop_fn *fn, void *arg);
/* Runs a handler of a call, the first one or a later one: the memory of the call stays until that
 * returns, also where it answers before. False: it was answered, and is gone (in a handler of its
 * own: soon). */
bool rpc_call_handle(struct rpc_call *call, rpc_handler *fn, void *arg, const void *req);
/* `resp` is of the method's response type; encoded before the function returns. */
void rpc_reply(struct rpc_call *call, const void *resp);
/* The same, but a caller in this process gets `resp` itself, which owns all that it refers to and
 * is no larger than a frame. */
void rpc_hand_over(struct rpc_call *call, const void *resp);
/* A request that is large, as it came, to be passed on; NULL: it is not. */
const struct buf *rpc_call_encoded(const struct rpc_call *call);
/* The how many-th call of its connection it is in this turn of the loop. */
unsigned rpc_call_in_turn(const struct rpc_call *call);
void rpc_fail(struct rpc_call *call, const struct err *e);
void rpc_failf(struct rpc_call *call, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes the stream of a method with `stream`, once, before the call is answered: its bytes, for a
 * new owner (stream_accept), who may read and write at once and ends it after the answer.
 * rpc_fail() ends it as well. `peer`: as whom stream_peer() shows the other side; NULL: as the
 * connection's. */
struct stream *rpc_call_stream(struct rpc_call *call, const char *peer);
/* The connection that the call came over, to call back; NULL: it has gone. */
struct rpc_link *rpc_call_link(const struct rpc_call *call);

/* The table is borrowed. Port 0: any free one. */
struct rpc_server *rpc_listen(struct loop *l, const struct addr *at,
                              const struct rpc_service *services, size_t n, void *arg,
                              struct err *e);
/* Connections that name that protocol are given away: take(arg, fd, filtered, p, n) gets the
 * socket, whether a filter is to be put on, and what came over it behind the byte. They do not
 * count any more. */
typedef void rpc_take_fn(void *arg, int fd, bool filtered, const uint8_t *p, size_t n);
void rpc_server_give(struct rpc_server *s, uint8_t protocol, rpc_take_fn *take, void *arg);
/* Connections have this filter (borrowed); `plain`: those without one are taken as well. Before the
 * loop runs on. */
void rpc_server_secure(struct rpc_server *s, const struct filter *f, bool plain);
uint16_t rpc_server_port(const struct rpc_server *s);
/* Connections of one address, instead of RPC_CONNS_PER_PEER; 0: unlimited. */
void rpc_server_limit(struct rpc_server *s, size_t per_peer);
/* Closes every connection: open calls are cancelled and must still be answered. */
void rpc_server_close(struct rpc_server *s);

/* --- calling --- */
struct rpc_client;

/* One connection to one of "host:port", made when there is a call to send; a broken one is remade
 * with jittered backoff, to the next server, only while calls wait. Where there are others, a
 * server is left when it does not take the connection for RPC_CONNECT_MS (known by name: in the
 * first round), or says nothing in all the time of a call. List and dialer are copied. */
struct rpc_client *rpc_dial(const struct dialer *d, const struct str_list *servers, struct err *e);
/* In process; the same frames are encoded and decoded, nothing is shared but what is handed over.
 */
struct rpc_client *rpc_local(struct loop *l, const struct rpc_service *services, size_t n,
                             void *arg);
/* Serves the calls that the other side may make, over the same connection. The table is
 * borrowed. */
void rpc_serve(struct rpc_client *c, const struct rpc_service *services, size_t n, void *arg);
/* The servers that there are by now ("ip:port", RPC_SERVERS_MAX at most), in place of those of an
 * earlier call: they are tried before those of rpc_dial(), which are kept. The connection stays.
 * When a server is new, the connection goes to one of them by chance RPC_REBALANCE_MS to
 * RPC_REBALANCE_MAX_MS later, once no bytes stream and only reads are open, which are asked again.
 * 0: the list is the same; 1: it is another; -ERR_INVALID, and nothing changes: one is no such
 * address. Not of rpc_local(). */
int rpc_set_servers(struct rpc_client *c, const struct str_list *servers, struct err *e);
/* Leaves a server that is of no use: another server is asked from now on, if there is one. Reads
 * that are open are asked again there, other calls fail with -ERR_CLOSED. */
void rpc_leave(struct rpc_client *c);
/* Returns the servers of rpc_set_servers(), or those of rpc_dial() before, "host:port" each; of
 * rpc_local() none. Owned by ctx. */
struct str_list rpc_servers(const struct rpc_client *c, const void *ctx);
/* Says whether there is a connection: what is open was sent. */
bool rpc_client_up(const struct rpc_client *c);
/* Calls still open complete with -ERR_CANCELED before this returns. NULL is fine. */
void rpc_client_close(struct rpc_client *c);

/* e NULL: ok. `resp` is valid during the call; talloc_steal it to keep it. */
typedef void rpc_done(void *arg, const struct err *e, const void *resp);

struct rpc_request {
    enum rpc_id id;
    const void *req;                  /* of the method's type */
    const struct rpc_envelope *env;   /* NULL: an empty one */
    int64_t timeout_ms; /* 0: RPC_TIMEOUT_DEFAULT_MS; a blocking query adds its own wait */
    const struct buf *encoded; /* in place of `req`: what rpc_encode() made of that; NULL */
};

/* Any thread: a request that is large. That it is too large is told by rpc_send(). */
void rpc_encode(struct buf *b, enum rpc_id id, const void *req);
/* All of it is encoded before the function returns. A call that was not sent when the connection
 * broke waits for the next one, but fails with -ERR_UNAVAILABLE when connecting failed for
 * RPC_PATIENCE_MS; one that was sent fails with -ERR_CLOSED. Returns an id for rpc_cancel, never 0.
 */
uint64_t rpc_send(struct rpc_client *c, const struct rpc_request *r, rpc_done *done, void *arg);
/* Gives up: done comes with -ERR_CANCELED in a later turn. Unknown ids are ignored. */
void rpc_cancel(struct rpc_client *c, uint64_t call_id);

/* --- on a link: that of a client, or of a call --- */
struct rpc_link *rpc_client_link(struct rpc_client *c);
/* A talloc context that goes with the connection (of a client: with it). */
void *rpc_link_ctx(struct rpc_link *l);
uint64_t rpc_link_send(struct rpc_link *l, const struct rpc_request *r, rpc_done *done, void *arg);
void rpc_link_cancel(struct rpc_link *l, uint64_t call_id);
/* A call of a method with `stream`: its bytes, for a new owner (stream_accept), who may write at
 * once. They end cleanly when the other side has ended them, and with a code after `opened` was
 * told an error. When the owner closes the stream, the call is cancelled, and `opened` does not
 * come any more. The time-out is that of the answer alone. */
struct stream *rpc_link_open(struct rpc_link *l, const struct rpc_request *r, rpc_done *opened,
                             void *arg);

const struct rpc_method *rpc_method_by_id(enum rpc_id id); /* NULL when unknown */

#endif
