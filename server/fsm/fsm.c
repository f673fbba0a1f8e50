/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: dispatch, and what intents have in common: evaluations, summaries, job status.
 */
#include "server/fsm/fsm.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "api/away.h"
#include "api/eval.h"
#include "server/fsm/fsm_int.h"

int
apply_refuse(struct apply *a, int code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    ASSERT(code < 0 && !a->res->changed && a->res->evals.n == 0 && a->res->allocs.n == 0);
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(&a->res->err, code, "%s", text);
}

size_t
apply_place_of(struct apply *a, struct place_of **all, const char *key, size_t next)
{
    struct place_of *p;
    HASH_FIND_STR(*all, key, p);
    ASSERT(p == NULL || p->at <= next);
    if (p != NULL)
        return p->at;
    p = mem_new(a->tmp, struct place_of);
    *p = (struct place_of){.key = key, .at = next};
    HASH_ADD_KEYPTR(hh, *all, p->key, strlen(p->key), p);
    return next;
}

/* --- evaluations --- */

/* Apply makes no random ids: the leader stamps some; further ones are derived from the first. */
static const char *
next_eval_id(struct apply *a)
{
    size_t i = a->n_eval_ids++;
    if (a->eval_ids != NULL && i < a->eval_ids->n)
        return mem_strdup(a->ctx, a->eval_ids->v[i]);
    const char *base = a->eval_ids != NULL && a->eval_ids->n > 0 ? a->eval_ids->v[0] : "";
    XXH128_hash_t h = XXH3_128bits_withSeed(base, strlen(base), a->index * 1000003U + i);
    return mem_printf(a->ctx, "%08x-%04x-8%03x-8%03x-%012llx", (unsigned)(h.low64 >> 32),
                      (unsigned)(h.low64 >> 16) & 0xffffU, (unsigned)h.low64 & 0xfffU,
                      (unsigned)(h.high64 >> 52) & 0xfffU,
                      (unsigned long long)(h.high64 & 0xffffffffffffULL));
}

struct evaluation *
apply_new_eval(struct apply *a, const struct job *j, const char *trigger)
{
    struct eval_args x = {.id = next_eval_id(a), .job = j, .trigger = trigger, .now = a->now};
    return eval_new(a->ctx, &x);
}

static void
store_eval(struct apply *a, struct evaluation *ev)
{
    const struct evaluation *old = state_eval(a->t, a->tmp, ev->id);
    ev->create_index = old != NULL ? old->create_index : a->index;
    ev->modify_index = a->index;
    if (old != NULL)
        ev->create_time = old->create_time;
    if (ev->create_time == 0)
        ev->create_time = a->now;
    if (old != NULL || ev->modify_time == 0)
        ev->modify_time = a->now;
    ASSERT(ev->create_index != 0 && ev->create_index <= ev->modify_index);
    state_put(a->t, a->index, EVALS, ev);
    a->res->changed = true;
    size_t at = apply_place_of(a, &a->at_evals, str_or(ev->id, ""), a->res->evals.n);
    if (at < a->res->evals.n)
        a->res->evals.v[at] = ev;
    else
        list_add(a->ctx, a->res->evals, ev);
}

void
apply_cancel_eval(struct apply *a, const char *id, const char *why)
{
    struct evaluation *ev = state_eval(a->t, a->ctx, id);
    if (ev == NULL || (!str_eq(ev->status, EVAL_PENDING) && !str_eq(ev->status, EVAL_BLOCKED)))
        return;
    ev->status = EVAL_CANCELED;
    ev->status_description = why;
    store_eval(a, ev);
}

static void
cancel_blocked(struct apply *a, const struct evaluation *by)
{
    struct str_list ids = {NULL, 0};
    struct state_iter *it = state_blocked_evals(a->t, a->tmp, by->namespace, by->job_id);
    for (struct evaluation *ev; (ev = state_next(it, a->tmp)) != NULL;) {
        if (!str_eq(ev->id, by->id))
            list_add(a->tmp, ids, ev->id);
    }
    const char *why = mem_printf(a->ctx, "evaluation \"%s\" successful", by->id);
    for (size_t i = 0; i < ids.n; i++)
        apply_cancel_eval(a, ids.v[i], why);
}

