/* SPDX-License-Identifier: Apache-2.0
 *
 * An attempt of the scheduler at an evaluation, and the moment of the state that it sees: snapshot
 * and node table, taken together. The same on the leader and on a server that lends it a worker.
 */
#ifndef PADDOCK_SERVER_LEADER_MOMENT_H
#define PADDOCK_SERVER_LEADER_MOMENT_H

#include "server/leader/live.h"
#include "server/sched/sched.h"

struct env;
struct server;

struct moment {
    struct state_txn *txn; /* NULL: not taken, or over */
    struct node_table *nodes;
    const struct quota_room *quota; /* of the evaluation's namespace; NULL: it has none */
    uint64_t index;                 /* of the snapshot */
};

/* Apply thread, between two applies; owned by ctx. `live` is of the same server. */
void moment_take(struct moment *m, const struct server *s, const struct live *live, void *ctx,
                 const struct evaluation *e);
/* Any thread. */
void moment_end(struct moment *m);
/* Worker thread: an attempt, whose plan is sorted, and the end of the moment. `now` is the leader's
 * time of day. *ret_ns: how long it took. */
struct sched_out *moment_attempt(struct moment *m, const struct env *env, void *ctx,
                                 const struct evaluation *e, int64_t now, int64_t *ret_ns);

#endif
