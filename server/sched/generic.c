/* SPDX-License-Identifier: Apache-2.0
 *
 * Service and batch: reconcile, then place.
 */
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/sched_int.h"

static bool
may_stay(void *arg, const struct task_group *tg, const char *node_id)
{
    struct attempt *t = arg;

    return select_may_stay(t->select, tg, node_id);
}

void
generic_attempt(struct attempt *t)
{
    struct recon_in in = {
        .job = t->job,
        .job_id = t->in->eval->job_id,
        .eval = t->in->eval,
        .allocs = t->allocs,
        .n_allocs = t->n_allocs,
        .nodes = t->in->view->nodes,
        .now = t->in->now,
        .rng = t->in->rng,
        .latest = t->in->view->ops->latest_deployment(
            t->in->view, str_or(t->in->eval->namespace, NS_DEFAULT), t->in->eval->job_id),
        .may_stay = may_stay,
        .arg = t,
    };
    struct recon *r = reconcile(t->out, &in);
    const struct deployment *d = r->made != NULL ? r->made : in.latest;

    t->deployment = r->deployment;
    t->out->deployment_id = d != NULL ? d->id : NULL;
    t->plan->deployment = r->made;
    t->plan->deployment_updates = r->status;

    for (size_t i = 0; i < r->stops.n; i++) {
        const struct recon_stop *s = &r->stops.v[i];
        attempt_stop(t, s->alloc, s->desc, s->client_status);
        /* it holds its resources until the client confirms the stop; only this very plan may give
         * them to somebody else */
        if (t->select != NULL)
            select_stop(t->select, s->alloc);
    }
    for (size_t i = 0; i < r->updates.n; i++)
        attempt_update(t, r->updates.v[i].alloc);
    for (size_t i = 0; i < r->marks.n; i++)
        attempt_mark(t, r->marks.v[i].alloc, r->marks.v[i].eval_id);
    /* replacements first: they free what they replace */
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->places.n; i++)
            if ((r->places.v[i].stop_desc != NULL) == (pass == 0))
                attempt_place(t, &r->places.v[i], NULL);
    t->out->followups = r->followups;
    t->out->annotations = mem_new(t->out, struct plan_annotations);
    t->out->annotations->desired_tg_updates = r->desired;
}
