/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's standing with the servers: registration, then heartbeats at the pace the server sets.
 * A heartbeat that the server answers with "not found" or "permission denied" registers again. A
 * heartbeat that changed something there (index not 0) is followed by a full report and another
 * heartbeat, so that the server's gate for returning nodes opens (doc/reconnect.md, S4 and S7).
 */
#ifndef PADDOCK_CLIENT_NODE_REGISTER_H
#define PADDOCK_CLIENT_NODE_REGISTER_H

#include "client/node/known.h"
#include "client/node/meta.h"

struct register_events {
    void (*registered)(void *arg); /* a new record: what the servers listed before says nothing */
    /* A heartbeat was taken. It changed something there: what was said of allocations may be lost.
     */
    void (*beaten)(void *arg, bool changed);
    /* A server has answered what was sent at that time, clock_boot_ns(). */
    void (*heard)(void *arg, int64_t sent_ns);
};

struct registration {
    struct ground *g;
    const struct meta *meta;
    struct known *known;
    const struct register_events *events;
    void *arg;
    struct timer *timer;
    struct timer *heartbeat_timer;
    struct timer *join_timer; /* no server has answered yet, and this client is to end then */
    uint64_t call;
    uint64_t heartbeat_call;
    int64_t backoff_ms;
    unsigned leaderless; /* heartbeats in turn that found no leader */
    bool under_way;
    bool again; /* the fingerprint changed meanwhile */
    /* for others to read */
    bool registered;
    int64_t ttl_ns;            /* 0 before */
    int64_t last_heartbeat_ns; /* monotonic; 0: none */
    int64_t sent_ns, register_sent_ns; /* heartbeat and registration under way; clock_boot_ns() */
};

/* Idempotent; also after a change of the fingerprint. */
void register_start(struct registration *r);
/* After so long, if nothing has started it before. */
void register_start_in(struct registration *r, int64_t ms);
void register_stop(struct registration *r);
void register_beat_now(struct registration *r);

#endif
