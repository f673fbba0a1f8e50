/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed deployments (see rollback.h).
 */
#include "server/leader/rollback.h"

#include <inttypes.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/eval.h"

static bool
is_stable(const struct job *j, const void *arg)
{
    (void)arg;
    return j->stable;
}

struct job *
rollback_job(const void *ctx, struct state_txn *t, const struct deployment *d, const char *desc,
             bool revert, struct deployment_status_update *u)
{
    struct job *to =
        revert ? state_find_version(t, ctx, d->namespace, d->job_id, is_stable, NULL) : NULL;
    const struct job *now = to != NULL ? state_job(t, ctx, d->namespace, d->job_id) : NULL;

    u->deployment_id = d->id;
    u->status = DEPLOYMENT_FAILED;
    u->status_description = desc;
    if (!revert)
        return NULL;
    if (to == NULL || now == NULL) {
        u->status_description =
            mem_printf(ctx, "%s - no stable job version to auto revert to", desc);
        return NULL;
    }
    if (!state_has_pool(t, to->node_pool)) {
        u->status_description = mem_printf(ctx,
                                           "%s - not rolling back to stable job version %" PRIu64
                                           " as its node pool \"%s\" was deleted",
                                           desc, to->version, to->node_pool);
        return NULL;
    }
    if (!codec_equal(&type_job, now, to, F_SERVER)) {
        u->status_description =
            mem_printf(ctx, "%s - rolling back to job version %" PRIu64, desc, to->version);
        return to;
    }
    u->status_description = mem_printf(ctx,
                                       "%s - not rolling back to stable job version %" PRIu64
                                       " as current job has same specification",
                                       desc, to->version);
    return NULL;
}

bool
rollback_wanted(const struct deployment *d)
{
    for (size_t i = 0; i < d->task_groups.n; i++)
        if (d->task_groups.v[i].v->auto_revert)
            return true;
    return false;
}

struct evaluation *
rollback_eval(const void *ctx, const struct env *env, struct state_txn *t,
              const struct deployment *d)
{
    const struct job *j = state_job(t, ctx, d->namespace, d->job_id);

    if (j == NULL)
        return NULL;
    struct evaluation *e = eval_of_job(ctx, env, j, TRIGGER_DEPLOYMENT_WATCHER);
    e->job_modify_index = 0;
    e->deployment_id = d->id;
    if (d->eval_priority > 0)
        e->priority = d->eval_priority;
    return e;
}
