/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: an entry while it is applied, and what all intents have in common: evaluations
 * and allocations are stored, the jobs they touch are noted, summaries count along. In that order.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "api/away.h"
#include "api/eval.h"
#include "api/object.h"
#include "server/fsm/fsm_int.h"

int
entry_refuse(struct apply *a, int code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    ASSERT(code < 0 && !a->res->changed && a->res->events->n == 0);
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(&a->res->err, code, "%s", text);
}

static size_t
place_of_key(struct apply *a, struct place_of **all, struct slice key, size_t next)
{
    struct place_of *p;
    HASH_FIND(hh, *all, key.p, key.n, p);
    ASSERT(p == NULL || p->at <= next);
    if (p != NULL)
        return p->at;
    p = mem_new(a->tmp, struct place_of);
    *p = (struct place_of){.key = mem_dup(p, key.p, key.n), .at = next};
    HASH_ADD_KEYPTR(hh, *all, p->key, key.n, p);
    return next;
}

size_t
entry_place_of(struct apply *a, struct place_of **all, const char *key, size_t next)
{
    return place_of_key(a, all, SLICE(key, strlen(key)), next);
}

/* --- events --- */

/* A quiet change hides nothing that the entry did to the row before. */
static void
note_row(struct apply *a, struct slice key, struct fsm_event e)
{
    struct fsm_events *all = a->res->events;
    size_t at = place_of_key(a, &a->at_rows[e.table], key, all->n);

    if (e.what != FSM_QUIET)
        a->res->changed = true;
    else if (at < all->n)
        e.what = all->v[at].what;
    if (at < all->n)
        all->v[at] = e;
    else
        list_add(all, *all, e);
}

static void
note_stored(void *arg, enum state_table table, struct slice key, const void *obj, bool quiet)
{
    note_row(arg, key, (struct fsm_event){table, quiet ? FSM_QUIET : FSM_STORED, obj});
}

static void
note_removed(void *arg, enum state_table table, struct slice key, const void *obj)
{
    note_row(arg, key, (struct fsm_event){table, FSM_DELETED, obj});
}

struct state_follower
entry_follower(struct apply *a)
{
    return (struct state_follower){
        .stored = note_stored, .removed = note_removed, .arg = a, .ctx = a->ctx};
}

void
entry_stamped(struct apply *a)
{
    struct fsm_events *all = a->res->events;

    ASSERT(all->n > 0 && all->v[all->n - 1].table == STATE_EVALS);
    all->v[all->n - 1].what = FSM_STAMPED;
}

/* --- objects with a name --- */

void
entry_put_object(struct apply *a, enum state_table table, const struct type *t, void *obj)
{
    const char *key = object_key(object_kind(t), obj);
    const void *old = state_get_row(a->t, a->tmp, table, (struct state_key){.a = key});
    uint64_t *made = type_member(t, obj, "CreateIndex");

    *made = old != NULL ? *(const uint64_t *)type_member(t, old, "CreateIndex") : a->index;
    *(uint64_t *)type_member(t, obj, "ModifyIndex") = a->index;
    state_put_row(a->t, a->index, table, obj);
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
entry_new_eval(struct apply *a, const struct job *j, const char *trigger)
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
}

void
entry_cancel_eval(struct apply *a, const char *id, const char *why)
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
        entry_cancel_eval(a, ids.v[i], why);
}

/* The group's counters, made when missing; NULL when the job has no summary. */
static struct task_group_summary *
summary_of(struct apply *a, const char *ns, const char *id, const char *group)
{
    struct touched_job *j = entry_touch_job(a, ns, id);
    if (j->summary == NULL)
        j->summary = state_summary(a->t, a->ctx, ns, id);
    if (j->summary == NULL)
        return NULL;
    __auto_type row = map_put(j->summary, j->summary->summary, mem_strdup(j->summary, group));
    if (row->v == NULL)
        row->v = type_new(j->summary, &type_task_group_summary);
    return row->v;
}

/* Counts by an evaluation that was worked on: a cancelled one bears numbers of an earlier time. */
static void
count_queued(struct apply *a, const struct evaluation *ev)
{
    if (str_eq(ev->status, EVAL_CANCELED))
        return;
    for (size_t i = 0; i < ev->queued_allocations.n; i++) {
        struct task_group_summary *s =
            summary_of(a, ev->namespace, ev->job_id, ev->queued_allocations.v[i].k);
        if (s == NULL || s->queued == ev->queued_allocations.v[i].v)
            continue;
        s->queued = ev->queued_allocations.v[i].v;
        entry_touch_job(a, ev->namespace, ev->job_id)->summary_changed = true;
    }
}

void
entry_put_eval(struct apply *a, const struct evaluation *in)
{
    struct evaluation *ev = codec_clone(a->ctx, &type_evaluation, in);
    store_eval(a, ev);
    entry_touch_job(a, ev->namespace, ev->job_id);
    if (str_eq(ev->status, EVAL_COMPLETE) && str_empty(ev->blocked_eval))
        cancel_blocked(a, ev);
    count_queued(a, ev);
}

/* --- jobs touched by an entry --- */

const struct job *
entry_job(struct apply *a, const char *ns, const char *id)
{
    if (a->last_id == NULL || !str_eq(a->last_id, id) || !str_eq(a->last_ns, ns)) {
        a->last_job = state_job(a->t, a->tmp, ns, id);
        a->last_ns = mem_strdup(a->tmp, ns);
        a->last_id = mem_strdup(a->tmp, str_or(id, ""));
    }
    return a->last_job;
}

