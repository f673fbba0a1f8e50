/* SPDX-License-Identifier: Apache-2.0
 *
 * One attempt at one evaluation (see sched.h).
 */
#include "server/sched/sched.h"

#include <stdlib.h>
#include <string.h>

#include "api/away.h"
#include "api/eval.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/sched/alloc/reschedule.h"
#include "server/sched/away.h"
#include "server/sched/sched_int.h"

int
sched_attempts(const char *type)
{
    return str_eq(type, JOB_BATCH) ? SCHED_ATTEMPTS_BATCH : SCHED_ATTEMPTS_SERVICE;
}

static bool
is_system(const char *type)
{
    return str_eq(type, JOB_SYSTEM) || str_eq(type, JOB_SYSBATCH);
}

static bool
may_stay(void *arg, const struct task_group *tg, const char *node_id)
{
    struct attempt *t = arg;

    return select_may_stay(t->select, tg, node_id);
}

static int
later_cmp(const void *pa, const void *pb)
{
    const struct recon_later *a = pa, *b = pb;
    int c = strcmp(a->trigger, b->trigger);

    if (c != 0 || a->at != b->at)
        return c != 0 ? c : a->at < b->at ? -1 : 1;
    return strcmp(a->alloc->id, b->alloc->id);
}

static struct evaluation *
followup_new(struct attempt *t, const struct recon_later *l)
{
    char id[UUID_TEXT];
    struct eval_args x = {.id = mem_strdup(t->out, rng_uuid(t->in->rng, id)),
                          .after = t->in->eval,
                          .trigger = l->trigger};
    struct evaluation *e = eval_new(t->out, &x);

    e->job_modify_index = t->job != NULL ? t->job->modify_index : 0;
    e->status_description = str_eq(l->trigger, TRIGGER_MAX_DISCONNECT)
                                ? "created for disconnected allocations"
                                : "created for delayed rescheduling";
    list_add(t->out, t->out->followups, e);
    return e;
}

/* One delayed evaluation of each kind per window of 5 s. Every mark gets the id of its own. What
 * expires has expired when the last of the window has. */
static void
followups_make(struct attempt *t, struct recon *r)
{
    struct evaluation *cur = NULL;
    int64_t first = 0;

    if (r->laters.n > 0)
        qsort(r->laters.v, r->laters.n, sizeof(*r->laters.v), later_cmp);
    for (size_t i = 0; i < r->laters.n; i++) {
        const struct recon_later *l = &r->laters.v[i];
        if (cur == NULL || !str_eq(cur->triggered_by, l->trigger) ||
            l->at - first > RESCHEDULE_BATCH_WINDOW) {
            cur = followup_new(t, l);
            cur->wait_until = first = l->at;
        }
        if (str_eq(l->trigger, TRIGGER_MAX_DISCONNECT))
            cur->wait_until = l->at;
        if (l->mark != SIZE_MAX)
            r->marks.v[l->mark].eval_id = cur->id;
    }
}

static bool
has_expired(const struct attempt *t, const struct allocation *a, const struct task_group *then)
{
    return alloc_expired(a, then, away_node_status(t->in->view->nodes, a), t->in->now);
}

/* Holds back a placement of a fenced group while one of its name may run, as far as servers can
 * know (doc/fencing.md). What it was to replace is stopped all the same, and its end brings the
 * next evaluation. */
static bool
held_by_fence(struct attempt *t, const struct recon_place *p)
{
    if (!group_fenced(p->tg))
        return false;
    for (size_t i = 0; i < t->n_allocs; i++) {
        const struct allocation *a = t->allocs[i];
        const struct task_group *then = a->job != NULL ? job_group(a->job, a->task_group) : NULL;
        if (!str_eq(a->name, p->name) || alloc_client_terminal(a) || has_expired(t, a, then))
            continue;
        if (p->prev != NULL && p->stop_desc != NULL && !alloc_server_terminal(p->prev))
            (void)attempt_stop(t, p->prev, p->stop_desc, NULL);
        return true;
    }
    return false;
}

/* Evaluations that allocations name go when these come back: nobody else may wait for them. */
static bool
is_awaited(void *arg, const char *trigger, int64_t at)
{
    struct attempt *t = arg;
    struct sched_view *v = t->in->view;
    struct str_list ids = v->ops->awaited(v, t->out, t->in->eval, trigger, at);

    for (size_t i = 0; i < ids.n; i++) {
        bool named = false;
        for (size_t k = 0; k < t->n_allocs; k++)
            named |= str_eq(t->allocs[k]->followup_eval_id, ids.v[i]);
        if (!named)
            return true;
    }
    return false;
}

static bool
sched_stops(const struct recon *r, const struct allocation *a)
{
    bool any = alloc_server_terminal(a);

    for (size_t i = 0; i < r->stops.n && !any; i++)
        any = r->stops.v[i].alloc == a;
    for (size_t i = 0; i < r->places.n && !any; i++)
        any = r->places.v[i].prev == a && r->places.v[i].stop_desc != NULL;
    return any;
}

static bool
is_stopped_by(const struct recon *r, const struct allocation *a)
{
    for (size_t i = 0; i < r->stops.n; i++)
        if (r->stops.v[i].alloc == a)
            return true;
    return false;
}

/* A silent allocation that is not wanted any more holds its fenced name until its time is over:
 * somebody looks then, and it is lost. What its silence was to bring went when it was stopped. */