/* The group's counters, made when missing; NULL when the job has no summary. */
static struct task_group_summary *
summary_of(struct apply *a, const char *ns, const char *id, const char *group)
{
    struct touched_job *j = apply_touch_job(a, ns, id);
    if (j->summary == NULL)
        j->summary = state_summary(a->t, a->tmp, ns, id);
    if (j->summary == NULL)
        return NULL;
    __auto_type row = map_put(a->tmp, j->summary->summary, group);
    if (row->v == NULL)
        row->v = type_new(a->tmp, &type_task_group_summary);
    return row->v;
}

static void
count_queued(struct apply *a, const struct evaluation *ev)
{
    for (size_t i = 0; i < ev->queued_allocations.n; i++) {
        struct task_group_summary *s =
            summary_of(a, ev->namespace, ev->job_id, ev->queued_allocations.v[i].k);
        if (s == NULL || s->queued == ev->queued_allocations.v[i].v)
            continue;
        s->queued = ev->queued_allocations.v[i].v;
        apply_touch_job(a, ev->namespace, ev->job_id)->summary_changed = true;
    }
}

void
apply_put_eval(struct apply *a, const struct evaluation *in)
{
    struct evaluation *ev = codec_clone(a->ctx, &type_evaluation, in);
    store_eval(a, ev);
    apply_touch_job(a, ev->namespace, ev->job_id);
    if (str_eq(ev->status, EVAL_COMPLETE) && str_empty(ev->blocked_eval))
        cancel_blocked(a, ev);
    count_queued(a, ev);
}

/* --- jobs touched by an entry --- */

const struct job *
apply_job(struct apply *a, const char *ns, const char *id)
{
    if (a->last_id == NULL || !str_eq(a->last_id, id) || !str_eq(a->last_ns, ns)) {
        a->last_job = state_job(a->t, a->tmp, ns, id);
        a->last_ns = mem_strdup(a->tmp, ns);
        a->last_id = mem_strdup(a->tmp, str_or(id, ""));
    }
    return a->last_job;
}

struct touched_job *
apply_touch_job(struct apply *a, const char *ns, const char *id)
{
    ASSERT(a->n_jobs == 0 || a->last_touched < a->n_jobs);
    struct touched_job *j = a->n_jobs > 0 ? &a->jobs[a->last_touched] : NULL;
    if (j != NULL && str_eq(j->id, id) && str_eq(j->ns, ns))
        return j;
    const char *key = mem_printf(a->tmp, "%s\n%s", str_or(ns, ""), str_or(id, ""));
    a->last_touched = apply_place_of(a, &a->at_jobs, key, a->n_jobs);
    if (a->last_touched < a->n_jobs)
        return &a->jobs[a->last_touched];
    if (a->n_jobs == a->cap_jobs) {
        a->cap_jobs = a->cap_jobs == 0 ? 4 : a->cap_jobs * 2;
        mem_resize(a->tmp, a->jobs, struct touched_job, a->cap_jobs);
    }
    j = &a->jobs[a->n_jobs++];
    *j = (struct touched_job){.ns = mem_strdup(a->tmp, ns), .id = mem_strdup(a->tmp, id)};
    return j;
}

static int64_t *
counter(struct task_group_summary *s, const char *client_status)
{
    if (str_eq(client_status, ALLOC_PENDING))
        return &s->starting;
    if (str_eq(client_status, ALLOC_RUNNING))
        return &s->running;
    if (str_eq(client_status, ALLOC_COMPLETE))
        return &s->complete;
    if (str_eq(client_status, ALLOC_FAILED))
        return &s->failed;
    if (str_eq(client_status, ALLOC_LOST))
        return &s->lost;
    return str_eq(client_status, ALLOC_UNKNOWN) ? &s->unknown : NULL;
}

static void
count_alloc(struct apply *a, const struct allocation *al, const struct allocation *old)
{
    if (old != NULL && str_eq(old->client_status, al->client_status))
        return;
    struct task_group_summary *s = summary_of(a, al->namespace, al->job_id, al->task_group);
    if (s == NULL)
        return;
    /* What completed or failed did so for ever, even when the client changes its mind. */
    int64_t *from = old != NULL ? counter(s, old->client_status) : &s->queued;
    if (from != NULL && from != &s->complete && from != &s->failed && *from > 0)
        --*from;
    int64_t *to = counter(s, al->client_status);
    if (to != NULL)
        ++*to;
    apply_touch_job(a, al->namespace, al->job_id)->summary_changed = true;
}

