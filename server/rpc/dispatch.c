/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.Dispatch and Periodic.Force: children of a job, asked for. The errors are Nomad's, in its words.
 */
#include <inttypes.h>

#include "api/limits.h"
#include "api/plain.h"
#include "api/terms.h"
#include "api/validate_launch.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/rpc/endpoint_int.h"

enum { PRIORITY_MIN = 1, PRIORITY_MAX = 100 };

/* Go's %v of a list. */
static const char *
brackets(const void *ctx, const struct str_list *l)
{
    const char *s = "";
    for (size_t i = 0; i < l->n; i++)
        s = mem_printf(ctx, "%s%s%s", s, i > 0 ? " " : "", l->v[i]);
    return mem_printf(ctx, "[%s]", s);
}

static bool
meta_ok(struct rpc_call *call, const struct job_dispatch_request *req,
        const struct parameterized_job_config *p)
{
    void *ctx = rpc_call_ctx(call);
    struct str_list over = {0}, missing = {0};

    for (size_t i = 0; i < req->meta.n; i++) {
        const char *k = req->meta.v[i].k;
        if (!str_list_has(&p->meta_required, k) && !str_list_has(&p->meta_optional, k))
            list_add(ctx, over, k);
    }
    if (over.n > 0) {
        rpc_failf(call, -ERR_INTERNAL, "Dispatch request included unpermitted metadata keys: %s",
                  brackets(ctx, &over));
        return false;
    }
    for (size_t k = 0; k < p->meta_required.n; k++) {
        size_t i = 0;
        while (i < req->meta.n && !str_eq(req->meta.v[i].k, p->meta_required.v[k]))
            i++;
        if (i == req->meta.n)
            list_add(ctx, missing, p->meta_required.v[k]);
    }
    if (missing.n > 0)
        rpc_failf(call, -ERR_INTERNAL, "Dispatch did not provide required meta keys: %s",
                  brackets(ctx, &missing));
    return missing.n == 0;
}

static bool
request_ok(struct rpc_call *call, const struct job_dispatch_request *req, const struct job *j)
{
    const struct parameterized_job_config *p = j->parameterized_job;
    const char *why = NULL;

    if (str_eq(p->payload, "required") && req->payload.n == 0)
        why = "Payload is not provided but required by parameterized job";
    else if (str_eq(p->payload, "forbidden") && req->payload.n > 0)
        why = "Payload provided but forbidden by parameterized job";
    if (why != NULL) {
        rpc_failf(call, -ERR_INTERNAL, "%s", why);
        return false;
    }
    if (req->payload.n > DISPATCH_PAYLOAD_MAX) {
        rpc_failf(call, -ERR_INTERNAL, "Payload exceeds maximum size; %zu > %d", req->payload.n,
                  DISPATCH_PAYLOAD_MAX);
        return false;
    }
    if (!meta_ok(call, req, p))
        return false;
    if (req->priority != 0 && (req->priority < PRIORITY_MIN || req->priority > PRIORITY_MAX)) {
        rpc_failf(call, -ERR_INTERNAL, "dispatch job priority must be between [%d, %d]", PRIORITY_MIN,
                  PRIORITY_MAX);
        return false;
    }
    if (strlen(j->id) + strlen(str_or(req->id_prefix_template, "")) > JOB_DISPATCH_ID_MAX) {
        rpc_failf(call, -ERR_INVALID, "the id of the job and IdPrefixTemplate are longer than %d bytes",
                  JOB_DISPATCH_ID_MAX);
        return false;
    }
    if (!str_empty(req->id_prefix_template) && !plain_job_id(req->id_prefix_template)) {
        rpc_failf(call, -ERR_INVALID, "IdPrefixTemplate holds a blank or a control character");
        return false;
    }
    return true;
}

/* With what the dispatch says it must start, as a job that says all of it itself. */
static bool
child_ok(struct rpc_call *call, const struct job_dispatch_request *req, struct job *j)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < req->meta.n; i++)
        str_map_set(j, &j->meta, req->meta.v[i].k, req->meta.v[i].v);
    if (validate_launches(rpc_call_ctx(call), j, &e) == 0)
        return true;
    rpc_fail(call, &e);
    return false;
}

