/* SPDX-License-Identifier: Apache-2.0
 *
 * One attempt at one evaluation (see sched.h).
 */
#include "server/sched/sched.h"

#include <stdlib.h>
#include <string.h>

#include "api/eval.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/limits.h"
#include "server/sched/reschedule.h"
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

/* A plan carries what changes of an allocation, not the allocation. */
static struct allocation *
stop_row(const void *ctx, const struct allocation *a)
{
    struct allocation *s = mem_new(ctx, struct allocation);

    s->id = a->id;
    s->namespace = a->namespace;
    s->job_id = a->job_id;
    s->node_id = a->node_id;
    return s;
}

/* The client status that the plan is about: if it is another one by then, what follows from it is void. */
static void
note_seen(const void *ctx, struct allocation *row, const struct allocation *a)
{
    struct alloc_state *seen = mem_new(ctx, struct alloc_state);

    *seen = (struct alloc_state){.field = "ClientStatus", .value = a->client_status};
    row->alloc_states = (struct alloc_state_list){NULL, 0};
    list_add(ctx, row->alloc_states, seen);
}

void
attempt_stop(struct attempt *t, const struct allocation *a, const char *desc,
             const char *client_status)
{
    struct allocation *s = stop_row(t->out, a);

    s->desired_status = ALLOC_DESIRED_STOP;
    s->desired_description = desc;
    s->client_status = client_status;
    if (client_status != NULL)
        note_seen(t->out, s, a);
    list_add(t->plan, t->plan->node_update, s);
}

/* It makes room for `by`. */
static void
attempt_preempt(struct attempt *t, const struct allocation *a, const struct allocation *by)
{
    struct allocation *s = stop_row(t->out, a);

    s->desired_status = ALLOC_DESIRED_EVICT;
    s->desired_description = mem_printf(t->out, "Preempted by alloc ID %s", by->id);
    s->preempted_by_allocation = by->id;
    list_add(t->plan, t->plan->node_update, s);
    map_put(t->out, t->preempted, by->task_group)->v++;
    struct alloc_list_stub *stub = mem_new(t->out, struct alloc_list_stub);
    *stub = (struct alloc_list_stub){.id = a->id,
                                     .name = a->name,
                                     .namespace = a->namespace,
                                     .eval_id = a->eval_id,
                                     .node_id = a->node_id,
                                     .node_name = a->node_name,
                                     .job_id = a->job_id,
                                     .task_group = a->task_group,
                                     .desired_status = s->desired_status,
                                     .desired_description = s->desired_description,
                                     .client_status = a->client_status,
                                     .preempted_by_allocation = by->id};
    list_add(t->out, t->preempted_allocs, stub);
}

void
attempt_mark(struct attempt *t, const struct allocation *a, const char *followup, const char *client_status)
{
    struct allocation *s = stop_row(t->out, a);

    s->followup_eval_id = followup;
    s->client_status = client_status;
    if (client_status != NULL) {
        s->desired_description = DESC_SILENT;
        note_seen(t->out, s, a);
    }
    list_add(t->plan, t->plan->node_update, s);
}

void
attempt_update(struct attempt *t, const struct allocation *a, bool back)
{
    struct allocation *u = mem_new(t->out, struct allocation);

    *u = *a;
    u->job = NULL;
    u->eval_id = t->in->eval->id;
    u->alloc_states = (struct alloc_state_list){NULL, 0};
    if (back)
        note_seen(t->out, u, a);
    const char *of = t->deployment != NULL ? t->deployment->id : NULL;
    if (!str_eq(u->deployment_id, of) &&
        recon_change(a->job, t->job, job_group(t->job, a->task_group)) != CHANGE_NONE) {
        u->deployment_id = of;
        u->deployment_status = NULL;
    }
    list_add(t->plan, t->plan->node_allocation, u);
}

void
attempt_note(struct attempt *t, const struct task_group *tg, struct alloc_metric *m)
{
    t->metrics_bytes += metric_bytes(m);
    map_put(t->out, t->out->failed, tg->name)->v =
        t->metrics_bytes <= METRICS_BYTES_MAX ? m : metric_numbers(t->out, m);
}

static void
attempt_failed(struct attempt *t, const struct task_group *tg, struct alloc_metric *m)
{
    __auto_type f = map_put(t->out, t->out->failed, tg->name);

    map_put(t->out, t->out->queued, tg->name)->v++;
    t->out->waits = true;
    if (f->v != NULL) {
        f->v->coalesced_failures++;
        return;
    }
    attempt_note(t, tg, m);
    if (!select_classes(t->select, t->out, tg, &t->out->class_eligibility))
        t->out->escaped = true;
}

