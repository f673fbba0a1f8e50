/* SPDX-License-Identifier: Apache-2.0
 *
 * Deployment.*, and what is asked of a job's deployments.
 */
#include "api/terms.h"
#include "common/mem.h"
#include "server/leader/rollback.h"
#include "server/rpc/endpoint_int.h"

/* --- reads --- */

static struct state_iter *
list_rows(struct read *r, struct state_txn *t)
{
    return str_empty(r->list->prefix) ? state_deployments_by_create(t, r->ctx)
                                      : state_deployments(t, r->ctx, r->list->prefix);
}

static bool
list_takes(const struct read *r, const void *whole)
{
    return read_ns_matches(r, ((const struct deployment *)whole)->namespace);
}

const struct read_row read_deployment_list = {.tables = STATE_BIT(STATE_DEPLOYMENTS),
                                              .run = read_list,
                                              .order = ORDER_CREATE,
                                              .hex = true,
                                              .rows = list_rows,
                                              .takes = list_takes,
                                              .needs = ""};

static uint64_t
deployment_key(const struct read *r)
{
    return state_key_deployment(read_id(r));
}

static void *
deployment_get(struct read *r, struct state_txn *t)
{
    return read_object(r, t, STATE_DEPLOYMENTS, (struct state_key){read_id(r), NULL, 0});
}

const struct read_row read_deployment_get_deployment = {.tables = STATE_BIT(STATE_DEPLOYMENTS),
                                                        .key = deployment_key,
                                                        .run = read_one,
                                                        .get = deployment_get,
                                                        .needs = ""};

static uint64_t
allocs_key(const struct read *r)
{
    return state_key_deployment_allocs(read_id(r));
}

static struct state_iter *
allocs_rows(struct read *r, struct state_txn *t)
{
    return state_allocs_by_deployment(t, r->ctx, read_id(r));
}

const struct read_row read_deployment_allocations = {.tables = STATE_BIT(STATE_ALLOCS),
                                                     .key = allocs_key,
                                                     .run = read_list,
                                                     .rows = allocs_rows,
                                                     .finish = endpoint_alloc_row,
                                                     ALLOC_ROWS_LEAN};

static uint64_t
job_key(const struct read *r)
{
    return state_key_job_deployments(read_ns(r), read_id(r));
}

static struct state_iter *
job_rows(struct read *r, struct state_txn *t)
{
    r->job = state_job(t, r->ctx, read_ns(r), read_id(r));
    return state_deployments_by_job(t, r->ctx, read_ns(r), read_id(r));
}

/* Not those of an older job of that id that was purged, unless all are asked for. */
static bool
job_takes(const struct read *r, const void *whole)
{
    const struct deployment *d = whole;

    return ((const struct id_request *)r->req)->all || r->job == NULL ||
           d->job_create_index == r->job->create_index;
}

const struct read_row read_job_deployments = {.tables = STATE_BIT(STATE_DEPLOYMENTS),
                                              .key = job_key,
                                              .run = read_list,
                                              .rows = job_rows,
                                              .takes = job_takes,
                                              .needs = "JobCreateIndex"};

static void *
latest_get(struct read *r, struct state_txn *t)
{
    const struct job *j = state_job(t, r->ctx, read_ns(r), read_id(r));
    struct deployment *d = state_latest_deployment(t, r->ctx, read_ns(r), read_id(r));
    bool all = ((const struct id_request *)r->req)->all;

    return d != NULL && (all || j == NULL || d->job_create_index == j->create_index) ? d : NULL;
}

const struct read_row read_job_latest_deployment = {
    .tables = STATE_BIT(STATE_DEPLOYMENTS), .key = job_key, .run = read_one, .get = latest_get};

/* --- writes --- */

struct change {
    const char *eval_id;
    bool reverted;
    uint64_t version;
};

static void
changed(struct server *s, struct rpc_call *call, void *arg, uint64_t index, struct fsm_result *res)
{
    const struct change *c = arg;
    struct deployment_update_response resp = {
        .eval_id = c->eval_id,
        .eval_create_index = c->eval_id != NULL ? index : 0,
        .deployment_modify_index = index,
        .index = index,
    };

    (void)s;
    (void)res;
    if (c->reverted)
        resp.reverted_job_version = (struct opt_i64){true, (int64_t)c->version};
    rpc_reply(call, &resp);
}

/* The deployment when it is not over. Otherwise the call fails, with `over`. */
static struct deployment *
active_or_fail(struct server *s, struct rpc_call *call, const char *id, const char *over)
{
    void *ctx = rpc_call_ctx(call);
    struct deployment *d = NULL;

    if (str_empty(id)) {
        rpc_failf(call, -ERR_INVALID, "missing deployment ID");
        return NULL;
    }
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    d = state_deployment(t, ctx, id);
    state_read_end(t);
    if (d == NULL)
        rpc_failf(call, -ERR_NOT_FOUND, "deployment not found");
    else if (!deployment_active(d))
        rpc_failf(call, -ERR_INVALID, "%s", over);
    else
        return d;
    return NULL;
}

