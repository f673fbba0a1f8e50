/* SPDX-License-Identifier: Apache-2.0
 *
 * What the socket (gossip.c) and the exchanges (exchange.c) share. Private to server/gossip.
 */
#ifndef PADDOCK_SERVER_GOSSIP_GOSSIP_INT_H
#define PADDOCK_SERVER_GOSSIP_GOSSIP_INT_H

#include "net/datagram.h"
#include "net/rpc.h"
#include "server/gossip/gossip.h"
#include "server/gossip/guard.h"

enum {
    GOSSIP_RETRY_MIN_MS = 500,
    GOSSIP_RETRY_MS = 30000,
    GOSSIP_TELL_MS = 60000,
    GOSSIP_SYNC_MS = 3000, /* an exchange */
    GOSSIP_JOINS_MAX = 256,
};

/* The question that a server asked before it takes our session. */
struct cookie {
    uint64_t id, cookie;
};

struct gossip {
    struct gossip_opts o;
    uint64_t id;
    struct datagram *socket;
    struct swim *swim;
    struct guard *guard;
    uint64_t session, seq;
    struct gossip_keys keys;
    struct { struct cookie *v; size_t n; } cookies; /* GOSSIP_MEMBERS_MAX at most */
    size_t next_cookie;
    struct timer *timer;
    int64_t timer_ms; /* when it comes */
    struct exchange *exchanges;
    const char *keys_path;
    struct keyring *keyring; /* the operation under way; NULL: none */
    struct join *joins;
    size_t n_joins;
    struct events {
        struct swim_event *v;
        size_t n;
    } events; /* that are still to be told; a talloc chunk */
    bool telling;
    struct gossip_figures figures;
    struct {
        uint64_t n;
        int64_t ms;
    } told[REFUSALS]; /* refusals that the log names, and when it did */
    bool closing;
};

/* --- gossip.c --- */
/* Bears session, number and cookie, and is sealed. */
void gossip_seal(struct gossip *g, struct buf *out, struct packet *p);
/* Counted, and told once a minute. */
void gossip_refuse(struct gossip *g, unsigned why, const char *from);
void gossip_keep_cookie(struct gossip *g, uint64_t id, uint64_t cookie);
/* Carries out what a call of the machine led to: sent, told. Ends `out`. */
void gossip_carry(struct gossip *g, struct swim_out *out);

/* --- exchange.c --- */
/* With whoever is at `addr`; `to` 0: anybody. */
void exchange_start(struct gossip *g, const char *addr, uint64_t to);
/* Asks that member to do something with its key ring; keyring_told() comes. False: it cannot be
 * asked. */
bool exchange_keys(struct gossip *g, const struct server_hello *member, enum keys_op op,
                   const char *key, struct err *e);
void exchange_begin(struct gossip *g); /* the addresses to join */
void exchange_end(struct gossip *g);

/* --- keyring.c --- */
/* A member has answered: with an error, or all its keys. */
void keyring_told(struct gossip *g, const char *name, const struct str_list *keys,
                  const struct err *e);
/* Here, for another server or for us. */
int keyring_here(struct gossip *g, enum keys_op op, const char *key, struct err *e);

#endif
