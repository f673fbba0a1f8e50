/* SPDX-License-Identifier: Apache-2.0
 *
 * Deployments, as the reconciler sees them (see rollout.h).
 */
#include "server/sched/rollout.h"

#include "api/eval.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/uuid.h"

static void
set_status(struct rollout *r, const struct deployment *d, const char *status, const char *text)
{
    struct deployment_status_update *u = mem_new(r->ctx, struct deployment_status_update);

    *u = (struct deployment_status_update){d->id, status, text};
    list_add(r->ctx, r->status, u);
}

void
rollout_begin(struct rollout *r)
{
    const struct deployment *d = r->latest;
    const struct job *j = r->job;

    r->complete = true;
    if (d == NULL)
        return;
    bool active = deployment_active(d), stopped = j == NULL || j->stop;
    bool other =
        !stopped && (d->job_create_index != j->create_index || d->job_version != j->version);
    if (active && stopped)
        set_status(r, d, DEPLOYMENT_CANCELLED, DESC_DEPLOY_STOPPED);
    else if (active && other)
        set_status(r, d, DEPLOYMENT_CANCELLED, DESC_DEPLOY_NEWER);
    if (stopped || other || str_eq(d->status, DEPLOYMENT_SUCCESSFUL)) {
        r->old = d;
        return;
    }
    r->current = r->deployment = d;
    r->paused = str_eq(d->status, DEPLOYMENT_PAUSED);
    r->failed = str_eq(d->status, DEPLOYMENT_FAILED);
}

static struct deployment_state *
state_of(const struct deployment *d, const char *group)
{
    __auto_type e = d != NULL ? map_get(d->task_groups, group) : NULL;

    return e != NULL ? e->v : NULL;
}

void
rollout_group_begin(struct rollout *r, struct rollout_group *g, const struct task_group *tg)
{
    const struct deployment_state *had = state_of(r->current, tg->name);
    bool service = str_eq(r->job->type, JOB_SERVICE);
    const struct update_strategy *u = service ? tg->update : NULL;

    *g = (struct rollout_group){.tg = tg, .existing = had != NULL};
    g->update = u != NULL && u->max_parallel.v > 0 ? u : NULL;
    if (had != NULL) {
        g->state = codec_clone(r->ctx, &type_deployment_state, had);
    } else {
        g->state = type_new(r->ctx, &type_deployment_state);
        if (g->update != NULL) {
            g->state->auto_revert = u->auto_revert;
            g->state->auto_promote = u->auto_promote;
            g->state->progress_deadline = u->progress_deadline.v;
        }
    }
    g->canarying = g->state->desired_canaries != 0 && !g->state->promoted;
}

int64_t
rollout_canaries(struct rollout *r, struct rollout_group *g)
{
    int64_t changed = g->n_destructive + g->n_in_place; /* more, where fewer are wanted later */
    if (!g->existing)
        g->state->desired_total += changed < g->tg->count.v ? changed : g->tg->count.v;
    /* a lost canary is wanted again, also when nothing is left for it to replace */
    g->wants_canaries = g->update != NULL && (g->n_destructive > 0 || g->canarying) &&
                        g->n_canaries < g->update->canary && !g->state->promoted;
    if (g->wants_canaries) {
        g->state->desired_canaries = g->update->canary;
        g->canarying = true;
    }
    return g->wants_canaries && !r->paused && !r->failed ? g->update->canary - g->n_canaries : 0;
}

int64_t
rollout_limit(struct rollout *r, struct rollout_group *g)
{
    g->ready = !r->paused && !r->failed && !g->canarying;
    if (g->update == NULL || g->n_destructive + g->n_migrate == 0)
        return INT64_MAX;
    if (r->current == NULL)
        return g->update->max_parallel.v;
    if (!g->ready || g->unhealthy)
        return 0;
    int64_t left = g->update->max_parallel.v - g->n_unsettled;
    return left > 0 ? left : 0;
}

static void
rollout_make(struct rollout *r)
{
    const struct job *j = r->job;
    struct deployment *d = type_new(r->ctx, &type_deployment);
    char id[UUID_TEXT];

    d->id = mem_strdup(d, rng_uuid(r->rng, id));
    d->namespace = j->namespace;
    d->job_id = j->id;
    d->job_version = j->version;
    d->job_modify_index = j->modify_index;
    d->job_spec_modify_index = j->job_modify_index;
    d->job_create_index = j->create_index;
    d->status = DEPLOYMENT_RUNNING;
    d->status_description = DESC_DEPLOY_RUNNING;
    d->eval_priority = r->priority;
    d->create_time = r->now;
    r->made = d;
    r->deployment = d;
}

