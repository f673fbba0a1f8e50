/* SPDX-License-Identifier: Apache-2.0
 *
 * Heartbeat timers of the nodes (doc/reconnect.md 1.7): one heap, and one timer of the loop for its
 * top. Loop thread only. Nothing of it is stored: a new leader gives every node the fail-over TTL.
 */
#ifndef PADDOCK_SERVER_LEADER_HEARTBEAT_H
#define PADDOCK_SERVER_LEADER_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "server/env.h"

struct heartbeats;

struct heartbeat_config {
    int64_t min_ms;     /* lowest TTL */
    int64_t grace_ms;   /* how much later than the TTL a node is missed */
    int64_t failover_ms;
    int64_t per_second; /* heartbeats of all nodes together that the leader wants at most */
};

/* Nodes are missed, each once per expiry; their timers are gone then. */
typedef void missed_fn(void *arg, const struct str_list *node_ids);

/* `missed` is called a second after the expiry, and up to two later when the time of other nodes
 * ends meanwhile: what goes together is missed together. Time in which the loop stood still does
 * not count. */
struct heartbeats *heartbeats_new(const void *ctx, const struct env *env,
                                  const struct heartbeat_config *c, missed_fn *missed, void *arg);
/* Every timer is dropped. */
void heartbeats_clear(struct heartbeats *h);
/* (Re)starts a node's timer; returns the TTL for the client, ns: I + random [0, I). */
int64_t heartbeats_reset(struct heartbeats *h, const char *node_id);
/* After an election: the node has the fail-over TTL to show up. */
void heartbeats_failover(struct heartbeats *h, const char *node_id);
void heartbeats_remove(struct heartbeats *h, const char *node_id);
size_t heartbeats_count(const struct heartbeats *h);

/* max(min, n / rate), ms: the I above. */
int64_t heartbeat_interval(const struct heartbeat_config *c, size_t nodes);

#ifdef FAULT_INJECTION
/* The nodes are missed now; false: one of them has no timer. */
bool test_hook_beat(struct heartbeats *h, const struct str_list *node_ids);
#endif

#endif
