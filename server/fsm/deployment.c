/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: deployments. Their counters follow the allocations; what becomes of one is
 * proposed by the scheduler (plans), the leader's controller (server/leader/deploy_watch.c) and
 * people.
 */
#include "server/fsm/fsm_int.h"

static struct deployment_state *
group_state(const struct deployment *d, const char *group)
{
    __auto_type e = map_get(d->task_groups, group);
    return e != NULL ? e->v : NULL;
}

/* --- status --- */

static bool
deployed_version(const struct job *j, const void *arg)
{
    const struct deployment *d = arg;

    return j->version == d->job_version && j->create_index == d->job_create_index;
}

/* The version of the job that the deployment is of is one to come back to. */
static void
mark_stable(struct apply *a, const struct deployment *d)
{
    struct job *v = state_find_version(a->t, a->ctx, d->namespace, d->job_id, deployed_version, d);

    if (v == NULL || v->stable)
        return;
    v->stable = true;
    v->modify_index = a->index;
    state_put(a->t, a->index, JOB_VERSIONS, v);
    struct job *now = state_job(a->t, a->ctx, d->namespace, d->job_id);
    if (now != NULL && now->job_modify_index == v->job_modify_index) {
        now->stable = true;
        now->modify_index = a->index;
        entry_store_job(a, now);
    }
}

static void
set_status(struct apply *a, struct touched_deployment *td, const struct deployment_status_update *u)
{
    struct deployment *d = td->d;

    d->status = mem_strdup(d, u->status);
    d->status_description = mem_strdup(d, u->status_description);
    td->changed = true;
    bool goes_on = str_eq(d->status, DEPLOYMENT_RUNNING) || str_eq(d->status, DEPLOYMENT_PAUSED);
    for (size_t i = 0; goes_on && i < d->task_groups.n; i++) {
        struct deployment_state *s = d->task_groups.v[i].v;
        if (s->progress_deadline != 0)
            s->require_progress_by = a->now + s->progress_deadline;
    }
    if (str_eq(d->status, DEPLOYMENT_SUCCESSFUL))
        mark_stable(a, d);
}

/* The deployment, or NULL: the entry is refused. */
static struct touched_deployment *
deployment_touch_active(struct apply *a, const char *id)
{
    struct touched_deployment *td = entry_touch_deployment(a, id);

    if (td == NULL)
        entry_refuse(a, -ERR_NOT_FOUND,
                     "Deployment ID \"%s\" couldn't be updated as it does not exist",
                     str_or(id, ""));
    else if (!deployment_active(td->d))
        entry_refuse(a, -ERR_CONFLICT, "Deployment \"%s\" has terminal status \"%s\":", td->d->id,
                     td->d->status);
    else
        return td;
    return NULL;
}

/* A job that was purged or changed meanwhile is not rolled back, nor into a node pool that was
 * deleted. */
static void
roll_back(struct apply *a, const struct deployment *d, const struct job *to)
{
    const struct job *now = to != NULL ? state_job(a->t, a->ctx, d->namespace, d->job_id) : NULL;

    if (now != NULL && !now->stop && now->version == d->job_version &&
        now->create_index == d->job_create_index && state_has_pool(a->t, to->node_pool))
        entry_put_version(a, to);
}

int
intent_deployment_update(struct apply *a, const struct intent_deployment_update *in)
{
    if (in->update == NULL)
        return entry_refuse(a, -ERR_INVALID, "update a deployment: no status");
    struct touched_deployment *td = deployment_touch_active(a, in->update->deployment_id);
    if (td == NULL)
        return a->res->err.code;
    set_status(a, td, in->update);
    roll_back(a, td->d, in->job);
    if (in->eval != NULL)
        entry_put_eval(a, in->eval);
    return 0;
}

/* --- promotion --- */

static bool
is_meant(const struct intent_deployment_promote *in, const char *group)
{
    for (size_t i = 0; !in->all && i < in->groups.n; i++)
        if (str_eq(in->groups.v[i], group))
            return true;
    return in->all;
}

static bool
is_placed_canary(const struct deployment *d, const struct allocation *al)
{
    const struct deployment_state *s = group_state(d, al->task_group);

    for (size_t i = 0; s != NULL && i < s->placed_canaries.n; i++)
        if (str_eq(s->placed_canaries.v[i], al->id))
            return true;
    return false;
}

/* Healthy canaries of the groups that are promoted. */
static struct allocation_list
deployment_promotable(struct apply *a, const struct deployment *d,
                      const struct intent_deployment_promote *in)
{
    struct allocation_list l = {0};
    struct state_iter *it = state_allocs_by_deployment(a->t, a->tmp, d->id);

    state_iter_live_only(it);
    for (struct allocation *al; (al = state_next(it, a->ctx)) != NULL;)
        if (is_meant(in, al->task_group) && is_placed_canary(d, al) && alloc_healthy(al))
            list_add(a->ctx, l, al);
    return l;
}

