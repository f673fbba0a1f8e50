/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.Scale, Job.ScaleStatus, Scaling.*. What must hold of a job to be scaled is decided when the
 * entry is applied (server/fsm/scale.c).
 */
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/method.h"

/* --- scaling --- */

struct scaled {
    const char *eval_id;
};

/* False: *e says what is wrong of the request itself, whatever the job. */
static bool
scale_request_ok(struct write *w, const struct job_scale_request *req, struct err *e)
{
    const char *ns = str_map_get(&req->target, "Namespace");
    const char *job = str_map_get(&req->target, "Job");
    int rc = 0;

    if (!str_empty(ns) && !str_eq(ns, w->ns))
        rc = err_set(e, -ERR_UNSUPPORTED, "namespace in payload did not match header");
    else if (!str_empty(job) && !str_eq(job, req->job_id))
        rc = err_set(e, -ERR_UNSUPPORTED, "job ID in payload did not match URL");
    else if (str_empty(str_map_get(&req->target, "Group")))
        rc = err_set(e, -ERR_UNSUPPORTED, "missing task group name for scaling action");
    else if (req->count.set && req->count.v < 0)
        rc = err_set(e, -ERR_UNSUPPORTED, "scaling action count can't be negative");
    else if (req->count.set && req->error)
        rc = err_set(e, -ERR_UNSUPPORTED,
                     "scaling action should not contain count if error is true");
    return rc == 0;
}

/* The job as it would be has no more allocations than one may have. */
static bool
scale_count_ok(const struct job *j, const char *group, int64_t count, struct err *e)
{
    int64_t total = count;

    for (size_t i = 0; i < j->task_groups.n; i++)
        total += str_eq(j->task_groups.v[i]->name, group) ? 0 : j->task_groups.v[i]->count.v;
    if (count <= SCALE_COUNT_MAX && total <= SCALE_COUNT_MAX)
        return true;
    err_set(e, -ERR_INVALID, "total count was greater than configured job_max_count: %lld > %d",
            (long long)(count > SCALE_COUNT_MAX ? count : total), SCALE_COUNT_MAX);
    return false;
}

static bool
scale_meta_ok(const struct job_scale_request *req, struct err *e)
{
    auto_buf struct buf b = BUF_INIT(SCALE_META_MAX);

    if (req->meta != NULL)
        json_encode_value(&b, req->meta, 0);
    if (buf_error(&b) == 0)
        return true;
    err_set(e, -ERR_UNSUPPORTED, "Meta of a scaling action has at most %d bytes", SCALE_META_MAX);
    return false;
}

static int
prepare_scale(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_scale_request *req = w->req;
    struct job *j = state_job(t, w->ctx, w->ns, str_or(req->job_id, ""));
    const char *group = str_map_get(&req->target, "Group");

    if (state_scheduler_config(t, w->ctx)->reject_job_registration)
        return err_set(e, -ERR_FORBIDDEN,
                       "Job registration, dispatch, and scale are disabled by the "
                       "scheduler configuration");
    if (!scale_request_ok(w, req, e) || !scale_meta_ok(req, e))
        return e->code;
    if (j == NULL)
        return err_set(e, -ERR_NOT_FOUND, "job \"%s\" not found", str_or(req->job_id, ""));
    if (req->count.set && !scale_count_ok(j, group, req->count.v, e))
        return e->code;
    struct intent_job_scale *in = mem_new(w->ctx, struct intent_job_scale);
    struct scaling_event *ev = mem_new(w->ctx, struct scaling_event);
    struct scaled *s = mem_new(w->ctx, struct scaled);
    *ev = (struct scaling_event){
        .count = req->count, .message = req->message, .error = req->error, .meta = req->meta};
    *in = (struct intent_job_scale){.namespace = j->namespace,
                                    .job_id = j->id,
                                    .group = group,
                                    .job_modify_index = req->job_modify_index,
                                    .event = ev};
    if (req->count.set && !job_is_parent(j)) {
        in->eval = eval_of_job(w->ctx, server_env(w->s), j, TRIGGER_JOB_SCALING);
        s->eval_id = in->eval->id;
    }
    w->in.job_scale = in;
    w->memo = s;
    return 0;
}

static void
job_scaled(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct scaled *s = w->memo;
    struct job_register_response resp = {.eval_id = s->eval_id,
                                         .eval_create_index = s->eval_id != NULL ? index : 0,
                                         .job_modify_index = res->job->job_modify_index,
                                         .index = index,
                                         .known_leader = true};

    rpc_reply(w->call, &resp);
}

const struct write_row write_job_scale = {prepare_scale, job_scaled};

/* --- how far it is --- */