/* Everything that it wants is there, and healthy. */
static bool
group_complete(const struct rollout *r, const struct rollout_group *g)
{
    const struct deployment_state *s = g->state;
    int64_t want = s->desired_total > s->desired_canaries ? s->desired_total : s->desired_canaries;

    if (r->current == NULL || g->n_destructive + g->n_in_place + g->n_migrate + g->n_moves != 0 ||
        g->wants_canaries)
        return false;
    return !g->existing || (s->healthy_allocs >= want && (s->desired_canaries == 0 || s->promoted));
}

void
rollout_group_end(struct rollout *r, struct rollout_group *g, int64_t placed)
{
    int64_t missing = g->ready ? 0 : g->n_missing; /* in `placed` where they are placed */

    r->complete &= group_complete(r, g);
    if (g->existing)
        return;
    g->state->desired_total += placed + missing;
    bool updates = g->n_destructive != 0 || g->n_in_place != 0;
    if (g->update == NULL || g->state->desired_total == 0 || (g->had_running && !updates) ||
        r->current != NULL)
        return;
    if (r->made == NULL)
        rollout_make(r);
    map_put(r->made, r->made->task_groups, g->tg->name)->v = g->state;
}

void
rollout_end(struct rollout *r)
{
    struct deployment *made = r->made;
    bool ends = r->current != NULL && r->complete && deployment_active(r->current);
    bool automatic = true;

    if (ends)
        set_status(r, r->current, DEPLOYMENT_SUCCESSFUL, DESC_DEPLOY_DONE);
    else
        r->waits = NULL;
    if (made == NULL || !deployment_wants_promotion(made))
        return;
    for (size_t i = 0; i < made->task_groups.n; i++)
        automatic &= made->task_groups.v[i].v->desired_canaries == 0 ||
                     made->task_groups.v[i].v->auto_promote;
    made->status_description = automatic ? DESC_DEPLOY_AUTO_PROMOTE : DESC_DEPLOY_PROMOTE;
}

/* --- whose is it --- */

bool
rollout_has(const struct rollout *r, const struct allocation *a)
{
    return r->current != NULL && str_eq(a->deployment_id, r->current->id);
}

bool
rollout_holds(const struct rollout *r, const struct allocation *a)
{
    return rollout_has(r, a) && deployment_active(r->current);
}

bool
rollout_failed_with(const struct rollout *r, const struct allocation *a)
{
    return r->failed && rollout_has(r, a);
}

static bool
placed_as_canary(const struct deployment *d, const struct allocation *a, bool unpromoted)
{
    const struct deployment_state *s = state_of(d, str_or(a->task_group, ""));

    if (s == NULL || (unpromoted && s->promoted))
        return false;
    for (size_t i = 0; i < s->placed_canaries.n; i++)
        if (str_eq(s->placed_canaries.v[i], a->id))
            return true;
    return false;
}

bool
rollout_rejects(const struct rollout *r, const struct allocation *a)
{
    return placed_as_canary(r->old, a, true) ||
           (r->failed && placed_as_canary(r->current, a, true));
}

bool
rollout_owns_canary(const struct rollout *r, const struct allocation *a)
{
    return placed_as_canary(r->current, a, false);
}

/* --- what a change means --- */

static bool
str_map_equal(const struct str_map *a, const struct str_map *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->v[i].k, b->v[i].k) || !str_eq(a->v[i].v, b->v[i].v))
            return false;
    return true;
}

enum rollout_change
rollout_change(const struct job *from, const struct job *to, const struct task_group *tg)
{
    if (from == NULL)
        return CHANGE_DESTRUCTIVE;
    if (from->job_modify_index == to->job_modify_index && from->create_index == to->create_index)
        return CHANGE_NONE;
    const struct task_group *old = job_group(from, tg->name);
    if (old == NULL || !codec_equal_but_inplace(&type_task_group, old, tg))
        return CHANGE_DESTRUCTIVE;
    /* the task's environment holds the job's metadata */
    if (!str_map_equal(&from->meta, &to->meta))
        return CHANGE_DESTRUCTIVE;
    return CHANGE_INPLACE;
}
