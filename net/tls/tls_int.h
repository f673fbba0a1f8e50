/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to net/tls/:
 *
 *   tls.c      making the object: contexts of OpenSSL, names of ciphers
 *   hold.c     holders of the object, and of the texts of one time
 *   verify.c   the other end, and words for its faults
 *   gate.c     handshakes of one address, a few at once
 *   lane.c     steps of handshakes, a few in a turn of the loop; whom a renewal judges anew
 *   conn.c     the filter: one connection
 */
#ifndef PADDOCK_NET_TLS_TLS_INT_H
#define PADDOCK_NET_TLS_TLS_INT_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/err.h"
#include "net/cert/cert.h"
#include "net/filter.h"
#include "net/identity.h"
#include "net/limits.h"
#include "net/tls/tls.h"
#include "net/transport_int.h"

enum tls_use { TLS_RPC, TLS_HTTP };

/* Texts and rules of one time; immutable. */
struct tls_set {
    atomic_uint refs;
    SSL_CTX *ctx;
    const char *region;
    struct cert_crl_list crls;
    bool verify_server_hostname, verify_https_client, skip_verify, quiet, has_cert;
};

struct tls_end {
    struct tls *tls;
    enum tls_use use;
    struct filter filter;
};

struct tls {
    atomic_uint refs;
    pthread_mutex_t lock; /* guards `now`, the gates and the list of lanes */
    struct tls_set *now;
    struct tls_gate *gates; /* by loop and address */
    struct tls_lane *lanes; /* by loop */
    struct tls_end rpc, http;
    atomic_int_fast64_t told_ns; /* when a failure was last logged ... */
    atomic_uint untold;          /* ... and how many were not since */
};

struct tls_set *tls_set_now(struct tls *t); /* counted */
void tls_set_unref(struct tls_set *s);

/* --- who is there --- */

/* The other end of a connection: what is wanted of it, and who is there. */
struct tls_peer {
    const struct tls_set *set;
    enum tls_use use;
    bool accepted;
    const char *address;
    const char *name;     /* wanted; NULL: nobody in particular */
    const char *protocol;
    struct peer_identity is;
    char why[ERR_TEXT_MAX]; /* it was refused */
};

/* Sets what a connection asks of the other end; `p` lives as long as it. */
void tls_peer_ask(SSL *ssl, struct tls_peer *p);
/* The handshake is over: fills in who is there, owned by ctx. False with p->why. */
bool tls_peer_check(SSL *ssl, const void *ctx, struct tls_peer *p);
/* Says whether a list of the set revokes the other end's certificate, or one between it and its CA;
 * then p->why has words. */
bool tls_peer_revoked(const SSL *ssl, const struct tls_set *set, struct tls_peer *p);
/* Words for what OpenSSL refuses, where p->why has none yet. */
void tls_peer_why(struct tls_peer *p, const SSL *ssl, bool shaking);
int tls_verify(X509_STORE_CTX *x, void *arg); /* of the context */
int tls_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n,
                        const unsigned char *in, unsigned in_n, void *arg);

/* --- a few at once --- */

struct tls_turn {
    struct tls_gate *gate; /* NULL: not in one */
    bool waits;
    struct tls_turn *next, **at; /* of those that wait */
    void (*begin)(void *arg);
    void *arg;
};

/* True: begin now; false: begin() comes, from another one's leave. */
bool tls_gate_enter(struct tls *t, struct loop *l, const char *address, struct tls_turn *turn);
void tls_gate_leave(struct tls *t, struct tls_turn *turn); /* of none: nothing */

/* --- step by step --- */

struct tls_queue;

struct tls_step {
    struct tls_step *next, **at; /* NULL: it does not wait */
    struct tls_queue *queue;     /* in which it does */
    bool begun; /* the handshake has had a step already */
    void (*run)(void *arg);
    void *arg;
};

/* The place of an open connection among those that are judged anew. */
struct tls_seat {
    struct tls_seat *next, **at; /* NULL: it has none */
    void (*judge)(void *arg);
    void *arg;
};

/* The lane of a loop, counted; on its thread. */
struct tls_lane *tls_lane_ref(struct tls *t, struct loop *l);
void tls_lane_unref(struct tls *t, struct tls_lane *a); /* nothing of the caller waits */
void tls_lane_put(struct tls_lane *a, struct tls_step *s); /* run() comes in a later turn */
void tls_lane_out(struct tls_step *s); /* it does not come */
void tls_lane_seat(struct tls_lane *a, struct tls_seat *s);
void tls_lane_unseat(struct tls_seat *s); /* of none: nothing */
/* Has all that sit judged, each on its loop. Any thread. */
void tls_lanes_judge(struct tls *t);

/* --- the filter --- */

struct transport *tls_wrap(void *arg, struct transport *carrier, const struct filter_use *u);

#endif
