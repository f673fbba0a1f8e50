/* SPDX-License-Identifier: Apache-2.0
 *
 * Making evaluations (see eval.h) with what api/eval.h asks for.
 */
#include "server/eval.h"

#include "api/eval.h"
#include "common/mem.h"
#include "common/uuid.h"

struct evaluation *
eval_of_job(const void *ctx, const struct env *env, const struct job *j, const char *trigger)
{
    char id[UUID_TEXT];
    struct eval_args x = {.id = mem_strdup(ctx, env_id(env, id)),
                          .job = j,
                          .trigger = trigger,
                          .now = env_wall_ns(env)};

    return eval_new(ctx, &x);
}

struct evaluation *
eval_after(const void *ctx, const struct env *env, const struct evaluation *e, const char *trigger)
{
    char id[UUID_TEXT];
    struct eval_args x = {.id = mem_strdup(ctx, env_id(env, id)),
                          .after = e,
                          .trigger = trigger,
                          .now = env_wall_ns(env)};

    return eval_new(ctx, &x);
}
