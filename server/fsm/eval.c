/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: evaluations that somebody deletes, in an emergency and while none is handed
 * out.
 */
#include "server/fsm/fsm_int.h"

/* Allocations are collected with their evaluation or with their job: one that has some stays as
 * long as its job is wanted. */
static bool
may_go(struct apply *a, const struct evaluation *ev)
{
    const struct job *j = entry_job(a, ev->namespace, ev->job_id);
    if (j == NULL || j->stop || str_eq(j->status, JOB_STATUS_DEAD))
        return true;
    struct state_iter *it = state_allocs_by_eval(a->t, a->tmp, ev->id);
    bool any = state_next(it, a->tmp) != NULL;
    if (any)
        state_iter_end(it);
    return !any;
}

static int
eval_judge(struct apply *a, const struct intent_eval_delete *in, struct evaluation_list *ret)
{
    for (size_t i = 0; i < in->eval_ids.n; i++) {
        const char *id = str_or(in->eval_ids.v[i], "");
        struct evaluation *ev = state_eval(a->t, a->tmp, id);
        bool go = ev != NULL && may_go(a, ev);
        if (go)
            list_add(a->tmp, *ret, ev);
        else if (in->skip)
            continue;
        else if (ev == NULL)
            return entry_refuse(a, -ERR_NOT_FOUND, "eval not found: \"%.64s\"", id);
        else
            return entry_refuse(
                a, -ERR_CONFLICT,
                "eval %s is not safe to delete: its job \"%s\" is not stopped, and has "
                "allocations that it made",
                ev->id, ev->job_id);
    }
    return 0;
}

int
intent_eval_delete(struct apply *a, const struct intent_eval_delete *in)
{
    struct evaluation_list gone = {NULL, 0};
    if (!state_scheduler_config(a->t, a->tmp)->pause_eval_broker)
        return entry_refuse(
            a, -ERR_CONFLICT,
            "eval broker is enabled; eval broker must be paused to delete evals: operator "
            "scheduler set-config -pause-eval-broker=true");
    int rc = eval_judge(a, in, &gone);
    for (size_t i = 0; rc == 0 && i < gone.n; i++) {
        const struct evaluation *ev = gone.v[i];
        if (state_del(a->t, a->index, EVALS, ev->id)) /* else it was named twice */
            entry_touch_job(a, ev->namespace, ev->job_id);
    }
    return rc;
}