/* A delayed evaluation that nobody needs any more; not the one whose plan this is. */
static void
drop_followup(struct apply *a, const struct evaluation *ev)
{
    if (ev != NULL && str_eq(ev->status, EVAL_PENDING) && ev->wait_until > a->now &&
        !str_eq(ev->id, a->plan_eval))
        apply_cancel_eval(a, ev->id, "the allocation is no longer unknown");
}

/* What was to be done about the silence of an allocation is not needed any more (S19), unless others of the
 * job wait for it. */
static void
drop_followups(struct apply *a, const struct allocation *al, const char *named)
{
    bool shared = false, silent = false;
    struct state_iter *it = state_allocs_by_job(a->t, a->tmp, al->namespace, al->job_id);
    state_iter_live_only(it);
    for (struct allocation *o; (o = state_next(it, a->tmp)) != NULL;) {
        shared |= !str_eq(o->id, al->id) && !str_empty(named) && str_eq(o->followup_eval_id, named);
        silent |= alloc_silent(o);
    }
    if (!str_empty(named) && !shared)
        drop_followup(a, state_eval(a->t, a->tmp, named));
    if (silent)
        return;
    struct evaluation_list all = {NULL, 0};
    it = state_evals_by_job(a->t, a->tmp, al->namespace, al->job_id);
    for (struct evaluation *ev; (ev = state_next(it, a->tmp)) != NULL;)
        if (str_eq(ev->triggered_by, TRIGGER_MAX_DISCONNECT))
            list_add(a->tmp, all, ev);
    for (size_t i = 0; i < all.n; i++)
        drop_followup(a, all.v[i]);
}

void
apply_put_alloc(struct apply *a, struct allocation *al, const struct allocation *old, uint64_t jmi)
{
    ASSERT(al->job == NULL && jmi != 0 && (old == NULL || str_eq(old->id, al->id)));
    al->create_index = old != NULL ? old->create_index : a->index;
    al->modify_index = a->index;
    al->modify_time = a->now;
    ASSERT(al->create_index != 0 && al->create_index <= al->modify_index);
    apply_count_deployed(a, al, old);
    bool settled = old != NULL && alloc_silent(old) && !alloc_silent(al);
    const char *followup = settled ? TAKE(al->followup_eval_id) : NULL;
    state_put_alloc(a->t, a->index, al, jmi);
    a->res->changed = true;
    apply_touch_job(a, al->namespace, al->job_id);
    count_alloc(a, al, old);
    size_t at = apply_place_of(a, &a->at_allocs, al->id, a->res->allocs.n);
    if (at < a->res->allocs.n)
        a->res->allocs.v[at] = al;
    else
        list_add(a->ctx, a->res->allocs, al);
    if (settled)
        drop_followups(a, al, followup);
}

int64_t
apply_lost_after(struct apply *a, struct allocation *al)
{
    const struct task_group *tg = job_group(state_alloc_job(a->t, al), al->task_group);
    al->job = NULL;
    return group_lost_after(tg);
}

void
apply_append_state(struct apply *a, struct allocation *al, const char *value)
{
    struct alloc_state *s = type_new(al, &type_alloc_state);
    s->field = "ClientStatus";
    s->value = value;
    s->time = a->now;
    struct alloc_state_list l = {NULL, 0};
    for (size_t i = 0; i < al->alloc_states.n; i++)
        list_add(al, l, al->alloc_states.v[i]);
    list_add(al, l, s);
    al->alloc_states = l;
}

static const char *
job_status(struct apply *a, const struct job *j)
{
    if (str_eq(j->type, JOB_SYSTEM) || job_is_parent(j))
        return j->stop ? JOB_STATUS_DEAD : JOB_STATUS_RUNNING;
    if (state_has_live_allocs(a->t, j->namespace, j->id) ||
        state_has_active_deployment(a->t, j->namespace, j->id))
        return JOB_STATUS_RUNNING;
    if (!j->stop && state_has_open_evals(a->t, j->namespace, j->id))
        return JOB_STATUS_PENDING;
    bool over = j->stop || state_has_evals(a->t, j->namespace, j->id) ||
                state_has_allocs(a->t, j->namespace, j->id);
    return over ? JOB_STATUS_DEAD : JOB_STATUS_PENDING;
}

