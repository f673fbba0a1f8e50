/* SPDX-License-Identifier: Apache-2.0
 *
 * The watcher of deployments, the part that decides (see deploy_step.h).
 */
#include "server/leader/deploy_step.h"

#include "api/terms.h"
#include "server/sched/alloc/reschedule.h"

static const struct deployment_state *
state_of(const struct deploy_in *in, const struct allocation *a)
{
    __auto_type e = map_get(in->d->task_groups, str_or(a->task_group, ""));

    return e != NULL ? e->v : NULL;
}

/* Nothing better will follow it. */
static bool
deploy_step_hopeless(const struct deploy_in *in, const struct allocation *a,
                     const struct deployment_state *s)
{
    const struct task_group *tg = job_group(in->job, a->task_group);
    int64_t at;

    return s->progress_deadline == 0 || tg == NULL ||
           !reschedule_allowed(tg->reschedule_policy, a, &at);
}

static void
look_at(const void *ctx, const struct deploy_in *in, const struct allocation *a,
        struct deploy_out *out)
{
    const struct deployment_state *s = state_of(in, a);
    const struct desired_transition *t = a->desired_transition;

    if (s == NULL)
        return;
    if (alloc_unhealthy(a) && deploy_step_hopeless(in, a, s)) {
        out->fails = DESC_DEPLOY_UNHEALTHY;
        out->revert |= s->auto_revert;
    } else if (alloc_unhealthy(a) && !(t != NULL && t->reschedule.set && t->reschedule.v)) {
        list_add(ctx, out->replace, a->id);
    } else if (alloc_healthy(a) && a->deployment_status->modify_index > in->seen) {
        out->evaluate = true;
    }
}

static int64_t
healthy_live(const struct deploy_in *in, const char *group)
{
    int64_t n = 0;

    for (size_t i = 0; i < in->n_allocs; i++)
        n += str_eq(in->allocs[i]->task_group, group) && !alloc_terminal(in->allocs[i]) &&
             alloc_healthy(in->allocs[i]);
    return n;
}

static bool
is_healthy(const struct deploy_in *in, const char *id)
{
    for (size_t i = 0; i < in->n_allocs; i++)
        if (str_eq(in->allocs[i]->id, id))
            return alloc_healthy(in->allocs[i]) && !alloc_terminal(in->allocs[i]);
    return false;
}

/* Every group with canaries asks for it, and all of these are healthy. */
static bool
deploy_step_promotes(const struct deploy_in *in)
{
    bool any = false;

    if (!deployment_wants_promotion(in->d))
        return false;
    for (size_t i = 0; i < in->d->task_groups.n; i++) {
        const struct deployment_state *s = in->d->task_groups.v[i].v;
        int64_t healthy = 0;
        if (s->desired_canaries < 1)
            continue;
        for (size_t k = 0; k < s->placed_canaries.n; k++)
            healthy += is_healthy(in, s->placed_canaries.v[k]);
        if (!s->auto_promote || healthy < s->desired_canaries)
            return false;
        any = true;
    }
    return any;
}

/* When the first group that is not done must have progressed; INT64_MAX: none must. */
static int64_t
deploy_step_cutoff(const struct deploy_in *in)
{
    int64_t at = INT64_MAX;

    for (size_t i = 0; i < in->d->task_groups.n; i++) {
        const struct deployment_state *s = in->d->task_groups.v[i].v;
        bool waits = s->desired_canaries != 0 && !s->promoted;
        bool done = !waits && healthy_live(in, in->d->task_groups.v[i].k) >= s->desired_total;
        if (!done && s->require_progress_by != 0 && s->require_progress_by < at)
            at = s->require_progress_by;
    }
    return at;
}

/* The time is over: the deployment fails, unless everything not promoted yet is healthy. */
static void
time_over(const struct deploy_in *in, struct deploy_out *out)
{
    for (size_t i = 0; i < in->d->task_groups.n; i++) {
        const struct deployment_state *s = in->d->task_groups.v[i].v;
        const struct task_group *tg = job_group(in->job, in->d->task_groups.v[i].k);
        bool canaries = s->desired_canaries > 0 && !s->promoted;
        if (s->healthy_allocs >= (canaries ? s->desired_canaries : s->desired_total))
            continue;
        out->fails = DESC_DEPLOY_DEADLINE;
        out->revert |= tg != NULL && tg->update != NULL && tg->update->auto_revert;
    }
}

struct deploy_out
deploy_step(const void *ctx, const struct deploy_in *in)
{
    struct deploy_out out = {.deadline = INT64_MAX};
    int64_t at = deploy_step_cutoff(in);

    for (size_t i = 0; i < in->n_allocs; i++)
        look_at(ctx, in, in->allocs[i], &out);
    if (out.fails != NULL)
        return out;
    out.promote = deploy_step_promotes(in);
    if (str_eq(in->d->status, DEPLOYMENT_PAUSED) || at == INT64_MAX)
        return out;
    if (at <= in->now)
        time_over(in, &out);
    else
        out.deadline = at;
    return out;
}
