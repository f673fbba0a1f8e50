/* SPDX-License-Identifier: Apache-2.0
 *
 * Deployments, as the reconciler sees them: which is under way, what may be done in this round,
 * when it is complete.
 */
#ifndef PADDOCK_SERVER_SCHED_ROLLOUT_H
#define PADDOCK_SERVER_SCHED_ROLLOUT_H

#include <stdbool.h>

#include "api/api.h"
#include "server/sched/rng.h"

struct rollout {
    /* set by the caller */
    const void *ctx; /* owns what is made */
    const struct job *job;           /* NULL: purged */
    const struct deployment *latest; /* of the job, whatever its version; NULL: none */
    int64_t priority, now;
    struct rng *rng;
    /* the results */
    const struct deployment *deployment; /* that placements are of; NULL: none */
    struct deployment *made;             /* the same, when it is new */
    struct deployment_status_update_list status; /* of the latest one */
    /* an allocation that failed, to be looked at now that its deployment has succeeded; or NULL */
    const struct allocation *waits;
    /* its own */
    const struct deployment *old;     /* the latest one when it is over for this version; or NULL */
    const struct deployment *current; /* of this version of the job; or NULL */
    bool paused, failed;
    bool complete;
    size_t n_groups;
};

struct rollout_group {
    const struct task_group *tg;
    const struct update_strategy *update; /* NULL: nothing is paced */
    struct deployment_state *state;       /* a copy, or a new one */
    bool existing;                        /* the deployment that is under way has it */
    bool canarying;                       /* canaries that are not promoted */
    bool ready;                           /* more may be placed */
    bool wants_canaries;
    /* the reconciler's findings */
    bool had_running; /* something of this version was there */
    bool unhealthy;
    int64_t n_canaries, n_destructive, n_in_place, n_migrate, n_unsettled;
    int64_t n_missing; /* new names that are wanted */
    int64_t n_moves;   /* whatever else is not settled */
};

/* Looks at the job's deployments: is one under way, is one over? */
void rollout_begin(struct rollout *r);
/* Counts the group's placed and healthy allocations. */
void rollout_group_begin(struct rollout *r, struct rollout_group *g, const struct task_group *tg);
/* How many canaries are to be placed. */
int64_t rollout_canaries(struct rollout *r, struct rollout_group *g);
/* How many may be replaced in this round. */
int64_t rollout_limit(struct rollout *r, struct rollout_group *g);
/* Notes how many of the group were placed. */
void rollout_group_end(struct rollout *r, struct rollout_group *g, int64_t placed);
/* After all groups: what becomes of the deployment. */
void rollout_end(struct rollout *r);
/* Says whether an allocation is of the deployment that is under way. */
bool rollout_has(const struct rollout *r, const struct allocation *a);
/* ... which is not over: its watcher says when it is placed again. */
bool rollout_holds(const struct rollout *r, const struct allocation *a);
/* ... which failed. */
bool rollout_failed_with(const struct rollout *r, const struct allocation *a);
/* A canary of an earlier or a failed deployment that nobody promoted. */
bool rollout_rejects(const struct rollout *r, const struct allocation *a);
/* A canary of the deployment that is under way. */
bool rollout_owns_canary(const struct rollout *r, const struct allocation *a);

/* How a change of the specification reaches an allocation. */
enum rollout_change { CHANGE_NONE, CHANGE_INPLACE, CHANGE_DESTRUCTIVE };
enum rollout_change rollout_change(const struct job *from, const struct job *to,
                               const struct task_group *tg);

#endif
