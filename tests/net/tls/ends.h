/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends of connections by TLS, on the loop of a test: one dials, one is accepted and echoes.
 */
#ifndef PADDOCK_TESTS_ENDS_H
#define PADDOCK_TESTS_ENDS_H

#include "net/stream.h"
#include "tests/lib/tls.h"

#define RPC "paddock-rpc"
#define RAFT "paddock-raft"

enum { DAY = 86400, GUESTS = 64 };

struct end {
    struct stream *s;
    bool open, eof, closed, echoes, ends;
    int code;
    size_t n;       /* bytes that came */
    uint64_t sum;   /* of them */
    char why[ERR_TEXT_MAX], first[64];
    enum peer_kind kind;
};

extern struct loop *loop;
extern void *ctx;
extern struct test_pem ca, other_ca, server, client, stranger;
extern struct end guest[GUESTS]; /* accepted, in this order */
extern size_t guests;
extern struct listener *listening;
extern const struct stream_ops end_ops; /* of an end */

void ends_setup(void);
void ends_teardown(void);
/* Trusts those CAs; `verify`: servers' names, and clients of HTTP. */
struct tls *tls_of(struct test_pem own, const char *cas, bool verify);
void listen_at(const struct filter *f, const char *protocol);
void dial(struct end *d, const struct filter *f, const char *name, const char *protocol,
          const char *from);
void say(struct end *d, const void *p, size_t n);
void turn_until(const bool *flag);
void turn_for_bytes(const struct end *d, size_t n);
/* It is open, or never will be. */
void turn_until_settled(const struct end *d);
void close_all(void); /* the guests and the listener */

#endif
