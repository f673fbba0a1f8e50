/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC: typed calls with request ids and deadlines. The methods and their types are api_methods[]
 * (generated from the `rpc` lines of api/schema).
 *
 * Wire: the first byte of a connection names its protocol ('P'); then frames in both directions:
 *
 *   u32 length of body | u8 kind | u8 version | u16 method | u64 request id | u32 deadline ms | body
 *
 * all big-endian, 20 bytes of head. Kinds: 1 call (u16 length of the envelope, envelope, request; both
 * in msgpack by their types), 2 reply (response in msgpack), 3 error (u32 code, text), 4 cancel (no
 * body). `deadline ms` is the time the caller still waits, so clocks need not agree. Bodies are at most
 * RPC_FRAME_MAX, envelopes RPC_ENVELOPE_MAX; anything malformed closes the connection, a body that does
 * not decode answers its call with ERR_INVALID.
 *
 * Head and error are the same in every version: a call of another version is answered with an error of
 * that version, so that its caller can read why.
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
#include "net/limits.h"
#include "net/loop.h"

#define RPC_PROTOCOL_BYTE 'P'
enum { RPC_VERSION = 1 }; /* 0 had no envelope */

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
const struct rpc_envelope *rpc_call_envelope(const struct rpc_call *call); /* never NULL; of the call */
/* loop_now_ms() at which the caller gives up. */
int64_t rpc_call_deadline_ms(const struct rpc_call *call);
const char *rpc_call_peer(const struct rpc_call *call); /* "10.0.0.7:4321", "local" */
/* fn(arg) once when nobody waits for the answer any more (cancelled, deadline over, connection gone):
 * stop the work and answer, which frees the call. NULL removes it. Never called after the answer. */
void rpc_call_on_cancel(struct rpc_call *call, loop_fn *fn, void *arg);
/* `resp` is of the method's response type; encoded before the function returns. */
void rpc_reply(struct rpc_call *call, const void *resp);
void rpc_fail(struct rpc_call *call, const struct err *e);
void rpc_failf(struct rpc_call *call, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The table is borrowed. Port 0: any free one. */
struct rpc_server *rpc_listen(struct loop *l, const char *addr, uint16_t port,
                              const struct rpc_service *services, size_t n, void *arg,
                              struct err *e);
uint16_t rpc_server_port(const struct rpc_server *s);
/* Connections of one address, instead of RPC_CONNS_PER_PEER; 0: unlimited. */
void rpc_server_limit(struct rpc_server *s, size_t per_peer);
/* Closes every connection: open calls are cancelled and must still be answered. */
void rpc_server_close(struct rpc_server *s);

/* --- calling --- */
struct rpc_client;

/* One connection to one of "host:port", made when there is a call to send; a broken one is remade
 * with jittered backoff, to the next server, only while calls wait. The list is copied. */
struct rpc_client *rpc_dial(struct loop *l, const struct str_list *servers, struct err *e);
/* In process; the same frames are encoded and decoded, nothing is shared. */
struct rpc_client *rpc_local(struct loop *l, const struct rpc_service *services, size_t n,
                             void *arg);
/* Calls still open complete with -ERR_CANCELED before this returns. NULL is fine. */
void rpc_client_close(struct rpc_client *c);

/* e NULL: ok. `resp` is valid during the call; talloc_steal it to keep it. */
typedef void rpc_done(void *arg, const struct err *e, const void *resp);

struct rpc_request {
    enum rpc_id id;
    const void *req;                  /* of the method's type */
    const struct rpc_envelope *env;   /* NULL: an empty one */
    int64_t timeout_ms; /* 0: RPC_TIMEOUT_DEFAULT_MS; a blocking query adds its own wait */
};

/* All of it is encoded before the function returns. A call that was not sent when the connection broke
 * waits for the next one, but fails with -ERR_UNAVAILABLE when connecting failed for
 * RPC_PATIENCE_MS; one that was sent fails with -ERR_CLOSED. Returns an id for rpc_cancel, never 0. */
uint64_t rpc_send(struct rpc_client *c, const struct rpc_request *r, rpc_done *done, void *arg);
/* Gives up: done comes with -ERR_CANCELED in a later turn. Unknown ids are ignored. */
void rpc_cancel(struct rpc_client *c, uint64_t call_id);

const struct rpc_method *rpc_method_by_id(enum rpc_id id); /* NULL when unknown */

#endif
