/* SPDX-License-Identifier: Apache-2.0
 *
 * What the scheduler reads: one consistent moment of the state. The scheduler is pure; the adapter
 * (server/leader/live.c over LMDB, a harness over arrays in tests) answers these calls. Everything
 * returned is immutable and lives as long as the view. One view belongs to one thread.
 */
#ifndef PADDOCK_SERVER_SCHED_VIEW_H
#define PADDOCK_SERVER_SCHED_VIEW_H

#include "api/namespace.h"
#include "server/sched/nodes.h"

struct sched_view;

struct sched_view_ops {
    /* Latest version of a job; NULL when it does not exist. */
    const struct job *(*job)(struct sched_view *v, const char *ns, const char *id);
    /* All allocations of a job, in order of their ids. `job` of each is the job *version* it was
     * made from, or NULL when that version is not stored any more. Never NULL (may be empty). */
    const struct allocation *const *(*allocs_by_job)(struct sched_view *v, const char *ns,
                                                     const char *id, size_t *ret_n);
    /* Allocations of a node that hold resources (not client-terminal), which live as long as ctx.
     * `job` may be NULL. */
    const struct allocation *const *(*allocs_by_node)(struct sched_view *v, const void *ctx,
                                                      const char *node_id, size_t *ret_n);
    /* The newest deployment of a job, whatever its version; NULL: there is none. */
    const struct deployment *(*latest_deployment)(struct sched_view *v, const char *ns,
                                                  const char *id);
    /* Ids of the pending evaluations of its job other than `e` that come at `at`
     * (RESCHEDULE_BATCH_WINDOW sooner or later), for that reason. They live as long as ctx. */
    struct str_list (*awaited)(struct sched_view *v, const void *ctx, const struct evaluation *e,
                               const char *trigger, int64_t at);
    /* Returns the id of the node whose volume of that name allocations named so come back to
     * (sticky); NULL: they may have any. */
    const char *(*volume_claim)(struct sched_view *v, const struct job *job, const char *alloc_name,
                                const char *volume);
    /* NULL: it is not there. */
    const struct node_pool *(*node_pool)(struct sched_view *v, const char *name);
};

struct sched_view {
    const struct sched_view_ops *ops;
    void *arg;
    uint64_t index; /* the snapshot's Raft index */
    /* Every node and what is used of it, as of `index`. An attempt writes its plan into the columns
     * of use: make a copy for each. */
    struct node_table *nodes;
    const struct scheduler_configuration *config; /* NULL: defaults */
    const struct quota_room *quota; /* of the namespace of the evaluation; NULL: it has none */
};

#endif
