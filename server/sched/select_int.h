/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of select.c, evict.c, grant.c and metric.c only.
 */
#ifndef PADDOCK_SERVER_SCHED_SELECT_INT_H
#define PADDOCK_SERVER_SCHED_SELECT_INT_H

#include "server/sched/compare/class.h"
#include "server/sched/feasible.h"
#include "server/sched/resources.h"
#include "common/mem.h"
#include "server/sched/select.h"
#include "server/sched/spread.h"

enum { SCORES_KEPT = 5 };

struct cand {
    double score;
    uint32_t row;
    uint32_t stamp; /* of the row when it was scored: stale candidates are skipped */
};

struct heap {
    struct cand *v;
    size_t n, cap;
    uint64_t seed; /* equal scores: an order of rows that differs between evaluations */
    uint32_t bucket; /* of the spread, whose part is not in the scores here: it changes for all of
                        them */
    int parts;       /* 0: scores are whole; else they are sums of so many parts */
};

/* One heap, or for a spread two for each bucket: rows without and with allocations of the group. */
struct heaps {
    struct heap *v;
    size_t n;
};

struct score_parts {
    double binpack, anti, penalty, affinity, spread, preemption; /* preemption: 0 without victims */
};

enum class_state { CLASS_UNKNOWN, CLASS_OK, CLASS_BAD };

/* One group of the job. */
struct group {
    const struct task_group *tg;
    const struct job *job; /* of the group: a version of the select's */
    struct feasible *feas;
    struct ask ask;
    struct alloc_metric *base; /* counts of the static filter */
    bool open, heaped, distinct;
    bool by_name;      /* what fits depends on `name`, of the allocation to be placed */
    const char *claim; /* the only node with the volumes of that name; NULL: any */
    const char *name;
    bool exact;        /* demand depends on the node (cores): no short cut for the score */
    uint8_t *class_ok; /* class number: enum class_state */
    const char **class_why; /* class number: "" or why it is out; NULL: nobody asked */
    double *k_cpu, *k_mem; /* shape number: what the demand multiplies the terms of the score by */
    bool *ok;         /* row: passes the static filter */
    const char **why; /* row: why it was refused when it was verified */
    uint32_t *rows;
    size_t n_rows;
    int32_t *count; /* row: allocations of the group in the plan's world */
    double *affinity;          /* row: the part; NULL: nothing is liked */
    struct spread_set *spread; /* NULL: none */
    struct heaps heaps;
    uint32_t *barren; /* row: 1 + its stamp when no eviction there helped; NULL: none was sought */
};

/* A change that the plan makes on a row, chained. */
struct change {
    const struct allocation *alloc;
    int32_t next;
    bool stop;
};

/* distinct_property of the job or a group: how often each value of the property is used. */
struct distinct {
    const struct constraint *c;
    const struct task_group *tg; /* NULL: of the job */
    int64_t limit;
    struct i64_map used;
};

struct select {
    struct sched_view *view;
    const struct job *job;
    bool empty_first; /* the algorithm "spread" */
    bool oversubscribes; /* memory_max counts */
    struct rng *rng;
    uint64_t tie_seed;
    struct regexes *rx;
    struct node_table *t; /* the view's; its columns of use are the plan's world */
    uint32_t *stamp;
    int32_t *job_count;
    int32_t *first; /* row: first of its changes, -1: none */
    struct change *changes;
    size_t n_changes, cap_changes;
    struct group *groups;
    size_t n_groups;
    bool job_distinct;
    struct distinct *distinct;
    size_t n_distinct;
    /* rows that take work and match datacenter and pool */
    uint32_t *rows;
    size_t n_rows;
    int64_t in_pool;
    struct i64_map available;
    struct evict *evict; /* NULL: no room was made by preemption yet */
};

struct preempt_cand;

/* A row that is chosen with its victims. */
struct eviction {
    void *ctx; /* of what follows; lives as long as the select */
    uint32_t row;
    struct preempt_cand *v;
    size_t n; /* 0: none is found */
    double score;
    struct score_parts parts;
    struct allocated_resources *resources;
};

/* The allocations to be preempted for one more of the group, where the configuration allows
 * preemption. */
bool evict_choose(struct select *s, struct group *g, const struct select_req *req,
                  struct eviction *ret);
