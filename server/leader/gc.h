/* SPDX-License-Identifier: Apache-2.0
 *
 * Garbage collection: finished evaluations with their allocations, deployments and tokens that are
 * over, dead jobs, nodes that are long down. The leader looks on a worker thread of the loop; what
 * may go is checked again when it is applied. It looks an interval after something has ended, and
 * then again when the next of the ended is old enough: while nothing ends there is no timer.
 */
#ifndef PADDOCK_SERVER_LEADER_GC_H
#define PADDOCK_SERVER_LEADER_GC_H

#include "api/api.h"
#include "server/fsm/fsm.h"
#include "server/state/state.h"

enum {
    GC_BATCH = 2048, /* objects of an entry */
    GC_ROUNDS = 1024 /* entries of a pass */
};

/* Ages, in seconds, after which things go; 0: at once, also what a clock that was ahead made. */
struct gc_ages {
    int64_t eval_s, batch_eval_s, job_s, node_s, deployment_s, token_s;
};

/* Finds what may go, in a snapshot; owned by ctx. NULL: nothing. Pure but for reading. *ret_due_ns:
 * when something else may go that has ended already; INT64_MAX: there is nothing. */
struct intent_reap *gc_find(const void *ctx, struct state_txn *t, const struct gc_ages *ages,
                            int64_t now_ns, int64_t *ret_due_ns);

#endif