static struct evaluation *
next_eval(struct server *s, struct rpc_call *call, const struct deployment *d, struct change *c)
{
    void *ctx = rpc_call_ctx(call);
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct evaluation *e = rollback_eval(ctx, server_env(s), t, d);

    state_read_end(t);
    c->eval_id = e != NULL ? e->id : NULL;
    return e;
}

static struct job *
fail_to(struct server *s, struct rpc_call *call, const struct deployment *d,
        struct deployment_status_update *u, struct change *c)
{
    void *ctx = rpc_call_ctx(call);
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct job *to = rollback_job(ctx, t, d, u->status_description, rollback_wanted(d), u);

    state_read_end(t);
    c->reverted = to != NULL;
    c->version = to != NULL ? to->version : 0;
    return to;
}

void
call_deployment_fail(void *arg, struct rpc_call *call, const void *p)
{
    const struct deployment_fail_request *req = p;
    struct deployment *d =
        active_or_fail(arg, call, req->deployment_id, "can't fail terminal deployment");

    if (d == NULL)
        return;
    struct change *c = mem_new(rpc_call_ctx(call), struct change);
    struct deployment_status_update u = {.status_description = DESC_DEPLOY_BY_USER};
    struct intent_deployment_update up = {.update = &u};
    up.job = fail_to(arg, call, d, &u, c);
    up.eval = next_eval(arg, call, d, c);
    endpoint_write(arg, call, &(struct intent){.deployment_update = &up}, changed, c);
}

void
call_deployment_pause(void *arg, struct rpc_call *call, const void *p)
{
    const struct deployment_pause_request *req = p;
    struct deployment *d =
        active_or_fail(arg, call, req->deployment_id,
                       req->pause ? "can't pause terminal deployment" : "can't resume terminal deployment");

    if (d == NULL)
        return;
    struct change *c = mem_new(rpc_call_ctx(call), struct change);
    struct deployment_status_update u = {d->id, DEPLOYMENT_PAUSED, DESC_DEPLOY_PAUSED};
    struct intent_deployment_update up = {.update = &u};
    if (!req->pause) {
        u.status = DEPLOYMENT_RUNNING;
        u.status_description = DESC_DEPLOY_RUNNING;
        up.eval = next_eval(arg, call, d, c);
    }
    endpoint_write(arg, call, &(struct intent){.deployment_update = &up}, changed, c);
}

void
call_deployment_promote(void *arg, struct rpc_call *call, const void *p)
{
    const struct deployment_promote_request *req = p;
    struct deployment *d =
        active_or_fail(arg, call, req->deployment_id, "can't promote terminal deployment");

    if (d == NULL)
        return;
    struct change *c = mem_new(rpc_call_ctx(call), struct change);
    struct intent_deployment_promote pr = {
        .deployment_id = d->id, .all = req->all, .groups = req->groups};
    pr.eval = next_eval(arg, call, d, c);
    endpoint_write(arg, call, &(struct intent){.deployment_promote = &pr}, changed, c);
}

/* Only a deployment over several regions is ever blocked, and there are none. */
void
call_deployment_unblock(void *arg, struct rpc_call *call, const void *p)
{
    const struct deployment_unblock_request *req = p;

    if (active_or_fail(arg, call, req->deployment_id, "can't unblock terminal deployment") != NULL)
        rpc_failf(call, -ERR_INVALID, "can't unblock running deployment");
}

/* What is said to be unhealthy fails the deployment; it is rolled back when a group of these asks for it. */
static bool
reverts(struct server *s, struct rpc_call *call, const struct deployment *d, const struct str_list *bad)
{
    void *ctx = rpc_call_ctx(call);
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    bool wanted = false;

    for (size_t i = 0; i < bad->n && !wanted; i++) {
        const struct allocation *a = state_alloc(t, ctx, str_or(bad->v[i], ""));
        __auto_type e = a != NULL ? map_get(d->task_groups, a->task_group) : NULL;
        wanted = e != NULL && e->v->auto_revert;
    }
    state_read_end(t);
    return wanted;
}

void
call_deployment_set_alloc_health(void *arg, struct rpc_call *call, const void *p)
{
    const struct deployment_alloc_health_request *req = p;

    if (!str_empty(req->deployment_id) &&
        req->healthy_allocation_ids.n + req->unhealthy_allocation_ids.n == 0) {
        rpc_failf(call, -ERR_INVALID, "must specify at least one healthy/unhealthy allocation ID");
        return;
    }
    struct deployment *d = active_or_fail(arg, call, req->deployment_id,
                                          "can't set health of allocations for a terminal deployment");
    if (d == NULL)
        return;
    struct change *c = mem_new(rpc_call_ctx(call), struct change);
    struct deployment_status_update u = {d->id, DEPLOYMENT_FAILED, DESC_DEPLOY_UNHEALTHY};
    struct intent_deployment_health h = {.deployment_id = d->id,
                                         .healthy = req->healthy_allocation_ids,
                                         .unhealthy = req->unhealthy_allocation_ids};
    if (h.unhealthy.n > 0) {
        h.update = &u;
        if (reverts(arg, call, d, &h.unhealthy))
            h.job = fail_to(arg, call, d, &u, c);
    }
    h.eval = next_eval(arg, call, d, c);
    endpoint_write(arg, call, &(struct intent){.deployment_health = &h}, changed, c);
}
