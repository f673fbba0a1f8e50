/* SPDX-License-Identifier: Apache-2.0
 *
 * The live node table, and the scheduler's view over the state. The live table follows the log on
 * the apply thread of every server, leading or not; a worker gets a snapshot of the state and a
 * copy of the table of the same moment.
 */
#ifndef PADDOCK_SERVER_LEADER_LIVE_H
#define PADDOCK_SERVER_LEADER_LIVE_H

#include "api/namespace.h"
#include "server/sched/view.h"
#include "server/state/state.h"

/* --- live: apply thread only --- */
struct live {
    struct node_table *nodes;
    struct live_space *spaces; /* what each namespace holds, and its quota */
    size_t n_draining;         /* of them */
    struct live_alloc *allocs; /* what each allocation that holds something was counted as */
    struct live_mark *marks;   /* node id -> index of the last change of what is used there */
};

struct live *live_new(const void *ctx);
void live_load(struct live *l, struct state_txn *t);
void live_node(struct live *l, const struct node *n);
void live_node_gone(struct live *l, const char *id);
/* The allocation as stored now, at `index`. */
void live_alloc(struct live *l, const struct allocation *a, uint64_t index);
void live_alloc_gone(struct live *l, const char *id, uint64_t index);
void live_namespace(struct live *l, const struct namespace *n);
void live_namespace_gone(struct live *l, const char *name);
/* The quota of a namespace; NULL: it has none. */
const char *live_quota(const struct live *l, const char *ns);
/* Index of the last change of an allocation on the node, or of the node; 0: none since the start.
 */
uint64_t live_changed(const struct live *l, const char *node_id);

/* The allocation is counted on that node; *ret_u is what it holds. */
bool live_holds(const struct live *l, const char *alloc_id, const char *node_id,
                struct usage *ret_u);

/* --- views: any thread, one at a time --- */
struct sched_view_state {
    struct sched_view view;
    struct state_txn *txn;
    const void *ctx;
};

/* Reads through `t` (borrowed, until its end) into ctx. `nodes` is borrowed and written to; `quota`
 * is that of the job's namespace, or NULL. */
void sched_view_init(struct sched_view_state *v, const void *ctx, struct state_txn *t,
                     struct node_table *nodes, const struct quota_room *quota);
/* A table made from the state alone, for a server that does not lead (job plan). */
struct node_table *sched_view_table(const void *ctx, struct state_txn *t);

/* --- quotas --- */
/* Returns what the scheduler is to know of the quota of a namespace in the region; NULL: it has
 * none. Without `live` the allocations of the state are counted. */
const struct quota_room *quota_room_of(const void *ctx, struct state_txn *t, const struct live *l,
                                       const char *region, const char *ns);
/* Counts the allocations of all namespaces with the quota. */
struct quota_use quota_used(struct state_txn *t, const char *quota);

#endif