static const char *
job_key(struct apply *a, const char *ns, const char *id)
{
    return mem_printf(a->tmp, "%s\n%s", str_or(ns, ""), str_or(id, ""));
}

void
entry_store_job(struct apply *a, const struct job *j)
{
    state_put(a->t, a->index, JOBS, j);
}

struct touched_job *
entry_touch_job(struct apply *a, const char *ns, const char *id)
{
    ASSERT(a->n_jobs == 0 || a->last_touched < a->n_jobs);
    struct touched_job *j = a->n_jobs > 0 ? &a->jobs[a->last_touched] : NULL;
    if (j != NULL && str_eq(j->id, id) && str_eq(j->ns, ns))
        return j;
    a->last_touched = entry_place_of(a, &a->at_jobs, job_key(a, ns, id), a->n_jobs);
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
entry_counter(struct task_group_summary *s, const char *client_status)
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
    /* an end, complete or failed, counts for ever, even when the client changes its mind. */
    int64_t *from = old != NULL ? entry_counter(s, old->client_status) : &s->queued;
    if (from != NULL && from != &s->complete && from != &s->failed && *from > 0)
        --*from;
    int64_t *to = entry_counter(s, al->client_status);
    if (to != NULL)
        ++*to;
    entry_touch_job(a, al->namespace, al->job_id)->summary_changed = true;
}

/* An evaluation that nobody needs any more, due or not; not the one whose plan this is. */
static void
drop_followup(struct apply *a, const struct evaluation *ev)
{
    if (ev != NULL && str_eq(ev->status, EVAL_PENDING) && !str_eq(ev->id, a->plan_eval))
        entry_cancel_eval(a, ev->id, "the allocation is no longer unknown");
}

/* Marks the follow-ups that somebody names still; true: an allocation of the job is silent. One
 * look at the live ones, for the whole entry. */
static bool
look_at_silence(struct apply *a, const struct touched_job *j, bool *named)
{
    struct lean *lean = lean_new(a->tmp, &type_allocation, &type_allocation,
                                 "FollowupEvalID DesiredStatus ClientStatus", "");
    struct state_iter *it = state_allocs_by_job(a->t, a->tmp, j->ns, j->id);
    size_t free_names = j->followups.n;
    bool silent = false;

    state_iter_live_only(it);
    for (struct allocation *o; (o = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(o)) {
        silent |= alloc_silent(o);
        for (size_t i = 0; i < j->followups.n; i++)
            if (!named[i] && str_eq(o->followup_eval_id, j->followups.v[i])) {
                named[i] = true;
                free_names--;
            }
        if (silent && free_names == 0) {
            state_iter_end(it);
            return true;
        }
    }
    return silent;
}

void
entry_drop_followups(struct apply *a, const struct touched_job *j)
{
    bool *named = mem_array(a->tmp, bool, j->followups.n + 1);
    bool silent = look_at_silence(a, j, named);
    struct evaluation_list all = {NULL, 0};

    for (size_t i = 0; i < j->followups.n; i++)
        if (!named[i])
            drop_followup(a, state_eval(a->t, a->tmp, j->followups.v[i]));
    if (silent)
        return;
    struct state_iter *it = state_evals_by_job(a->t, a->tmp, j->ns, j->id);
    for (struct evaluation *ev; (ev = state_next(it, a->tmp)) != NULL;)
        if (str_eq(ev->triggered_by, TRIGGER_MAX_DISCONNECT))
            list_add(a->tmp, all, ev);
    for (size_t i = 0; i < all.n; i++)
        drop_followup(a, all.v[i]);
}

void
entry_settled(struct apply *a, const struct allocation *al, const char *followup)
{
    struct touched_job *j = entry_touch_job(a, al->namespace, al->job_id);

    j->settled = true;
    if (!str_empty(followup) && !str_list_has(&j->followups, followup))
        list_add(a->tmp, j->followups, followup);
}

void
entry_put_alloc(struct apply *a, struct allocation *al, const struct allocation *old, uint64_t jmi)
{
    ASSERT(al->job == NULL && jmi != 0 && (old == NULL || str_eq(old->id, al->id)));
    al->create_index = old != NULL ? old->create_index : a->index;
    al->modify_index = a->index;
    al->modify_time = a->now;
    ASSERT(al->create_index != 0 && al->create_index <= al->modify_index);
    entry_count_deployed(a, al, old);
    bool known = old != NULL && alloc_silent(old) && !alloc_silent(al);
    const char *followup = known ? TAKE(al->followup_eval_id) : NULL;
    state_put_alloc(a->t, a->index, al, jmi);
    if (alloc_client_terminal(al) && old != NULL && !alloc_client_terminal(old))
        state_end_services(a->t, a->index, STATE_SERVICES_BY_ALLOC, al->id);
    entry_touch_job(a, al->namespace, al->job_id);
    count_alloc(a, al, old);
    if (known)
        entry_settled(a, al, followup);
}

int64_t
entry_lost_after(struct apply *a, struct allocation *al)
{
    const struct task_group *tg = job_group(state_alloc_job(a->t, al), al->task_group);
    al->job = NULL;
    return group_lost_after(tg);
}

void
entry_append_state(struct apply *a, struct allocation *al, const char *value)
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
