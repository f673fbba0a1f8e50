/* SPDX-License-Identifier: Apache-2.0
 *
 * Deployment.*, and what is asked of a job's deployments.
 */
#include "api/terms.h"
#include "common/mem.h"
#include "server/leader/rollback.h"
#include "server/call/method.h"

/* --- reads --- */

const struct read_row read_deployment_list = {.tables = STATE_BIT(STATE_DEPLOYMENTS),
                                              .run = read_list,
                                              .order = ORDER_CREATE,
                                              .hex = true,
                                              .by = STATE_DEPLOYMENTS_BY_CREATE,
                                              .needs = ""};

const struct read_row read_deployment_get_deployment = {.tables = STATE_BIT(STATE_DEPLOYMENTS),
                                                        .about = WATCH_DEPLOYMENT,
                                                        .run = read_one,
                                                        .needs = ""};

const struct read_row read_deployment_allocations = {.tables = STATE_BIT(STATE_ALLOCS),
                                                     .about = WATCH_DEPLOYMENT_ALLOCS,
                                                     .run = read_list,
                                                     .by = STATE_ALLOCS_BY_DEPLOYMENT,
                                                     .finish = endpoint_alloc_row,
                                                     ALLOC_ROWS_LEAN};

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
                                              .about = WATCH_JOB_DEPLOYMENTS,
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

const struct read_row read_job_latest_deployment = {.tables = STATE_BIT(STATE_DEPLOYMENTS),
                                                    .about = WATCH_JOB_DEPLOYMENTS,
                                                    .run = read_one,
                                                    .get = latest_get};

/* --- writes --- */

struct change {
    const char *eval_id;
    bool reverted;
    uint64_t version;
};

static void
deployment_changed(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct change *c = w->memo;
    struct deployment_update_response resp = {
        .eval_id = c->eval_id,
        .eval_create_index = c->eval_id != NULL ? index : 0,
        .deployment_modify_index = index,
        .index = index,
    };

    (void)res;
    if (c->reverted)
        resp.reverted_job_version = (struct opt_i64){true, (int64_t)c->version};
    rpc_reply(w->call, &resp);
}

/* The deployment when it is not over; NULL with an error, which is `over` when it is. */
static struct deployment *
deployment_read_active(struct write *w, struct state_txn *t, const char *id, const char *over,
                       struct err *e)
{
    if (str_empty(id)) {
        err_set(e, -ERR_INVALID, "missing deployment ID");
        return NULL;
    }
    struct deployment *d = write_object(w, t, DEPLOYMENTS, id);
    if (d == NULL)
        err_set(e, -ERR_NOT_FOUND, "deployment not found");
    else if (!deployment_active(d))
        err_set(e, -ERR_INVALID, "%s", over);
    return e->code == 0 ? d : NULL;
}

static struct change *
change_new(struct write *w)
{
    struct change *c = mem_new(w->ctx, struct change);

    w->memo = c;
    return c;
}

static struct deployment_status_update *
update_new(struct write *w, const char *id, const char *status, const char *text)
{
    struct deployment_status_update *u = mem_new(w->ctx, struct deployment_status_update);

    *u = (struct deployment_status_update){id, status, text};
    return u;
}

static struct evaluation *
next_eval(struct write *w, struct state_txn *t, const struct deployment *d, struct change *c)
{
    struct evaluation *e = rollback_eval(w->ctx, server_env(w->s), t, d);

    c->eval_id = e != NULL ? e->id : NULL;
    return e;
}

static struct job *
fail_to(struct write *w, struct state_txn *t, const struct deployment *d,
        struct deployment_status_update *u, struct change *c)
{
    struct job *to = rollback_job(w->ctx, t, d, u->status_description, rollback_wanted(d), u);

    c->reverted = to != NULL;
    c->version = to != NULL ? to->version : 0;
    return to;
}

static int
prepare_fail(struct write *w, struct state_txn *t, struct err *e)
{
    const struct deployment_fail_request *req = w->req;
    struct deployment *d =
        deployment_read_active(w, t, req->deployment_id, "can't fail terminal deployment", e);

    if (d == NULL)
        return e->code;
    struct change *c = change_new(w);
    struct intent_deployment_update *up = mem_new(w->ctx, struct intent_deployment_update);
    up->update = update_new(w, NULL, NULL, DESC_DEPLOY_BY_USER);
    up->job = fail_to(w, t, d, up->update, c);
    up->eval = next_eval(w, t, d, c);
    w->in.deployment_update = up;
    return 0;
}