/* Status and summaries of everything touched; last. */
static void
finish(struct apply *a)
{
    apply_store_deployments(a);
    for (size_t i = 0; i < a->n_jobs; i++) {
        struct job *j = state_job(a->t, a->ctx, a->jobs[i].ns, a->jobs[i].id);
        if (j == NULL)
            continue;
        struct touched_job *tj = &a->jobs[i];
        ASSERT(j->modify_index <= a->index && (tj->summary == NULL || tj->summary->modify_index <= a->index));
        if (tj->summary != NULL && tj->summary_changed) {
            tj->summary->modify_index = a->index;
            state_put(a->t, a->index, SUMMARIES, tj->summary);
        }
        const char *status = job_status(a, j);
        apply_count_child(a, j, j->create_index == a->index ? NULL : j->status, status);
        if (!str_eq(j->status, status)) {
            j->status = status;
            j->modify_index = a->index;
            state_put(a->t, a->index, JOBS, j);
            if (a->res->job != NULL && str_eq(a->res->job->id, j->id))
                a->res->job = j;
        }
    }
}

/* --- the small intents --- */

/* What was made superfluous while it was worked on stays so, and nothing follows from it (S12, S19). */
static bool
is_canceled(struct apply *a, const char *id)
{
    const struct evaluation *ev = str_empty(id) ? NULL : state_eval(a->t, a->tmp, id);
    return ev != NULL && str_eq(ev->status, EVAL_CANCELED);
}

int
apply_eval_update(struct apply *a, const struct intent_eval_update *in)
{
    for (size_t i = 0; i < in->evals.n; i++)
        if (!is_canceled(a, in->evals.v[i]->id) && !is_canceled(a, in->evals.v[i]->previous_eval))
            apply_put_eval(a, in->evals.v[i]);
    return 0;
}

int
apply_reap(struct apply *a, const struct intent_reap *in)
{
    for (size_t i = 0; i < in->allocs.n; i++) {
        const struct allocation *al = state_alloc(a->t, a->tmp, in->allocs.v[i]);
        if (al == NULL || alloc_live(al))
            continue;
        state_del(a->t, a->index, ALLOCS, al->id);
        a->res->changed = true;
    }
    for (size_t i = 0; i < in->evals.n; i++) {
        state_del(a->t, a->index, EVALS, in->evals.v[i]);
        a->res->changed = true;
    }
    for (size_t i = 0; i < in->deployments.n; i++)
        a->res->changed |= apply_reap_deployment(a, in->deployments.v[i]);
    for (size_t i = 0; i < in->jobs.n; i++)
        apply_reap_job(a, in->jobs.v[i]);
    for (size_t i = 0; i < in->nodes.n; i++) {
        if (apply_reap_node(a, in->nodes.v[i], in->down_before))
            list_add(a->ctx, a->res->purged_nodes, mem_strdup(a->ctx, in->nodes.v[i]));
    }
    return 0;
}

int
apply_scheduler_config(struct apply *a, const struct scheduler_configuration *in)
{
    struct scheduler_configuration *c =
        codec_clone(a->tmp, &type_scheduler_configuration, in);
    const struct scheduler_configuration *old = state_scheduler_config(a->t, a->tmp);
    c->create_index = old->create_index != 0 ? old->create_index : a->index;
    c->modify_index = a->index;
    state_put(a->t, a->index, SCHEDULER_CONFIG, c);
    a->res->changed = true;
    return 0;
}

int
apply_scheduler_cas(struct apply *a, const struct intent_scheduler_cas *in)
{
    const struct scheduler_configuration *old = state_scheduler_config(a->t, a->tmp);
    return in->scheduler_config == NULL || old->modify_index != in->modify_index
               ? 0
               : apply_scheduler_config(a, in->scheduler_config);
}

int
apply_cluster_metadata(struct apply *a, const struct cluster_metadata *in)
{
    if (state_cluster(a->t, a->tmp) != NULL)
        return 0;
    struct cluster_metadata *m = codec_clone(a->tmp, &type_cluster_metadata, in);
    m->create_time = a->now;
    m->create_index = m->modify_index = a->index;
    state_put(a->t, a->index, CLUSTER, m);
    a->res->changed = true;
    return 0;
}

