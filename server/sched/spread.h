/* SPDX-License-Identifier: Apache-2.0
 *
 * The spread of a group's allocations over values of properties (paddock-scheduling(7)). Rows that
 * have the same value of every property form a *bucket*, whose rows all have the same score: a
 * placement changes the scores of buckets, not of rows.
 */
#ifndef PADDOCK_SERVER_SCHED_SPREAD_H
#define PADDOCK_SERVER_SCHED_SPREAD_H

#include <stdbool.h>

#include "api/api.h"
#include "server/sched/compare/constraint.h"
#include "server/sched/nodes.h"

struct spread_set {
    struct spread_block *v;
    size_t n;
    double weights;   /* of all blocks */
    uint32_t *bucket; /* row: its bucket */
    uint32_t *of;     /* bucket * n + block: number of the value, PROP_NONE: none */
    bool stale;       /* the uses have changed since the scores were made */
    double *score;    /* bucket: as the uses are now */
    double *level;    /* bucket: likewise */
    size_t n_buckets;
};

/* Rows that may take an allocation of the group, and those that are there: `use`, by row. */
struct spread_rows {
    const uint32_t *v;
    size_t n;
    const int32_t *use;
};
/* NULL when nothing is to be spread. Owned by ctx. */
struct spread_set *spread_new(const void *ctx, const struct node_table *t, const struct job *job,
                              const struct task_group *tg, const struct spread_rows *rows);
/* One more (1) or one less (-1) of the group is on the row. */
void spread_use(struct spread_set *s, uint32_t row, int sign);
/* Returns the score by the uses as they are now. */
double spread_score(struct spread_set *s, uint32_t bucket);
/* Returns what one more there does to the targets, before all scores: 0: they allow it whole; up to
 * 1: with a part of one; up to 2: they have what they want, there. */
double spread_level(struct spread_set *s, uint32_t bucket);

/* The part of one block with targets: how much one more at a value that has `use` of `desired`
 * (above 0) helps, -1 .. 1 and below. */
double spread_boost(double desired, int64_t use);
/* The same of a block without targets: min and max are over values in use. */
double spread_even(int64_t use, int64_t min, int64_t max);

/* Row -> sum of the weights that match over the sum of all without their signs, -1 .. 1; NULL when
 * nothing is liked or disliked. Owned by ctx. */
double *affinity_column(const void *ctx, struct regexes *rx, const struct node_table *t,
                        const struct job *job, const struct task_group *tg);

#endif
