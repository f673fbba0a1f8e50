/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: garbage. The collector (server/leader/gc.c) finds in a snapshot what is old
 * enough. Whether anybody needs a row is asked there and here, by the same questions, which come
 * first: until the entry is applied an allocation that was lost may run by its client's word, and a
 * job may be wanted again.
 */
#include "api/away.h"
#include "server/fsm/fsm_int.h"

/* A link between an allocation of which nobody hears and what stands for it: when the first is
 * back, the scheduler finds the other by it. */
static bool
is_link(struct state_txn *t, const struct allocation *al)
{
    auto_mem void *tmp = mem_ctx("link");
    const char *id = al->previous_allocation;
    const struct allocation *prev;

    if (str_empty(al->next_allocation))
        return false;
    for (int i = 0; i < AWAY_CHAIN_MAX && (prev = state_alloc(t, tmp, id)) != NULL; i++) {
        if (!alloc_terminal(prev) && alloc_was_unknown(prev))
            return true;
        id = prev->previous_allocation;
    }
    return false;
}

/* A job that is wanted keeps allocations that ended by themselves: they fill their places. */
static bool
is_wanted(const struct job *j)
{
    return j != NULL && !j->stop && !str_eq(j->status, JOB_STATUS_DEAD);
}

bool
fsm_alloc_may_go(struct state_txn *t, const struct allocation *al, const struct job *j)
{
    return alloc_client_terminal(al) && (alloc_server_terminal(al) || !is_wanted(j)) &&
           !is_link(t, al);
}

bool
fsm_eval_may_go(const struct evaluation *ev, const struct job *j)
{
    bool batch = str_eq(ev->type, JOB_BATCH) || str_eq(ev->type, JOB_SYSBATCH);

    if (str_eq(ev->status, EVAL_PENDING) || str_eq(ev->status, EVAL_BLOCKED))
        return false;
    return !batch || !is_wanted(j);
}

bool
fsm_job_may_go(struct state_txn *t, const struct job *j)
{
    auto_mem void *tmp = mem_ctx("job");
    bool runs = false;

    if (!str_eq(j->status, JOB_STATUS_DEAD) || (job_is_parent(j) && !j->stop) ||
        state_has_open_evals(t, j->namespace, j->id))
        return false;
    struct state_iter *it = state_allocs_by_job(t, tmp, j->namespace, j->id);
    for (struct allocation *al; (al = state_next(it, tmp)) != NULL; talloc_free(al))
        runs |= !alloc_client_terminal(al);
    return !runs;
}

bool
fsm_deployment_may_go(struct state_txn *t, const struct deployment *d)
{
    auto_mem void *tmp = mem_ctx("deployment");

    if (deployment_active(d))
        return false;
    struct state_iter *it = state_allocs_by_deployment(t, tmp, d->id);
    state_iter_live_only(it);
    if (state_next(it, tmp) == NULL)
        return true;
    state_iter_end(it);
    return false;
}

/* --- the entry: allocations before what they keep --- */

static void
reap_alloc(struct apply *a, const char *id)
{
    struct allocation *al = state_alloc(a->t, a->ctx, id);

    if (al == NULL || entry_may_run(a, al) ||
        !fsm_alloc_may_go(a->t, al, entry_job(a, al->namespace, al->job_id)))
        return;
    (void)state_del(a->t, a->index, ALLOCS, al->id);
}

static void
reap_eval(struct apply *a, const char *id)
{
    const struct evaluation *ev = state_eval(a->t, a->tmp, id);

    if (ev == NULL || !fsm_eval_may_go(ev, entry_job(a, ev->namespace, ev->job_id)))
        return;
    struct state_iter *it = state_allocs_by_eval(a->t, a->tmp, id);
    if (state_next(it, a->tmp) != NULL)
        state_iter_end(it); /* one stayed, and its evaluation with it */
    else
        (void)state_del(a->t, a->index, EVALS, id);
}

static void
reap_deployment(struct apply *a, const char *id)
{
    const struct deployment *d = state_deployment(a->t, a->ctx, id);

    if (d != NULL && fsm_deployment_may_go(a->t, d))
        (void)state_del(a->t, a->index, DEPLOYMENTS, id);
}

static void
reap_job(struct apply *a, const struct job_ref *ref)
{
    const struct job *j = state_job(a->t, a->tmp, ref->namespace, ref->id);

    if (j != NULL && fsm_job_may_go(a->t, j))
        entry_remove_job(a, j);
}

int
intent_reap(struct apply *a, const struct intent_reap *in)
{
    for (size_t i = 0; i < in->allocs.n; i++)
        reap_alloc(a, in->allocs.v[i]);
    for (size_t i = 0; i < in->evals.n; i++)
        reap_eval(a, in->evals.v[i]);
    for (size_t i = 0; i < in->deployments.n; i++)
        reap_deployment(a, in->deployments.v[i]);
    for (size_t i = 0; i < in->jobs.n; i++)
        reap_job(a, in->jobs.v[i]);
    for (size_t i = 0; i < in->nodes.n; i++)
        entry_reap_node(a, in->nodes.v[i], in->down_before);
    entry_reap_tokens(a, in);
    return 0;
}
