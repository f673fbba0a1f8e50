/* SPDX-License-Identifier: Apache-2.0
 *
 * Which allocations of less important jobs make room on a node. Pure: candidates in, victims out.
 */
#ifndef PADDOCK_SERVER_SCHED_PREEMPT_H
#define PADDOCK_SERVER_SCHED_PREEMPT_H

#include "api/api.h"
#include "server/sched/resources.h"

enum {
    PREEMPT_DELTA = 10,  /* a victim's job is at least so much less important */
    PREEMPT_PENALTY = 50 /* of each one beyond what its group may move at once */
};

struct preempt_cand {
    const struct allocation *alloc;
    struct usage u;
    int64_t priority;
    int64_t max_parallel; /* migrate of its group; 0: no limit */
    int64_t gone;         /* of its group, by the same plan */
    bool devices;         /* it was given some */
};

/* How far what `a` holds is from what is needed; 0: the same. */
double preempt_distance(const struct usage *need, const struct usage *a);
double preempt_penalty(const struct preempt_cand *c);
/* The part of the score: 1 where little of importance ends, 0.5 at `sum` 2048. */
double preempt_score(const struct preempt_cand *v, size_t n);

/* Moves the victims to the front of `v` and returns their number; 0: they are not enough. No victim
 * could be left out. `left`: what is free without them, of the capacity (below 0: over-full). */
size_t preempt_choose(struct preempt_cand *v, size_t n, const struct usage *left,
                      const struct usage *ask);

#endif