static void
count_alloc(struct job_scale_status *s, const struct allocation *al, uint64_t *index)
{
    const struct alloc_deployment_status *d = al->deployment_status;
    __auto_type row = map_get(s->task_groups, str_or(al->task_group, ""));

    if ((d != NULL && d->canary) || alloc_server_terminal(al) || alloc_client_terminal(al) ||
        row == NULL)
        return;
    row->v->placed++;
    row->v->running += str_eq(al->client_status, ALLOC_RUNNING);
    row->v->healthy += d != NULL && d->healthy.set && d->healthy.v;
    row->v->unhealthy += d != NULL && d->healthy.set && !d->healthy.v;
    *index = al->modify_index > *index ? al->modify_index : *index;
}

static struct job_scale_status *
status_of(struct read *r, struct state_txn *t, const struct job *j, uint64_t *index)
{
    struct job_scale_status *s = mem_new(r->ctx, struct job_scale_status);

    *s = (struct job_scale_status){.job_id = j->id,
                                   .namespace = j->namespace,
                                   .job_create_index = j->create_index,
                                   .job_modify_index = j->modify_index,
                                   .job_stopped = j->stop};
    *index = j->modify_index;
    for (size_t i = 0; i < j->task_groups.n; i++) {
        __auto_type row = map_put(s, s->task_groups, j->task_groups.v[i]->name);
        row->v = mem_new(s, struct task_group_scale_status);
        row->v->desired = j->task_groups.v[i]->count.v;
    }
    struct state_iter *it = state_scaling_events(t, s, j->namespace, j->id);
    for (struct group_scaling_events *ev; (ev = state_next(it, s)) != NULL;) {
        __auto_type row = map_get(s->task_groups, ev->group);
        if (row != NULL)
            row->v->events = ev->events;
        *index = ev->modify_index > *index ? ev->modify_index : *index;
    }
    it = state_allocs_by_job(t, r->ctx, j->namespace, j->id);
    state_iter_live_only(it);
    struct lean *lean = lean_new(r->ctx, &type_allocation, &type_allocation,
                                 "TaskGroup ClientStatus DesiredStatus DeploymentStatus "
                                 "ModifyIndex",
                                 "");
    for (struct allocation *al; (al = state_next_lean(it, r->ctx, lean)) != NULL; talloc_free(al))
        count_alloc(s, al, index);
    return s;
}

static int
scale_status_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct job_scale_status_request *req = r->req;
    const struct job *j = state_job(t, r->ctx, read_ns(r), str_or(req->job_id, ""));
    struct job_scale_status_response *resp = read_resp(r);

    (void)e;
    if (j != NULL)
        resp->job_scale_status = status_of(r, t, j, &r->index);
    else
        r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_job_scale_status = {
    .tables = STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_ALLOCS) | STATE_BIT(STATE_SCALING_EVENTS),
    .run = scale_status_run};

/* --- policies --- */

static struct state_iter *
policy_rows(struct read *r, struct state_txn *t)
{
    const struct scaling_policy_list_request *req = r->req;

    if (!str_empty(req->job) && str_empty(r->list->prefix))
        return state_scaling_by_job(t, r->ctx, read_ns(r), req->job);
    return state_ids(t, r->ctx, STATE_SCALING_POLICIES, r->list->prefix);
}

static bool
policy_takes(const struct read *r, const void *whole)
{
    const struct scaling_policy_list_request *req = r->req;
    const struct job_scaling_policy *p = whole;

    return (str_empty(req->job) || str_eq(p->job_id, req->job)) &&
           str_prefix(p->type, str_or(req->type, ""));
}

const struct read_row read_scaling_list_policies = {.tables = STATE_BIT(STATE_SCALING_POLICIES),
                                                    .run = read_list,
                                                    .rows = policy_rows,
                                                    .takes = policy_takes,
                                                    .needs = "JobID Type",
                                                    .makes = ""};

static void *
policy_get(struct read *r, struct state_txn *t)
{
    const struct job_scaling_policy *p = state_get(t, r->ctx, SCALING_POLICIES, read_id(r));
    struct scaling_policy *ret = p != NULL ? mem_new(r->ctx, struct scaling_policy) : NULL;

    if (ret != NULL)
        *ret = (struct scaling_policy){.id = p->id,
                                       .namespace = p->namespace,
                                       .type = p->type,
                                       .target = p->target,
                                       .policy = p->policy,
                                       .min = {true, p->min},
                                       .max = {true, p->max},
                                       .enabled = {true, p->enabled},
                                       .create_index = p->create_index,
                                       .modify_index = p->modify_index};
    return ret;
}

const struct read_row read_scaling_get_policy = {
    .tables = STATE_BIT(STATE_SCALING_POLICIES), .run = read_one, .get = policy_get};
