/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing nodes. One `select` serves one attempt at an evaluation: it lays the plan being made
 * over the snapshot (stopped allocations are free, placed ones taken) and finds the best node for
 * each placement by scoring every feasible row. Rows of a group are scored once and kept in a heap;
 * only rows that the plan touches are scored again, so k placements on n nodes cost n + k log n.
 * The row that wins is verified exactly (ports, cores, distinct hosts and properties) before it is
 * taken.
 */
#ifndef PADDOCK_SERVER_SCHED_SELECT_H
#define PADDOCK_SERVER_SCHED_SELECT_H

#include <stdbool.h>

#include "server/sched/rng.h"
#include "server/sched/view.h"

struct select;

/* `allocs`: those of the job. Everything is owned by ctx. */
struct select *select_new(const void *ctx, struct sched_view *v, const struct job *job,
                          const struct allocation *const *allocs, size_t n_allocs, struct rng *rng);

/* A group of an older version of the job can be placed, too: on the nodes of the newest one. Before
 * anything of it is. */
void select_older(struct select *s, const struct job *job, const struct task_group *tg);

/* The plan stops `a`: what it holds is free from now on. Undone by select_unstop. */
void select_stop(struct select *s, const struct allocation *a);
void select_unstop(struct select *s, const struct allocation *a);

struct select_req {
    const struct task_group *tg;
    const char *const *penalty; /* node ids where it failed before */
    size_t n_penalty;
    const char *preferred;      /* tried alone first; NULL: none */
    const char *name;           /* of the allocation, for what is of one alone (per_alloc) */
    const char *only;           /* this node or none (system jobs, claims); NULL: any */
    bool claimed;               /* `only` has the volumes that the name claims */
};

struct select_got {
    const struct node *node;               /* NULL: no place */
    struct allocated_resources *resources; /* owned by ctx */
    struct alloc_metric *metrics;          /* owned by ctx; also when there is no place */
    const struct allocation **victims;     /* what is preempted for it: select_stop was called */
    size_t n_victims;
};

void select_place(struct select *s, const struct select_req *req, struct select_got *ret);
/* More nodes could have made room by preemption, but an attempt looks at so many allocations only.
 */
bool evict_spent(const struct select *s);
/* Books what select_place found: the allocation made of it. */
void select_book(struct select *s, const struct allocation *a);

/* An existing allocation of `tg` may stay on its node under the current job. */
bool select_may_stay(struct select *s, const struct task_group *tg, const char *node_id);

/* Why the node (ready, of the job's pool and datacenters) cannot take one more of the group, or
 * NULL and its score. Books nothing; what it makes for this answer is owned by ctx. */
const char *select_refusal(struct select *s, const void *ctx, const struct task_group *tg,
                           uint32_t row, double *ret_score);

/* Bytes of a metric as it is stored. */
size_t metric_bytes(const struct alloc_metric *m);
/* Returns the metric's numbers without any text. */
struct alloc_metric *metric_numbers(const void *ctx, const struct alloc_metric *m);

/* Adds what is known about classes to `elig` (true wins over false); false when some constraint
 * escapes classes, so that any change may help. */
bool select_classes(struct select *s, const void *ctx, const struct task_group *tg,
                    struct bool_map *elig);

/* Rows a system job looks at: takes work, datacenter and pool match, feasible. The filter's counts
 * go to the metrics of the group. */
size_t select_feasible(struct select *s, const struct task_group *tg, const uint32_t **ret_rows);
/* How many rows the filters kept out of those, and why. Owned by s. */
struct alloc_metric *select_filtered(struct select *s, const struct task_group *tg);

#endif
