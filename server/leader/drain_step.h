/* SPDX-License-Identifier: Apache-2.0
 *
 * What moves next off the nodes that drain (doc/scheduling.md 2.9, doc/reconnect.md 1.12): a pure
 * function of one moment of the state. It only says which allocations get a flag; the scheduler
 * stops and places.
 *
 *   service   as many of a group as its migrate block allows: at most max_parallel of the wanted
 *             count may be missing or not yet settled, on all nodes together
 *   batch     waits for its own end; at the deadline ended and not placed again
 *   system    when nothing else is left (not at all when the drain ignores them)
 *   deadline  whatever is left gets its flag at once
 *
 * An allocation is settled when its client says whether it is healthy, or, if it is of no
 * deployment, its tasks have been running for min_healthy_time; one that is not after
 * healthy_deadline is not waited for any longer. (There are no health checks yet: health_check
 * "checks" and "task_states" are the same.)
 *
 * Because each step looks at the state alone, a new leader goes on where the old one was.
 */
#ifndef PADDOCK_SERVER_LEADER_DRAIN_STEP_H
#define PADDOCK_SERVER_LEADER_DRAIN_STEP_H

#include "api/api.h"

struct drain_in {
    const struct node *const *nodes; /* those that drain, in order of their ids */
    size_t n_nodes;
    int64_t now; /* wall clock, ns */
    /* In order of ids; `job` of each is the version that it was made from, or NULL. */
    const struct allocation *const *(*allocs_by_node)(void *arg, const char *node_id,
                                                      size_t *ret_n);
    const struct allocation *const *(*allocs_by_job)(void *arg, const char *ns, const char *job_id,
                                                     size_t *ret_n);
    const struct job *(*job)(void *arg, const char *ns, const char *job_id); /* NULL: purged */
    void *arg;
};

/* Allocations that get the same flags. */
struct drain_move {
    struct str_list allocs;
    const struct job **jobs; /* each once: they are evaluated again */
    size_t n_jobs;
};

struct drain_out {
    struct drain_move move; /* stopped here, placed elsewhere */
    struct drain_move end;  /* stopped, not placed again: batch */
    struct str_list done;   /* nodes with nothing left */
    int64_t look_again;     /* when time alone may change the answer, wall ns; INT64_MAX: never */
};

/* Result owned by ctx; points into the input. */
struct drain_out *drain_step(const void *ctx, const struct drain_in *in);

/* How many of `drainable` allocations may move now, when `settled` ones of `count` count. */
int64_t drain_room(int64_t count, int64_t max_parallel, int64_t settled, int64_t drainable);

#endif
