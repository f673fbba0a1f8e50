/* SPDX-License-Identifier: Apache-2.0
 *
 * Heartbeat timers of the nodes (doc/reconnect.md 1.7): one heap, and one timer of the loop for its
 * top. Loop thread only. Nothing of it is stored: a new leader gives every node the fail-over TTL.
 */
#ifndef PADDOCK_SERVER_LEADER_HEARTBEAT_H
#define PADDOCK_SERVER_LEADER_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>

#include "server/env.h"

struct heartbeats;

struct heartbeat_config {
    int64_t min_ms;     /* lowest TTL */
    int64_t grace_ms;   /* how much later than the TTL a node is missed */
    int64_t failover_ms;
    int64_t per_second; /* heartbeats of all nodes together that the leader wants at most */
};

/* `missed` is called once per expiry, a second after it; the node's timer is gone then. Time in
 * which the loop stood still does not count. */
struct heartbeats *heartbeats_new(const void *ctx, const struct env *env,
                                  const struct heartbeat_config *c,
                                  void (*missed)(void *arg, const char *node_id), void *arg);
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
/* The node is missed now; false: it has no timer. */
bool test_hook_beat(struct heartbeats *h, const char *node_id);
#endif

#endif
