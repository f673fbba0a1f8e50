/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers of all regions find each other: the machine (swim.h) on a UDP socket, and exchanges of
 * all that is known by the call Server.Sync at the same port of TCP. Main loop thread.
 *
 * Addresses to join are asked until one of their servers answers, after 0.5 s, then ever longer up
 * to `retry_ms`.
 */
#ifndef PADDOCK_SERVER_GOSSIP_GOSSIP_H
#define PADDOCK_SERVER_GOSSIP_GOSSIP_H

#include "net/addr.h"
#include "net/filter.h"
#include "net/loop.h"
#include "server/env.h"
#include "server/gossip/keys.h"
#include "server/gossip/swim.h"

struct gossip;

struct gossip_opts {
    struct dialer dialer; /* of other servers */
    const struct env *env;
    struct server_hello self;
    struct addr at;       /* to listen at: a numeric address */
    struct str_list join; /* "host[:port]" */
    int64_t retry_ms;     /* 0: GOSSIP_RETRY_MS */
    int64_t retry_max;    /* attempts at each; 0: no end */
    const char *dir;      /* of the file "serf.keyring" */
    const char *key;      /* in base64, for where there is no such file; NULL: none */
    /* A member came, went or says other things of itself; from the loop, never from inside a call.
     */
    void (*changed)(void *arg, enum swim_change change, const struct server_hello *about);
    /* None of `join` has ever answered; `e`: why the last one did not. */
    void (*alone)(void *arg, const struct err *e);
    void *arg;
};

/* Listens, and says nothing yet. Strings are copied. */
int gossip_open(const struct gossip_opts *o, struct gossip **ret, struct err *e);
void gossip_start(struct gossip *g);
/* Sets what this server says of itself from now on. */
void gossip_set_self(struct gossip *g, const struct server_hello *self);
/* The call Server.Sync: the answer is owned by ctx. -ERR_FORBIDDEN: the packets are refused;
 * -ERR_CONFLICT: they are of this server itself, or of one with its id. */
int gossip_sync(struct gossip *g, const void *ctx, const struct server_sync *req,
                struct server_sync *ret, struct err *e);
/* Asks there until somebody answers. How many of the addresses can be asked. */
size_t gossip_join(struct gossip *g, const struct str_list *addrs, struct err *e);
/* How many of them have answered; `e`: why one has not. */
size_t gossip_joined(struct gossip *g, const struct str_list *addrs, struct err *e);
/* All that are known, this server first. Owned by ctx, the members themselves until the next call.
 */
struct swim_member *gossip_members(struct gossip *g, const void *ctx, size_t *ret_n);
/* Does what swim_force() says. */
void gossip_force(struct gossip *g, uint64_t id, bool prune);
/* An operation on the key rings of all servers that are there, this one first. done() comes once,
 * at once or later, with an answer that names those that failed; or with an error alone: nothing
 * was changed. */
typedef void gossip_keyring_fn(void *arg, const struct err *e,
                               const struct gossip_keys_response *resp);
void gossip_keyring(struct gossip *g, enum keys_op op, const char *key, gossip_keyring_fn *done,
                    void *arg);
/* Says that this server leaves. */
void gossip_leave(struct gossip *g);

/* Why a packet, or a member in it, is refused: one of enum packet_fault, or */
enum {
    REFUSED_AGAIN = PACKET_FAULTS, /* it was sent before */
    REFUSED_MISLED,                /* for another server, or from another with our id */
    REFUSED_MEMBER,                /* of another cluster of this region, or one too many */
    REFUSALS,
};

struct gossip_figures {
    struct swim_figures swim;
    bool encrypted;
    uint64_t sent, received; /* packets */
    uint64_t refused[REFUSALS];
};
void gossip_figures(const struct gossip *g, struct gossip_figures *ret);
/* NULL is fine. */
void gossip_close(struct gossip *g);

#endif
