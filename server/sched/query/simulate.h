/* SPDX-License-Identifier: Apache-2.0
 *
 * What would happen to the allocations of some nodes if those drained: a dry run on a view, job by
 * job.
 */
#ifndef PADDOCK_SERVER_SCHED_QUERY_SIMULATE_H
#define PADDOCK_SERVER_SCHED_QUERY_SIMULATE_H

#include "server/sched/rng.h"
#include "server/sched/view.h"

struct simulate_in {
    struct sched_view *view;  /* its table is written to */
    const char *const *drain; /* node ids */
    size_t n_drain;
    int64_t now; /* ns since the epoch */
    struct rng *rng;
};

/* Result owned by ctx; points into the view. An id that is not known: -ERR_NOT_FOUND. */
int sched_simulate(const void *ctx, const struct simulate_in *in, struct simulation **ret,
                   struct err *e);

#endif
