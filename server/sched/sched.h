/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler: one attempt at one evaluation. Reads a view, writes nothing; what should happen
 * comes back as a plan for the leader's plan applier and evaluations to create.
 *
 * The caller (server/leader/worker.c) stores `followups`, submits `plan`, and calls again with a
 * newer view when only a part was committed, SCHED_ATTEMPTS_* times.
 */
#ifndef PADDOCK_SERVER_SCHED_SCHED_H
#define PADDOCK_SERVER_SCHED_SCHED_H

#include "server/sched/rng.h"
#include "server/sched/view.h"

enum { SCHED_ATTEMPTS_SERVICE = 5, SCHED_ATTEMPTS_BATCH = 2 };

struct sched_in {
    struct sched_view *view;
    const struct evaluation *eval;
    const struct job *job; /* NULL: the view's; else a job that is not registered (job plan) */
    int64_t now;           /* ns since the epoch */
    struct rng *rng;
};

struct sched_out {
    struct plan *plan; /* NULL: nothing to do */
    struct evaluation_list followups;
    struct alloc_metric_map failed;    /* group -> why not all were placed */
    struct i64_map queued;             /* group -> how many were not placed; every group is in it */
    struct bool_map class_eligibility; /* of failed groups */
    bool escaped;
    const char *quota; /* which kept something from being placed; NULL: none did */
    bool more;  /* the attempt was bounded: the next attempt may place what this one did not */
    bool waits; /* something was not placed that room or a new node may help: not what filters keep
                   out */
    struct plan_annotations *annotations;
    const char *deployment_id; /* the newest of the job; NULL: none */
};

/* Result owned by ctx (points into the view as well). */
struct sched_out *sched_attempt(const void *ctx, const struct sched_in *in);
int sched_attempts(const char *eval_type);

#endif
