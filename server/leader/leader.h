/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs while this server leads: broker, blocked evaluations, scheduler workers, plan applier,
 * heartbeat timers, drainer, garbage collection. Rebuilt from state on election, dropped on its
 * loss.
 *
 * server_new() calls leader_new() and gives leader_listener to the core; server_stop() calls
 * leader_stop() before the core ends, and leader_free() after it has. Endpoints reach it by
 * server_leader().
 */
#ifndef PADDOCK_SERVER_LEADER_LEADER_H
#define PADDOCK_SERVER_LEADER_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/host.h"

extern const struct log_listener leader_listener;

/* Returns how many workers a server has that is not told. */
unsigned leader_workers_default(void);
/* Loop thread. Starts the worker threads. */
struct leader *leader_new(struct server *s);
/* Loop thread: nothing is scheduled any more; all else goes on. */
void leader_retire(struct leader *l);
/* Loop thread: no more work is taken; worker threads are joined (milliseconds); timers stopped. */
void leader_stop(struct leader *l);
void leader_free(struct leader *l);

/* --- for the endpoints, on the loop thread --- */
/* A sign of life: (re)starts the node's timer and returns the TTL to tell it, ns. 0 when this
 * server does not lead. */
int64_t leader_heartbeat(struct leader *l, const char *node_id);
/* A sign of life has come in, what it asks for is not written yet: a miss that was not sent to the
 * log is void. False: a miss is on its way there, so what the node asks for is to be written behind
 * it. */
bool leader_node_heard(struct leader *l, const char *node_id);
/* The node is purged: its timer with it. */
void leader_node_gone(struct leader *l, const char *node_id);
/* Renews the lock of a variable as it is stored. -ERR_CONFLICT: it is another one by now, or dead.
 */
int leader_lock_renew(struct leader *l, const struct sealed_variable *v);
/* Says whether a task may restart because of a template, as far as max_parallel of its group lets,
 * and notes its turn until the task says `over`, healthy_deadline has passed or the allocation has
 * ended. `a` has its job. */
bool leader_turn(struct leader *l, struct state_txn *t, const struct allocation *a,
                 const struct alloc_turn_request *q);
/* Counts what waits here, as of the last turn of the core; all 0 when this server does not lead. */
void leader_figures(struct leader *l, struct server_figures *ret);
/* Returns what the workers of this server do; owned by ctx. */
struct scheduler_workers_response *leader_workers(struct leader *l, const void *ctx);
/* Makes an attempt for the leader, and answers it (lend.c). */
struct rpc_call;
struct sched_attempt_request;
void leader_lend(struct leader *l, struct rpc_call *call, const struct sched_attempt_request *r);
/* Other servers are there, or not any more. */
void leader_members_changed(struct leader *l);
/* Collects garbage now, without regard to age; `done` on the loop. */
void leader_gc(struct leader *l, void (*done)(void *arg, uint64_t index), void *arg);

#endif
