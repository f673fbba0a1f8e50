/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: children of periodic and parameterized jobs. A child is made of its parent as
 * that is when the entry is applied, so an entry is small, and whoever asked twice gets one child:
 * a launch is for a time behind the last one, a dispatch for a token that no child bears.
 */
#include <inttypes.h>

#include "server/fsm/fsm_int.h"

/* The parent becomes the child. */
static void
child_derive(struct apply *a, struct job *j, const char *id)
{
    j->parent_id = j->id;
    j->id = j->name = id;
    j->status = j->status_description = NULL;
    j->stable = false;
    j->version_tag = NULL;
    j->submit_time = a->now;
}

/* One that is there already is only evaluated again. The entry owns parts of `child`. */
static void
put_child(struct apply *a, const struct job *child, const char *eval_id, const char *trigger)
{
    struct job *old = state_job(a->t, a->ctx, child->namespace, child->id);
    struct job *j = old != NULL ? old : codec_clone(a->ctx, &type_job, child);
    if (old == NULL)
        entry_put_job(a, j, NULL);
    else
        a->res->job = j;
    entry_touch_job(a, j->namespace, j->id);
    if (job_is_parent(j)) /* a dispatch of a periodic job: it has children of its own */
        return;
    struct str_list ids = {.v = &eval_id, .n = 1};
    a->eval_ids = &ids;
    entry_put_eval(a, entry_new_eval(a, j, trigger));
    a->eval_ids = NULL;
}

/* Says whether a child is not terminal; the parent's own summary says it. */
static bool
child_lives(struct apply *a, const struct job *j)
{
    const struct job_summary *s = state_summary(a->t, a->tmp, j->namespace, j->id);
    return s != NULL && s->children != NULL && s->children->pending + s->children->running > 0;
}

int
intent_periodic_launch(struct apply *a, const struct intent_periodic_launch *in)
{
    struct job *parent = state_job(a->t, a->ctx, in->namespace, in->job_id);
    if (parent == NULL || !job_periodic_active(parent))
        return in->force ? entry_refuse(a, -ERR_NOT_FOUND, "job \"%s\" is not periodic any more",
                                        str_or(in->job_id, ""))
                         : 0;
    const struct periodic_launch *last =
        state_periodic_launch(a->t, a->tmp, parent->namespace, parent->id);
    if (!in->force && last != NULL && last->launch >= in->launch)
        return 0;
    bool skip = !in->force && parent->periodic->prohibit_overlap && child_lives(a, parent);
    entry_put_launch(a, parent, in->launch);
    if (skip)
        return 0;
    child_derive(a, parent,
                 mem_printf(a->ctx, "%s" PERIODIC_INFIX "%" PRId64, parent->id, in->launch));
    parent->periodic = NULL;
    put_child(a, parent, in->eval_id, TRIGGER_PERIODIC);
    return 0;
}

static struct job *
by_token(struct apply *a, const struct job *parent, const char *token)
{
    struct state_iter *it = state_children(a->t, a->tmp, parent->namespace, parent->id, token);
    for (struct job *j; (j = state_next(it, a->ctx)) != NULL;)
        if (str_eq(j->dispatch_idempotency_token, token)) {
            state_iter_end(it);
            return j;
        }
    return NULL;
}

int
intent_job_dispatch(struct apply *a, const struct intent_job_dispatch *in)
{
    struct job *parent = state_job(a->t, a->ctx, in->namespace, in->job_id);
    if (parent == NULL)
        return entry_refuse(a, -ERR_INTERNAL, "parameterized job not found");
    if (!job_parameterized(parent))
        return entry_refuse(a, -ERR_INTERNAL, "Specified job \"%s\" is not a parameterized job",
                            parent->id);
    if (parent->stop)
        return entry_refuse(a, -ERR_INTERNAL, "Specified job \"%s\" is stopped", parent->id);
    struct job *same =
        str_empty(in->idempotency_token) ? NULL : by_token(a, parent, in->idempotency_token);
    if (same != NULL) {
        a->res->job = same;
        return 0;
    }
    child_derive(a, parent, in->child_id);
    parent->dispatched = true;
    parent->dispatch_idempotency_token = in->idempotency_token;
    parent->priority = (struct opt_i64){true, in->priority};
    parent->payload = in->payload;
    for (size_t i = 0; i < in->meta.n; i++)
        str_map_set(parent, &parent->meta, in->meta.v[i].k, in->meta.v[i].v);
    put_child(a, parent, in->eval_id, TRIGGER_JOB_REGISTER);
    return 0;
}