int
apply_server_gone(struct apply *a, const struct server_gone *in)
{
    struct cluster_metadata *m = state_cluster(a->t, a->tmp);
    if (m == NULL)
        return 0; /* one alone */
    __typeof__(m->gone) kept = {0};
    for (size_t i = m->gone.n < SERVERS_GONE_MAX ? 0 : 1; i < m->gone.n; i++)
        if (m->gone.v[i]->id != in->id)
            list_add(a->tmp, kept, m->gone.v[i]);
    list_add(a->tmp, kept, codec_clone(a->tmp, &type_server_gone, in));
    m->gone = kept;
    m->modify_index = a->index;
    state_put(a->t, a->index, CLUSTER, m);
    a->res->changed = true;
    return 0;
}

int
apply_noop(struct apply *a, const struct empty *in)
{
    (void)a;
    (void)in;
    return 0;
}

static int
dispatch(struct apply *a, const struct intent *in)
{
    switch ((enum intent_member)codec_member(&type_intent, in)) {
#define CASE(id, member) \
    case id:             \
        return apply_##member(a, in->member);
        INTENT_MEMBERS(CASE)
#undef CASE
    }
    ASSERT(false); /* who decodes an entry refuses it, in words */
}

/* Each intent is named, so that a new one is not let in on a full disk unseen: the compiler asks for it. */
enum intent_room
fsm_room(const struct intent *in)
{
    unsigned member = codec_member(&type_intent, in);

    ASSERT(member != 0); /* whoever proposes sets one */
    switch ((enum intent_member)member) {
    case INTENT_JOB_REGISTER:
    case INTENT_PERIODIC_LAUNCH:
    case INTENT_JOB_DISPATCH:
        return ROOM_ADDS;
    case INTENT_JOB_DEREGISTER:
        return in->job_deregister->purge ? ROOM_MAKES : ROOM_STOPS;
    case INTENT_PLAN_RESULT:
        return in->plan_result->placed.n == 0 ? ROOM_STOPS : ROOM_CHANGES;
    case INTENT_NODE_PURGE:
    case INTENT_REAP:
    case INTENT_EVAL_DELETE:
        return ROOM_MAKES;
    case INTENT_NODE_REGISTER:
    case INTENT_NODE_STATUS:
    case INTENT_NODE_ELIGIBILITY:
    case INTENT_NODE_DRAIN:
    case INTENT_NODE_DRAINED:
    case INTENT_NODE_EVALUATE:
    case INTENT_EVAL_UPDATE:
    case INTENT_ALLOC_UPDATE:
    case INTENT_ALLOC_TRANSITION:
    case INTENT_SCHEDULER_CONFIG:
    case INTENT_SCHEDULER_CAS:
    case INTENT_NOOP:
    case INTENT_DEPLOYMENT_UPDATE:
    case INTENT_DEPLOYMENT_PROMOTE:
    case INTENT_DEPLOYMENT_HEALTH:
    case INTENT_JOB_STABLE:
    case INTENT_JOB_TAG:
    case INTENT_CLUSTER_METADATA:
    case INTENT_SERVER_GONE:
        return ROOM_CHANGES;
    }
    return ROOM_CHANGES;
}

struct fsm_result *
fsm_refused(const void *ctx, uint64_t index, const struct err *why)
{
    struct fsm_result *res = mem_new(ctx, struct fsm_result);
    ASSERT(why->code < 0 && index > 0);
    res->index = index;
    res->err = *why;
    return res;
}

struct fsm_result *
fsm_apply(const void *ctx, struct state_txn *t, uint64_t index, const struct intent *in)
{
    auto_mem void *tmp = mem_ctx("apply");
    struct fsm_result *res = mem_new(ctx, struct fsm_result);
    res->index = index;
    struct apply a = {
        .ctx = res, .tmp = tmp, .t = t, .index = index, .now = in->time, .res = res};
    ASSERT(index > state_applied(t)); /* each entry once, in their order */
    int rc = dispatch(&a, in);
    ASSERT((rc == 0) == (res->err.code == 0));
    ASSERT(rc == 0 || !res->changed); /* what is refused has no effect */
    if (rc == 0)
        finish(&a);
    HASH_CLEAR(hh, a.at_jobs);
    HASH_CLEAR(hh, a.at_evals);
    HASH_CLEAR(hh, a.at_allocs);
    return res;
}
