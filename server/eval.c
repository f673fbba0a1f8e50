/* SPDX-License-Identifier: Apache-2.0
 *
 * Making evaluations (see eval.h).
 */
#include "server/eval.h"

#include "api/terms.h"
#include "common/mem.h"

static struct evaluation *
eval_new(const void *ctx, const struct env *env, const char *trigger)
{
    struct evaluation *e = mem_new(ctx, struct evaluation);
    char id[UUID_TEXT];

    e->id = mem_strdup(ctx, env_id(env, id));
    e->triggered_by = trigger;
    e->create_time = e->modify_time = env_wall_ns(env);
    return e;
}

struct evaluation *
eval_of_job(const void *ctx, const struct env *env, const struct job *j, const char *trigger)
{
    struct evaluation *e = eval_new(ctx, env, trigger);

    e->namespace = j->namespace;
    e->priority = j->priority.v;
    e->type = j->type;
    e->job_id = j->id;
    e->job_modify_index = j->job_modify_index;
    e->status = EVAL_PENDING;
    return e;
}

struct evaluation *
eval_after(const void *ctx, const struct env *env, const struct evaluation *e, const char *trigger)
{
    struct evaluation *next = eval_new(ctx, env, trigger);

    next->namespace = e->namespace;
    next->priority = e->priority;
    next->type = e->type;
    next->job_id = e->job_id;
    next->job_modify_index = e->job_modify_index;
    next->previous_eval = e->id;
    return next;
}
