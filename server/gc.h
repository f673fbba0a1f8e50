/* SPDX-License-Identifier: Apache-2.0
 *
 * Garbage collection: finished evaluations with their allocations, dead jobs, nodes that are long
 * down. The leader looks every GC_INTERVAL_MS, on a worker thread of the loop; what may go is checked
 * again when it is applied.
 */
#ifndef PADDOCK_SERVER_GC_H
#define PADDOCK_SERVER_GC_H

#include "api/api.h"
#include "server/state/state.h"

struct leader;

enum {
    GC_INTERVAL_MS = 300000,
    GC_BATCH = 2048 /* objects of an entry */
};

/* Ages, in seconds, after which things go. */
struct gc_ages {
    int64_t eval_s, batch_eval_s, job_s, node_s;
};
extern const struct gc_ages gc_ages_default;

/* What may go, from a snapshot; owned by ctx. NULL: nothing. Pure but for reading. */
struct intent_reap *gc_find(const void *ctx, struct state_txn *t, const struct gc_ages *ages,
                            int64_t now_ns);

/* Loop thread: (re)starts the timer of a leader. */
void gc_arm(struct leader *l);
/* Loop thread: one pass; `done` (may be NULL) on the loop when it is in the log. */
void gc_run(struct leader *l, bool force, void (*done)(void *arg), void *arg);

#endif
