/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job's allocations can be where they are, and cannot be elsewhere: each node's reason,
 * grouped.
 */
#ifndef PADDOCK_SERVER_SCHED_QUERY_EXPLAIN_H
#define PADDOCK_SERVER_SCHED_QUERY_EXPLAIN_H

#include "server/sched/rng.h"
#include "server/sched/view.h"

enum { EXPLAIN_NODES = 5, EXPLAIN_NODES_MAX = 10000 }; /* named for a reason */

struct explain_in {
    struct sched_view *view;
    const struct job *job;
    struct rng *rng;
    const char *group; /* empty: all */
    const char *node;  /* id, the beginning of one, or a name; empty: all */
    size_t n_named;    /* nodes per reason that are named */
};

/* Explains where one more allocation of each group may go, beside what exists. *ret is owned by ctx
 * and points into the view. -ERR_LIMIT when groups times nodes are more than EXPLAIN_CHECKS_MAX:
 * one group is to be asked for. */
int sched_explain(const void *ctx, const struct explain_in *in, struct job_explanation **ret,
                  struct err *e);

#endif
