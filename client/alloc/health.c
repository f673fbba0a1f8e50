/* SPDX-License-Identifier: Apache-2.0
 *
 * The health of an allocation; see health.h. Pure.
 */
#include "client/alloc/health.h"

#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

/* The defaults of the blocks' members. */
#define MIN_HEALTHY_NS (10 * NS_PER_S)
#define HEALTHY_DEADLINE_NS (300 * NS_PER_S)

static int64_t
health_value(struct opt_i64 v, int64_t otherwise)
{
    return v.set ? v.v : otherwise;
}

static int64_t
health_later(int64_t at, int64_t by)
{
    return by > 0 && at > INT64_MAX - by ? INT64_MAX : at + by;
}

static int64_t
health_deadline(const struct health_in *in)
{
    return health_later(in->began, in->policy.max_ns);
}

struct health_policy
health_policy_of(const struct allocation *a, const struct task_group *tg)
{
    struct health_policy p = {.deploy = !str_empty(a->deployment_id)};
    const char *type = str_or(a->job->type, JOB_SERVICE);
    bool lasting = str_eq(type, JOB_SERVICE) || str_eq(type, JOB_SYSTEM);
    if (p.deploy) {
        const struct update_strategy *u = tg->update;
        p.judged = lasting && u && health_value(u->max_parallel, 1) != 0 &&
                   !str_eq(u->health_check, "manual");
        p.checks = !u || !str_eq(u->health_check, "task_states");
        p.min_ns = u ? health_value(u->min_healthy_time, MIN_HEALTHY_NS) : 0;
        p.max_ns = u ? health_value(u->healthy_deadline, HEALTHY_DEADLINE_NS) : 0;
        return p;
    }
    const struct migrate_strategy *m = tg->migrate;
    p.judged = lasting;
    p.checks = !m || !str_eq(m->health_check, "task_states");
    p.min_ns = m ? health_value(m->min_healthy_time, MIN_HEALTHY_NS) : MIN_HEALTHY_NS;
    p.max_ns = m ? health_value(m->healthy_deadline, HEALTHY_DEADLINE_NS) : HEALTHY_DEADLINE_NS;
    return p;
}

/* May end, if it ends well. */
static bool
health_passing(const struct task_sm *m)
{
    return m->cfg.role != ROLE_MAIN && !m->cfg.sidecar;
}

static bool
done_well(const struct task_sm *m)
{
    return health_passing(m) && str_eq(m->t->state->state, "dead") && !m->t->state->failed;
}

static bool
health_counts(const struct task_sm *m)
{
    return m->cfg.role != ROLE_POSTSTOP && !(m->cfg.role == ROLE_POSTSTART && done_well(m));
}

static bool
health_checked(const struct health_in *in)
{
    return in->policy.checks && in->checks > 0;
}

enum health
health_judge(const struct health_in *in, int64_t *ret_at)
{
    int64_t since = in->began;
    bool waits = false;
    for (size_t i = 0; i < in->n; i++) {
        const struct task_sm *m = in->tasks[i];
        const struct task_state *s = m->t->state;
        if (!health_counts(m))
            continue;
        if (s->failed || (str_eq(s->state, "dead") && !done_well(m)))
            return HEALTH_BAD;
        waits = waits || !(str_eq(s->state, "running") || done_well(m));
        if (s->started_at <= in->now) /* else by a clock that was set back since */
            since = s->started_at > since ? s->started_at : since;
    }
    if (health_checked(in)) {
        waits = waits || in->passing < in->checks;
        if (in->passing_since <= in->now && in->passing_since > since)
            since = in->passing_since;
    }
    int64_t good = waits ? INT64_MAX : health_later(since, in->policy.min_ns);
    int64_t end = health_deadline(in);
    if (good <= in->now && good <= end)
        return HEALTH_GOOD;
    if (end <= in->now)
        return HEALTH_BAD;
    *ret_at = good < end ? good : end;
    return HEALTH_OPEN;
}

const char *
health_reason(const void *ctx, const struct health_in *in, size_t i)
{
    const struct task_sm *m = in->tasks[i];
    const struct task_state *s = m->t->state;
    char min[DURATION_TEXT], max[DURATION_TEXT];
    duration_format(in->policy.min_ns, min);
    duration_format(in->policy.max_ns, max);
    if (!health_counts(m) || done_well(m))
        return NULL;
    if (s->failed)
        return "Unhealthy because of failed task";
    if (str_eq(s->state, "dead"))
        return "Unhealthy because of dead task";
    if (in->now < health_deadline(in))
        return NULL; /* another one is the cause */
    if (!str_eq(s->state, "running"))
        return mem_printf(ctx, "Task not running by healthy_deadline of %s", max);
    bool later_than_began = s->started_at > in->began && s->started_at <= in->now;
    int64_t since = later_than_began ? s->started_at : in->began;
    if (health_later(since, in->policy.min_ns) > health_deadline(in))
        return mem_printf(
            ctx, "Task not running for min_healthy_time of %s by healthy_deadline of %s", min, max);
    if (health_checked(in) && in->passing < in->checks)
        return mem_printf(ctx, "Only %zu out of %zu checks registered and passing", in->passing,
                          in->checks);
    if (health_checked(in) &&
        health_later(in->passing_since, in->policy.min_ns) > health_deadline(in))
        return mem_printf(ctx, "Services not healthy by deadline: checks passed for less than %s",
                          min);
    return NULL;
}