/* Stops the victims and says so. */
void evict_apply(struct select *s, const struct eviction *e, struct select_got *ret);

/* Adds a change to a row; then every group that has a heap scores the row again. */
void change_add(struct select *s, const struct allocation *a, uint32_t row, bool stop);
void row_touch(struct select *s, uint32_t row);

/* The parts that apply, but the spread. */
struct sum {
    double v;
    int n;
};

/* --- row.c --- */
/* A spread part of nothing is no part. */
double row_mean(struct sum sum, double spread);
/* A candidate for the row; false when it has no room. */
bool row_cand(const struct select *s, const struct group *g, uint32_t row,
    const struct select_req *req, struct cand *ret);
/* The heap of the group for a row, and its candidate there. */
struct heap *row_group_cand(const struct select *s, const struct group *g, uint32_t row,
    struct cand *ret);
void row_group_offer(struct select *s, struct group *g, uint32_t row);
void row_heap_offer(struct select *s, struct group *g, struct heap *h, uint32_t row,
    const struct select_req *req);
/* The first dimension in which the row is exhausted, or NULL. */
const char *row_exhausted(const struct select *s, const struct group *g, uint32_t row);
const char *row_verify(struct select *s, struct group *g, uint32_t row, const void *ctx,
                       struct allocated_resources **ret);
/* `parts`: preemption is read, the others are set. */
double row_score_exact(const struct select *s, const struct group *g, uint32_t row,
                       const struct select_req *req, struct score_parts *parts);

void metric_filtered(const void *ctx, struct alloc_metric *m, const struct node *n, const char *why,
                     int64_t n_nodes);
/* Counts a node without a driver of the group: which, and why. */
void metric_drivers(const void *ctx, struct alloc_metric *m, const struct node *n,
                    const struct task_group *tg);
void metric_exhausted(const void *ctx, struct alloc_metric *m, const struct node *n,
                      const char *why);
void metric_score(const void *ctx, struct alloc_metric *m, const struct node *n,
                  const struct score_parts *p, double score);

/* Ports, cores and the resources object. NULL, or the exhausted dimension. */
const char *grant(struct select *s, const struct group *g, uint32_t row, const void *ctx,
                  struct allocated_resources **ret);

/* Says whether nobody on the row writes to a volume that the group wants to write to alone. */
bool grant_volumes(struct select *s, const struct group *g, uint32_t row);
void distinct_open(struct select *s, const struct allocation *const *allocs, size_t n);
void distinct_count(struct select *s, const struct allocation *a, uint32_t row, int sign);
const char *distinct_refused(struct select *s, const void *ctx, const struct group *g,
                             uint32_t row);

/* --- a heap of candidates, best first --- */

static inline bool
heap_better(const struct heap *h, const struct cand *a, const struct cand *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    return rng_mix(h->seed ^ a->row) > rng_mix(h->seed ^ b->row);
}

static inline void
heap_room(const void *ctx, struct heap *h, size_t n)
{
    if (n <= h->cap)
        return;
    h->cap = n > h->cap * 2 ? n : h->cap * 2;
    mem_resize(ctx, h->v, struct cand, h->cap);
}

static inline void
heap_push(const void *ctx, struct heap *h, struct cand c)
{
    heap_room(ctx, h, h->n + 1);
    size_t i = h->n++;
    for (; i > 0 && heap_better(h, &c, &h->v[(i - 1) / 2]); i = (i - 1) / 2)
        h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = c;
}

static inline void
heap_sink(struct heap *h, size_t i, struct cand c)
{
    size_t k;

    while ((k = 2 * i + 1) < h->n) {
        if (k + 1 < h->n && heap_better(h, &h->v[k + 1], &h->v[k]))
            k++;
        if (!heap_better(h, &h->v[k], &c))
            break;
        h->v[i] = h->v[k];
        i = k;
    }
    h->v[i] = c;
}

static inline struct cand
heap_pop(struct heap *h)
{
    struct cand top = h->v[0], last = h->v[--h->n];

    if (h->n > 0)
        heap_sink(h, 0, last);
    return top;
}

static inline void
heap_order(struct heap *h)
{
    for (size_t i = h->n / 2; i-- > 0;)
        heap_sink(h, i, h->v[i]);
}

#endif
