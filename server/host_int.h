/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server is made of: host.c lets the rooms of server/ use it, server.c and cluster.c put it
 * together. Private to server/.
 */
#ifndef PADDOCK_SERVER_HOST_INT_H
#define PADDOCK_SERVER_HOST_INT_H

#include <stdatomic.h>

#include "common/uuid.h"
#include "server/core/core.h"
#include "server/host.h"

struct server {
    struct env env;
    struct loop *loop;
    struct gate *gate;
    struct server_config cfg;
    struct core *core;
    struct watches *watches;
    struct leader *leader;
    void (*members_changed)(struct leader *l); /* NULL: not yet */
    struct keys *keys;
    struct jwks *jwks;
    struct keys_fetch *fetch; /* of the wrapping key; NULL: it is not asked for */
    struct ways *ways;
    struct callers *callers;
    struct events *events;
    struct forwards *forwards;
    struct regions *abroad;
    struct core_net net;
    struct peers *peers; /* NULL: this server is alone */
    struct found *found; /* the same */
    struct gossip *gossip; /* NULL: it is not to be heard by others */
    struct autopilot *autopilot;
    void (*on_round)(struct autopilot *a); /* every few seconds, of a cluster; NULL: not yet */
    struct domains *domains; /* of servers that fail together */
    struct timer *domain_timer;
    uint64_t domains_failed; /* events */
    struct addrs { /* a talloc context; NULL: not asked for yet */
        struct str_list l;
        int64_t made_ms;
    } *addrs;
    bool led;
    char cluster[UUID_TEXT]; /* "": none, or not yet */
    struct raft_figures {
        atomic_uint_fast64_t writes;
        atomic_bool timing; /* a write */
        struct server_times commit, establish;
        uint64_t entered[3], term;
        int role;         /* -1: none yet */
        int64_t won_ns;   /* 0: not, or it serves */
    } raft;
    struct timer *handing; /* the leadership over, before the stop */
    atomic_bool querying;
    bool stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

/* Notes a time that something took, a leadership as well. */
void server_note_time(struct server_times *t, int64_t ns);

/* Peers, founding and gossip, as the configuration says. */
int cluster_open(struct server *s, struct loop *loop, const char *dir, struct err *e);

#endif
