/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.*: reads.
 */
#include <inttypes.h>
#include <string.h>

#include "api/jobdiff.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/rpc/endpoint_int.h"

static uint64_t
job_key(const struct id_request *req)
{
    return state_key_job(query_ns(req->query), str_or(req->id, ""));
}

static int
get_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct id_request *req = r->req;
    struct job_response *resp = mem_new(ctx, struct job_response);

    (void)e;
    resp->job = state_job(t, ctx, query_ns(r->q), str_or(req->id, ""));
    resp->meta = r->meta;
    r->index = resp->job ? resp->job->modify_index : state_index(t, STATE_BIT(STATE_JOBS));
    r->resp = resp;
    return 0;
}

/* A job that does not exist is answered with Job null: the route makes it 404. */
void
job_get(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_JOBS), job_key(req), get_run);
}

static struct job_list_stub *
job_stub(struct state_txn *t, const void *ctx, const struct job *j, bool meta)
{
    struct job_list_stub *s = mem_new(ctx, struct job_list_stub);

    s->id = j->id;
    s->parent_id = j->parent_id;
    s->name = j->name;
    s->namespace = j->namespace;
    s->datacenters = j->datacenters;
    s->node_pool = j->node_pool;
    s->type = j->type;
    s->priority = j->priority.v;
    s->periodic = j->periodic != NULL;
    s->parameterized_job = j->parameterized_job != NULL;
    s->stop = j->stop;
    s->status = j->status;
    s->status_description = j->status_description;
    s->job_summary = state_summary(t, ctx, j->namespace, j->id);
    s->create_index = j->create_index;
    s->modify_index = j->modify_index;
    s->job_modify_index = j->job_modify_index;
    s->submit_time = j->submit_time;
    if (meta)
        s->meta = j->meta;
    return s;
}

static int
list_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    static const struct row_types types = {&type_job, &type_job_list_stub};
    const struct list_request *req = r->req;
    struct job_list_response *resp = mem_new(ctx, struct job_list_response);
    struct rows l;

    if (rows_begin(&l, r, ctx, &types, e) < 0)
        return e->code;
    struct state_iter *it = state_jobs(t, ctx, query_ns(r->q), r->q->prefix);
    rows_seek(&l, it);
    for (struct job *j; (j = state_next(it, rows_ctx(&l))) != NULL;) {
        if (!rows_see(&l, (struct row_key){.id = j->id, .ns = j->namespace}))
            break;
        if (!rows_take(&l, j))
            continue;
        struct job_list_stub *stub = job_stub(t, j, j, req->meta);
        rows_add(&l, stub, j->modify_index);
        if (stub->job_summary != NULL)
            read_saw(r, j->namespace, stub->job_summary->modify_index);
    }
    resp->meta = r->meta;
    int rc = ROWS_END(&l, t, resp->jobs, e);
    r->resp = resp;
    return rc;
}

void
job_list(void *arg, struct rpc_call *call, const void *p)
{
    const struct list_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_SUMMARIES), 0,
                  list_run);
}

static int
allocations_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    static const struct row_types types = {&type_allocation, &type_alloc_list_stub};
    const struct id_request *req = r->req;
    struct alloc_list_response *resp = mem_new(ctx, struct alloc_list_response);
    const char *ns = query_ns(r->q), *id = str_or(req->id, "");
    struct rows l;

    if (rows_begin(&l, r, ctx, &types, e) < 0)
        return e->code;
    const struct job *j = state_job(t, ctx, ns, id);
    struct state_iter *it = state_allocs_by_job(t, ctx, ns, id);
    rows_seek(&l, it);
    for (struct allocation *a; (a = state_next_with_job(it, rows_ctx(&l))) != NULL;) {
        if (!rows_see(&l, (struct row_key){.id = a->id}))
            break;
        /* an older job of that id that was purged */
        bool other = j != NULL && a->job != NULL && a->job->create_index != j->create_index;
        if ((req->all || !other) && rows_take(&l, a))
            rows_add(&l, endpoint_alloc_stub(a, a), a->modify_index);
    }
    resp->meta = r->meta;
    int rc = ROWS_END(&l, t, resp->allocations, e);
    r->resp = resp;
    return rc;
}

void
job_allocations(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_ALLOCS),
                  state_key_job_allocs(query_ns(req->query), str_or(req->id, "")), allocations_run);
}

static int
evaluations_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    static const struct row_types types = {&type_evaluation, &type_evaluation};
    const struct id_request *req = r->req;
    struct eval_list_response *resp = mem_new(ctx, struct eval_list_response);
    struct rows l;

    if (rows_begin(&l, r, ctx, &types, e) < 0)
        return e->code;
    struct state_iter *it = state_evals_by_job(t, ctx, query_ns(r->q), str_or(req->id, ""));
    rows_seek(&l, it);
    for (struct evaluation *ev; (ev = state_next(it, rows_ctx(&l))) != NULL;) {
        if (!rows_see(&l, (struct row_key){.id = ev->id}))
            break;
        if (rows_take(&l, ev))
            rows_add(&l, ev, ev->modify_index);
    }
    resp->meta = r->meta;
    int rc = ROWS_END(&l, t, resp->evaluations, e);
    r->resp = resp;
    return rc;
}

void
job_evaluations(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_EVALS),
                  state_key_job_evals(query_ns(req->query), str_or(req->id, "")), evaluations_run);
}

static int
summary_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct id_request *req = r->req;
    struct job_summary_response *resp = mem_new(ctx, struct job_summary_response);

    (void)e;
    resp->job_summary = state_summary(t, ctx, query_ns(r->q), str_or(req->id, ""));
    resp->meta = r->meta;
    r->index = resp->job_summary ? resp->job_summary->modify_index : state_index(t, r->tables);
    r->resp = resp;
    return 0;
}

void
job_summary_rpc(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_SUMMARIES), job_key(req), summary_run);
}

/* One version, or with Diffs the difference to the one before it, in each answer: together they may be
 * larger than an answer may. NextToken: "N", or "N.diff". */
static int
versions_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct id_request *req = r->req;
    struct job_versions_response *resp = mem_new(ctx, struct job_versions_response);
    struct state_iter *it = state_job_versions(t, ctx, query_ns(r->q), str_or(req->id, ""));
    const char *token = str_or(r->q->next_token, ""), *dot = strchr(token, '.');
    struct job *this = NULL, *older = NULL;
    uint64_t from = UINT64_MAX;

    if (*token && num_parse_u64(mem_strndup(ctx, token, strcspn(token, ".")), &from) < 0)
        return err_set(e, -ERR_INVALID, "next_token '%.64s' is not of this list", token);
    for (struct job *j; (j = state_next(it, ctx)) != NULL;) {
        r->index = j->modify_index > r->index ? j->modify_index : r->index;
        struct job **at = this == NULL ? &this : &older;
        if (j->version > from || *at != NULL)
            talloc_free(j);
        else
            *at = j;
    }
    if (dot == NULL && this != NULL)
        list_add(ctx, resp->versions, this);
    else if (older != NULL)
        list_add(ctx, resp->diffs, job_diff(ctx, older, this, true));
    if (dot == NULL && older != NULL && req->diffs)
        resp->next_token = mem_printf(ctx, "%" PRIu64 ".diff", this->version);
    else if (older != NULL)
        resp->next_token = mem_printf(ctx, "%" PRIu64, older->version);
    if (r->index == 0)
        r->index = state_index(t, STATE_BIT(STATE_JOBS));
    resp->index = r->index;
    resp->known_leader = true;
    r->resp = resp;
    return 0;
}

void
job_versions(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_JOBS), job_key(req), versions_run);
}
