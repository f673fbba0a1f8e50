/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks as callers, by the identities that were signed for them.
 */
#include "server/call/caller.h"

#include "api/acl/token.h"
#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"
#include "server/keys/jwt.h"
#include "server/state/state.h"

enum { AGENTS_KEEP_S = 2 };

bool
workload_has(const struct workload *w, const struct acl_policy *p)
{
    const struct acl_job *j = p->job_acl;

    return j != NULL && str_eq(j->namespace, w->ns) &&
           (str_empty(j->job_id) || str_eq(j->job_id, w->job)) &&
           (str_empty(j->group) || str_eq(j->group, w->group)) &&
           (str_empty(j->task) || str_eq(j->task, w->task));
}

/* Says whether the allocation is still to run. */
static bool
workload_lives(struct state_txn *t, const struct workload *w)
{
    auto_mem void *tmp = mem_ctx("workload");
    struct lean *lean = lean_new(tmp, &type_allocation, &type_allocation,
                                 "ID DesiredStatus ClientStatus", "");
    const struct allocation *a =
        state_get_lean(t, tmp, STATE_ALLOCS, (struct state_key){.a = w->alloc}, lean);

    return a != NULL && !alloc_terminal(a);
}

static bool
job_has_task(const struct job *j, const char *group, const char *task)
{
    const struct task_group *g = job_group(j, group);

    for (size_t i = 0; g != NULL && i < g->tasks.n; i++)
        if (str_eq(g->tasks.v[i]->name, task))
            return true;
    return false;
}

const struct workload *
workload_of(const void *ctx, struct state_txn *t, const char *token, int64_t now_s)
{
    auto_mem void *tmp = mem_ctx("workload");
    struct jwt_claims c;

    if (jwt_open(tmp, t, token, now_s, &c) < 0)
        return NULL;
    struct allocation *a = state_alloc(t, tmp, str_or(c.alloc, ""));
    const struct job *j = a != NULL && !alloc_terminal(a) ? state_alloc_job(t, a) : NULL;
    if (j == NULL || !str_eq(str_or(a->namespace, NS_DEFAULT), c.namespace) ||
        !job_has_task(j, a->task_group, str_or(c.task, "")))
        return NULL;
    struct workload *w = mem_new(ctx, struct workload);
    *w = (struct workload){mem_strdup(w, c.namespace),
                           mem_strdup(w, !str_empty(j->parent_id) ? j->parent_id : j->id),
                           mem_strdup(w, a->task_group),
                           mem_strdup(w, c.task),
                           mem_strdup(w, a->id),
                           c.expires};
    return str_eq(w->job, c.job) ? w : NULL;
}

bool
caller_is_good(const struct caller *c, struct state_txn *t, int64_t now_ns)
{
    const struct workload *w = c->workload;

    if (w != NULL)
        return (w->ends_s == 0 || w->ends_s * NS_PER_S > now_ns) && workload_lives(t, w);
    return c->token == NULL || !acl_token_ended(c->token, now_ns);
}

int64_t
caller_ends(const struct caller *c, int64_t now_ns)
{
    if (c->workload != NULL) /* with its allocation, of which agents are not told */
        return now_ns + AGENTS_KEEP_S * NS_PER_S;
    return c->token != NULL ? c->token->expiration_time : 0;
}