static void
look_when_free(struct attempt *t, struct recon *r)
{
    for (size_t i = 0; i < t->n_allocs; i++) {
        const struct allocation *a = t->allocs[i];
        const struct task_group *then = a->job != NULL ? job_group(a->job, a->task_group) : NULL;
        int64_t at = alloc_recorded(a, ALLOC_UNKNOWN) + group_lost_after(then);
        if (!group_fenced(then) || !str_eq(a->client_status, ALLOC_UNKNOWN) ||
            !alloc_was_unknown(a) || !sched_stops(r, a))
            continue;
        if (has_expired(t, a, then)) {
            if (!alloc_server_terminal(a) || is_stopped_by(r, a))
                continue;
            mem_resize(r, r->stops.v, struct recon_stop, r->stops.n + 1);
            r->stops.v[r->stops.n++] = (struct recon_stop){.alloc = a, .client_status = ALLOC_LOST};
            continue;
        }
        if (at <= t->in->now || is_awaited(t, TRIGGER_ALLOC_RESCHEDULE, at))
            continue; /* its node is heard, and ends or begins its time */
        mem_resize(r, r->laters.v, struct recon_later, r->laters.n + 1);
        r->laters.v[r->laters.n++] =
            (struct recon_later){a, TRIGGER_ALLOC_RESCHEDULE, at, SIZE_MAX};
    }
}

/* Service and batch: reconcile, then place. */
static void
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
        .is_awaited = is_awaited,
        .arg = t,
    };
    struct recon *r = reconcile(t->out, &in);
    look_when_free(t, r);
    followups_make(t, r);
    const struct deployment *d = r->made != NULL ? r->made : in.latest;

    t->deployment = r->deployment;
    t->out->deployment_id = d != NULL ? d->id : NULL;
    t->plan->deployment = r->made;
    t->plan->deployment_updates = r->status;

    for (size_t i = 0; i < r->stops.n; i++) {
        const struct recon_stop *s = &r->stops.v[i];
        struct allocation *row = attempt_stop(t, s->alloc, s->desc, s->client_status);
        row->next_allocation = s->stays != NULL ? s->stays->id : NULL;
        /* it holds its resources until the client confirms the stop; only this very plan may give
         * them to somebody else */
        if (t->select != NULL)
            select_stop(t->select, s->alloc);
    }
    for (size_t i = 0; i < r->updates.n; i++)
        attempt_update(t, r->updates.v[i].alloc, r->updates.v[i].back);
    for (size_t i = 0; i < r->marks.n; i++)
        attempt_mark(t, r->marks.v[i].alloc, r->marks.v[i].eval_id, r->marks.v[i].client_status);
    for (size_t i = 0; i < r->places.n; i++)
        if (r->places.v[i].job != NULL)
            select_older(t->select, r->places.v[i].job, r->places.v[i].tg);
    /* replacements first: they free what they replace */
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->places.n; i++)
            if ((r->places.v[i].stop_desc != NULL) == (pass == 0) &&
                !held_by_fence(t, &r->places.v[i]))
                attempt_place(t, &r->places.v[i], NULL);
    t->out->annotations = mem_new(t->out, struct plan_annotations);
    t->out->annotations->desired_tg_updates = r->desired;
}

static struct plan *
plan_new(struct attempt *t)
{
    struct plan *p = mem_new(t->out, struct plan);

    p->eval_id = t->in->eval->id;
    p->priority = t->in->eval->priority;
    p->all_at_once = t->job ? t->job->all_at_once : false;
    p->job = (struct job *)(uintptr_t)t->job;
    p->snapshot_index = t->in->view->index;
    return p;
}

struct sched_out *
sched_attempt(const void *ctx, const struct sched_in *in)
{
    struct sched_out *out = mem_new(ctx, struct sched_out);
    struct sched_view *v = in->view;
    const char *ns = str_or(in->eval->namespace, NS_DEFAULT);
    struct attempt t = {.in = in, .out = out};

    if (v->quota != NULL)
        t.room = *v->quota;

    t.job = in->job ? in->job : v->ops->job(v, ns, in->eval->job_id);
    t.allocs = v->ops->allocs_by_job(v, ns, in->eval->job_id, &t.n_allocs);
    t.plan = plan_new(&t);
    if (t.job != NULL) {
        t.select = select_new(out, v, t.job, t.allocs, t.n_allocs, in->rng);
        for (size_t i = 0; i < t.job->task_groups.n; i++)
            map_put(out, out->queued, t.job->task_groups.v[i]->name)->v = 0;
    }
    if (is_system(t.job ? t.job->type : in->eval->type))
        system_attempt(&t);
    else
        generic_attempt(&t);
    if (t.plan->node_update.n + t.plan->node_allocation.n + t.plan->deployment_updates.n > 0 ||
        t.plan->deployment != NULL)
        out->plan = t.plan;
    for (size_t i = 0; out->annotations && i < t.preempted.n; i++) {
        __auto_type du = map_get(out->annotations->desired_tg_updates, t.preempted.v[i].k);
        if (du != NULL && du->v != NULL)
            du->v->preemptions = (uint64_t)t.preempted.v[i].v;
    }
    if (out->annotations)
        out->annotations->preempted_allocs = t.preempted_allocs;
    t.plan->annotations = out->annotations;
    out->more = t.select != NULL && evict_spent(t.select);
    return out;
}