/* Some group has too few of them: its words; NULL: none has. */
static const char *
too_few(struct apply *a, const struct deployment *d, const struct intent_deployment_promote *in,
        const struct allocation_list *l)
{
    const char *text = NULL;
    size_t n = 0;

    for (size_t i = 0; i < d->task_groups.n; i++) {
        const char *group = d->task_groups.v[i].k;
        int64_t have = 0, need = d->task_groups.v[i].v->desired_canaries;
        for (size_t k = 0; k < l->n; k++)
            have += str_eq(l->v[k]->task_group, group);
        if (!is_meant(in, group) || have >= need)
            continue;
        n++;
        text = mem_printf(a->tmp, "%s\n\t* Task group \"%s\" has %lld/%lld healthy allocations",
                          str_or(text, ""), group, (long long)have, (long long)need);
    }
    return n == 0 ? NULL
                  : mem_printf(a->tmp, "%zu error%s occurred:%s\n\n", n, n > 1 ? "s" : "", text);
}

int
intent_deployment_promote(struct apply *a, const struct intent_deployment_promote *in)
{
    struct touched_deployment *td = deployment_touch_active(a, in->deployment_id);
    if (td == NULL)
        return a->res->err.code;
    struct deployment *d = td->d;
    struct allocation_list l = deployment_promotable(a, d, in);
    const char *why = too_few(a, d, in, &l);
    if (why != NULL)
        return entry_refuse(a, -ERR_INVALID, "%s", why);
    for (size_t i = 0; i < d->task_groups.n; i++) {
        struct deployment_state *s = d->task_groups.v[i].v;
        if (!is_meant(in, d->task_groups.v[i].k))
            continue;
        if (s->progress_deadline > 0 && s->require_progress_by != 0)
            s->require_progress_by = a->now + s->progress_deadline;
        s->promoted = true;
    }
    if (str_eq(d->status, DEPLOYMENT_RUNNING) && !deployment_wants_promotion(d))
        d->status_description = DESC_DEPLOY_RUNNING;
    td->changed = true;
    for (size_t i = 0; i < l.n; i++) {
        struct allocation *al = codec_clone(a->ctx, &type_allocation, l.v[i]);
        al->deployment_status->canary = false;
        al->deployment_status->modify_index = a->index;
        al->alloc_modify_index = a->index;
        entry_put_alloc(a, al, l.v[i], state_alloc_job_index(a->t, al->id));
    }
    if (in->eval != NULL)
        entry_put_eval(a, in->eval);
    return 0;
}

/* --- health, by an operator --- */

static int
check_health(struct apply *a, const struct intent_deployment_health *in, const struct str_list *ids)
{
    for (size_t i = 0; i < ids->n; i++) {
        const struct allocation *al = state_alloc(a->t, a->tmp, str_or(ids->v[i], ""));
        if (al == NULL)
            return entry_refuse(a, -ERR_INVALID, "unknown alloc \"%s\"", str_or(ids->v[i], ""));
        if (!str_eq(al->deployment_id, in->deployment_id))
            return entry_refuse(a, -ERR_INVALID, "alloc \"%s\" is not part of deployment \"%s\"",
                                al->id, in->deployment_id);
    }
    return 0;
}

static void
set_health(struct apply *a, const struct str_list *ids, bool healthy)
{
    for (size_t i = 0; i < ids->n; i++) {
        const struct allocation *old = state_alloc(a->t, a->ctx, ids->v[i]);
        struct allocation *al = codec_clone(a->ctx, &type_allocation, old);
        if (al->deployment_status == NULL)
            al->deployment_status = type_new(al, &type_alloc_deployment_status);
        al->deployment_status->healthy = (struct opt_bool){true, healthy};
        al->deployment_status->timestamp = a->now;
        al->deployment_status->modify_index = a->index;
        entry_put_alloc(a, al, old, state_alloc_job_index(a->t, al->id));
    }
}

int
intent_deployment_health(struct apply *a, const struct intent_deployment_health *in)
{
    struct touched_deployment *td = deployment_touch_active(a, in->deployment_id);
    if (td == NULL || check_health(a, in, &in->healthy) < 0 ||
        check_health(a, in, &in->unhealthy) < 0)
        return a->res->err.code;
    set_health(a, &in->healthy, true);
    set_health(a, &in->unhealthy, false);
    td = entry_touch_deployment(a, in->deployment_id); /* the list may have grown */
    if (in->update != NULL)
        set_status(a, td, in->update);
    roll_back(a, td->d, in->job);
    if (in->eval != NULL)
        entry_put_eval(a, in->eval);
    return 0;
}

/* --- plans --- */

/* The job may have been purged since, or registered anew. */
static bool
is_of_job(struct apply *a, const struct deployment *d)
{
    const struct job *j = entry_job(a, d->namespace, d->job_id);

    return j != NULL && j->create_index == d->job_create_index;
}

void
entry_plan_deployments(struct apply *a, const struct plan_result *in)
{
    if (in->deployment != NULL && !str_empty(in->deployment->id) &&
        entry_touch_deployment(a, in->deployment->id) == NULL && is_of_job(a, in->deployment)) {
        struct deployment *d = codec_clone(a->ctx, &type_deployment, in->deployment);
        d->create_index = a->index;
        d->create_time = a->now;
        mem_resize(a->tmp, a->deployments, struct touched_deployment, a->n_deployments + 1);
        a->deployments[a->n_deployments++] = (struct touched_deployment){d, true};
    }
    for (size_t i = 0; i < in->deployment_updates.n; i++) {
        struct touched_deployment *td =
            entry_touch_deployment(a, in->deployment_updates.v[i]->deployment_id);
        if (td != NULL && deployment_active(td->d))
            set_status(a, td, in->deployment_updates.v[i]);
    }
}