const struct write_row write_deployment_fail = {prepare_fail, deployment_changed};

static int
prepare_pause(struct write *w, struct state_txn *t, struct err *e)
{
    const struct deployment_pause_request *req = w->req;
    struct deployment *d = deployment_read_active(
        w, t, req->deployment_id,
        req->pause ? "can't pause terminal deployment" : "can't resume terminal deployment", e);

    if (d == NULL)
        return e->code;
    struct change *c = change_new(w);
    struct intent_deployment_update *up = mem_new(w->ctx, struct intent_deployment_update);
    if (req->pause) {
        up->update = update_new(w, d->id, DEPLOYMENT_PAUSED, DESC_DEPLOY_PAUSED);
    } else {
        up->update = update_new(w, d->id, DEPLOYMENT_RUNNING, DESC_DEPLOY_RUNNING);
        up->eval = next_eval(w, t, d, c);
    }
    w->in.deployment_update = up;
    return 0;
}

const struct write_row write_deployment_pause = {prepare_pause, deployment_changed};

static int
prepare_promote(struct write *w, struct state_txn *t, struct err *e)
{
    const struct deployment_promote_request *req = w->req;
    struct deployment *d =
        deployment_read_active(w, t, req->deployment_id, "can't promote terminal deployment", e);

    if (d == NULL)
        return e->code;
    struct intent_deployment_promote *pr = mem_new(w->ctx, struct intent_deployment_promote);
    *pr = (struct intent_deployment_promote){
        .deployment_id = d->id, .all = req->all, .groups = req->groups};
    pr->eval = next_eval(w, t, d, change_new(w));
    w->in.deployment_promote = pr;
    return 0;
}

const struct write_row write_deployment_promote = {prepare_promote, deployment_changed};

/* Only a deployment over several regions is ever blocked, and there are none. */
static int
prepare_unblock(struct write *w, struct state_txn *t, struct err *e)
{
    const struct deployment_unblock_request *req = w->req;

    if (deployment_read_active(w, t, req->deployment_id, "can't unblock terminal deployment", e) !=
        NULL)
        err_set(e, -ERR_INVALID, "can't unblock running deployment");
    return e->code;
}

const struct write_row write_deployment_unblock = {prepare_unblock, deployment_changed};

/* Says whether a deployment that fails by allocations said to be unhealthy is rolled back: when a
 * group of these asks for it. */
static bool
deployment_reverts(struct write *w, struct state_txn *t, const struct deployment *d,
                   const struct str_list *bad)
{
    bool wanted = false;

    for (size_t i = 0; i < bad->n && !wanted; i++) {
        const struct allocation *a = state_alloc(t, w->ctx, str_or(bad->v[i], ""));
        __auto_type e = a != NULL ? map_get(d->task_groups, a->task_group) : NULL;
        wanted = e != NULL && e->v->auto_revert;
    }
    return wanted;
}

static int
prepare_health(struct write *w, struct state_txn *t, struct err *e)
{
    const struct deployment_alloc_health_request *req = w->req;

    if (!str_empty(req->deployment_id) &&
        req->healthy_allocation_ids.n + req->unhealthy_allocation_ids.n == 0)
        return err_set(e, -ERR_INVALID,
                       "must specify at least one healthy/unhealthy allocation ID");
    struct deployment *d = deployment_read_active(
        w, t, req->deployment_id, "can't set health of allocations for a terminal deployment", e);
    if (d == NULL)
        return e->code;
    struct change *c = change_new(w);
    struct intent_deployment_health *h = mem_new(w->ctx, struct intent_deployment_health);
    *h = (struct intent_deployment_health){.deployment_id = d->id,
                                           .healthy = req->healthy_allocation_ids,
                                           .unhealthy = req->unhealthy_allocation_ids};
    if (h->unhealthy.n > 0) {
        h->update = update_new(w, d->id, DEPLOYMENT_FAILED, DESC_DEPLOY_UNHEALTHY);
        if (deployment_reverts(w, t, d, &h->unhealthy))
            h->job = fail_to(w, t, d, h->update, c);
    }
    h->eval = next_eval(w, t, d, c);
    w->in.deployment_health = h;
    return 0;
}

const struct write_row write_deployment_set_alloc_health = {prepare_health, deployment_changed};