/* The job that can be dispatched, or the call is failed. */
static struct job *
template_or_fail(struct server *s, struct rpc_call *call, const char *id)
{
    void *ctx = rpc_call_ctx(call);
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct job *j = str_empty(id) ? NULL : state_job(t, ctx, call_ns(call), id);
    bool rejected = state_scheduler_config(t, ctx)->reject_job_registration;

    state_read_end(t);
    if (rejected)
        rpc_failf(call, -ERR_FORBIDDEN, "Job registration, dispatch, and scale are disabled by the "
                                        "scheduler configuration");
    else if (str_empty(id))
        rpc_failf(call, -ERR_INTERNAL, "missing parameterized job ID");
    else if (j == NULL)
        rpc_failf(call, -ERR_INTERNAL, "parameterized job not found");
    else if (!job_parameterized(j))
        rpc_failf(call, -ERR_INTERNAL, "Specified job \"%s\" is not a parameterized job", id);
    else if (j->stop)
        rpc_failf(call, -ERR_INTERNAL, "Specified job \"%s\" is stopped", id);
    else
        return j;
    return NULL;
}

static void
dispatched(struct server *s, struct rpc_call *call, void *arg, uint64_t index, struct fsm_result *res)
{
    bool again = !res->changed; /* its token has a child */
    bool evaluated = res->evals.n > 0;
    struct job_dispatch_response resp = {
        .dispatched_job_id = res->job->id,
        .eval_id = evaluated ? arg : NULL,
        .eval_create_index = evaluated ? index : 0,
        .job_create_index = again ? res->job->create_index : index,
        .index = again ? res->job->modify_index : index,
    };

    (void)s;
    rpc_reply(call, &resp);
}

void
call_job_dispatch(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_dispatch_request *req = p;
    struct server *s = arg;
    const struct env *env = server_env(s);
    void *ctx = rpc_call_ctx(call);
    char some[UUID_TEXT], eval[UUID_TEXT];
    struct job *j = template_or_fail(s, call, req->job_id);

    if (j == NULL || !request_ok(call, req, j) || !child_ok(call, req, j))
        return;
    int64_t now = env_wall_ns(env);
    const char *prefix = str_or(req->id_prefix_template, "");
    struct intent_job_dispatch jd = {
        .namespace = j->namespace,
        .job_id = j->id,
        .child_id = mem_printf(ctx, "%s" DISPATCH_INFIX "%s%s%" PRId64 "-%.8s", j->id, prefix,
                               *prefix ? "-" : "", now / NS_PER_S, env_id(env, some)),
        .payload = req->payload,
        .meta = req->meta,
        .priority = req->priority != 0 ? req->priority : j->priority.v,
        .idempotency_token = req->idempotency_token,
        .eval_id = mem_strdup(ctx, env_id(env, eval)),
    };
    struct intent in = {.time = now, .job_dispatch = &jd};
    endpoint_write(s, call, &in, dispatched, (void *)(uintptr_t)jd.eval_id);
}

static void
forced(struct server *s, struct rpc_call *call, void *arg, uint64_t index, struct fsm_result *res)
{
    struct periodic_force_response resp = {.eval_id = arg, .eval_create_index = index, .index = index};

    (void)s;
    (void)res;
    rpc_reply(call, &resp);
}

void
call_periodic_force(void *arg, struct rpc_call *call, const void *p)
{
    const struct periodic_force_request *req = p;
    struct server *s = arg;
    const struct env *env = server_env(s);
    void *ctx = rpc_call_ctx(call);
    char eval[UUID_TEXT];

    if (str_empty(req->job_id)) {
        rpc_failf(call, -ERR_INTERNAL, "missing job ID for evaluation");
        return;
    }
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    const struct job *j = state_job(t, ctx, call_ns(call), req->job_id);
    state_read_end(t);
    if (j == NULL || j->periodic == NULL) {
        rpc_failf(call, -ERR_INTERNAL, "%s",
                  j == NULL ? "job not found" : "can't force launch non-periodic job");
        return;
    }
    if (!job_periodic_active(j)) {
        rpc_failf(call, -ERR_INTERNAL,
                  "force launch for job \"%s\" failed: can't force run non-tracked job \"%s\" (%s)", j->id,
                  j->id, j->namespace);
        return;
    }
    struct intent_periodic_launch pl = {.namespace = j->namespace,
                                        .job_id = j->id,
                                        .launch = env_wall_ns(env) / NS_PER_S,
                                        .eval_id = mem_strdup(ctx, env_id(env, eval)),
                                        .force = true};
    struct intent in = {.periodic_launch = &pl};
    endpoint_write(s, call, &in, forced, (void *)(uintptr_t)pl.eval_id);
}