/* Nodes where it, or what it replaced, failed before. */
static void
penalties(const void *ctx, const struct allocation *prev, struct select_req *req)
{
    const struct reschedule_tracker *tr = prev->reschedule_tracker;
    size_t n = tr ? tr->events.n : 0;
    const char **v = mem_array(ctx, const char *, n + 1);

    v[0] = prev->node_id;
    for (size_t i = 0; i < n; i++)
        v[i + 1] = tr->events.v[i]->prev_node_id;
    req->penalty = v;
    req->n_penalty = n + 1;
}

/* What moves because it was told to did not fail: its attempts start anew. */
static bool
migrates(const struct allocation *prev)
{
    return prev->desired_transition != NULL && prev->desired_transition->migrate.set &&
           prev->desired_transition->migrate.v;
}

static struct allocation *
alloc_new(struct attempt *t, const struct recon_place *p, const struct select_got *got)
{
    struct allocation *a = mem_new(t->out, struct allocation);
    char id[UUID_TEXT];

    a->id = mem_strdup(t->out, rng_uuid(t->in->rng, id));
    a->namespace = t->job->namespace;
    a->eval_id = t->in->eval->id;
    a->name = p->name;
    a->node_id = got->node->id;
    a->node_name = got->node->name;
    a->job_id = t->job->id;
    a->task_group = p->tg->name;
    a->allocated_resources = got->resources;
    a->metrics = got->metrics;
    a->desired_status = ALLOC_DESIRED_RUN;
    a->client_status = ALLOC_PENDING;
    a->create_time = a->modify_time = t->in->now;
    if (t->deployment != NULL && deployment_active(t->deployment)) {
        a->deployment_id = t->deployment->id;
        if (p->canary) {
            a->deployment_status = mem_new(t->out, struct alloc_deployment_status);
            a->deployment_status->canary = true;
        }
    }
    if (p->prev != NULL) {
        a->previous_allocation = p->prev->id;
        if (p->reschedule)
            a->reschedule_tracker = reschedule_tracker_next(t->out, p->tg->reschedule_policy,
                                                            p->prev, t->in->now);
        else if (p->prev->reschedule_tracker != NULL && !migrates(p->prev))
            a->reschedule_tracker = p->prev->reschedule_tracker;
    }
    return a;
}

bool
attempt_place(struct attempt *t, const struct recon_place *p, const char *only_node)
{
    struct select_req req = {.tg = p->tg, .only = only_node};
    struct select_got got;
    bool staged = p->prev != NULL && p->stop_desc != NULL;
    const struct ephemeral_disk *disk = p->tg->ephemeral_disk;
    __auto_type failed = map_get(t->out->failed, p->tg->name);

    /* what did not fit once does not fit again: only the count grows */
    if (failed != NULL && only_node == NULL) {
        attempt_failed(t, p->tg, NULL);
        return false;
    }
    if (p->prev != NULL && p->reschedule)
        penalties(t->out, p->prev, &req);
    if (p->prev != NULL && disk != NULL && (disk->sticky || disk->migrate))
        req.preferred = p->prev->node_id;
    if (staged)
        select_stop(t->select, p->prev);
    select_place(t->select, &req, &got);
    if (got.node == NULL) {
        if (staged)
            select_unstop(t->select, p->prev);
        attempt_failed(t, p->tg, got.metrics);
        return false;
    }
    if (staged)
        attempt_stop(t, p->prev, p->stop_desc, NULL);
    struct allocation *a = alloc_new(t, p, &got);
    for (size_t i = 0; i < got.n_victims; i++) {
        attempt_preempt(t, got.victims[i], a);
        list_add(t->out, a->preempted_allocations, got.victims[i]->id);
    }
    select_book(t->select, a);
    list_add(t->plan, t->plan->node_allocation, a);
    return true;
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
    struct eval_args x = {
        .id = mem_strdup(t->out, rng_uuid(t->in->rng, id)), .after = t->in->eval, .trigger = l->trigger};
    struct evaluation *e = eval_new(t->out, &x);

    e->job_modify_index = t->job->modify_index;
    e->status_description = str_eq(l->trigger, TRIGGER_MAX_DISCONNECT)
                                ? "created for disconnected allocations"
                                : "created for delayed rescheduling";
    list_add(t->out, t->out->followups, e);
    return e;
}

/* One delayed evaluation of each kind per window of 5 s. Every mark gets the id of its own. What expires
 * has expired when the last of the window has. */
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
        .arg = t,
    };
    struct recon *r = reconcile(t->out, &in);
    followups_make(t, r);
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
        attempt_update(t, r->updates.v[i].alloc, r->updates.v[i].back);
    for (size_t i = 0; i < r->marks.n; i++)
        attempt_mark(t, r->marks.v[i].alloc, r->marks.v[i].eval_id, r->marks.v[i].client_status);
    /* replacements first: they free what they replace */
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->places.n; i++)
            if ((r->places.v[i].stop_desc != NULL) == (pass == 0))
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
