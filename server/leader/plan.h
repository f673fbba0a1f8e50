/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan applier's judgement: what of a plan still holds against the live node table and the
 * newest state. Workers plan on snapshots that may be old; here, on the apply thread, plans are
 * checked one after the other, each after the commit of the plan before, so that no node is ever
 * over-committed.
 *
 * Stops are always good. Where the namespace's quota has no room for all new ones, none is placed.
 * A node that cannot take what the plan puts there is rejected as a whole; a
 * replacement there takes along the stop of its original, so that an update never leaves a gap.
 */
#ifndef PADDOCK_SERVER_LEADER_PLAN_H
#define PADDOCK_SERVER_LEADER_PLAN_H

#include "server/leader/live.h"

struct plan_verdict {
    struct plan_result *result; /* NULL: nothing is left; owned by ctx, points into the plan; sorted
                                   by node */
    struct str_list rejected;   /* nodes; empty: the whole plan holds */
    const char *why;            /* of the first rejection */
    struct plan_unit {
        size_t stops,
            places; /* of the result's lists, where it begins; one more unit ends the last */
    } *units;
    size_t n_units;
};

/* How far a plan has been put into the log. */
struct plan_at {
    size_t unit;
    bool begun; /* its deployment is in */
};

/* The next part of a result: an entry of at most `max` changes, or one unit. A placement is in one
 * entry with its stops and marks: all of them are done or none, whatever comes between two parts
 * (doc/reconnect.md, S13). Node by node, stops first. `at` moves behind it. False: nothing is left.
 */
bool plan_part(const struct plan_verdict *all, size_t max, struct plan_at *at,
               struct plan_result *ret);

/* Each list by node: what a check begins with. On the worker that made the plan. */
void plan_sort(struct plan *p);
/* The check of a sorted plan, apply thread; owned by ctx. `quota` is of the job's namespace, as of
 * now, or NULL. */
struct plan_check;
struct plan_check *plan_check_new(const void *ctx, const struct live *live, const struct plan *plan,
                                  const struct quota_room *quota);
/* Some `max` changes more; true when that was all and `ret` is filled. `t`: a snapshot of now. The
 * log goes on between two steps, as it does between the check and the commit: no write but a plan
 * takes room, there is one plan at a time, and what has become of a node is looked at again when
 * the plan is applied. */
bool plan_check_step(struct plan_check *v, struct state_txn *t, size_t max,
                     struct plan_verdict *ret);

#endif
