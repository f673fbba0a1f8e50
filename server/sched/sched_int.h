/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by sched.c (service, batch) and system.c (system, sysbatch) only.
 */
#ifndef PADDOCK_SERVER_SCHED_SCHED_INT_H
#define PADDOCK_SERVER_SCHED_SCHED_INT_H

#include "server/sched/reconcile.h"
#include "server/sched/rollout.h"
#include "server/sched/sched.h"
#include "server/sched/select.h"

struct attempt {
    const struct sched_in *in;
    struct sched_out *out; /* talloc owner of everything made */
    const struct job *job; /* NULL: gone */
    const struct allocation *const *allocs;
    size_t n_allocs;
    struct select *select; /* NULL when the job is gone */
    struct plan *plan;
    struct alloc_list_stub_list preempted_allocs; /* for annotations */
    struct quota_room room; /* of the quota, as the plan leaves it; without a name: none */
    size_t metrics_bytes; /* of groups that found no place */
    struct i64_map preempted; /* group -> what its placements have preempted */
    const struct deployment *deployment; /* what is placed or updated is of it; NULL: none */
};

/* The row of the plan, which the plan owns. */
struct allocation *attempt_stop(struct attempt *t, const struct allocation *a, const char *desc,
                  const char *client_status);
/* Marks an allocation that stays wanted; `client_status` NULL: it stays as it is. */
void attempt_mark(struct attempt *t, const struct allocation *a, const char *followup,
                  const char *client_status);
/* `back`: that it came back is settled. */
void attempt_update(struct attempt *t, const struct allocation *a, bool back);
/* False: no place; the metrics are noted and the group counts as failed. */
bool attempt_place(struct attempt *t, const struct recon_place *p, const char *only_node);

/* Why the group found no place, for the evaluation; of many groups the last ones have numbers only.
 */
void attempt_note(struct attempt *t, const struct task_group *tg, struct alloc_metric *m);

void system_attempt(struct attempt *t);

#endif
